"""Rules and numbers to a filter, per machine."""

from __future__ import annotations

import errno
import os
import sys
from dataclasses import dataclass
from functools import cache

from suture.errors import SandboxUnavailable
from suture.sandbox.seccomp import rules
from suture.sandbox.seccomp.assembler import (
    ARCH,
    NUMBER,
    Decision,
    FilterAnswer,
    FilterBranch,
    argument,
    assemble,
    by_range,
    upper_half,
)
from suture.sandbox.seccomp.rules import AARCH64, NEWEST, X86_64

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


def own_filter(*, namespaces: bool = False, memory_files: bool = True) -> bytes:
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
