"""Tasks in the format of SWE-bench: read, patched as git does it, and graded by hidden tests."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from suture.bench.swe import (
    apply_patch,
    format_prediction,
    grade_patch,
    read_commit_files,
    read_predictions,
    read_tasks,
)
from suture.core.settings import Settings
from suture.errors import UsageError
from suture.project.workspace import DiffDoesNotApply, unified_diff
from suture.sandbox import discover_interpreter, open_sandbox

CODE = b"def double(n):\n    return n * n\n\n\ndef triple(n):\n    return 3 * n\n"
PATH = "calc/maths.py"
PATCH = unified_diff({PATH: CODE}, {PATH: CODE.replace(b"n * n", b"n + n")})
TESTS = """diff --git a/tests/test_maths.py b/tests/test_maths.py
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
HIDES = """diff --git a/conftest.py b/conftest.py
new file mode 100644
--- /dev/null
+++ b/conftest.py
@@ -0,0 +1,4 @@
+import calc.maths
+
+
+calc.maths.double = lambda n: n + n
"""
WORSE = unified_diff({PATH: CODE}, {PATH: CODE.replace(b"n * n", b"n + n").replace(b"3 * n", b"n")})


def record(**changed: Any) -> dict[str, Any]:
    return {
        "instance_id": "calc__calc-1",
        "repo": "calc/calc",
        "base_commit": "HEAD",
        "problem_statement": "double is wrong",
        "patch": PATCH,
        "test_patch": TESTS,
        "FAIL_TO_PASS": '["tests/test_maths.py::test_double"]',
        "PASS_TO_PASS": ["tests/test_maths.py::test_triple"],
        "version": "1.0",
        **changed,
    }


@pytest.fixture
def repos(tmp_path: Path) -> Path:
    folder = tmp_path / "repos" / "calc__calc"
    (folder / "calc").mkdir(parents=True)
    (folder / "calc" / "__init__.py").touch()
    (folder / "calc" / "maths.py").write_bytes(CODE)
    (folder / "pytest.ini").write_text("[pytest]\npythonpath = .\n")
    who = ("-c", "user.name=x", "-c", "user.email=x@localhost", "-c", "commit.gpgsign=false")
    for words in (("init", "-q"), ("add", "-A"), (*who, "commit", "-qm", "first")):
        subprocess.run(("git", *words), cwd=folder, check=True)
    (folder / "calc" / "maths.py").write_text("later, and in no commit\n")
    return tmp_path / "repos"


def tasks_file(tmp_path: Path, *records: dict[str, Any]) -> Path:
    path = tmp_path / "tasks.jsonl"
    path.write_text("\n".join(json.dumps(one) for one in records))
    return path


@pytest.mark.heavy
async def test_patches_are_graded_by_the_hidden_tests(tmp_path: Path, repos: Path) -> None:
    (task,) = read_tasks(tasks_file(tmp_path, record()))
    files = read_commit_files(task, repos)
    assert files["calc/maths.py"] == CODE
    settings = Settings().sandbox
    sandbox, python = open_sandbox(settings), discover_interpreter(tmp_path, os.environ)
    try:
        found = {
            name: await grade_patch(task, files, patch, sandbox, settings, python)
            for name, patch in (("gold", PATCH), ("worse", WORSE), ("hides", HIDES))
        }
        for name, patch in (("empty", ""), ("torn", PATCH.replace("n * n", "n / n"))):
            found[name] = await grade_patch(task, files, patch, sandbox, settings, python)
    finally:
        await sandbox.close()
    assert {name: graded.resolved for name, graded in found.items()} == {
        "gold": True,
        "worse": False,
        "hides": False,
        "empty": False,
        "torn": False,
    }
    assert found["worse"].failed == ("tests/test_maths.py::test_triple",)
    assert found["hides"].left_out == ("conftest.py",)
    assert found["empty"].note == "the patch is empty"
    assert found["torn"].note.startswith("the patch does not apply")


def test_predictions_are_in_the_originals_form(tmp_path: Path) -> None:
    (task,) = read_tasks(tasks_file(tmp_path, record()))
    path = tmp_path / "predictions.jsonl"
    path.write_text(format_prediction(task, "me", "") + format_prediction(task, "me", PATCH))
    assert json.loads(path.read_text().splitlines()[1]) == {
        "instance_id": "calc__calc-1",
        "model_name_or_path": "me",
        "model_patch": PATCH,
    }
    assert read_predictions(path) == {"calc__calc-1": PATCH}


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
def test_a_patch_outside_the_repository_is_refused(patch: str) -> None:
    with pytest.raises(DiffDoesNotApply):
        apply_patch({"calc/maths.py": CODE}, patch)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"base_commit": None}, ":1: base_commit is missing"),
        ({"FAIL_TO_PASS": "[1]"}, "FAIL_TO_PASS is not a list of tests"),
        ({"PASS_TO_PASS": "nothing"}, "PASS_TO_PASS is not a list of tests"),
    ],
)
def test_an_invalid_record_is_an_error(changed: dict[str, Any], says: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=says):
        read_tasks(tasks_file(tmp_path, record(**changed)))


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"repo": "other/other"}, "holds no other__other"),
        ({"base_commit": "f" * 40}, "has no commit"),
        ({"repo": "../calc"}, "is no repository's name"),
    ],
)
def test_a_missing_repository_is_an_error(
    changed: dict[str, Any], says: str, tmp_path: Path, repos: Path
) -> None:
    (task,) = read_tasks(tasks_file(tmp_path, record(**changed)))
    with pytest.raises(UsageError, match=says):
        read_commit_files(task, repos)
