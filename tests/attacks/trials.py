"""How a row of the attack list is run, and the functions from which rows build their trials."""

from __future__ import annotations

import asyncio
import json
import os
import textwrap
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from attacks.host_bait import HostBait
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
    "AttackContext",
    "Row",
    "Trial",
    "TrialFailed",
    "TrialSkipped",
    "attack_request",
    "check",
    "expect_end",
    "expect_output",
    "expect_refused",
    "expect_refused_twice",
    "in_sequence",
    "make_facts_file",
]

PREAMBLE = '''
import json, os
FACTS = json.load(open("facts.json"))
tried = 0
def attempt(name, action, *args):
    """Report a breach if an action succeeds."""
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
    """Make a system call by its name or number."""
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
        file.write(FACTS["marker"])  # so that the host recognises this process and its children
except OSError:
    pass
'''
LIMITS = ProgramLimits(memory_mb=512, processes=64, disk_mb=32, output_bytes=1 << 16)
ATTACK_TIMEOUT_S = 2.0
"""The time limit of an attack's programs; under load, most take less than a quarter of it."""
BENIGN_TIMEOUT_S = 20.0
"""The time limit of benign programs, which must pass on a slow machine, and of the attacks of `slow` rows."""
SHORT_TIMEOUT_S = 1.0
"""The time limit of attacks that only a time limit can stop."""
UNSANDBOXED_TIMEOUT_S = 4.0
"""The time limit without a sandbox: an attack succeeds at once, but then reads the whole machine or hangs."""


class TrialFailed(AssertionError):
    """An attack succeeded, or a benign program failed."""


class TrialSkipped(Exception):
    """A row cannot be tried on this machine.

    Args:
        reason: Why it cannot be tried.
        requirement: The word of `SUTURE_REQUIRE` that turns this into a failure; empty if nothing is missing.
    """

    def __init__(self, reason: str, requirement: str = "") -> None:
        super().__init__(reason)
        self.requirement = requirement


@dataclass(frozen=True, kw_only=True)
class AttackContext:
    """Everything that a trial needs.

    Attributes:
        backend: The name of the sandbox in this suite.
        sandbox: The sandbox, which all rows share.
        open_another: Opens a second sandbox of the same kind.
        open_broken: Opens a sandbox of the same kind that cannot work.
        capabilities: What the sandbox claims.
        bait: The bait on the host.
        marker: The name of every process of the attacks, at most 15 bytes.
        wall_s: The time limit of programs that have none of their own.
    """

    backend: str
    sandbox: Sandbox
    open_another: Callable[[], Sandbox]
    open_broken: Callable[[], Sandbox]
    capabilities: Capabilities
    bait: HostBait
    marker: str
    wall_s: float = ATTACK_TIMEOUT_S


Trial = Callable[[AttackContext], Awaitable[None]]


@dataclass(frozen=True, kw_only=True)
class Row:
    """One row of the attack list.

    Attributes:
        number: Its number in the list.
        attempt: What the attack tries to do.
        attack: Runs the attack and fails if it succeeds.
        twin: Runs a benign program that resembles the attack and fails if the program does not work.
        needs: A program on this machine that the row requires.
        limit: A limit that the sandbox must claim; otherwise the row is skipped.
        slow: Why the attack needs more time than `ATTACK_TIMEOUT_S`; empty if it does not.
    """

    number: int
    attempt: str
    attack: Trial
    twin: Trial
    needs: str = ""
    limit: str = ""
    slow: str = ""


def check(condition: object, detail: object) -> None:
    """Fail unless a condition holds; a plain assert would give no details from the driver process."""
    if not condition:
        raise TrialFailed(str(detail))


def make_facts_file(context: AttackContext, **more: Any) -> dict[str, bytes]:
    """Return the file from which attack code reads what it knows about the host."""
    return {"facts.json": json.dumps({**context.bait.facts(), "marker": context.marker, **more}).encode()}


def attack_request(
    context: AttackContext, code: str, *, as_program: bool = False, **fields: Any
) -> RunRequest:
    """Return a request that runs attack code.

    Args:
        context: The sandbox and the bait.
        code: Python code that runs after `PREAMBLE`.
        as_program: Whether to start an interpreter for the code, where a warm sandbox would fork one.
        fields: Other fields of the request; `limits` is a mapping of what differs from `LIMITS`.
    """
    limits = fields.pop("limits", {})
    files = {**make_facts_file(context), **fields.pop("files", {})}
    full_code = PREAMBLE + textwrap.dedent(code)
    program: dict[str, Any] = {"python": full_code}
    if as_program:
        program = {"argv": (get_own_interpreter().executable, "-I", "-S", "-B", "-c", full_code)}
    chosen_limits = {**vars(LIMITS), "wall_s": context.wall_s, **limits}
    if context.capabilities.level == "none":
        chosen_limits["wall_s"] = min(chosen_limits["wall_s"], UNSANDBOXED_TIMEOUT_S)
    return RunRequest(**program, files=files, limits=ProgramLimits(**chosen_limits), **fields)


