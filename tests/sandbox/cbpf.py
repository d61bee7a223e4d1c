"""The kernel's side of a filter: its checks before it takes one, and what it answers."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

MASK = 0xFFFFFFFF
LOAD, JUMP, RETURN = 0x20, 0x05, 0x06
TESTS = {0x15: "eq", 0x25: "gt", 0x35: "ge", 0x45: "set"}
ALU_AND = 0x54
"""Libseccomp masks with it; our own filters never do."""

Instruction = tuple[int, int, int, int]


def parse(code: bytes) -> list[Instruction]:
    assert len(code) % 8 == 0
    return list(struct.iter_unpack("<HBBI", code))


def check(program: Sequence[Instruction]) -> None:
    """What `seccomp_check_filter` asks: known operations, jumps that stay inside, an answer at the end."""
    assert 0 < len(program) <= 4096
    assert program[-1][0] == RETURN
    for at, (operation, yes, no, operand) in enumerate(program):
        if operation == LOAD:
            assert operand % 4 == 0
            assert operand < 64
        elif operation == JUMP:
            assert at + 1 + operand < len(program)
        elif operation in TESTS:
            assert at + 1 + max(yes, no) < len(program)
        else:
            assert operation in (RETURN, ALU_AND)


def ask(program: Sequence[Instruction], arch: int, number: int, *arguments: int) -> int:
    """The kernel's answer for one call, as a `SECCOMP_RET_*` value."""
    padded = [argument & 0xFFFFFFFFFFFFFFFF for argument in arguments] + [0] * (6 - len(arguments))
    words = struct.unpack("<16I", struct.pack("<IIQ6Q", number & MASK, arch, 0, *padded))
    at = register = 0
    while True:
        operation, yes, no, operand = program[at]
        at += 1
        if operation == RETURN:
            return operand
        if operation == LOAD:
            register = words[operand // 4]
        elif operation == JUMP:
            at += operand
        elif operation == ALU_AND:
            register &= operand
        else:
            how = TESTS[operation]
            holds = (
                (how == "eq" and register == operand)
                or (how == "gt" and register > operand)
                or (how == "ge" and register >= operand)
                or (how == "set" and register & operand != 0)
            )
            at += yes if holds else no


NAMES = {LOAD: "ld", JUMP: "ja", RETURN: "ret", **{code: f"j{name}" for code, name in TESTS.items()}}


def listing(code: bytes) -> str:
    """An assembled filter for people: one instruction a line, jumps with the line they lead to."""
    return "\n".join(_lines(code)) + "\n"


def _lines(code: bytes) -> Iterator[str]:
    for at, (operation, yes, no, operand) in enumerate(parse(code)):
        name = NAMES[operation]
        if operation == LOAD:
            operands = f"[{operand}]"
        elif operation == RETURN:
            operands = f"0x{operand:08x}"
        elif operation == JUMP:
            operands = f"{at + 1 + operand:4}"
        else:
            operands = f"0x{operand:08x} {at + 1 + yes:4} {at + 1 + no:4}"
        yield f"{at:4} {name:4} {operands}"
