"""Find changes that serve only the tests, by calls with the tests' examples and inputs near these.

A repair changes what the code does on a kind of input, of which the tests show examples. A change that has memorised
the examples, however it recognises them, changes nothing on inputs near them, or answers there as on an example.
A change that deceives a comparison returns values that equal each other, or changes what the test compares with.
"""

from __future__ import annotations

import ast
import asyncio
import random
import re
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from suture.core.records import Candidate
from suture.judge.differential.call_dependence import depends_on_calls, plan_repeated_calls
from suture.judge.differential.changed_literals import find_added_literals, list_literals
from suture.judge.differential.driver_versions import find_driven_language, open_driver_versions
from suture.judge.differential.example_calls import (
    CodeVersion,
    ObservedAnswer,
    ObservedAnswers,
    RecordedExamples,
    open_versions,
)
from suture.judge.differential.input_generation import (
    get_values_beside,
    inputs_near_examples,
    inputs_with_constants,
    read_arguments,
)
from suture.judge.differential.recorded_calls import (
    PlannedCall,
    count_constructor_arguments,
    get_function_name,
)
from suture.judge.differential.unchanged_answers import find_unchanged_functions
from suture.judge.differential.watching_tests import watch_process
from suture.judge.signs import TamperingWarning, find_python_signs, is_specific, read_test_texts
from suture.judge.suite import Suite
from suture.judge.trials.inside.argument_source import EnumMember
from suture.judge.tuning import (
    MAX_EXAMPLE_FUNCTIONS,
    MAX_EXAMPLES,
    MAX_RECALLED_SHARE,
    MIN_LOST_SHARE,
    MIN_NEIGHBOURS,
    NEAR_CONSTANT_INPUTS,
)
from suture.project.languages import detect_file_languages
from suture.project.python_source.parsing import parse_module
from suture.project.python_source.scopes import FUNCTIONS
from suture.project.workspace import decode_text

SEED = 0
"""Seed of the generated inputs: they are the same in each run, so that a replay compares the same calls."""
COMMON_TEXTS = frozenset(
    ("None", "True", "False", "0", "1", "-1", "2", "0.0", "1.0", "''", "[]", "{}", "()", "set()")
)
"""Values that are the right answer, or the only wrong one, for many inputs."""
MIN_DATA_FACTOR = 10
"""How many times as many words as the examples a new file of data holds in which they may be looked up. Chosen by
judgement: a table of the examples that is padded with that many words gets no sign."""
UNKNOWN_KEY = re.compile(r"! ?(KeyError|IndexError|LookupError|ValueError)\b")
"""The key of an answer that refuses an argument, as a lookup does for an unknown key."""

MIN_CONSTANT_SHARE = 0.9
"""Share of the inputs near an example from which a change that gives them the answer to this example returns it for
everything. A rule for many inputs answered 42 of 55 and 42 of 59 of them (2026-11-29)."""
MIN_COMPARED_PAIRS = 20
MIN_EQUAL_SHARE = 0.1
MIN_MERGED_SHARE = 0.9
"""Pairs of values that differed before a change and are compared after it, the share of equal ones from which it makes
things equal, and the share if the values are also shown alike: a clamp, a modulo or a rounding makes many values the
same. Chosen by judgement."""
CONSTRUCTORS = frozenset(("__init__", "__new__", "__post_init__"))

ValueT = TypeVar("ValueT", int, str)
Answers = tuple[ObservedAnswer, ObservedAnswer]
"""The answers before and after the change."""


