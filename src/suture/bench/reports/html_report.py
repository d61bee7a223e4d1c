"""A report as one HTML page that needs nothing else: no network, no script, style and plots inside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.resources import files

from suture.bench.reports.budgets import CapComparison, compare_caps
from suture.bench.reports.cells import BASELINES
from suture.bench.reports.markup import Markup, element, joined
from suture.bench.reports.plots import Bar, bars, reliability, solved_against_tokens
from suture.bench.reports.report_summary import BenchmarkReport, ReportSection, render_sessions
from suture.bench.reports.tables import Table, budget_tables, build_tables


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
    names = dict.fromkeys(arm.arm for section in report.sections for arm in section.arms)
    series = {name: n for n, name in enumerate(sorted(names, key=_baselines_first))}
    for budgets in compare_caps(report.sections):
        if budgets.arms:
            yield element("section", *_budgets(budgets, series))
    for section in report.sections:
        yield element("section", *_section(section, series))
    yield from (element("p", line, class_="note") for line in render_sessions(report))


def _baselines_first(name: str) -> tuple[int, str]:
    return (BASELINES.index(name) if name in BASELINES else len(BASELINES), name)


def _section(section: ReportSection, series: Mapping[str, int]) -> Iterator[Markup]:
    yield element("h2", section.title)
    if section.warnings:
        yield element("ul", *(element("li", warning) for warning in section.warnings))
    yield element("p", section.resolution)
    yield from map(_table, build_tables(section))
    yield from _figures(section, series)


def _budgets(budgets: CapComparison, series: Mapping[str, int]) -> Iterator[Markup]:
    yield element("h2", budgets.title)
    caption = "Share of tasks solved by the hidden checks against generated tokens, with 95% intervals."
    yield element("figure", solved_against_tokens(budgets, series), element("figcaption", caption))
    if len(budgets.caps) > 1:
        yield from map(_table, budget_tables(budgets))


def _figures(section: ReportSection, series: Mapping[str, int]) -> Iterator[Markup]:
    arms = [(arm, series[arm.arm]) for arm in section.arms]
    yield _many(
        "Rounds: runs that took so many; in full colour those that ended right.",
        [
            (
                arm.arm,
                bars(f"Rounds of {arm.arm}", n, [Bar(label=str(r.rounds), value=r.runs) for r in arm.rounds]),
            )
            for arm, n in arms
            if arm.rounds
        ],
    )
    yield _many(
        "Initial failures by error class; in full colour those that were healed.",
        [
            (
                arm.arm,
                bars(f"Errors of {arm.arm}", n, [Bar(label=e.error, value=e.healed) for e in arm.errors]),
            )
            for arm, n in arms
            if arm.errors
        ],
    )
    yield _many(
        "Final confidence against the share that is right, with exact 95% intervals.",
        [
            (
                f"{arm.arm} ({arm.claimed.of} runs)",
                reliability(f"Calibration of {arm.arm}", n, arm.calibration),
            )
            for arm, n in arms
            if arm.calibration
        ],
    )


def _many(caption: str, drawn: list[tuple[str, Markup]]) -> Markup:
    """The same plot for several arms, side by side."""
    if not drawn:
        return joined()
    each = (element("div", element("h4", name), plot) for name, plot in drawn)
    return element("figure", element("figcaption", caption), element("div", *each, class_="many"))


def _table(table: Table) -> Markup:
    if not table.rows:
        return element("p", element("strong", f"{table.caption}: "), "there is none.")
    head = element("thead", element("tr", *(element("th", name, scope="col") for name in table.head)))
    rows = (
        element("tr", element("th", first, scope="row"), *(element("td", cell) for cell in rest))
        for first, *rest in table.rows
    )
    whole = element("table", element("caption", table.caption), head, element("tbody", *rows))
    wide = element("div", whole, class_="scroll", role="region", aria_label=table.caption, tabindex="0")
    return joined(wide, element("p", table.note, class_="note"))
