"""Fault localisation, the order in which changes are tried, and generated inputs."""

from __future__ import annotations

import asyncio
import itertools
import math
import random
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest

from suture.judge.differential.input_generation import mutate_inputs, read_arguments
from suture.judge.trials.trial_records import FailurePoint, Proposal, Spectrum, TestLines, TestRun, Trial
from suture.mutation import Edit, apply_edits, generate_mutants
from suture.mutation.edits import trim_edit
from suture.search.languages.tree_adapter import get_adapter
from suture.search.localisation.fault_ranking import dstar, find_clues, ochiai, rank_suspects, score_lines
from suture.search.ordering.candidate_order import order_single_changes
from suture.search.ordering.compound_changes import (
    CompoundMutations,
    CompoundQueue,
    StartExtender,
    has_progressed,
    remaining_spectrum,
)
from suture.search.tuning import CHEAP_PER_EXPENSIVE, EXPENSIVE_COLLECT_CPU_S, SETTLING_TRIALS

PYTHON = get_adapter("python")
order_python_changes = partial(order_single_changes, generate=PYTHON.generate_mutants)
SOURCE = "def f(n):\n    if n > 2:\n        return n - 1\n    return n\n"


def make_run(name: str, outcome: str, lines: set[int]) -> TestRun:
    return TestRun(id=name, outcome=outcome, seconds=0.01, lines={"m.py": frozenset(lines)})  # type: ignore[arg-type]


SPECTRUM = Spectrum(
    tests=(
        make_run("a", "failed", {1, 2, 3}),
        make_run("b", "passed", {1, 2, 4}),
        make_run("c", "passed", {1, 2, 4}),
    ),
    collected=("a", "b", "c"),
)


def test_ochiai_and_dstar_match_the_published_formulas() -> None:
    assert ochiai(2, 1, 4) == pytest.approx(2 / math.sqrt(4 * 3))
    assert ochiai(0, 5, 1) == 0
    assert dstar(3, 1, 4) == pytest.approx(9 / 2)
    assert dstar(2, 0, 2) == math.inf
    assert dstar(0, 0, 2) == 0


def test_a_line_that_only_failing_tests_run_comes_first() -> None:
    faults = rank_suspects(SPECTRUM, {"m.py": SOURCE})
    assert (faults[0].line, faults[0].function) == (3, "f")
    assert all(0 <= fault.score <= 1 for fault in faults)
    assert 4 not in {fault.line for fault in faults}


def test_a_line_of_a_traceback_is_suspected_first() -> None:
    plain = make_run("a", "failed", {2, 3})
    framed = TestRun(id="a", outcome="failed", seconds=0, lines=plain.lines, frames=(("m.py", 2),))
    assert rank_suspects(Spectrum(tests=(framed,)), {"m.py": SOURCE})[0].line == 2


def test_a_test_that_fails_only_in_isolation_is_no_target() -> None:
    tests = (make_run("a", "failed", {3}), make_run("b", "failed", {4}))
    assert [t.id for t in Spectrum(tests=tests, failing_in_suite=frozenset({"b"})).failing] == ["b"]
    assert len(Spectrum(tests=tests, failing_in_suite=frozenset({"elsewhere::b"})).failing) == 2


async def test_the_order_of_changes_depends_only_on_the_seed() -> None:
    texts = {"m.py": SOURCE}
    scores = score_lines(rank_suspects(SPECTRUM, texts), SPECTRUM, texts)
    singles = await order_python_changes(scores, texts, {}, seed=3)
    assert singles == await order_python_changes(scores, texts, {}, seed=3)
    assert singles != await order_python_changes(scores, texts, {}, seed=4)
    assert sorted((s.score for s in singles), reverse=True) == [s.score for s in singles]


async def test_code_that_runs_on_import_is_imported_again() -> None:
    texts = {"m.py": SOURCE}
    scores = {"m.py": {2: 1.0, 4: 1.0}}

    placed = {
        s.label: s.is_swappable for s in await order_python_changes(scores, texts, {"m.py": frozenset({2})})
    }

    assert not any(swap for label, swap in placed.items() if label.startswith("line 2"))
    assert all(swap for label, swap in placed.items() if label.startswith("line 4:"))


