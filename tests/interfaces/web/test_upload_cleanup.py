"""Uploads are removed when nobody needs them, and never while a run in them can be resumed."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from interfaces.web.real_server import Server
from interfaces.web.uploaded_projects import BROKEN_PROJECT, zip_project
from suture.core.ledger import Ledger, Payload, RunFolder
from suture.core.ledger.kinds import RunFinished, RunStarted
from suture.core.records import Reason
from suture.interfaces.jobs import Job
from suture.interfaces.jobs.job_registry import DAY_S
from suture.interfaces.jobs.project_archives import ArchiveLimits, ProjectArchives
from suture.interfaces.jobs.upload_cleanup import names_in_use, remove_unused_uploads
from suture.testing import FakeClock

LIMITS = ArchiveLimits(files=50, unpacked_bytes=2**20)
HEALED, CANCELLED = (
    RunFinished(
        outcome=outcome, reason=Reason(code="checks_pass"), result="", best="", confidence=0.0, warnings=()
    )
    for outcome in ("healed", "cancelled")
)


def store_archive(home: Path, text: str = "") -> tuple[str, Path]:
    """Store an archive that was last used a month ago, and return its name and folder."""
    archives = ProjectArchives(home, LIMITS)
    name, _ = archives.store(zip_project({**BROKEN_PROJECT, "note.txt": text}))
    folder = home / "archives" / name
    set_age(folder)
    return name, folder


def set_age(path: Path, days: float = 31) -> None:
    """Set the time at which a file or folder was last used."""
    os.utime(path, (0, time.time() - days * DAY_S))


def make_run_started(project: Path) -> RunStarted:
    """Return the first event of a run on a project."""
    return RunStarted(
        schema_version=1,
        kind="heal",
        statement="",
        task="",
        recipe="adaptive",
        model="none",
        unpriced_models=(),
        default_model="none",
        sandbox="bubblewrap",
        limits={},
        settings="",
        interpreter=None,
        project=str(project),
    )


def write_run(home: Path, name: str, project: Path, *payloads: Payload, days: float = 31) -> None:
    """Write a run on a project, with further events and an age in days."""
    folder = RunFolder(home / "runs" / name)
    folder.path.mkdir(parents=True)
    with Ledger(folder.ledger_path, FakeClock()) as ledger:
        for payload in (make_run_started(project), *payloads):
            ledger.append(payload)
    set_age(folder.ledger_path, days)


@pytest.mark.parametrize(
    ("payloads", "days", "expected_to_stay"),
    [
        ((HEALED,), 31, False),
        ((HEALED,), 29, True),
        ((), 31, True),
        ((CANCELLED,), 31, True),
    ],
    ids=["ended long ago", "ended recently", "interrupted", "cancelled"],
)
def test_an_archive_stays_while_its_run_can_be_resumed(
    tmp_path: Path, payloads: tuple[Payload, ...], days: float, expected_to_stay: bool
) -> None:
    _, folder = store_archive(tmp_path)
    write_run(tmp_path, "20260101-000000000-abcdef", folder, *payloads, days=days)
    removed = remove_unused_uploads(tmp_path, 30)
    assert (removed, folder.is_dir()) == (([], True) if expected_to_stay else ([folder], False))


def test_an_archive_stays_while_one_of_its_runs_can_be_resumed(tmp_path: Path) -> None:
    _, folder = store_archive(tmp_path)
    write_run(tmp_path, "20260101-000000000-abcdef", folder, HEALED)
    write_run(tmp_path, "20260101-000000000-abcdee", folder)
    assert remove_unused_uploads(tmp_path, 30) == []

    damaged = tmp_path / "runs" / "20260101-000000000-abcdee" / "ledger.jsonl"
    damaged.write_text(damaged.read_text() + "{}\n" * 2)
    set_age(damaged)
    assert remove_unused_uploads(tmp_path, 30) == []


def test_other_files_in_the_archive_folder_stay(tmp_path: Path) -> None:
    """These are a folder with another name, a file, a link and the link's target."""
    _, folder = store_archive(tmp_path)
    own_folder, linked_folder = tmp_path / "archives" / "mine", tmp_path / "elsewhere"
    for folder_or_file in (own_folder, linked_folder):
        folder_or_file.mkdir()
        (folder_or_file / "note.txt").write_text("mine")
        set_age(folder_or_file)
    file, link = tmp_path / "archives" / ("a" * 64), tmp_path / "archives" / ("b" * 64)
    file.write_text("mine")
    set_age(file)

    link.symlink_to(linked_folder)

    assert remove_unused_uploads(tmp_path, 30) == [folder]
    assert {folder_or_file.name for folder_or_file in (tmp_path / "archives").iterdir()} == {
        "mine",
        file.name,
        link.name,
    }
    assert [(folder_or_file / "note.txt").read_text() for folder_or_file in (own_folder, link)] == [
        "mine",
        "mine",
    ]


