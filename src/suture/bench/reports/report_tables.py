"""Build the tables of a section with cells of plain text, for every format of the report."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from suture.bench.measures.arm_metrics import ArmMetrics, Calibration, Ratio, SolvedShare
from suture.bench.measures.paired_statistics import Interval
from suture.bench.reports.arm_comparison import ArmComparison
from suture.bench.reports.report_summary import CapComparison, ReportSection

NO_VALUE = "-"
"""Shown for a missing number."""
COVERAGES = (1.0, 0.75, 0.5, 0.25)
"""Shares of the most confident runs for which the accuracy is listed."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table of text.

    Attributes:
        head: Names of the columns; the first column names the row.
        rows: The cells, as many per row as `head` has.
        note: What the columns mean.
    """

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


def build_tables(section: ReportSection) -> Iterator[Table]:
    """Yield the tables of a section, the most important first, each with the runs that it leaves out."""
    yield _with_unknown(_solved_table(section), section)
    yield comparison_table(section.comparisons)
    yield _with_unknown(_claims_table(section), section)
    yield _with_unknown(_cost_table(section), section)
    yield _with_unknown(_rounds_table(section), section)
    if any(arm.seeds > 1 for arm in section.arms):
        yield _with_unknown(_pass_table(section), section)
    yield _with_unknown(_calibration_table(section), section)


def _with_unknown(table: Table, section: ReportSection) -> Table:
    """Return the table with a last column for the runs that are in none of its numbers."""
    unknown = {arm.arm: f"{arm.unknown.count} of {arm.unknown.of}" for arm in section.arms}
    return replace(
        table, head=(*table.head, "no number"), rows=tuple((*row, unknown[row[0]]) for row in table.rows)
    )


def comparison_table(comparisons: tuple[ArmComparison, ...]) -> Table:
    """Return the table of the paired tests."""
    return Table(
        caption="Paired tests",
        head=(
            "second against first",
            "tasks (runs)",
            "only first",
            "only second",
            "difference",
            "p",
            "p (Holm)",
            "detectable",
            "left out",
        ),
        rows=tuple(
            (
                f"{test.second} against {test.first}",
                f"{test.tasks} ({test.runs})",
                str(test.only_first),
                str(test.only_second),
                _points(test.difference),
                _p_value(test.p_value),
                _p_value(test.adjusted),
                NO_VALUE if test.detectable is None else f"{100 * test.detectable:.1f}",
                f"{test.missing_first} / {test.missing_second} / {test.unknown}",
            )
            for test in comparisons
        ),
        note="""Same tasks, same seeds, same cap. Difference: second minus first in points of tasks, with a
        95% interval: with one seed the one that goes with p (Fay and Lumbard 2021), with several a
        bootstrap over tasks and seeds. p: McNemar's exact test. Detectable:
        the true difference, in points, that this sample finds four times in five at this number
        of comparisons. Left out: tasks not run by the first / by the second / without a known
        truth.""",
    )


def budget_tables(comparison: CapComparison) -> Iterator[Table]:
    """Yield what the arms solve at each cap, and the prompt tokens that they use."""
    head = ("arm", *(f"{cap:,} tokens" for cap in comparison.caps))
    yield Table(
        caption="Solved by the hidden checks, with a cap of so many generated tokens on each task",
        head=head,
        rows=tuple((arm, *map(_solved, results)) for arm, results in comparison.arms.items()),
        note="""Each cap is a run of its own, with the same replies. Share of tasks with its 95% interval;
        then runs solved of runs with a known truth. A dash: not run.""",
    )
    yield Table(
        caption="Prompt tokens beside them",
        head=head,
        rows=tuple(
            (arm, *(NO_VALUE if result is None else f"{result.prompt_tokens:,.0f}" for result in results))
            for arm, results in comparison.arms.items()
        ),
        note="Mean of a run.",
    )


def _solved_table(section: ReportSection) -> Table:
    return Table(
        caption="Solved by the hidden checks",
        head=("arm", "tasks", "seeds", "solved", "generated tokens", "prompt tokens"),
        rows=tuple(
            (
                arm.arm,
                str(arm.tasks),
                str(arm.seeds),
                _solved(arm.solved),
                f"{arm.solved.completion_tokens:,.0f}",
                f"{arm.solved.prompt_tokens:,.0f}",
            )
            for arm in section.arms
        ),
        note="""Share of tasks with its 95% interval; then runs solved of runs with a known truth. Tokens:
        mean of a run.""",
    )


def _claims_table(section: ReportSection) -> Table:
    return Table(
        caption="What was claimed, and what it was worth",
        head=(
            "arm",
            "claimed",
            "claimed and wrong",
            "forged",
            "claimed minus solved",
            "right, not claimed",
            "first pass",
            "initial failures healed",
            "harmed",
        ),
        rows=tuple(
            (
                arm.arm,
                _count(arm.claimed),
                _count(arm.false_claims),
                _count(arm.forged),
                _claimed_minus_solved(arm),
                _count(arm.unclaimed_right),
                _count(arm.first_pass),
                _count(arm.healed),
                _count(arm.harmed),
            )
            for arm in section.arms
        ),
        note="""In runs. First pass: a run that proposed no candidate has not passed, unless the given code
        was right. Forged: the code passed the visible checks in the run, and fails them in another
        sandbox. Harmed: right first (the given code or the first candidate), wrong in the end.""",
    )


def _cost_table(section: ReportSection) -> Table:
    return Table(
        caption="Spent for each solved run",
        head=("arm", "solved runs", "generated", "prompt", "calls", "seconds", "of them model", "US dollars"),
        rows=tuple(_cost_row(arm) for arm in section.arms),
        note="""All of the arm's runs, failed ones too, divided by those that it solved. Replayed replies take
        no model seconds. A dash: nothing was solved, or a price is not known.""",
    )


def _cost_row(arm: ArmMetrics) -> tuple[str, ...]:
    spent = arm.spent
    totals = (spent.completion_tokens, spent.prompt_tokens, spent.calls, spent.seconds, spent.model_s)
    costs = (_number(spent.per_solved(total)) for total in totals)
    cost_usd = spent.per_solved(spent.cost_usd)
    return (arm.arm, str(spent.solved), *costs, NO_VALUE if cost_usd is None else f"{cost_usd:.4f}")


def _rounds_table(section: ReportSection) -> Table:
    counts = {arm.arm: {entry.rounds: entry.runs for entry in arm.rounds} for arm in section.arms}
    rounds = sorted({number for runs in counts.values() for number in runs})
    return Table(
        caption="Rounds",
        head=("arm", *(f"{number} {'round' if number == 1 else 'rounds'}" for number in rounds)),
        rows=tuple(
            (name, *(_count(runs[number]) if number in runs else NO_VALUE for number in rounds))
            for name, runs in counts.items()
        ),
        note="""Runs that ended right, of the runs that took so many rounds.""",
    )


def _pass_table(section: ReportSection) -> Table:
    max_k = max((len(arm.pass_at) for arm in section.arms), default=0)
    rows = []
    for arm in section.arms:
        cells = [f"{entry.share:.1%} (n = {entry.tasks})" for entry in arm.pass_at]
        rows.append((arm.arm, *cells, *[NO_VALUE] * (max_k - len(cells))))
    return Table(
        caption="pass@k over seeds",
        head=("arm", *(f"k = {k}" for k in range(1, max_k + 1))),
        rows=tuple(rows),
        note="""Unbiased, each seed a fresh draw of the whole arm; n in tasks. Candidates inside one run are
        no such draws, because a run stops when it is content.""",
    )


def _calibration_table(section: ReportSection) -> Table:
    rows = []
    for arm in section.arms:
        accuracies = [_accuracy_at(arm.calibration, coverage) for coverage in COVERAGES]
        rows.append((arm.arm, str(arm.claimed.of), *_calibration_errors(arm.calibration), *accuracies))
    return Table(
        caption="Final confidence against the truth",
        head=("arm", "runs", "Brier", "ECE", *(f"right at {share:.0%} coverage" for share in COVERAGES)),
        rows=tuple(rows),
        note="""Brier: mean squared error, 0.25 for always saying one half. ECE: mean gap over ten bins.
        Coverage: the share of the most confident runs that is kept, at least so many.""",
    )


def _calibration_errors(calibration: Calibration | None) -> tuple[str, str]:
    if calibration is None:
        return NO_VALUE, NO_VALUE
    return f"{calibration.brier:.3f}", f"{calibration.ece:.3f}"


def _accuracy_at(calibration: Calibration | None, min_coverage: float) -> str:
    """Return the accuracy at the smallest coverage that is large enough."""
    if calibration is None:
        return NO_VALUE
    # The tolerance is for rounding: a coverage is a quotient of counts.
    coverage, accuracy = min(point for point in calibration.selective if point[0] >= min_coverage - 1e-9)
    return f"{accuracy:.1%} (of {coverage:.0%})"


def _p_value(value: float) -> str:
    return "< 0.0001" if value < 0.0001 else f"{value:.4f}"


def _solved(result: SolvedShare | None) -> str:
    if result is None or result.share is None:
        return NO_VALUE
    share = result.share
    interval_text = f"[{share.low:.1%}, {share.high:.1%}]"
    return f"{share.estimate:.1%} {interval_text} {result.runs.count}/{result.runs.of}"


def _claimed_minus_solved(arm: ArmMetrics) -> str:
    if not arm.claimed.of:
        return NO_VALUE
    # Both counts are of the same runs, those with a result.
    return f"{100 * (arm.claimed.count - arm.spent.solved) / arm.claimed.of:+.1f} points"


def _points(interval: Interval | None) -> str:
    if interval is None:
        return NO_VALUE
    return f"{100 * interval.estimate:+.1f} [{100 * interval.low:+.1f}, {100 * interval.high:+.1f}]"


def _count(ratio: Ratio) -> str:
    share_text = "" if ratio.share is None else f" ({ratio.share:.1%})"
    return f"{ratio.count} of {ratio.of}{share_text}"


def _number(value: float | None) -> str:
    return NO_VALUE if value is None else f"{value:,.1f}"