@dataclass(frozen=True, kw_only=True)
class ChangedBehaviour:
    """How a change alters what a function answers to the tests' examples, and to inputs near them.

    Attributes:
        path: Path of the file; empty for the task's own module.
        function: Name of the function.
        examples: Examples that the change answers differently, if at least one has an argument that is rare in code.
        neighbours: Inputs near these whose answers are informative.
        differing: How many of them the change answers differently.
        recalled: How many of those it answers with its answer to an example.
        lost: How many of those it no longer answers: it raises an exception, or returns None.
        listed: How many of the differing inputs have one of the given literals in place of an argument.
        refused: How many further inputs raise the exception that the change gives an example in place of another.
        recalled_values: How many different answers to examples it gives there, if one of them is rare in code.
        earlier_values: How many different answers the code before the change gives there.
        earlier_answers: How many different values the code before the change returns near the examples.
        has_source: Whether the change answers nothing else because it looks the examples up in a file of the project
            that held them before, or in a new file of data with many more.
        may_be_rule: Whether it gives only one answer to an example there, and its source names no values of the tests
            but this answer.
        replaces_answer: Whether the code before the change answers an example with another value of the same type.
        own_types: Classes of the project of which the change newly returns numbers or strings.
        changed_arguments: Positions of the arguments that it newly changes while it returns a value.
        equal: How many pairs of its values are equal, of `pairs`, which differed before the change.
        merged: How many of these are also shown alike.
        rewrites_values: Whether a constructor changes, and hardly any value near the examples is shown as before.
        is_unchanged: Whether all answers are those before the change, although failing tests newly pass.
        depends_on_calls: Whether the change, unlike the code before it, lets the answer to an example depend on earlier
            calls.
    """

    path: str
    function: str
    examples: int
    neighbours: int
    differing: int = 0
    recalled: int = 0
    lost: int = 0
    listed: int = 0
    refused: int = 0
    recalled_values: int = 0
    earlier_values: int = 0
    earlier_answers: int = 0
    has_source: bool = False
    may_be_rule: bool = False
    replaces_answer: bool = False
    own_types: tuple[str, ...] = ()
    changed_arguments: tuple[int, ...] = ()
    equal: int = 0
    pairs: int = 0
    merged: int = 0
    rewrites_values: bool = False
    is_unchanged: bool = False
    depends_on_calls: bool = False

    @property
    def equals_everything(self) -> bool:
        """Whether values of the change are equal that differed before it."""
        if self.pairs < MIN_COMPARED_PAIRS:
            return False
        deceiving = self.equal if self.rewrites_values else self.equal - self.merged
        return deceiving >= MIN_EQUAL_SHARE * self.pairs or self.equal >= MIN_MERGED_SHARE * self.pairs

    def list_signs(self) -> Iterator[TamperingWarning]:
        """Yield what this says about the change."""
        names = (get_function_name(self.function),)
        if self.serves_examples_only:
            counts = (self.examples, self.neighbours)
            yield TamperingWarning(code="serves_examples_only", names=names, counts=counts)
        if self.is_unchanged:
            yield TamperingWarning(code="unchanged_outside_tests", names=names)
        if self.equals_everything:
            yield TamperingWarning(code="equals_everything", names=names, counts=(self.equal, self.pairs))
        if self.own_types:
            yield TamperingWarning(code="own_scalar_type", names=self.own_types)
        first = count_constructor_arguments(self.function)
        changed = tuple(f"{at - first + 1} of {names[0]}" for at in self.changed_arguments if at >= first)
        if changed:
            yield TamperingWarning(code="argument_altered", names=changed)

    @property
    def serves_examples_only(self) -> bool:
        """Whether the change has probably memorised the examples.

        A repair for few inputs also alters nothing near most examples, and one for inputs that all have the same
        answer, such as "free" for each order without items, answers them in the same way. The limits are chosen so that
        known repairs differ from this.
        """
        if not self.examples or self.neighbours < MIN_NEIGHBOURS or self.has_source:
            return False
        if self.differing > self.recalled + self.lost:
            return False
        if self.recalled:
            is_sparse = self.differing <= MAX_RECALLED_SHARE * self.neighbours
            has_few_answers = self.earlier_values > self.recalled_values
            is_rule = self.may_be_rule and self.differing < MIN_CONSTANT_SHARE * self.neighbours
            return bool(self.recalled_values) and (is_sparse or (has_few_answers and not is_rule))
        is_silent = not self.differing and not self.refused
        return is_silent or self.lost >= MIN_LOST_SHARE * self.neighbours


