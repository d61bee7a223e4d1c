"""The default choice of a sandbox: bubblewrap, or containers on a machine where bubblewrap cannot be used."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from pathlib import Path

from suture.core.ledger.kinds import SandboxSubstituted
from suture.core.settings.schema import IsolationLevel
from suture.errors import PrerequisiteError, SandboxError, SandboxUnavailable, SutureError
from suture.sandbox.bubblewrap.diagnosis import StartModeUnavailable
from suture.sandbox.contract import Capabilities, Channel, RunRequest, RunResult
from suture.sandbox.self_test import SelfTestedSandbox

log = logging.getLogger("suture.sandbox")
SubstitutionListener = Callable[[SandboxSubstituted], None]


@cache
def warn_about_substitution(substitution: SandboxSubstituted) -> None:
    """Log a substitution once in each process, for commands that write no ledger."""
    log.warning(
        "programs run in the sandbox %r (level %r), because %s cannot be used here: %s",
        substitution.used,
        substitution.level,
        substitution.preferred,
        substitution.cause,
    )


def is_replaceable(fault: SutureError) -> bool:
    """Return whether the substitute may be used if the preferred sandbox fails with this error.

    It may be used if the preferred one cannot be built at all, and not if the user named a mode that does not work.
    """
    return isinstance(fault, SandboxUnavailable) and not isinstance(fault, StartModeUnavailable)


class AutomaticSandbox:
    """Opens the preferred sandbox, or the substitute if the preferred one cannot be built; see `contract.Sandbox`.

    The choice is made at the first use; until then, `name` is that of the preferred one. The substitute is used only if
    it works and isolates at least at the minimum level. A preferred sandbox that can be built but isolates too little
    is never replaced: its error is reported. A choice is final, also if neither of them works.

    Attributes:
        substitution: Why the substitute is used; `None` as long as it is not.

    Args:
        preferred: The sandbox to try first.
        open_substitute: Opens the other one.
        minimum: The weakest acceptable level.
    """

    def __init__(
        self,
        preferred: SelfTestedSandbox,
        open_substitute: Callable[[], SelfTestedSandbox],
        *,
        minimum: IsolationLevel,
    ) -> None:
        self.name = preferred.name
        self.cache: Path | None = preferred.cache
        self._sandbox = preferred
        self._open_substitute = open_substitute
        self._minimum = minimum
        self.substitution: SandboxSubstituted | None = None
        self._listeners: list[SubstitutionListener] = []
        self._is_chosen = False
        self._fault: SandboxUnavailable | None = None
        self._choosing = asyncio.Lock()
        self._close_callbacks: list[Callable[[], Awaitable[None]]] = []

    def add_close_callback(self, callback: Callable[[], Awaitable[None]]) -> None:
        """See `contract.SupportsCloseCallbacks`."""
        self._close_callbacks.append(callback)

    @contextmanager
    def report_substitution(self, listener: SubstitutionListener) -> Iterator[None]:
        """Call `listener` before each use of the substitute, until the context ends.

        It is also called for uses by others who share this sandbox. Without any listener, a warning is logged.
        """
        self._listeners.append(listener)
        try:
            yield
        finally:
            self._listeners.remove(listener)

    async def capabilities(self) -> Capabilities:
        """See `SelfTestedSandbox.capabilities`."""
        return await (await self._choose()).capabilities()

    async def run(self, request: RunRequest) -> RunResult:
        """See `contract.Sandbox.run`."""
        return await (await self._choose()).run(request)

    @asynccontextmanager
    async def open(self, request: RunRequest) -> AsyncIterator[Channel]:
        """See `contract.Sandbox.open`."""
        async with (await self._choose()).open(request) as channel:
            yield channel

    async def prepare_runs(self, request: RunRequest, count: int) -> None:
        """See `contract.SupportsPreparation`. That the substitute is used is reported later, with the first use."""
        await (await self._find_usable()).prepare_runs(request, count)

    async def close(self) -> None:
        """See `contract.Sandbox.close`."""
        while self._close_callbacks:
            await self._close_callbacks.pop()()
        await self._sandbox.close()

    async def _choose(self) -> SelfTestedSandbox:
        sandbox = await self._find_usable()
        if self.substitution is not None:
            for listener in self._listeners or [warn_about_substitution]:
                listener(self.substitution)
        return sandbox

    async def _find_usable(self) -> SelfTestedSandbox:
        """Return the sandbox that works here; the first call chooses it."""
        async with self._choosing:
            if self._fault is not None:
                raise self._fault
            if not self._is_chosen:
                try:
                    await self._sandbox.capabilities()
                except SandboxUnavailable as fault:
                    if not is_replaceable(fault):
                        raise
                    await self._use_substitute(fault)
                self._is_chosen = True
        return self._sandbox

    async def _use_substitute(self, fault: SandboxUnavailable) -> None:
        """Replace the preferred sandbox, which failed with `fault`.

        Raises:
            SandboxUnavailable: The substitute does not work or isolates too little. The error is `fault`, with what the
                substitute lacks in its remedy.
        """
        substitute: SelfTestedSandbox | None = None
        try:
            substitute = self._open_substitute()
            capabilities = await substitute.capabilities()
            if not capabilities.meets_level(self._minimum):
                raise SandboxUnavailable(
                    f"its level is {capabilities.level!r}, and sandbox.minimum_level is {self._minimum!r}"
                )
        except BaseException as second_fault:
            if substitute is not None:
                await substitute.close()
            if not isinstance(second_fault, (PrerequisiteError, SandboxError)):
                raise
            remedy = f"; {second_fault.remedy}" if second_fault.remedy else ""
            self._fault = SandboxUnavailable(
                fault.message,
                remedy=f"{fault.remedy}. Containers cannot be used either: {second_fault.message}{remedy}",
            )
            raise self._fault from fault
        await self._sandbox.close()
        self.substitution = SandboxSubstituted(
            preferred=self._sandbox.name,
            used=substitute.name,
            level=capabilities.level,
            cause=fault.message,
        )
        self._sandbox, self.name = substitute, substitute.name
