"""Invalid requests are refused on the host before anything starts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from suture.errors import UsageError
from suture.sandbox import BOX, BubblewrapSandbox, Mount, ProgramLimits, RunRequest
from suture.sandbox.execution import request_encoding
from suture.sandbox.execution.base_sandbox import make_room
from suture.sandbox.execution.request_encoding import encode_request
from suture.sandbox.mounts.mount_planning import plan_mounts

BAD_PATHS = [
    "",
    "/",
    "/etc/x",
    "..",
    "../x",
    "a/../x",
    "a/..",
    "./x",
    "a//b",
    "a/",
    "a\0b",
    "n" * 256,
    "d/" * 2001 + "f",
]


@pytest.mark.parametrize("path", [*BAD_PATHS, "\ud800"])
@pytest.mark.parametrize("where", ["files", "collect"])
def test_invalid_paths_are_refused(path: str, where: str) -> None:
    fields: dict[str, Any] = {"files": {path: b""}} if where == "files" else {"collect": (path,)}
    with pytest.raises(UsageError):
        encode_request(RunRequest(argv=("true",), **fields))


@pytest.mark.parametrize(
    "fields",
    [
        {"argv": ()},
        {"argv": ("",)},
        {"argv": ("a", "b\0c")},
        {"argv": ("a", "x" * (128 << 10))},
        {"env": {"A": "b\0"}},
        {"env": {"": "x"}},
        {"env": {"A=B": "x"}},
        {"files": {"a": b"", "a/b": b""}},
        {"files": {"big": bytes(3 << 20)}, "limits": ProgramLimits(disk_mb=2)},
    ],
)
def test_invalid_requests_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        encode_request(RunRequest(**{"argv": ("true",), **fields}))


async def test_oversized_requests_are_refused_before_sending(
    sandbox: BubblewrapSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    has_zygote = (await sandbox.capabilities()).mode != "cold"
    monkeypatch.setattr(request_encoding, "MAX_REQUEST_FRAME_BYTES", 1 << 20)
    request = RunRequest(python="print(1)", files={"big": bytes(1 << 20)})

    if has_zygote:
        with pytest.raises(UsageError, match=r"1\.0 MiB, and a warm sandbox accepts 1") as caught:
            await sandbox.run(request)
        assert "sandbox.mode = 'cold'" in caught.value.remedy
    else:
        assert (await sandbox.run(request)).stdout == b"1\n"


def test_names_may_differ_in_case_and_need_not_be_utf8() -> None:
    encode_request(RunRequest(argv=("true",), files={"a": b"", "A": b"", "\udcff": b"", "...": b""}))


@pytest.mark.parametrize(
    "target",
    ["relative", "/", BOX, BOX + "/x", "/tmp", "/proc/x", "/etc", "/dev/shm", "/usr/x", "/a/../b", "/a/"],
)
def test_invalid_mount_targets_are_refused(target: str) -> None:
    with pytest.raises(UsageError):
        plan_mounts([Mount(source="/usr/lib", target=target)])


def test_a_missing_mount_source_is_refused() -> None:
    with pytest.raises(UsageError, match="does not exist"):
        plan_mounts([Mount(source="/no/such/thing", target="/opt/x")])


def test_nothing_is_mounted_below_another_mount(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    outer = Mount(source=str(tmp_path), target="/opt/tree")
    same = Mount(source=str(tmp_path / "inner"), target="/opt/tree/inner")

    assert plan_mounts([same, outer, outer]) == (outer,)
    with pytest.raises(UsageError, match="below"):
        plan_mounts([outer, Mount(source="/usr", target="/opt/tree/inner")])
    assert plan_mounts([Mount(source="/usr/bin", target="/usr/bin")]) == ()


async def test_an_invalid_request_starts_nothing() -> None:
    sandbox = BubblewrapSandbox(find=lambda: pytest.fail("it searched for a bubblewrap"))
    with pytest.raises(UsageError):
        await sandbox.run(RunRequest(argv=("true",), files={"../x": b""}))
    await sandbox.close()


def test_the_files_of_a_large_project_leave_space_for_the_program() -> None:
    limits = ProgramLimits(disk_mb=10, inodes=100)
    small = RunRequest(argv=("true",), files={"a": b""}, limits=limits)
    large = RunRequest(argv=("true",), files={f"f{number}": b"x" for number in range(40_000)}, limits=limits)
    medium = replace(small, files={f"f{number}": bytes(10_000) for number in range(200)})
    rooms = [make_room(request) for request in (small, medium, large)]
    assert rooms[0] == limits
    assert [(room.disk_mb - 10, room.inodes - 100) for room in rooms[1:]] == [(64, 10_000), (192, 40_000)]
