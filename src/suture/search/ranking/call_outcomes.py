"""What plausible repairs answer to calls, and whether those calls come to what the repairs change.

Equal answers say something only where they do: to a call that runs other code all repairs answer alike.
"""

from __future__ import annotations

import ast
import doctest
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from suture.judge.differential.input_generation import Arguments, inputs_near, inputs_with, read_arguments
from suture.judge.runners.test_command import TestCommand
from suture.judge.trials.call_comparison import compare
from suture.judge.trials.trial_records import Proposal, Spectrum
from suture.mutation.python.edit_locations import EditLocation, constants_near_edit, find_location, build_tripwire
from suture.mutation.python.python_tree import FUNCTIONS, is_docstring
from suture.project.python_source.parsing import parsed

Call = tuple[str, str, str]
INPUTS, AT_BOUNDS = 60, 24
"""Calls of one function: with what is near the tests' arguments, and with what the changed code asks for."""
MOST_WIRES = 4
"""Places of which it is seen whether calls come to them; each costs as much as a candidate."""
LATE, NOTHING_SEEN, OPAQUE = "!late", "?", " at ?"
"""What `suture_calls` says of a call without an end, of one that did nothing it could see, of an object."""


@dataclass(frozen=True, kw_only=True)
class CallOutcomes:
    """What one repair answers.

    Attributes:
        answers: To each call, as `compare` has it; empty where that is not known.
        reached: How many of the calls are known to come to what it changes, and show what that does.
    """

    answers: tuple[str, ...] = ()
    reached: int = 0


@dataclass(frozen=True)
class _Spot:
    """Where a repair stands in a file."""

    path: str
    place: EditLocation | None

    @property
    def tells(self) -> bool:
        """Whether equal answers of calls that come here say something.

        That no such exception comes tells nothing of the handlers of others.
        """
        return self.place is not None and not self.place.is_handler


async def collect_outcomes(
    proposals: Sequence[Proposal],
    calls: Sequence[Call],
    texts: Mapping[str, str],
    command: TestCommand,
    seconds: float,
) -> list[CallOutcomes]:
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
    places = [_Spot(proposal.path, find_location(texts[proposal.path], proposal.edits)) for proposal in proposals]
    wires: dict[_Spot, Proposal] = {}
    for spot, proposal in zip(places, proposals, strict=True):
        here = [
            edit for other, one in zip(places, proposals, strict=True) if other == spot for edit in one.edits
        ]
        edits = build_tripwire(texts[spot.path], here) if spot not in wires and len(wires) < MOST_WIRES else ()
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
        reached = sum(a != b and is_conclusive(a) for a, b in zip(own, other, strict=False)) if spot.tells else 0
        found.append(CallOutcomes(answers=tuple(own), reached=reached))
    return found


def is_conclusive(answer: str) -> bool:
    """Whether that another answers the same says that it does the same.

    A call that does not end, or that answers nothing, does so whatever it would have come to.
    """
    return answer != LATE and not answer.startswith(NOTHING_SEEN) and OPAQUE not in answer


def generate_calls(
    spectrum: Spectrum, proposals: Sequence[Proposal], texts: Mapping[str, str], draw: random.Random
) -> list[Call]:
    """Calls of functions that the tests call in the changed files.

    Their arguments are near the tests', and such as what was changed there asks for.

    Args:
        spectrum: What the tests call.
        proposals: What is compared.
        texts: Path -> text, before.
        draw: The source of chance.
    """
    functions = {path: _at_top(texts[path]) for path in {proposal.path for proposal in proposals}}
    named: dict[str, list[object]] = {path: [] for path in functions}
    for proposal in proposals:
        named[proposal.path] += constants_near_edit(texts[proposal.path], proposal.edits)
    by_function: dict[tuple[str, str], list[str]] = {}
    for call in spectrum.calls:
        if call.function in functions.get(call.path, ()):
            by_function.setdefault((call.path, call.function), []).append(call.arguments)
    calls: list[Call] = []
    for (path, name), given in sorted(by_function.items())[:8]:
        seeds = read_arguments(list(dict.fromkeys(given)))
        calls += [(path, name, repr(one)) for one in generate_inputs(seeds, named[path], draw)]
    return calls


def generate_inputs(seeds: Sequence[Arguments], named: Sequence[object], draw: random.Random) -> list[Arguments]:
    """Arguments to tell repairs apart by: near the tests', and such as what was changed asks for.

    Args:
        seeds: The tests' arguments of one function.
        named: What the changed code names.
        draw: The source of chance.
    """
    return [*inputs_near(seeds, INPUTS, draw), *inputs_with(seeds, named, AT_BOUNDS)]


def _at_top(text: str) -> frozenset[str]:
    """Names of a file's functions that are in no class and no other function."""
    tree = parsed(text)
    return frozenset(n.name for n in (tree.body if tree else ()) if isinstance(n, FUNCTIONS))


def find_doctest_calls(texts: Mapping[str, str]) -> list[tuple[Call, str]]:
    """Examples of docstrings that are one call with plain arguments, and what they want.

    Left out are those that no answer's `repr` is: an exception, a part of an output, several lines of it. One
    of them would be broken by every repair, and the others would tell nothing.

    Args:
        texts: Path -> text.
    """
    found: list[tuple[Call, str]] = []
    for path, text in texts.items():
        tree = parsed(text)
        for node in ast.walk(tree) if tree is not None else ():
            if is_docstring(node) and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                found += _examples_in(str(node.value.value), path)
    return found


def _examples_in(text: str, path: str) -> list[tuple[Call, str]]:
    found: list[tuple[Call, str]] = []
    try:
        examples = doctest.DocTestParser().get_examples(text)
    except ValueError:
        return found
    for example in examples:
        tree = parsed(example.source)
        node = tree.body[0] if tree is not None and tree.body else None
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            call = node.value
            if isinstance(call.func, ast.Name) and not call.keywords:
                given = f"({''.join(f'{ast.unparse(argument)}, ' for argument in call.args)})"
                want = example.want.strip() or "None"  # which an interpreter does not print
                if not (example.exc_msg or example.options or "..." in want or "\n" in want):
                    found.append(((path, call.func.id, given), want))
    return found


def count_broken_examples(behaviour: Sequence[str], examples: Sequence[tuple[Call, str]], first: int) -> int:
    """Examples that a repair does not answer as they say.

    Args:
        behaviour: Its answers.
        examples: They.
        first: Where their answers begin.
    """
    wrong = 0
    for answer, (_, want) in zip(behaviour[first:], examples, strict=False):
        wrong += not answer.removeprefix(NOTHING_SEEN).startswith((f"({want},", f"(({want}),"))
    return wrong
