"""Canary attacks on a wall, from the host's side: what gets through, and which limits hold."""

from __future__ import annotations

import asyncio
import importlib.resources
import json
import os
import secrets
import socket
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from suture.core.settings.schema import IsolationLevel
from suture.errors import SandboxBroken
from suture.sandbox.contract import ProgramLimits, RunRequest, Sandbox
from suture.sandbox.self_test.canary import kernel
from suture.sandbox.tuning import CANARY_TIMEOUT_S, CANARY_TOTAL_MEMORY_MB, SURVIVOR_TIMEOUT_S

VARIABLE = "CANARY_OF_SUTURE"
"""How the name of what must not be seen begins; each probe has one of its own."""
TIGHT = ProgramLimits(
    wall_s=CANARY_TIMEOUT_S,
    cpu_s=7,
    memory_mb=256,
    processes=16,
    disk_mb=4,
    inodes=100,
    file_mb=2,
    open_files=32,
    output_bytes=4096,
)
ELSEWHERE: frozenset[IsolationLevel] = frozenset({"wasm", "user_kernel", "vm"})
"""Levels at which a program meets another kernel than the host's, or none."""
ON_THE_HOSTS_KERNEL = frozenset({"vsock", "settings of the kernel", "namespaces", "root"})
"""Attacks that mean nothing where the kernel is not the host's."""
SAME_KERNEL = "kernel of the host"
"""A hole in a wall that claims another kernel, and in no other; a runtime's name proves nothing."""


@dataclass(frozen=True, kw_only=True)
class ProbeReport:
    """What canary attacks have found.

    Attributes:
        holes: Attacks that succeeded -> what was seen.
        limits: Names of `LIMITS` that held.
    """

    holes: dict[str, str] = field(default_factory=dict)
    limits: frozenset[str] = frozenset()


async def attack_sandbox(
    open_one: Callable[[], Sandbox],
    level: IsolationLevel,
    *,
    folders: Sequence[Path] = (),
    proc: Path = Path("/proc"),
) -> ProbeReport:
    """Attack a wall that has just been made, and see what holds.

    For the moment it takes, this process has one more environment variable, which must not be seen behind
    the wall.

    Args:
        open_one: Makes the wall; what it inherits is part of what is tried.
        level: What the wall claims to be.
        folders: Where to lay a bait, besides the folder of temporary files; each must exist.
        proc: Where the kernel tells about processes.

    Raises:
        SandboxUnavailable: No wall can be built here.
    """
    async with _bait(folders) as words:
        sandbox = open_one()
        try:
            holes = await _lurk(sandbox, words, proc)
            limits = await _hold(sandbox)
            limits |= {name for name, holds in (await _end(sandbox)).items() if holds}
        except SandboxBroken as fault:
            holes, limits = {"canaries": str(fault)}, frozenset()
        finally:
            await sandbox.close()
    if level not in ELSEWHERE:
        holes.pop(SAME_KERNEL, None)
    elif SAME_KERNEL not in holes:
        holes = {name: seen for name, seen in holes.items() if name not in ON_THE_HOSTS_KERNEL}
    return ProbeReport(holes=holes, limits=limits)


@asynccontextmanager
async def _bait(folders: Sequence[Path]) -> AsyncIterator[dict[str, Any]]:
    """Lay out what must not be reached; answers what a canary has to know of it."""
    mark, secret = f"canary{secrets.token_hex(4)}", secrets.token_hex(16)
    async with AsyncExitStack() as held:
        laid = [
            held.enter_context(tempfile.TemporaryDirectory(prefix=mark, dir=folder))
            for folder in (None, *folders)
        ]
        for folder in laid:
            os.chmod(folder, 0o777)  # noqa: PTH101 - so that nothing but the wall stands before it
            (Path(folder) / "secret").write_text(secret, "ascii")
        listeners = [socket.create_server((host, 0)) for host in _own_addresses()]
        for listener in listeners:
            held.callback(listener.close)
        abstract = held.enter_context(socket.socket(socket.AF_UNIX))
        abstract.bind(f"\0{mark}")
        abstract.listen()
        variable = f"{VARIABLE}_{mark}"
        os.environ[variable] = secret
        held.callback(os.environ.pop, variable, None)
        yield {
            "mark": mark,
            "kernel": kernel(),
            "secret": secret,
            "files": [f"{folder}/secret" for folder in laid],
            "folders": laid,
            "addresses": [listener.getsockname()[:2] for listener in listeners],
            "abstract": mark,
        }