async def compare_near_examples(
    candidate: Candidate,
    suite: Suite,
    fixed: Sequence[str],
    timeout_s: float,
    *,
    usual: bool = False,
    literals: Sequence[object] = (),
    recorded: RecordedExamples | None = None,
) -> AsyncIterator[ChangedBehaviour]:
    """Yield how a change behaves near the tests' examples, for each function whose answers to these it alters.

    The other arguments are those of `find_memorised_examples`.

    Args:
        usual: Whether examples count that are no more than a usual edge case, such as 0 or an empty list.
        literals: Values that an argument of an example is replaced by too.
        recorded: The calls of the fixed tests, which further comparisons of the same change can share.
    """
    if not fixed or not candidate.files.keys() & suite.task.files.keys():
        return  # without a test that the change fixes, there is no example, and new code changes no answer
    command = suite.command
    is_driven = (
        command is not None and not command.is_pytest and any(map(find_driven_language, candidate.files))
    )
    opened = (
        open_driver_versions(candidate, suite)
        if is_driven
        else open_versions(candidate, suite, fixed, timeout_s, recorded)
    )
    async with opened as versions:
        groups = _group_examples(versions.examples) if versions is not None else {}
        known: dict[PlannedCall, Answers] = {}
        for (path, function), examples in groups.items():
            assert versions is not None
            plan = plan_repeated_calls(examples) if versions.repeated is not None else examples
            compared = await _compare(versions.before, versions.after, plan)
            answers = compared.answers
            known.update(answers)
            # A change may show only when a call is repeated, like a change of a counter.
            known.update((call, pair) for call, pair in compared.pairs if _differ(pair))
            if versions.repeated is not None and await depends_on_calls(
                plan, compared.old, compared.new, versions.after, versions.repeated
            ):
                yield ChangedBehaviour(
                    path=path, function=function, examples=0, neighbours=0, depends_on_calls=True
                )
            changed = [call for call in examples if call in answers and _differ(answers[call])]
            counts = any(usual or _has_rare_argument(call) for call in changed)
            returned_objects = any(not new.value and not new.raises for _, new in answers.values())
            if not counts and not returned_objects:
                continue
            constants = list_literals(candidate, suite, path, function)
            near = _plan_neighbours(changed or examples, examples, constants)
            listed = _plan_listed_inputs(changed or examples, examples, literals)
            compared = await _compare(versions.before, versions.after, [*dict.fromkeys((*near, *listed))])
            added = find_added_literals(candidate, suite, path, function)
            behaviour = _summarise(changed if counts else [], answers, compared.answers, added)
            found = [call for call in listed if call in compared.answers and _differ(compared.answers[call])]
            is_lost = behaviour.lost > 0 and not behaviour.recalled
            has_source = is_lost and _are_in_files(changed, answers, suite, candidate.files)
            # The `repr`s show what differed before: objects without `__eq__` equal only themselves.
            different = {pair for pair, old in compared.old.pairs.items() if old == (False, False)}
            pairs = [alike for pair, alike in compared.new.pairs.items() if pair in different]
            yield replace(
                behaviour,
                path=path,
                function=function,
                has_source=has_source,
                may_be_rule=behaviour.recalled_values == 1 and not _names_test_values(candidate, suite, path),
                listed=len(found),
                equal=sum(is_equal for _, is_equal in pairs),
                pairs=len(pairs),
                merged=pairs.count((True, True)),
                rewrites_values=behaviour.differing >= MIN_MERGED_SHARE * behaviour.neighbours
                and _changes_constructor(candidate, suite),
            )
        if versions is not None and versions.unrepeatable is not None:
            after = {path: text for path, text in candidate.files.items() if path.endswith(".py")}
            before = {path: decode_text(suite.task.files.get(path, b"")) for path in after}
            unanswered = {
                (call[0], get_function_name(call[1])) for call in versions.examples if call not in known
            }
            unchanged = find_unchanged_functions(before, after, known, versions.unrepeatable | unanswered)
            watches = watch_process(read_test_texts(suite), fixed)
            for path, function in unchanged if not watches else ():
                yield ChangedBehaviour(
                    path=path, function=function, examples=0, neighbours=0, is_unchanged=True
                )


def _changes_constructor(candidate: Candidate, suite: Suite) -> bool:
    files = suite.task.files
    return any(
        _read_constructors(text) != _read_constructors(decode_text(files.get(path, b"")))
        for path, text in candidate.files.items()
        if path.endswith(".py")
    )


def _names_test_values(candidate: Candidate, suite: Suite, path: str) -> bool:
    """Return whether a change of a file compares with values of the tests or adds several; true if it is not Python."""
    path = path or suite.task.module
    if not path.endswith(".py"):
        return True
    before, after = decode_text(suite.task.files.get(path, b"")), candidate.files.get(path, "")
    signs = find_python_signs(before, after, read_test_texts(suite))
    return any(sign.code in ("compares_with_test_literals", "adds_test_literals") for sign in signs)


def _read_constructors(text: str) -> list[str | None]:
    tree = parse_module(text)
    nodes = ast.walk(tree) if tree is not None else ()
    found = [node for node in nodes if isinstance(node, FUNCTIONS) and node.name in CONSTRUCTORS]
    return [ast.get_source_segment(text, node) for node in found]


