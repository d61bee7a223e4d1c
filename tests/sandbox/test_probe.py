"""A sandbox with a hole loses its claimed level; findings are kept until something changes."""

from __future__ import annotations

import asyncio
import contextlib
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
from requirements import Require
from suture.core.settings.schema import SandboxSettings
from suture.errors import SandboxUnavailable
from suture.sandbox import (
    LIMIT_NAMES,
    BubblewrapSandbox,
    Capabilities,
    Channel,
    Requirement,
    RunRequest,
    RunResult,
    open_sandbox,
)
from suture.sandbox.bubblewrap.root_staging import is_reachable
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
DROP = """
skip=0
for word do
    shift
    if [ "$word" = "{word}" ]; then skip={values}
    elif [ $skip -gt 0 ]; then skip=$((skip - 1))
    else set -- "$@" "$word"; fi
done
"""


@pytest.fixture
def holed(
    tmp_path: Path, sandbox_requirement: Requirement, require: Require
) -> Callable[[str], Callable[[], BubblewrapSandbox]]:
    """Makes sandboxes by a bubblewrap that is told something else than what we say."""
    real = sandbox_requirement.detail.split()[0]
    require(
        "bubblewrap",
        sandbox_requirement.ok and is_reachable(real),
        f"{sandbox_requirement.detail}, for other users too",
    )

    def make(script: str, mode: str = "cold") -> Callable[[], BubblewrapSandbox]:
        wrapper = tmp_path / f"bwrap-{uuid.uuid4().hex}"
        wrapper.write_text(f'#!/bin/sh\n{script}\nexec {real} "$@"\n')
        wrapper.chmod(0o755)
        return lambda: BubblewrapSandbox(find=lambda: (str(wrapper),), mode=mode)  # type: ignore[arg-type]

    return make


