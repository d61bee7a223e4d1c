"""The scripts of `benchmarks/` report errors in one line with a remedy, without a traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from suture.bench.replies.reply_pool import RecordedReply, read_recording
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


def run_script(script: str, *arguments: str, data: Path) -> subprocess.CompletedProcess[str]:
    """Run a script with `SUTURE_DATA` set to a folder and without access to the hub."""
    env = {**os.environ, "SUTURE_DATA": str(data), "HF_HUB_OFFLINE": "1", "HF_HUB_CACHE": str(data / "hub")}
    command = [sys.executable, str(BENCHMARKS / script), *arguments]
    return subprocess.run(command, env=env, cwd=data, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("script", "arguments", "exit_code", "message"),
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
def test_a_usage_error_is_one_line_and_a_remedy(
    tmp_path: Path, script: str, arguments: list[str], exit_code: int, message: str
) -> None:
    result = run_script(script, *arguments, data=tmp_path)
    assert result.returncode == exit_code, result.stderr

    error, remedy, *other_lines = [
        line for line in result.stderr.splitlines() if not line.startswith("what was ")
    ]
    assert error.startswith("error: ")
    assert message in error
    assert remedy.startswith("  try: ")
    assert other_lines == []
    assert not (tmp_path / "o.jsonl").exists()


def test_a_file_of_another_format_is_reported(tmp_path: Path) -> None:
    (tmp_path / "quixbugs").mkdir()
    (tmp_path / "quixbugs" / "tasks.jsonl.gz").write_bytes(b"no gzip")
    result = run_script("quixbugs.py", data=tmp_path)
    assert (result.returncode, "Traceback" in result.stderr) == (2, False)

    (tmp_path / "outcomes.json").write_text("{}", "utf-8")
    result = run_script("trust.py", "report", "--outcomes", "outcomes.json", data=tmp_path)
    assert (result.returncode, "Traceback" in result.stderr) == (3, False)


def test_only_replies_of_the_named_data_set_are_recorded(tmp_path: Path) -> None:
    """A reply of a pool names its task, so that no statement is needed."""
    pool, out = tmp_path / "pool", tmp_path / "out.jsonl"
    pool.mkdir()
    (pool / "one.json").write_text(json.dumps(encode_record(DRAW)), "utf-8")
    result = run_script(
        "recordings.py", str(pool), "--dataset", "suture-heal", "--out", str(out), data=tmp_path
    )
    assert (result.returncode, out.exists()) == (2, False)
    assert "holds no reply to a task of suture-heal" in result.stderr

    result = run_script("recordings.py", str(pool), "--dataset", "suture", "--out", str(out), data=tmp_path)
    assert result.returncode == 0, result.stderr
    assert list(read_recording(out)) == [DRAW]
