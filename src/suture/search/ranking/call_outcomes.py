"""Runs the same calls on plausible repairs, and finds out which calls reach the changed code.

An *answer* is what a call returns or raises, as a string. Equal answers say something only about calls that reach the
change: on all other calls, all repairs behave alike. Calls are found to reach a change by a *tripwire*: a variant of
the code that raises an exception at the place of the change, and so answers them differently.
"""

from __future__ import annotations

import ast
import doctest
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from suture.judge.differential.input_generation import (
    Arguments,
    inputs_with_constants,
    mutate_inputs,
    read_arguments,
)
from suture.judge.differential.recorded_calls import get_function_name
from suture.judge.runners.test_command import TestCommand
from suture.judge.trials.command_trials import compare_calls
from suture.judge.trials.trial_records import Proposal, Spectrum
from suture.mutation.edits import EditLocation
from suture.mutation.python.edit_locations import build_tripwire, constants_near_edit, find_location
from suture.project.python_source.parsing import parse_module
from suture.project.python_source.scopes import FUNCTIONS
from suture.project.python_source.statement_edits import is_docstring
from suture.search.tuning import MAX_BOUNDARY_INPUTS, MAX_CALLED_FUNCTIONS, MAX_NEAR_INPUTS, MAX_TRIPWIRES

Call = tuple[str, str, str]
"""`(path, function, arguments)`; the arguments are the source of a tuple."""
EXCEPTION = "!"
"""Beginning of the answer of a call that raised an exception."""
TIMED_OUT = "!timeout"
"""The answer of a call that timed out."""
NO_VISIBLE_EFFECT = "?"
"""Beginning of the answer of a call that returned nothing and changed no argument."""
MISTAKES = frozenset(
    (
        "IndexError",
        "TypeError",
        "AttributeError",
        "NameError",
        "UnboundLocalError",
        "ZeroDivisionError",
        "RecursionError",
    )
)
"""Exceptions that code seldom raises on purpose, unlike `ValueError` and `KeyError`."""
OPAQUE = " at ?"
"""Part of an answer with an object whose content is not visible."""


@dataclass(frozen=True, kw_only=True)
class CallOutcomes:
    """What one repair returns for the calls.

    Attributes:
        answers: The answer to each call; empty if the repair was not run.
        reached: Number of calls that are known to reach what the repair changes, with a conclusive answer.
    """

    answers: tuple[str, ...] = ()
    reached: int = 0

    def differs_from(self, other: CallOutcomes) -> bool:
        """Return whether both are known and differ."""
        return bool(self.answers and other.answers and self.answers != other.answers)


@dataclass(frozen=True, kw_only=True)
class RepairAnswers:
    """The answers of plausible repairs to the same calls.

    Attributes:
        calls: The calls, with their arguments as people read them.
        broken_examples: For each repair, the examples in docstrings or comments that it does not fulfil.
        unchanged: The answers of the unchanged code; empty if it did not answer in time.
    """

    calls: Sequence[Call]
    outcomes: Sequence[CallOutcomes]
    broken_examples: Sequence[int]
    unchanged: Sequence[str] = ()


@dataclass(frozen=True)
class _ChangeSite:
    """The location of a repair in a file; `location` is `None` if the repair spans several."""

    path: str
    location: EditLocation | None

    @property
    def is_informative(self) -> bool:
        """Whether equal answers of calls that reach it say something.

        An exception that does not occur proves nothing about the handlers of others.
        """
        return self.location is not None and not self.location.is_handler


async def collect_outcomes(
    proposals: Sequence[Proposal],
    calls: Sequence[Call],
    texts: Mapping[str, str],
    command: TestCommand,
    seconds: float,
) -> tuple[list[CallOutcomes], list[str]]:
    """Run the same calls on several repairs and on the unchanged code.

    Args:
        seconds: Wall-clock seconds for all of them.

    Returns:
        The outcomes of each repair, and the answers of the unchanged code, which are empty if it was not run.

    Raises:
        SandboxError: The sandbox failed.
    """
    sites = [_ChangeSite(p.path, find_location(texts[p.path], p.edits)) for p in proposals]
    proposals_by_site: dict[_ChangeSite, list[Proposal]] = {}
    for site, proposal in zip(sites, proposals, strict=True):
        proposals_by_site.setdefault(site, []).append(proposal)
    tripwires: dict[_ChangeSite, Proposal] = {}
    for site, proposals_at_site in proposals_by_site.items():
        if len(tripwires) >= MAX_TRIPWIRES:
            break
        edits_at_site = [edit for proposal in proposals_at_site for edit in proposal.edits]
        edits = build_tripwire(texts[site.path], edits_at_site)
        if edits:
            tripwires[site] = replace(proposals_at_site[0], edits=edits)
    # The unchanged code comes last, because it may be what never ends.
    programs = [*tripwires.values(), *proposals, replace(proposals[0], edits=())]
    first_repair = len(tripwires)

    def reaches_nothing(answered: Mapping[int, list[str]]) -> bool:
        """Return whether no call reaches any of the changes, so that all repairs answer in the same way."""
        is_known = first_repair in answered and tripwires.keys() == set(sites)
        return is_known and all(
            answered.get(number) == answered[first_repair] for number in range(first_repair)
        )

    answers = await compare_calls(command, programs, calls, texts, seconds, is_enough=reaches_nothing)
    tripwire_answers = {site: answers.get(number, []) for number, site in enumerate(tripwires)}
    unchanged_answers = answers.get(len(programs) - 1, [])
    outcomes = []
    for number, site in enumerate(sites):
        repair_answers = answers.get(first_repair + number, [])
        # Without a tripwire, a call reaches the change if the repair changes its answer.
        reference = tripwire_answers.get(site, unchanged_answers)
        reached = count_reaching(repair_answers, reference) if site.is_informative else 0
        outcomes.append(CallOutcomes(answers=tuple(repair_answers), reached=reached))
    return outcomes, unchanged_answers


