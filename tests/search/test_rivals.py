"""Rivals of a repair: found at its location, grouped only if they are known to behave alike, and reported."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from bare_pytest import BARE_PYTEST
from failing_projects import make_python_project, search_python
from prepared_suites import prepare_python_suite
from suture.api import HealOptions, heal
from suture.core.ledger import find_run
from suture.core.settings import CertificationSettings, LoopSettings, PathSettings, Settings
from suture.interfaces.narrative.rival_text import rival_lines
from suture.judge.certificates.certificate import CERTIFICATE_FILE
from suture.judge.trials.trial_records import Proposal
from suture.loop.evaluation.search_setup import editable_texts
from suture.mutation import Edit, apply_edits
from suture.mutation.mutant_generation import generate_mutants
from suture.mutation.python.edit_locations import (
    STOP_STATEMENT,
    UNDEFINED_NAME,
    build_tripwire,
    find_block_stops,
    find_location,
)
from suture.sandbox import BubblewrapSandbox
from suture.search import Repair, SearchLimits, rank_repairs
from suture.search.languages.tree_adapter import get_adapter
from suture.search.ranking.call_outcomes import CallOutcomes, RepairAnswers, crashes_alone
from suture.search.ranking.expression_distance import count_redundant_operations, measure_distance
from suture.search.ranking.repair_scoring import (
    find_difference,
    group_by_behaviour,
    select_compared_calls,
)
from suture.search.ranking.rivals import RivalQueue

PYTHON = get_adapter("python")
SOURCE = """\
def f(a, b):
    if CONDITION:
        return 1
    try:
        return a + b
    except KeyError:
        return 2
