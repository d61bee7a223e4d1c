"""Decisions to classic BPF.

A decision is a tree: tests above, answers at the leaves. Laid out depth first, every jump leads forward and
every path ends in an answer, which is what the kernel asks of a filter.

Instructions: McCanne and Jacobson, "The BSD Packet Filter" (1993), as in `linux/bpf_common.h`; what a filter
reads is `struct seccomp_data` (`linux/seccomp.h`).
"""
# FIXME doc of sandbox/seccomp/filters: """Rules and numbers to a filter, per machine."""

from __future__ import annotations

import errno
import os
import struct
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, TypeAlias

from suture.errors import SandboxUnavailable
from suture.sandbox.seccomp import rules
from suture.sandbox.seccomp.rules import AARCH64, NEWEST, X86_64

INSTRUCTION = struct.Struct("<HBBI")
"""`struct sock_filter`: operation, jump if true, jump if false, operand. Both machines are little-endian."""
LONGEST = 4096
"""Instructions that the kernel takes (`BPF_MAXINSNS`)."""
FARTHEST = 255
"""Instructions that a conditional jump can pass over."""

NUMBER = 0
"""Where the call's number lies in `struct seccomp_data`."""
ARCH = 4
"""Where the machine's name lies (`AUDIT_ARCH_*`)."""

LOAD, JUMP, RETURN = 0x20, 0x05, 0x06
OPERATIONS = {"eq": 0x15, "gt": 0x25, "ge": 0x35, "set": 0x45}
"""`BPF_JMP` with `BPF_J{EQ,GT,GE,SET}` and `BPF_K`, of `linux/bpf_common.h`."""

Code: TypeAlias = list[tuple[int, int, int, int]]


def argument(position: int) -> int:
    """Where the low half of an argument lies; the kernel reads no more of those that are `int`."""
    return 16 + 8 * position


def upper_half(position: int) -> int:
    """Where the high half of an argument lies, for those that are pointers."""
    return argument(position) + 4


@dataclass(frozen=True)
class FilterAnswer:
    """What the kernel is told, a `SECCOMP_RET_*` value."""

    value: int


@dataclass(frozen=True, kw_only=True)
class FilterBranch:
    """A comparison of one 32-bit word without sign.

    Attributes:
        field: Offset of the word in `struct seccomp_data`, in bytes.
        how: Equal, greater, greater or equal; or whether any bit of the operand is set.
        operand: What it is compared with.
        yes: What follows where it holds.
        no: What follows where it does not.
    """

    field: int
    how: Literal["eq", "gt", "ge", "set"]
    operand: int
    yes: Decision
    no: Decision


Decision: TypeAlias = FilterAnswer | FilterBranch


def by_range(field: int, starts: Sequence[tuple[int, Decision]]) -> Decision:
    """The decision that holds from each start up to the next, by halving.

    Args:
        field: Offset of the word.
        starts: First value -> decision, rising; the first holds for smaller values too.
    """
    if len(starts) == 1:
        return starts[0][1]
    middle = len(starts) // 2
    return FilterBranch(
        field=field,
        how="ge",
        operand=starts[middle][0],
        yes=by_range(field, starts[middle:]),
        no=by_range(field, starts[:middle]),
    )


def assemble(decision: Decision) -> bytes:
    """The filter as the kernel takes it.

    Raises:
        ValueError: It is longer than the kernel takes.
    """
    code = _lay(decision, None)
    if len(code) > LONGEST:
        raise ValueError(f"{len(code)} instructions are too many; the kernel takes {LONGEST}")
    return b"".join(INSTRUCTION.pack(*step) for step in code)


def _lay(decision: Decision, loaded: int | None) -> Code:
    if isinstance(decision, FilterAnswer):
        return [(RETURN, 0, 0, decision.value)]
    load: Code = [] if loaded == decision.field else [(LOAD, 0, 0, decision.field)]
    yes = _lay(decision.yes, decision.field)
    no = _lay(decision.no, decision.field)
    operation = OPERATIONS[decision.how]
    if len(yes) <= FARTHEST:
        return [*load, (operation, 0, len(yes), decision.operand), *yes, *no]
    # `no` is out of reach of the test itself: a plain jump reaches any distance.
    return [*load, (operation, 1, 0, decision.operand), (JUMP, 0, 0, len(yes)), *yes, *no]


