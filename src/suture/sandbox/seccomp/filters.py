"""Build the seccomp filter for a machine: the rules become a decision tree, and the tree becomes classic BPF.

A decision is a tree with tests as nodes and answers as leaves. Laid out depth first, every jump leads forward
and every path ends in an answer, as the kernel requires.

The instructions are those of McCanne and Jacobson, "The BSD Packet Filter" (1993), numbered as in
`linux/bpf_common.h`. The words that a filter reads are those of `struct seccomp_data` (`linux/seccomp.h`).
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
        starts: Pairs `(first value, decision)`, ascending. The first decision holds for smaller values too.
    """
    if len(starts) == 1:
        return starts[0][1]
    middle = len(starts) // 2
    upper, lower = build_range_tree(field, starts[middle:]), build_range_tree(field, starts[:middle])
    return FilterBranch(field=field, operator="ge", operand=starts[middle][0], yes=upper, no=lower)


def assemble(decision: Decision) -> bytes:
    """Return the filter as the kernel takes it.

    Raises:
        ValueError: It is longer than the kernel accepts.
    """
    code = _emit(decision, None)
    if len(code) > MAX_INSTRUCTIONS:
        raise ValueError(f"{len(code)} instructions are too many; the kernel takes {MAX_INSTRUCTIONS}")
    return b"".join(INSTRUCTION.pack(*instruction) for instruction in code)


def _emit(decision: Decision, loaded_field: int | None) -> Code:
    """Return the instructions for a decision. `loaded_field` is in the register when they begin."""
    if isinstance(decision, FilterAnswer):
        return [(RETURN, 0, 0, decision.value)]
    load: Code = [] if loaded_field == decision.field else [(LOAD_WORD, 0, 0, decision.field)]
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
FAIL = 0x00050000
"""`SECCOMP_RET_ERRNO`: the call is not made, and the program sees the error in the low bits."""
PRETEND_SUCCESS = FilterAnswer(FAIL)
"""Error 0 is success."""
X32_BIT = 0x40000000
"""The bit in the numbers of the x32 ABI: different calls under the same machine name."""


@dataclass(frozen=True, kw_only=True)
class FilterMachine:
    """What a filter must know about a machine.

    Attributes:
        audit_arch: Its number in `struct seccomp_data` (`AUDIT_ARCH_*` of `linux/audit.h`).
        calls: Name -> number, for the calls that the rules name.
        has_x32: Whether numbers may carry the x32 bit.
    """

    audit_arch: int
    calls: dict[str, int]
    has_x32: bool = False


