"""Run folders store blobs privately, and runs are found by name."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from suture.core.ledger import Ledger, RunFolder, find_run, list_runs, new_run
from suture.core.records import Candidate
from suture.errors import StorageError, UsageError


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return new_run(tmp_path)


def make_runs(home: Path, *times_s: float) -> list[RunFolder]:
    runs = [new_run(home, now_s=time_s) for time_s in times_s]
    for run in runs:
        Ledger(run.ledger_path).close()
    return runs


def test_run_folders_are_private_to_their_owner(tmp_path: Path) -> None:
    home = tmp_path / "state" / "suture"
    run = new_run(home)

    assert {path.stat().st_mode & 0o777 for path in (home, home / "runs", run.path)} == {0o700}
    open_home = tmp_path / "shared"
    open_home.mkdir(mode=0o755)
    assert new_run(open_home).path.stat().st_mode & 0o777 == 0o700
    assert open_home.stat().st_mode & 0o777 == 0o755  # the mode that the user chose


def test_blobs_are_stored_once_by_hash(run: RunFolder) -> None:
    digest = run.save_blob(b"\x00\xff")
    assert run.save_blob(b"\x00\xff") == digest
    assert run.load_blob(digest) == b"\x00\xff"
    assert [path.name for path in (run.path / "blobs").iterdir()] == [digest]


def test_a_changed_blob_is_refused(run: RunFolder) -> None:
    digest = run.save_blob(b"true")
    (run.path / "blobs" / digest).write_bytes(b"false")
    with pytest.raises(StorageError, match="was changed on disk"):
        run.load_blob(digest)


def test_a_missing_blob_is_a_storage_error(run: RunFolder) -> None:
    with pytest.raises(StorageError, match="cannot be read"):
        run.load_blob("0" * 64)


def test_json_is_stored_without_loss(run: RunFolder) -> None:
    assert run.load_json(run.save_json({"text": "half a pair \ud83d"})) == {"text": "half a pair \ud83d"}


@pytest.mark.parametrize(
    ("text", "content"),
    [("latin \udce9\n", b"latin \xe9\n"), ("half \ud83d", b"half \\ud83d"), ("é", "é".encode())],
)
def test_text_with_surrogates_is_written(run: RunFolder, text: str, content: bytes) -> None:
    assert run.write_text("result.diff", text).read_bytes() == content


def test_runs_are_sorted_by_time(tmp_path: Path) -> None:
    last, first, same_second = make_runs(tmp_path, 2e9, 1e9, 1e9 + 0.5)
    assert [run.id for run in list_runs(tmp_path)] == [first.id, same_second.id, last.id]
    assert find_run(tmp_path, "last").id == last.id


def test_a_replay_is_not_the_last_run(tmp_path: Path) -> None:
    first, last = make_runs(tmp_path, 1e9, 2e9)
    last.ledger_path.write_text(
        json.dumps({"data": {"replayed_run": first.id, "project": str(Path.cwd())}}) + "\n"
    )
    assert [find_run(tmp_path, name).id for name in ("last", "newest")] == [first.id, first.id]
    assert find_run(tmp_path, last.id).id == last.id


def test_a_folder_without_a_ledger_is_not_a_run(tmp_path: Path) -> None:
    new_run(tmp_path)
    assert list_runs(tmp_path) == []
    assert list_runs(tmp_path / "nowhere") == []


def test_a_run_is_found_by_a_prefix_or_suffix_of_its_id(tmp_path: Path) -> None:
    first, second = make_runs(tmp_path, 1e9, 2e9)

    assert find_run(tmp_path, first.id).id == first.id
    assert find_run(tmp_path, first.id[:8]).id == first.id
    assert find_run(tmp_path, second.id[-6:]).id == second.id

    with pytest.raises(UsageError, match="2 runs called '20'"):
        find_run(tmp_path, "20")

    with pytest.raises(UsageError, match="no run called 'x'"):
        find_run(tmp_path, "x")


def test_the_error_without_runs_says_how_to_start_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="suture run --example"):
        find_run(tmp_path, "last")


def test_a_home_that_is_a_file_is_a_storage_error(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.touch()
    with pytest.raises(StorageError, match="SUTURE_HOME"):
        new_run(home)


@pytest.mark.parametrize("value", [7, None, [], "files", {}, {"files": 7}, {"files": {"a": 1}}])
def test_a_blob_of_another_shape_is_a_storage_error(tmp_path: Path, value: object) -> None:
    run = new_run(tmp_path)
    with pytest.raises(StorageError, match="is no Candidate"):
        run.load_record(Candidate, run.save_json(value))


def test_a_blob_of_millions_of_values_is_refused(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    with pytest.raises(StorageError, match="more than 6,000,000 values"):
        run.load_json(run.save_blob(b"[" + b"0," * 6_000_000 + b"0]"))


def test_last_is_per_project_and_newest_is_global(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a" / "inside").mkdir(parents=True)
    starts = ("a", "b", None, "a", "b")
    runs = []
    for number, project in enumerate(starts):
        run = tmp_path / "runs" / f"2026010{number}"
        run.mkdir(parents=True)
        data = {} if project is None else {"project": str(tmp_path / project)}
        (run / "ledger.jsonl").write_text(json.dumps({"data": data}) + "\n" + "no json\n")
        runs.append(run)
    (tmp_path / "runs" / "20260109").mkdir()
    (tmp_path / "runs" / "20260109" / "ledger.jsonl").write_text("damaged")
    monkeypatch.chdir(tmp_path / "a" / "inside")

    assert find_run(tmp_path, "last").path == runs[3]
    assert find_run(tmp_path, "newest").id == "20260109"
    (tmp_path / "c").mkdir()
    monkeypatch.chdir(tmp_path / "c")
    assert find_run(tmp_path, "last").id == "20260109"


def test_last_prefers_this_folder_then_one_around_it_then_one_below_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a" / "books" / "shelf").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    for number, project in enumerate(("a/books/shelf", "a/books", "a", "elsewhere")):
        run = new_run(tmp_path, run_id=f"2026010{number}")
        run.ledger_path.write_text(json.dumps({"data": {"project": str(tmp_path / project)}}) + "\n")

    def find_last(folder: str) -> str:
        monkeypatch.chdir(tmp_path / folder)
        return find_run(tmp_path, "last").id

    assert find_last("a/books/shelf") == "20260100"
    assert find_last("a/books") == "20260101"  # its own, although the run of the folder around it is newer
    assert find_last("a") == "20260102"
    shutil.rmtree(tmp_path / "runs" / "20260101")
    assert find_last("a/books") == "20260102"
    shutil.rmtree(tmp_path / "runs" / "20260102")
    assert find_last("a") == "20260100"  # not that of another folder