def count_reaching(answers: Sequence[str], reference: Sequence[str]) -> int:
    """Return how many calls reach a change: those with a conclusive answer that differs from the reference.

    A list of answers is empty if its code was not run in time.
    """
    pairs = zip(answers, reference, strict=False)
    return sum(answer != other and is_conclusive(answer) for answer, other in pairs)


def crashes_alone(number: int, answer_lists: Sequence[Sequence[str]]) -> bool:
    """Return whether a repair ends a call with an error where most of the other behaviours return a value.

    Repairs with the same answers are one behaviour: there may be many wordings of one wrong repair.

    Args:
        number: Index of the repair.
        answer_lists: The answers of all repairs; empty for one that was not run.
    """
    own = answer_lists[number]
    others = {tuple(answers) for answers in answer_lists if answers and answers != own}
    for index, answer in enumerate(own):
        if answer.startswith(EXCEPTION) and answer[1:].partition(":")[0] in MISTAKES:
            given = [answers[index] for answers in others if index < len(answers)]
            if sum(not text.startswith(EXCEPTION) for text in given) > len(given) / 2:
                return True
    return False


def is_conclusive(answer: str) -> bool:
    """Return whether two repairs with this same answer behave alike on the call.

    A call that does not end, or that returns nothing visible, does so whatever it would have reached.
    """
    return answer != TIMED_OUT and not answer.startswith(NO_VISIBLE_EFFECT) and OPAQUE not in answer


def generate_calls(
    spectrum: Spectrum, proposals: Sequence[Proposal], texts: Mapping[str, str], random_source: random.Random
) -> list[Call]:
    """Return calls of the functions of the changed files that the tests call.

    Their arguments are near those of the tests, or values that the changed code mentions.
    """
    paths = {proposal.path for proposal in proposals}
    functions = {path: _top_level_functions(texts[path]) for path in paths}
    mentioned: dict[str, list[object]] = {path: [] for path in functions}
    for proposal in proposals:
        mentioned[proposal.path] += constants_near_edit(texts[proposal.path], proposal.edits)
    arguments_by_function: dict[tuple[str, str], list[str]] = {}
    for call in spectrum.calls:
        if get_function_name(call.function) in functions.get(call.path, ()):
            arguments_by_function.setdefault((call.path, call.function), []).append(call.arguments)
    calls: list[Call] = []
    for (path, name), texts_of_calls in sorted(arguments_by_function.items())[:MAX_CALLED_FUNCTIONS]:
        seeds = read_arguments(list(dict.fromkeys(texts_of_calls)))
        inputs = generate_inputs(seeds, mentioned[path], random_source)
        calls += [(path, name, repr(arguments)) for arguments in inputs]
    return calls


def generate_inputs(
    seeds: Sequence[Arguments], mentioned: Sequence[object], random_source: random.Random
) -> list[Arguments]:
    """Return arguments that may distinguish repairs.

    Args:
        seeds: The arguments with which the tests call one function.
        mentioned: Values that the changed code mentions.
    """
    variations = mutate_inputs(seeds, MAX_NEAR_INPUTS, random_source)
    return [*variations, *inputs_with_constants(seeds, mentioned, MAX_BOUNDARY_INPUTS)]


def _top_level_functions(text: str) -> frozenset[str]:
    tree = parse_module(text)
    return frozenset(node.name for node in (tree.body if tree else ()) if isinstance(node, FUNCTIONS))


def find_doctest_calls(texts: Mapping[str, str]) -> list[tuple[Call, str]]:
    """Return `(call, expected result)` for each doctest example that is one call with positional arguments.

    Examples are left out if their expectation cannot be the `repr` of a result: exceptions, abbreviated output,
    and output of several lines. All repairs would break them, so these would not distinguish repairs.
    """
    calls: list[tuple[Call, str]] = []
    for path, text in texts.items():
        tree = parse_module(text)
        for node in ast.walk(tree) if tree is not None else ():
            if is_docstring(node) and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                calls += _calls_in_docstring(str(node.value.value), path)
    return calls


def _calls_in_docstring(text: str, path: str) -> list[tuple[Call, str]]:
    calls: list[tuple[Call, str]] = []
    try:
        examples = doctest.DocTestParser().get_examples(text)
    except ValueError:
        return calls
    for example in examples:
        tree = parse_module(example.source)
        node = tree.body[0] if tree is not None and tree.body else None
        call = node.value if isinstance(node, ast.Expr) else None
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and not call.keywords:
            arguments = f"({''.join(f'{ast.unparse(argument)}, ' for argument in call.args)})"
            expected = example.want.strip() or "None"  # the interpreter does not print None
            if not (example.exc_msg or example.options or "..." in expected or "\n" in expected):
                calls.append(((path, call.func.id, arguments), expected))
    return calls


def count_broken_examples(
    answers: Sequence[str], examples: Sequence[tuple[Call, str]], first_index: int
) -> int:
    """Return how many examples a repair does not answer as expected.

    Args:
        answers: All answers of the repair; empty if it was not run.
        first_index: Index of the answer to the first example.
    """
    broken_count = 0
    for answer, (_, expected) in zip(answers[first_index:], examples, strict=False):
        text = answer.removeprefix(NO_VISIBLE_EFFECT)
        # An answer is the `repr` of a tuple whose first item is the result.
        broken_count += not text.startswith((f"({expected},", f"(({expected}),"))
    return broken_count
