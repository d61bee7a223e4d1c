"""Exercises in the layout of aider's polyglot benchmark: two attempts, and tests that only the second one sees."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import NoReturn

import pytest

from requirements import Require
from suture.bench.folder_tasks import (
    AttemptRow,
    FolderRow,
    load_folder_tasks,
    measure_folder,
    summarise_rows,
)
from suture.bench.folder_tasks.polyglot import load_polyglot_tasks
from suture.core.settings import BudgetSettings, Settings
from suture.core.settings.schema import LoopSettings, ModelSettings
from suture.errors import PrerequisiteError, SandboxUnavailable, UsageError
from suture.sandbox import BubblewrapSandbox
from suture.testing import ScriptedModel

STUB = "def double(number):\n    pass\n"
RIGHT = "def double(number):\n    return number + number\n"
WRONG = "def double(number):\n    return number * number\n"
TESTS = """import unittest

from double import double


class DoubleTest(unittest.TestCase):
    def test_two(self):
        self.assertEqual(double(2), 4)

    def test_secret_number(self):
        self.assertEqual(double(1734), 3468)
"""


def write_exercise(
    folder: Path,
    language: str,
    lists: dict[str, list[str]],
    files: dict[str, str],
    name: str = "double",
) -> Path:
    """Write an exercise into a set of tasks, and return its folder."""
    exercise = folder / language / "exercises" / "practice" / name
    texts = {
        ".docs/instructions.md": "# Instructions\n\nWrite `double`.\n",
        ".meta/config.json": json.dumps({"files": lists}),
        **files,
    }
    for path, text in texts.items():
        (exercise / path).parent.mkdir(parents=True, exist_ok=True)
        (exercise / path).write_text(text)
    return exercise


@pytest.fixture
def exercise(tmp_path: Path) -> Path:
    """An exercise in Python, with the reference that grades its own tests."""
    lists = {"solution": ["double.py"], "test": ["double_test.py"], "example": [".meta/example.py"]}
    files = {"double.py": STUB, "double_test.py": TESTS, ".meta/example.py": RIGHT}
    return write_exercise(tmp_path / "set", "python", lists, files)


def reply(code: str) -> str:
    """Return a model's reply that writes the exercise's file."""
    return f"### double.py\n```python\n{code}```\n"


async def measure(tmp_path: Path, model: ScriptedModel) -> FolderRow:
    """Measure the only exercise of the set."""
    tasks = load_folder_tasks(tmp_path / "set")
    (row,) = await measure_folder(tasks, tmp_path / "out", Settings(), model, environment={})
    return row


def render_prompt(model: ScriptedModel, number: int) -> str:
    """Return all messages of one call."""
    return "\n".join(message.content for message in model.calls[number].messages)


async def test_the_second_attempt_sees_what_the_tests_report(
    tmp_path: Path, exercise: Path, sandbox: BubblewrapSandbox, active_bare_python: None
) -> None:
    model = ScriptedModel([reply(WRONG), reply(RIGHT)])
    row = await measure(tmp_path, model)
    assert (row.task, row.fault, len(row.attempts)) == ("python/double", "", 2)
    assert (row.is_solved_within(1), row.is_solved_within(2)) == (False, True)
    assert row.attempts[0].reason.startswith("1 of 2 tests fail")
    first, second = render_prompt(model, 0), render_prompt(model, 1)
    assert "Write `double`." in first
    assert "def double(number):" in first
    assert "1734" not in first
    assert "3468" in second
    assert "return number * number" in second
    assert not any("number + number" in prompt for prompt in (first, second))


async def test_an_exercise_that_is_solved_at_once_has_one_attempt(
    tmp_path: Path, exercise: Path, sandbox: BubblewrapSandbox, active_bare_python: None
) -> None:
    model = ScriptedModel([reply(RIGHT)])
    row = await measure(tmp_path, model)
    assert row.is_solved_within(1)
    assert [attempt.calls for attempt in row.attempts] == [1]


async def test_rows_of_other_settings_are_not_continued(
    tmp_path: Path, exercise: Path, sandbox: BubblewrapSandbox, active_bare_python: None
) -> None:
    row = await measure(tmp_path, ScriptedModel([reply(RIGHT)]))
    tasks = load_folder_tasks(tmp_path / "set")
    others = (
        Settings(model=ModelSettings(temperature=0.1)),
        Settings(budget=BudgetSettings(attempts=2)),
        Settings(loop=LoopSettings(recipe="greedy")),
    )
    for settings in others:
        with pytest.raises(UsageError, match="other settings"):
            await measure_folder(tasks, tmp_path / "out", settings, ScriptedModel([]), environment={})
    unrelated = Settings(model=ModelSettings(base_url="http://127.0.0.1:9/v1"))
    rows = await measure_folder(tasks, tmp_path / "out", unrelated, ScriptedModel([]), environment={})
    assert rows == [row]


async def test_a_missing_language_makes_only_its_own_task_unusable(
    tmp_path: Path, exercise: Path, sandbox: BubblewrapSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    def find_nothing(*_: object) -> NoReturn:
        raise PrerequisiteError("there is no go", remedy="install it")

    monkeypatch.setattr("suture.bench.folder_tasks.polyglot.discover_programs", find_nothing)
    row = await measure(tmp_path, ScriptedModel([]))
    assert "there is no go" in row.fault


async def test_a_missing_sandbox_ends_the_benchmark(
    tmp_path: Path, exercise: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("suture.bench.folder_tasks.measuring.open_sandbox", open_unavailable)
    with pytest.raises(SandboxUnavailable):
        await measure(tmp_path, ScriptedModel([]))


def open_unavailable(*_: object, **__: object) -> BubblewrapSandbox:
    """Open a sandbox as on a machine without bubblewrap."""
    return BubblewrapSandbox(find=tuple)


async def test_an_unusable_reply_is_a_spent_attempt(
    tmp_path: Path, exercise: Path, sandbox: BubblewrapSandbox, active_bare_python: None
) -> None:
    row = await measure(tmp_path, ScriptedModel(["I cannot do that."], repeat_last=True))
    assert row.fault == ""
    assert [attempt.reward for attempt in row.attempts] == [0, 0]


@pytest.mark.parametrize(
    ("path", "text", "reason"),
    [
        (".meta/example.py", WRONG, "its own solution does not pass here"),
        ("double.py", RIGHT, "its tests pass on the stubs"),
        ("double_test.py", "import unittest\n", "its tests cannot run here"),
    ],
)
async def test_an_exercise_without_distinguishing_tests_is_not_measured(
    tmp_path: Path,
    exercise: Path,
    path: str,
    text: str,
    reason: str,
    sandbox: BubblewrapSandbox,
    active_bare_python: None,
) -> None:
    (exercise / path).write_text(text)
    row = await measure(tmp_path, ScriptedModel([]))
    assert reason in row.fault


@pytest.mark.parametrize(
    ("language", "path", "switched_off", "enabled"),
    [
        ("javascript", "double.spec.js", "xtest('a', f); test.skip('b', f);", "test('a', f); test('b', f);"),
        (
            "java",
            "src/test/java/DoubleTest.java",
            '@Disabled("Later")\n@Test void a() {}',
            "@Test void a() {}",
        ),
        ("rust", "tests/double.rs", "#[test]\n#[ignore]\nfn a() {}", "#[test]\nfn a() {}"),
    ],
)
def test_tests_that_are_switched_off_are_enabled(
    tmp_path: Path, language: str, path: str, switched_off: str, enabled: str
) -> None:
    lists = {"solution": ["double.x", "Cargo.toml"], "test": [path]}
    write_exercise(tmp_path, language, lists, {"double.x": "", "Cargo.toml": "", path: switched_off})
    (task,) = load_polyglot_tasks(tmp_path)
    assert task.tests == {path: enabled.encode()}
    assert list(task.stubs) == ["double.x"]  # nothing that decides how tests run


GO_FILES = {
    "double.go": "package double\n\nfunc Double(number int) int {\n\tpanic(\"write it\")\n}\n",
    "double_test.go": "package double\n\nimport \"testing\"\n\nfunc TestDouble(t *testing.T) {\n"
    "\tif Double(2) != 4 {\n\t\tt.Fatal(\"wrong\")\n\t}\n}\n",
    "go.mod": "module double\n\ngo 1.18\n",
}  # fmt: skip
RUST_FILES = {
    "src/lib.rs": 'pub fn double(number: i32) -> i32 {\n    todo!("{number}")\n}\n',
    "tests/double.rs": "use double::double;\n\n#[test]\n#[ignore]\nfn two() {\n    assert_eq!(double(2), 4);\n}\n",
    "Cargo.toml": '[package]\nname = "double"\nversion = "1.0.0"\nedition = "2021"\n',
}
JAVASCRIPT_FILES = {
    "double.js": "export const double = (number) => {\n  throw new Error('write it');\n};\n",
    "double.spec.js": "import test from 'node:test';\nimport assert from 'node:assert';\n"
    "import { double } from './double.js';\n\ntest('two', () => assert.equal(double(2), 4));\n",
    "package.json": '{"type": "module", "scripts": {"test": "node --test double.spec.js"}}',
}


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("language", "program", "files", "right"),
    [
        ("go", "go", GO_FILES, "package double\n\nfunc Double(number int) int {\n\treturn 2 * number\n}\n"),
        ("rust", "cargo", RUST_FILES, "pub fn double(number: i32) -> i32 {\n    2 * number\n}\n"),
        ("javascript", "node", JAVASCRIPT_FILES, "export const double = (number) => 2 * number;\n"),
    ],
)
async def test_other_languages_are_measured(
    tmp_path: Path,
    language: str,
    program: str,
    files: dict[str, str],
    right: str,
    require: Require,
    sandbox: BubblewrapSandbox,
) -> None:
    require(program, shutil.which(program) is not None, "it is not on PATH")
    solution, test, *_ = files
    write_exercise(tmp_path / "set", language, {"solution": [solution], "test": [test]}, files)
    model = ScriptedModel([f"### {solution}\n```\n{text}```\n" for text in (files[solution], right)])
    row = await measure(tmp_path, model)
    assert row.fault == ""
    assert [attempt.reward for attempt in row.attempts] == [0, 1]


def test_a_damaged_exercise_is_an_error(tmp_path: Path) -> None:
    exercise = write_exercise(tmp_path, "python", {}, {"double.py": STUB})
    with pytest.raises(UsageError, match="lacks"):
        load_polyglot_tasks(tmp_path)
    (exercise / ".meta/config.json").write_text('{"files": {"solution": 3}}')
    with pytest.raises(UsageError, match="paths"):
        load_polyglot_tasks(tmp_path)


def test_a_folder_without_tasks_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no task"):
        load_folder_tasks(tmp_path)


def make_row(task: str, *rewards: float, fault: str = "") -> FolderRow:
    """Return the row of a task with these rewards."""
    attempts = tuple(AttemptRow(run="r", outcome="not_healed", reward=r, calls=1, seconds=2) for r in rewards)
    return FolderRow(
        task=task,
        task_hash="h",
        settings_hash="s",
        model="m",
        max_attempts=2,
        attempts=attempts,
        fault=fault,
    )


def test_summaries_count_attempts_and_leave_out_faults() -> None:
    rows = [
        make_row("go/a", 1),
        make_row("go/b", 0, 1),
        make_row("python/a", 0, 0),
        make_row("go/c", fault="x"),
    ]
    go, python, together = summarise_rows(rows)
    assert (go.group, go.tasks, go.faults, go.calls, go.seconds) == ("go", 2, 1, 3, 6)
    assert [share.estimate for share in go.passed] == [0.5, 1]
    assert [share.estimate for share in python.passed] == [0, 0]
    assert (together.group, together.tasks) == ("all", 3)
    assert together.passed[0].low < 1 / 3 < together.passed[0].high
