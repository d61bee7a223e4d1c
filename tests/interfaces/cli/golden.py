"""What a person sees of eight commands, on real terminals of 60 and 100 columns.

`python tests/interfaces/cli/golden.py [NAME]` writes the golden files anew; read the difference before it is committed.
Each screen is that of a terminal emulator, so what it shows is what a person sees: moving lines are gone,
and what was too long is wrapped where a terminal would wrap it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyte

sys.path.insert(0, str(Path(__file__).parents[2]))

from interfaces.cli.terminals import Terminal

ROOT = Path(__file__).parents[3]
GOLDEN = Path(__file__).parent / "golden"
COLUMNS = (60, 100)
ROWS = 400
PYTEST = "python -m pytest -q"
NO_MODEL = ("--no-model", "--set", "repair.enabled=true", "--set", "repair.seconds=240")
NO_HURRY = {
    "SUTURE_CERTIFICATION_SECONDS": "240",
    "SUTURE_SANDBOX_CHECK_TIMEOUT_S": "120",
    "SUTURE_SANDBOX_TEST_TIMEOUT_S": "240",
}
"""Limits that no machine reaches, however busy: what a screen says must not hang on seconds."""
TASK = "Write a function double(n) that doubles a number. For example: double(4) == 8"
RIGHT = "```python\ndef double(n):\n    return 2 * n\n```"
WRONG = "```python\ndef double(n):\n    return n + 2\n```"

Step = tuple[Sequence[str], Sequence[tuple[str, str]]]
"""Arguments, and what is typed after which words."""


@dataclass(frozen=True, kw_only=True)
class Scene:
    """Commands in a row, in a folder with the broken example."""

    name: str
    steps: Sequence[Step]
    shown: int = 0
    """From which step on the screen is kept; what comes before only prepares."""


HEAL: Step = (("heal", ".", "--test", PYTEST, *NO_MODEL), ())
WRITE: Step = (("run", TASK, "--model", "scripted:right.json"), ())
SCENES = (
    Scene(name="heal", steps=(HEAL, (("apply",), ()), (("undo",), ()))),
    Scene(name="heal-verbose", steps=(((*HEAL[0], "--verbose"), ()),)),
    Scene(name="write", steps=(WRITE,)),
    Scene(
        name="stuck",
        steps=((("run", TASK, "--model", "scripted:wrong.json", "--recipe", "always_repair"), ()),),
    ),
    Scene(
        name="review",
        steps=(
            ((*WRITE[0], "--autonomy", "review_all"), (("fresh candidate? [y/N]", "y\n"), ("Accept", "y\n"))),
        ),
    ),
    Scene(name="show", steps=(WRITE, (("show",), ())), shown=1),
    Scene(name="history", steps=(WRITE, WRITE, (("history",), ()), (("show", "--list"), ())), shown=2),
    Scene(
        name="lists",
        steps=(
            (("models", "list"), ()),
            (("recipes", "list"), ()),
            (("show", "nobody"), ()),
            (("heal", "--tset", "x"), ()),
        ),
    ),
)


def play(scene: Scene, columns: int, environ: dict[str, str], cache: Path | None = None) -> str:
    """The screens of a scene, one under the other, with what differs from time to time replaced.

    Args:
        scene: What is typed.
        columns: How wide the terminal is.
        environ: Of the commands.
        cache: What Suture's cache holds before.
    """
    with tempfile.TemporaryDirectory(dir="/tmp") as name:  # a path of the same length everywhere
        folder = Path(name) / "cart"
        shutil.copytree(
            ROOT / "examples" / "broken", folder, ignore=shutil.ignore_patterns("__pycache__", ".*")
        )
        if cache is not None:
            shutil.copytree(cache, f"{name}/cache")
        (folder / "right.json").write_text(json.dumps([RIGHT]))
        (folder / "wrong.json").write_text(json.dumps([WRONG] * 12))
        own = {
            **environ,
            **NO_HURRY,
            "HOME": name,
            "SUTURE_HOME": f"{name}/home",
            "SUTURE_PATHS_CACHE": f"{name}/cache",
        }
        screens = []
        for arguments, typed in scene.steps:
            terminal = Terminal(list(arguments), own, folder, columns=columns, patience_s=280)
            for words, text in typed:
                terminal.wait_for(words)
                terminal.type(text)
            terminal.end()
            said = " ".join(f'"{word}"' if " " in word else word for word in arguments)
            screens.append(f"$ suture {said}\n{steady(on_screen(terminal.screen, columns), Path(name))}\n")
        return "\n".join(screens[scene.shown :])


def on_screen(sent: str, columns: int) -> str:
    """What a terminal shows after it was sent a text."""
    screen = pyte.Screen(columns, ROWS)
    pyte.Stream(screen).feed(sent)
    return "\n".join(line.rstrip() for line in screen.display).rstrip()


def steady(text: str, folder: Path) -> str:
    """A screen without what differs from run to run: each such thing is replaced by one of its length."""
    for pattern, instead in STEADY:
        text = re.sub(pattern, instead, text)
    return text.replace(str(folder), same_length("/tmp/folder", str(folder)))


def same_length(text: str, as_long_as: str) -> str:
    """A text made as long as another one, so that lines break where they did."""
    return text.ljust(len(as_long_as), "_")[: len(as_long_as)]


def zeros(found: re.Match[str]) -> str:
    """The same number, all of zeros."""
    return re.sub(r"[0-9a-f]", "0", found[0])


STEADY: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (r"\d{8}-\d{9}-[0-9a-f]{6}", zeros),
    (r"\b[0-9a-f]{8,64}\b", zeros),
    (r"\b\d{4}-\d\d-\d\d\b", zeros),
    (r"\b\d\d:\d\d\b", zeros),
    (r"\b\d+(\.\d+)?( of \d+)? s\b", "N s"),
    (r"\b\d+ edits", "N edits"),
    (r"(?s)python\s+is\s.*?\n(?=checked )", "python is PYTHON\n"),
)


def scenes() -> Iterator[tuple[Scene, int]]:
    """Every scene at every width."""
    yield from ((scene, columns) for scene in SCENES for columns in COLUMNS)


def golden_file(scene: Scene, columns: int) -> Path:
    """Where the screen of a scene is kept."""
    return GOLDEN / f"{scene.name}-{columns}.txt"


if __name__ == "__main__":
    wanted = sys.argv[1:]
    environment = {"PATH": os.environ["PATH"], "NO_COLOR": "1", "SUTURE_REPAIR_ENABLED": "false"}
    for one, width in scenes():
        if not wanted or one.name in wanted:
            golden_file(one, width).write_text(play(one, width, environment))
            print(golden_file(one, width))
