"""Rows 36-40: passing without being right, with this sandbox between judge and candidate.

`tests/judge/split/test_attacks.py` runs the whole corpus in one sandbox; here each sandbox runs some of it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from attacks.trials import Row, Skipped, Trial, World, demand
from bare_pytest import BARE_PYTEST
from judge.split.forgeries import ENDED, HUNTED, OBJECTS, PATCHED, PRINTED, SPLIT_TESTS, in_a_class
from suture.core.records import Candidate, Check, Task, Verdict
from suture.core.settings import SandboxSettings
from suture.errors import PrerequisiteError
from suture.judge import check_candidate, prepare_suite
from suture.sandbox import discover_interpreter

__all__ = ["ROWS"]

SLOW = "a verdict is of several programs, and one that was cut short says nothing"
COMMAND = tuple(BARE_PYTEST.split())
PROJECT = {
    "calc.py": b"def add(a, b): return a - b\n",
    "test_calc.py": b"from calc import add\ndef test_add(): assert add(1, 2) == 3\n",
}
PLANTED = {
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


def settings(world: World) -> SandboxSettings:
    return SandboxSettings(check_timeout_s=world.wall_s, test_timeout_s=world.wall_s)


async def verdict_on(world: World, code: str, *tests: str) -> Verdict:
    checks = tuple(Check(id=str(number), provenance="user", source=test) for number, test in enumerate(tests))
    suite = await prepare_suite(Task(statement="", checks=checks), world.sandbox, settings(world))
    return await check_candidate(Candidate(files={"solution.py": code}, origin="sample"), suite)


def cut_short(verdict: Verdict) -> bool:
    return any(outcome.status == "timeout" for outcome in verdict.outcomes)


def forged(corpus: Mapping[str, str], *names: str, nonce: bool = False) -> Trial:
    """None of these may pass a split verdict, nor nonce mode where that is asked for."""

    async def trial(world: World) -> None:
        for name in names or corpus:
            verdict = await verdict_on(world, corpus[name], *SPLIT_TESTS)
            demand(not verdict.passed and verdict.evidence == "split", f"{name}: {verdict}")
            demand(not cut_short(verdict), f"{name} was cut short: {verdict}")
            if nonce:
                verdict = await verdict_on(world, in_a_class(corpus[name]), "assert Box().get(3) == 8")
                demand(not verdict.passed, f"{name}, in nonce mode: {verdict}")
                demand(not cut_short(verdict), f"{name}, in nonce mode, was cut short: {verdict}")

    return trial


def right(code: str, test: str = "") -> Trial:
    """The twin: a right program that looks like the forgeries must pass."""

    async def trial(world: World) -> None:
        verdict = await verdict_on(world, code, *((test,) if test else SPLIT_TESTS))
        demand(verdict.all_passed, verdict)

    return trial


async def pytest_verdict(world: World, files: Mapping[str, str]) -> Verdict:
    interpreter = discover_interpreter(None, {"VIRTUAL_ENV": sys.prefix})
    task = Task(statement="", kind="heal", files=PROJECT, test_command=COMMAND)
    try:
        suite = await prepare_suite(task, world.sandbox, settings(world), interpreter)
    except PrerequisiteError as reason:
        raise Skipped(str(reason), "venv") from reason
    return await check_candidate(Candidate(files=files, origin="sample"), suite)


async def planted_files(world: World) -> None:
    verdict = await pytest_verdict(world, {"calc.py": "def add(a, b): return 0", **PLANTED})
    demand(not verdict.passed and not cut_short(verdict), verdict)


async def right_with_a_module_more(world: World) -> None:
    files = {"calc.py": "from sums import plus as add", "sums.py": "def plus(a, b): return a + b"}
    verdict = await pytest_verdict(world, files)
    demand(verdict.all_passed, verdict)


ROWS = (
    Row(
        number=36,
        slow=SLOW,
        attempt="plant conftest.py, sitecustomize.py, pytest.ini, a .pth file, other tests",
        attack=planted_files,
        twin=right_with_a_module_more,
    ),
    Row(
        number=37,
        slow=SLOW,
        attempt="end the program before the asserts",
        attack=forged(
            ENDED,
            *("os._exit(0)", "sys.exit(0)", "raises SystemExit at import", "executes another program"),
            *("kills itself", "exits at exit"),
            nonce=True,
        ),
        twin=right("import atexit, sys\natexit.register(print, 'bye')\ndef f(x): return 8"),
    ),
    Row(
        number=38,
        slow=SLOW,
        attempt="write the verdict itself: to every descriptor, to stdout, as JSON",
        attack=forged(
            PRINTED, "prints PASSED", "frames on every descriptor", "frames from a child", nonce=True
        ),
        twin=right("print('5 passed')\ndef f(x): print('{\"passed\": false}'); return 8"),
    ),
    Row(
        number=39,
        slow=SLOW,
        attempt="look for the secret or the expected value in memory",
        attack=forged(HUNTED),
        twin=right("import gc, sys\ndef f(x): gc.collect(); return 8 if sys._getframe() else 0"),
    ),
    Row(
        number=40,
        slow=SLOW,
        attempt="be equal to everything, patch what decides",
        attack=forged(
            {**OBJECTS, **PATCHED},
            *("always equal", "a subclass of int", "the function is a class", "pickles as the answer"),
            *("patched builtins", "patched modules of ours", "patched assert machinery"),
        ),
        twin=right(
            "class Eight:\n    def __eq__(self, o): return o == 8\n    __hash__ = None\ndef f(x): return 8"
        ),
    ),
)
