"""The order in which changes are tried, where some of them are dear."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from suture.judge.trials.trial_records import FailurePoint, Proposal, Spectrum, TestOutcome, TestRun, Trial
from suture.mutation.edits import Edit, Mutant
from suture.search.ordering.candidate_order import interleave_expensive, order_single_changes
from suture.search.ordering.compound_changes import CompoundQueue, remaining_spectrum
from suture.search.tuning import CHEAP_PER_EXPENSIVE, EARLY_CANDIDATES, EARLY_SAMPLE


def proposals(kinds: str) -> list[Proposal]:
    """`a` for one that is imported anew, `s` for one that is put in place."""
    return [
        Proposal(path="m.py", edits=(), label=str(n), score=1.0, operators=(), is_swappable=kind == "s")
        for n, kind in enumerate(kinds)
    ]


def kinds_of(found: list[Proposal]) -> str:
    return "".join("s" if proposal.is_swappable else "a" for proposal in found)


def test_dear_changes_do_not_keep_cheap_ones_waiting() -> None:
    found = interleave_expensive(proposals("aaa" + "s" * 20))
    assert (
        kinds_of(found) == "a" + "s" * CHEAP_PER_EXPENSIVE + "a" + "s" * CHEAP_PER_EXPENSIVE + "a" + "s" * 4
    )
    assert [p.label for p in found if not p.is_swappable] == ["0", "1", "2"]
    assert [p.label for p in found if p.is_swappable] == [str(n) for n in range(3, 23)]


def test_where_nothing_cheap_is_left_the_dear_ones_follow() -> None:
    assert kinds_of(interleave_expensive(proposals("saasa"))) == "sasaa"
    assert kinds_of(interleave_expensive(proposals("aaa"))) == "aaa"


LINES = {"m.py": {line: 1.0 - line / 2000 for line in range(1, 1001)}}
TEXT = "x = 1\n" * 1000


def many(path: str, text: str, lines: Collection[int]) -> Iterator[Mutant]:
    """Twelve changes of each line, the likelier the later the line: the best are not among the first."""
    for line in sorted(lines):
        for number in range(12):
            edit = Edit(start=6 * line - 2, end=6 * line - 1, text=str(number + 2))
            yield Mutant(
                edits=(edit,), operator="constant", line=line, prior=line / 1000, label=f"{line} {number}"
            )


async def test_the_likeliest_of_the_first_are_told_while_all_are_made() -> None:
    early: list[Sequence[Proposal]] = []
    ordered = await order_single_changes(
        LINES, {"m.py": TEXT}, {}, generate=many, limit=200, on_early=early.append
    )
    alone = await order_single_changes(LINES, {"m.py": TEXT}, {}, generate=many, limit=20_000)
    assert ordered == alone[:200]
    (first,) = early
    known = [proposal for proposal in alone if int(proposal.label.split()[0]) <= EARLY_SAMPLE / 12 + 1]
    assert len(first) == EARLY_CANDIDATES
    assert set(first) <= set(known)
    assert min(p.score for p in first) >= max(p.score for p in known if p not in first) - 1e-6


async def test_few_changes_are_not_told_before_all_are_made() -> None:
    early: list[Sequence[Proposal]] = []
    few = {"m.py": dict.fromkeys(range(1, 20), 1.0)}
    assert await order_single_changes(few, {"m.py": TEXT}, {}, generate=many, on_early=early.append)
    assert not early


def run(name: str, outcome: TestOutcome) -> TestRun:
    return TestRun(id=name, outcome=outcome, seconds=0.0, lines={"m.py": frozenset({1, 2})})


def half_mended(passing: int, failing: int, *names: str) -> Trial:
    return Trial(
        passing=passing,
        failing=failing,
        broken=0,
        is_plausible=False,
        timed_out=False,
        failures=(FailurePoint(test="t::left"),),
        now_passing=frozenset(names),
    )


def test_what_a_first_change_mends_speaks_for_its_lines_and_what_was_not_run_for_nothing() -> None:
    runs = (
        run("t::mended", "failed"),
        run("t::left", "failed"),
        run("t::far", "failed"),
        run("t::ok", "passed"),
    )
    known = frozenset({"t::mended", "t::left", "t::far"})
    before = Spectrum(tests=runs, failing_in_suite=known, target_tests=("t::mended", "t::left"))
    left = remaining_spectrum(before, half_mended(1, 1, "t::mended"), {"m.py": TEXT})
    assert {test.id: test.outcome for test in left.tests} == {
        "t::mended": "passed",
        "t::left": "failed",
        "t::ok": "passed",
    }
    assert [test.id for test in left.failing] == ["t::left"]


def test_a_start_that_mends_more_than_all_before_is_gone_on_from_before_what_waits() -> None:
    queue, before = CompoundQueue(), {"t::left": run("t::left", "failed")}
    (one, other) = proposals("ss")
    assert queue.record(one, half_mended(1, 4, "t::a"), before, 10)
    assert not queue.has_promising_start()
    assert queue.record(other, half_mended(4, 1, "t::a", "t::b", "t::c", "t::d"), before, 20)
    assert queue.has_promising_start()
    assert not queue.record(one, half_mended(0, 5), before, 30)