"""


def make_replacement(text: str, old: str, new: str) -> tuple[Edit, ...]:
    start = text.index(old)
    return (Edit(start=start, end=start + len(old), text=new),)


def replace_condition(new: str) -> tuple[Edit, ...]:
    return make_replacement(SOURCE, "CONDITION", new)


def make_proposal(edits: tuple[Edit, ...], label: str = "", score: float = 1.0) -> Proposal:
    return Proposal(path="m.py", edits=edits, label=label, score=score, operators=())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a.n - 2 + 1", "a.n - 1"),
        ("a == b", "not a != b"),
        ("not (a or b)", "not a and not b"),
        ("f(a) + (1)", "f(a) + 1"),
        ("len(a) > 0 and len(a) < b", "0 < len(a) < b"),
        ("a == 3 and b == 5 and not (c or d)", "a == 3 and b == 5 and not c and not d"),
        ("a and b and c and d and e and f", "(a and b) and (c and d) and (e and f)"),
        ("1 + len(a[b - 2 + 1 :])", "1 + len(a[b - 1 :])"),
        ("a + sum(f(c - 2 + 1, key=b) for c in b)", "a + sum(f(c - 1, key=b) for c in b)"),
    ],
)
def test_equivalent_expressions_have_no_distance(one: str, other: str) -> None:
    assert measure_distance(SOURCE, replace_condition(one), replace_condition(other)) == 0


HANDLER = "def f(x):\n    try:\n        return int(x)\n    except KeyError:\n        return CHECK\n"


@pytest.mark.parametrize(
    ("old", "one", "other"),
    [
        ("KeyError", "Exception", "(ValueError, Exception)"),
        ("KeyError", "(ValueError, KeyError)", "(KeyError, ValueError, KeyError)"),
        ("KeyError", "OSError", "(IOError, ConnectionError)"),
        ("KeyError", "(Own, Exception)", "(LookupError, Exception, Own)"),
        (" KeyError", "", " (BaseException, KeyError)"),
        ("CHECK", "isinstance(x, int)", "isinstance(x, (int, bool))"),
        ("CHECK", "range(x)", "range(0, x, 1)"),
        ("return CHECK", "return", "return None"),
        ("CHECK", "x.weekday() >= 5", "x.weekday() > 4"),
        ("CHECK", "x and len(x) <= 3", "x and len(x) < 4"),
        ("CHECK", "1 <= len(x)", "0 < len(x)"),
        ("CHECK", "9 >= ord(x)", "10 > ord(x)"),
    ],
)
def test_changes_that_differ_by_redundant_parts_have_no_distance(old: str, one: str, other: str) -> None:
    changes = [make_replacement(HANDLER, old, new) for new in (one, other)]
    assert measure_distance(HANDLER, *changes) == 0


@pytest.mark.parametrize(
    ("old", "one", "other", "beginning"),
    [
        ("KeyError", "Exception", "(BaseException, Exception)", ""),
        ("KeyError", "(KeyError, ValueError)", "(KeyError, IndexError)", ""),
        ("KeyError", "Exception", "(Own, Exception)", ""),
        ("KeyError", "Exception", "(ValueError, Exception)", "from errors import ValueError\n"),
        ("KeyError", "Exception", "(ValueError, Exception)", "from errors import *\n"),
        ("CHECK", "isinstance(x, (int, str))", "isinstance(x, int)", ""),
        ("CHECK", "range(1, x)", "range(x)", ""),
        ("CHECK", "range(0, x)", "range(x)", "def range(*numbers): ...\n"),
        ("CHECK", "len(x) >= 1", "len(x) > 1", ""),
        ("CHECK", "len(x) >= 1.5", "len(x) > 0.5", ""),
        ("CHECK", "x >= 5", "x > 4", ""),
        ("CHECK", "len(x) >= 5", "len(x) > 4", "def len(x): ...\n"),
        ("return CHECK", "return", "pass", ""),
    ],
)
def test_changes_that_some_input_distinguishes_stay_apart(
    old: str, one: str, other: str, beginning: str
) -> None:
    source = beginning + HANDLER
    changes = [make_replacement(source, old, new) for new in (one, other)]
    assert measure_distance(source, *changes) > 0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("not (a or b)", "not a or b"),
        ("a < b", "a <= b"),
        ("a > 10", "a >= 10"),
        ("a is b", "a == b"),
        ("f(a)", "f(b)"),
        ("a * 100 > 60", "a * 60 > 60"),
        ("a - 1000", "a + 1000"),
        ("a.n and a is not None", "a is not None and a.n"),
        ("b[a] == 1 and a < len(b)", "a < len(b) and b[a] == 1"),
        ("a() and b()", "b() and a()"),
        ("next(a) or next(a)", "next(a)"),
        ("a.pop() - a.pop()", "a.pop() * 0"),
        ("a is 'x'", "a == 'x'"),
        ("a < 60", "a <= 59"),
        ("a > 0", "a >= 1"),
        ("a == 71 and b == 72 and c == 73 and d", "a == 71 and b == 72 and c == 73 and not d"),
        ("a == 71 and b == 72 and c == 73 and d", "a == 71 and b == 72 and c == 73"),
        ("a == 'on' and b == 'off' and c == 'red' and d == 'up'", "a == 'on' and b == 'off' and c == 'red'"),
        ("a == b and c == d and e", "a == b and c == d and f"),
        ("a if b == 41 and c == 42 and d == 43 else e", "e"),
        ("1 + f(a - 2)", "1 + f(a - 1)"),
        ("1 + f(a() - 2 + 1)", "1 + f(a() - 1 + a())"),
        ("f(a)(b - 2 + 1)", "f(b)(b - 1)"),
    ],
)
def test_expressions_that_some_value_distinguishes_have_a_distance(one: str, other: str) -> None:
    assert 0 < measure_distance(SOURCE, replace_condition(one), replace_condition(other)) <= 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a ** 2", "a ** 3"),
        ("a << 1", "a << 2"),
        ("'%999999999999d' % a", "'%999999999998d' % a"),
        ("'ab' * 999999999 * a", "'ab' * 999999998 * a"),
        (f"a + 0x{'f' * 6000}", f"a - 0x{'f' * 6000}"),
    ],
)
def test_expressions_that_cannot_be_evaluated_are_distinct(one: str, other: str) -> None:
    """The comparison never builds a value whose size the project names."""
    assert measure_distance(SOURCE, replace_condition(one), replace_condition(other)) == 1


def test_blanks_inside_a_multiline_string_count() -> None:
    source = 'def f():\n    return """a\n    \n  b""" + OTHER\n'
    wide, narrow = (make_replacement(source, "    \n", new) for new in ("      \n", "\n"))
    assert measure_distance(source, wide, narrow) > 0


def test_large_expressions_are_compared_in_time() -> None:
    """A large table counts as one operand, and a very long sum is too deep to evaluate."""
    table = ", ".join(f"{n}: 'v{n}'" for n in range(4000))
    source = SOURCE.replace("CONDITION", f"{{{table}}}[a] == b")
    began_s = time.process_time()
    assert 0 < measure_distance(source, make_replacement(source, "[a] == b", "[a] != b"), ()) <= 1

    long = SOURCE.replace("CONDITION", " + ".join(["a"] * 900))
    assert measure_distance(long, make_replacement(long, "a + a:", "a + b:"), ()) == 1
    assert time.process_time() - began_s < 10


def test_a_change_that_affects_fewer_values_is_nearer() -> None:
    original, near, far = (replace_condition(text) for text in ("a or b", "not a or b", "not (a or b)"))
    assert measure_distance(SOURCE, original, near) < measure_distance(SOURCE, original, far) == 1
    boundary, negated = replace_condition("a <= b"), replace_condition("a > b")
    assert measure_distance(SOURCE, replace_condition("a < b"), boundary) < measure_distance(
        SOURCE, replace_condition("a < b"), negated
    )


@pytest.mark.parametrize(
    ("source", "number"),
    [
        ("sum(prices) + 0", 1),
        ("x * 1 - 0", 2),
        ("a and True", 1),
        ("a or False", 1),
        ("sum(prices) + 1", 0),
        ("a or True", 0),
        ("x / 1", 0),
        ("x + 0.0", 0),
        ("x +", 0),
    ],
)
def test_redundant_operations_are_counted(source: str, number: int) -> None:
    assert count_redundant_operations(source) == number


def test_a_location_is_a_statement_without_its_blocks() -> None:
    head, inner = replace_condition("a"), make_replacement(SOURCE, "return 1", "return 3")
    place = find_location(SOURCE, head)

    assert place is not None
    assert SOURCE[place.start : place.end].strip() == "if CONDITION:"
    assert place.contains(head)
    assert not place.contains(inner)
    assert find_location(SOURCE, (*head, *inner)) != place


def test_a_tripwire_is_at_the_location_of_the_change() -> None:
    assert f"if {UNDEFINED_NAME}:" in apply_edits(SOURCE, build_tripwire(SOURCE, replace_condition("a")))
    added = (Edit(start=SOURCE.index("    try"), end=SOURCE.index("    try"), text="    a = 0\n"),)
    assert build_tripwire(SOURCE, added) == () or STOP_STATEMENT in apply_edits(
        SOURCE, build_tripwire(SOURCE, added)
    )
    assert build_tripwire("LIMIT = 3\n", make_replacement("LIMIT = 3\n", "3", "4")) == ()


def test_each_guarded_block_can_be_stopped() -> None:
    place = find_location(SOURCE, make_replacement(SOURCE, "KeyError", "TypeError"))
    assert place is not None
    assert place.is_handler
    (stop,) = find_block_stops(SOURCE, place.start)
    assert f"except KeyError:\n        {STOP_STATEMENT}\n        return 2\n" in apply_edits(SOURCE, [stop])


def test_changes_at_the_location_of_a_repair_come_next() -> None:
    rivals = RivalQueue(PYTHON.find_location)
    near = make_proposal(replace_condition("not a"))
    far = make_proposal(make_replacement(SOURCE, "return 2", "return 3"))
    rivals.set_changes([far, near])
    assert rivals.pop() is None

    rivals.add_repair(make_proposal(replace_condition("b")), {"m.py": SOURCE})
    assert rivals.pop() is near
    assert rivals.pop() is None


def make_repairs(
    *changes: tuple[str, float], reached: int, answers: tuple[str, ...]
) -> list[tuple[Repair, CallOutcomes]]:
    repairs = []
    for text, score in changes:
        change = make_proposal(replace_condition(text), text, score)
        repair = Repair(proposal=change, text=apply_edits(SOURCE, change.edits), score=score)
        repairs.append((repair, CallOutcomes(answers=answers, reached=reached)))
    return repairs


def test_equal_outcomes_of_calls_that_do_not_reach_the_change_prove_nothing() -> None:
    changes = (("a < b", 1.0), ("a <= b", 0.9))
    unreached = make_repairs(*changes, reached=0, answers=("(1,)", "(2,)"))
    first, second = (repair for repair, _ in group_by_behaviour(unreached, {"m.py": SOURCE}, PYTHON))
    assert (first.equivalents, first.rivals, second.rivals) == ((), ("a <= b",), ("a < b",))

    reached = make_repairs(*changes, reached=2, answers=("(1,)", "(2,)"))
    (only,) = (repair for repair, _ in group_by_behaviour(reached, {"m.py": SOURCE}, PYTHON))
    assert (only.equivalents, only.rivals) == (("a <= b",), ())


def test_of_equivalent_repairs_the_plainest_is_delivered() -> None:
    changes = (("a < b - 2 + 1", 1.0), ("a < b - 1", 0.4))
    ((only, _),) = group_by_behaviour(make_repairs(*changes, reached=0, answers=()), {"m.py": SOURCE}, PYTHON)
    assert (only.proposal.label, only.equivalents, only.score) == ("a < b - 1", ("a < b - 2 + 1",), 1.0)


def test_a_plainer_repair_needs_more_than_equal_outcomes() -> None:
    changes = (("a < b and a", 1.0), ("a", 0.4))
    ((only, _),) = group_by_behaviour(
        make_repairs(*changes, reached=1, answers=("1",)), {"m.py": SOURCE}, PYTHON
    )
    assert only.proposal.label == "a < b and a"


def test_an_unlikely_rival_counts_only_if_it_is_known_to_differ() -> None:
    changes = (("a < b", 1.0), ("a <= b", 0.01))
    first, _ = (
        r
        for r, _ in group_by_behaviour(
            make_repairs(*changes, reached=0, answers=()), {"m.py": SOURCE}, PYTHON
        )
    )
    assert first.rivals == ()

    one, other = make_repairs(*changes, reached=1, answers=("(1,)",))
    differing = [one, (other[0], CallOutcomes(answers=("(2,)",), reached=1))]
    assert group_by_behaviour(differing, {"m.py": SOURCE}, PYTHON)[0][0].rivals == ("a <= b",)


def test_booleans_are_not_shifted_by_one() -> None:
    source = "ON = False\nCOUNT = 1\n\n\ndef f():\n    on = ON\n    count = COUNT\n"
    labels = {mutant.label for mutant in generate_mutants(source, operators=["off_by_one"])}
    assert any("COUNT + 1" in label for label in labels)
    assert not any("ON + 1" in label.replace("COUNT", "") for label in labels)


NUMBERS = """\
def number_of(text, table):
    try:
        return table[text]
    except MissingError:
        pass
    return int(text)