def expect_refused(code: str, *, as_program: bool = False, **fields: Any) -> Trial:
    """Return a trial in which every attempt of the code must fail, and the code must run to its end."""

    async def trial(context: AttackContext) -> None:
        counting_code = textwrap.dedent(code) + "\nprint('tried', tried)"
        result = await context.sandbox.run(
            attack_request(context, counting_code, as_program=as_program, **fields)
        )
        lines = result.stdout.decode("utf-8", "replace").splitlines()
        breaches = [line for line in lines if line.startswith("BREACH")]
        check(not breaches, "; ".join(breaches))
        check(result.status == "ok", f"the attack broke: {result}")
        check(lines and lines[-1].startswith("tried ") and lines[-1] != "tried 0", f"nothing tried: {result}")
        check(context.bait.token.encode() not in result.stdout + result.stderr, "the canary came out")

    return trial


def expect_end(
    code: str, *statuses: RunStatus, says: str = "", as_program: bool = False, **fields: Any
) -> Trial:
    """Return a trial in which the code must end with one of these statuses, having printed the line `says`."""

    async def trial(context: AttackContext) -> None:
        result = await context.sandbox.run(attack_request(context, code, as_program=as_program, **fields))
        check(result.status in statuses, f"not {' or '.join(statuses)}: {describe_result(result)}")
        check(b"BREACH" not in result.stdout, describe_result(result))
        if says:
            check(says in result.stdout.decode("utf-8", "replace").splitlines(), describe_result(result))

    return trial


def expect_output(code: str, *, says: str = "fine", **fields: Any) -> Trial:
    """Return a twin: code that must run to its end and print exactly one line."""

    async def trial(context: AttackContext) -> None:
        result = await context.sandbox.run(attack_request(context, code, **fields))
        check((result.status, result.stdout.decode().strip()) == ("ok", says), describe_result(result))

    return trial


def expect_refused_twice(code: str, **fields: Any) -> Trial:
    """Do as `expect_refused`, once as Python code and once as a program."""
    return in_sequence(expect_refused(code, **fields), expect_refused(code, as_program=True, **fields))


def in_sequence(*trials: Trial) -> Trial:
    """Return a trial that runs other trials one after another."""

    async def trial(context: AttackContext) -> None:
        for member in trials:
            await member(context)

    return trial


def describe_result(result: RunResult) -> str:
    """Return a result in short form."""
    return (
        f"{result.status} exit={result.exit_code} signal={result.signal} "
        f"stdout={result.stdout[-600:]!r} stderr={result.stderr[-1200:]!r}"
    )


async def run_row(row: Row, context: AttackContext) -> None:
    """Run the attack of a row, check the bait, a benign run and survivors, and then run the twin.

    Raises:
        TrialFailed: The attack succeeded, or something benign failed.
        TrialSkipped: The row cannot be tried on this machine.
    """
    benign_context = replace(context, wall_s=BENIGN_TIMEOUT_S)
    await row.attack(benign_context if row.slow else context)
    changes = context.bait.find_changes()
    check(not changes, f"the host was reached: {'; '.join(changes)}")
    benign_result = await context.sandbox.run(
        RunRequest(python="print(6 * 7)", limits=ProgramLimits(wall_s=BENIGN_TIMEOUT_S))
    )
    check(
        (benign_result.status, benign_result.stdout) == ("ok", b"42\n"),
        f"a benign run after it: {describe_result(benign_result)}",
    )
    await require_no_survivors(context.marker)
    await row.twin(benign_context)
    await require_no_survivors(context.marker)


async def require_no_survivors(marker: str) -> None:
    """Fail if, after 30 seconds, a process of the host still has this marker as its name or in an argument."""
    for _ in range(600):
        survivors = find_survivors(marker)
        if not survivors:
            return
        await asyncio.sleep(0.05)
    raise TrialFailed(f"still alive: {survivors}")


def find_survivors(marker: str) -> list[str]:
    """Return the processes of the host that an attack has left; zombies do not count."""
    survivors = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        try:
            name, command_line = (
                (folder / "comm").read_text("utf-8", "replace").strip(),
                (folder / "cmdline").read_bytes(),
            )
            state = (folder / "stat").read_text("utf-8", "replace").rpartition(") ")[2][:1]
        except OSError:
            continue
        if state != "Z" and (name == marker or marker.encode() in command_line):
            survivors.append(f"{folder.name} {name} {command_line[-120:]!r}")
    return survivors