MACHINES = {
    "x86_64": FilterMachine(audit_arch=0xC000003E, calls=X86_64, has_x32=True),
    "aarch64": FilterMachine(audit_arch=0xC00000B7, calls=AARCH64),
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
        namespaces: Whether new namespaces and mounts, and watches of files, are allowed: for a zygote, never for
            a program.
        memory_files: Whether `memfd_create` is allowed.
    """
    spec = MACHINES[machine]
    # Up to `NEWEST_CALL` a key is one call. A larger key is the first of a range that ends at the next key.
    decisions: dict[int, Decision] = {NEWEST_CALL + 1: _deny(rules.UNIMPLEMENTED)}
    if spec.has_x32:
        decisions[X32_BIT] = KILL
    decisions |= _decide_calls(spec.calls, namespaces=namespaces, memory_files=memory_files)
    call_tree = build_range_tree(CALL_NUMBER_OFFSET, _split_into_ranges(decisions))
    # A call of another architecture has other numbers, so it is never compared with these.
    tree = FilterBranch(field=ARCH_OFFSET, operator="eq", operand=spec.audit_arch, yes=call_tree, no=KILL)
    return assemble(tree)


def _decide_calls(calls: dict[str, int], *, namespaces: bool, memory_files: bool) -> dict[int, Decision]:
    """Return the number of a call -> the decision about it, for the calls that the rules name."""
    denied = [*rules.DENIED_CALLS, *(() if namespaces else rules.NAMESPACE_CALLS)]
    decisions: dict[int, Decision] = {calls[name]: _deny(errno.EPERM) for name in denied if name in calls}
    unimplemented = [
        "clone3",
        *(() if namespaces else rules.WATCH_CALLS),
        *(() if memory_files else rules.MEMORY_FILE_CALLS),
    ]
    decisions |= {calls[name]: _deny(rules.UNIMPLEMENTED) for name in unimplemented if name in calls}
    decisions |= {calls[name]: PRETEND_SUCCESS for name in rules.FLUSH_CALLS}
    decisions |= _decide_calls_on_others(calls)
    decisions[calls[rules.SHARED_MEMORY_CALL]] = _allow_small_argument(1, rules.MAX_SHARED_SEGMENT_BYTES)
    refused, first_argument = _deny(errno.EPERM), argument_offset(0)
    decisions[calls["ioctl"]] = _match_any(argument_offset(1), rules.DENIED_IOCTLS, refused, ALLOW)
    unknown_family = _deny(rules.FAMILY_ERROR)
    for name in rules.SOCKET_CALLS:
        decisions[calls[name]] = _match_any(first_argument, rules.ALLOWED_FAMILIES, ALLOW, unknown_family)
    if not namespaces:
        flags = rules.NAMESPACE_FLAGS
        decisions[calls["clone"]] = FilterBranch(
            field=first_argument, operator="set", operand=flags, yes=refused, no=ALLOW
        )
    return decisions


def _decide_calls_on_others(calls: dict[str, int]) -> dict[int, Decision]:
    """Return the decisions for calls whose target is another process, such as the supervisor.

    Limits may be set only on the caller itself (process 0), and read on all. Scheduling and priority may be set
    on every single process except the supervisor.
    """
    refused = _deny(errno.EPERM)
    # The new limits are a pointer: if both halves are 0, the call only reads.
    high_half = FilterBranch(field=argument_high_offset(2), operator="eq", operand=0, yes=ALLOW, no=refused)
    only_reads = FilterBranch(field=argument_offset(2), operator="eq", operand=0, yes=high_half, no=refused)
    decisions: dict[int, Decision] = {
        # Process 0 is the caller itself.
        calls[rules.LIMIT_CALL]: _match_any(argument_offset(0), (0,), ALLOW, only_reads)
    }
    for name in rules.SCHEDULING_CALLS:
        decisions[calls[name]] = _match_any(argument_offset(0), (rules.SUPERVISOR_PID,), refused, ALLOW)
    for name, single_process in rules.PRIORITY_CALLS.items():
        not_supervisor = _match_any(argument_offset(1), (rules.SUPERVISOR_PID,), refused, ALLOW)
        decisions[calls[name]] = _match_any(argument_offset(0), (single_process,), not_supervisor, refused)
    return decisions


def _allow_small_argument(index: int, largest: int) -> Decision:
    refused = _deny(errno.EPERM)
    is_small = FilterBranch(
        field=argument_offset(index), operator="gt", operand=largest, yes=refused, no=ALLOW
    )
    return FilterBranch(field=argument_high_offset(index), operator="eq", operand=0, yes=is_small, no=refused)


def _deny(error: int) -> FilterAnswer:
    return FilterAnswer(FAIL | error)


def _match_any(field: int, values: tuple[int, ...], yes: Decision, no: Decision) -> Decision:
    decision = no
    for value in reversed(values):
        decision = FilterBranch(field=field, operator="eq", operand=value, yes=yes, no=decision)
    return decision


def _split_into_ranges(decisions: dict[int, Decision]) -> list[tuple[int, Decision]]:
    """Return the ranges of calls with the same decision, for `build_range_tree`.

    A decision about a call up to `NEWEST_CALL` holds for this call alone, and such calls without a decision are
    allowed. A decision about a larger number holds up to the next decision.
    """
    ranges: list[tuple[int, Decision]] = [(0, ALLOW)]
    for number in sorted(decisions):
        decision = decisions[number]
        if ranges[-1][0] == number:
            ranges.pop()  # The range that was opened for this number, before its decision was known.
        if not ranges or ranges[-1][1] != decision:
            ranges.append((number, decision))
        if number < NEWEST_CALL and number + 1 not in decisions:
            ranges.append((number + 1, ALLOW))
    return ranges
