"""The host's side of the canary attacks on a sandbox: what gets through, and which limits hold."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

from suture.core.settings.schema import IsolationLevel
from suture.core.temporary_folders import temporary_folder
from suture.errors import SandboxBroken
from suture.sandbox.contract import ProgramLimits, RunRequest, Sandbox
from suture.sandbox.execution.process import read_source
from suture.sandbox.self_test.canary import identify_kernel
from suture.sandbox.tuning import CANARY_TIMEOUT_S, CANARY_TOTAL_MEMORY_MB, SURVIVOR_TIMEOUT_S

VARIABLE_PREFIX = "CANARY_OF_SUTURE"
"""The prefix of the environment variable that must not be visible inside; each attack uses its own name.
"""
TIGHT_LIMITS = ProgramLimits(
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
"""Limits that a canary exceeds quickly, and that still let its interpreter start. Chosen by judgement."""
Hole = Literal[
    "host_files",
    "host_environment",
    "host_writes",
    "host_network",
    "host_abstract_sockets",
    "vsock",
    "kernel_settings",
    "namespaces",
    "host_kernel",
    "root",
    "survivors",
    "canary_failed",
]
"""What an attack got through: the attacks of `canary.ATTACKS`, then what the host sees from outside.
`root`: the kernel takes the program for root; `survivors`: processes outlive their run; `canary_failed`: a canary did
not answer, so the result is unknown."""
HOLES: frozenset[str] = frozenset(get_args(Hole))
HOLE_TEXT: dict[Hole, str] = {
    "host_files": "files of the host",
    "host_environment": "environment of the host",
    "host_writes": "writing on the host",
    "host_network": "network of the host",
    "host_abstract_sockets": "abstract sockets of the host",
    "vsock": "vsock",
    "kernel_settings": "kernel settings",
    "namespaces": "new namespaces",
    "host_kernel": "kernel of the host",
    "root": "root",
    "survivors": "processes that outlive their run",
    "canary_failed": "the canary failed",
}
OTHER_KERNEL_LEVELS: frozenset[IsolationLevel] = frozenset({"wasm", "user_kernel", "vm"})
"""Levels at which a program does not run on the host's kernel."""
HOST_KERNEL_HOLES: frozenset[Hole] = frozenset({"vsock", "kernel_settings", "namespaces", "root"})
"""Attacks that are harmless if the kernel is not the host's."""
HOST_KERNEL: Hole = "host_kernel"
"""A hole only in a sandbox that claims another kernel. The program looks at the kernel itself, because a
runtime's name proves nothing."""


@dataclass(frozen=True, kw_only=True)
class ProbeReport:
    """What the canary attacks have found.

    Attributes:
        holes: Attack that succeeded -> what it got through to.
        limits: Members of `LIMIT_NAMES` that held.
    """

    holes: dict[Hole, str] = field(default_factory=dict)
    limits: frozenset[str] = frozenset()


async def attack_sandbox(
    create: Callable[[], Sandbox],
    level: IsolationLevel,
    *,
    folders: Sequence[Path] = (),
    proc: Path = Path("/proc"),
) -> ProbeReport:
    """Attack a new sandbox, and return what got through and which limits hold.

    During the attack, this process has one more environment variable, which must not be visible inside the sandbox.

    Args:
        create: Creates the sandbox. What it inherits from this process is part of what is tested.
        level: The level that the sandbox claims.
        folders: Existing folders to place bait in, besides the one for temporary files.

    Raises:
        SandboxUnavailable: No sandbox can be built here.
    """
    async with _place_bait(folders) as bait:
        sandbox = create()
        try:
            holes = await _run_escape_attacks(sandbox, bait, proc)
            limits = await _test_limits(sandbox)
            limits |= {name for name, holds in (await _test_ending_limits(sandbox)).items() if holds}
        except SandboxBroken as fault:
            holes, limits = {"canary_failed": str(fault)}, frozenset()
        finally:
            await sandbox.close()
    if level not in OTHER_KERNEL_LEVELS:
        holes.pop(HOST_KERNEL, None)
    elif HOST_KERNEL not in holes:
        holes = {name: evidence for name, evidence in holes.items() if name not in HOST_KERNEL_HOLES}
    return ProbeReport(holes=holes, limits=limits)


@asynccontextmanager
async def _place_bait(folders: Sequence[Path]) -> AsyncIterator[dict[str, Any]]:
    """Place bait that must not be reached, and yield what `canary.py` must know about it."""
    mark, secret = f"canary{secrets.token_hex(4)}", secrets.token_hex(16)
    async with AsyncExitStack() as stack:
        bait_folders = [
            stack.enter_context(temporary_folder("suture-canary-", folder)) for folder in (None, *folders)
        ]
        for folder in bait_folders:
            os.chmod(folder, 0o777)  # noqa: PTH101 - only the sandbox may prevent access
            (folder / "secret").write_text(secret, "ascii")
        listeners = [socket.create_server((host, 0)) for host in _own_addresses()]
        for listener in listeners:
            stack.callback(listener.close)
        abstract = stack.enter_context(socket.socket(socket.AF_UNIX))
        abstract.bind(f"\0{mark}")
        abstract.listen()
        variable = f"{VARIABLE_PREFIX}_{mark}"
        os.environ[variable] = secret
        stack.callback(os.environ.pop, variable, None)
        yield {
            "mark": mark,
            "kernel": identify_kernel(),
            "secret": secret,
            "files": [f"{folder}/secret" for folder in bait_folders],
            "folders": [str(folder) for folder in bait_folders],
            "addresses": [listener.getsockname()[:2] for listener in listeners],
            "abstract": mark,
        }


