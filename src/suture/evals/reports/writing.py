"""A report on disk, in three forms of the same numbers."""

from __future__ import annotations

import json
from pathlib import Path

from suture.errors import StorageError
from suture.evals.reports.markdown import report_markdown
from suture.evals.reports.page import report_page
from suture.evals.reports.summing import Report
from suture.records import to_plain

__all__ = ["report_json", "write_report"]


def report_json(report: Report) -> str:
    """The whole report as one JSON document."""
    return json.dumps(to_plain(report), indent=2) + "\n"


def write_report(report: Report, folder: Path) -> tuple[Path, ...]:
    """Write `report.md`, `report.json` and `report.html`; answers where.

    Raises:
        StorageError: The folder cannot be written to.
    """
    texts = {"md": report_markdown(report), "json": report_json(report), "html": report_page(report)}
    paths = tuple(folder / f"report.{form}" for form in texts)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in zip(paths, texts.values(), strict=True):
            path.write_text(text, "utf-8")
    except OSError as fault:
        raise StorageError(f"the report cannot be written to {str(folder)!r}: {fault}") from fault
    return paths
