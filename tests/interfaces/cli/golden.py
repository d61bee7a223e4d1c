"""Golden screens: what four commands show on real terminals of 60 and 100 columns.

`python tests/interfaces/cli/golden.py [NAME]` writes the golden files; review the difference before
you commit it.
Each screen comes from a terminal emulator, so it is what a person sees in the end: progress lines that were
erased are gone, and long lines are wrapped where a terminal wraps them.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyte

sys.path.insert(0, str(Path(__file__).parents[2]))

from interfaces.cli.real_terminal import Terminal

ROOT = Path(__file__).parents[3]
GOLDEN = Path(__file__).parent / "golden"
COLUMNS = (60, 100)
ROWS = 400
GENEROUS_LIMITS = {
    "SUTURE_CERTIFICATION_SECONDS": "240",
    "SUTURE_SANDBOX_CHECK_TIMEOUT_S": "120",
    "SUTURE_SANDBOX_TEST_TIMEOUT_S": "240",
}
"""Limits that even a busy machine does not reach, so that no screen depends on timing."""
TASK = "Write a function double(n) that doubles a number. For example: double(4) == 8"
CORRECT_REPLY = "```python\ndef double(n):\n    return 2 * n\n```"
WRONG_REPLY = "```python\ndef double(n):\n    return n + 2\n```"

ENVIRONMENT = {"PATH": os.environ["PATH"], "NO_COLOR": "1", "SUTURE_REPAIR_ENABLED": "false"}
"""The environment of scenes that no test plays."""
IDENTITY = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")

Step = tuple[Sequence[str], Sequence[tuple[str, str]]]
"""The arguments of a command, and pairs of a text to wait for and the input to type then."""


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A sequence of commands in a folder with the broken example."""

    name: str
    steps: Sequence[Step]
    first_step: int = 0
    """The first step whose screen is in the golden file; earlier steps are preparation."""
    environ: Mapping[str, str] = field(default_factory=dict)
    is_repository: bool = False
    """Whether the folder is a Git repository with one commit."""


WRITE_STEP: Step = (("run", TASK, "--model", "scripted:right.json"), ())
SCENES = (
    Scene(
        name="heal",
        steps=((("heal", "--no-model"), ()), (("apply",), ()), (("judge",), ()), (("undo",), ())),
        environ={"SUTURE_REPAIR_ENABLED": "true", "SUTURE_REPAIR_SECONDS": "240"},
        is_repository=True,
    ),
    Scene(
        name="stuck",
        steps=((("run", TASK, "--model", "scripted:wrong.json", "--recipe", "always_repair"), ()),),
    ),
    Scene(
        name="review",
        steps=(
            (
                (*WRITE_STEP[0], "--autonomy", "review_all"),
                (("fresh candidate? [y/N]", "y\n"), ("Accept", "y\n")),
            ),
        ),
    ),
    Scene(name="show", steps=(WRITE_STEP, (("show",), ())), first_step=1),
)


def play(scene: Scene, columns: int, environ: dict[str, str], cache: Path | None = None) -> str:
    """Run a scene and return its screens.

    Args:
        scene: The scene.
        columns: The width of the terminal.
        environ: The environment of the commands.
        cache: The initial contents of Suture's cache.
    """
    # The path has the same length on every machine, so that lines wrap at the same places.
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name) / "cart"
        shutil.copytree(
            ROOT / "examples" / "broken", folder, ignore=shutil.ignore_patterns("__pycache__", ".*")
        )
        if cache is not None:
            shutil.copytree(cache, f"{name}/cache")
        (folder / "right.json").write_text(json.dumps([CORRECT_REPLY]))
        (folder / "wrong.json").write_text(json.dumps([WRONG_REPLY] * 12))
        command_environ = {
            **environ,
            **GENEROUS_LIMITS,
            **scene.environ,
            "HOME": name,
            "SUTURE_HOME": f"{name}/home",
            "SUTURE_PATHS_CACHE": f"{name}/cache",
        }
        if scene.is_repository:
            make_repository(folder)
        screens = []
        for arguments, inputs in scene.steps:
            terminal = Terminal(list(arguments), command_environ, folder, columns=columns, patience_s=280)
            for awaited_text, text in inputs:
                terminal.wait_for(awaited_text)
                terminal.type(text)
            terminal.end()
            command = " ".join(f'"{word}"' if " " in word else word for word in arguments)
            screens.append(f"$ suture {command}\n{render_screen(terminal.screen, columns)}\n")
        return "\n".join(screens[scene.first_step :])


def render_screen(output: str, columns: int) -> str:
    """Return what a terminal shows after it has received this text."""
    screen = pyte.Screen(columns, ROWS)
    pyte.Stream(screen).feed(output)
    return "\n".join(line.rstrip() for line in screen.display).rstrip()


def make_repository(folder: Path) -> None:
    """Make the folder a Git repository with one commit."""
    for command in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "A shop")):
        subprocess.run(["git", *IDENTITY, *command], cwd=folder, check=True)


def stabilize(text: str) -> str:
    """Replace everything that differs between runs by text of the same length."""
    for pattern, replacement in REPLACEMENTS:
        text = re.sub(pattern, replacement, text)
    return text


def replace_digits(match: re.Match[str]) -> str:
    """Return the number with every digit replaced by zero."""
    return re.sub(r"[0-9a-f]", "0", match[0])


REPLACEMENTS: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (r"\d{8}-\d{9}-[0-9a-f]{6}", replace_digits),
    (r"\b[0-9a-f]{8,64}\b", replace_digits),
    (r"\b\d{4}-\d\d-\d\d\b", replace_digits),
    (r"\b\d\d:\d\d\b", replace_digits),
    (r"\b\d+(\.\d+)?( of \d+)? s\b", "N s"),
    (r"\bamong [\d,]+ edits", "among N edits"),
    (r"/tmp/tmp\w{8}", "/tmp/folder_____"),
    (r"(?s)Python\s+is\s.*?\n(?=checked )", "Python is PYTHON\n"),
)


def scenes() -> Iterator[tuple[Scene, int]]:
    """Yield every scene at every width."""
    yield from ((scene, columns) for scene in SCENES for columns in COLUMNS)


def golden_file(scene: Scene, columns: int) -> Path:
    """Return the golden file of a scene."""
    return GOLDEN / f"{scene.name}-{columns}.txt"


if __name__ == "__main__":
    names = sys.argv[1:]
    for scene, columns in scenes():
        if not names or scene.name in names:
            golden_file(scene, columns).write_text(stabilize(play(scene, columns, ENVIRONMENT)))
            print(golden_file(scene, columns))
