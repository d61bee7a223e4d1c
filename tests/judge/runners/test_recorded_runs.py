"""Keeping the results of runs on a project's own files."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from suture.judge.runners.recorded_runs import BaseRunRecord
from suture.judge.tuning import MAX_RECORDED_RUN_AGE_S
from suture.sandbox import RunResult

RESULT = RunResult(
    status="failed",
    exit_code=1,
    stdout=b"out\n",
    stderr=b"err",
    files={"_suture/report": b"line\nline", "_suture/empty": b""},
    changed=frozenset(("a", "b")),
    created=frozenset(("c",)),
    wall_s=1.5,
    cpu_s=None,
)


def test_a_result_comes_back_as_it_was_for_its_key_and_name_alone(tmp_path: Path) -> None:
    record = BaseRunRecord(folder=tmp_path / "judge", key="ab")
    assert record.load() is None
    record.save(RESULT, b"key")
    assert record.load() == (RESULT, b"key")
    assert replace(record, key="ac").load() is None
    assert replace(record, name="other").load() is None
    record.forget_all()
    assert not record.exists


def test_a_damaged_record_and_a_link_count_as_none(tmp_path: Path) -> None:
    record = BaseRunRecord(folder=tmp_path, key="ab")
    record.save(RESULT, b"key")
    (path,) = tmp_path.iterdir()
    content = path.read_bytes()
    for damaged in (b"", content[:-1], content[:40] + b"x" + content[41:]):
        path.write_bytes(damaged)
        assert record.load() is None
    path.write_bytes(content)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert record.load() is None


def test_a_run_that_was_stopped_is_not_recorded(tmp_path: Path) -> None:
    record = BaseRunRecord(folder=tmp_path, key="ab")
    record.save(replace(RESULT, status="timeout"), b"key")
    assert not record.exists


def test_records_that_were_not_used_for_long_are_removed(tmp_path: Path) -> None:
    old = BaseRunRecord(folder=tmp_path, key="ab")
    old.save(RESULT, b"key")
    (path,) = tmp_path.iterdir()
    os.utime(path, (path.stat().st_mtime - 2 * MAX_RECORDED_RUN_AGE_S,) * 2)
    BaseRunRecord(folder=tmp_path, key="cd").save(RESULT, b"key")
    assert not old.exists
