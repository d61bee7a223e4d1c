"""What plausible repairs answer to calls, and whether those calls come to what the repairs change.

Equal answers say something only where they do: to a call that runs other code all repairs answer alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from suture.checks.command.test_command import TestCommand
from suture.repair.editing.places import Place, place_of, tripwire
from suture.repair.trials.comparing import compare
from suture.repair.trials.records import Proposal

Call = tuple[str, str, str]
MOST_WIRES = 4
"""Places of which it is seen whether calls come to them; each costs as much as a candidate."""


@dataclass(frozen=True, kw_only=True)
class Answered:
    """What one repair answers.

    Attributes:
        answers: To each call, as `compare` has it; empty where that is not known.
        reached: How many of the calls are known to come to what it changes.
    """

    answers: tuple[str, ...] = ()
    reached: int = 0


@dataclass(frozen=True)
class _Spot:
    """Where a repair stands in a file."""

    path: str
    place: Place | None

    @property
    def tells(self) -> bool:
        """Whether equal answers of calls that come here say something.

        That no such exception comes tells nothing of the handlers of others.
        """
        return self.place is not None and not self.place.is_handler


async def answers_of(
    proposals: Sequence[Proposal],
    calls: Sequence[Call],
    texts: Mapping[str, str],
    command: TestCommand,
    seconds: float,
) -> list[Answered]:
    """Ask repairs the same calls.

    Args:
        proposals: The repairs.
        calls: File, function and arguments.
        texts: Path -> text, before.
        command: The tests' command.
        seconds: Wall-clock seconds for all.

    Raises:
        SandboxError: The wall failed.
    """
    places = [_Spot(proposal.path, place_of(texts[proposal.path], proposal.edits)) for proposal in proposals]
    wires: dict[_Spot, Proposal] = {}
    for spot, proposal in zip(places, proposals, strict=True):
        here = [
            edit for other, one in zip(places, proposals, strict=True) if other == spot for edit in one.edits
        ]
        edits = tripwire(texts[spot.path], here) if spot not in wires and len(wires) < MOST_WIRES else ()
        if edits:
            wires[spot] = replace(proposal, edits=edits)
    # The code as it is comes last: it may be what never ends.
    asked = [*wires.values(), *proposals, replace(proposals[0], edits=())]
    wired = len(wires)

    def is_idle(said: Mapping[int, list[str]]) -> bool:
        """Whether no call comes to any of the places, so that all repairs answer alike."""
        known = wired in said and wires.keys() == set(places)
        return known and all(said.get(number) == said[wired] for number in range(wired))

    answers = await compare(command, asked, calls, texts, seconds, enough=is_idle)
    stopped = {spot: answers.get(number, []) for number, spot in enumerate(wires)}
    unchanged = answers.get(len(asked) - 1, [])
    found = []
    for number, spot in enumerate(places):
        own = answers.get(wired + number, [])
        other = stopped.get(spot, unchanged)
        reached = sum(a != b for a, b in zip(own, other, strict=False)) if spot.tells else 0
        found.append(Answered(answers=tuple(own), reached=reached))
    return found
