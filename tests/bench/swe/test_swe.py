"""Tasks in the format of SWE-bench are read, patched as git does it, and graded by hidden tests."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from suture.core.settings import Settings
from suture.errors import UsageError
from suture.project.workspace import DiffDoesNotApply, unified_diff
from suture.sandbox import discover_interpreter, open_sandbox

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
CODE = b"def double(n):\n    return n * n\n\n\ndef triple(n):\n    return 3 * n\n"
CODE_PATH = "calc/maths.py"
PATCH = unified_diff({CODE_PATH: CODE}, {CODE_PATH: CODE.replace(b"n * n", b"n + n")})
TEST_PATCH = """diff --git a/tests/test_maths.py b/tests/test_maths.py
new file mode 100644
--- /dev/null
+++ b/tests/test_maths.py
@@ -0,0 +1,9 @@
+from calc.maths import double, triple
+
+
+def test_double():
+    assert double(3) == 6
+
+
+def test_triple():
+    assert triple(3) == 9
"""
CHEATING_PATCH = """diff --git a/conftest.py b/conftest.py
new file mode 100644
--- /dev/null
+++ b/conftest.py
@@ -0,0 +1,4 @@
+import calc.maths
+
+
+calc.maths.double = lambda n: n + n
"""
REGRESSING_PATCH = unified_diff(
    {CODE_PATH: CODE}, {CODE_PATH: CODE.replace(b"n * n", b"n + n").replace(b"3 * n", b"n")}
)


def make_record(**changes: Any) -> dict[str, Any]:
    """Return a task in the format of SWE-bench."""
    return {
        "instance_id": "calc__calc-1",
        "repo": "calc/calc",
        "base_commit": "HEAD",
        "problem_statement": "double is wrong",
        "patch": PATCH,
        "test_patch": TEST_PATCH,
        "FAIL_TO_PASS": '["tests/test_maths.py::test_double"]',
        "PASS_TO_PASS": ["tests/test_maths.py::test_triple"],
        "version": "1.0",
        **changes,
    }


@pytest.fixture
def swe(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The package that reads and grades such tasks; `benchmarks/` is not a package."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("swe_format")


@pytest.fixture
def repositories(tmp_path: Path) -> Path:
    """Create a folder with the repository of the task."""
    folder = tmp_path / "repos" / "calc__calc"
    (folder / "calc").mkdir(parents=True)
    (folder / "calc" / "__init__.py").touch()
    (folder / "calc" / "maths.py").write_bytes(CODE)
    (folder / "pytest.ini").write_text("[pytest]\npythonpath = .\n")
    identity = ("-c", "user.name=x", "-c", "user.email=x@localhost", "-c", "commit.gpgsign=false")
    for arguments in (("init", "-q"), ("add", "-A"), (*identity, "commit", "-qm", "first")):
        subprocess.run(("git", *arguments), cwd=folder, check=True)
    (folder / "calc" / "maths.py").write_text("later, and in no commit\n")
    return tmp_path / "repos"


def write_tasks_file(tmp_path: Path, *records: dict[str, Any]) -> Path:
    """Write tasks as JSON lines."""
    path = tmp_path / "tasks.jsonl"
    path.write_text("\n".join(json.dumps(record) for record in records))
    return path


@pytest.mark.heavy
async def test_patches_are_graded_by_the_hidden_tests(tmp_path: Path, repositories: Path, swe: Any) -> None:
    (task,) = swe.read_tasks(write_tasks_file(tmp_path, make_record()))
    files = swe.read_commit_files(task, repositories)
    assert files["calc/maths.py"] == CODE

    settings = Settings().sandbox
    sandbox, python = open_sandbox(settings), discover_interpreter(tmp_path, os.environ)
    try:
        grades = {
            name: await swe.grade_patch(task, files, patch, sandbox, settings, python)
            for name, patch in (("gold", PATCH), ("worse", REGRESSING_PATCH), ("hides", CHEATING_PATCH))
        }
        for name, patch in (("empty", ""), ("torn", PATCH.replace("n * n", "n / n"))):
            grades[name] = await swe.grade_patch(task, files, patch, sandbox, settings, python)
    finally:
        await sandbox.close()
    assert {name: grade.resolved for name, grade in grades.items()} == {
        "gold": True,
        "worse": False,
        "hides": False,
        "empty": False,
        "torn": False,
    }
    assert grades["worse"].failed == ("tests/test_maths.py::test_triple",)
    assert grades["hides"].left_out == ("conftest.py",)
    assert grades["empty"].note == "the patch is empty"
    assert grades["torn"].note.startswith("the patch does not apply")


def test_predictions_have_the_published_format(tmp_path: Path, swe: Any) -> None:
    (task,) = swe.read_tasks(write_tasks_file(tmp_path, make_record()))
    path = tmp_path / "predictions.jsonl"

    path.write_text(swe.format_prediction(task, "me", "") + swe.format_prediction(task, "me", PATCH))

    assert json.loads(path.read_text().splitlines()[1]) == {
        "instance_id": "calc__calc-1",
        "model_name_or_path": "me",
        "model_patch": PATCH,
    }
    assert swe.read_predictions(path) == {"calc__calc-1": PATCH}


@pytest.mark.parametrize(
    "patch",
    [
        PATCH.replace("calc/maths.py", "../maths.py"),
        "diff --git a/x b/x\nnew file mode 120000\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+/etc/passwd\n"
        "\\ No newline at end of file\ndiff --git a/x/y b/x/y\nnew file mode 100644\n--- /dev/null\n"
        "+++ b/x/y\n@@ -0,0 +1 @@\n+out\n",
        "no diff at all",
    ],
)
def test_a_patch_outside_the_repository_is_refused(patch: str, swe: Any) -> None:
    with pytest.raises(DiffDoesNotApply):
        swe.apply_patch({"calc/maths.py": CODE}, patch)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"base_commit": None}, ":1: base_commit is missing"),
        ({"FAIL_TO_PASS": "[1]"}, "FAIL_TO_PASS is not a list of tests"),
        ({"PASS_TO_PASS": "nothing"}, "PASS_TO_PASS is not a list of tests"),
    ],
)
def test_an_invalid_record_is_an_error(
    changes: dict[str, Any], message: str, tmp_path: Path, swe: Any
) -> None:
    with pytest.raises(UsageError, match=message):
        swe.read_tasks(write_tasks_file(tmp_path, make_record(**changes)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"repo": "other/other"}, "holds no other__other"),
        ({"base_commit": "f" * 40}, "has no commit"),
        ({"repo": "../calc"}, "is no repository's name"),
    ],
)
def test_a_missing_repository_is_an_error(
    changes: dict[str, Any], message: str, tmp_path: Path, repositories: Path, swe: Any
) -> None:
    (task,) = swe.read_tasks(write_tasks_file(tmp_path, make_record(**changes)))
    with pytest.raises(UsageError, match=message):
        swe.read_commit_files(task, repositories)
