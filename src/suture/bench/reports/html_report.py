"""Render a report as one HTML page with its style and plots inside; it needs no script and no network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.resources import files

from suture.bench.reports.cells import sort_arms
from suture.bench.reports.markup import Markup, element, joined
from suture.bench.reports.plots import bars, reliability, solved_against_tokens
from suture.bench.reports.report_summary import (
    BenchmarkReport,
    CapComparison,
    ReportSection,
    compare_caps,
    render_sessions,
)
from suture.bench.reports.report_tables import Table, budget_tables, build_tables


def render_html_report(report: BenchmarkReport) -> str:
    """Return the report as an HTML document."""
    style = Markup(files(__package__).joinpath("page.css").read_text("utf-8"))
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", "Suture: benchmark report"),
        element("style", style),
    )
    body = element("body", element("main", *_body(report)))
    return "<!doctype html>\n" + element("html", head, body, lang="en") + "\n"


def _body(report: BenchmarkReport) -> Iterator[Markup]:
    yield element("h1", "Benchmark report")
    yield from (element("p", warning, class_="alert") for warning in report.warnings)
    for regime, meaning in report.regimes.items():
        yield element("p", "Regime ", element("strong", regime), f": {meaning}.")
    names = {arm.arm for section in report.sections for arm in section.arms}
    series = {name: number for number, name in enumerate(sort_arms(names))}  # an arm looks alike in all plots
    for comparison in compare_caps(report.sections):
        if comparison.arms:
            yield element("section", *_cap_comparison(comparison, series))
    for section in report.sections:
        yield element("section", *_section(section, series))
    yield from (element("p", line, class_="note") for line in render_sessions(report))


def _section(section: ReportSection, series: Mapping[str, int]) -> Iterator[Markup]:
    yield element("h2", section.title)
    if section.warnings:
        yield element("ul", *(element("li", warning) for warning in section.warnings))
    yield element("p", section.resolution)
    yield from map(_table, build_tables(section))
    yield from _figures(section, series)


def _cap_comparison(comparison: CapComparison, series: Mapping[str, int]) -> Iterator[Markup]:
    yield element("h2", comparison.title)
    caption = "Share of tasks solved by the hidden checks against generated tokens, with 95% intervals."
    yield element("figure", solved_against_tokens(comparison, series), element("figcaption", caption))
    if len(comparison.caps) > 1:
        yield from map(_table, budget_tables(comparison))


def _figures(section: ReportSection, series: Mapping[str, int]) -> Iterator[Markup]:
    rounds: list[tuple[str, Markup]] = []
    errors: list[tuple[str, Markup]] = []
    calibrations: list[tuple[str, Markup]] = []
    for arm in section.arms:
        name, number = arm.arm, series[arm.arm]
        if arm.rounds:
            values = [(str(entry.rounds), entry.runs) for entry in arm.rounds]
            rounds.append((name, bars(f"Rounds of {name}", number, values)))
        if arm.errors:
            values = [(entry.error, entry.healed) for entry in arm.errors]
            errors.append((name, bars(f"Errors of {name}", number, values)))
        if arm.calibration:
            plot = reliability(f"Calibration of {name}", number, arm.calibration)
            calibrations.append((f"{name} ({arm.claimed.of} runs)", plot))
    yield _plot_row("Rounds: runs that took so many; in full colour those that ended right.", rounds)
    yield _plot_row("Initial failures by error class; in full colour those that were healed.", errors)
    yield _plot_row(
        "Final confidence against the share that is right, with exact 95% intervals.", calibrations
    )


def _plot_row(caption: str, plots: list[tuple[str, Markup]]) -> Markup:
    """Return the same plot for several arms, side by side, each with its title."""
    if not plots:
        return joined()
    boxes = (element("div", element("h4", title), plot) for title, plot in plots)
    return element("figure", element("figcaption", caption), element("div", *boxes, class_="many"))


def _table(table: Table) -> Markup:
    if not table.rows:
        return element("p", element("strong", f"{table.caption}: "), "there is none.")
    head = element("thead", element("tr", *(element("th", name, scope="col") for name in table.head)))
    rows = (
        element("tr", element("th", first, scope="row"), *(element("td", cell) for cell in rest))
        for first, *rest in table.rows
    )
    body = element("table", element("caption", table.caption), head, element("tbody", *rows))
    box = element("div", body, class_="scroll", role="region", aria_label=table.caption, tabindex="0")
    return joined(box, element("p", table.note, class_="note"))
