"""Render a report as Markdown: warnings first, then regimes, then tables."""

from __future__ import annotations

import re
from collections.abc import Iterator

from suture.bench.reports.report_summary import BenchmarkReport, ReportSection, compare_caps, render_sessions
from suture.bench.reports.report_tables import Table, budget_tables, build_tables

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
    """Return text in which nothing acts as markup: names come from rows."""
    return MARKUP_CHARS.sub(r"\\\g<0>", " ".join(text.split()))
