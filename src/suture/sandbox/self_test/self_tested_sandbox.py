"""A sandbox that is tested with canary attacks before its first use, and refused below the minimum level."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from weakref import WeakKeyDictionary

from suture.core.settings.schema import IsolationLevel
from suture.errors import SandboxUnavailable, StorageError
from suture.sandbox.contract import Capabilities, Channel, RunRequest, RunResult, Sandbox, SupportsPreparation
from suture.sandbox.execution.base_sandbox import system_error
from suture.sandbox.self_test.probe import HOLE_TEXT, ProbeReport, attack_sandbox

PROC = Path("/proc")
SOURCES = Path(__file__).parents[1]
"""All of `suture.sandbox`, because a sandbox depends on more than the code that tests it."""
# Files below `/proc` that say whether this is the same boot of the machine, and how a sandbox can be built.
SYSTEM_FACTS = (
    "sys/kernel/random/boot_id",
    "sys/user/max_user_namespaces",
    "sys/kernel/unprivileged_userns_clone",
    "sys/kernel/apparmor_restrict_unprivileged_userns",
    "self/attr/current",
)
STATUS_LINES = ("Uid", "CapEff", "CapBnd", "NoNewPrivs", "Seccomp")
"""Lines of `/proc/self/status` that decide how a sandbox can be built."""
KNOWN_REPORTS: dict[str, ProbeReport] = {}
"""The reports of this process, by `fingerprint`."""
LOCKS: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, asyncio.Lock]] = WeakKeyDictionary()
"""Locks by `fingerprint`, held while a sandbox is attacked, so that many sandboxes that open at the same time are
attacked once."""


class SelfTestedSandbox:
    """A sandbox that is attacked before its first use, and refused if it isolates less than required.

    The report is kept until the machine is restarted, or until something changes that it depends on.

    Args:
        create: Creates the sandbox that is attacked.
        minimum: The weakest acceptable level.
        cache: A folder to keep reports in; without one, they are kept in this process only.
    """

    def __init__(
        self,
        create: Callable[[], Sandbox],
        *,
        minimum: IsolationLevel = "namespace",
        cache: Path | None = None,
    ) -> None:
        self._create = create
        self._sandbox = create()
        self._minimum = minimum
        self.cache = cache
        self._capabilities: Capabilities | None = None
        self._testing = asyncio.Lock()
        self._close_callbacks: list[Callable[[], Awaitable[None]]] = []
        self.name = self._sandbox.name

    def add_close_callback(self, callback: Callable[[], Awaitable[None]]) -> None:
        """See `contract.SupportsCloseCallbacks`."""
        self._close_callbacks.append(callback)

    async def capabilities(self) -> Capabilities:
        """Return what this sandbox can do here, as far as the canary attacks confirm it.

        Raises:
            SandboxUnavailable: No sandbox can be built here.
            SandboxBroken: It could not be tested.
        """
        async with self._testing:
            if self._capabilities is None:
                claim = await self._sandbox.capabilities()
                self._capabilities = reduce_claim(claim, await self._get_report(claim))
            return self._capabilities

    async def _get_report(self, claim: Capabilities) -> ProbeReport:
        if claim.level == "none":
            return ProbeReport(limits=claim.limits)  # canary attacks would only hit the user's own machine
        key = fingerprint(self.name, claim)
        async with LOCKS.setdefault(asyncio.get_running_loop(), {}).setdefault(key, asyncio.Lock()):
            KNOWN_REPORTS[key] = report = await self._find_report(claim, key)
        return report

    async def _find_report(self, claim: Capabilities, key: str) -> ProbeReport:
        """Return the known report of a sandbox, or attack it."""
        report = KNOWN_REPORTS.get(key) or (load_report(self.cache, self.name, key) if self.cache else None)
        if report is None:
            folders = [self.cache] if self.cache is not None and _make_folder(self.cache) else []
            try:
                report = await attack_sandbox(self._create, claim.level, folders=folders)
            except (OSError, StorageError) as fault:
                raise system_error(f"{self.name} could not be tested", fault) from fault
            # A limit may fail once on a busy machine. Such a report is not saved, so the next process tests
            # again.
            if self.cache and not report.holes and claim.limits <= report.limits:
                save_report(self.cache, self.name, key, report)
        return report

    async def _require_minimum_level(self) -> None:
        capabilities = await self.capabilities()
        if not capabilities.meets_level(self._minimum):
            raise SandboxUnavailable(
                f"no sandbox: {self.name} isolates at level {capabilities.level!r} here, and "
                f"sandbox.minimum_level is {self._minimum!r}"
                + (f": {capabilities.reason}" if capabilities.reason else ""),
                remedy="run `suture doctor`, or choose another sandbox with sandbox.backend",
            )

    async def run(self, request: RunRequest) -> RunResult:
        """See `contract.Sandbox.run`. A sandbox below the minimum level raises `SandboxUnavailable`."""
        await self._require_minimum_level()
        return await self._sandbox.run(request)

    @asynccontextmanager
    async def open(self, request: RunRequest) -> AsyncIterator[Channel]:
        """See `contract.Sandbox.open`. A sandbox below the minimum level raises `SandboxUnavailable`."""
        await self._require_minimum_level()
        async with self._sandbox.open(request) as channel:
            yield channel

    async def prepare_runs(self, request: RunRequest, count: int) -> None:
        """See `contract.SupportsPreparation`. A sandbox below the minimum level raises `SandboxUnavailable`."""
        await self._require_minimum_level()
        if isinstance(self._sandbox, SupportsPreparation):
            await self._sandbox.prepare_runs(request, count)

    async def close(self) -> None:
        """See `contract.Sandbox.close`."""
        while self._close_callbacks:
            await self._close_callbacks.pop()()
        await self._sandbox.close()


def reduce_claim(claim: Capabilities, report: ProbeReport) -> Capabilities:
    """Return what remains of a claim: no level if an attack succeeded, and only the limits that held."""
    reasons = [claim.reason] if claim.reason else []
    broken_limits = sorted(claim.limits - report.limits)
    if report.holes:
        holes = "; ".join(f"{HOLE_TEXT[name]}: {evidence}" for name, evidence in report.holes.items())
        reasons.append(f"canary attacks succeeded ({holes})")
    elif broken_limits:
        reasons.append(f"limits that did not hold: {', '.join(broken_limits)}")
    return replace(
        claim,
        level="none" if report.holes else claim.level,
        limits=claim.limits & report.limits,
        reason="; ".join(reasons),
    )


def fingerprint(name: str, claim: Capabilities, proc: Path = PROC) -> str:
    """Return a hash of all that a report depends on: this boot, our privileges, the sandbox, and our own code."""
    facts: list[object] = [name, sorted(claim.limits), {**asdict(claim), "limits": None}, os.geteuid()]
    facts += [_read(proc / path) for path in SYSTEM_FACTS]
    status = dict(line.split(":", 1) for line in _read(proc / "self/status").splitlines() if ":" in line)
    facts += [status.get(name) for name in STATUS_LINES]
    with suppress(OSError):
        facts += [os.readlink(proc / "self/ns" / kind) for kind in ("user", "mnt", "net")]  # noqa: PTH115 (no path: `user:[4026]`)
    for path in sorted(SOURCES.rglob("*.py")):
        facts.append((path.name, path.stat().st_mtime_ns, path.stat().st_size))
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""


def load_report(cache: Path, name: str, key: str) -> ProbeReport | None:
    """Return the report that an earlier process saved; `None` if there is none that can be trusted."""
    path = _report_path(cache, name, key)
    try:
        status = path.stat()
        if status.st_uid != os.geteuid() or status.st_mode & 0o022:
            return None
        saved = json.loads(path.read_text("utf-8"))
        limits = frozenset(str(name) for name in saved["limits"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return ProbeReport(limits=limits)


def save_report(cache: Path, name: str, key: str, report: ProbeReport) -> None:
    """Save a report without holes for later processes, in place of older ones. A full disk does no harm."""
    path = _report_path(cache, name, key)
    new_file = path.with_suffix(f".{os.getpid()}")
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        for old_path in path.parent.glob(f"{name}-*.json"):
            old_path.unlink(missing_ok=True)
        new_file.touch(mode=0o600)
        new_file.write_text(json.dumps({"limits": sorted(report.limits)}), "utf-8")
        new_file.replace(path)


def _report_path(cache: Path, name: str, key: str) -> Path:
    return cache / "sandbox" / f"{name}-{key}.json"


def _make_folder(folder: Path) -> bool:
    with suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return os.access(folder, os.W_OK)
