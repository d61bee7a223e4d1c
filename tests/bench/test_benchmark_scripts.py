"""The scripts of `benchmarks/`: what is missing or mistyped ends in a line and a remedy, in no traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from suture.bench.replies.recordings import RecordedReply, read_recording
from suture.core.records import encode_record

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
DRAW = RecordedReply(
    dataset="suture",
    problem="boundary/made",
    model="m:a",
    prompt="hash",
    call="hash",
    temperature=0.0,
    max_tokens=9,
    index=0,
    reply="x = 1",
    finish="stop",
    prompt_tokens=1,
    completion_tokens=1,
)


def ran(script: str, *arguments: str, data: Path) -> subprocess.CompletedProcess[str]:
    """A script that ended, where `SUTURE_DATA` is a folder and no hub is asked."""
    env = {**os.environ, "SUTURE_DATA": str(data), "HF_HUB_OFFLINE": "1", "HF_HUB_CACHE": str(data / "hub")}
    command = [sys.executable, str(BENCHMARKS / script), *arguments]
    return subprocess.run(command, env=env, cwd=data, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("script", "arguments", "code", "says"),
    [
        ("grading.py", ["--set", "quixbugs"], 3, "'quixbugs' is not on this machine"),
        ("humanevalfix.py", [], 3, "'humanevalfix' is not on this machine"),
        ("models.py", ["--model", "nope"], 2, "nope"),
        ("quixbugs.py", [], 3, "'quixbugs' is not on this machine"),
        ("recordings.py", ["nope", "--dataset", "suture", "--out", "o.jsonl"], 2, "no folder 'nope'"),
        ("recordings.py", [".", "--dataset", "suture", "--out", "o.jsonl"], 2, "'.' holds no reply"),
        ("recordings.py", [".", "--dataset", "nope", "--out", "o.jsonl"], 2, "no set 'nope'"),
        ("trust.py", ["run", "--outcomes", "o.json"], 3, "'humaneval/tasks' is not on this machine"),
        ("trust.py", ["report", "--outcomes", "nope"], 2, "'nope' cannot be read"),
    ],
)
def test_an_ordinary_mistake_is_told_in_a_line(
    tmp_path: Path, script: str, arguments: list[str], code: int, says: str
) -> None:
    done = ran(script, *arguments, data=tmp_path)
    assert done.returncode == code, done.stderr
    error, remedy, *more = [line for line in done.stderr.splitlines() if not line.startswith("what was ")]
    assert error.startswith("error: ")
    assert says in error
    assert remedy.startswith("  try: ")
    assert more == []
    assert not (tmp_path / "o.jsonl").exists()


def test_a_file_that_is_something_else_is_told_too(tmp_path: Path) -> None:
    (tmp_path / "quixbugs").mkdir()
    (tmp_path / "quixbugs" / "tasks.jsonl.gz").write_bytes(b"no gzip")
    done = ran("quixbugs.py", data=tmp_path)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    (tmp_path / "outcomes.json").write_text("{}", "utf-8")
    done = ran("trust.py", "report", "--outcomes", "outcomes.json", data=tmp_path)
    assert (done.returncode, "Traceback" in done.stderr) == (3, False)


def test_only_replies_to_tasks_of_the_sets_that_are_named_are_taken(tmp_path: Path) -> None:
    """A reply of a pool says of which task it is, and no statement is looked for."""
    pool, out = tmp_path / "pool", tmp_path / "out.jsonl"
    pool.mkdir()
    (pool / "one.json").write_text(json.dumps(encode_record(DRAW)), "utf-8")
    done = ran("recordings.py", str(pool), "--dataset", "suture-heal", "--out", str(out), data=tmp_path)
    assert (done.returncode, out.exists()) == (2, False)
    assert "holds no reply to a task of suture-heal" in done.stderr
    done = ran("recordings.py", str(pool), "--dataset", "suture", "--out", str(out), data=tmp_path)
    assert done.returncode == 0, done.stderr
    assert list(read_recording(out)) == [DRAW]
