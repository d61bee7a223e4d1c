"""Outcomes of calls: equal values have equal text, and a seed gives the same inputs in every process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from failing_projects import make_python_project
from prepared_suites import prepare_python_suite
from suture.judge.runners.test_command import TestCommand
from suture.judge.trials.command_trials import compare_calls
from suture.judge.trials.inside.function_calls import canonical_repr
from suture.judge.trials.trial_records import ObservedCall, Proposal, Spectrum
from suture.mutation import Edit
from suture.mutation.python.edit_locations import constants_near_edit
from suture.sandbox import BubblewrapSandbox
from suture.search import SearchResult, rank_repairs
from suture.search.languages.tree_adapter import get_adapter
from suture.search.ranking.call_outcomes import (
    OPAQUE,
    collect_outcomes,
    count_broken_examples,
    find_doctest_calls,
)

SMALL_FIRST, LARGE_FIRST = {0, 8}, {8, 0}
CODE = """\
class Box:
    pass


def both(n):
    return {n, 8}


def box(n):
    return [Box() for _ in range(n)]
"""


def test_equal_sets_have_one_text() -> None:
    assert repr(SMALL_FIRST) != repr(LARGE_FIRST)  # the reason for canonical_repr
    assert canonical_repr(SMALL_FIRST) == canonical_repr(LARGE_FIRST) == "{0, 8}"
    assert canonical_repr(({"k": [LARGE_FIRST]}, (1,))) == "({'k': [{0, 8}]}, (1,))"
    assert canonical_repr([frozenset({10, 9}), set(), {}]) == "[frozenset({9, 10}), set(), {}]"
    assert canonical_repr("{") == repr("{")
    # The order in which a mapping was filled may matter.
    assert canonical_repr({1: 2, 0: 3}) == "{1: 2, 0: 3}"
    assert canonical_repr(object()) == canonical_repr(object())
    assert len(canonical_repr("x" * 9000)) == 4000


def test_a_cyclic_value_has_a_text() -> None:
    value: list[object] = [{1}]
    value.append(value)
    assert canonical_repr(value).startswith("[{1}, [{1}, ")


def make_proposal(old: str, new: str) -> Proposal:
    start = CODE.index(old)
    edit = Edit(start=start, end=start + len(old), text=new)
    return Proposal(path="box.py", edits=(edit,), label=new, score=1.0, operators=())


async def prepare_box(folder: Path, sandbox: BubblewrapSandbox) -> TestCommand:
    """Return the test command of `CODE`."""
    (folder / "box.py").write_text(CODE)
    (folder / "test_box.py").write_text("from box import both\n\n\ndef test_both():\n    assert both(1)\n")
    _, command = await prepare_python_suite(folder, sandbox)
    return command


async def test_repairs_that_fill_a_set_in_another_order_are_equal(
    tmp_path: Path, sandbox: BubblewrapSandbox
) -> None:
    command = await prepare_box(tmp_path, sandbox)
    proposals = [
        make_proposal("{n, 8}", "{8, n}"),
        make_proposal("range(n)", "range(n + 0)"),
        make_proposal("8", "9"),
    ]
    calls = [("box.py", "both", "(0,)"), ("box.py", "box", "(2,)")]

    answers = await compare_calls(command, proposals, calls, {"box.py": CODE}, 100)

    assert answers[0] == answers[1] == ["({0, 8}, (0,))", "([<box.Box object>, <box.Box object>], (2,))"]
    assert answers[2][0] == "({0, 9}, (0,))"


async def test_a_repair_that_ends_the_process_in_a_call_has_no_answers(
    tmp_path: Path, sandbox: BubblewrapSandbox
) -> None:
    command = await prepare_box(tmp_path, sandbox)
    proposals = [
        make_proposal("Box() for _ in range(n)", "__import__('os')._exit(0)"),
        make_proposal("8", "9"),
    ]
    calls = [("box.py", "both", "(0,)"), ("box.py", "box", "(2,)")]

    answers = await compare_calls(command, proposals, calls, {"box.py": CODE}, 100)

    assert {number: len(given) for number, given in answers.items()} == {1: 2}


class Holder:
    def __init__(self, value: object) -> None:
        self.value = value


class Slotted:
    __slots__ = ("value",)


def test_an_object_without_a_repr_is_shown_by_its_attributes() -> None:
    kind = f"{Holder.__module__}.Holder object"
    assert canonical_repr(Holder({8, 0})) == f"<{kind} {{'value': {{0, 8}}}}>"
    assert canonical_repr(Holder(3)) != canonical_repr(Holder(4))

    ring = Holder(None)
    ring.value = [ring, ring]
    assert canonical_repr(ring) == f"<{kind} {{'value': [<{kind} #0>, <{kind} #0>]}}>"
    assert all(OPAQUE in canonical_repr(value) for value in (Slotted(), iter([1]), lambda: 3, map(str, "a")))
    assert canonical_repr("x" * 9000) != canonical_repr("x" * 8999 + "y")


UNOBSERVED = """\
import sys


def tell(n):
    if n > 10:
        sys.stderr.write("much")


def show(n):
    print(n + 1)


def spin(n):
    while n + 1:
        pass