ALLOW = FilterAnswer(0x7FFF0000)
"""`SECCOMP_RET_ALLOW` of `linux/seccomp.h`."""
KILL = FilterAnswer(0x80000000)
"""The whole process, as by an uncaught SIGSYS."""
DONE = FilterAnswer(0x00050000)
"""The call is not made, and its program is told that it went well."""
X32 = 0x40000000
"""The bit in numbers of x32: other calls under the same machine's name."""


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What a filter has to know of a machine.

    Attributes:
        audit: Its name in `struct seccomp_data` (`linux/audit.h`).
        calls: Name -> number, for the calls that the rules name.
        x32: Whether numbers may carry the x32 bit.
    """

    audit: int
    calls: dict[str, int]
    x32: bool = False


MACHINES = {
    "x86_64": Machine(audit=0xC000003E, calls=X86_64, x32=True),
    "aarch64": Machine(audit=0xC00000B7, calls=AARCH64),
}


def build_filter_for_host(*, namespaces: bool = False, memory_files: bool = True) -> bytes:
    """The filter for this machine; see `build_filter`.

    Raises:
        SandboxUnavailable: There are no rules for this machine.
    """
    machine = os.uname().machine
    if machine not in MACHINES or sys.maxsize < 1 << 32:
        raise SandboxUnavailable(
            f"no system call filter for a {sys.maxsize.bit_length() + 1}-bit Python on {machine!r}",
            remedy=f"use a 64-bit Python on {' or '.join(MACHINES)}",
        )
    return build_filter(machine, namespaces=namespaces, memory_files=memory_files)


@cache
def build_filter(machine: str, *, namespaces: bool = False, memory_files: bool = True) -> bytes:
    """A filter as the kernel takes it.

    Args:
        machine: As `uname -m` names it.
        namespaces: Whether new namespaces and mounts are allowed; for a zygote, never for a program.
        memory_files: Whether files in memory that lie in no folder are allowed.
    """
    facts = MACHINES[machine]
    decisions: dict[int, Decision] = {NEWEST + 1: _refuse(rules.ABSENT)}
    if facts.x32:
        decisions[X32] = KILL
    decisions |= _by_number(facts.calls, namespaces=namespaces, memory_files=memory_files)
    known = by_range(NUMBER, _ranges(decisions))
    return assemble(FilterBranch(field=ARCH, how="eq", operand=facts.audit, yes=known, no=KILL))


def _by_number(calls: dict[str, int], *, namespaces: bool, memory_files: bool) -> dict[int, Decision]:
    denied = [*rules.DENIED, *(() if namespaces else rules.NAMESPACE_CALLS)]
    decisions: dict[int, Decision] = {calls[name]: _refuse(errno.EPERM) for name in denied if name in calls}
    absent = ("clone3", *rules.WATCH_CALLS, *(() if memory_files else rules.MEMORY_FILE_CALLS))
    decisions |= {calls[name]: _refuse(rules.ABSENT) for name in absent if name in calls}
    decisions |= {calls[name]: DONE for name in rules.FLUSH_CALLS}
    decisions |= _about_others(calls)
    decisions[calls["ioctl"]] = _one_of(argument(1), rules.IOCTLS, _refuse(errno.EPERM), ALLOW)
    for name in rules.SOCKET_CALLS:
        decisions[calls[name]] = _one_of(argument(0), rules.FAMILIES, ALLOW, _refuse(rules.WRONG_FAMILY))
    if not namespaces:
        decisions[calls["clone"]] = FilterBranch(
            field=argument(0),
            how="set",
            operand=rules.NAMESPACE_FLAGS,
            yes=_refuse(errno.EPERM),
            no=ALLOW,
        )
    return decisions


def _about_others(calls: dict[str, int]) -> dict[int, Decision]:
    """Calls that a program may make on itself, and not on what supervises it."""
    refused = _refuse(errno.EPERM)
    reads = FilterBranch(field=upper_half(2), how="eq", operand=0, yes=ALLOW, no=refused)
    sets_nothing = FilterBranch(field=argument(2), how="eq", operand=0, yes=reads, no=refused)
    decisions: dict[int, Decision] = {
        calls[rules.LIMIT_CALL]: _one_of(argument(0), (0,), ALLOW, sets_nothing)
    }
    for name in rules.SCHEDULING_CALLS:
        decisions[calls[name]] = _one_of(argument(0), (rules.SUPERVISOR,), refused, ALLOW)
    for name, single in rules.PRIORITY_CALLS.items():
        of_one = _one_of(argument(1), (rules.SUPERVISOR,), refused, ALLOW)
        decisions[calls[name]] = _one_of(argument(0), (single,), of_one, refused)
    return decisions


def _refuse(error: int) -> FilterAnswer:
    return FilterAnswer(0x00050000 | error)


def _one_of(field: int, values: tuple[int, ...], yes: Decision, no: Decision) -> Decision:
    decision = no
    for value in reversed(values):
        decision = FilterBranch(field=field, how="eq", operand=value, yes=yes, no=decision)
    return decision


def _ranges(decisions: dict[int, Decision]) -> list[tuple[int, Decision]]:
    """Where the decision changes, from 0 up; what is not decided up to the newest call is allowed."""
    ranges: list[tuple[int, Decision]] = [(0, ALLOW)]
    for number in sorted(decisions):
        following = decisions[number]
        if ranges[-1][0] == number:
            ranges.pop()
        if not ranges or ranges[-1][1] != following:
            ranges.append((number, following))
        if number < NEWEST and number + 1 not in decisions:
            ranges.append((number + 1, ALLOW))
    return ranges
