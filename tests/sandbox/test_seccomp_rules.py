"""The filters compared with libseccomp's, call by call; their numbers with the kernel's headers; and as
golden text."""

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
    *("_sysctl", "create_module", "get_kernel_syms", "inotify_init", "ioperm", "iopl"),
    *("modify_ldt", "query_module", "sysfs", "uselib", "ustat"),
}
ALLOW, KILL, ERROR = 0x7FFF0000, 0x80000000, 0x00050000
LOW = 0xFFFFFFFF
HIGH = 1 << 32
ARGUED = (
    *("clone", "ioctl", rules.LIMIT_CALL),
    *(*rules.SOCKET_CALLS, *rules.SCHEDULING_CALLS, *rules.PRIORITY_CALLS),
)
"""Calls whose arguments decide."""
MODES = [{"namespaces": n, "memory_files": m} for n in (False, True) for m in (False, True)]
CLASSES = [
    (),
    *(
        (value,)
        for value in (1, 2, 3, 9, 10, 11, 16, 17, 31, 38, 40, 0x7FFFFFFF, -1, HIGH, HIGH + 2, HIGH + 16)
    ),
    *((1 << bit,) for bit in range(16, 34)),
    *((17 | 1 << bit,) for bit in (7, 8, 17, 25, 28, 30)),
    *((pid, what, new) for pid in (0, 1, 5, HIGH) for what in (0, 7) for new in (0, 1, HIGH)),
    *((which, who) for which in (0, 1, 2, 3, HIGH, HIGH + 1) for who in (0, 1, 5, HIGH, HIGH + 1)),
    *((0, value) for value in (0x5411, 0x5412, 0x5413, 0x541C, 0x5412 + HIGH, 0x541C - HIGH, 0x541C0000)),
]
"""Arguments, so that each side of each comparison is met, with and without the half that the kernel drops."""


@pytest.fixture
def seccomp(require: Callable[[str, bool, str], None]) -> Any:
    try:
        import pyseccomp  # type: ignore[import-untyped]
    except (ImportError, RuntimeError, OSError) as fault:
        require("libseccomp", False, f"pyseccomp cannot be used: {fault}")
    return pyseccomp


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: "-".join(k for k in mode if mode[k]) or "strict")
def test_decisions_are_those_of_libseccomp(seccomp: Any, machine: str, mode: dict[str, bool]) -> None:
    facts = MACHINES[machine]
    ours = cbpf.parse(build_filter(machine, **mode))
    remote_fd = cbpf.parse(libseccomp_filter(seccomp, machine, **mode))
    cbpf.check(ours)
    cbpf.check(remote_fd)
    argued = {facts.calls[name] for name in ARGUED}
    for number in range(NEWEST_CALL + 1):
        for arguments in CLASSES if number in argued else CLASSES[::6]:
            answer = cbpf.ask(ours, facts.audit_arch, number, *arguments)
            assert answer == cbpf.ask(remote_fd, facts.audit_arch, number, *arguments), (number, arguments)
    for arch in {other.audit_arch for other in MACHINES.values()} | {0x40000003, 0x40000028, 0} - {
        facts.audit_arch
    }:
        if arch != facts.audit_arch:
            assert all(
                cbpf.ask(f, arch, n) == KILL for f in (ours, remote_fd) for n in (0, 1, 59, NEWEST_CALL + 1)
            )
    for number in (1 << 30, (1 << 30) + 59, (1 << 30) + 600, (1 << 31) + 1, LOW - 1):
        expected = KILL if facts.has_x32 else ERROR | errno.ENOSYS
        assert cbpf.ask(ours, facts.audit_arch, number) == expected
        if facts.has_x32:
            assert cbpf.ask(remote_fd, facts.audit_arch, number) == KILL


