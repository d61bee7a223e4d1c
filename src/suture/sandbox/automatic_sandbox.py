"""The default choice of a sandbox: bubblewrap, or containers on a machine where bubblewrap cannot be used."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path

from suture.core.ledger.kinds import SandboxSubstituted
from suture.core.settings.schema import IsolationLevel
from suture.errors import SandboxUnavailable
from suture.sandbox.contract import Capabilities, Channel, RunRequest, RunResult
from suture.sandbox.self_test import SelfTestedSandbox

log = logging.getLogger("suture.sandbox")


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


class AutomaticSandbox:
    """Opens the preferred sandbox, or the substitute if the preferred one cannot be built; see `contract.Sandbox`.

    The choice is made at the first use; until then, `name` is that of the preferred one. The substitute is used only if
    it works and isolates at least at the minimum level. A preferred sandbox that can be built but isolates too little
    is never replaced: its error is reported.

    Args:
        preferred: The sandbox to try first.
        open_substitute: Opens the other one.
        minimum: The weakest acceptable level.
        on_substitution: Is called once if the substitute is chosen, before anything runs in it.
    """

    def __init__(
        self,
        preferred: SelfTestedSandbox,
        open_substitute: Callable[[], SelfTestedSandbox],
        *,
        minimum: IsolationLevel,
        on_substitution: Callable[[SandboxSubstituted], None] = warn_about_substitution,
    ) -> None:
        self.name = preferred.name
        self.cache: Path | None = preferred.cache
        self._sandbox = preferred
        self._open_substitute = open_substitute
        self._minimum = minimum
        self._on_substitution = on_substitution
        self._is_chosen = False
        self._choosing = asyncio.Lock()
        self._close_callbacks: list[Callable[[], Awaitable[None]]] = []

    def add_close_callback(self, callback: Callable[[], Awaitable[None]]) -> None:
        """See `contract.SupportsCloseCallbacks`."""
        self._close_callbacks.append(callback)

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

    async def close(self) -> None:
        """See `contract.Sandbox.close`."""
        while self._close_callbacks:
            await self._close_callbacks.pop()()
        await self._sandbox.close()

    async def _choose(self) -> SelfTestedSandbox:
        async with self._choosing:
            if not self._is_chosen:
                try:
                    await self._sandbox.capabilities()
                except SandboxUnavailable as fault:
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
            if not isinstance(second_fault, SandboxUnavailable):
                raise
            remedy = f"; {second_fault.remedy}" if second_fault.remedy else ""
            raise SandboxUnavailable(
                fault.message,
                remedy=f"{fault.remedy}. Containers cannot be used either: {second_fault.message}{remedy}",
            ) from fault
        await self._sandbox.close()
        self._on_substitution(
            SandboxSubstituted(
                preferred=self._sandbox.name,
                used=substitute.name,
                level=capabilities.level,
                cause=fault.message,
            )
        )
        self._sandbox, self.name = substitute, substitute.name
