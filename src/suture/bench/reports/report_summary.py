"""Build the report of some rows as a record: warnings, and a section with metrics and tests for each cell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from suture.bench.measures.arm_metrics import ArmMetrics, Ratio, SolvedShare, compute_arm_metrics
from suture.bench.problem import Regime
from suture.bench.reports.arm_comparison import (
    BASELINES,
    ArmComparison,
    Cell,
    adjust_comparisons,
    compare_arms,
    group_into_cells,
    sort_arms,
)
from suture.bench.rows import BenchmarkRow

REGIME_TEXTS: dict[Regime, str] = {
    "visible": "the loop saw the visible checks only",
    "self": "no check was run for the loop; the examples of the statement were still to be read",
    "oracle": "the loop was shown the hidden checks that also grade it, so this is no measure of solving",
}


@dataclass(frozen=True, kw_only=True)
class ReportSection:
    """The metrics, tests and warnings of one cell.

    Attributes:
        warnings: What must be read before the numbers, a sentence each.
        arms: The metrics of each arm, baselines first.
        comparisons: Every arm against each baseline, adjusted together.
        resolution: Which differences the sample can show, in a sentence.
    """

    title: str
    dataset: str
    regime: Regime
    model: str
    cap: int
    warnings: tuple[str, ...]
    arms: tuple[ArmMetrics, ...]
    comparisons: tuple[ArmComparison, ...]
    resolution: str


@dataclass(frozen=True, kw_only=True)
class BenchmarkReport:
    """The report of a set of rows.

    Attributes:
        regimes: Regime -> what it means.
        sections: One for each cell: a dataset, regime, model and cap.
        sessions: Benchmark -> the environment of each session, as in `BenchmarkPlan.sessions`.
    """

    warnings: tuple[str, ...]
    regimes: dict[str, str]
    sections: tuple[ReportSection, ...]
    sessions: Mapping[str, Sequence[Mapping[str, str]]]
    schema_version: int = 1


def build_report(
    rows: Sequence[BenchmarkRow], sessions: Mapping[str, Sequence[Mapping[str, str]]] | None = None
) -> BenchmarkReport:
    """Build the report of some rows, cell by cell.

    Args:
        rows: Rows of any number of benchmarks.
        sessions: Benchmark -> the environment of each session.
    """
    cells = group_into_cells(rows)
    return BenchmarkReport(
        warnings=tuple(_report_warnings(cells)),
        regimes={cell.regime: REGIME_TEXTS[cell.regime] for cell in cells},
        sections=tuple(map(_section, cells)),
        sessions=dict(sessions or {}),
    )


@dataclass(frozen=True, kw_only=True)
class CapComparison:
    """What each arm solves at each cap, in cells that differ only in the cap.

    Attributes:
        title: Data set, regime and model.
        caps: The caps, the smallest first.
        arms: Arm -> its result at each cap, `None` if it did not run; baselines come first.
    """

    title: str
    caps: tuple[int, ...]
    arms: dict[str, tuple[SolvedShare | None, ...]]


def compare_caps(sections: Sequence[ReportSection]) -> Iterator[CapComparison]:
    """Yield one comparison for each data set, regime and model, in the order of the sections."""
    groups: dict[tuple[str, str, str], list[ReportSection]] = {}
    for section in sections:
        groups.setdefault((section.dataset, section.regime, section.model), []).append(section)
    for (dataset, regime, model), members in groups.items():
        solved = {(arm.arm, section.cap): arm.solved for section in members for arm in section.arms}
        caps = tuple(sorted(section.cap for section in members))
        yield CapComparison(
            title=f"{dataset}, regime {regime}, {model}",
            caps=caps,
            arms={
                arm: tuple(solved.get((arm, cap)) for cap in caps)
                for arm in sort_arms({name for name, _ in solved})
            },
        )


def render_sessions(report: BenchmarkReport) -> Iterator[str]:
    """Yield the environment of each session of each benchmark, as text."""
    for name, sessions in report.sessions.items():
        for number, environment in enumerate(sessions or [{}], 1):
            session_text = f", session {number}" if len(sessions) > 1 else ""
            environment_text = "; ".join(f"{key} {value}" for key, value in environment.items())
            yield f"Benchmark {name}{session_text}: {environment_text or 'environment not known'}."


def _report_warnings(cells: Sequence[Cell]) -> Iterator[str]:
    if not cells:
        yield "There are no rows, so there are no numbers."
    missing = [
        f"{' or '.join(cell.missing_baselines)} in {cell.title}" for cell in cells if cell.missing_baselines
    ]
    if missing:
        yield (
            f"NO EQUAL-BUDGET BASELINE: there are no rows of {'; of '.join(missing)}. Without them the numbers "
            "do not show that a loop does better than sampling with the same tokens."
        )


def _section(cell: Cell) -> ReportSection:
    arms = tuple(compute_arm_metrics(arm, rows) for arm, rows in cell.arms.items())
    comparisons = adjust_comparisons(list(_against_baselines(cell)))
    return ReportSection(
        title=cell.title,
        dataset=cell.dataset,
        regime=cell.regime,
        model=cell.model,
        cap=cell.cap,
        warnings=tuple(_warnings(cell, arms)),
        arms=arms,
        comparisons=comparisons,
        resolution=_resolution(comparisons),
    )


def _against_baselines(cell: Cell) -> Iterator[ArmComparison]:
    """Yield the comparison of each arm with each baseline, each pair once."""
    names = list(cell.arms)
    for baseline in (arm for arm in BASELINES if arm in cell.arms):
        for arm in names[names.index(baseline) + 1 :]:
            yield compare_arms(baseline, cell.arms[baseline], arm, cell.arms[arm])


def _warnings(cell: Cell, arms: Sequence[ArmMetrics]) -> Iterator[str]:
    if cell.changed:
        yield f"Left out, because their content differs between the runs: {', '.join(cell.changed)}."
    if note := render_shown_checks(row for rows in cell.arms.values() for row in rows):
        yield note
    for arm in arms:
        yield from _caveats(arm)
    for name, rows in cell.arms.items():
        if over_cap := sum(row.completion_tokens > cell.cap for row in rows):
            yield (
                f"{name}: {over_cap} runs generated more than the cap. The table of solved tasks and the tests "
                "stop at the cap; the other figures are of the whole runs."
            )
        # A run that did not use a role says nothing about that role's prompt.
        versions = {version for row in rows for version in row.prompts.items()}
        if len(versions) > len({role for role, _ in versions}):
            yield f"{name}: its rows were made with different versions of the prompts."
    if len({frozenset(row.problem for row in rows) for rows in cell.arms.values()}) > 1:
        yield "The arms did not run the same tasks: only the paired tests below compare like with like."


def _caveats(arm: ArmMetrics) -> Iterator[str]:
    """Yield what an arm's numbers leave out, count as wrong, or rest on."""
    if arm.faults:
        yield f"{arm.arm}: {arm.faults} of {arm.runs} runs left out: the machinery failed, not the code."
    if arm.ungraded:
        yield f"{arm.arm}: {arm.ungraded} of {arm.runs} runs left out: their result is not graded."
    if arm.unknown.count:
        lower_bound = Ratio(count=arm.spent.solved, of=arm.runs)
        yield (
            f"{arm.arm}: were all of its runs without a number wrong, it would have solved "
            f"{lower_bound.count} of {lower_bound.of} ({lower_bound.share:.1%})."
        )
    if arm.timeouts:
        yield (
            f"{arm.arm}: a candidate counted as wrong because its grading ran out of time: "
            f"{', '.join(arm.timeouts)}."
        )
    if arm.sandbox_breakers:
        yield (
            f"{arm.arm}: a candidate counted as wrong because it broke the sandbox twice, which harmless "
            f"code in between and afterwards did not: {', '.join(arm.sandbox_breakers)}."
        )
    # Every other kind is decided where the code under test runs too.
    if weak_evidence := {kind: count for kind, count in arm.evidence.items() if kind != "split"}:
        counts = ", ".join(f"{count} by {kind}" for kind, count in weak_evidence.items())
        yield f"{arm.arm}: verdicts that code under test could reach: {counts} (see verdicts)."


