"""A sandbox with a hole loses its claimed level; a report is cached until something changes."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import sys
import tempfile
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

import suture.sandbox
from sandbox.sandbox_programs import write_script
from suture.core.settings.schema import SandboxSettings
from suture.errors import SandboxUnavailable
from suture.sandbox import (
    LIMIT_NAMES,
    BubblewrapSandbox,
    Capabilities,
    Channel,
    RunRequest,
    RunResult,
    open_sandbox,
)
from suture.sandbox.self_test.canary import compare_kernel, is_refused
from suture.sandbox.self_test.probe import ProbeReport, attack_sandbox
from suture.sandbox.self_test.self_tested_sandbox import (
    KNOWN_REPORTS,
    SOURCES,
    SelfTestedSandbox,
    fingerprint,
    load_report,
    reduce_claim,
    save_report,
)

CLAIM = Capabilities(level="namespace", mode="warm", limits=frozenset(LIMIT_NAMES), identity="a sandbox")
DROP_OPTION = """
skip=0
for word do
    shift
    if [ "$word" = "{word}" ]; then skip={values}
    elif [ $skip -gt 0 ]; then skip=$((skip - 1))
    else set -- "$@" "$word"; fi
done
"""


@pytest.fixture
def open_with_holes(
    tmp_path: Path, reachable_bubblewrap: str
) -> Callable[[str], Callable[[], BubblewrapSandbox]]:
    """Return a factory of sandboxes whose bubblewrap is a script that changes the options first."""

    def make(script: str, mode: str = "cold") -> Callable[[], BubblewrapSandbox]:
        wrapper = write_script(
            tmp_path / f"bwrap-{uuid.uuid4().hex}", f'{script}\nexec {reachable_bubblewrap} "$@"'
        )
        return lambda: BubblewrapSandbox(find=lambda: (str(wrapper),), mode=mode)  # type: ignore[arg-type]

    return make


@pytest.fixture
def outside() -> Iterator[Path]:
    """A folder outside /tmp, which every sandbox covers with a folder of its own."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.parametrize("mode", ["warm", "spare", "cold"])
async def test_a_sound_sandbox_has_no_holes(
    open_with_holes: Callable[..., Callable[[], BubblewrapSandbox]], mode: str
) -> None:
    report = await attack_sandbox(open_with_holes("", mode), "namespace")
    assert report.holes == {}
    assert report.limits >= frozenset(LIMIT_NAMES) - {"inodes"}
    assert ("inodes" in report.limits) is (mode == "warm")


async def test_a_shared_network_is_found(
    open_with_holes: Callable[..., Callable[[], BubblewrapSandbox]],
) -> None:
    sandbox = SelfTestedSandbox(open_with_holes(DROP_OPTION.format(word="--unshare-net", values=0)))
    capabilities = await sandbox.capabilities()

    assert capabilities.level == "none"
    assert "network of the host" in capabilities.reason
    assert "abstract sockets of the host" in capabilities.reason
    with pytest.raises(SandboxUnavailable, match="network of the host"):
        await sandbox.run(RunRequest(python="print('ran')"))
    with pytest.raises(SandboxUnavailable, match=r"sandbox\.minimum_level is 'namespace'"):
        async with sandbox.open(RunRequest(python="print('ran')")):
            pytest.fail("the program was started")

    await sandbox.close()


@pytest.mark.parametrize(
    ("option", "values", "hole"),
    [("--seccomp", 1, "vsock"), ("--size", 1, "")],
)
async def test_a_dropped_option_is_found(
    open_with_holes: Callable[..., Callable[[], BubblewrapSandbox]], option: str, values: int, hole: str
) -> None:
    report = await attack_sandbox(
        open_with_holes(DROP_OPTION.format(word=option, values=values)), "namespace"
    )

    if hole:
        assert hole in report.holes
    else:
        assert (report.holes, "disk_mb" in report.limits) == ({}, False)


async def test_a_mounted_host_folder_is_found(
    open_with_holes: Callable[..., Callable[[], BubblewrapSandbox]], outside: Path
) -> None:
    report = await attack_sandbox(
        open_with_holes(f'set -- --bind "{outside}" "{outside}" "$@"'), "namespace", folders=[outside]
    )
    assert {"host_files", "host_writes"} <= report.holes.keys()
    assert list(outside.iterdir()) == []