async def test_a_very_long_function_is_searched_in_time_without_blocking(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps = "".join(f"    a{n + 1} = a{n} + {n % 7}\n" for n in range(150))
    text = f"def f(x):\n    a0 = x\n{steps}    return a150\n"
    clock, turns = itertools.count(), itertools.count()  # the clock advances whenever it is read
    monkeypatch.setattr(
        "suture.search.ordering.candidate_order.time", SimpleNamespace(monotonic=lambda: next(clock))
    )

    async def count_turns() -> None:
        while True:
            next(turns)
            await asyncio.sleep(0)

    counting = asyncio.create_task(count_turns())
    scores = {"m.py": dict.fromkeys(range(1, 153), 1.0)}

    proposals = await order_python_changes(scores, {"m.py": text}, {}, seconds=10)
    counting.cancel()

    assert 0 < len(proposals) < 4000
    assert next(clock) == 12  # generation stopped at the first reading after 10
    assert next(turns) > 10
    assert sum(1 for _ in generate_mutants(text)) < 100_000


TEXT = """\
def f(n):
    if n < 0:
        raise ValueError(n)
    low = n + 1
    high = n - 2
    return low, high
"""


def make_failed_run(
    name: str, reached: tuple[tuple[str, int], ...], error: str = "", lines: tuple[int, ...] = ()
) -> TestRun:
    return TestRun(
        id=name,
        outcome="failed",
        seconds=0.0,
        lines={"m.py": frozenset(lines)},
        error=error,
        traceback=reached,
        frames=tuple(place for place in reached if place[0] == "m.py"),
    )


def failure_point(test: str, error: str, *reached: tuple[str, int]) -> FailurePoint:
    return FailurePoint(test=test, error=error, traceback=reached)


def make_trial(*failures: FailurePoint, **fields: object) -> Trial:
    fields = {"passing": 0, "failing": 1, "broken": 0, **fields}
    return Trial(is_plausible=False, timed_out=False, failures=failures, **fields)  # type: ignore[arg-type]


async def test_pairs_of_changes_stay_in_one_file_and_do_not_overlap() -> None:
    spectrum = Spectrum(
        tests=(make_failed_run("a", (), lines=(2, 4, 5, 6)), make_failed_run("b", (), lines=(2, 4, 6)))
    )
    texts = {"m.py": TEXT, "n.py": TEXT}
    at = TEXT.index("+")
    start = Proposal(
        path="m.py",
        edits=(Edit(start=at, end=at + 1, text="-"),),
        label="first",
        score=0.1,
        operators=("arithmetic_operator",),
    )
    queue = CompoundQueue()
    assert queue.record(start, make_trial(passing=1), {}, 1)

    await queue.extend(spectrum, texts, trace_no_lines, make_extender(texts), limit=50)
    pairs = [*iter(queue.pop, None)]
    assert 10 < len(pairs) <= 50
    assert {pair.path for pair in pairs} == {"m.py"}
    assert start.edits not in [pair.edits for pair in pairs]
    assert sum(len(pair.edits) > 1 for pair in pairs) > len(pairs) / 2
    assert all(a.end <= b.start for pair in pairs for a, b in itertools.pairwise(pair.edits))


def make_extender(texts: Mapping[str, str]) -> StartExtender:
    mutations = CompoundMutations(texts, {}, PYTHON.generate_mutants, 0, lambda: math.inf)
    return mutations.extend_start


async def trace_no_lines(proposal: Proposal) -> TestLines:
    return {}


async def test_the_second_change_is_sought_where_tests_still_fail() -> None:
    spectrum = Spectrum(
        tests=(make_failed_run("a", (), lines=(2, 4)), make_failed_run("b", (), lines=(2, 5))),
        failing_in_suite=frozenset({"a", "b"}),
    )
    remaining = remaining_spectrum(
        spectrum, make_trial(passing=1, now_passing=frozenset({"a"})), {"m.py": TEXT}
    )
    assert [test.id for test in remaining.failing] == ["b"]

    scores = score_lines(rank_suspects(remaining, {"m.py": TEXT}), remaining, {"m.py": TEXT})
    assert 4 not in scores["m.py"]
    assert scores["m.py"][5] > 0


def proposal_at(at: int, label: str, score: float = 0.5) -> Proposal:
    edit = Edit(start=at, end=at + 1, text="-")
    return Proposal(path="m.py", edits=(edit,), label=label, score=score, operators=("arithmetic_operator",))


async def test_a_chain_grows_only_by_progress_and_twice_per_kind_of_start() -> None:
    names = ("a", "b", "c")
    spectrum = Spectrum(
        tests=tuple(make_failed_run(name, (("t.py", 3), ("m.py", 2)), "E: ", (2, 4, 5)) for name in names)
    )
    before = {test.id: test for test in spectrum.tests}
    texts, plus = {"m.py": TEXT}, TEXT.index("+")
    queue = CompoundQueue()
    assert not queue.record(
        proposal_at(1, "nothing"), make_trial(failure_point("a", ""), failing=3), before, 1
    )
    assert not queue.is_due(1)

    fixed = make_trial(failure_point("b", "E: b"), passing=1, failing=2, now_passing=frozenset({"a"}))
    assert queue.record(proposal_at(plus, "first"), fixed, before, 2)
    assert queue.is_due(2)

    await queue.extend(spectrum, texts, trace_no_lines, make_extender(texts), limit=100)
    longer = queue.pop()
    assert longer is not None
    assert len(longer.edits) == 2
    assert not queue.record(longer, fixed, before, 3)  # the second change did nothing

    further = make_trial(failure_point("c", "E: c"), passing=2, failing=1, now_passing=frozenset({"a", "b"}))
    assert queue.record(longer, further, before, 4)
    assert not queue.is_due(5)
    assert queue.is_due(5 + SETTLING_TRIALS)  # a likelier one may be among those waiting

    await queue.extend(spectrum, texts, trace_no_lines, make_extender(texts), limit=100)
    third = queue.pop()
    while third is not None and len(third.edits) < 3:
        third = queue.pop()
    assert third is not None
    for number in range(5):
        queue.record(proposal_at(plus, f"alike {number}", 0.1), fixed, before, 200)
    await queue.extend(spectrum, texts, trace_no_lines, make_extender(texts), limit=100)
    assert not queue.is_due(1000) or queue.pop() is None  # equal failures are not extended for ever


def test_lines_traced_with_the_first_change_replace_those_without_it() -> None:
    before = make_failed_run("t.py::a", (("t.py", 3), ("m.py", 2)), "TypeError: x", (1, 2))
    later = make_trial(failure_point("t.py::a", "NameError: y", ("t.py", 3), ("m.py", 4)))
    traced = replace(later, lines={"t.py::a": {"m.py": frozenset({1, 4, 5})}})

    lines = [
        remaining_spectrum(Spectrum(tests=(before,)), t, {"m.py": TEXT}).tests[0].lines["m.py"]
        for t in (later, traced)
    ]

    assert lines == [frozenset({1, 2, 3, 4, 5, 6, 7}) & lines[0], frozenset({1, 4, 5})]
    assert len(lines[0]) > len(lines[1])


async def test_values_set_on_import_are_suspected_with_their_readers() -> None:
    text = (
        "SIZES = {\n    'a': 1000,\n    'b': 1001,\n    'c': 1000,\n}\nOTHER = {\n    'a': 7,\n}\n\n\n"
        "def f(name):\n    return SIZES[name]\n"
    )
    imported = {"m.py": frozenset({1, 2, 3, 4, 6, 7, 11})}
    spectrum = Spectrum(tests=(make_failed_run("a", (), lines=(12,)),), import_lines=imported)
    texts = {"m.py": text}
    scores = score_lines(rank_suspects(spectrum, texts), spectrum, texts)["m.py"]
    assert scores[12] > scores[3] > scores[7]

    proposals = await order_python_changes({"m.py": scores}, texts, imported)
    constants = [p.label for p in proposals if p.operators == ("constant",)]
    assert constants[0] == "line 3: 1001 becomes 1000"

    many = text.replace("    'b': 1001,\n", "    'b': 1001,\n" * 100)
    lines = {"m.py": frozenset(range(1, 111))}
    spectrum = Spectrum(tests=(make_failed_run("a", (), lines=(111,)),), import_lines=lines)
    scores = score_lines(rank_suspects(spectrum, {"m.py": many}), spectrum, {"m.py": many})["m.py"]
    assert scores[111] > scores[3] == scores[106]  # a test reads only a few lines of a large table


def test_a_later_failure_is_progress_and_reveals_new_lines() -> None:
    before = make_failed_run("t.py::a", (("t.py", 3), ("m.py", 2)), "TypeError: x", (1, 2))
    later = failure_point("t.py::a", "NameError: y", ("t.py", 3), ("m.py", 4))
    returned = failure_point("t.py::a", "AssertionError", ("t.py", 3))
    earlier = failure_point("t.py::a", "TypeError: x", ("t.py", 2), ("m.py", 4))
    same = failure_point("t.py::a", "TypeError: x", ("t.py", 3), ("m.py", 2))
    assert [has_progressed(before.failure_point, now) for now in (later, returned, earlier, same)] == [
        True,
        True,
        False,
        False,
    ]
    assert not has_progressed(before.failure_point, failure_point("t.py::b", "E: ", ("t.py", 9)))

    unknown = make_failed_run("t.py::a", (("t.py", 3), ("m.py", 4)), "NameError: name 'x' is not defined")
    known = failure_point("t.py::a", "IndexError: ", ("t.py", 3), ("m.py", 2))
    worse = failure_point("t.py::a", "TypeError: ", ("t.py", 3), ("m.py", 2))
    assert [has_progressed(unknown.failure_point, now) for now in (known, worse, same)] == [
        True,
        False,
        False,
    ]

    remaining = remaining_spectrum(Spectrum(tests=(before,)), make_trial(later), {"m.py": TEXT})
    assert remaining.tests[0].lines["m.py"] >= {4, 5, 6}
    assert remaining.tests[0].error == "NameError: y"


PLACES = ((0, 4), (1, 5), (0, 2))
"""Number of a test and the line of its failure: the line of before, a later one and an earlier one."""


async def test_few_compound_changes_are_imported_again_if_importing_is_expensive() -> None:
    text = (
        "ONE = [11, 33, 55]\nTWO = [22, 44, 66]\n\n\n"
        "def f(n):\n    a = n + ONE[n]\n    b = a * TWO[a]\n    return b\n"
    )
    imported = {"m.py": frozenset({1, 2, 5})}
    test = make_failed_run("t.py::a", (("m.py", 8),), "AssertionError: x", (6, 7, 8))
    shares = []

    for collect_s in (0.0, EXPENSIVE_COLLECT_CPU_S):
        queue = CompoundQueue()
        spectrum = Spectrum(tests=(test,), import_lines=imported, collect_s=collect_s)
        queue.record(proposal_at(text.index("+ ONE"), "one"), make_trial(passing=1, failing=1), {}, 1)
        await queue.extend(spectrum, {"m.py": text}, trace_no_lines, make_extender({"m.py": text}), limit=100)
        first = [change for _ in range(3 * CHEAP_PER_EXPENSIVE + 3) if (change := queue.pop()) is not None]
        shares.append(sum(not change.is_swappable for change in first))

    assert shares[0] > shares[1]
    assert shares[1] <= 3


def test_progress_of_one_test_counts_unless_another_falls_back() -> None:
    names = ("t.py::a", "t.py::b")
    before = {name: make_failed_run(name, (("t.py", 3), ("m.py", 4)), "TypeError: x") for name in names}
    same, further, fallen_back = (
        failure_point(names[n], "TypeError: x", ("t.py", 3), ("m.py", line)) for n, line in PLACES
    )

    queue = CompoundQueue()

    assert queue.record(proposal_at(1, "one"), make_trial(same, further, failing=2), before, 1)
    assert not queue.record(proposal_at(2, "both"), make_trial(fallen_back, further, failing=2), before, 2)
    assert not queue.record(proposal_at(3, "none"), make_trial(same, failing=1), before, 3)


@pytest.mark.parametrize(
    ("sign", "named", "other"), [("+", "+", "-"), ("**", "** or pow()", "+"), ("**", "**=", "+")]
)
async def test_the_exception_message_favours_its_kind_of_change(sign: str, named: str, other: str) -> None:
    text = f"def f(a, b):\n    c = a <= b\n    d = a {sign} b\n    return c or d\n"
    fault = f"TypeError: unsupported operand type(s) for {named}: 'str' and 'int'"
    spectrum = Spectrum(tests=(make_failed_run("a", (("m.py", 3),), fault, (1, 2, 3)),))
    clues = find_clues(spectrum)
    assert [clue.part for clue in clues] == [sign]

    scores = {"m.py": {2: 1.0, 3: 1.0, 4: 1.0}}
    plain = await order_python_changes(scores, {"m.py": text}, {})
    favoured = await order_python_changes(scores, {"m.py": text}, {}, clues=clues)
    ranks = [
        [p.label for p in some].index(f"line 3: {sign} becomes {other} in a {sign} b")
        for some in (plain, favoured)
    ]
    assert ranks[1] < ranks[0]


async def test_a_method_read_as_a_value_suggests_a_decorator() -> None:
    text = (
        "class A:\n    @property\n    def one(self):\n        return 1\n\n"
        "    def two(self):\n        return 2\n\n"
        "    def three(self):\n        return self.one < self.two\n"
    )
    fault = "TypeError: '<' not supported between instances of 'int' and 'method'"
    spectrum = Spectrum(tests=(make_failed_run("a", (("m.py", 10),), fault, (4, 10)),))
    texts = {"m.py": text}
    scores = score_lines(rank_suspects(spectrum, texts), spectrum, texts)

    proposals = await order_python_changes(scores, texts, {}, clues=find_clues(spectrum))
    expected = text.replace("    def two", "    @property\n    def two")

    assert expected in [apply_edits(text, proposal.edits) for proposal in proposals[:12]]
    assert 6 not in score_lines(rank_suspects(spectrum, texts), Spectrum(), texts)["m.py"]


async def test_an_unusual_operator_is_suspected_before_a_common_one() -> None:
    text = "def f(a, b):\n    if a > None:\n        return b\n    return a == 'x'\n"
    proposals = await order_python_changes({"m.py": {2: 1.0, 4: 1.0}}, {"m.py": text}, {})
    signs = [p.label for p in proposals if p.operators == ("comparison",)]
    assert [sign.startswith("line 2: > becomes is") for sign in signs[:2]] == [True, True]


async def test_a_product_of_literals_is_rarely_changed_to_a_sum() -> None:
    text = "DAY = 24 * 60 * 60\n\n\ndef f(a, b):\n    return a * b\n"
    proposals = await order_python_changes({"m.py": {1: 1.0, 5: 1.0}}, {"m.py": text}, {})
    sums = [p.label for p in proposals if "* becomes +" in p.label]
    assert len(sums) == 3
    assert sums[0].startswith("line 5")


async def test_further_changes_of_a_line_come_after_first_changes_of_others() -> None:
    text = "def f(a):\n    if a:\n        return 2\n    return 4\n"
    proposals = await order_python_changes({"m.py": {2: 1.0, 3: 0.9, 4: 0.9}}, {"m.py": text}, {})
    constants = [p.label for p in proposals if p.operators == ("constant",)]
    assert {label[:6] for label in constants[:2]} == {"line 3", "line 4"}


def test_equal_changes_are_generated_once() -> None:
    raw = "é = a < b".encode()
    full_edit = Edit(start=0, end=len(raw), text="é = a <= b")
    assert trim_edit(full_edit, raw) == Edit(start=raw.index(b"<") + 1, end=raw.index(b"<") + 1, text="=")
    assert trim_edit(Edit(start=0, end=2, text="è"), raw) == Edit(start=0, end=2, text="è")
    texts = [apply_edits(SOURCE, mutant.edits) for mutant in generate_mutants(SOURCE)]
    assert len(texts) == len(set(texts))


def test_the_same_change_is_made_at_all_places_of_a_function() -> None:
    text = "def f(a, b, c):\n    x = a - c\n    return x, b - c\n\ndef g(a, c):\n    return a - c\n"
    expected = text.replace("a - c\n    return x, b - c", "a + c\n    return x, b + c")
    assert expected in {apply_edits(text, mutant.edits) for mutant in generate_mutants(text)}


def test_inputs_keep_what_all_tests_have_in_common() -> None:
    seeds = read_arguments(["([1, 3, 8], 3)", "([2, 5, 9, 11], 5)", "(object(), 1)", "not source"])
    assert len(seeds) == 2

    new = mutate_inputs(seeds, 50, random.Random(1))
    assert len(new) == 50
    assert new == mutate_inputs(seeds, 50, random.Random(1))
    assert all(items == sorted(items) and items for items, _ in new)
    assert not {repr(arguments) for arguments in new} & {repr(seed) for seed in seeds}


def test_items_of_many_kinds_are_mixed() -> None:
    seeds = read_arguments(["([1.5, 'ab', '+', None, (2, 'x'), {'k': [1]}, {3}, True],)", "([],)"])
    assert len(mutate_inputs(seeds, 80, random.Random(2))) == 80


def test_no_inputs_without_seeds() -> None:
    assert mutate_inputs([], 5, random.Random(0)) == []
    assert mutate_inputs([()], 5, random.Random(0)) == []