"""
TESTS = """\
import pytest
from numbers_of import number_of


def test_known_number():
    assert number_of("one", {"one": 1}) == 1


def test_unknown_number():
    with pytest.raises((KeyError, ValueError)):
        number_of("two", {"one": 1})
"""


async def test_of_passing_handlers_the_one_that_a_test_reaches_is_preferred(
    tmp_path: Path, sandbox: BubblewrapSandbox
) -> None:
    """`except IndexError` passes as well: the `KeyError` then reaches the test, which accepts both."""
    (tmp_path / "numbers_of.py").write_text(NUMBERS)
    (tmp_path / "test_numbers_of.py").write_text(TESTS)
    suite, command = await prepare_python_suite(tmp_path, sandbox)
    failing = ["test_numbers_of.py::test_unknown_number"]
    result = await search_python(command, editable_texts(suite), failing, SearchLimits(max_seconds=120))
    idle_block_counts = {
        change.label.rpartition(" ")[2]: result.idle_block_counts.get((change.path, change.edits))
        for change in result.plausible
    }
    assert idle_block_counts["IndexError"] == 1
    assert idle_block_counts["KeyError"] == 0

    repairs = (await rank_repairs(result, make_python_project(command, result.texts, tests=[TESTS]))).repairs
    assert "except KeyError:" in repairs[0].text or "except LookupError:" in repairs[0].text
    assert repairs[0].rivals or len(repairs) == 1


MEDIAN = """\
def median(values):
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle] + ordered[middle + 1]) / 2
"""
MEDIAN_TESTS = """\
from median import median


