"""The order in which changes are tried if some of them are expensive."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from suture.judge.trials.trial_records import FailurePoint, Proposal, Spectrum, TestOutcome, TestRun, Trial
from suture.mutation.edits import Edit, Mutant
from suture.search.ordering.candidate_order import interleave_expensive, order_single_changes
from suture.search.ordering.compound_changes import CompoundQueue, remaining_spectrum
from suture.search.tuning import CHEAP_PER_EXPENSIVE, EARLY_CANDIDATES, EARLY_SAMPLE


def make_proposals(kinds: str) -> list[Proposal]:
    """Return proposals by kind: `a` is imported again, `s` is swapped in place."""
    return [
        Proposal(path="m.py", edits=(), label=str(n), score=1.0, operators=(), is_swappable=kind == "s")
        for n, kind in enumerate(kinds)
    ]


def get_kinds(found: list[Proposal]) -> str:
    return "".join("s" if proposal.is_swappable else "a" for proposal in found)


def test_expensive_changes_do_not_delay_cheap_ones() -> None:
    ordered = interleave_expensive(make_proposals("aaa" + "s" * 20))
    assert (
        get_kinds(ordered)
        == "a" + "s" * CHEAP_PER_EXPENSIVE + "a" + "s" * CHEAP_PER_EXPENSIVE + "a" + "s" * 4
    )
    assert [p.label for p in ordered if not p.is_swappable] == ["0", "1", "2"]
    assert [p.label for p in ordered if p.is_swappable] == [str(n) for n in range(3, 23)]


def test_expensive_changes_follow_once_no_cheap_ones_are_left() -> None:
    assert get_kinds(interleave_expensive(make_proposals("saasa"))) == "sasaa"
    assert get_kinds(interleave_expensive(make_proposals("aaa"))) == "aaa"


LINES = {"m.py": {line: 1.0 - line / 2000 for line in range(1, 1001)}}
TEXT = "x = 1\n" * 1000


def generate_many(
    path: str, text: str, lines: Collection[int], on_fault: object = None, differences: object = ()
) -> Iterator[Mutant]:
    """Yield twelve changes of each line; later lines have larger priors."""
    for line in sorted(lines):
        for number in range(12):
            edit = Edit(start=6 * line - 2, end=6 * line - 1, text=str(number + 2))
            yield Mutant(
                edits=(edit,), operator="constant", line=line, prior=line / 1000, label=f"{line} {number}"
            )


async def test_the_likeliest_early_changes_are_reported_during_generation() -> None:
    early: list[Sequence[Proposal]] = []
    ordered = await order_single_changes(
        LINES, {"m.py": TEXT}, {}, generate=generate_many, limit=200, on_early=early.append
    )
    all_changes = await order_single_changes(LINES, {"m.py": TEXT}, {}, generate=generate_many, limit=20_000)
    assert ordered == all_changes[:200]

    (first,) = early
    sampled = [
        proposal for proposal in all_changes if int(proposal.label.split()[0]) <= EARLY_SAMPLE / 12 + 1
    ]
    assert len(first) == EARLY_CANDIDATES
    assert set(first) <= set(sampled)
    assert min(p.score for p in first) >= max(p.score for p in sampled if p not in first) - 1e-6


async def test_few_changes_are_not_reported_early() -> None:
    early: list[Sequence[Proposal]] = []
    few = {"m.py": dict.fromkeys(range(1, 20), 1.0)}
    assert await order_single_changes(few, {"m.py": TEXT}, {}, generate=generate_many, on_early=early.append)
    assert not early


def make_run(name: str, outcome: TestOutcome) -> TestRun:
    return TestRun(id=name, outcome=outcome, seconds=0.0, lines={"m.py": frozenset({1, 2})})


def make_partial_trial(passing: int, failing: int, *names: str) -> Trial:
    return Trial(
        passing=passing,
        failing=failing,
        broken=0,
        is_plausible=False,
        timed_out=False,
        failures=(FailurePoint(test="t::left"),),
        now_passing=frozenset(names),
    )


def test_fixed_tests_clear_their_lines_and_tests_that_did_not_run_are_dropped() -> None:
    runs = (
        make_run("t::fixed", "failed"),
        make_run("t::left", "failed"),
        make_run("t::far", "failed"),
        make_run("t::ok", "passed"),
    )
    failing = frozenset({"t::fixed", "t::left", "t::far"})
    before = Spectrum(tests=runs, failing_in_suite=failing, target_tests=("t::fixed", "t::left"))

    remaining = remaining_spectrum(before, make_partial_trial(1, 1, "t::fixed"), {"m.py": TEXT})

    assert {test.id: test.outcome for test in remaining.tests} == {
        "t::fixed": "passed",
        "t::left": "failed",
        "t::ok": "passed",
    }
    assert [test.id for test in remaining.failing] == ["t::left"]


def test_a_start_that_fixes_more_than_all_before_is_extended_first() -> None:
    queue, before = CompoundQueue(), {"t::left": make_run("t::left", "failed")}
    (one, other) = make_proposals("ss")

    assert queue.record(one, make_partial_trial(1, 4, "t::a"), before, 10)
    assert not queue.has_promising_start()
    assert queue.record(other, make_partial_trial(4, 1, "t::a", "t::b", "t::c", "t::d"), before, 20)
    assert queue.has_promising_start()
    assert not queue.record(one, make_partial_trial(0, 5), before, 30)
