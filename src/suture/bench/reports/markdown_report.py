"""Render a report as Markdown: warnings first, then regimes, then tables."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from suture.bench.reports.report_summary import BenchmarkReport, ReportSection, compare_caps, render_sessions
from suture.bench.reports.report_tables import Table, budget_tables, build_tables
from suture.bench.rows import BenchmarkRow
from suture.bench.running.bench_folder import BenchFolder
from suture.core.records import encode_record
from suture.errors import StorageError, UsageError

MARKUP_CHARS = re.compile(r"[\\`*{}\[\]<>#|]|(?<![^\W_])_|_(?![^\W_])")
"""Characters that may act as markup; a `_` between two letters does not."""


def render_markdown_report(report: BenchmarkReport) -> str:
    """Return the report as a Markdown document."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: BenchmarkReport) -> Iterator[str]:
    yield "# Benchmark report"
    for warning in report.warnings:
        yield f"\n**{_escape(warning)}**"
    for regime, meaning in report.regimes.items():
        yield f"\nRegime {_escape(regime)}: {_escape(meaning)}."
    for comparison in compare_caps(report.sections):
        if len(comparison.caps) > 1:
            yield f"\n## {_escape(comparison.title)}"
            for table in budget_tables(comparison):
                yield from _table(table)
    for section in report.sections:
        yield from _section(section)
    yield from (f"\n{_escape(line)}" for line in render_sessions(report))


def _section(section: ReportSection) -> Iterator[str]:
    yield f"\n## {_escape(section.title)}\n"
    yield from (f"- {_escape(warning)}" for warning in section.warnings)
    yield f"\n{_escape(section.resolution)}"
    for table in build_tables(section):
        yield from _table(table)


def _table(table: Table) -> Iterator[str]:
    yield f"\n### {_escape(table.caption)}\n"
    if not table.rows:
        yield "There is none."
        return
    yield _line(table.head)
    yield "|" + "---|" * len(table.head)
    yield from map(_line, table.rows)
    yield f"\n{_escape(table.note)}"


def _line(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(map(_escape, cells))} |"


def _escape(text: str) -> str:
    """Return a string in which nothing acts as markup: names come from rows."""
    return MARKUP_CHARS.sub(r"\\\g<0>", " ".join(text.split()))


def read_rows(folders: Sequence[Path]) -> list[BenchmarkRow]:
    """Read the rows of some benchmarks; equal rows count once.

    Raises:
        UsageError: A folder has no rows, or two different rows are of the same task, arm and seed.
        StorageError: A folder's rows are damaged.
    """
    rows: dict[tuple[object, ...], BenchmarkRow] = {}
    for folder in map(BenchFolder, folders):
        if not folder.rows_path.is_file():
            raise UsageError(
                f"there are no rows in {str(folder.path)!r}", remedy="make some: suture bench run"
            )
        for row in folder.rows():
            key = (row.key, row.regime, row.problem_hash)
            if rows.setdefault(key, row) != row:
                raise UsageError(
                    f"two different rows of {row.arm!r} on {row.problem!r} with seed {row.seed}, "
                    f"runs {rows[key].run!r} and {row.run!r}",
                    remedy="report one of the two, or compare them with `suture bench compare`",
                )
    return list(rows.values())


def load_sessions(folders: Sequence[Path]) -> dict[str, tuple[Mapping[str, str], ...]]:
    """Return folder name -> the environment of each session; folders with equal names go by their paths.

    Raises:
        StorageError: A plan is damaged.
    """
    names = Counter(path.name for path in folders)
    return {
        path.name if names[path.name] == 1 else str(path): folder.plan().sessions if folder.exists else ()
        for path, folder in zip(folders, map(BenchFolder, folders), strict=True)
    }


def render_json_report(report: BenchmarkReport) -> str:
    """Return the report as a JSON document."""
    return json.dumps(encode_record(report), indent=2) + "\n"


def write_report(report: BenchmarkReport, folder: Path) -> tuple[Path, ...]:
    """Write `report.md` and `report.json`, and return their paths.

    Raises:
        StorageError: The folder cannot be written to.
    """
    texts = {"md": render_markdown_report(report), "json": render_json_report(report)}
    paths = tuple(folder / f"report.{form}" for form in texts)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in zip(paths, texts.values(), strict=True):
            path.write_text(text, "utf-8")
    except OSError as fault:
        raise StorageError(f"the report cannot be written to {str(folder)!r}: {fault}") from fault
    return paths
