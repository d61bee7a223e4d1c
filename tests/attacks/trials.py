"""How an attack is run: the building blocks that most rows share."""

from __future__ import annotations

import asyncio
import json
import os
import textwrap
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from attacks.host_bait import Ground
from suture.sandbox import (
    Capabilities,
    ProgramLimits,
    RunRequest,
    RunResult,
    RunStatus,
    Sandbox,
    get_own_interpreter,
)

__all__ = [
    "Failed",
    "Row",
    "Skipped",
    "Trial",
    "World",
    "allowed",
    "both",
    "demand",
    "each",
    "ends",
    "marked",
    "refused",
    "request",
]

PREAMBLE = '''
import json, os
FACTS = json.load(open("facts.json"))
tried = 0
def attempt(name, action, *args):
    """Say so where something works that must not."""
    global tried
    tried += 1
    try:
        answer = action(*args)
    except OSError:
        return
    lost(name, answer)
def lost(name, answer=""):
    print("BREACH", name, repr(answer)[:300], flush=True)
def call(name, *args):
    """A system call by its name or number."""
    import ctypes
    number = FACTS["calls"][name] if isinstance(name, str) else name
    libc = ctypes.CDLL(None, use_errno=True)
    words = [ctypes.c_long(word) if isinstance(word, int) else word for word in args]
    answer = libc.syscall(ctypes.c_long(number), *words)
    if answer == -1:
        raise OSError(ctypes.get_errno(), name)
    return answer
def read(path):
    with open(path, "rb") as file:
        return file.read(100)
def write(path):
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o644))
try:
    with open("/proc/self/comm", "w") as file:
        file.write(FACTS["marker"])  # so that whatever descends from here is known on the host
except OSError:
    pass
'''
LIMITS = ProgramLimits(memory_mb=512, processes=64, disk_mb=32, output_bytes=1 << 16)
ATTACK_S = 2.0
"""The time limit of an attack's programs: under load, most take less than a quarter of it."""
PATIENT_S = 20.0
"""That of honest programs, which a slow machine must not fail, and of the attacks of rows that are `slow`."""
SHORT_S = 1.0
"""For attacks that must be stopped by the clock."""
UNSANDBOXED_S = 4.0
"""Where nothing stands against an attack it gets through at once, and then finds no end: it reads all of the
machine, or has stopped its own supervisor."""


class Failed(AssertionError):
    """An attack got through, or what must work did not."""


class Skipped(Exception):
    """A row cannot be tried on this machine.

    Args:
        why: The reason.
        word: Of `SUTURE_REQUIRE`, which makes this a failure; empty where there is nothing to install.
    """

    def __init__(self, why: str, word: str = "") -> None:
        super().__init__(why)
        self.word = word


@dataclass(frozen=True, kw_only=True)
class World:
    """Where a row is tried.

    Attributes:
        backend: What the sandbox is called in this suite.
        sandbox: The sandbox; every row of one world meets the same one.
        another: Opens one more wall of the same kind.
        broken: Opens one of the same kind that cannot work here.
        able: What the sandbox says of itself.
        ground: The canaries.
        marker: The name of every process of this world's attacks, at most 15 bytes.
        wall_s: The time limit of programs that name none.
    """

    backend: str
    sandbox: Sandbox
    another: Callable[[], Sandbox]
    broken: Callable[[], Sandbox]
    able: Capabilities
    ground: Ground
    marker: str
    wall_s: float = ATTACK_S


Trial = Callable[[World], Awaitable[None]]


@dataclass(frozen=True, kw_only=True)
class Row:
    """One row of the attack list.

    Attributes:
        number: Its number there.
        attempt: What is tried.
        attack: Tries it, and fails where it works.
        twin: What honest programs do that looks like it; fails where that does not work.
        needs: A program of the machine without which it cannot be tried.
        limit: A limit of the sandbox without which it cannot be withstood; a sandbox without it is not tried.
        slow: Why its attack needs more than `ATTACK_S`, where it does.
    """

    number: int
    attempt: str
    attack: Trial
    twin: Trial
    needs: str = ""
    limit: str = ""
    slow: str = ""


def demand(condition: object, what: object) -> None:
    """Fail where a condition does not hold; plain asserts would say nothing from the helper process."""
    if not condition:
        raise Failed(str(what))


def marked(world: World, **more: Any) -> dict[str, bytes]:
    """The facts as a file of a request."""
    return {"facts.json": json.dumps({**world.ground.facts(), "marker": world.marker, **more}).encode()}


