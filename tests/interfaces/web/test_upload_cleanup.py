"""Uploads are removed when nobody needs them, and never while a run in them can be resumed."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from interfaces.web.real_server import Server
from interfaces.web.uploaded_projects import BROKEN, zipped
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


def sent(home: Path, text: str = "") -> tuple[str, Path]:
    """An archive that nobody has asked for in a month."""
    archives = ProjectArchives(home, LIMITS)
    name, _ = archives.store(zipped({**BROKEN, "note.txt": text}))
    folder = home / "archives" / name
    aged(folder)
    return name, folder


def aged(path: Path, days: float = 31) -> None:
    os.utime(path, (0, time.time() - days * DAY_S))


def started_on(project: Path) -> RunStarted:
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


def run_of(home: Path, name: str, project: Path, *more: Payload, days: float = 31) -> None:
    folder = RunFolder(home / "runs" / name)
    folder.path.mkdir(parents=True)
    with Ledger(folder.ledger_path, FakeClock()) as ledger:
        for payload in (started_on(project), *more):
            ledger.append(payload)
    aged(folder.ledger_path, days)


@pytest.mark.parametrize(
    ("more", "days", "stays"),
    [
        ((HEALED,), 31, False),
        ((HEALED,), 29, True),
        ((), 31, True),
        ((CANCELLED,), 31, True),
    ],
    ids=["ended long ago", "ended lately", "cut off", "cancelled"],
)
def test_an_archive_stays_for_as_long_as_its_run_may_go_on(
    tmp_path: Path, more: tuple[Payload, ...], days: float, stays: bool
) -> None:
    _, folder = sent(tmp_path)
    run_of(tmp_path, "20260101-000000000-abcdef", folder, *more, days=days)
    gone = remove_unused_uploads(tmp_path, 30)
    assert (gone, folder.is_dir()) == (([], True) if stays else ([folder], False))


def test_one_run_that_waits_keeps_what_another_has_done_with(tmp_path: Path) -> None:
    _, folder = sent(tmp_path)
    run_of(tmp_path, "20260101-000000000-abcdef", folder, HEALED)
    run_of(tmp_path, "20260101-000000000-abcdee", folder)
    assert remove_unused_uploads(tmp_path, 30) == []
    damaged = tmp_path / "runs" / "20260101-000000000-abcdee" / "ledger.jsonl"
    damaged.write_text(damaged.read_text() + "{}\n" * 2)
    aged(damaged)
    assert remove_unused_uploads(tmp_path, 30) == []


def test_what_a_person_keeps_there_stays_as_it_is(tmp_path: Path) -> None:
    """A folder of another name, a file, a link and what it leads to."""
    _, folder = sent(tmp_path)
    own, elsewhere = tmp_path / "archives" / "mine", tmp_path / "elsewhere"
    for one in (own, elsewhere):
        one.mkdir()
        (one / "note.txt").write_text("mine")
        aged(one)
    file, link = tmp_path / "archives" / ("a" * 64), tmp_path / "archives" / ("b" * 64)
    file.write_text("mine")
    aged(file)
    link.symlink_to(elsewhere)
    assert remove_unused_uploads(tmp_path, 30) == [folder]
    assert {one.name for one in (tmp_path / "archives").iterdir()} == {"mine", file.name, link.name}
    assert [(one / "note.txt").read_text() for one in (own, link)] == ["mine", "mine"]


def test_a_run_in_a_part_of_it_or_one_that_cannot_be_looked_at_keeps_it(tmp_path: Path) -> None:
    _, folder = sent(tmp_path)
    (folder / "part").mkdir()
    aged(folder)
    run_of(tmp_path, "20260101-000000000-abcdef", folder / "part")
    assert remove_unused_uploads(tmp_path, 30) == []
    ledger = tmp_path / "runs" / "20260101-000000000-abcdef" / "ledger.jsonl"
    ledger.unlink()
    ledger.mkdir()
    assert remove_unused_uploads(tmp_path, 30) == []
    ledger.rmdir()
    assert remove_unused_uploads(tmp_path, 30) == [folder]


def test_what_was_begun_or_used_within_the_hour_stays_whatever_the_setting_says(tmp_path: Path) -> None:
    _, folder = sent(tmp_path)
    torn = tmp_path / "archives" / ".new-x"
    torn.mkdir()
    for one in (folder, torn):
        aged(one, days=0.01)
    assert remove_unused_uploads(tmp_path, 0.001) == []
    aged(torn)
    assert remove_unused_uploads(tmp_path, 0.001) == [torn]


def test_what_a_job_waits_for_and_what_was_used_lately_stays(tmp_path: Path) -> None:
    name, folder = sent(tmp_path)
    clone = tmp_path / "clones" / "20260101-000000000-abcdef"
    torn = tmp_path / "archives" / ".new-x"
    for one in (clone, torn):
        one.mkdir(parents=True)
        aged(one)
    jobs = [
        Job(id="1", run="1", kind="heal", request={"archive": name}),
        Job(id="2", run="2", kind="fork", request={"of": clone.name}),
    ]
    assert remove_unused_uploads(tmp_path, 30, names_in_use(jobs)) == [torn]
    assert remove_unused_uploads(tmp_path, 30, names_in_use(jobs[:1])) == [clone]
    ProjectArchives(tmp_path, LIMITS).find_folder(name)
    assert remove_unused_uploads(tmp_path, 30) == []
    aged(folder)
    ProjectArchives(tmp_path, LIMITS).store(zipped({**BROKEN, "note.txt": ""}))
    assert remove_unused_uploads(tmp_path, 30) == []
    aged(folder)
    assert remove_unused_uploads(tmp_path, 30) == [folder]
    assert not any((tmp_path / "archives").iterdir())
    assert remove_unused_uploads(tmp_path / "nowhere", 30) == []


def test_a_server_removes_when_it_starts_what_is_needed_no_more(tmp_path: Path) -> None:
    _, old = sent(tmp_path / "home", "old")
    _, kept = sent(tmp_path / "home", "kept")
    run_of(tmp_path / "home", "20260101-000000000-abcdef", kept)
    with Server(tmp_path, "--model", "none"):
        until_s = time.monotonic() + 60
        while old.exists() and time.monotonic() < until_s:
            time.sleep(0.05)
    assert not old.exists()
    assert kept.is_dir()
