"""The plots of a section as inline SVG, without a library; colours come from the page's style sheet.

Each arm has its own colour, dash and marker, so that no reader depends on the colour.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from suture.bench.measures.arm_metrics import Ratio, SolvedShare
from suture.bench.measures.calibration import Calibration
from suture.bench.measures.paired_statistics import exact_interval
from suture.bench.reports.budgets import CapComparison
from suture.bench.reports.markup import Markup, element, joined

WIDTH, HEIGHT = 760.0, 400.0
LEFT, RIGHT, TOP, BOTTOM = 56.0, 170.0, 14.0, 52.0
SPREAD = 60.0
"""Pixels over which the arms of one cap are spread, so that no interval hides another."""
SERIES_COLOURS = 8
"""Number of colours in the style sheet."""
DASHES = ("none", "7 3", "2 3", "9 3 2 3")
MARKERS = ("circle", "square", "triangle", "diamond", "cross")


@dataclass(frozen=True, kw_only=True)
class Bar:
    """A labelled count of a count."""

    label: str
    value: Ratio


def solved_against_tokens(budgets: CapComparison, series: Mapping[str, int]) -> Markup:
    """Plot the share of solved tasks at each cap with its 95% interval, one line per arm."""
    inner = WIDTH - LEFT - RIGHT
    step = inner / len(budgets.caps)
    centres = [LEFT + step * (n + 0.5) for n in range(len(budgets.caps))]
    parts = [_share_axis(LEFT, WIDTH - RIGHT, TOP, HEIGHT - BOTTOM)]
    for centre, tokens in zip(centres, budgets.caps, strict=True):
        parts.append(_text(centre, HEIGHT - BOTTOM + 20, f"{tokens:,}", anchor="middle"))
    parts.append(
        _text(LEFT + inner / 2, HEIGHT - 10, "generated tokens, at most, on each task", anchor="middle")
    )
    spread = min(SPREAD, step * 0.7)
    count = len(budgets.arms)
    for n, (arm, solved) in enumerate(budgets.arms.items()):
        shift = 0.0 if count == 1 else spread * (n / (count - 1) - 0.5)
        places = [x + shift for x in centres]
        parts += [_line_of(arm, solved, series[arm], places), _legend(n, series[arm], arm)]
    return _svg(
        f"Share of tasks solved at {', '.join(map(str, budgets.caps))} generated tokens by "
        f"{', '.join(budgets.arms)}; the tables of solved tasks hold the numbers.",
        WIDTH,
        max(HEIGHT, TOP + 22 * count + 10),
        *parts,
    )


def bars(title: str, series: int, items: Sequence[Bar]) -> Markup:
    """Plot horizontal bars, with the part that ended right in full colour."""
    label, width, line = 130.0, 380.0, 24.0
    most = max((bar.value.of for bar in items), default=0) or 1
    scale = (width - label - 70) / most
    parts = []
    for n, bar in enumerate(items):
        y = n * line + 4
        count = f"{bar.value.count} of {bar.value.of}"
        end = label + scale * bar.value.of
        parts += [
            _text(label - 8, y + 12, _short(bar.label), anchor="end"),
            _rect(label, y, scale * bar.value.of, line - 8, f"part s{series % SERIES_COLOURS}"),
            _rect(label, y, scale * bar.value.count, line - 8, f"full s{series % SERIES_COLOURS}"),
            _text(end + 6, y + 12, count),
        ]
    said = "; ".join(f"{bar.label}: {bar.value.count} of {bar.value.of}" for bar in items)
    return _svg(f"{title}: {said or 'nothing'}", width, max(1, len(items)) * line + 4, *parts)


def reliability(title: str, series: int, found: Calibration) -> Markup:
    """Plot the share of right answers against the mean confidence, one point per bin."""
    size, left, bottom = 300.0, 52.0, 250.0
    right, top = size - 12, 12.0
    x, y = _scale(left, right), _scale(bottom, top)
    parts = [
        _share_axis(left, right, top, bottom),
        element("line", class_="even", x1=x(0), y1=y(0), x2=x(1), y2=y(1)),
        *(_text(x(at), bottom + 18, f"{at:.0%}", anchor="middle") for at in (0.0, 0.5, 1.0)),
        _text((left + right) / 2, bottom + 38, "confidence (mean of the bin)", anchor="middle"),
    ]
    for one in found.bins:
        ends = exact_interval(round(one.accuracy * one.count), one.count)
        label = f"{one.count} runs, confidence {one.confidence:.0%}, right {one.accuracy:.0%}"
        parts += [
            _interval(x(one.confidence), y(ends.low), y(ends.high), series),
            _marker(series, x(one.confidence), y(one.accuracy), label),
        ]
    said = "; ".join(f"{b.count} runs at {b.confidence:.0%}: {b.accuracy:.0%} right" for b in found.bins)
    return _svg(f"{title}: {said}", size, size, *parts)


def _line_of(arm: str, solved: Sequence[SolvedShare | None], series: int, places: Sequence[float]) -> Markup:
    y = _scale(HEIGHT - BOTTOM, TOP)
    points = [
        (
            x,
            at.share,
            f"{arm}, {at.tokens:,} tokens: {at.share.estimate:.1%}, {at.runs.count} of {at.runs.of}",
        )
        for x, at in zip(places, solved, strict=True)
        if at is not None and at.share is not None
    ]
    line = element(
        "polyline",
        class_=f"line s{series % SERIES_COLOURS}",
        stroke_dasharray=DASHES[series % len(DASHES)],
        points=" ".join(f"{x:.1f},{y(share.estimate):.1f}" for x, share, _ in points),
    )
    marks = (
        part
        for x, share, label in points
        for part in (
            _interval(x, y(share.low), y(share.high), series),
            _marker(series, x, y(share.estimate), label),
        )
    )
    return element("g", line, *marks)


def _legend(place: int, series: int, name: str) -> Markup:
    x, y = WIDTH - RIGHT + 16, TOP + 10 + 22 * place
    return element(
        "g",
        element(
            "line",
            class_=f"line s{series % SERIES_COLOURS}",
            stroke_dasharray=DASHES[series % len(DASHES)],
            x1=x,
            y1=y,
            x2=x + 30,
            y2=y,
        ),
        _marker(series, x + 15, y, name),
        _text(x + 38, y + 4, _short(name)),
    )


def _share_axis(left: float, right: float, top: float, bottom: float) -> Markup:
    """Lines at every fifth of the height, labelled in percent."""
    y = _scale(bottom, top)
    parts: list[Markup] = []
    for fifth in range(6):
        at = y(fifth / 5)
        parts += [
            element("line", class_="grid", x1=left, y1=at, x2=right, y2=at),
            _text(left - 8, at + 4, f"{fifth * 20}%", anchor="end"),
        ]
    return joined(*parts)


def _interval(x: float, low: float, high: float, series: int) -> Markup:
    return element("line", class_=f"interval s{series % SERIES_COLOURS}", x1=x, y1=low, x2=x, y2=high)


def _marker(series: int, x: float, y: float, label: str) -> Markup:
    shape = MARKERS[series % len(MARKERS)]
    title = element("title", label)
    kind = f"marker s{series % SERIES_COLOURS}"
    if shape == "circle":
        return element("circle", title, class_=kind, cx=x, cy=y, r=4.5)
    return element("path", title, class_=kind, d=" ".join(_outline(shape, x, y)))


def _outline(shape: str, x: float, y: float) -> Iterator[str]:
    corners = {
        "square": ((-4, -4), (4, -4), (4, 4), (-4, 4)),
        "triangle": ((0, -5.5), (5, 4), (-5, 4)),
        "diamond": ((0, -6), (5, 0), (0, 6), (-5, 0)),
        "cross": (
            (-5, -2),
            (-2, -2),
            (-2, -5),
            (2, -5),
            (2, -2),
            (5, -2),
            (5, 2),
            (2, 2),
            (2, 5),
            (-2, 5),
            (-2, 2),
            (-5, 2),
        ),
    }[shape]
    yield "M"
    yield from (f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in corners)
    yield "Z"


def _scale(low: float, high: float) -> Callable[[float], float]:
    """From a share to pixels."""
    return lambda share: low + (high - low) * share


def _rect(x: float, y: float, width: float, height: float, kind: str) -> Markup:
    return element("rect", class_=kind, x=x, y=y, width=width, height=height)


def _text(x: float, y: float, said: str, *, anchor: str = "start") -> Markup:
    return element("text", said, x=x, y=y, text_anchor=anchor)


def _short(name: str, most: int = 18) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"


def _svg(label: str, width: float, height: float, *parts: Markup) -> Markup:
    box = f"0 0 {width:.0f} {height:.0f}"
    return element("svg", *parts, viewBox=box, width=width, role="img", aria_label=label)
