"""`pytest -p suture.pytest_plugin --heal`: after a run that failed, what a heal would change.

It changes no file. It is no entry point, which every pytest of the environment would load: behind the wall
too, where the source of an editable installation cannot be seen, so that no test there would start.
The heal is a process of its own: what the tests have done to this one does not reach it.
"""

from __future__ import annotations

import os
import shlex
import sys
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pytest

__all__ = ["pytest_addoption", "pytest_terminal_summary"]

FLAG = "--heal"
TESTS_FAILED, INTERRUPTED = 1, 2


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the flag."""
    parser.getgroup("suture").addoption(
        FLAG,
        action="store_true",
        dest="suture_heal",
        help="after a run that failed, print what `suture heal` would change; no model is asked",
    )


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config
) -> None:
    """Heal a copy where tests failed, and print how it went and the diff."""
    if not config.getoption("suture_heal") or not _failed(terminalreporter, exitstatus):
        return
    if refusal := _refusal(config):
        if refusal != BEHIND_THE_WALL:
            terminalreporter.write_line(f"{FLAG}: {refusal}")
        return
    from suture.interfaces.narrative.plain_text import printable

    terminalreporter.section("suture heal")
    for line in _heal(config.rootpath, _command(config)):
        terminalreporter.write_line(printable(line))


def _failed(reporter: pytest.TerminalReporter, exitstatus: int) -> bool:
    """Whether tests failed, or their files could not be imported, which pytest calls an interruption."""
    return exitstatus == TESTS_FAILED or (exitstatus == INTERRUPTED and bool(reporter.stats.get("error")))


BEHIND_THE_WALL = "these tests are Suture's own run of them"


def _refusal(config: pytest.Config) -> str:
    """Why nothing is healed, or nothing."""
    from suture.sandbox.contract import BOX

    # There a project is its process's home. It may have the flag in its own `addopts`, and a heal in a heal
    # would have no end.
    if os.environ.get("HOME") in (BOX, str(config.rootpath)):
        return BEHIND_THE_WALL
    if config.invocation_params.dir != config.rootpath:
        return f"start pytest in {str(config.rootpath)!r}; the whole project is tested on a copy"
    return ""


def _command(config: pytest.Config) -> str:
    """The command that was typed, with what the environment adds, without our own words."""
    started = ["python", "-m", "pytest"] if sys.argv[0].endswith("__main__.py") else ["pytest"]
    words = [*shlex.split(os.environ.get("PYTEST_ADDOPTS", "")), *map(str, config.invocation_params.args)]
    ours = {at for at, word in enumerate(words) if word in (FLAG, f"-p{__name__}")}
    ours |= {at + way for at, two in enumerate(pairwise(words)) if two == ("-p", __name__) for way in (0, 1)}
    return shlex.join([*started, *(word for at, word in enumerate(words) if at not in ours)])


def _heal(project: Path, test: str) -> Iterator[str]:
    """The lines that `suture heal` says, as they come."""
    import subprocess

    command = [*(sys.executable, "-P", "-m", "suture.interfaces.cli", "heal", str(project), "--no-model")]
    command += ["--test", test, "--python", sys.executable]
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment,
        text=True,
        errors="replace",
    ) as heal:
        assert heal.stdout is not None
        for line in heal.stdout:
            yield line.rstrip("\n")
