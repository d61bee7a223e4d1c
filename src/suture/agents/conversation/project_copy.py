"""A copy of the project in which an agent's commands run, with everything that the test command has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from suture.agents.tuning import COPY_CPU_CORES
from suture.core.records import Task
from suture.core.settings import SandboxSettings
from suture.judge import Suite
from suture.judge.sandbox_programs import make_test_limits
from suture.project.languages import Interpreter, program_environment
from suture.project.workspace import decode_text
from suture.project.workspace.ignored_files import NON_CODE_NAMES
from suture.sandbox import BOX, LIBRARY, ProgramLimits, Sandbox, get_own_interpreter, mounts_for_interpreter
from suture.sandbox.working_copy.copy_run import CopyCommand, CopyRun, FileChanges, run_in_copy

HOST_MEMORY_MB = 1 << 20
HOST_CPU_CORES = 256
HOST_OPEN_FILES = 4096
"""On the host only the wall-clock time limits an agent: these are limits that no machine reaches."""


@dataclass(frozen=True, kw_only=True)
class ProjectCopy:
    """Where an agent's commands run.

    Attributes:
        settings: The limits of the sandbox.
        interpreter: The program that `python` means in the copy.
        on_host: Whether the copy is on the host, without a sandbox and limited only in time.
    """

    task: Task
    sandbox: Sandbox
    settings: SandboxSettings
    interpreter: Interpreter
    on_host: bool = False

    @classmethod
    def for_suite(cls, suite: Suite) -> ProjectCopy:
        """Return a copy in which the suite's own command would run."""
        program = suite.command or suite.smoke
        interpreter = program.interpreter if program else get_own_interpreter()
        return cls(task=suite.task, sandbox=suite.sandbox, settings=suite.settings, interpreter=interpreter)

    async def run(
        self,
        line: str,
        files: Mapping[str, bytes],
        timeout_s: float,
        *,
        env: Mapping[str, str] | None = None,
        library_files: Mapping[str, bytes] | None = None,
        max_output_bytes: int = 16 << 10,
    ) -> CopyRun:
        """Run a line of `/bin/sh` on a copy of these files (path -> content).

        Args:
            env: Further variables; `{box}` in them stands for the copy's folder.
            library_files: Files for Suture's own folder in the copy: name -> content.

        Raises:
            SandboxError: The sandbox failed.
        """
        library = {f"{LIBRARY}/{name}": content for name, content in (library_files or {}).items()}
        project = {path: content for path, content in files.items() if not path.startswith(f"{LIBRARY}/")}
        command = CopyCommand(
            argv=("/bin/sh", "-c", line),
            files={**project, **library},
            timeout_s=timeout_s,
            env={**program_environment(self.interpreter, BOX), "PYTHONDONTWRITEBYTECODE": "1", **(env or {})},
            mounts=() if self.on_host else mounts_for_interpreter(self.interpreter),
            limits=self._limits(timeout_s),
            max_output_bytes=max_output_bytes,
            skip_dirs=tuple(NON_CODE_NAMES),
        )
        return await run_in_copy(command, self.sandbox)

    def _limits(self, timeout_s: float) -> ProgramLimits:
        if not self.on_host:
            limits = make_test_limits(self.settings, timeout_s, self.task.language)
            return replace(limits, cpu_s=timeout_s * COPY_CPU_CORES)
        return ProgramLimits(
            cpu_s=timeout_s * HOST_CPU_CORES,
            open_files=HOST_OPEN_FILES,
            memory_mb=HOST_MEMORY_MB,
            total_memory_mb=HOST_MEMORY_MB,
            disk_mb=HOST_MEMORY_MB,
            file_mb=HOST_MEMORY_MB,
        )


def select_text_changes(
    changes: FileChanges, files: Mapping[str, bytes]
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return `(texts, left out)`: the changes that a candidate can hold, and the paths of the others, sorted.

    New hidden files, such as an agent's own notes, and files that are not text are left out.

    Args:
        files: The copy before the command: path -> content.
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