def request(world: World, code: str, *, started: bool = False, **fields: Any) -> RunRequest:
    """A request for attack code.

    Args:
        world: Where.
        code: Python, to run after `PREAMBLE`.
        started: Whether an interpreter is started for it, where a warm sandbox would fork one.
        fields: Of the request; `limits` may be a mapping of what differs from `LIMITS`.
    """
    limits = fields.pop("limits", {})
    files = {**marked(world), **fields.pop("files", {})}
    whole = PREAMBLE + textwrap.dedent(code)
    how: dict[str, Any] = {"python": whole}
    if started:
        how = {"argv": (get_own_interpreter().executable, "-I", "-S", "-B", "-c", whole)}
    chosen = {**vars(LIMITS), "wall_s": world.wall_s, **limits}
    if world.able.level == "none":
        chosen["wall_s"] = min(chosen["wall_s"], UNSANDBOXED_S)
    return RunRequest(**how, files=files, limits=ProgramLimits(**chosen), **fields)


def refused(code: str, *, started: bool = False, **fields: Any) -> Trial:
    """Everything that the code attempts must fail, and the code must come to its end."""

    async def trial(world: World) -> None:
        code_ = textwrap.dedent(code) + "\nprint('tried', tried)"
        result = await world.sandbox.run(request(world, code_, started=started, **fields))
        lines = result.stdout.decode("utf-8", "replace").splitlines()
        breaches = [line for line in lines if line.startswith("BREACH")]
        demand(not breaches, "; ".join(breaches))
        demand(result.status == "ok", f"the attack broke: {result}")
        demand(
            lines and lines[-1].startswith("tried ") and lines[-1] != "tried 0", f"nothing tried: {result}"
        )
        demand(world.ground.token.encode() not in result.stdout + result.stderr, "the canary came out")

    return trial


def ends(code: str, *statuses: RunStatus, says: str = "", started: bool = False, **fields: Any) -> Trial:
    """The code must end in one of these ways, and must have said a line by then."""

    async def trial(world: World) -> None:
        result = await world.sandbox.run(request(world, code, started=started, **fields))
        demand(result.status in statuses, f"not {' or '.join(statuses)}: {shown(result)}")
        demand(b"BREACH" not in result.stdout, shown(result))
        if says:
            demand(says in result.stdout.decode("utf-8", "replace").splitlines(), shown(result))

    return trial


def allowed(code: str, *, says: str = "fine", **fields: Any) -> Trial:
    """A twin: code that must run to its end and print one line."""

    async def trial(world: World) -> None:
        result = await world.sandbox.run(request(world, code, **fields))
        demand((result.status, result.stdout.decode().strip()) == ("ok", says), shown(result))

    return trial


def both(code: str, **fields: Any) -> Trial:
    """As `refused`, in code and in a program that is started."""
    return each(refused(code, **fields), refused(code, started=True, **fields))


def each(*trials: Trial) -> Trial:
    """One after another."""

    async def trial(world: World) -> None:
        for one in trials:
            await one(world)

    return trial


def shown(result: RunResult) -> str:
    """A result, short enough to read."""
    return (
        f"{result.status} exit={result.exit_code} signal={result.signal} "
        f"stdout={result.stdout[-600:]!r} stderr={result.stderr[-1200:]!r}"
    )


async def face(row: Row, world: World) -> None:
    """Try a row: the attack, the ground, an honest run in the same sandbox, survivors, the twin.

    Raises:
        Failed: The attack got through, or something honest did not.
        Skipped: It cannot be tried here.
    """
    patient = replace(world, wall_s=PATIENT_S)
    await row.attack(patient if row.slow else world)
    harm = world.ground.harm()
    demand(not harm, f"the host was reached: {'; '.join(harm)}")
    after = await world.sandbox.run(RunRequest(python="print(6 * 7)", limits=ProgramLimits(wall_s=PATIENT_S)))
    demand((after.status, after.stdout) == ("ok", b"42\n"), f"an honest run after it: {shown(after)}")
    await gone(world.marker)
    await row.twin(patient)
    await gone(world.marker)


async def gone(marker: str) -> None:
    """Wait until no process of the host has a name or an argument with this marker."""
    for _ in range(600):
        left = survivors(marker)
        if not left:
            return
        await asyncio.sleep(0.05)
    raise Failed(f"still alive: {left}")


def survivors(marker: str) -> list[str]:
    """The processes of the host that an attack has left, but for those that are only waiting to be reaped."""
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        try:
            name, words = (
                (folder / "comm").read_text("utf-8", "replace").strip(),
                (folder / "cmdline").read_bytes(),
            )
            state = (folder / "stat").read_text("utf-8", "replace").rpartition(") ")[2][:1]
        except OSError:
            continue
        if state != "Z" and (name == marker or marker.encode() in words):
            found.append(f"{folder.name} {name} {words[-120:]!r}")
    return found
