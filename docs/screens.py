"""The picture of the README and the docs: a recording of real commands.

`python docs/screens.py` plays the scene again and draws it. A test fails if the commands print something else today.
"""

from __future__ import annotations

import sys
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from interfaces.cli.golden import ENVIRONMENT, SCENES, play  # noqa: E402

SCENE, COLUMNS = "heal", 100
LINE_PX, LETTER_PX, MARGIN_PX = 18, 7.8, 16
STEP_S = 0.25
"""Seconds between two lines. A reader who wants no motion gets all lines at once."""
COLOURS = (
    ("$ ", "#7aa2f7"),
    ("+++", "#9aa5ce"),
    ("---", "#9aa5ce"),
    ("+", "#9ece6a"),
    ("-", "#f7768e"),
    ("@@", "#7dcfff"),
)
STYLE = """
text { font: 13px ui-monospace, Menlo, Consolas, monospace; fill: #c0caf5; white-space: pre; opacity: 0;
  animation: shown 0.01s forwards; }
@keyframes shown { to { opacity: 1; } }
@media (prefers-reduced-motion: reduce) { text { opacity: 1; animation: none; } }
"""


def draw_screen(screen: str) -> str:
    """Return a screen as SVG, which loads no font and no script."""
    lines = screen.rstrip("\n").splitlines()
    width = 2 * MARGIN_PX + round(LETTER_PX * max(map(len, lines)))
    height = 2 * MARGIN_PX + LINE_PX * len(lines)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
        f' width="{width}" height="{height}">',
        f"<style>{STYLE}</style>",
        f'<rect width="{width}" height="{height}" rx="8" fill="#1a1b26"/>',
    ]
    for number, line in enumerate(lines):
        colour = next((found for start, found in COLOURS if line.startswith(start)), "")
        style = f"animation-delay: {number * STEP_S:.2f}s" + (f"; fill: {colour}" if colour else "")
        y = MARGIN_PX + LINE_PX * (number + 1) - 5
        parts.append(
            f'<text x="{MARGIN_PX}" y="{y}" style="{style}" xml:space="preserve">{escape(line)}</text>'
        )
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    scene = next(scene for scene in SCENES if scene.name == SCENE)
    picture = draw_screen(play(scene, COLUMNS, ENVIRONMENT))
    (ROOT / "docs" / "screens" / f"{SCENE}.svg").write_text(picture)