def test_odd():
    assert median([3, 1, 2]) == 2


def test_even():
    assert median([1, 2, 4, 5]) == 3
"""


async def test_a_repair_that_crashes_where_most_others_return_a_value_is_not_the_first(
    tmp_path: Path, sandbox: BubblewrapSandbox
) -> None:
    """`/ 3` makes the tests pass too, but still reads beyond the end of two values."""
    (tmp_path / "median.py").write_text(MEDIAN)
    (tmp_path / "test_median.py").write_text(MEDIAN_TESTS)
    suite, command = await prepare_python_suite(tmp_path, sandbox)
    failing = ["test_median.py::test_even"]
    result = await search_python(command, editable_texts(suite), failing, SearchLimits(max_seconds=120))

    project = make_python_project(command, result.texts, tests=[MEDIAN_TESTS])
    first, *others = (await rank_repairs(result, project)).repairs

    assert "/ 3" not in first.text
    assert any("/ 3" in repair.text for repair in others)


CRASH, REFUSAL = "!IndexError: list index out of range", "!ValueError: no values"


@pytest.mark.parametrize(
    ("answers", "crashes"),
    [
        ((("1", CRASH), ("1", "2"), ("1", "3")), True),
        ((("1", CRASH), ("1", "2"), ("3", CRASH)), False),
        ((("1", CRASH), ("1", "2"), ("3", CRASH), ("3", "4")), True),
        ((("1", CRASH), ("1", "2"), ("1", "3"), ("0", CRASH), ("0", CRASH)), True),
        ((("1", REFUSAL), ("1", "2"), ("1", "3")), False),
        ((("1", CRASH), (), ()), False),
        (((), ("1", "2")), False),
    ],
)
def test_a_crash_counts_where_most_other_behaviours_return_a_value(
    answers: tuple[tuple[str, ...], ...], crashes: bool
) -> None:
    assert crashes_alone(0, answers) is crashes


@pytest.mark.parametrize("abstains", [False, True])
async def test_undistinguished_rivals_are_reported_and_can_be_refused(
    tmp_path: Path, sandbox: BubblewrapSandbox, abstains: bool
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "numbers_of.py").write_text(NUMBERS)
    (project / "test_numbers_of.py").write_text(TESTS)
    settings = Settings.model_validate({"model": {"name": "none"}}).model_copy(
        update={
            "paths": PathSettings(home=tmp_path / "home", cache=tmp_path / "no-weights"),
            "certification": CertificationSettings(seconds=20, mutants=2),
            "loop": LoopSettings(strict=abstains),
        }
    )

    result = await heal(project, HealOptions(test=BARE_PYTEST, settings=settings, sandbox=sandbox))
    folder = find_run(settings.paths.home, result.run_id)

    assert result.rivals
    assert all("line 4" in rival for rival in result.rivals)
    assert result.outcome == ("not_healed" if abstains else "healed")
    assert (folder.path / CERTIFICATE_FILE).exists() is not abstains
    assert any("except" in line for line in rival_lines(result, folder))
    if abstains:
        assert result.reason.code == "undetermined"
    else:
        assert result.rivals[0] in (folder.path / CERTIFICATE_FILE).read_text()


def test_a_distinguishing_call_keeps_the_commas_of_nested_tuples() -> None:
    repair, other = make_repairs(("a < b", 1.0), ("a <= b", 0.9), reached=1, answers=("1",))
    repairs = [repair, (other[0], CallOutcomes(answers=("2",), reached=1))]
    for arguments, call in (("((1,),)", "f((1,))"), ("('(,)',)", "f('(,)')"), ("(1, (2,))", "f(1, (2,))")):
        difference = find_difference(repairs, [("m.py", "f", arguments)], str)
        assert difference is not None
        assert difference.call == call


def test_few_calls_that_distinguish_all_repairs_are_selected() -> None:
    """A repair whose process ended early has fewer answers than the others, and one that was not run has none."""
    names = (("a < b", 1.0), ("a <= b", 0.9), ("a == b", 0.8), ("a > b", 0.7))
    answers = (("1", "1", "5"), ("1", "2", "6"), ("3", "3"), ())
    repairs = [
        (repair, CallOutcomes(answers=texts, reached=1))
        for (repair, _), texts in zip(make_repairs(*names, reached=1, answers=("1",)), answers, strict=True)
    ]
    calls = [("m.py", "f", f"({number},)") for number in range(3)]
    given = RepairAnswers(
        calls=calls, outcomes=[outcomes for _, outcomes in repairs], broken_examples=[0] * 4, unchanged=["0"]
    )

    (compared,) = select_compared_calls(repairs, given, str)

    assert (compared.call, compared.before, compared.answers) == ("f(1)", "", ("1", "2", "3", ""))
