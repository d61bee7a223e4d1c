"""The pictures of the docs, made of the golden screens that a test compares with what commands show.

`python docs/screens.py` writes them anew.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[1]
SCREENS = {"heal": "heal-100.txt", "show": "show-100.txt", "review": "review-100.txt"}
"""A picture, and the golden screen of `tests/interfaces/cli/golden` that it shows."""
LINE_PX, LETTER_PX, MARGIN_PX = 18, 7.8, 16
STEP_S = 0.25
"""Lines come one after the other, as they did; a reader who wants no motion gets them at once."""
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


def picture(screen: str) -> str:
    """A screen as SVG, which loads no font and no script."""
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


def pictures() -> dict[str, str]:
    """Each picture's name -> its content."""
    golden = ROOT / "tests" / "interfaces" / "cli" / "golden"
    return {f"{name}.svg": picture((golden / file).read_text()) for name, file in SCREENS.items()}


if __name__ == "__main__":
    folder = ROOT / "docs" / "screens"
    folder.mkdir(exist_ok=True)
    for name, content in pictures().items():
        (folder / name).write_text(content)
