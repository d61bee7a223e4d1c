"""What plausible repairs answer to calls, and whether those calls come to what the repairs change.

Equal answers say something only where they do: to a call that runs other code all repairs answer alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from suture.checks.command.test_command import TestCommand
from suture.repair.editing.places import place_of, tripwire
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
    wires: dict[tuple[str, str], Proposal] = {}
    wire_of: list[tuple[str, str] | None] = []
    silent: set[int] = set()
    for proposal in proposals:
        place = place_of(texts[proposal.path], proposal.edits)
        if place is None or place.is_handler:  # that no such exception comes tells nothing of the others
            silent.add(len(wire_of))
        edits = tripwire(texts[proposal.path], proposal.edits)
        key = (proposal.path, repr(edits)) if edits else None
        wire_of.append(key)
        if key is not None and len(wires) < MOST_WIRES:
            wires.setdefault(key, replace(proposal, edits=edits))
    # The code as it is comes last: it may be what never ends.
    asked = [*wires.values(), *proposals, replace(proposals[0], edits=())]
    answers = await compare(command, asked, calls, texts, seconds)
    stopped = {key: answers.get(number, []) for number, key in enumerate(wires)}
    unchanged = answers.get(len(asked) - 1, [])
    found = []
    for number, key in enumerate(wire_of):
        own = answers.get(len(wires) + number, [])
        other = stopped.get(key, []) if key is not None else unchanged
        reached = 0 if number in silent else sum(a != b for a, b in zip(own, other, strict=False))
        found.append(Answered(answers=tuple(own), reached=reached))
    return found
