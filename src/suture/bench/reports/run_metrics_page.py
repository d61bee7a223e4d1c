"""Render the metrics of many runs as one HTML page that needs no script and no network."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from typing import Any

from suture.bench.reports.markup import Markup, element, joined

WIDTH, ROW, LABEL = 720.0, 22.0, 190.0
"""Width of a plot, height of a bar with its gap, and width of the column of names, in pixels."""
MAX_BARS = 40
"""Bars of one plot, so that it fits a screen."""
BAR, PALE = "fill:var(--s1)", "fill:var(--line)"
INK = "fill:var(--ink)"
"""Styles of bars, of bars behind others, and of text; `page.css` defines the colours."""
PLOTS = (
    ("outcomes", "Outcomes", "runs"),
    ("errors", "Kinds of errors", "iterations"),
    ("seconds_by_phase", "Seconds by phase", "seconds"),
    ("tokens_by_role", "Tokens by role", "tokens"),
    ("tokens_by_move", "Tokens by move", "tokens"),
    ("candidates", "Candidates by origin", "candidates"),
)
"""(key of the summary, heading, unit) of each plot; the value of the key maps names to numbers."""


def render_run_metrics_page(summary: Mapping[str, Any], title: str) -> str:
    """Return the page as HTML for a summary by `suture.storage.database.run_queries.summarise_runs`."""
    style = resources.files("suture.bench.reports").joinpath("page.css").read_text("utf-8")
    parts = [element("h1", title), element("p", _sentence(summary))]
    for key, name, unit in PLOTS:
        if summary[key]:
            parts += [element("h2", name), bars(summary[key], f"{name}, {unit}")]
    parts += [element("h2", "Runs by day"), days(summary["by_day"])] if summary["by_day"] else []
    spreads = summary["iteration_seconds"]
    parts += [element("h2", "Seconds of an iteration"), _spreads(spreads)] if spreads else []
    page = element(
        "html",
        element(
            "head",
            element("meta", charset="utf-8"),
            element("meta", name="viewport", content="width=device-width"),
            element("title", title),
            Markup(f"<style>{style}</style>"),
        ),
        element("body", element("main", *parts)),
        lang="en",
    )
    return f"<!doctype html>\n{page}\n"


def _sentence(summary: Mapping[str, Any]) -> str:
    rate = summary["pass_rate"]
    share = "no pass rate" if rate is None else f"{rate:.1%} healed of {summary['decided']:,} decided"
    memory = summary["memory"]
    used = f"{memory['recalled']:,} memories shown, {memory['healed_recalled']:,} of these in healed runs"
    return (
        f"{summary['runs']:,} runs, {share}; {summary['tokens']:,} tokens, ${summary['money']:.2f}; {used}."
    )


def bars(values: Mapping[str, float], caption: str) -> Markup:
    """Plot named numbers as bars in the given order; a summary has the largest first."""
    entries = list(values.items())[:MAX_BARS]
    largest = max(value for _, value in entries) or 1.0  # all may be 0
    max_width = WIDTH - LABEL - 100  # the rest is for the number after the bar
    rows = []
    for number, (name, value) in enumerate(entries):
        y = number * ROW
        width = max(1.0, max_width * value / largest)
        rows += [
            element("text", name, x=LABEL - 8, y=y + 15, text_anchor="end", style=INK),
            element("rect", x=LABEL, y=y + 4, width=width, height=ROW - 8, style=BAR),
            element("text", f"{round(value, 1):,}", x=LABEL + width + 6, y=y + 15, style=INK),
        ]
    return _plot(caption, len(entries) * ROW, rows)


def days(by_day: Mapping[str, Mapping[str, int]]) -> Markup:
    """Plot the runs of each day as bars, with the healed ones darker."""
    entries = list(by_day.items())[-MAX_BARS:]  # the newest days
    most_runs = max(day["runs"] for _, day in entries)
    step, height = WIDTH / len(entries), 140.0
    width = min(step * 0.7, 40.0)
    rows = []
    for number, (name, day) in enumerate(entries):
        x = number * step + step * 0.15
        for key, fill in (("runs", PALE), ("healed", BAR)):
            bar_height = height * day[key] / most_runs
            y = height - bar_height
            rows.append(element("rect", x=x, y=y, width=width, height=bar_height, style=fill))
        if number % max(1, len(entries) // 8) == 0:  # about eight labels, without the year
            rows.append(element("text", name[5:], x=x, y=height + 16, style=INK))
    return _plot("Runs by day; coloured: healed", height + 24, rows)


def _plot(caption: str, height: float, rows: list[Markup]) -> Markup:
    svg = element(
        "svg",
        element("title", caption),
        *rows,
        viewBox=f"0 0 {WIDTH:.0f} {height:.0f}",
        width=WIDTH,
        role="img",
        font_size="13",
    )
    return element("figure", svg)


def _spreads(spreads: Mapping[str, Mapping[str, float]]) -> Markup:
    head = element("tr", *(element("th", name) for name in ("moves", "count", "median", "p95")))
    rows = [
        element(
            "tr",
            element("td", move),
            *(element("td", f"{spread[name]:,}") for name in ("count", "median", "p95")),
        )
        for move, spread in spreads.items()
    ]
    return element("table", joined(head, *rows))