def test_a_run_in_a_subfolder_or_an_unreadable_run_keeps_an_archive(tmp_path: Path) -> None:
    _, folder = store_archive(tmp_path)
    (folder / "part").mkdir()
    set_age(folder)
    write_run(tmp_path, "20260101-000000000-abcdef", folder / "part")
    assert remove_unused_uploads(tmp_path, 30) == []

    ledger = tmp_path / "runs" / "20260101-000000000-abcdef" / "ledger.jsonl"
    ledger.unlink()
    ledger.mkdir()
    assert remove_unused_uploads(tmp_path, 30) == []

    ledger.rmdir()
    assert remove_unused_uploads(tmp_path, 30) == [folder]


def test_an_upload_of_the_last_hour_stays_whatever_the_setting(tmp_path: Path) -> None:
    _, folder = store_archive(tmp_path)
    unfinished_upload = tmp_path / "archives" / ".new-x"
    unfinished_upload.mkdir()
    for folder_or_file in (folder, unfinished_upload):
        set_age(folder_or_file, days=0.01)
    assert remove_unused_uploads(tmp_path, 0.001) == []

    set_age(unfinished_upload)
    assert remove_unused_uploads(tmp_path, 0.001) == [unfinished_upload]


def test_uploads_of_waiting_jobs_and_recently_used_uploads_stay(tmp_path: Path) -> None:
    name, folder = store_archive(tmp_path)
    clone = tmp_path / "clones" / "20260101-000000000-abcdef"
    unfinished_upload = tmp_path / "archives" / ".new-x"
    for folder_or_file in (clone, unfinished_upload):
        folder_or_file.mkdir(parents=True)
        set_age(folder_or_file)
    jobs = [
        Job(id="1", run="1", kind="heal", request={"archive": name}),
        Job(id="2", run="2", kind="fork", request={"of": clone.name}),
    ]
    assert remove_unused_uploads(tmp_path, 30, names_in_use(jobs)) == [unfinished_upload]
    assert remove_unused_uploads(tmp_path, 30, names_in_use(jobs[:1])) == [clone]

    ProjectArchives(tmp_path, LIMITS).find_folder(name)
    assert remove_unused_uploads(tmp_path, 30) == []

    set_age(folder)
    ProjectArchives(tmp_path, LIMITS).store(zip_project({**BROKEN_PROJECT, "note.txt": ""}))
    assert remove_unused_uploads(tmp_path, 30) == []

    set_age(folder)
    assert remove_unused_uploads(tmp_path, 30) == [folder]
    assert not any((tmp_path / "archives").iterdir())
    assert remove_unused_uploads(tmp_path / "nowhere", 30) == []


def test_a_server_removes_unused_uploads_when_it_starts(tmp_path: Path) -> None:
    _, unused_upload = store_archive(tmp_path / "home", "old")
    _, needed_upload = store_archive(tmp_path / "home", "kept")
    write_run(tmp_path / "home", "20260101-000000000-abcdef", needed_upload)

    with Server(tmp_path, "--model", "none"):
        deadline_s = time.monotonic() + 60
        while unused_upload.exists() and time.monotonic() < deadline_s:
            time.sleep(0.05)

    assert not unused_upload.exists()
    assert needed_upload.is_dir()
