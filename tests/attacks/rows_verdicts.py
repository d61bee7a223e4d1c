"""Rows 36-40: passing verdicts without a correct solution, with this sandbox between judge and candidate.

`tests/judge/split/test_attacks.py` runs the whole corpus in one sandbox; here each sandbox runs some of it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from attacks.trials import AttackContext, Row, Trial, TrialSkipped, check
from bare_pytest import BARE_PYTEST
from judge.split.forgeries import EXITING, OBJECTS, PATCHING, PRINTING, SEARCHING, SPLIT_TESTS, wrap_in_class
from suture.core.records import Candidate, Check, Task, Verdict
from suture.core.settings import SandboxSettings
from suture.errors import PrerequisiteError
from suture.judge import check_candidate, prepare_suite
from suture.sandbox import discover_interpreter

__all__ = ["ROWS"]

SLOW = "a verdict needs several programs, and a program that is cut short proves nothing"
COMMAND = tuple(BARE_PYTEST.split())
PROJECT = {
    "calc.py": b"def add(a, b): return a - b\n",
    "test_calc.py": b"from calc import add\ndef test_add(): assert add(1, 2) == 3\n",
}
PLANTED_FILES = {
    "conftest.py": "import os; os._exit(0)",
    "sitecustomize.py": "import os; os._exit(0)",
    "usercustomize.py": "import os; os._exit(0)",
    "pytest.ini": "[pytest]\naddopts = --collect-only",
    "pyproject.toml": "[tool.pytest.ini_options]\naddopts = '--collect-only'",
    "setup.cfg": "[tool:pytest]\naddopts = --collect-only",
    "test_calc.py": "def test_add(): pass",
    "json.py": "import os; os._exit(0)",
    "plug.pth": "import os; os._exit(0)",
}


def settings(context: AttackContext) -> SandboxSettings:
    """Return settings with the time limit of the context."""
    return SandboxSettings(check_timeout_s=context.wall_s, test_timeout_s=context.wall_s)


async def check_solution(context: AttackContext, code: str, *tests: str) -> Verdict:
    """Return the verdict of tests on a solution in one file."""
    checks = tuple(Check(id=str(number), provenance="user", source=test) for number, test in enumerate(tests))
    suite = await prepare_suite(Task(statement="", checks=checks), context.sandbox, settings(context))
    return await check_candidate(Candidate(files={"solution.py": code}, origin="sample"), suite)


def is_cut_short(verdict: Verdict) -> bool:
    """Return whether a check ran out of time."""
    return any(outcome.status == "timeout" for outcome in verdict.outcomes)


def expect_forgeries_fail(corpus: Mapping[str, str], *names: str, nonce: bool = False) -> Trial:
    """Return a trial in which no forgery may pass a split verdict or, on request, nonce mode."""

    async def trial(context: AttackContext) -> None:
        for name in names or corpus:
            verdict = await check_solution(context, corpus[name], *SPLIT_TESTS)
            check(not verdict.passed and verdict.evidence == "split", f"{name}: {verdict}")
            check(not is_cut_short(verdict), f"{name} was cut short: {verdict}")
            if nonce:
                verdict = await check_solution(
                    context, wrap_in_class(corpus[name]), "assert Box().get(3) == 8"
                )
                check(not verdict.passed, f"{name}, in nonce mode: {verdict}")
                check(not is_cut_short(verdict), f"{name}, in nonce mode, was cut short: {verdict}")

    return trial


def expect_solution_passes(code: str, test: str = "") -> Trial:
    """Return a twin: a correct program that resembles the forgeries must pass."""

    async def trial(context: AttackContext) -> None:
        verdict = await check_solution(context, code, *((test,) if test else SPLIT_TESTS))
        check(verdict.all_passed, verdict)

    return trial


async def check_with_pytest(context: AttackContext, files: Mapping[str, str]) -> Verdict:
    """Return the verdict of pytest on files that a candidate changes."""
    interpreter = discover_interpreter(None, {"VIRTUAL_ENV": sys.prefix})
    task = Task(statement="", kind="heal", files=PROJECT, test_command=COMMAND)
    try:
        suite = await prepare_suite(task, context.sandbox, settings(context), interpreter)
    except PrerequisiteError as reason:
        raise TrialSkipped(str(reason), "venv") from reason
    return await check_candidate(Candidate(files=files, origin="sample"), suite)


async def plant_files(context: AttackContext) -> None:
    """Submit a wrong solution beside files that try to skip the tests."""
    verdict = await check_with_pytest(context, {"calc.py": "def add(a, b): return 0", **PLANTED_FILES})
    check(not verdict.passed and not is_cut_short(verdict), verdict)


async def add_a_correct_module(context: AttackContext) -> None:
    """Submit a correct solution that adds a module."""
    files = {"calc.py": "from sums import plus as add", "sums.py": "def plus(a, b): return a + b"}
    verdict = await check_with_pytest(context, files)
    check(verdict.all_passed, verdict)


ROWS = (
    Row(
        number=36,
        slow=SLOW,
        attempt="plant conftest.py, sitecustomize.py, pytest.ini, a .pth file, other tests",
        attack=plant_files,
        twin=add_a_correct_module,
    ),
    Row(
        number=37,
        slow=SLOW,
        attempt="end the program before the asserts",
        attack=expect_forgeries_fail(
            EXITING,
            "os._exit(0)",
            "sys.exit(0)",
            "raises SystemExit at import",
            "executes another program",
            "kills itself",
            "exits at exit",
            nonce=True,
        ),
        twin=expect_solution_passes("import atexit, sys\natexit.register(print, 'bye')\ndef f(x): return 8"),
    ),
    Row(
        number=38,
        slow=SLOW,
        attempt="write the verdict itself: to every descriptor, to stdout, as JSON",
        attack=expect_forgeries_fail(
            PRINTING, "prints PASSED", "frames on every descriptor", "frames from a child", nonce=True
        ),
        twin=expect_solution_passes("print('5 passed')\ndef f(x): print('{\"passed\": false}'); return 8"),
    ),
    Row(
        number=39,
        slow=SLOW,
        attempt="look for the secret or the expected value in memory",
        attack=expect_forgeries_fail(SEARCHING),
        twin=expect_solution_passes(
            "import gc, sys\ndef f(x): gc.collect(); return 8 if sys._getframe() else 0"
        ),
    ),
    Row(
        number=40,
        slow=SLOW,
        attempt="be equal to everything, patch what decides",
        attack=expect_forgeries_fail(
            {**OBJECTS, **PATCHING},
            "always equal",
            "a subclass of int",
            "the function is a class",
            "pickles as the answer",
            "patched builtins",
            "patched modules of ours",
            "patched assert machinery",
        ),
        twin=expect_solution_passes(
            "class Eight:\n    def __eq__(self, o): return o == 8\n    __hash__ = None\ndef f(x): return 8"
        ),
    ),
)
