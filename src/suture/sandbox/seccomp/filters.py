"""Build the seccomp filter for a machine: the rules become a decision tree, and the tree becomes classic BPF.

A decision is a tree with tests as nodes and answers as leaves. Laid out depth first, every jump leads forward
and every path ends in an answer, as the kernel requires.

Instructions: McCanne and Jacobson, "The BSD Packet Filter" (1993), as in `linux/bpf_common.h`. The words that
a filter reads are those of `struct seccomp_data` (`linux/seccomp.h`).
"""

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
from suture.sandbox.seccomp.rules import AARCH64, NEWEST_CALL, X86_64

INSTRUCTION = struct.Struct("<HBBI")
"""`struct sock_filter`: operation, jump if true, jump if false, operand. Both supported machines are
little-endian."""
MAX_INSTRUCTIONS = 4096
"""Maximum number of instructions that the kernel accepts (`BPF_MAXINSNS`)."""
MAX_JUMP = 255
"""Maximum number of instructions that a conditional jump can skip."""

CALL_NUMBER_OFFSET = 0
"""Offset of the call's number in `struct seccomp_data`."""
ARCH_OFFSET = 4
"""Offset of the machine's name (`AUDIT_ARCH_*`)."""

LOAD_WORD, JUMP, RETURN = 0x20, 0x05, 0x06
OPERATIONS = {"eq": 0x15, "gt": 0x25, "ge": 0x35, "set": 0x45}
"""`BPF_JMP` with `BPF_J{EQ,GT,GE,SET}` and `BPF_K`, of `linux/bpf_common.h`."""

Code: TypeAlias = list[tuple[int, int, int, int]]


def argument_offset(position: int) -> int:
    """Return the offset of the low half of an argument; the kernel reads only this half of an `int`."""
    return 16 + 8 * position


def argument_high_offset(position: int) -> int:
    """Return the offset of the high half of an argument, for arguments that are pointers."""
    return argument_offset(position) + 4


@dataclass(frozen=True)
class FilterAnswer:
    """The answer to a call, as a `SECCOMP_RET_*` value."""

    value: int


@dataclass(frozen=True, kw_only=True)
class FilterBranch:
    """A comparison of one unsigned 32-bit word.

    Attributes:
        field: Offset of the word in `struct seccomp_data`, in bytes.
        operator: Equal, greater, greater or equal; or whether any bit of the operand is set.
        operand: What the word is compared with.
        yes: The decision if the comparison holds.
        no: The decision if it does not.
    """

    field: int
    operator: Literal["eq", "gt", "ge", "set"]
    operand: int
    yes: Decision
    no: Decision


Decision: TypeAlias = FilterAnswer | FilterBranch


def build_range_tree(field: int, starts: Sequence[tuple[int, Decision]]) -> Decision:
    """Return a binary search for the decision that holds from each start value up to the next.

    Args:
        field: Offset of the word.
        starts: First value -> decision, ascending; the first decision holds for smaller values too.
    """
    if len(starts) == 1:
        return starts[0][1]
    middle = len(starts) // 2
    return FilterBranch(
        field=field,
        operator="ge",
        operand=starts[middle][0],
        yes=build_range_tree(field, starts[middle:]),
        no=build_range_tree(field, starts[:middle]),
    )


def assemble(decision: Decision) -> bytes:
    """Return the filter as the kernel takes it.

    Raises:
        ValueError: It is longer than the kernel accepts.
    """
    code = _emit(decision, None)
    if len(code) > MAX_INSTRUCTIONS:
        raise ValueError(f"{len(code)} instructions are too many; the kernel takes {MAX_INSTRUCTIONS}")
    return b"".join(INSTRUCTION.pack(*step) for step in code)


def _emit(decision: Decision, loaded: int | None) -> Code:
    if isinstance(decision, FilterAnswer):
        return [(RETURN, 0, 0, decision.value)]
    load: Code = [] if loaded == decision.field else [(LOAD_WORD, 0, 0, decision.field)]
    yes = _emit(decision.yes, decision.field)
    no = _emit(decision.no, decision.field)
    operation = OPERATIONS[decision.operator]
    if len(yes) <= MAX_JUMP:
        return [*load, (operation, 0, len(yes), decision.operand), *yes, *no]
    # `no` is too far for the conditional jump, and a plain jump reaches any distance.
    return [*load, (operation, 1, 0, decision.operand), (JUMP, 0, 0, len(yes)), *yes, *no]


ALLOW = FilterAnswer(0x7FFF0000)
"""`SECCOMP_RET_ALLOW` of `linux/seccomp.h`."""
KILL = FilterAnswer(0x80000000)
"""`SECCOMP_RET_KILL_PROCESS`: kills the whole process, as an uncaught SIGSYS does."""
PRETEND_SUCCESS = FilterAnswer(0x00050000)
"""`SECCOMP_RET_ERRNO` with 0: the call is not made, and the program sees success."""
X32_BIT = 0x40000000
"""The bit in the numbers of the x32 ABI: different calls under the same machine name."""


