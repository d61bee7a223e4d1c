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
from suture.errors import SandboxUnavailable
from suture.sandbox.contract import Capabilities, Channel, RunRequest, RunResult, Sandbox
from suture.sandbox.execution.base_sandbox import system_error
from suture.sandbox.self_test.probe import HOLE_TEXT, ProbeReport, attack_sandbox

PROC = Path("/proc")
SOURCES = Path(__file__).parents[1]
"""All of `suture.sandbox`, because a sandbox depends on more than the code that tests it."""
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
"""The findings of this process, by `fingerprint`."""
LOCKS: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, asyncio.Lock]] = WeakKeyDictionary()
"""Held while a sandbox is attacked, by `fingerprint`, so that many sandboxes that open at the same time are
attacked once."""


class SelfTestedSandbox:
    """A sandbox that is attacked before its first use, and refused if it isolates less than required.

    Findings are kept until the machine is restarted, or until something changes that they depend on.

    Args:
        create: Creates the sandbox that is attacked.
        minimum: The weakest acceptable level.
        cache: A folder to keep findings in; without one, they are kept in this process only.
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
        self._at_close: list[Callable[[], Awaitable[None]]] = []
        self.name = self._sandbox.name

    def add_close_callback(self, act: Callable[[], Awaitable[None]]) -> None:
        """See `contract.SupportsCloseCallbacks`."""
        self._at_close.append(act)

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
        report = KNOWN_REPORTS.get(key) or (load_report(self.cache, self.name, key) if self.cache else None)
        if report is None:
            folders = [self.cache] if self.cache is not None and _make_folder(self.cache) else []
            try:
                report = await attack_sandbox(self._create, claim.level, folders=folders)
            except OSError as fault:
                raise system_error(f"{self.name} could not be tested", fault) from fault
            # A limit may fail once on a busy machine; such a finding is not kept, so it is tested again next
            # time.
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

    async def close(self) -> None:
        """See `contract.Sandbox.close`."""
        while self._at_close:
            await self._at_close.pop()()
        await self._sandbox.close()


def reduce_claim(claim: Capabilities, report: ProbeReport) -> Capabilities:
    """Return what remains of a claim: no level if an attack succeeded, and only the limits that held."""
    holes = "; ".join(f"{HOLE_TEXT[name]}: {seen}" for name, seen in report.holes.items())
    reasons = [claim.reason, f"canary attacks succeeded ({holes})" if holes else ""]
    broken_limits = sorted(claim.limits - report.limits)
    reasons.append(
        f"limits that did not hold: {', '.join(broken_limits)}" if broken_limits and not holes else ""
    )
    return replace(
        claim,
        level="none" if holes else claim.level,
        limits=claim.limits & report.limits,
        reason="; ".join(reason for reason in reasons if reason),
    )


def fingerprint(name: str, claim: Capabilities, proc: Path = PROC) -> str:
    """Return a hash of everything that a finding depends on: this boot, our rights, the sandbox, our own
    code.

    Args:
        name: The back end's name.
        claim: What it claims.
        proc: The folder `/proc`.
    """
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
    """Return a finding of an earlier process, or `None` if there is none that can be trusted.

    Args:
        cache: The folder of findings.
        name: The back end's name.
        key: As `fingerprint` returns it.
    """
    path = _report_path(cache, name, key)
    try:
        facts = path.stat()
        if facts.st_uid != os.geteuid() or facts.st_mode & 0o022:
            return None
        saved = json.loads(path.read_text("utf-8"))
        limits = frozenset(str(name) for name in saved["limits"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return ProbeReport(limits=limits)


def save_report(cache: Path, name: str, key: str, report: ProbeReport) -> None:
    """Save a finding without holes for later processes, in place of older ones. A full disk does no harm."""
    path = _report_path(cache, name, key)
    new_file = path.with_suffix(f".{os.getpid()}")
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        for old in path.parent.glob(f"{name}-*.json"):
            old.unlink(missing_ok=True)
        new_file.touch(mode=0o600)
        new_file.write_text(json.dumps({"limits": sorted(report.limits)}), "utf-8")
        new_file.replace(path)


def _report_path(cache: Path, name: str, key: str) -> Path:
    return cache / "sandbox" / f"{name}-{key}.json"


def _make_folder(folder: Path) -> bool:
    with suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return os.access(folder, os.W_OK)