@pytest.fixture
def outside() -> Iterator[Path]:
    """A folder that no sandbox covers by chance, as it does with the folder of temporary files."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.parametrize("mode", ["warm", "spare", "cold"])
async def test_a_sound_sandbox_has_no_hole(
    holed: Callable[..., Callable[[], BubblewrapSandbox]], mode: str
) -> None:
    report = await attack_sandbox(holed("", mode), "namespace")
    assert report.holes == {}
    assert report.limits >= frozenset(LIMIT_NAMES) - {"inodes"}
    assert ("inodes" in report.limits) is (mode == "warm")


async def test_a_shared_network_is_found(holed: Callable[..., Callable[[], BubblewrapSandbox]]) -> None:
    sandbox_requirement = SelfTestedSandbox(holed(DROP.format(word="--unshare-net", values=0)))
    found = await sandbox_requirement.capabilities()
    assert found.level == "none"
    assert "network of the host" in found.reason
    assert "abstract sockets of the host" in found.reason
    with pytest.raises(SandboxUnavailable, match="network of the host"):
        await sandbox_requirement.run(RunRequest(python="print('ran')"))
    with pytest.raises(SandboxUnavailable, match=r"sandbox\.minimum_level is 'namespace'"):
        async with sandbox_requirement.open(RunRequest(python="print('ran')")):
            pytest.fail("it was let in")
    await sandbox_requirement.close()


@pytest.mark.parametrize(
    ("word", "values", "hole"),
    [("--seccomp", 1, "vsock"), ("--size", 1, "")],
)
async def test_reduced_capabilities(
    holed: Callable[..., Callable[[], BubblewrapSandbox]], word: str, values: int, hole: str
) -> None:
    report = await attack_sandbox(holed(DROP.format(word=word, values=values)), "namespace")
    if hole:
        assert hole in report.holes
    else:
        assert (report.holes, "disk_mb" in report.limits) == ({}, False)


async def test_a_folder_of_the_host_that_is_shown_is_found(
    holed: Callable[..., Callable[[], BubblewrapSandbox]], outside: Path
) -> None:
    report = await attack_sandbox(
        holed(f'set -- --bind "{outside}" "{outside}" "$@"'), "namespace", folders=[outside]
    )
    assert {"host_files", "host_writes"} <= report.holes.keys()
    assert list(outside.iterdir()) == []


class NoSandbox:
    """Runs programs on the host and says that it is a sandbox."""

    name = "no-wall"

    async def capabilities(self) -> Capabilities:
        return CLAIM

    async def _start(self, request: RunRequest) -> asyncio.subprocess.Process:
        assert request.python is not None
        pipe = asyncio.subprocess.PIPE
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", "-c", request.python), stdin=pipe, stdout=pipe, stderr=pipe
        )

    async def run(self, request: RunRequest) -> RunResult:
        if "exceed_total_memory(" in request.python[-60:] or "sleep" in request.python[:40]:  # type: ignore[index]
            return RunResult(status="ok")
        process = await self._start(request)
        stdout, stderr = await process.communicate(b"")
        return RunResult(status="ok", stdout=stdout, stderr=stderr)

    @asynccontextmanager
    async def open(self, request: RunRequest) -> AsyncIterator[Channel]:
        process = await self._start(request)
        yield NoChannel(process)
        if process.returncode is None:
            process.kill()
            await process.wait()

    async def close(self) -> None:
        """Nothing is held."""


class NoChannel:
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


async def test_no_sandbox_at_all_is_found_out_in_every_way() -> None:
    report = await attack_sandbox(NoSandbox, "namespace")
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
async def test_probes_at_once_do_not_hide_what_each_other_finds() -> None:
    before = dict(os.environ)
    reports = await asyncio.gather(*(attack_sandbox(NoSandbox, "namespace") for _ in range(3)))
    assert all("host_environment" in report.holes for report in reports)
    assert dict(os.environ) == before


async def test_a_sandbox_that_claims_another_kernel_must_have_one() -> None:
    assert "host_kernel" in (await attack_sandbox(NoSandbox, "user_kernel")).holes
    assert "host_kernel" not in (await attack_sandbox(NoSandbox, "namespace")).holes


async def test_a_sandbox_that_cannot_run_a_canary_has_no_level() -> None:
    class Mute(NoSandbox):
        @asynccontextmanager
        async def open(self, request: RunRequest) -> AsyncIterator[Channel]:
            async with super().open(replace(request, python="print('nothing to tell')")) as channel:
                yield channel

    report = await attack_sandbox(Mute, "namespace")
    assert "canary_failed" in report.holes


def test_another_kernel_than_the_hosts_may_have_its_own_sockets() -> None:
    report = ProbeReport(holes={}, limits=frozenset({"wall_s"}))
    found = reduce_claim(CLAIM, report)
    assert (found.level, found.limits) == ("namespace", frozenset({"wall_s"}))
    assert "limits that did not hold" in found.reason
    assert "memory_mb" in found.missing_limits


class Counting(BubblewrapSandbox):
    made = 0

    def __init__(self) -> None:
        super().__init__()
        Counting.made += 1


async def test_findings_are_cached_until_something_changes(
    tmp_path: Path, require: Require, sandbox_requirement: Requirement, monkeypatch: pytest.MonkeyPatch
) -> None:
    require(
        "bubblewrap", sandbox_requirement.ok, f"{sandbox_requirement.detail} ({sandbox_requirement.remedy})"
    )
    made = []
    for identity in ("", "", "another"):
        KNOWN_REPORTS.clear()
        before = Counting.made
        self_tested_cache = SelfTestedSandbox(Counting, cache=tmp_path / "cache")
        if identity:
            monkeypatch.setattr("suture.sandbox.self_test.self_tested_sandbox.SYSTEM_FACTS", ("version",))
        assert (await self_tested_cache.capabilities()).level == "namespace"
        assert (await self_tested_cache.run(RunRequest(python="print(1)"))).stdout == b"1\n"
        await self_tested_cache.close()
        made.append(Counting.made - before)
    assert made == [2, 1, 2]  # one more where it was attacked
    assert len(list((tmp_path / "cache/sandbox").iterdir())) == 1


async def test_sandboxs_that_open_at_once_are_attacked_once(
    require: Require, sandbox_requirement: Requirement
) -> None:
    require(
        "bubblewrap", sandbox_requirement.ok, f"{sandbox_requirement.detail} ({sandbox_requirement.remedy})"
    )
    KNOWN_REPORTS.clear()
    before = Counting.made
    walls = [SelfTestedSandbox(Counting) for _ in range(3)]
    await asyncio.gather(*(one.capabilities() for one in walls))
    assert Counting.made - before == 4  # one more, which was attacked
    for one in walls:
        await one.close()


def test_findings_in_writable_files_are_ignored(tmp_path: Path) -> None:
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
    def key(claim: Capabilities = CLAIM, boot: str = "1", userns: str = "10") -> str:
        for path, text in (
            ("sys/kernel/random/boot_id", boot),
            ("sys/user/max_user_namespaces", userns),
            ("self/status", "Seccomp:\t0\n"),
        ):
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text)
        return fingerprint("wall", claim, tmp_path)

    keys = [
        key(),
        key(boot="2"),
        key(userns="0"),
        key(replace(CLAIM, identity="newer")),
        key(replace(CLAIM, mode="cold")),
        key(replace(CLAIM, limits=frozenset())),
    ]
    assert len(set(keys)) == len(keys)
    assert key() == keys[0]


def test_a_finding_rests_on_all_of_our_own_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Path(suture.sandbox.__file__).parent == SOURCES
    monkeypatch.setattr("suture.sandbox.self_test.self_tested_sandbox.SOURCES", tmp_path)
    before = fingerprint("wall", CLAIM, tmp_path)
    (tmp_path / "room").mkdir()
    (tmp_path / "room/wall.py").touch()
    assert fingerprint("wall", CLAIM, tmp_path) != before


async def test_holes_are_not_cached(
    holed: Callable[..., Callable[[], BubblewrapSandbox]], tmp_path: Path
) -> None:
    self_tested_cache = SelfTestedSandbox(
        holed(DROP.format(word="--unshare-net", values=0)), cache=tmp_path / "cache"
    )
    assert (await self_tested_cache.capabilities()).level == "none"
    assert not (tmp_path / "cache/sandbox").exists()
    await self_tested_cache.close()


@pytest.mark.parametrize(("minimum", "ok"), [("process", True), ("namespace", True), ("container", False)])
async def test_the_configured_minimum_is_enforced(
    minimum: str, ok: bool, sandbox_requirement: Requirement, require: Require
) -> None:
    require(
        "bubblewrap", sandbox_requirement.ok, f"{sandbox_requirement.detail} ({sandbox_requirement.remedy})"
    )
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
