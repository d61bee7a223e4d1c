"""A copy of the project in which an agent's commands run, with all that the tests' own command has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from suture.core.records import Task
from suture.core.settings import SandboxSettings
from suture.judge import Suite
from suture.judge.sandbox_programs import make_test_limits
from suture.project.languages import Interpreter, program_environment
from suture.project.workspace import text_of
from suture.project.workspace.ignored_files import NEVER_CODE
from suture.sandbox import BOX, LIBRARY, ProgramLimits, Sandbox, get_own_interpreter, mounts_for_interpreter
from suture.sandbox.working_copy.copy_run import Changes, CopyCommand, CopyRun, run_in_copy

CORES = 4
"""CPU seconds that each process may use for each of its wall-clock seconds."""
HOST_MB = 1 << 20
"""A terabyte: no limit in effect."""
HOST_CORES = 256
"""No limit in effect: an agent on the host is held by its seconds alone, and no machine has more cores."""
HOST_FILES = 4096
"""On this machine itself, where the wall-clock seconds are the limit: memory and CPU are as good as free."""


@dataclass(frozen=True, kw_only=True)
class ProjectCopy:
    """Where an agent's commands run.

    Attributes:
        task: Whose files they are.
        sandbox: The wall.
        settings: Its limits.
        interpreter: What `python` means there.
        on_host: Whether there is no wall, and no limit but that of time.
    """

    task: Task
    sandbox: Sandbox
    settings: SandboxSettings
    interpreter: Interpreter
    on_host: bool = False

    @classmethod
    def of(cls, suite: Suite) -> ProjectCopy:
        """The one in which a suite's command would run."""
        started = suite.command or suite.smoke
        interpreter = started.interpreter if started else get_own_interpreter()
        return cls(task=suite.task, sandbox=suite.sandbox, settings=suite.settings, interpreter=interpreter)

    async def run(
        self,
        line: str,
        files: Mapping[str, bytes],
        seconds: float,
        *,
        env: Mapping[str, str] | None = None,
        beside: Mapping[str, bytes] | None = None,
        keep_bytes: int = 16 << 10,
    ) -> CopyRun:
        """Run a line of `/bin/sh` on a copy of these files.

        Args:
            line: What the shell gets.
            files: The copy: path -> content.
            seconds: The most wall-clock seconds.
            env: Further variables; `{box}` in them is the copy's folder.
            beside: Files of ours: name in our own folder -> content.
            keep_bytes: The most that is kept of what it prints.

        Raises:
            SandboxError: The wall failed.
        """
        laid = {f"{LIBRARY}/{name}": content for name, content in (beside or {}).items()}
        project = {path: content for path, content in files.items() if not path.startswith(f"{LIBRARY}/")}
        command = CopyCommand(
            argv=("/bin/sh", "-c", line),
            files={**project, **laid},
            seconds=seconds,
            env={**program_environment(self.interpreter, BOX), "PYTHONDONTWRITEBYTECODE": "1", **(env or {})},
            mounts=() if self.on_host else mounts_for_interpreter(self.interpreter),
            limits=self._limits(seconds),
            keep_bytes=keep_bytes,
            skip=tuple(NEVER_CODE),
        )
        return await run_in_copy(command, self.sandbox)

    def outside(self, host: Sandbox) -> ProjectCopy:
        """The same copy on the machine itself."""
        return replace(self, sandbox=host, on_host=True)

    def _limits(self, seconds: float) -> ProgramLimits:
        if self.on_host:
            most = {"memory_mb": HOST_MB, "total_memory_mb": HOST_MB, "disk_mb": HOST_MB, "file_mb": HOST_MB}
            return ProgramLimits(cpu_s=seconds * HOST_CORES, open_files=HOST_FILES, **most)
        limits = make_test_limits(self.settings, seconds, self.task.language)
        return replace(limits, cpu_s=seconds * CORES)


def changed_texts(changes: Changes, files: Mapping[str, bytes]) -> tuple[dict[str, str], tuple[str, ...]]:
    """What a candidate is made of, and the paths that are no part of it.

    Left out are new files that are hidden or lie in a hidden folder, such as an agent's own notes, and those
    that are no text.

    Args:
        changes: What a command did.
        files: The copy as it was: path -> content.

    Returns:
        Path -> text, and the paths of what was left out, sorted.
    """
    texts: dict[str, str] = {}
    left_out = set(changes.left_out)
    for path, content in changes.changed.items():
        hidden = path not in files and any(part.startswith(".") for part in path.split("/"))
        if hidden or b"\0" in content:
            left_out.add(path)
        elif path not in files or text_of(content) != text_of(files[path]):
            texts[path] = text_of(content)
    return texts, tuple(sorted(left_out))