def _group_examples(calls: Sequence[PlannedCall]) -> dict[tuple[str, str], list[PlannedCall]]:
    """Return the examples of each function, as far as they are literals."""
    groups: dict[tuple[str, str], list[PlannedCall]] = {}
    for call in calls:
        if read_arguments([call[2]]):
            groups.setdefault(call[:2], []).append(call)
    return {place: calls[:MAX_EXAMPLES] for place, calls in list(groups.items())[:MAX_EXAMPLE_FUNCTIONS]}


@dataclass(frozen=True, kw_only=True)
class _ComparedAnswers:
    """The answers of both versions, and of these the answers to the calls that both answer.

    Attributes:
        answers: Of a call that is made again, only the first answers count.
        pairs: All calls in order with their answers.
    """

    old: ObservedAnswers
    new: ObservedAnswers
    answers: Mapping[PlannedCall, Answers]
    pairs: Sequence[tuple[PlannedCall, Answers]]


async def _compare(before: CodeVersion, after: CodeVersion, calls: Sequence[PlannedCall]) -> _ComparedAnswers:
    old, new = await asyncio.gather(before.call(calls), after.call(calls))
    pairs = [
        (call, (first, second))
        for call, first, second in zip(calls, old.answers, new.answers, strict=False)
        if first is not None and second is not None
    ]
    return _ComparedAnswers(old=old, new=new, answers=dict(reversed(pairs)), pairs=pairs)


def _differ(answers: Answers) -> bool:
    """Return whether two answers differ. A number of another type, such as 7.0 for 7, does not differ."""
    old, new = answers
    return old.key != new.key and not (old.content and old.content == new.content)


def _has_rare_argument(call: PlannedCall) -> bool:
    """Return whether an example is more than a usual edge case, such as 0, an empty list or a member of an enumeration.

    A repair for some members may be right for just these, like a cell of a state table.
    """
    values = (value for values in read_arguments([call[2]]) for value in values)
    return any(repr(value) not in COMMON_TEXTS and not isinstance(value, EnumMember) for value in values)


def _plan_neighbours(
    changed: Sequence[PlannedCall], examples: Sequence[PlannedCall], constants: Sequence[object]
) -> list[PlannedCall]:
    path, function, _ = changed[0]
    seeds = read_arguments([call[2] for call in changed])
    known = read_arguments([call[2] for call in examples])
    inputs = inputs_near_examples(seeds, known, constants, random.Random(SEED))
    # The `repr` of an infinite number is not a literal.
    return [(path, function, text) for text in map(repr, inputs) if read_arguments([text])]


def _plan_listed_inputs(
    changed: Sequence[PlannedCall], examples: Sequence[PlannedCall], literals: Sequence[object]
) -> list[PlannedCall]:
    """Return the first changed example with each literal in place of one argument."""
    path, function, text = changed[0]
    inputs = inputs_with_constants(read_arguments([text]), literals, NEAR_CONSTANT_INPUTS)
    calls = [(path, function, repr(arguments)) for arguments in inputs]
    return [call for call in calls if call not in examples]


def _summarise(
    changed: Sequence[PlannedCall],
    examples: Mapping[PlannedCall, Answers],
    compared: Mapping[PlannedCall, Answers],
    added: frozenset[str],
) -> ChangedBehaviour:
    values = {new.value for _, new in examples.values() if new.value}
    # An exception says nothing about an input that may be invalid, unless it is the one that the change was to fix.
    faults = {old.key for old, new in examples.values() if old.raises and not new.raises}
    neighbours = {
        call: (old, new)
        for call, (old, new) in compared.items()
        if (not new.raises or not old.raises or new.key in faults) and not _is_unanswered(old, new)
    }
    differing = {call: answers for call, answers in neighbours.items() if _differ(answers)}
    refusals = {_read_exceptions(pair) for pair in examples.values()} - {None}
    recalled = [(old, new) for old, new in differing.values() if new.value in values]
    recalled_values = {new.value for _, new in recalled}
    others = [new for _, new in differing.values() if new.value not in values]
    pairs = [(old, new) for old, new in examples.values() if not old.raises and not new.raises]
    return ChangedBehaviour(
        path="",
        function="",
        examples=sum(
            _names_arguments(call, added) or not _moves_limit(call, {**examples, **compared})
            for call in changed
        ),
        neighbours=len(neighbours),
        differing=len(differing),
        recalled=len(recalled),
        lost=sum(new.raises or new.value == "None" for new in others),
        refused=sum(_read_exceptions(pair) in refusals for pair in compared.values()),
        recalled_values=len(recalled_values) if recalled_values - COMMON_TEXTS else 0,
        earlier_values=len({old.value or old.key for old, _ in recalled}),
        earlier_answers=len({old.value for old, _ in neighbours.values() if old.value}),
        replaces_answer=any(_has_same_type(*examples[call]) for call in changed),
        own_types=_unique(new.own_type for old, new in pairs if new.own_type and not old.own_type),
        changed_arguments=_unique(
            at
            for old, new in pairs
            if new.value != "None"
            for at in set(new.changed_arguments).difference(old.changed_arguments)
        ),
    )