def make(n):
    return lambda: n + 1


def refuse(n):
    raise ValueError(n + 1)


def limit(n):
    if n > 10:
        return "much"
    return "little"
"""


def make_change(old: str, new: str, after: str) -> Proposal:
    start = UNOBSERVED.index(old, UNOBSERVED.index(after))
    edit = Edit(start=start, end=start + len(old), text=new)
    return Proposal(path="unseen.py", edits=(edit,), label=new, score=1.0, operators=())


@pytest.mark.parametrize(
    ("function", "old", "news", "is_observable"),
    [
        ("tell", "n > 10", ("n >= 10", "n > 9"), False),
        ("show", "n + 1", ("n + 2", "n + 3"), True),
        ("spin", "n + 1", ("n + 2", "n + 3"), False),
        ("make", "n + 1", ("n + 2", "n + 3"), False),
        ("refuse", "n + 1", ("n + 2", "n + 3"), True),
        ("limit", "n > 10", ("n > 11", "n > 12"), True),
    ],
)
async def test_equal_outcomes_count_only_if_they_are_observable(
    tmp_path: Path,
    sandbox: BubblewrapSandbox,
    function: str,
    old: str,
    news: tuple[str, str],
    is_observable: bool,
) -> None:
    """A call that writes to stderr, never ends or returns an opaque value has equal outcomes for any code."""
    command = await prepare_command(tmp_path, sandbox)
    repairs = [make_change(old, new, f"def {function}(") for new in news]
    calls: list[tuple[str, str, str]] = [("unseen.py", function, f"({n},)") for n in (4, 20)]

    outcomes, unchanged = await collect_outcomes(repairs, calls, {"unseen.py": UNOBSERVED}, command, 100)

    one, other = outcomes
    if function == "limit":
        assert len(unchanged) == len(calls)
    assert len(one.answers) == 2
    if is_observable:
        assert one.reached
        assert other.reached
        assert (one.answers != other.answers) is (function != "limit")
    else:
        assert (one.reached, other.reached) == (0, 0)


async def prepare_command(folder: Path, sandbox: BubblewrapSandbox) -> TestCommand:
    (folder / "unseen.py").write_text(UNOBSERVED)
    (folder / "test_unseen.py").write_text("from unseen import limit\n\n\ndef test_it():\n    assert limit\n")
    _, command = await prepare_python_suite(folder, sandbox)
    return command


async def test_two_bounds_are_compared_at_the_value_where_they_differ(
    tmp_path: Path, sandbox: BubblewrapSandbox
) -> None:
    """Inputs near the tests' own are unlikely to hit just that value."""
    command = await prepare_command(tmp_path, sandbox)
    repairs = [make_change("n > 10", new, "def limit(") for new in ("n > 400", "n >= 400")]
    assert constants_near_edit(UNOBSERVED, repairs[0].edits) == [10, 400]

    calls = (ObservedCall(path="unseen.py", line=32, function="limit", arguments="(3,)"),)
    result = SearchResult(texts={"unseen.py": UNOBSERVED}, spectrum=Spectrum(calls=calls), plausible=repairs)
    ranked = await rank_repairs(result, make_python_project(command, result.texts), seconds=100)
    assert len(ranked.repairs) == 2
    assert ranked.difference is not None
    assert ranked.difference.call == "limit(400)"
    (compared,) = ranked.compared_calls
    assert compared.call == "limit(400)"
    assert len(set(compared.answers)) == 2
    assert compared.before in compared.answers


def test_inputs_of_one_seed_are_the_same_in_every_process() -> None:
    program = (
        "import random\n"
        "from suture.judge.differential.input_generation import mutate_inputs, read_arguments\n"
        "seeds = read_arguments([\"({'aa', 'bb', 'cc', 'dd'},)\", \"({'aa', 'zz', 'ee'},)\"])\n"
        "print([sorted(new[0]) for new in mutate_inputs(seeds, 20, random.Random(0))])\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "3")
    }

    assert len(outputs) == 1


EXAMPLES = '''\
def twice(n):
    """
    >>> twice(2)
    4
    >>> twice(None)
    >>> twice("a")
    Traceback (most recent call last):
    TypeError: no
    >>> twice([1, 2])  # doctest: +ELLIPSIS
    [1, ...]
    """
'''


def test_examples_that_no_outcome_can_match_are_ignored() -> None:
    examples = find_doctest_calls({"m.py": EXAMPLES})
    assert [(call[2], want) for call, want in examples] == [("(2, )", "4"), ("(None, )", "None")]
    right, wrong = (["(4, (2,))", "?(None, (None,))"], ["(5, (2,))", "?(None, (None,))"])
    assert [count_broken_examples(answers, examples, 0) for answers in (right, wrong)] == [0, 1]


def test_an_answer_is_shown_without_the_arguments_whatever_its_type() -> None:
    render = get_adapter("python").render_answer
    answers = ("(2, (1,))", "(datetime.date(2024, 1, 3), (datetime.date(2024, 1, 1), 2))", "?(None, ([],))")
    assert [render(answer) for answer in answers] == ["2", "datetime.date(2024, 1, 3)", "None"]
