"""A wall is worth what canary attacks leave of its claim, and below the minimum nothing is run."""

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
from suture.sandbox.self_test.probe import ProbeReport, attack_sandbox

PROC = Path("/proc")
SOURCES = Path(__file__).parents[1]
"""All of `suture.sandbox`: a wall is made of more than what tries it."""
SYSTEM_FACTS = (
    "sys/kernel/random/boot_id",
    "sys/user/max_user_namespaces",
    "sys/kernel/unprivileged_userns_clone",
    "sys/kernel/apparmor_restrict_unprivileged_userns",
    "self/attr/current",
)
OWN_FACTS = ("Uid", "CapEff", "CapBnd", "NoNewPrivs", "Seccomp")
"""Lines of `/proc/self/status` that decide what a wall can be made of."""
KNOWN: dict[str, ProbeReport] = {}
"""What this process has found out already, by `fingerprint`."""
LOCKS: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, asyncio.Lock]] = WeakKeyDictionary()
"""Held while a wall is attacked, by `fingerprint`, so that many walls that open at once are attacked once."""


class SelfTestedSandbox:
    """A wall that is attacked before its first use, and refused where it is not what it should be.

    What was found is kept until the next start of the machine, or until something changes that it rests on.

    Args:
        open_one: Makes the sandbox that is attacked first.
        minimum: The weakest level that will do.
        cache: A folder to keep findings in; without, they are kept in this process only.
    """

    def __init__(
        self,
        open_one: Callable[[], Sandbox],
        *,
        minimum: IsolationLevel = "namespace",
        cache: Path | None = None,
    ) -> None:
        self._open_one = open_one
        self._sandbox = open_one()
        self._minimum = minimum
        self.cache = cache
        self._found: Capabilities | None = None
        self._finding = asyncio.Lock()
        self._at_close: list[Callable[[], Awaitable[None]]] = []
        self.name = self._sandbox.name

    def add_close_callback(self, act: Callable[[], Awaitable[None]]) -> None:
        """See `contract.SupportsCloseCallbacks`."""
        self._at_close.append(act)

    async def capabilities(self) -> Capabilities:
        """What this wall can do here, as far as canary attacks bear it out.

        Raises:
            SandboxUnavailable: No wall can be built here.
            SandboxBroken: It could not be tried.
        """
        async with self._finding:
            if self._found is None:
                claim = await self._sandbox.capabilities()
                self._found = reduced(claim, await self._report(claim))
            return self._found

    async def _report(self, claim: Capabilities) -> ProbeReport:
        if claim.level == "none":
            return ProbeReport(limits=claim.limits)  # attacks would only hit the user's own machine
        key = fingerprint(self.name, claim)
        async with LOCKS.setdefault(asyncio.get_running_loop(), {}).setdefault(key, asyncio.Lock()):
            KNOWN[key] = known = await self._find(claim, key)
        return known

    async def _find(self, claim: Capabilities, key: str) -> ProbeReport:
        known = KNOWN.get(key) or (recall(self.cache, self.name, key) if self.cache else None)
        if known is None:
            folders = [self.cache] if self.cache is not None and _is_made(self.cache) else []
            try:
                known = await attack_sandbox(self._open_one, claim.level, folders=folders)
            except OSError as fault:
                raise system_error(f"{self.name} could not be tried", fault) from fault
            # A limit that does not hold for once, on a busy machine, is tried again next time.
            if self.cache and not known.holes and claim.limits <= known.limits:
                remember(self.cache, self.name, key, known)
        return known

    async def _admit(self) -> None:
        found = await self.capabilities()
        if not found.meets_level(self._minimum):
            raise SandboxUnavailable(
                f"no sandbox: {self.name} isolates at level {found.level!r} here, and "
                f"sandbox.minimum_level is {self._minimum!r}" + (f": {found.reason}" if found.reason else ""),
                remedy="run `suture doctor`, or choose another wall with sandbox.backend",
            )

    async def run(self, request: RunRequest) -> RunResult:
        """Run a program to its end.

        Raises:
            UsageError: The request is not acceptable.
            SandboxUnavailable: No wall can be built here, or only one below the minimum.
            SandboxBroken: The wall failed.
        """
        await self._admit()
        return await self._sandbox.run(request)

    @asynccontextmanager
    async def open(self, request: RunRequest) -> AsyncIterator[Channel]:
        """Start a program to talk with; leaving the context kills its whole tree.

        Raises:
            UsageError: The request is not acceptable.
            SandboxUnavailable: No wall can be built here, or only one below the minimum.
            SandboxBroken: The wall failed.
        """
        await self._admit()
        async with self._sandbox.open(request) as channel:
            yield channel

    async def close(self) -> None:
        """Kill everything that still runs; safe to call twice."""
        while self._at_close:
            await self._at_close.pop()()
        await self._sandbox.close()


def reduced(claim: Capabilities, report: ProbeReport) -> Capabilities:
    """What is left of a claim: no level where anything got through, and only limits that held."""
    holes = "; ".join(f"{name}: {seen}" for name, seen in report.holes.items())
    reasons = [claim.reason, f"canary attacks got through ({holes})" if holes else ""]
    lost = sorted(claim.limits - report.limits)
    reasons.append(f"limits that did not hold: {', '.join(lost)}" if lost and not holes else "")
    return replace(
        claim,
        level="none" if holes else claim.level,
        limits=claim.limits & report.limits,
        reason="; ".join(reason for reason in reasons if reason),
    )


def fingerprint(name: str, claim: Capabilities, proc: Path = PROC) -> str:
    """What a finding rests on: this start of the machine, our rights, the wall, our own code.

    Args:
        name: The backend's name.
        claim: What it claims.
        proc: Where the kernel tells about itself.
    """
    facts: list[object] = [name, sorted(claim.limits), {**asdict(claim), "limits": None}, os.geteuid()]
    facts += [_read(proc / path) for path in SYSTEM_FACTS]
    status = dict(line.split(":", 1) for line in _read(proc / "self/status").splitlines() if ":" in line)
    facts += [status.get(name) for name in OWN_FACTS]
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


def recall(cache: Path, name: str, key: str) -> ProbeReport | None:
    """A finding of an earlier process; `None` where there is none that can be trusted.

    Args:
        cache: The folder of findings.
        name: The backend's name.
        key: As `fingerprint` has it.
    """
    path = _file(cache, name, key)
    try:
        facts = path.stat()
        if facts.st_uid != os.geteuid() or facts.st_mode & 0o022:
            return None
        kept = json.loads(path.read_text("utf-8"))
        limits = frozenset(str(name) for name in kept["limits"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return ProbeReport(limits=limits)


def remember(cache: Path, name: str, key: str, report: ProbeReport) -> None:
    """Keep a finding without holes for later processes, and no older ones; a full disk does no harm."""
    path = _file(cache, name, key)
    fresh = path.with_suffix(f".{os.getpid()}")
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        for old in path.parent.glob(f"{name}-*.json"):
            old.unlink(missing_ok=True)
        fresh.touch(mode=0o600)
        fresh.write_text(json.dumps({"limits": sorted(report.limits)}), "utf-8")
        fresh.replace(path)


def _file(cache: Path, name: str, key: str) -> Path:
    return cache / "sandbox" / f"{name}-{key}.json"


def _is_made(folder: Path) -> bool:
    with suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return os.access(folder, os.W_OK)