@dataclass(frozen=True, kw_only=True)
class FilterMachine:
    """What a filter must know about a machine.

    Attributes:
        audit: Its name in `struct seccomp_data` (`linux/audit.h`).
        calls: Name -> number, for the calls that the rules name.
        x32: Whether numbers may carry the x32 bit.
    """

    audit: int
    calls: dict[str, int]
    x32: bool = False


MACHINES = {
    "x86_64": FilterMachine(audit=0xC000003E, calls=X86_64, x32=True),
    "aarch64": FilterMachine(audit=0xC00000B7, calls=AARCH64),
}


def build_filter_for_host(*, namespaces: bool = False, memory_files: bool = True) -> bytes:
    """Return the filter for this machine; see `build_filter`.

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
    """Return a filter as the kernel takes it.

    Args:
        machine: As `uname -m` prints it.
        namespaces: Whether new namespaces and mounts are allowed: for a zygote, never for a program.
        memory_files: Whether `memfd_create` is allowed.
    """
    spec = MACHINES[machine]
    decisions: dict[int, Decision] = {NEWEST_CALL + 1: _deny(rules.UNIMPLEMENTED)}
    if spec.x32:
        decisions[X32_BIT] = KILL
    decisions |= _decide_calls(spec.calls, namespaces=namespaces, memory_files=memory_files)
    call_tree = build_range_tree(CALL_NUMBER_OFFSET, _split_into_ranges(decisions))
    return assemble(
        FilterBranch(field=ARCH_OFFSET, operator="eq", operand=spec.audit, yes=call_tree, no=KILL)
    )


def _decide_calls(calls: dict[str, int], *, namespaces: bool, memory_files: bool) -> dict[int, Decision]:
    denied = [*rules.DENIED_CALLS, *(() if namespaces else rules.NAMESPACE_CALLS)]
    decisions: dict[int, Decision] = {calls[name]: _deny(errno.EPERM) for name in denied if name in calls}
    unimplemented = ("clone3", *rules.WATCH_CALLS, *(() if memory_files else rules.MEMORY_FILE_CALLS))
    decisions |= {calls[name]: _deny(rules.UNIMPLEMENTED) for name in unimplemented if name in calls}
    decisions |= {calls[name]: PRETEND_SUCCESS for name in rules.FLUSH_CALLS}
    decisions |= _decide_calls_on_others(calls)
    decisions[calls["ioctl"]] = _match_any(argument_offset(1), rules.DENIED_IOCTLS, _deny(errno.EPERM), ALLOW)
    for name in rules.SOCKET_CALLS:
        decisions[calls[name]] = _match_any(
            argument_offset(0), rules.ALLOWED_FAMILIES, ALLOW, _deny(rules.FAMILY_ERROR)
        )
    if not namespaces:
        decisions[calls["clone"]] = FilterBranch(
            field=argument_offset(0),
            operator="set",
            operand=rules.NAMESPACE_FLAGS,
            yes=_deny(errno.EPERM),
            no=ALLOW,
        )
    return decisions


def _decide_calls_on_others(calls: dict[str, int]) -> dict[int, Decision]:
    """Return the decisions for calls that a program may make on itself, but not on its supervisor."""
    refused = _deny(errno.EPERM)
    reads = FilterBranch(field=argument_high_offset(2), operator="eq", operand=0, yes=ALLOW, no=refused)
    sets_nothing = FilterBranch(field=argument_offset(2), operator="eq", operand=0, yes=reads, no=refused)
    decisions: dict[int, Decision] = {
        calls[rules.LIMIT_CALL]: _match_any(argument_offset(0), (0,), ALLOW, sets_nothing)
    }
    for name in rules.SCHEDULING_CALLS:
        decisions[calls[name]] = _match_any(argument_offset(0), (rules.SUPERVISOR_PID,), refused, ALLOW)
    for name, single in rules.PRIORITY_CALLS.items():
        of_single_process = _match_any(argument_offset(1), (rules.SUPERVISOR_PID,), refused, ALLOW)
        decisions[calls[name]] = _match_any(argument_offset(0), (single,), of_single_process, refused)
    return decisions


def _deny(error: int) -> FilterAnswer:
    return FilterAnswer(0x00050000 | error)


def _match_any(field: int, values: tuple[int, ...], yes: Decision, no: Decision) -> Decision:
    decision = no
    for value in reversed(values):
        decision = FilterBranch(field=field, operator="eq", operand=value, yes=yes, no=decision)
    return decision


def _split_into_ranges(decisions: dict[int, Decision]) -> list[tuple[int, Decision]]:
    """Return where the decision changes, from 0 upwards. Calls up to the newest known one are allowed unless
    decided.
    """
    ranges: list[tuple[int, Decision]] = [(0, ALLOW)]
    for number in sorted(decisions):
        decision = decisions[number]
        if ranges[-1][0] == number:
            ranges.pop()
        if not ranges or ranges[-1][1] != decision:
            ranges.append((number, decision))
        if number < NEWEST_CALL and number + 1 not in decisions:
            ranges.append((number + 1, ALLOW))
    return ranges
