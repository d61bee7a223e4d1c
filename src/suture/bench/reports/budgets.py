"""The same arms at several caps: cells that differ only in the cap."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from suture.bench.measures.arm_metrics import SolvedShare
from suture.bench.reports.cells import BASELINES
from suture.bench.reports.report_summary import ReportSection


@dataclass(frozen=True, kw_only=True)
class CapComparison:
    """What each arm solves at each cap.

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
    for (dataset, regime, model), of in groups.items():
        solved = {(arm.arm, section.cap): arm.solved for section in of for arm in section.arms}
        caps = tuple(sorted(section.cap for section in of))
        names = dict.fromkeys(arm for arm, _ in solved)
        yield CapComparison(
            title=f"{dataset}, regime {regime}, {model}",
            caps=caps,
            arms={
                arm: tuple(solved.get((arm, cap)) for cap in caps)
                for arm in (*(b for b in BASELINES if b in names), *sorted(names.keys() - set(BASELINES)))
            },
        )