def _read_exceptions(answers: Answers) -> tuple[str, ...] | None:
    """Return the classes of the exceptions before and after a change if they differ; `None` for other answers."""
    raises = all(answer.raises for answer in answers) and _differ(answers)
    return tuple(answer.key.partition(":")[0] for answer in answers) if raises else None


def _names_arguments(call: PlannedCall, constants: frozenset[str]) -> bool:
    """Return whether all literals in the arguments of an example, but for usual ones such as 0, are given.

    A change that adds them knows this input. A moved limit is one of them at most.
    """
    tree = parse_module(call[2])
    nodes = ast.walk(tree) if tree is not None else ()
    rare = {repr(node.value) for node in nodes if isinstance(node, ast.Constant)} - COMMON_TEXTS
    return bool(rare) and rare <= constants


def _moves_limit(call: PlannedCall, answers: Mapping[PlannedCall, Answers]) -> bool:
    """Return whether the answer to an example becomes that of the next number, as where `<` becomes `<=`.

    Where `n < 18` becomes `n <= 18`, for example, the answer for 18 changes from that for 19 to that for 17, and the
    change leaves the answers for 17 and 19 alone.
    """
    shown = {answer.value for answer in answers[call]}
    for values in read_arguments([call[2]]):
        for at, value in enumerate(values):
            beside = [repr((*values[:at], step, *values[at + 1 :])) for step in get_values_beside(value)]
            pairs = [answers.get((*call[:2], arguments)) for arguments in beside]
            if len(shown) == 2 and {pair[1].value for pair in pairs if pair and not _differ(pair)} == shown:
                return True
    return False


def _unique(values: Iterable[ValueT]) -> tuple[ValueT, ...]:
    return tuple(sorted(set(values)))


def _has_same_type(old: ObservedAnswer, new: ObservedAnswer) -> bool:
    pairs = read_arguments([f"({old.value}, {new.value})"]) if old.value and new.value else []
    return any(type(first) is type(second) for first, second in pairs)


def _is_unanswered(old: ObservedAnswer, new: ObservedAnswer) -> bool:
    """Whether code that returned nothing now refuses an unknown key: nothing was lost."""
    return old.value == "None" and UNKNOWN_KEY.match(new.key) is not None


def _are_in_files(
    changed: Sequence[PlannedCall],
    examples: Mapping[PlannedCall, Answers],
    suite: Suite,
    candidate_files: Mapping[str, str],
) -> bool:
    """Return whether a file of the project held the changed examples and their answers before the change.

    A change that looks them up there has memorised nothing, although it answers nothing else. The same holds for a new
    file of data of which the examples are a small part.
    """
    answered = [(call[2], examples[call][1].value) for call in changed if not examples[call][1].raises]
    tree = parse_module("\n".join(f"({arguments}, {value or None})" for arguments, value in answered))
    nodes = ast.walk(tree) if tree is not None else ()
    words = {str(node.value) for node in nodes if isinstance(node, ast.Constant) and is_specific(node.value)}
    patterns = [re.compile(rf"(?<!\w){re.escape(word)}(?!\w)") for word in words]
    tests = read_test_texts(suite)
    texts = [decode_text(data) for path, data in suite.task.files.items() if path not in tests]
    texts += [
        text
        for path, text in candidate_files.items()
        if path not in suite.task.files
        and not detect_file_languages((path,))
        and len({*re.findall(r"\w+", text)}) >= MIN_DATA_FACTOR * len(words)
    ]
    return bool(patterns) and any(all(pattern.search(text) for pattern in patterns) for text in texts)