def _own_addresses() -> list[str]:
    found = ["127.0.0.1"]
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as outward:
        outward.connect(("192.0.2.1", 9))  # sends nothing, and tells which address would
        found.append(outward.getsockname()[0])
    return list(dict.fromkeys(found))


async def _lurk(sandbox: Sandbox, words: dict[str, Any], proc: Path) -> dict[str, str]:
    limits = ProgramLimits(wall_s=2 * CANARY_TIMEOUT_S)
    async with sandbox.open(RunRequest(python=_program("lurk", words), limits=limits)) as channel:
        answer = await channel.receive(CANARY_TIMEOUT_S)
        owners = _owners(words["mark"], proc)
        result = await channel.finish()
    if answer is None:
        return {"canaries": f"none answered: {result.status} {_last_line(result.stderr)}"}
    try:
        holes = {str(name): str(seen) for name, seen in json.loads(answer).items()}
    except (ValueError, AttributeError):
        return {"canaries": "one answered with nonsense"}
    for folder in words["folders"]:
        if (Path(folder) / words["mark"]).exists():
            holes["writing on the host"] = folder
    if 0 in owners.values():
        holes["root"] = "the kernel takes it for root"
    if left := await _survivors(words["mark"], proc):
        holes["survivors"] = f"process {min(left)}"
    return holes


async def _survivors(mark: str, proc: Path) -> dict[int, int]:
    for _ in range(int(SURVIVOR_TIMEOUT_S / 0.02)):
        if not (left := _owners(mark, proc)):
            break
        await asyncio.sleep(0.02)
    return left


def _owners(mark: str, proc: Path) -> dict[int, int]:
    """Process -> user, of everything on this kernel that bears a mark."""
    found = {}
    for folder in proc.glob("[0-9]*"):
        with suppress(OSError):
            if (folder / "comm").read_text("utf-8", "replace").strip() == mark:
                found[int(folder.name)] = folder.stat().st_uid
    return found


async def _hold(sandbox: Sandbox) -> frozenset[str]:
    code = _program("hold", {name: value for name, value in vars(TIGHT).items() if name != "wall_s"})
    result = await sandbox.run(RunRequest(python=code, limits=TIGHT))
    try:
        held = {str(name) for name in json.loads(result.stdout[4:])}
    except (ValueError, TypeError):
        return frozenset()
    capped = len(result.stderr) < 2 * TIGHT.output_bytes
    return frozenset(held | ({"output_bytes"} if capped else set()))


async def _end(sandbox: Sandbox) -> dict[str, bool]:
    """Limits that end a program."""
    large = replace(
        TIGHT, memory_mb=1024, total_memory_mb=CANARY_TOTAL_MEMORY_MB, file_mb=CANARY_TOTAL_MEMORY_MB
    )
    swelling = RunRequest(python=_program("swell", CANARY_TOTAL_MEMORY_MB), limits=large)
    hoarding = RunRequest(python=_program("hoard", CANARY_TOTAL_MEMORY_MB), limits=large)
    sleeping = RunRequest(python="import time; time.sleep(30)", limits=ProgramLimits(wall_s=0.2))
    hoarded = await sandbox.run(hoarding)
    return {
        "total_memory_mb": (await sandbox.run(swelling)).status == "memory"
        and (hoarded.status == "memory" or b"refused" in hoarded.stdout),
        "wall_s": (await sandbox.run(sleeping)).status == "timeout",
    }


@cache
def _source() -> str:
    return importlib.resources.files("suture.sandbox.self_test").joinpath("canary.py").read_text("utf-8")


def _program(name: str, words: object) -> str:
    return f"{_source()}\n{name}({words!r})\n"


def _last_line(errors: bytes) -> str:
    lines = errors.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else "and no word"
