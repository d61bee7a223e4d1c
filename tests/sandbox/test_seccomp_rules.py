"""The seccomp filters, compared with libseccomp, with the numbers in the kernel's headers and with golden text."""

from __future__ import annotations

import errno
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sandbox import cbpf
from suture.errors import SandboxUnavailable
from suture.sandbox.seccomp import build_filter, build_filter_for_host, rules
from suture.sandbox.seccomp.filters import MACHINES
from suture.sandbox.seccomp.rules import AARCH64, NEWEST_CALL, X86_64

GOLDEN = Path(__file__).parent / "golden"
HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}
ONLY_X86_64 = {
    "_sysctl",
    "create_module",
    "get_kernel_syms",
    "inotify_init",
    "ioperm",
    "iopl",
    "modify_ldt",
    "query_module",
    "sysfs",
    "uselib",
    "ustat",
}
ALLOW, KILL, ERROR = 0x7FFF0000, 0x80000000, 0x00050000
LOW_HALF = 0xFFFFFFFF
HIGH_BIT = 1 << 32
CALLS_WITH_CHECKED_ARGUMENTS = (
    "clone",
    "ioctl",
    rules.LIMIT_CALL,
    rules.SHARED_MEMORY_CALL,
    *rules.SOCKET_CALLS,
    *rules.SCHEDULING_CALLS,
    *rules.PRIORITY_CALLS,
)
"""The calls that are allowed or refused by their arguments."""
MODES = [{"namespaces": n, "memory_files": m} for n in (False, True) for m in (False, True)]
ARGUMENT_CASES = [
    (),
    *(
        (value,)
        for value in (
            1,
            2,
            3,
            9,
            10,
            11,
            16,
            17,
            31,
            38,
            40,
            0x7FFFFFFF,
            -1,
            HIGH_BIT,
            HIGH_BIT + 2,
            HIGH_BIT + 16,
        )
    ),
    *((1 << bit,) for bit in range(16, 34)),
    *((17 | 1 << bit,) for bit in (7, 8, 17, 25, 28, 30)),
    *((pid, what, new) for pid in (0, 1, 5, HIGH_BIT) for what in (0, 7) for new in (0, 1, HIGH_BIT)),
    *(
        (which, who)
        for which in (0, 1, 2, 3, HIGH_BIT, HIGH_BIT + 1)
        for who in (0, 1, 5, HIGH_BIT, HIGH_BIT + 1)
    ),
    *((0, value) for value in (4095, 4096, 4097, HIGH_BIT + 1)),
    *(
        (0, value)
        for value in (0x5411, 0x5412, 0x5413, 0x541C, 0x5412 + HIGH_BIT, 0x541C - HIGH_BIT, 0x541C0000)
    ),
]
"""Arguments on both sides of each comparison, with and without the high half that the kernel drops."""


@pytest.fixture
def seccomp(require: Callable[[str, bool, str], None]) -> Any:
    """The Python binding of libseccomp."""
    try:
        import pyseccomp  # type: ignore[import-untyped]
    except (ImportError, RuntimeError, OSError) as fault:
        require("libseccomp", False, f"pyseccomp cannot be used: {fault}")
    return pyseccomp


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: "-".join(k for k in mode if mode[k]) or "strict")
def test_decisions_agree_with_libseccomp(seccomp: Any, machine: str, mode: dict[str, bool]) -> None:
    facts = MACHINES[machine]
    own_filter = cbpf.parse(build_filter(machine, **mode))
    reference_filter = cbpf.parse(libseccomp_filter(seccomp, machine, **mode))
    cbpf.check(own_filter)
    cbpf.check(reference_filter)
    numbers_with_checked_arguments = {facts.calls[name] for name in CALLS_WITH_CHECKED_ARGUMENTS}

    for number in range(NEWEST_CALL + 1):
        for arguments in ARGUMENT_CASES if number in numbers_with_checked_arguments else ARGUMENT_CASES[::6]:
            decision = cbpf.run_filter(own_filter, facts.audit_arch, number, *arguments)
            assert decision == cbpf.run_filter(reference_filter, facts.audit_arch, number, *arguments), (
                number,
                arguments,
            )

    for arch in {other.audit_arch for other in MACHINES.values()} | {0x40000003, 0x40000028, 0} - {
        facts.audit_arch
    }:
        if arch != facts.audit_arch:
            assert all(
                cbpf.run_filter(filter_code, arch, call) == KILL
                for filter_code in (own_filter, reference_filter)
                for call in (0, 1, 59, NEWEST_CALL + 1)
            )

    for number in (1 << 30, (1 << 30) + 59, (1 << 30) + 600, (1 << 31) + 1, LOW_HALF - 1):
        expected = KILL if facts.has_x32 else ERROR | errno.ENOSYS
        assert cbpf.run_filter(own_filter, facts.audit_arch, number) == expected
        if facts.has_x32:
            assert cbpf.run_filter(reference_filter, facts.audit_arch, number) == KILL


def libseccomp_filter(seccomp: Any, machine: str, **modes: bool) -> bytes:
    """Build the filter of the same rules with libseccomp."""
    policy = seccomp.SyscallFilter(seccomp.ALLOW)
    policy.set_attr(seccomp.Attr.ACT_BADARCH, KILL)
    arch = {"x86_64": seccomp.Arch.X86_64, "aarch64": seccomp.Arch.AARCH64}[machine]
    if not policy.exist_arch(arch):
        policy.add_arch(arch)
        policy.remove_arch(seccomp.system_arch())
    for action, name, *arguments in libseccomp_rules(seccomp, **modes):
        if name in MACHINES[machine].calls:
            policy.add_rule(action, name, *arguments)
    with tempfile.TemporaryFile() as file:
        policy.export_bpf(file)
        file.seek(0)
        return file.read()