def libseccomp_filter(seccomp: Any, machine: str, **modes: bool) -> bytes:
    """The rules once more, in libseccomp's words."""
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
    refused, masked = seccomp.ERRNO(errno.EPERM), seccomp.MASKED_EQ
    yield from ((refused, name) for name in rules.DENIED_CALLS)
    yield from ((seccomp.ERRNO(errno.ENOSYS), name) for name in ("clone3", *rules.WATCH_CALLS))
    yield from ((seccomp.ERRNO(0), name) for name in rules.FLUSH_CALLS)
    for bit in range(32):  # a process number other than 0, and limits to set
        another = seccomp.Arg(0, masked, 1 << bit, 1 << bit)
        yield refused, rules.LIMIT_CALL, another, seccomp.Arg(2, seccomp.NE, 0)
    for call in rules.SCHEDULING_CALLS:
        yield refused, call, seccomp.Arg(0, masked, LOW, 1)
    for call, single in (("setpriority", 0), ("ioprio_set", 1)):
        yield refused, call, seccomp.Arg(1, masked, LOW, 1)
        for bit in range(32):
            yield refused, call, seccomp.Arg(0, masked, 1 << bit, ~single & 1 << bit)
    if not memory_files:
        yield seccomp.ERRNO(errno.ENOSYS), "memfd_create"
    for command in (0x5412, 0x541C):
        yield refused, "ioctl", seccomp.Arg(1, masked, LOW, command)
    wrong = seccomp.ERRNO(errno.EAFNOSUPPORT)
    for call in ("socket", "socketpair"):
        for family in set(range(16)) - {1, 2, 10}:
            yield wrong, call, seccomp.Arg(0, masked, LOW, family)
        for bit in range(4, 32):  # 16 and more: libseccomp can compare ranges only of all 64 bits
            yield wrong, call, seccomp.Arg(0, masked, 1 << bit, 1 << bit)
    if not namespaces:
        yield from ((refused, name) for name in rules.NAMESPACE_CALLS)
        for flag in (0x20000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000):
            yield refused, "clone", seccomp.Arg(0, masked, flag, flag)


@pytest.mark.parametrize("machine", MACHINES)
def test_calls_that_are_not_known_do_not_exist(machine: str) -> None:
    program = cbpf.parse(build_filter(machine))
    for number in (*range(NEWEST_CALL + 1, NEWEST_CALL + 200), 1 << 20, (1 << 30) - 1):
        assert cbpf.ask(program, MACHINES[machine].audit_arch, number) == ERROR | errno.ENOSYS


@pytest.mark.parametrize("machine", MACHINES)
def test_numbers_are_those_of_the_kernels_headers(
    machine: str, require: Callable[[str, bool, str], None]
) -> None:
    require("linux-headers", HEADERS[machine].exists(), f"there is no {HEADERS[machine]}")
    told = dict(re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", HEADERS[machine].read_text("ascii")))
    assert MACHINES[machine].calls == {name: int(told[name]) for name in MACHINES[machine].calls}
    assert told["set_mempolicy_home_node"] == str(NEWEST_CALL)


@pytest.mark.parametrize("machine", MACHINES)
def test_numbers_are_those_of_libseccomp(seccomp: Any, machine: str) -> None:
    arch = {"x86_64": seccomp.Arch.X86_64, "aarch64": seccomp.Arch.AARCH64}[machine]
    for name, number in MACHINES[machine].calls.items():
        assert seccomp.resolve_syscall(arch, number).decode() == name


def test_every_rule_has_its_number_on_every_machine() -> None:
    always = {*rules.WATCH_CALLS, *rules.FLUSH_CALLS, "clone3"}
    named = {*rules.DENIED_CALLS, *rules.NAMESPACE_CALLS, *rules.MEMORY_FILE_CALLS, *ARGUED, *always}
    assert set(X86_64) == named
    assert set(AARCH64) == named - ONLY_X86_64


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(("name", "namespaces"), [("program", False), ("zygote", True)])
def test_the_filter_as_text(machine: str, name: str, namespaces: bool) -> None:
    text = cbpf.listing(build_filter(machine, namespaces=namespaces))
    assert text == (GOLDEN / f"seccomp_{name}_{machine}.txt").read_text("ascii")


def test_a_machine_without_rules_has_no_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    assert build_filter_for_host() in {build_filter(machine) for machine in MACHINES}
    monkeypatch.delitem(MACHINES, "x86_64", raising=False)
    monkeypatch.delitem(MACHINES, "aarch64")
    with pytest.raises(SandboxUnavailable, match="64-bit Python"):
        build_filter_for_host()
