"""What benchmarks of this home have measured, as plain tables."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any


def benchmarks_in(home: Path) -> list[str]:
    """Names of the benchmarks below a home that have measured something."""
    return sorted(path.parent.name for path in (home / "benchmarks").glob("*/rows.jsonl"))


def benchmark_as_json(home: Path, name: str) -> dict[str, Any]:
    """A benchmark's report: warnings, and each section's tables.

    Args:
        home: The folder of state, as the setting `paths.home`.
        name: As `benchmarks_in` tells it.

    Raises:
        UsageError: There is none of this name.
        StorageError: Its rows are damaged.
    """
    # Loaded when one is looked at: the figures need more than all the rest of the service.
    from suture.evals.reports import read_rows, report_of, sessions_of
    from suture.evals.reports.summary import circumstances_in_words
    from suture.evals.reports.tables import tables_of

    folder = home / "benchmarks" / name
    report = report_of(read_rows([folder]), sessions_of([folder]))
    sections = [
        {
            "title": section.title,
            "warnings": list(section.warnings),
            "resolution": section.resolution,
            "tables": [asdict(table) for table in tables_of(section)],
        }
        for section in report.sections
    ]
    circumstances = list(circumstances_in_words(report))
    return {
        "name": name,
        "warnings": list(report.warnings),
        "sections": sections,
        "circumstances": circumstances,
    }
