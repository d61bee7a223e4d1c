"""`pytest -p suture.pytest_plugin --heal`: after a failed test run, show how a heal would fix it.

The plugin changes no file. It is not an entry point, because every pytest of the environment would load that,
including the one inside the sandbox, where the source of an editable installation is not visible. The heal
runs in its own process, so that it is not affected by what the tests did to this one.
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
"""Exit codes of pytest."""
INSIDE_SUTURE_RUN = "these tests are Suture's own run of them"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the flag."""
    parser.getgroup("suture").addoption(
        FLAG,
        action="store_true",
        dest="suture_heal",
        help="after a failed test run, print how `suture heal` would fix it; uses no model",
    )


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config
) -> None:
    """Heal a copy of the project if tests failed, and print the result and the diff."""
    if not config.getoption("suture_heal") or not _has_failures(terminalreporter, exitstatus):
        return
    if refusal := _refusal_reason(config):
        if refusal != INSIDE_SUTURE_RUN:
            terminalreporter.write_line(f"{FLAG}: {refusal}")
        return
    from suture.interfaces.narrative.plain_text import escape_unprintable

    terminalreporter.section("suture heal")
    for line in _heal_output(config.rootpath, _original_command(config)):
        terminalreporter.write_line(escape_unprintable(line))


def _has_failures(reporter: pytest.TerminalReporter, exitstatus: int) -> bool:
    """Return whether tests failed or could not be imported, which pytest reports as an interruption."""
    return exitstatus == TESTS_FAILED or (exitstatus == INTERRUPTED and bool(reporter.stats.get("error")))


def _refusal_reason(config: pytest.Config) -> str:
    """Return why no heal is started, or an empty string."""
    from suture.sandbox.contract import BOX

    # Inside the sandbox the project is the home folder. The project's own `addopts` can contain the flag, and a
    # heal inside a heal would never end.
    if os.environ.get("HOME") in (BOX, str(config.rootpath)):
        return INSIDE_SUTURE_RUN
    if config.invocation_params.dir != config.rootpath:
        return f"start pytest in {str(config.rootpath)!r}: the heal tests a copy of the whole project"
    return ""


def _original_command(config: pytest.Config) -> str:
    """Return the test command as typed, with what the environment adds and without the plugin's options."""
    started = ["python", "-m", "pytest"] if sys.argv[0].endswith("__main__.py") else ["pytest"]
    words = [*shlex.split(os.environ.get("PYTEST_ADDOPTS", "")), *map(str, config.invocation_params.args)]
    plugin_indices = {index for index, word in enumerate(words) if word in (FLAG, f"-p{__name__}")}
    for index, pair in enumerate(pairwise(words)):
        if pair == ("-p", __name__):
            plugin_indices |= {index, index + 1}
    return shlex.join([*started, *(word for index, word in enumerate(words) if index not in plugin_indices)])


def _heal_output(project: Path, test: str) -> Iterator[str]:
    """Yield the output lines of `suture heal` as they come."""
    import subprocess

    command = [sys.executable, "-P", "-m", "suture.interfaces.cli", "heal", str(project), "--no-model"]
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
