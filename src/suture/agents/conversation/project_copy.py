"""Run an agent's commands in a copy of the project that has everything that the test command has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from suture.agents.tuning import COPY_CPU_CORES
from suture.judge import Suite
from suture.judge.sandbox_programs import make_test_limits
from suture.project.languages import program_environment
from suture.project.workspace import decode_text
from suture.project.workspace.ignored_files import NON_CODE_NAMES
from suture.sandbox import BOX, LIBRARY, ProgramLimits, Sandbox, get_own_interpreter, mounts_for_interpreter
from suture.sandbox.working_copy.copy_run import CopyCommand, CopyRun, FileChanges, run_in_copy

HOST_MEMORY_MB = 1 << 20


HOST_CPU_CORES = 256


HOST_OPEN_FILES = 4096
"""On the host only the wall-clock time limits an agent: these are limits that no machine reaches."""


async def run_in_project_copy(
    suite: Suite,
    line: str,
    files: Mapping[str, bytes],
    timeout_s: float,
    *,
    max_output_bytes: int,
    env: Mapping[str, str] | None = None,
    library_files: Mapping[str, bytes] | None = None,
    host: Sandbox | None = None,
) -> CopyRun:
    """Run a line of `/bin/sh` on a copy of these files (path -> content), where the suite's command would run.

    Args:
        env: Further variables; `{box}` in them stands for the copy's folder.
        library_files: Files for Suture's own folder in the copy: name -> content.
        host: Runs the copy on the host itself, limited only in time. By default it runs in the suite's sandbox.

    Raises:
        SandboxError: The sandbox failed.
    """
    program = suite.command or suite.smoke
    interpreter = program.interpreter if program else get_own_interpreter()
    if host is None:
        limits = make_test_limits(suite.settings, timeout_s, suite.task.language)
        limits = replace(limits, cpu_s=timeout_s * COPY_CPU_CORES)
    else:
        limits = ProgramLimits(
            cpu_s=timeout_s * HOST_CPU_CORES,
            open_files=HOST_OPEN_FILES,
            memory_mb=HOST_MEMORY_MB,
            total_memory_mb=HOST_MEMORY_MB,
            disk_mb=HOST_MEMORY_MB,
            file_mb=HOST_MEMORY_MB,
        )
    library = {f"{LIBRARY}/{name}": content for name, content in (library_files or {}).items()}
    project = {path: content for path, content in files.items() if not path.startswith(f"{LIBRARY}/")}
    command = CopyCommand(
        argv=("/bin/sh", "-c", line),
        files={**project, **library},
        timeout_s=timeout_s,
        env={**program_environment(interpreter, BOX), "PYTHONDONTWRITEBYTECODE": "1", **(env or {})},
        mounts=mounts_for_interpreter(interpreter) if host is None else (),
        limits=limits,
        max_output_bytes=max_output_bytes,
        skip_dirs=tuple(NON_CODE_NAMES),
    )
    return await run_in_copy(command, suite.sandbox if host is None else host)


def select_text_changes(
    changes: FileChanges, files: Mapping[str, bytes]
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return `(texts, left out)`: the changes that a candidate can hold, and the paths of the others, sorted.

    New hidden files, such as an agent's own notes, and files that are not text are left out. `files` is the copy
    before the command.
    """
    texts: dict[str, str] = {}
    left_out = set(changes.left_out)
    for path, content in changes.changed.items():
        is_new_hidden = path not in files and any(part.startswith(".") for part in path.split("/"))
        if is_new_hidden or b"\0" in content:
            left_out.add(path)
        elif path not in files or decode_text(content) != decode_text(files[path]):
            texts[path] = decode_text(content)
    return texts, tuple(sorted(left_out))
