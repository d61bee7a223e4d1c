"""The E2B backend: a machine for each program."""

from __future__ import annotations

import asyncio
import importlib
import math
import os
import secrets
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import resources
from typing import Any

from suture.errors import SandboxUnavailable, UsageError
from suture.project.languages import Interpreter
from suture.sandbox.contract import LIMIT_NAMES, SANDBOX_UIDS, Capabilities, Mount, ProgramLimits
from suture.sandbox.e2b.transport import E2bTransport
from suture.sandbox.execution.program import SandboxNotStarted
from suture.sandbox.seccomp import own_filter
from suture.sandbox.zygote import Zygote
from suture.sandbox.zygote.bundle import boot_source, bundle
from suture.sandbox.zygote.zygote_pool import ZygoteSpec
from suture.sandbox.zygote.zygote_sandbox import ZygoteSandbox

SPARE_S = 300
"""Seconds that a machine may live besides its program; the service ends it then, whatever became of us."""
MACHINE = "x86_64"
"""What the service's machines are."""
THEIR_PYTHON = Interpreter(
    executable="python3",
    prefix="",
    base_prefix="",
    version="3",
    site_packages=(),
    origin="the machine's own",
)


class E2bSandbox(ZygoteSandbox):
    """Runs each program in a machine of E2B's; see `contract.Sandbox`. Nothing of this machine can be shown.

    Args:
        key: The service's key.
        template: What machines are made from; it must have Python 3.9 or later.
        mode: `spare` keeps the next machine ready, and costs it.
        options: Further words for the SDK, such as `api_url`.
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
        super().__init__(THEIR_PYTHON, (), mode if mode == "spare" else "cold")
        self._key = key
        self._template = template
        self._options = dict(options or {})
        self._sdk: Any = None

    async def capabilities(self) -> Capabilities:
        """What this wall means to do here; tried once.

        Raises:
            SandboxUnavailable: There is none.
        """
        await self.choose()
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
        if os.uname().machine != MACHINE:
            raise SandboxUnavailable(f"e2b needs {MACHINE} here too", remedy="use another sandbox")
        if not self._key:
            raise SandboxUnavailable("the sandbox e2b needs a key", remedy="set E2B_API_KEY, or keys.e2b")
        try:
            self._sdk = importlib.import_module("e2b_code_interpreter").AsyncSandbox
        except ImportError as fault:
            raise SandboxUnavailable(
                "the sandbox e2b needs its SDK", remedy="pip install 'suture[e2b]'"
            ) from fault

    def remedy(self, complaint: str) -> str:
        """See `ZygoteSandbox.remedy`."""
        return "see the key, the template and the service's state"

    async def start(
        self, limits: ProgramLimits, namespaces: bool, mounts: Sequence[Mount], kind: ZygoteSpec
    ) -> Zygote:
        """See `ZygoteSandbox.start`."""
        if mounts:
            raise UsageError(f"the sandbox e2b cannot show {mounts[0].source!r}: it is another machine")
        try:
            machine = await self._machine(limits)
        except Exception as fault:  # the SDK, its HTTP client and its protocol each raise kinds of their own
            raise SandboxNotStarted(f"E2B: {fault}") from fault
        carrier = E2bTransport(machine)
        try:
            await carrier.start(_command(limits))
        except BaseException as fault:
            await carrier.wait()
            if isinstance(fault, Exception):
                raise SandboxNotStarted(f"E2B: {fault}") from fault
            raise
        words = bundle(dict(kind.modules), kind.preload, (), namespaces=False)
        return await Zygote.start(carrier, words, most_runs=1)

    async def _machine(self, limits: ProgramLimits) -> Any:
        """A new machine. A request cannot be called off, and each costs; where nobody waits, it is undone."""
        making = asyncio.ensure_future(
            self._sdk.create(
                self._template,
                timeout=math.ceil(limits.wall_s) + SPARE_S,
                allow_internet_access=False,
                api_key=self._key,
                **self._options,
            )
        )
        try:
            return await asyncio.shield(making)
        except asyncio.CancelledError:
            with suppress(Exception):  # then there is no machine, or the service ends it by itself
                await (await making).kill()
            raise


def _command(limits: ProgramLimits) -> str:
    bootstrap = resources.files("suture.sandbox.e2b").joinpath("bootstrap.py").read_text("utf-8")
    code = own_filter(memory_files=False)  # nothing counts them there
    words = (
        *("python3", "-I", "-S", "-B", "-c", bootstrap),
        *(code.hex(), str(secrets.choice(SANDBOX_UIDS)), str(limits.disk_mb << 20), boot_source()),
    )
    return f"exec {shlex.join(words)}"
