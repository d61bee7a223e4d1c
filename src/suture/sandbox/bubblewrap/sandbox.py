"""The wall made of bubblewrap: new namespaces for every program, each starting from nothing."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Literal

from suture.errors import SandboxUnavailable
from suture.project.languages import Interpreter
from suture.sandbox.bubblewrap.diagnosis import PROC, unavailable
from suture.sandbox.bubblewrap.launcher import BubblewrapLauncher, find_bubblewraps
from suture.sandbox.contract import LIMIT_NAMES, Capabilities, RunRequest, RunResult, StartMode
from suture.sandbox.execution.base_sandbox import ProgramSandbox, try_sandbox
from suture.sandbox.execution.memory_cgroups import MemoryCgroups
from suture.sandbox.execution.process import SupervisedRun
from suture.sandbox.execution.request_encoding import BASE_ENVIRONMENT
from suture.sandbox.mounts.planning import mounts_for_interpreter, plan_mounts_cached
from suture.sandbox.runtimes.discovery import get_own_interpreter

NOT_WARM: dict[str, str] = {}
"""Bubblewraps that cannot build a warm wall here, and why; found out once in the life of this process."""
PROGRAMS = {"python3": "python", "node": "javascript", "go": "go", "sh": "shell"}
"""What a program needs to be on the path behind the wall -> what it may then be written in."""


class BubblewrapSandbox(ProgramSandbox):
    """Runs each program behind a wall of its own; see `contract.Sandbox`.

    Warm where the kernel allows namespaces within namespaces: a process waits behind a wall and forks each
    program into new namespaces of its own. Where it does not, spare: a wall with such a process is built
    ahead for each program. Cold, a wall for each program and none ahead, is for those who ask for it.

    Args:
        find: Finds the bubblewraps of this machine, best first.
        proc: Where the kernel tells about itself; for naming what is missing.
        mode: Where walls come from; `auto` is warm where that works, else spare.
        groups: Makes control groups.
    """

    name = "bubblewrap"

    def __init__(
        self,
        *,
        find: Callable[[], Sequence[str]] = find_bubblewraps,
        proc: Path = PROC,
        mode: StartMode | Literal["auto"] = "auto",
        groups: MemoryCgroups | None = None,
    ) -> None:
        super().__init__()
        self._find = find
        self._proc = proc
        self._own: Interpreter = get_own_interpreter()
        self._own_mounts = mounts_for_interpreter(self._own)
        self._groups = groups or MemoryCgroups()
        self._launcher = BubblewrapLauncher(self._own, self._groups)
        self._asked = mode
        self._chosen: tuple[str, StartMode] | None = None
        self._reason = "" if mode == "auto" else "it was asked for"
        self._choosing = asyncio.Lock()

    async def release(self) -> None:
        """See `ProgramSandbox.release`."""
        await self._launcher.close()
        await self._groups.close()

    async def choose(self) -> str:
        """The path of the bubblewrap that works here; tried once.

        Raises:
            SandboxUnavailable: None does.
        """
        return (await self._choice())[0]

    async def capabilities(self) -> Capabilities:
        """What this wall means to do here; tried once.

        Raises:
            SandboxUnavailable: There is none.
        """
        path, mode = await self._choice()
        keeper = self._groups.keeper
        facts = os.stat(path)  # noqa: PTH116 - no disk is waited for
        return Capabilities(
            level="namespace",
            mode=mode,
            languages=tuple(dict.fromkeys(["python", *_languages()])),
            # bubblewrap's own folders have a size and no number of files; a warm wall mounts its own.
            limits=frozenset(LIMIT_NAMES) if mode == "warm" else frozenset(LIMIT_NAMES) - {"inodes"},
            memory_enforcement=keeper,
            identity=f"{path} {facts.st_size} {facts.st_mtime_ns}",
            reason="; ".join(
                f"{what}: {why}" for what, why in ((mode, self._reason), (keeper, self._groups.reason)) if why
            ),
        )

    async def _choice(self) -> tuple[str, StartMode]:
        async with self._choosing:
            if self._chosen is None:
                self._chosen = await self._try_each()
            return self._chosen

    async def _try_each(self) -> tuple[str, StartMode]:
        complaints: dict[str, str] = {}
        for path in self._find():
            mode, complaint = await self._try_modes(path)
            if not complaint:
                return path, mode
            complaints[path] = complaint
        if self._asked == "warm":
            await self._point_at_another_mode(complaints)
        raise unavailable(complaints, self._proc)

    async def _point_at_another_mode(self, complaints: Mapping[str, str]) -> None:
        for path, complaint in complaints.items():
            if not await self._try(path, "spare"):
                message = f"no warm {self.name}: {path}: {complaint.splitlines()[-1]}"
                raise SandboxUnavailable(message, remedy="set sandbox.mode = 'auto'")

    async def _try_modes(self, path: str) -> tuple[StartMode, str]:
        if self._asked != "auto":
            return self._asked, await self._try(path, self._asked)
        not_warm = NOT_WARM.get(path) or await self._try(path, "warm")
        if not not_warm:
            return "warm", ""
        complaint = await self._try(path, "spare")
        if not complaint:
            self._reason = NOT_WARM[path] = not_warm
        return "spare", complaint

    async def _try(self, path: str, mode: StartMode) -> str:
        """What goes wrong with a bubblewrap here; empty where nothing does."""
        return await try_sandbox(lambda request: self._launcher.begin(mode, path, request, self._own_mounts))

    async def run_with_writable_dir(self, request: RunRequest, folder: Path) -> RunResult:
        """As `run`, behind a wall of its own, for a program that may write into a folder of the host's.

        Args:
            request: What to run.
            folder: Behind the wall `KEPT`. No limit counts what is written there, but that on each file.

        Raises:
            UsageError: The request is not acceptable.
            SandboxUnavailable: No wall can be built here.
            SandboxBroken: The wall failed.
        """
        return await self.run_begun(request, partial(self._begin_keeping, str(folder)))

    @asynccontextmanager
    async def _begin_keeping(self, folder: str, request: RunRequest) -> AsyncIterator[SupervisedRun]:
        mounts = plan_mounts_cached((*self._own_mounts, *request.mounts))
        path, _ = await self._choice()
        async with self._launcher.begin_cold(path, request, mounts, folder) as running:
            yield running

    def begin(self, request: RunRequest) -> AbstractAsyncContextManager[SupervisedRun]:
        """See `ProgramSandbox.begin`."""
        return self._begin(request, conversation=False)

    def begin_conversation(self, request: RunRequest) -> AbstractAsyncContextManager[SupervisedRun]:
        """See `ProgramSandbox.begin_conversation`."""
        return self._begin(request, conversation=True)

    @asynccontextmanager
    async def _begin(self, request: RunRequest, *, conversation: bool) -> AsyncIterator[SupervisedRun]:
        mounts = plan_mounts_cached((*self._own_mounts, *request.mounts))
        path, mode = await self._choice()
        async with self._launcher.begin(mode, path, request, mounts, conversation=conversation) as running:
            yield running


def _languages() -> list[str]:
    # The system's folders are shown as they are, so what is on its path is on the program's.
    path = BASE_ENVIRONMENT["PATH"]
    return [language for program, language in PROGRAMS.items() if shutil.which(program, path=path)]
