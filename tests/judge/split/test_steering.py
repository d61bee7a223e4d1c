"""Nothing in the judge is chosen, imported or named by the candidate."""

from __future__ import annotations

from dataclasses import replace

import pytest

from judge.conftest import Judge, Prepare
from suture.core.records import Candidate, Check, Task
from suture.core.settings import SandboxSettings
from suture.judge import check_candidate, grade_program, prepare_suite
from suture.judge.extraction.program_plans import TaskNames, plan_program
from suture.judge.protected_files import find_protected_files
from suture.sandbox import Sandbox

TEST_FILE = "from calc import f\ndef test_f(): assert f(3) == 8\n"

WRONG = "def add(a, b): return 0\n"
PROGRAMS = {
    "all names of a program that exits": f"{WRONG}if 0:\n    from unittest.__main__ import *\n",
    "its function from a program that exits": "if 0:\n    from unittest.__main__ import add\n",
    "its function from the library": f"{WRONG}if 0:\n    from operator import add\n",
}
TEST = "assert add(1, 2) == 3"


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("entry_point", ["add", None])
async def test_dead_imports_do_not_change_a_grade(
    name: str, entry_point: str | None, sandbox: Sandbox, sandbox_settings: SandboxSettings
) -> None:
    graded = await grade_program(PROGRAMS[name], TEST, sandbox, sandbox_settings, entry_point=entry_point)
    assert (graded.outcome.status, graded.outcome.evidence) == ("failed", "split")


@pytest.mark.parametrize("name", PROGRAMS)
async def test_dead_imports_do_not_change_a_verdict(name: str, judge: Judge) -> None:
    verdict = await judge(PROGRAMS[name], TEST, TEST + "\nadd(1, 2)")
    assert [o.status for o in verdict.outcomes] == ["failed", "failed"]


async def test_a_candidate_may_reexport_a_library_function(judge: Judge) -> None:
    assert (await judge("from operator import add", TEST)).all_passed


def test_a_plan_depends_only_on_the_test() -> None:
    statement = "try:\n    assert f(helper(1)) == math.pi\nexcept Odd:\n    pass"
    test = f"import math\nfrom solution import Odd\n{statement}"

    plan = plan_program(test, TaskNames(files=("solution.py", "math.py"), module="solution.py"))

    assert {name: target["kind"] for name, target in plan.names.items()} == {
        "Odd": "exception",
        "f": "value",
        "helper": "value",
    }
    assert (plan.live_reason, plan.source.splitlines()[0]) == ("", "import math")


@pytest.mark.parametrize(
    ("test", "live"),
    [
        ("s = Stack()\ns.push(1)\nassert s.top() == 1", "Stack is a class"),
        ("assert str(Point(1, 2)) == '(1, 2)'", "Point is a class"),
        ("assert Point(1) == Point(1)", "Point is a class"),
        ("assert isinstance(f(1), Node)", "Node is a class"),
        ("assert run(Solution, 1) == 2", "Solution is a class"),
        ("assert Diff([1, 2], [2]) == [1]", ""),
        ("got = Split([1, 2])\nassert got == [1]", ""),
        ("assert LIMIT['k'] == 1 and Limit > 3", ""),
        ("assert os.sep == f(1)", "the test uses os"),
    ],
)
def test_the_test_shows_whether_a_name_is_a_class(test: str, live: str) -> None:
    assert plan_program(test, TaskNames(files=("solution.py",), module="solution.py")).live_reason == live


def test_the_task_may_say_whether_a_name_is_a_class() -> None:
    function_names = TaskNames(files=(), module="s.py", functions=frozenset({"Roman"}))
    assert plan_program("assert Roman('IV').value == 4", function_names).live_reason == ""
    class_names = TaskNames(files=(), module="s.py", classes=frozenset({"Roman"}))
    assert plan_program("assert Roman('IV') == 4", class_names).live_reason == "Roman is a class"


@pytest.mark.parametrize(
    "code",
    [
        "def f(x): return iter([8])",
        "class F:\n    split = append = 8\ndef f(x): return F()",
        "class f:\n    def __init__(self, x): pass\n    def split(self): return ['8']",
        "import math as f",
        "f = 8",
        "def f(x): return f",
    ],
)
@pytest.mark.parametrize(
    "test", ["assert f(3).split() == ['8']", "def check(c):\n    assert c(3).append\ncheck(f)"]
)
async def test_no_candidate_weakens_its_own_evidence(code: str, test: str, judge: Judge) -> None:
    verdict = await judge(code, test)
    assert [(o.passed, o.evidence) for o in verdict.outcomes] == [(False, "split")]


async def test_a_candidates_module_replaces_no_library(
    sandbox: Sandbox, sandbox_settings: SandboxSettings
) -> None:
    test = "import unittest\nimport shapes\nassert f(3) == 8"
    forged = {"unittest.py": b"import os", "shapes.py": b"f = 8"}
    graded = await grade_program(
        "def f(x): return 0", test, sandbox, sandbox_settings, files=forged, importable=()
    )
    assert (graded.passed, graded.outcome.evidence) == (False, "split")


