"""Decisions to classic BPF.

A decision is a tree: tests above, answers at the leaves. Laid out depth first, every jump leads forward and
every path ends in an answer, which is what the kernel asks of a filter.

Instructions: McCanne and Jacobson, "The BSD Packet Filter" (1993), as in `linux/bpf_common.h`; what a filter
reads is `struct seccomp_data` (`linux/seccomp.h`).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

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
