"""Generated documentation is current, its code runs, and its commands and links exist."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from suture.interfaces.cli.app import app
from write_pages import PAGES

ROOT = Path(__file__).parents[3]
PAGES_WITH_CODE = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
)
MAKE_TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def find_code_blocks(text: str, language: str) -> list[str]:
    """Return the code blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def find_command_lines() -> Iterator[tuple[str, str]]:
    """Yield each line of a code block that calls `suture` or `make`, with the path of its page."""
    for page in PAGES_WITH_CODE:
        text = page.read_text()
        lines = re.findall(r"^ {4,}(.+)$", text, re.MULTILINE)
        lines += [
            line
            for block in find_code_blocks(text, "(?:sh|bash|shell|console)")
            for line in block.splitlines()
        ]
        for line in (line.strip() for line in lines):
            if re.match(r"(?:suture|make) ", line):
                yield str(page.relative_to(ROOT)), line


def find_stray_commands(text: str) -> list[str]:
    """Return the lines outside of code blocks where a paragraph, or the text after a colon, is a command.

    A line of prose may start with `pytest` or `python` after a line break.
    """
    text = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.MULTILINE | re.DOTALL)
    start = r"(?:\A|\n\n {0,3}|\n {4,}.*\n {0,3}|:\n *)"
    return re.findall(start + r"((?:\$ )?(?:suture|python|pip|pytest) .*)", text)


@pytest.mark.parametrize("name", sorted(PAGES))
def test_generated_pages_are_current(name: str) -> None:
    assert (ROOT / "docs" / name).read_text() == PAGES[name](), "run `python tests/write_pages.py`"


@pytest.mark.parametrize(
    ("page", "code"),
    [
        (str(page.relative_to(ROOT)), code)
        for page in PAGES_WITH_CODE
        for code in find_code_blocks(page.read_text(), "python")
    ],
)
def test_python_code_in_the_documentation_runs(page: str, code: str, tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=tmp_path,
        env={**os.environ, "SUTURE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert result.returncode == 0, f"{page}:\n{result.stderr}"


@pytest.mark.parametrize("page", PAGES_WITH_CODE, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_in_the_documentation_are_in_code_blocks(page: Path) -> None:
    assert find_stray_commands(page.read_text()) == []


@pytest.mark.parametrize(
    "page",
    [
        "Repair it:\n\n    suture heal\n    suture undo\n",
        "Repair it:\n\n```sh\nsuture heal\nsuture undo\n```\n",
        "- Repair it:\n\n  ```text\n  $ suture heal\n  $ suture undo\n  ```\n",
    ],
)
def test_a_command_outside_of_its_code_block_is_found(page: str) -> None:
    lines = page.splitlines(keepends=True)
    assert find_stray_commands(page + "\nUnder\npytest all is well.\n") == []
    for number in (number for number, line in enumerate(lines) if "suture" in line):
        unindented = [*lines[:number], lines[number].lstrip(), *lines[number + 1 :]]
        without_fences = [line for line in unindented if "```" not in line]
        assert find_stray_commands("".join(without_fences)), without_fences


@pytest.mark.parametrize(("page", "line"), sorted(set(find_command_lines())))
def test_commands_in_the_documentation_exist(page: str, line: str) -> None:
    program, *words = shlex.split(line.partition(" <")[0], comments=True)
    if program == "make":
        assert set(words) <= MAKE_TARGETS
        return
    command: Any = typer.main.get_command(app)
    while words and hasattr(command, "commands"):
        name = words.pop(0)
        if name.startswith("-"):
            words.insert(0, name)
            break
        assert name in command.commands, f"{page}: {line}"
        command = command.commands[name]

    known_options = {option for param in command.params for option in param.opts} | {"--help", "-h"}

    assert {word for word in words if word.startswith("--")} <= known_options, f"{page}: {line}"


@pytest.mark.parametrize("page", PAGES_WITH_CODE, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_in_the_documentation_exist(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        assert "://" in target or (page.parent / target).exists(), target