def _own_addresses() -> list[str]:
    addresses = ["127.0.0.1"]
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe_socket:
        probe_socket.connect(("192.0.2.1", 9))  # sends nothing, and shows which local address would be used
        addresses.append(probe_socket.getsockname()[0])
    return list(dict.fromkeys(addresses))


async def _run_escape_attacks(sandbox: Sandbox, bait: dict[str, Any], proc: Path) -> dict[Hole, str]:
    limits = ProgramLimits(wall_s=2 * CANARY_TIMEOUT_S)
    async with sandbox.open(RunRequest(python=_program("attack_and_wait", bait), limits=limits)) as channel:
        answer = await channel.receive(CANARY_TIMEOUT_S)
        uids = _find_marked_processes(bait["mark"], proc).values()
        result = await channel.finish()
    if answer is None:
        return {"canary_failed": f"no answer: {result.status} {_last_line(result.stderr)}"}
    try:
        holes: dict[Hole, str] = {name: str(evidence) for name, evidence in json.loads(answer).items()}
        is_valid = holes.keys() <= HOLES
    except (ValueError, AttributeError, TypeError):
        is_valid = False
    if not is_valid:
        return {"canary_failed": "the answer makes no sense"}
    for folder in bait["folders"]:
        if (Path(folder) / bait["mark"]).exists():
            holes["host_writes"] = folder
    if 0 in uids:
        holes["root"] = "the kernel sees uid 0"
    if survivors := await _find_survivors(bait["mark"], proc):
        holes["survivors"] = f"process {min(survivors)}"
    return holes


async def _find_survivors(mark: str, proc: Path) -> dict[int, int]:
    for _ in range(int(SURVIVOR_TIMEOUT_S / 0.02)):  # looks every 20 ms
        if not (survivors := _find_marked_processes(mark, proc)):
            break
        await asyncio.sleep(0.02)
    return survivors


def _find_marked_processes(mark: str, proc: Path) -> dict[int, int]:
    """Return process id -> user id, for every process on this kernel whose name is `mark`."""
    uids = {}
    for folder in proc.glob("[0-9]*"):
        with suppress(OSError):
            if (folder / "comm").read_text("utf-8", "replace").strip() == mark:
                uids[int(folder.name)] = folder.stat().st_uid
    return uids


async def _test_limits(sandbox: Sandbox) -> frozenset[str]:
    limits = {name: value for name, value in vars(TIGHT_LIMITS).items() if name != "wall_s"}
    result = await sandbox.run(RunRequest(python=_program("test_limits", limits), limits=TIGHT_LIMITS))
    try:
        held_limits = {str(name) for name in json.loads(result.stdout[4:])}  # after the length of the frame
    except (ValueError, TypeError):
        return frozenset()
    # The canary printed eight times the limit. Twice leaves room for the line that marks the gap.
    if len(result.stderr) < 2 * TIGHT_LIMITS.output_bytes:
        held_limits.add("output_bytes")
    return frozenset(held_limits)


async def _test_ending_limits(sandbox: Sandbox) -> dict[str, bool]:
    """Return for each limit that ends a program whether it held."""
    limits = replace(
        TIGHT_LIMITS, memory_mb=1024, total_memory_mb=CANARY_TOTAL_MEMORY_MB, file_mb=CANARY_TOTAL_MEMORY_MB
    )
    memory_request = RunRequest(python=_program("exceed_total_memory", CANARY_TOTAL_MEMORY_MB), limits=limits)
    memory_file_request = RunRequest(
        python=_program("exceed_with_memory_files", CANARY_TOTAL_MEMORY_MB), limits=limits
    )
    sleep_request = RunRequest(python="import time; time.sleep(30)", limits=ProgramLimits(wall_s=0.2))
    memory_file_result = await sandbox.run(memory_file_request)
    return {
        "total_memory_mb": (await sandbox.run(memory_request)).status == "memory"
        and (memory_file_result.status == "memory" or b"refused" in memory_file_result.stdout),
        "wall_s": (await sandbox.run(sleep_request)).status == "timeout",
    }


def _program(function: str, argument: object) -> str:
    return f"{read_source('suture.sandbox.self_test.canary')}\n{function}({argument!r})\n"


def _last_line(errors: bytes) -> str:
    lines = errors.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else "(no output)"