@pytest.mark.parametrize(
    ("test", "right", "wrong"),
    [
        ("import sys\nassert f(3) == 8\nsys.exit(0)", "8", "0"),
        ("assert f(3) == 8\nraise SystemExit", "8", "0"),
        ("import sys\nsys.exit(f(3) != 8)", "8", "0"),
        ("from sys import exit as leave\nleave(int(f(3) != 8))", "8", "0"),
        (
            "from unittest import TestCase, main\nclass T(TestCase):\n"
            "    def test(self): self.assertEqual(f(3), 8)\nif __name__ == '__main__':\n    main(exit=False)",
            "8",
            "0",
        ),
        (
            "try:\n    f(3)\nexcept StopIteration as end:\n    assert end.value == 8\nelse:\n    assert 0",
            "stop",
            "8",
        ),
        (
            "try:\n    f(3)\nexcept SystemExit as end:\n    assert end.code == 8\nelse:\n    assert 0",
            "exit",
            "8",
        ),
        ("x = [1]\nassert f(x) is x", "x", "list(x)"),
        ("x = [3]\nf(x)\nassert x == []", "x.clear()", "0"),
        ("x = [3, 4]\nk = f(x)\nassert x[:k] == [4]", "x.pop(0) - 2", "1"),
        ("x = [3, 1]\nassert f(x) == sorted(x)", "x.sort() or x", "x"),
        ("assert not f(3) > 8 and f(3) >= 8", "8.0", "9"),
    ],
)
async def test_honest_test_programs_work(test: str, right: str, wrong: str, judge: Judge) -> None:
    head = "import sys\ndef stop(): raise StopIteration(8)\ndef f(x): return {}"
    bodies = {"stop": "stop()", "exit": "sys.exit(8)"}
    verdicts = [await judge(head.format(bodies.get(code, code)), test) for code in (right, wrong)]
    assert [verdict.all_passed for verdict in verdicts] == [True, False]
    assert {o.evidence for verdict in verdicts for o in verdict.outcomes} == {"split"}


async def test_only_an_exit_of_the_test_is_a_pass(judge: Judge) -> None:
    test = "import unittest\nhidden = unittest.main\nhidden()\nassert f(3) == 8"
    assert not (await judge("def f(x): return 0", test)).all_passed
    assert not (await judge("def f(x): return 0", "import sys\nf(3) or sys.exit(f(3))\nassert 0")).all_passed


def test_planning_never_reads_the_candidate() -> None:
    files = {"solution.py": "if a: pass\n" + "elif a: pass\n" * 100_000}  # the content is never read
    names = TaskNames(files=tuple(files), module="solution.py")
    assert set(plan_program("assert f(1)", names).names) == {"f"}


@pytest.mark.parametrize(
    "path",
    [
        "suture_report.py",
        "pluggy.py",
        "iniconfig/__init__.py",
        "src/suture_report.py",
        "sitecustomize/__init__.py",
        "x-1.0.dist-info/entry_points.txt",
        "x.egg-info/entry_points.txt",
    ],
)
async def test_no_candidate_replaces_the_reporting_plugin(path: str, prepare: Prepare) -> None:
    project = {"calc.py": "def f(x): return 0\n", "test_calc.py": TEST_FILE}
    suite = await prepare(project)
    forged = Candidate(files={path: "raise SystemExit(0)\n"}, origin="sample")
    assert find_protected_files(forged.files, suite) == (path,)


async def test_no_candidate_replaces_a_library_of_the_tests(prepare: Prepare) -> None:
    test = "import yaml\n" + TEST_FILE
    suite = await prepare({"calc.py": "def f(x): return 0\n", "test_calc.py": test})
    forged = ("yaml.py", "yaml/__init__.py")
    assert (
        find_protected_files(dict.fromkeys((*forged, "more.py", "json5.py", "src/yaml.py"), ""), suite)
        == forged
    )

    suite_with_package = await prepare(
        {"calc.py": "def f(x): return 0\n", "test_calc.py": test, "yaml/a.py": ""}
    )
    assert find_protected_files({"yaml/b.py": ""}, suite_with_package) == ()

    in_a_file = ("solution.py/a.py", "yaml/a.py/b/c.py")
    assert (
        find_protected_files(dict.fromkeys(("solution.py", *in_a_file), ""), suite_with_package) == in_a_file
    )


@pytest.mark.parametrize("path", ["numpy/testing.py", "helpers.py"])
async def test_a_candidates_path_shadows_no_library(path: str, sandbox: Sandbox) -> None:
    module = path.removesuffix(".py").replace("/", ".")
    test = f"from {module} import close\nassert close(add(1, 2), 3)"
    checks = (Check(id="1", provenance="user", source=test),)
    task = Task(statement="", entry_point="add", checks=checks)
    suite = await prepare_suite(task, sandbox, SandboxSettings(check_timeout_s=20))
    code = "def add(a, b): return 0\ndef close(a, b): return True\n"
    assert not (await check_candidate(Candidate(files={path: code}, origin="sample"), suite)).passed

    right = Check(id="2", provenance="user", source=f"from {module} import add\nassert add(1, 2) == 3")
    suite = await prepare_suite(replace(task, checks=(right,)), sandbox, SandboxSettings(check_timeout_s=20))
    code = "def add(a, b): return a + b\n"
    assert (await check_candidate(Candidate(files={path: code}, origin="sample"), suite)).all_passed
