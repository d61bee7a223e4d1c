"""Draw the rows of `suite_sizes.py` as SVG: CPU seconds by the number of tests, both axes logarithmic.

python benchmarks/suite_plot.py --rows suite_sizes.jsonl --out docs/suite_sizes.svg
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from math import log10
from pathlib import Path

from row_files import read_rows
from script_exit import run_script
from suite_sizes import Row

LINES = {
    "heal_cpu_s": ("whole heal", "#f7768e"),
    "baseline_cpu_s": ("first run, in the sandbox", "#9ece6a"),
    "plain_first_cpu_s": ("plain pytest, no bytecode", "#7aa2f7"),
}
"""A field of the rows -> its label and colour."""
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 320, 60, 610, 30, 270
"""Pixels of the picture, and of the edges of its axes."""
SECONDS = (0.1, 1, 10, 100, 1000)


def draw_plot(rows: Sequence[Row]) -> str:
    """Return a picture with a line for each kind of run, which loads no font and no script."""
    counts = sorted({row.tests for row in rows})
    step_x = (RIGHT - LEFT) / max(log10(counts[-1] / counts[0]), 1)
    step_y = (BOTTOM - TOP) / log10(SECONDS[-1] / SECONDS[0])
    columns = {count: round(LEFT + step_x * log10(count / counts[0])) for count in counts}
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}">',
        "<style>text { font: 13px system-ui, sans-serif; fill: #c0caf5; }</style>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="8" fill="#1a1b26"/>',
        f'<text x="{LEFT}" y="{HEIGHT - 12}">tests</text><text x="8" y="18">CPU seconds</text>',
    ]
    for seconds in SECONDS:
        y = round(BOTTOM - step_y * log10(seconds / SECONDS[0]))
        parts.append(f'<path d="M{LEFT} {y}H{RIGHT}" stroke="#3b4261"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4}" text-anchor="end">{seconds:g}</text>')
    parts += [
        f'<text x="{x}" y="{BOTTOM + 18}" text-anchor="middle">{count:,}</text>'
        for count, x in columns.items()
    ]
    for place, (field, (label, colour)) in enumerate(LINES.items()):
        values = [(row.tests, max(getattr(row, field), SECONDS[0])) for row in rows]
        points = [f"{columns[n]},{BOTTOM - step_y * log10(s / SECONDS[0]):.0f}" for n, s in sorted(values)]
        parts.append(
            f'<polyline points="{" ".join(points)}" fill="none" stroke="{colour}" stroke-width="2"/>'
        )
        parts.append(
            f'<text x="{LEFT + 12}" y="{TOP + 18 * place + 20}" style="fill: {colour}">{label}</text>'
        )
    return "\n".join([*parts, "</svg>", ""])


def main() -> None:
    """Draw the rows of a file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=Path, default=Path("suite_sizes.jsonl"))
    parser.add_argument("--out", type=Path, required=True)
    wanted = parser.parse_args()
    wanted.out.write_text(draw_plot(read_rows(wanted.rows, Row)), "utf-8")


if __name__ == "__main__":
    sys.exit(run_script(main))
