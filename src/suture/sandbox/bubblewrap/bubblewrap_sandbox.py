"""The bubblewrap back end: new namespaces for every program, each starting from a clean state."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Literal

from suture.project.languages import Interpreter
from suture.sandbox.bubblewrap.diagnosis import PROC, StartModeUnavailable, explain_unavailable
from suture.sandbox.bubblewrap.launcher import BubblewrapLauncher, find_bubblewraps
from suture.sandbox.contract import LIMIT_NAMES, Capabilities, RunRequest, RunResult, StartMode
from suture.sandbox.execution.base_sandbox import BaseSandbox, try_sandbox
from suture.sandbox.execution.memory_cgroups import MemoryCgroups
from suture.sandbox.execution.process import SupervisedRun
from suture.sandbox.execution.request_encoding import BASE_ENVIRONMENT
from suture.sandbox.mounts.mount_planning import mounts_for_interpreter, plan_mounts_cached
from suture.sandbox.runtimes.discovery import get_own_interpreter

WARM_MODE_FAILURES: dict[str, str] = {}
"""Path of a bubblewrap -> why it cannot run warm here. Determined once in each process."""
PROGRAMS = {"python3": "python", "node": "javascript", "go": "go", "sh": "shell"}
"""A program on the sandbox's PATH -> the language that programs may then be written in."""


class BubblewrapSandbox(BaseSandbox):
    """Runs each program in new namespaces made by bubblewrap; see `contract.Sandbox`.

    Warm if the kernel allows nested namespaces: a zygote waits inside a sandbox and forks each program into
    new namespaces of its own. Otherwise spare: a sandbox with a zygote is built ahead for each program. Cold, with one
    sandbox per program and none built ahead, is only used on request.

    Args:
        find: Finds the bubblewraps of this machine, best first.
        proc: The folder `/proc`, for naming what is missing.
        mode: How programs get their sandbox; `auto` is warm if that works, otherwise spare.
    """

    name = "bubblewrap"

    def __init__(
        self,
        *,
        find: Callable[[], Sequence[str]] = find_bubblewraps,
        proc: Path = PROC,
        mode: StartMode | Literal["auto"] = "auto",
        cgroups: MemoryCgroups | None = None,
    ) -> None:
        super().__init__()
        self._find = find
        self._proc = proc
        self._interpreter: Interpreter = get_own_interpreter()
        self._interpreter_mounts = mounts_for_interpreter(self._interpreter)
        self._cgroups = cgroups or MemoryCgroups()
        self._launcher = BubblewrapLauncher(self._interpreter, self._cgroups)
        self._requested_mode = mode
        self._choice: tuple[str, StartMode] | None = None
        self._reason = "" if mode == "auto" else "set by sandbox.mode"
        self._choosing = asyncio.Lock()

    async def release(self) -> None:
        """See `BaseSandbox.release`."""
        await self._launcher.close()
        await self._cgroups.close()

    async def choose_bubblewrap(self) -> str:
        """Return the path of the bubblewrap that works here, or raise `SandboxUnavailable`."""
        return (await self._choose())[0]

    async def capabilities(self) -> Capabilities:
        """See `contract.Sandbox.capabilities`. What works here is tried once."""
        path, mode = await self._choose()
        enforcement = self._cgroups.enforcement
        status = os.stat(path)  # noqa: PTH116 - a local stat does not block
        return Capabilities(
            level="namespace",
            mode=mode,
            languages=tuple(dict.fromkeys(["python", *_find_languages()])),
            # Bubblewrap can limit the size of its tmpfs, but not the number of files. A zygote's child mounts
            # its own, with both limits.
            limits=frozenset(LIMIT_NAMES) if mode == "warm" else frozenset(LIMIT_NAMES) - {"inodes"},
            memory_enforcement=enforcement,
            identity=f"{path} {status.st_size} {status.st_mtime_ns}",
            reason="; ".join(
                f"{subject}: {reason}"
                for subject, reason in ((mode, self._reason), (enforcement, self._cgroups.reason))
                if reason
            ),
        )

    async def _choose(self) -> tuple[str, StartMode]:
        async with self._choosing:
            if self._choice is None:
                self._choice = await self._choose_bubblewrap()
            return self._choice

    async def _choose_bubblewrap(self) -> tuple[str, StartMode]:
        """Return the first bubblewrap that works, and its mode."""
        failures: dict[str, str] = {}
        for path in self._find():
            mode, failure = await self._choose_mode(path)
            if not failure:
                return path, mode
            failures[path] = failure
        if self._requested_mode == "warm":
            await self._suggest_auto_mode(failures)
        raise explain_unavailable(failures, self._proc)

    async def _suggest_auto_mode(self, failures: Mapping[str, str]) -> None:
        for path, failure in failures.items():
            if not await self._try_mode(path, "spare"):
                message = f"no warm {self.name}: {path}: {failure.splitlines()[-1]}"
                raise StartModeUnavailable(message, remedy="set sandbox.mode = 'auto'")

    async def _choose_mode(self, path: str) -> tuple[StartMode, str]:
        """Return `(mode, failure)` of a bubblewrap; the failure is empty if it works."""
        if self._requested_mode != "auto":
            return self._requested_mode, await self._try_mode(path, self._requested_mode)
        warm_failure = WARM_MODE_FAILURES.get(path) or await self._try_mode(path, "warm")
        if not warm_failure:
            return "warm", ""
        failure = await self._try_mode(path, "spare")
        if not failure:
            self._reason = WARM_MODE_FAILURES[path] = warm_failure
        return "spare", failure

    async def _try_mode(self, path: str, mode: StartMode) -> str:
        """Return what goes wrong with a bubblewrap here; empty if nothing does."""
        return await try_sandbox(
            lambda request: self._launcher.start_run(mode, path, request, self._interpreter_mounts)
        )

    async def run_with_writable_dir(self, request: RunRequest, folder: Path) -> RunResult:
        """Run a program in its own sandbox that may write to a folder of the host.

        Args:
            request: What to run.
            folder: The folder; inside the sandbox it is `WRITABLE_DIR`. No limit counts what is written
                there, except the limit on the size of each file.

        Raises:
            UsageError: The request is not acceptable.
            SandboxUnavailable: No sandbox can be built here.
            SandboxBroken: The sandbox failed.
        """
        return await self.run_with(request, partial(self.start_run, writable_dir=str(folder)))

    async def prepare_runs(self, request: RunRequest, count: int) -> None:
        """See `contract.SupportsPreparation`."""
        path, mode = await self._choose()
        if mode == "warm":
            mounts = plan_mounts_cached((*self._interpreter_mounts, *request.mounts))
            self._launcher.prepare(path, request, mounts, count)

    @asynccontextmanager
    async def start_run(
        self, request: RunRequest, *, conversation: bool = False, writable_dir: str = ""
    ) -> AsyncIterator[SupervisedRun]:
        """See `BaseSandbox.start_run` and `run_with_writable_dir`."""
        mounts = plan_mounts_cached((*self._interpreter_mounts, *request.mounts))
        path, mode = await self._choose()
        starting: AbstractAsyncContextManager[SupervisedRun]
        if writable_dir:
            starting = self._launcher.start_cold_run(path, request, mounts, writable_dir)
        else:
            starting = self._launcher.start_run(mode, path, request, mounts, conversation=conversation)
        async with starting as supervised_run:
            yield supervised_run


def _find_languages() -> list[str]:
    # The system's folders are shown as they are, so the program's PATH finds there what the host finds.
    path = BASE_ENVIRONMENT["PATH"]
    return [language for program, language in PROGRAMS.items() if shutil.which(program, path=path)]
