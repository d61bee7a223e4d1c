"""Draw the plots of a section as inline SVG, without a library; colours come from the page's style sheet.

Each arm has its own colour, dash and marker, so that no reader depends on the colour.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from suture.bench.measures.arm_metrics import Ratio, SolvedShare
from suture.bench.measures.calibration import Calibration
from suture.bench.measures.paired_statistics import exact_interval
from suture.bench.reports.markup import Markup, element, joined
from suture.bench.reports.report_summary import CapComparison

WIDTH, HEIGHT = 760.0, 400.0
LEFT, RIGHT, TOP, BOTTOM = 56.0, 170.0, 14.0, 52.0
SPREAD = 60.0
"""Pixels over which the arms of one cap are spread, so that no interval hides another."""
SERIES_COLOURS = 8
"""Number of colours in the style sheet."""
DASHES = ("none", "7 3", "2 3", "9 3 2 3")
MARKERS = ("circle", "square", "triangle", "diamond", "cross")
MARKER_CORNERS: Mapping[str, tuple[tuple[float, float], ...]] = {
    "square": ((-4, -4), (4, -4), (4, 4), (-4, 4)),
    "triangle": ((0, -5.5), (5, 4), (-5, 4)),
    "diamond": ((0, -6), (5, 0), (0, 6), (-5, 0)),
    "cross": (
        (-5, -2), (-2, -2), (-2, -5), (2, -5), (2, -2), (5, -2),
        (5, 2), (2, 2), (2, 5), (-2, 5), (-2, 2), (-5, 2),
    ),
}  # fmt: skip
"""Corners of each marker except the circle, relative to its centre."""
MAX_LABEL_CHARS = 18
"""Characters of a name that fit beside a plot."""


def solved_against_tokens(comparison: CapComparison, series: Mapping[str, int]) -> Markup:
    """Plot the share of solved tasks at each cap with its 95% interval, one line per arm.

    `series` maps each arm to the number that picks its colour, dash and marker.
    """
    inner_width = WIDTH - LEFT - RIGHT
    step = inner_width / len(comparison.caps)
    centres = [LEFT + step * (number + 0.5) for number in range(len(comparison.caps))]
    parts = [_share_axis(LEFT, WIDTH - RIGHT, TOP, HEIGHT - BOTTOM)]
    for centre, tokens in zip(centres, comparison.caps, strict=True):
        parts.append(_text(centre, HEIGHT - BOTTOM + 20, f"{tokens:,}", anchor="middle"))
    axis_title = "generated tokens, at most, on each task"
    parts.append(_text(LEFT + inner_width / 2, HEIGHT - 10, axis_title, anchor="middle"))
    spread = min(SPREAD, step * 0.7)
    count = len(comparison.arms)
    for number, (arm, solved) in enumerate(comparison.arms.items()):
        shift = 0.0 if count == 1 else spread * (number / (count - 1) - 0.5)
        positions = [centre + shift for centre in centres]
        parts += [_arm_line(arm, solved, series[arm], positions), _legend(number, series[arm], arm)]
    return _svg(
        f"Share of tasks solved at {', '.join(map(str, comparison.caps))} generated tokens by "
        f"{', '.join(comparison.arms)}; the tables of solved tasks hold the numbers.",
        WIDTH,
        max(HEIGHT, TOP + 22 * count + 10),
        *parts,
    )


def bars(title: str, series: int, values: Sequence[tuple[str, Ratio]]) -> Markup:
    """Plot (label, ratio) pairs as horizontal bars, with the count in full colour and the total pale."""
    label_width, width, line_height = 130.0, 380.0, 24.0
    scale = (width - label_width - 70) / (max((ratio.of for _, ratio in values), default=0) or 1)
    colour = f"s{series % SERIES_COLOURS}"
    parts = []
    for number, (label, ratio) in enumerate(values):
        y = number * line_height + 4
        parts += [
            _text(label_width - 8, y + 12, _shorten(label), anchor="end"),
            _rect(label_width, y, scale * ratio.of, line_height - 8, f"part {colour}"),
            _rect(label_width, y, scale * ratio.count, line_height - 8, f"full {colour}"),
            _text(label_width + scale * ratio.of + 6, y + 12, f"{ratio.count} of {ratio.of}"),
        ]
    description = "; ".join(f"{label}: {ratio.count} of {ratio.of}" for label, ratio in values)
    height = max(1, len(values)) * line_height + 4
    return _svg(f"{title}: {description or 'nothing'}", width, height, *parts)


def reliability(title: str, series: int, calibration: Calibration) -> Markup:
    """Plot the share of right answers against the mean confidence, one point per bin."""
    size, left, bottom = 300.0, 52.0, 250.0
    right, top = size - 12, 12.0
    x, y = _scale(left, right), _scale(bottom, top)
    parts = [
        _share_axis(left, right, top, bottom),
        # The diagonal of perfect calibration, on which confidence and accuracy are even.
        element("line", class_="even", x1=x(0), y1=y(0), x2=x(1), y2=y(1)),
        *(_text(x(share), bottom + 18, f"{share:.0%}", anchor="middle") for share in (0.0, 0.5, 1.0)),
        _text((left + right) / 2, bottom + 38, "confidence (mean of the bin)", anchor="middle"),
    ]
    descriptions = []
    for bin_ in calibration.bins:
        count, confidence, accuracy = bin_.count, bin_.confidence, bin_.accuracy
        interval = exact_interval(round(accuracy * count), count)
        label = f"{count} runs, confidence {confidence:.0%}, right {accuracy:.0%}"
        parts += [
            _interval(x(confidence), y(interval.low), y(interval.high), series),
            _marker(series, x(confidence), y(accuracy), label),
        ]
        descriptions.append(f"{count} runs at {confidence:.0%}: {accuracy:.0%} right")
    return _svg(f"{title}: {'; '.join(descriptions)}", size, size, *parts)


def _arm_line(
    arm: str, solved: Sequence[SolvedShare | None], series: int, positions: Sequence[float]
) -> Markup:
    y = _scale(HEIGHT - BOTTOM, TOP)
    points, marks = [], []
    for x, result in zip(positions, solved, strict=True):
        if result is None or (share := result.share) is None:
            continue
        # The share is of tasks: one task may have several runs, so the counts need not give the same share.
        counts = f"{result.runs.count} of {result.runs.of} runs"
        label = f"{arm}, {result.tokens:,} tokens: {share.estimate:.1%}, {counts}"
        points.append(f"{x:.1f},{y(share.estimate):.1f}")
        marks.append(_interval(x, y(share.low), y(share.high), series))
        marks.append(_marker(series, x, y(share.estimate), label))
    line = element(
        "polyline",
        class_=f"line s{series % SERIES_COLOURS}",
        stroke_dasharray=DASHES[series % len(DASHES)],
        points=" ".join(points),
    )
    return element("g", line, *marks)


def _legend(line_number: int, series: int, name: str) -> Markup:
    x, y = WIDTH - RIGHT + 16, TOP + 10 + 22 * line_number
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
        _text(x + 38, y + 4, _shorten(name)),
    )


def _share_axis(left: float, right: float, top: float, bottom: float) -> Markup:
    """Return lines at every fifth of the height, labelled in percent."""
    scale = _scale(bottom, top)
    parts: list[Markup] = []
    for fifth in range(6):
        y = scale(fifth / 5)
        parts.append(element("line", class_="grid", x1=left, y1=y, x2=right, y2=y))
        parts.append(_text(left - 8, y + 4, f"{fifth * 20}%", anchor="end"))
    return joined(*parts)


def _interval(x: float, low: float, high: float, series: int) -> Markup:
    return element("line", class_=f"interval s{series % SERIES_COLOURS}", x1=x, y1=low, x2=x, y2=high)


def _marker(series: int, x: float, y: float, label: str) -> Markup:
    shape = MARKERS[series % len(MARKERS)]
    title = element("title", label)
    css_class = f"marker s{series % SERIES_COLOURS}"
    if shape == "circle":
        return element("circle", title, class_=css_class, cx=x, cy=y, r=4.5)
    outline = " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in MARKER_CORNERS[shape])
    return element("path", title, class_=css_class, d=f"M {outline} Z")


def _scale(low: float, high: float) -> Callable[[float], float]:
    """Return the function from a share to pixels."""
    return lambda share: low + (high - low) * share


def _rect(x: float, y: float, width: float, height: float, css_class: str) -> Markup:
    return element("rect", class_=css_class, x=x, y=y, width=width, height=height)


def _text(x: float, y: float, text: str, *, anchor: str = "start") -> Markup:
    return element("text", text, x=x, y=y, text_anchor=anchor)


def _shorten(name: str) -> str:
    return name if len(name) <= MAX_LABEL_CHARS else f"{name[: MAX_LABEL_CHARS - 1]}…"


def _svg(label: str, width: float, height: float, *parts: Markup) -> Markup:
    box = f"0 0 {width:.0f} {height:.0f}"
    return element("svg", *parts, viewBox=box, width=width, role="img", aria_label=label)
