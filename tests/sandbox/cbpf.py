"""A model of how the kernel checks and runs a classic BPF filter."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

MASK = 0xFFFFFFFF
LOAD, JUMP, RETURN = 0x20, 0x05, 0x06
TESTS = {0x15: "eq", 0x25: "gt", 0x35: "ge", 0x45: "set"}
ALU_AND = 0x54
"""Used by libseccomp to mask an argument; Suture's own filters never use it."""

Instruction = tuple[int, int, int, int]


def parse(code: bytes) -> list[Instruction]:
    """Return the instructions of an assembled filter."""
    assert len(code) % 8 == 0
    return list(struct.iter_unpack("<HBBI", code))


def check(program: Sequence[Instruction]) -> None:
    """Require what `seccomp_check_filter` does: known operations, jumps inside the filter, a final answer."""
    assert 0 < len(program) <= 4096
    assert program[-1][0] == RETURN
    for number, (operation, yes, no, operand) in enumerate(program):
        if operation == LOAD:
            assert operand % 4 == 0
            assert operand < 64
        elif operation == JUMP:
            assert number + 1 + operand < len(program)
        elif operation in TESTS:
            assert number + 1 + max(yes, no) < len(program)
        else:
            assert operation in (RETURN, ALU_AND)


def run_filter(program: Sequence[Instruction], arch: int, number: int, *arguments: int) -> int:
    """Return the kernel's answer for one call, as a `SECCOMP_RET_*` value."""
    padded = [argument & 0xFFFFFFFFFFFFFFFF for argument in arguments] + [0] * (6 - len(arguments))
    words = struct.unpack("<16I", struct.pack("<IIQ6Q", number & MASK, arch, 0, *padded))
    position = register = 0
    while True:
        operation, yes, no, operand = program[position]
        position += 1
        if operation == RETURN:
            return operand
        if operation == LOAD:
            register = words[operand // 4]
        elif operation == JUMP:
            position += operand
        elif operation == ALU_AND:
            register &= operand
        else:
            test = TESTS[operation]
            holds = (
                (test == "eq" and register == operand)
                or (test == "gt" and register > operand)
                or (test == "ge" and register >= operand)
                or (test == "set" and register & operand != 0)
            )
            position += yes if holds else no


NAMES = {LOAD: "ld", JUMP: "ja", RETURN: "ret", **{code: f"j{name}" for code, name in TESTS.items()}}


def listing(code: bytes) -> str:
    """Return an assembled filter as text: one instruction a line, each jump with its target line."""
    return "\n".join(_lines(code)) + "\n"


def _lines(code: bytes) -> Iterator[str]:
    for number, (operation, yes, no, operand) in enumerate(parse(code)):
        name = NAMES[operation]
        if operation == LOAD:
            operands = f"[{operand}]"
        elif operation == RETURN:
            operands = f"0x{operand:08x}"
        elif operation == JUMP:
            operands = f"{number + 1 + operand:4}"
        else:
            operands = f"0x{operand:08x} {number + 1 + yes:4} {number + 1 + no:4}"
        yield f"{number:4} {name:4} {operands}"
