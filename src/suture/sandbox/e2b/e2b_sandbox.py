"""The E2B back end: one machine for each program."""

from __future__ import annotations

import asyncio
import importlib
import math
import os
import secrets
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from suture.core.installation import format_install_command
from suture.errors import SandboxUnavailable, UsageError
from suture.project.languages import Interpreter
from suture.sandbox.contract import LIMIT_NAMES, SANDBOX_UIDS, Capabilities, Mount, ProgramLimits
from suture.sandbox.e2b.e2b_transport import E2bTransport
from suture.sandbox.execution.process import read_source
from suture.sandbox.execution.program import SandboxNotStarted
from suture.sandbox.seccomp import build_filter_for_host
from suture.sandbox.tuning import MACHINE_EXTRA_LIFETIME_S
from suture.sandbox.zygote import Zygote
from suture.sandbox.zygote.zygote_pool import ZygoteSpec
from suture.sandbox.zygote.zygote_sandbox import ZygoteSandbox
from suture.sandbox.zygote.zygote_transport import build_bundle, read_boot_source

ARCHITECTURE = "x86_64"
"""The architecture of the service's machines."""
MACHINE_PYTHON = Interpreter(
    executable="python3", prefix="", base_prefix="", version="3", site_packages=(), origin="the machine's own"
)


class E2bSandbox(ZygoteSandbox):
    """Runs each program in an E2B machine; see `contract.Sandbox`. No folder of this host can be shown there.

    Args:
        key: The service's API key.
        template: The template of the machines; it must have Python 3.9 or later.
        mode: `spare` keeps the next machine ready, which costs money while it waits.
        options: Further arguments for the SDK, such as `api_url`.
    """

    name = "e2b"
    spare_by_default = False

    def __init__(
        self,
        *,
        key: str,
        template: str | None = None,
        mode: str = "auto",
        options: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(MACHINE_PYTHON, (), mode if mode == "spare" else "cold")
        self._key = key
        self._template = template
        self._options = dict(options or {})
        self._sdk: Any = None

    async def capabilities(self) -> Capabilities:
        """See `contract.Sandbox.capabilities`. What works here is tried once."""
        await self.choose_mode()
        return Capabilities(
            level="vm",
            mode=self._mode,
            limits=frozenset(set(LIMIT_NAMES) - {"inodes"}),
            memory_enforcement="sampler",
            identity=f"E2B, template {self._template or 'of the service'}",
            reason="each program has a machine of its own",
        )

    async def prepare(self) -> None:
        """See `ZygoteSandbox.prepare`."""
        if os.uname().machine != ARCHITECTURE:
            raise SandboxUnavailable(
                f"the sandbox e2b needs a host of the same architecture, {ARCHITECTURE}",
                remedy="use another sandbox",
            )
        if not self._key:
            raise SandboxUnavailable("the sandbox e2b needs a key", remedy="set E2B_API_KEY, or keys.e2b")
        try:
            self._sdk = importlib.import_module("e2b_code_interpreter").AsyncSandbox
        except ImportError as fault:
            raise SandboxUnavailable(
                "the sandbox e2b needs its SDK", remedy=format_install_command("e2b")
            ) from fault

    def remedy(self, failure: str) -> str:
        """See `ZygoteSandbox.remedy`."""
        return "check the API key, the template and the service's status page"

    async def start(
        self, limits: ProgramLimits, namespaces: bool, mounts: Sequence[Mount], spec: ZygoteSpec
    ) -> Zygote:
        """See `ZygoteSandbox.start`."""
        if mounts:
            raise UsageError(f"the sandbox e2b cannot mount {mounts[0].source!r}: it runs on another machine")
        try:
            machine = await self._create_machine(limits)
        except Exception as fault:  # the SDK, its HTTP client and its protocol each raise their own types
            raise SandboxNotStarted(f"E2B: {fault}") from fault
        transport = E2bTransport(machine)
        try:
            await transport.start(_command(limits))
        except BaseException as fault:
            await transport.wait()
            if isinstance(fault, Exception):
                raise SandboxNotStarted(f"E2B: {fault}") from fault
            raise
        payload = build_bundle(dict(spec.modules), spec.preload, (), namespaces=False)
        return await Zygote.start(transport, payload, max_runs=1)

    async def _create_machine(self, limits: ProgramLimits) -> Any:
        """Create a machine.

        The request cannot be withdrawn, and each machine costs money, so it is killed if the caller is cancelled.
        """
        creation = asyncio.ensure_future(
            self._sdk.create(
                self._template,
                timeout=math.ceil(limits.wall_s) + MACHINE_EXTRA_LIFETIME_S,
                allow_internet_access=False,
                api_key=self._key,
                **self._options,
            )
        )
        try:
            return await asyncio.shield(creation)
        except asyncio.CancelledError:
            with suppress(Exception):  # then there is no machine, or the service ends it on its own
                await (await creation).kill()
            raise


def _command(limits: ProgramLimits) -> str:
    bootstrap = read_source("suture.sandbox.e2b.bootstrap")
    seccomp_filter = build_filter_for_host(memory_files=False)  # nothing would count files in memory there
    uid, disk_bytes = str(secrets.choice(SANDBOX_UIDS)), str(limits.disk_mb << 20)
    arguments = [seccomp_filter.hex(), uid, disk_bytes, read_boot_source()]
    return f"exec {shlex.join(['python3', '-I', '-S', '-B', '-c', bootstrap, *arguments])}"
