"""What the code under test writes among our findings does no harm."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from suture.checks import prepare_suite
from suture.loop.nodes.mutate import editable_texts
from suture.loop.tasks import heal_task
from suture.repair import SearchLimits, search
from suture.repair.reading import Answered, Collected, Screened, Seen, entries_of
from suture.sandbox import BubblewrapSandbox, discover_interpreter
from suture.settings import SandboxSettings

GOOD = {"mutant": 1, "answers": ["1"]}
SCREENED = {
    **{"mutant": 0, "passing": 1, "failing": 0, "broken": 0},
    **{"plausible": True, "unsupported": False, "late": False},
}


@pytest.mark.parametrize(
    "entry",
    [
        {"a": 1},
        {},
        {"mutant": "1", "answers": []},
        {"mutant": -1, "answers": []},
        {"mutant": 10**400, "answers": []},
        {"mutant": 1, "answers": [[]]},
        {**SCREENED, "passing": float("inf")},
        {**SCREENED, "plausible": 1},
        {"test": "t", "outcome": "grand", "seconds": 1, "lines": {}, "frames": [], "calls": []},
        {"collected": ["a"], "errors": 0, "seconds": float("nan"), "lines": {}, "calls": []},
        {"collected": "a", "errors": 0, "seconds": 0, "lines": {"m.py": 3}, "calls": []},
    ],
)
def test_an_entry_of_another_shape_is_passed_over(entry: object) -> None:
    content = f"{json.dumps(entry)}\n[]\nx\n{'[' * 100_000}\n{json.dumps(GOOD)}\n".encode()
    assert list(entries_of(content, Screened, Seen, Collected, Answered)) == [
        Answered(mutant=1, answers=("1",))
    ]


async def test_a_test_that_writes_into_our_file_does_not_end_the_search(
    tmp_path: Path, sandbox: BubblewrapSandbox
) -> None:
    (tmp_path / "m.py").write_text("def f(n):\n    return n - 1\n")
    (tmp_path / "test_m.py").write_text(
        "import glob\n\nfrom m import f\n\n"
        "OURS = glob.glob('**/found', recursive=True, include_hidden=True)\n"
        "for path in OURS:\n"
        "    with open(path, 'a') as file:\n"
        "        file.write('{\"a\": 1}\\n')\n\n"
        "def test_f():\n    assert OURS and f(1) == 2\n"
    )
    task, _ = heal_task(tmp_path, test="python -m pytest -q")
    suite = await prepare_suite(task, sandbox, SandboxSettings(), discover_interpreter(tmp_path, {}))
    assert suite.command is not None
    found = await search(suite.command, editable_texts(suite), (), SearchLimits(seconds=100))
    assert found.plausible