def _resolution(comparisons: Sequence[ArmComparison]) -> str:
    if not comparisons:
        return "There are no comparisons."
    sizes = [comparison.detectable for comparison in comparisons if comparison.detectable is not None]
    tasks = sorted({comparison.tasks for comparison in comparisons})
    task_count = f"{tasks[0]}" if len(tasks) == 1 else f"{tasks[0]} to {tasks[-1]}"
    condition = (
        f"With {task_count} tasks in common, tested exactly at p <= 0.05 over {len(comparisons)} comparisons"
    )
    if len(sizes) < len(comparisons):
        return f"{condition}, some arms could not be distinguished at all: the sample is too small."
    return (
        f"{condition}, a true difference of {100 * max(sizes):.1f} points is found four times in five whichever "
        "arms are compared; a smaller one is missed more often, so none found does not mean none there."
    )


def render_shown_checks(rows: Iterable[BenchmarkRow]) -> str:
    """Return for how many tasks the visible checks are the hidden ones, as text; empty if for none.

    Rows of the regime `oracle` are skipped, because they are labelled so.
    """
    are_visible = {row.problem: row.hidden_checks_visible for row in rows if row.regime != "oracle"}
    count = sum(are_visible.values())
    if not count:
        return ""
    if count < len(are_visible):
        return (
            f"In {count} of {len(are_visible)} tasks the visible checks are the hidden ones, "
            "so that a claim cannot be wrong there."
        )
    return (
        f"In all {count} tasks the visible checks are the hidden ones: the loop was shown what grades it, "
        "claimed minus solved is 0 by construction, and this is no headline."
    )