class UnsandboxedSandbox:
    """Runs programs on the host and claims to be a sandbox."""

    name = "unsandboxed"

    async def capabilities(self) -> Capabilities:
        return CLAIM

    async def _start(self, request: RunRequest) -> asyncio.subprocess.Process:
        assert request.python is not None
        pipe = asyncio.subprocess.PIPE
        command = (sys.executable, "-I", "-S", "-c", request.python)
        return await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=pipe)

    async def run(self, request: RunRequest) -> RunResult:
        if "exceed_total_memory(" in request.python[-60:] or "sleep" in request.python[:40]:  # type: ignore[index]
            return RunResult(status="ok")
        process = await self._start(request)
        stdout, stderr = await process.communicate(b"")
        return RunResult(status="ok", stdout=stdout, stderr=stderr)

    @asynccontextmanager
    async def open(self, request: RunRequest) -> AsyncIterator[Channel]:
        process = await self._start(request)
        yield UnsandboxedChannel(process)
        if process.returncode is None:
            process.kill()
            await process.wait()

    async def close(self) -> None:
        """Do nothing: every program has ended."""


class UnsandboxedChannel:
    """Reads frames from a process on the host."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def send(self, frame: bytes) -> None:
        raise AssertionError

    async def receive(self, timeout_s: float) -> bytes | None:
        assert self._process.stdout is not None
        with contextlib.suppress(asyncio.IncompleteReadError):
            size = int.from_bytes(await self._process.stdout.readexactly(4), "big")
            return await self._process.stdout.readexactly(size)
        return None

    async def finish(self) -> RunResult:
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()
        return RunResult(status="ok")


async def test_a_missing_sandbox_has_every_hole() -> None:
    report = await attack_sandbox(UnsandboxedSandbox, "namespace")
    expected = {
        "host_files",
        "host_environment",
        "host_writes",
        "host_network",
        "host_abstract_sockets",
        "survivors",
    }

    assert expected <= report.holes.keys()
    assert ("root" in report.holes) is (os.geteuid() == 0)
    assert not report.limits & {"wall_s", "total_memory_mb", "processes", "disk_mb", "output_bytes"}
    assert not [name for name in os.environ if name.startswith("CANARY_OF_SUTURE")]


@pytest.mark.heavy
async def test_concurrent_probes_do_not_hide_holes_from_each_other() -> None:
    before = dict(os.environ)
    reports = await asyncio.gather(*(attack_sandbox(UnsandboxedSandbox, "namespace") for _ in range(3)))
    assert all("host_environment" in report.holes for report in reports)
    assert dict(os.environ) == before


async def test_a_claimed_kernel_of_its_own_is_verified() -> None:
    assert "host_kernel" in (await attack_sandbox(UnsandboxedSandbox, "user_kernel")).holes
    assert "host_kernel" not in (await attack_sandbox(UnsandboxedSandbox, "namespace")).holes


@pytest.mark.parametrize(
    ("kernel", "host_kernel", "is_own"),
    [
        (["1", "Linux"], ["1", "Linux"], False),
        (["2", "Linux"], ["1", "Linux"], True),
        (["", "gVisor"], ["1", "Linux"], True),
        (["", "Linux"], ["1", "Linux"], False),
        (["", ""], ["1", "Linux"], False),
        (["", ""], ["", ""], False),
        (["", "Linux"], ["", ""], False),
    ],
)
def test_a_kernel_of_its_own_must_show_that_it_is_another_one(
    monkeypatch: pytest.MonkeyPatch, kernel: list[str], host_kernel: list[str], is_own: bool
) -> None:
    monkeypatch.setattr("suture.sandbox.self_test.canary.identify_kernel", lambda: kernel)
    assert (compare_kernel({"kernel": host_kernel}) == "") is is_own


@pytest.mark.parametrize(
    ("error", "is_held"),
    [
        (OSError(errno.ENOSPC, "the folder is full"), True),
        (OSError(errno.ENOENT, "there is no folder"), False),
        (MemoryError(), False),
        (None, False),
    ],
)
def test_only_an_error_of_the_limit_shows_that_it_holds(error: Exception | None, is_held: bool) -> None:
    def act() -> None:
        if error is not None:
            raise error

    assert is_refused(act, errno.ENOSPC, errno.EDQUOT) is is_held
    assert is_refused(act, errno.ENOMEM) is isinstance(error, MemoryError)


async def test_a_sandbox_that_fails_the_canary_has_no_level() -> None:
    class SilentSandbox(UnsandboxedSandbox):
        @asynccontextmanager
        async def open(self, request: RunRequest) -> AsyncIterator[Channel]:
            async with super().open(replace(request, python="print('nothing to tell')")) as channel:
                yield channel

    report = await attack_sandbox(SilentSandbox, "namespace")

    assert "canary_failed" in report.holes


def test_limits_that_did_not_hold_are_removed_from_the_claim() -> None:
    report = ProbeReport(holes={}, limits=frozenset({"wall_s"}))
    capabilities = reduce_claim(CLAIM, report)
    assert (capabilities.level, capabilities.limits) == ("namespace", frozenset({"wall_s"}))
    assert "limits that did not hold" in capabilities.reason
    assert "memory_mb" in capabilities.missing_limits


class CountingSandbox(BubblewrapSandbox):
    """Counts its instances."""

    instances = 0

    def __init__(self) -> None:
        super().__init__()
        CountingSandbox.instances += 1


@pytest.mark.usefixtures("bubblewrap_works")
async def test_a_report_is_cached_until_something_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new_instances = []

    for identity in ("", "", "another"):
        KNOWN_REPORTS.clear()
        before = CountingSandbox.instances
        sandbox = SelfTestedSandbox(CountingSandbox, cache=tmp_path / "cache")
        if identity:
            monkeypatch.setattr("suture.sandbox.self_test.self_tested_sandbox.SYSTEM_FACTS", ("version",))
        assert (await sandbox.capabilities()).level == "namespace"
        assert (await sandbox.run(RunRequest(python="print(1)"))).stdout == b"1\n"
        await sandbox.close()
        new_instances.append(CountingSandbox.instances - before)

    assert new_instances == [2, 1, 2]  # the self-test opens a sandbox of its own
    assert len(list((tmp_path / "cache/sandbox").iterdir())) == 1


@pytest.mark.usefixtures("bubblewrap_works")
async def test_sandboxes_that_open_concurrently_are_probed_once() -> None:
    KNOWN_REPORTS.clear()
    before = CountingSandbox.instances
    sandboxes = [SelfTestedSandbox(CountingSandbox) for _ in range(3)]
    await asyncio.gather(*(sandbox.capabilities() for sandbox in sandboxes))

    assert CountingSandbox.instances - before == 4  # the self-test opens a sandbox of its own

    for sandbox in sandboxes:
        await sandbox.close()


def test_a_report_in_a_file_that_others_can_write_is_ignored(tmp_path: Path) -> None:
    save_report(tmp_path, "bubblewrap", "key", ProbeReport(limits=frozenset({"wall_s"})))
    (file,) = (tmp_path / "sandbox").iterdir()

    assert file.stat().st_mode & 0o777 == 0o600
    assert load_report(tmp_path, "bubblewrap", "key") == ProbeReport(limits=frozenset({"wall_s"}))
    assert load_report(tmp_path, "bubblewrap", "other") is None

    file.chmod(0o622)
    assert load_report(tmp_path, "bubblewrap", "key") is None

    file.chmod(0o600)
    file.write_text("{")
    assert load_report(tmp_path, "bubblewrap", "key") is None


def test_the_fingerprint_covers_all_facts(tmp_path: Path) -> None:
    def key(claim: Capabilities = CLAIM, boot_id: str = "1", max_namespaces: str = "10") -> str:
        for path, text in (
            ("sys/kernel/random/boot_id", boot_id),
            ("sys/user/max_user_namespaces", max_namespaces),
            ("self/status", "Seccomp:\t0\n"),
        ):
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text)
        return fingerprint("sandbox", claim, tmp_path)

    keys = [
        key(),
        key(boot_id="2"),
        key(max_namespaces="0"),
        key(replace(CLAIM, identity="newer")),
        key(replace(CLAIM, mode="cold")),
        key(replace(CLAIM, limits=frozenset())),
    ]

    assert len(set(keys)) == len(keys)
    assert key() == keys[0]


def test_the_fingerprint_covers_the_source_of_the_sandbox_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Path(suture.sandbox.__file__).parent == SOURCES
    monkeypatch.setattr("suture.sandbox.self_test.self_tested_sandbox.SOURCES", tmp_path)
    before = fingerprint("sandbox", CLAIM, tmp_path)
    (tmp_path / "package").mkdir()
    (tmp_path / "package/module.py").touch()
    assert fingerprint("sandbox", CLAIM, tmp_path) != before


async def test_holes_are_not_cached(
    open_with_holes: Callable[..., Callable[[], BubblewrapSandbox]], tmp_path: Path
) -> None:
    sandbox = SelfTestedSandbox(
        open_with_holes(DROP_OPTION.format(word="--unshare-net", values=0)), cache=tmp_path / "cache"
    )
    assert (await sandbox.capabilities()).level == "none"
    assert not (tmp_path / "cache/sandbox").exists()
    await sandbox.close()


@pytest.mark.parametrize(("minimum", "ok"), [("process", True), ("namespace", True), ("container", False)])
@pytest.mark.usefixtures("bubblewrap_works")
async def test_the_configured_minimum_is_enforced(minimum: str, ok: bool) -> None:
    sandbox = open_sandbox(SandboxSettings(minimum_level=minimum))  # type: ignore[arg-type]

    try:
        if ok:
            assert (await sandbox.run(RunRequest(python="print(1)"))).stdout == b"1\n"
        else:
            with pytest.raises(SandboxUnavailable, match="minimum_level is 'container'") as caught:
                await sandbox.run(RunRequest(python="print(1)"))
            assert caught.value.remedy
    finally:
        await sandbox.close()
