"""Lines that code under test writes into the reports do no harm."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from failing_projects import search_python
from prepared_suites import prepare_python_suite
from suture.judge.trials.inside.line_tracer import Tracer
from suture.judge.trials.process_reports import (
    AnswerReport,
    AttemptReport,
    CollectionReport,
    TestReport,
    parse_reports,
    unpack_lines,
)
from suture.loop.evaluation.search_setup import editable_texts
from suture.sandbox import BubblewrapSandbox
from suture.search import SearchLimits

VALID = {"number": 1, "answers": ["1"]}
ATTEMPT = {"outcomes": "P", "finished": True, "unsupported": False}


@pytest.mark.parametrize(
    "entry",
    [
        {"a": 1},
        {},
        {"number": "1", "answers": []},
        {"number": -1, "answers": []},
        {"number": 10**400, "answers": []},
        {"number": 1, "answers": [[]]},
        {**ATTEMPT, "outcomes": 1},
        {**ATTEMPT, "finished": 1},
        {"test": "t", "outcome": "grand", "seconds": 1, "wall_s": 1, "lines": {}, "frames": [], "calls": []},
        {
            "collected": ["a"],
            "errors": 0,
            "seconds": float("nan"),
            "wall_s": 1,
            "lines": {},
            "frames": [],
            "calls": [],
        },
        {"collected": "a", "errors": 0, "seconds": 0, "wall_s": 0, "lines": {}, "frames": [], "calls": []},
        {
            "test": "t",
            "outcome": "passed",
            "seconds": 1,
            "wall_s": 1,
            "lines": {"m": [1]},
            "frames": [],
            "calls": [],
        },
    ],
)
def test_a_malformed_report_is_skipped(entry: object) -> None:
    content = f"{json.dumps(entry)}\n[]\nx\n{'[' * 100_000}\n{json.dumps(VALID)}\n".encode()
    assert list(parse_reports(content, AttemptReport, TestReport, CollectionReport, AnswerReport)) == [
        AnswerReport(number=1, answers=("1",))
    ]


def test_line_numbers_survive_packing() -> None:
    tracer = Tracer(["m.py"])
    tracer.lines["m.py"] = {1, 8, 9, 4000}
    assert unpack_lines(tracer.take()["lines"]["m.py"]) == {1, 8, 9, 4000}
    assert unpack_lines("no number") == frozenset()


async def test_a_test_that_writes_to_all_descriptors_does_not_end_the_search(
    tmp_path: Path, sandbox: BubblewrapSandbox
) -> None:
    (tmp_path / "m.py").write_text("def f(n):\n    return n - 1\n")
    (tmp_path / "test_m.py").write_text(
        "import os\n\nfrom m import f\n\n\n"
        "def test_f():\n"
        "    for handle in range(3, 64):\n"
        "        try:\n"
        "            os.write(handle, b'[1]' * 9)\n"
        "        except OSError:\n"
        "            pass\n"
        "    assert f(1) == 2\n"
    )
    suite, command = await prepare_python_suite(tmp_path, sandbox)

    result = await search_python(command, editable_texts(suite), (), SearchLimits(max_seconds=100))

    assert result.ending