def libseccomp_rules(seccomp: Any, *, namespaces: bool, memory_files: bool) -> Iterator[tuple[Any, ...]]:
    """Yield each rule as the arguments of libseccomp's `add_rule`."""
    refused, masked = seccomp.ERRNO(errno.EPERM), seccomp.MASKED_EQ
    yield from ((refused, name) for name in rules.DENIED_CALLS)
    unimplemented = ("clone3",) if namespaces else ("clone3", *rules.WATCH_CALLS)
    yield from ((seccomp.ERRNO(errno.ENOSYS), name) for name in unimplemented)
    yield from ((seccomp.ERRNO(0), name) for name in rules.FLUSH_CALLS)
    for bit in range(32):  # another process (a number other than 0) whose limits would be set
        other_process = seccomp.Arg(0, masked, 1 << bit, 1 << bit)
        yield refused, rules.LIMIT_CALL, other_process, seccomp.Arg(2, seccomp.NE, 0)
    yield refused, "shmget", seccomp.Arg(1, seccomp.GT, 4096)
    for call in rules.SCHEDULING_CALLS:
        yield refused, call, seccomp.Arg(0, masked, LOW_HALF, 1)
    for call, single in (("setpriority", 0), ("ioprio_set", 1)):
        yield refused, call, seccomp.Arg(1, masked, LOW_HALF, 1)
        for bit in range(32):
            yield refused, call, seccomp.Arg(0, masked, 1 << bit, ~single & 1 << bit)
    if not memory_files:
        yield seccomp.ERRNO(errno.ENOSYS), "memfd_create"
    for command in (0x5412, 0x541C):
        yield refused, "ioctl", seccomp.Arg(1, masked, LOW_HALF, command)
    wrong_family = seccomp.ERRNO(errno.EAFNOSUPPORT)
    for call in ("socket", "socketpair"):
        for family in set(range(16)) - {1, 2, 10}:
            yield wrong_family, call, seccomp.Arg(0, masked, LOW_HALF, family)
        for bit in range(
            4, 32
        ):  # families from 16 on, bit by bit: libseccomp compares ranges only of all 64 bits
            yield wrong_family, call, seccomp.Arg(0, masked, 1 << bit, 1 << bit)
    if not namespaces:
        yield from ((refused, name) for name in rules.NAMESPACE_CALLS)
        for flag in (0x20000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000):
            yield refused, "clone", seccomp.Arg(0, masked, flag, flag)


@pytest.mark.parametrize("machine", MACHINES)
def test_unknown_calls_do_not_exist(machine: str) -> None:
    program = cbpf.parse(build_filter(machine))
    for number in (*range(NEWEST_CALL + 1, NEWEST_CALL + 200), 1 << 20, (1 << 30) - 1):
        assert cbpf.run_filter(program, MACHINES[machine].audit_arch, number) == ERROR | errno.ENOSYS


@pytest.mark.parametrize("machine", MACHINES)
def test_call_numbers_agree_with_the_kernel_headers(
    machine: str, require: Callable[[str, bool, str], None]
) -> None:
    require("linux-headers", HEADERS[machine].exists(), f"there is no {HEADERS[machine]}")
    header_numbers = dict(
        re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", HEADERS[machine].read_text("ascii"))
    )
    assert MACHINES[machine].calls == {name: int(header_numbers[name]) for name in MACHINES[machine].calls}
    assert header_numbers["set_mempolicy_home_node"] == str(NEWEST_CALL)


@pytest.mark.parametrize("machine", MACHINES)
def test_call_numbers_agree_with_libseccomp(seccomp: Any, machine: str) -> None:
    arch = {"x86_64": seccomp.Arch.X86_64, "aarch64": seccomp.Arch.AARCH64}[machine]
    for name, number in MACHINES[machine].calls.items():
        assert seccomp.resolve_syscall(arch, number).decode() == name


def test_every_rule_has_a_number_on_every_machine() -> None:
    answered_calls = {*rules.WATCH_CALLS, *rules.FLUSH_CALLS, "clone3"}
    expected_calls = {
        *rules.DENIED_CALLS,
        *rules.NAMESPACE_CALLS,
        *rules.MEMORY_FILE_CALLS,
        *CALLS_WITH_CHECKED_ARGUMENTS,
        *answered_calls,
    }

    assert set(X86_64) == expected_calls
    assert set(AARCH64) == expected_calls - ONLY_X86_64


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(("name", "namespaces"), [("program", False), ("zygote", True)])
def test_the_filter_matches_its_golden_listing(machine: str, name: str, namespaces: bool) -> None:
    text = cbpf.listing(build_filter(machine, namespaces=namespaces))
    assert text == (GOLDEN / f"seccomp_{name}_{machine}.txt").read_text("ascii")


def test_a_machine_without_rules_has_no_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    assert build_filter_for_host() in {build_filter(machine) for machine in MACHINES}
    monkeypatch.delitem(MACHINES, "x86_64", raising=False)
    monkeypatch.delitem(MACHINES, "aarch64")
    with pytest.raises(SandboxUnavailable, match="64-bit Python"):
        build_filter_for_host()
