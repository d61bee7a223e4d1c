"""Processes start only where the architecture says so; everything else goes through the sandbox."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from architecture.source_imports import SOURCE, source_files

STARTS_A_PROCESS = (
    "asyncio.create_subprocess_exec",
    "asyncio.create_subprocess_shell",
    "asyncio.subprocess",
    "concurrent.futures.ProcessPoolExecutor",
    "concurrent.futures.process",
    "multiprocessing",
    "os.exec",
    "os.fork",
    "os.popen",
    "os.posix_spawn",
    "os.spawn",
    "os.system",
    "pty",
    "subprocess",
)
"""Modules and functions that start a process, as prefixes of dotted names."""
EVENT_LOOP_METHODS = ("subprocess_exec", "subprocess_shell")
"""Methods of an event loop that start a process, whatever the loop's variable is called."""

ON_THE_HOST = (
    "src/suture/sandbox/",
    "src/suture/models/",
    "src/suture/project/workspace/git.py",
    "src/suture/interfaces/jobs/",
    "src/suture/interfaces/cli/repair/review_command.py",  # the user's own editor, on their own terminal
    "src/suture/pytest_plugin.py",  # our own command line, in a process that the tests have not changed
)
INSIDE_THE_SANDBOX = (
    "src/suture/judge/runners/go_build_cache_program.py",
    "src/suture/judge/runners/report_plugin/",
    "src/suture/judge/smoke/smoke_program.py",
    "src/suture/judge/split/judge_program.py",
    "src/suture/judge/trials/inside/",
    "src/suture/judge/trials/drivers/go_trials.py",
)
"""Programs that are copied into the sandbox and start their processes there."""
ALLOWED = (*ON_THE_HOST, *INSIDE_THE_SANDBOX)


def find_process_starts(source: Path) -> list[str]:
    """Return every use of a process-starting function outside of the allowed places."""
    starts = []
    for file in source_files(source):
        if f"src/suture/{file.path}".startswith(ALLOWED):
            continue
        starts += [
            f"{file.path}:{line}: {name}" for line, name in file.imported_names if starts_process(name)
        ]
        starts += [
            f"{file.path}:{node.lineno}: {node.attr}"
            for node in file.nodes
            if isinstance(node, ast.Attribute) and node.attr in EVENT_LOOP_METHODS
        ]
    return starts


def starts_process(name: str) -> bool:
    return any(f"{name}.".startswith(f"{known}.") for known in STARTS_A_PROCESS) or name.startswith(
        ("os.exec", "os.spawn", "os.posix_spawn")
    )


def test_processes_start_only_where_allowed() -> None:
    assert find_process_starts(SOURCE) == []


def test_every_allowed_place_exists() -> None:
    root = SOURCE.parents[1]
    assert [place for place in ALLOWED if not (root / place).exists()] == []


@pytest.mark.parametrize(
    "code",
    [
        "import subprocess",
        "from subprocess import run",
        "import os\nos.fork()",
        "import os as o\no.execvp('a', ['a'])",
        "from os import posix_spawn",
        "import asyncio\nasyncio.create_subprocess_exec('a')",
        "import asyncio\nasyncio.get_running_loop().subprocess_exec(p, 'a')",
        "import concurrent.futures\nconcurrent.futures.ProcessPoolExecutor()",
    ],
)
def test_a_process_start_is_found(tmp_path: Path, code: str) -> None:
    (tmp_path / "x.py").write_text(f"{code}\n")
    assert find_process_starts(tmp_path)
