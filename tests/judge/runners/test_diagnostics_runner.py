"""The diagnostics of a linter are checks, which a candidate passes by repairing the code and in no other way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from project_files import write_files
from requirements import Require
from suture.core.records import Candidate, Verdict
from suture.core.settings import SandboxSettings
from suture.errors import UsageError
from suture.judge import Suite, check_candidate, find_protected_files, prepare_suite, triage_failures
from suture.judge.runners.diagnostics.diagnostics_runner import SUPPRESSION_CHECK
from suture.judge.runners.diagnostics.lent_programs import find_ruff
from suture.judge.runners.diagnostics.tool_fixes import collect_tool_fixes
from suture.judge.signs.diagnostic_signs import find_diagnostic_signs, find_silencing_signs
from suture.loop.intake.heal_task import build_heal_task
from suture.sandbox import BubblewrapSandbox, discover_interpreter

CODE = "import os\nimport sys\n\n\ndef size(items):\n    spare = 1\n    return len(items)\n"
FIXED = "def size(items):\n    return len(items)\n"
CONFIGURATION = "[tool.ruff.lint]\nselect = ['F']\n"
FILES = {"a.py": CODE, "pyproject.toml": CONFIGURATION}
UNUSED_OS = "a.py::ruff check F401: `os` imported but unused"
UNUSED_NAME = "a.py::ruff check F841: Local variable `spare` is assigned to but never used (in size)"


async def prepare(
    folder: Path, sandbox: BubblewrapSandbox, files: Mapping[str, str] = FILES, command: str = "ruff check ."
) -> Suite:
    """Return the suite of a project in a folder, whose command is a linter."""
    task, _ = build_heal_task(write_files(folder, files), test=command)
    return await prepare_suite(task, sandbox, SandboxSettings(), discover_interpreter(folder, {}))


async def judge(suite: Suite, files: Mapping[str, str]) -> Verdict:
    return await check_candidate(Candidate(files=files, origin="repair"), suite)


@pytest.fixture(autouse=True)
def _need_ruff(require: Require) -> None:
    require("ruff", find_ruff(None) is not None, "ruff is not installed")


async def test_each_diagnostic_is_a_check_with_its_place(tmp_path: Path, sandbox: BubblewrapSandbox) -> None:
    verdict = await judge(await prepare(tmp_path, sandbox), {})
    assert {UNUSED_OS, UNUSED_NAME} <= verdict.failed
    assert len(verdict.failed) == 3
    fact = next(fact for fact in verdict.counterexamples if fact.check_id == UNUSED_NAME)
    assert (fact.file, fact.line, fact.code) == ("a.py", 6, "diagnostic")
    assert verdict.evidence == "report"


async def test_a_check_passes_when_its_diagnostic_is_gone_whatever_else_moves(
    tmp_path: Path, sandbox: BubblewrapSandbox
) -> None:
    suite = await prepare(tmp_path, sandbox)
    assert (await judge(suite, {"a.py": FIXED})).all_passed
    partly = await judge(suite, {"a.py": CODE.replace("import os\n", "# The sizes.\n\n\n\n")})
    assert UNUSED_OS in partly.passed
    assert UNUSED_NAME in partly.failed


async def test_a_new_diagnostic_fails_although_the_old_ones_are_gone(
    tmp_path: Path, sandbox: BubblewrapSandbox
) -> None:
    other = FIXED.replace("    return", "    x = 1\n    return")
    verdict = await judge(await prepare(tmp_path, sandbox), {"a.py": other})
    assert verdict.failed == {UNUSED_NAME.replace("spare", "x")}


async def test_a_second_equal_diagnostic_fails_beside_the_first(
    tmp_path: Path, sandbox: BubblewrapSandbox
) -> None:
    once = "def size(items):\n    print(f'')\n    return len(items)\n"
    suite = await prepare(tmp_path, sandbox, {**FILES, "a.py": once})
    verdict = await judge(suite, {"a.py": once.replace("    return", "    print(f'')\n    return")})
    name = "a.py::ruff check F541: f-string without any placeholders (in size)"
    assert verdict.failed == {name, f"{name} #2"}


@pytest.mark.parametrize(
    "text",
    [
        "# ruff: noqa\n" + CODE,
        CODE.replace("import os\n", "import os  # noqa\n")
        .replace("import sys\n", "")
        .replace("    spare = 1\n", ""),
    ],
)
async def test_switching_a_rule_off_fails_what_passed_before(
    text: str, tmp_path: Path, sandbox: BubblewrapSandbox
) -> None:
    suite = await prepare(tmp_path, sandbox)
    before, after = await judge(suite, {}), await judge(suite, {"a.py": text})
    assert before.passed - after.passed == {SUPPRESSION_CHECK}


async def test_a_new_stub_in_place_of_the_code_fails(tmp_path: Path, sandbox: BubblewrapSandbox) -> None:
    verdict = await judge(
        await prepare(tmp_path, sandbox), {"a.pyi": "def size(items): ...\n", "a.py": FIXED}
    )
    assert verdict.failed == {SUPPRESSION_CHECK}
    assert verdict.counterexamples[0].file == "a.pyi"


@pytest.mark.parametrize(
    "path", ["pyproject.toml", "ruff.toml", ".ruff.toml", "sub/ruff.toml", ".flake8", "mypy.ini"]
)
async def test_no_candidate_writes_the_configuration_of_a_tool(
    path: str, tmp_path: Path, sandbox: BubblewrapSandbox
) -> None:
    suite = await prepare(tmp_path, sandbox)
    assert find_protected_files({path: "[lint]\nselect = []\n"}, suite) == (path,)


async def test_a_tool_that_fails_without_a_report_is_refused(
    tmp_path: Path, sandbox: BubblewrapSandbox
) -> None:
    with pytest.raises(UsageError, match="cannot start"):
        await prepare(tmp_path, sandbox, {**FILES, "pyproject.toml": "[tool.ruff.lint]\nselect = ['NONE']\n"})


async def test_a_tool_that_is_not_installed_is_named(tmp_path: Path, sandbox: BubblewrapSandbox) -> None:
    with pytest.raises(UsageError, match="there is no 'pyright'"):
        await prepare(tmp_path, sandbox, command="pyright")


async def test_the_fixes_of_a_tool_come_safest_first(tmp_path: Path, sandbox: BubblewrapSandbox) -> None:
    suite = await prepare(tmp_path, sandbox)
    fixes = [fix async for fix in collect_tool_fixes(suite, suite.task.files)]
    assert [fix.label for fix in fixes] == ["ruff check --fix .", "ruff check --fix --unsafe-fixes ."]
    assert "spare" in fixes[0].files["a.py"]
    assert (await judge(suite, fixes[1].files)).all_passed


async def test_tests_that_fail_before_do_not_decide_about_a_linter(
    tmp_path: Path, sandbox: BubblewrapSandbox
) -> None:
    tests = "from a import size\n\n\ndef test_one():\n    assert size([1]) == 1\n\n\n"
    tests += "def test_two():\n    assert size([1]) == 2\n"
    suite = await prepare(tmp_path, sandbox, {**FILES, "test_a.py": tests})
    assert suite.task.tests_only_guard
    verdict = await judge(suite, {"a.py": FIXED})
    assert verdict.all_passed
    assert "test_a.py::test_one" in verdict.passed
    broken = await judge(suite, {"a.py": "def size(items):\n    return 0\n"})
    assert broken.failed == {"test_a.py::test_one"}


async def test_a_tool_may_tidy_a_test_and_no_more(tmp_path: Path, sandbox: BubblewrapSandbox) -> None:
    test = "import os\n\nfrom a import size\n\n\ndef test_one():\n    assert size([1]) == 1\n"
    suite = await prepare(
        tmp_path, sandbox, {"a.py": FIXED, "pyproject.toml": CONFIGURATION, "test_a.py": test}
    )
    tidied = test.replace("import os\n\n", "")
    assert (await judge(suite, {"test_a.py": tidied})).all_passed
    weakened = tidied.replace(" == 1", "")
    assert find_protected_files({"test_a.py": weakened}, suite) == ("test_a.py",)


async def test_wider_types_and_removed_code_are_signs(tmp_path: Path, sandbox: BubblewrapSandbox) -> None:
    runner = (await prepare(tmp_path, sandbox)).diagnostics
    assert [sign.code for sign in find_diagnostic_signs(runner, "a.py", CODE, "")] == ["removes_definitions"]
    assert find_diagnostic_signs(runner, "a.py", CODE, FIXED) == ()
    assert find_diagnostic_signs(None, "a.py", CODE, "") == ()


@pytest.mark.parametrize(
    ("added", "is_sign"),
    [
        ('#pragma GCC diagnostic ignored "-Wsign-compare"\n', True),
        ('    @SuppressWarnings("unchecked")\n', True),
        ("#[allow(unused)]\n", True),
        ("#[cfg(test)]\nmod tests;\n", False),
        ("//go:build linux\n", False),
        ("#pragma once\n", False),
    ],
)
def test_what_silences_an_unseen_compiler_is_a_sign(added: str, is_sign: bool) -> None:
    code = "int size();\n"
    signs = find_silencing_signs(code, added + code)
    assert [sign.code for sign in signs] == ["silences_tools"] * is_sign
    assert all(sign.limits_confidence for sign in signs)


async def test_diagnostics_are_the_codes_fault(tmp_path: Path, sandbox: BubblewrapSandbox) -> None:
    suite = await prepare(tmp_path, sandbox)
    base = await check_candidate(Candidate(files={}, origin="user"), suite)
    triage = await triage_failures(suite, base)
    assert triage.cause is None
    assert {*triage.code_failures} == base.failed
    outcomes = tuple(
        replace(outcome, counterexample=replace(outcome.counterexample, exception="import-untyped: no types"))
        for outcome in base.outcomes
        if outcome.counterexample
    )
    assert (await triage_failures(suite, replace(base, outcomes=outcomes))).cause == "environment"
