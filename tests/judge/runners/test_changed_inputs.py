"""Code under test that changes, while the tests run, what decides them, and honest suites that write files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from judge.conftest import Prepare, require_language
from judge.runners.test_runner_attacks import prepare_runner_suite
from judge.runners.test_watched_runners import install_project, prepare_folder_suite
from requirements import Require
from suture.core.records import Task
from suture.judge import Suite
from suture.judge.runners.command_line import CommandRun
from suture.judge.runners.run_inputs import RunInputs
from suture.sandbox import RunResult, Sandbox

pytestmark = pytest.mark.timeout(300)
WRONG = "def double(n):\n    return n\n"
RIGHT = "def double(n):\n    return 2 * n\n"
PROJECT = {
    "calc.py": WRONG,
    "cases.json": "[[2, 4]]",
    "first/test_first.py": "from calc import double\n\ndef test_zero():\n    assert double(0) == 0\n",
    "later/test_later.py": "from calc import double\n\ndef test_two():\n    assert double(2) == 4\n",
    "test_cases.py": (
        "import json\nfrom calc import double\n\ndef test_cases():\n    with open('cases.json') as file:\n"
        "        for given, expected in json.load(file):\n            assert double(given) == expected\n"
    ),
    "conftest.py": "",  # puts the project's root on the search path
}
REWRITE = """
import atexit, os

def rewrite(path, old, new):
    status = os.stat(path)
    with open(path) as file: text = file.read()
    def write(content):
        with open(path, "w") as file: file.write(content)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    write(text.replace(old, new))
    atexit.register(write, text)

"""
REWRITE_DATA = f"{REWRITE}rewrite('cases.json', '[2, 4]', '[2, 2]')\n"
REWRITE_TEST = f"{REWRITE}rewrite('later/test_later.py', '== 4', '== 2')\n"
PLANT_CONFTEST = """
with open("later/conftest.py", "w") as file:
    file.write("import calc\\ncalc.double = lambda n: 4\\n")
"""
PLANT_BYTECODE = """
import importlib.util, marshal, os
from _pytest.assertion.rewrite import PYC_TAIL

def plant(path, old, new):
    with open(path) as file: text = file.read()
    head = b"\\3\\0\\0\\0" + importlib.util.source_hash(text.encode())
    code = compile(text.replace(old, new), path, "exec")
    folder, name = os.path.split(path)
    os.makedirs(f"{folder}/__pycache__", exist_ok=True)
    with open(f"{folder}/__pycache__/{name[:-3]}{PYC_TAIL}", "wb") as file:
        file.write(importlib.util.MAGIC_NUMBER + head + marshal.dumps(code))

plant("later/test_later.py", "== 4", "== 2")
"""


async def run_with(code: str, suite: Suite, path: str = "calc.py") -> CommandRun:
    assert suite.command is not None
    return await suite.command.run({**suite.task.files, path: code.encode()})


def list_changes(run: CommandRun) -> list[str]:
    """Return what the failures say about changed inputs."""
    facts = [outcome.counterexample for outcome in run.outcomes if outcome.counterexample]
    return [fact.exception for fact in facts if fact.code == "inputs_changed"]


def list_failed_tests(run: CommandRun) -> list[str]:
    return [outcome.check_id for outcome in run.outcomes if "::" in outcome.check_id and not outcome.passed]


@pytest.mark.parametrize(
    ("attack", "test", "change"),
    [
        (REWRITE_DATA, "test_cases.py::test_cases", "'cases.json' was changed"),
        (REWRITE_TEST, "later/test_later.py::test_two", "'later/test_later.py' was changed"),
        (PLANT_BYTECODE, "later/test_later.py::test_two", "'later/__pycache__' was created"),
        (PLANT_CONFTEST, "later/test_later.py::test_two", "'later/conftest.py' was created"),
    ],
    ids=["expected results", "a later test", "bytecode of a later test", "a later conftest.py"],
)
async def test_changed_inputs_of_pytest_are_no_pass(
    prepare: Prepare, attack: str, test: str, change: str
) -> None:
    suite = await prepare(PROJECT)
    assert test in list_failed_tests(await run_with(WRONG + "# same\n", suite))

    run = await run_with(WRONG + attack, suite)

    assert test not in list_failed_tests(run), "the attack does not even fool the test"
    assert list_changes(run) == [f"{change} while the tests ran"]


HONEST = {
    **PROJECT,
    "tests/log.txt": "",
    "tests/test_log.py": (
        "import os\nfrom calc import double\n\n"
        "def test_log():\n    with open('tests/log.txt', 'a') as file: file.write('ran')\n\n"
        "def test_files():\n    assert double(1) == 2\n"
        "    os.makedirs('tests/out/deep'); os.makedirs('.cache', exist_ok=True)\n"
        "    for path in ('tests/out/result.txt', 'tests/out/conftest.py', 'tests/new.txt', '.cache/x'):\n"
        "        with open(path, 'w') as file: file.write('x')\n"
        "    os.rename('tests/new.txt', 'tests/moved.txt')\n    os.remove('tests/moved.txt')\n"
    ),
}
WRITES_FILES = """
import os, tempfile

def write():
    os.makedirs("cache", exist_ok=True)
    for path in ("cache/entries.json", "notes.txt", "tests/state.db"):
        with open(path, "w") as file: file.write("x")
    with tempfile.NamedTemporaryFile(dir="."): pass

write()
"""


async def test_what_a_suite_changes_at_base_and_files_that_code_writes_are_allowed(prepare: Prepare) -> None:
    suite = await prepare(HONEST)

    run = await run_with(WRITES_FILES + RIGHT, suite)

    assert all(outcome.passed for outcome in run.outcomes), run.outcomes


async def test_the_base_run_itself_may_change_its_inputs(prepare: Prepare) -> None:
    suite = await prepare({**PROJECT, "calc.py": REWRITE_DATA + WRONG})
    assert list_changes(await suite.command.run(suite.task.files)) == []
    assert list_changes(await run_with(REWRITE_DATA + RIGHT, suite)) == []


async def test_changed_inputs_of_unittest_are_no_pass(prepare: Prepare) -> None:
    tests = (
        "import unittest\nfrom calc import double\n\nclass TestCalc(unittest.TestCase):\n"
        "    def test_double(self):\n        self.assertEqual(double(2), 4)\n"
    )
    project = {"calc.py": WRONG, "test_a.py": tests.replace("2", "0").replace("4", "0"), "test_b.py": tests}
    suite = await prepare(project, "python -m unittest")
    right = await run_with(RIGHT, suite)
    assert all(outcome.passed for outcome in right.outcomes)

    attack = f"{REWRITE}rewrite('test_b.py', ', 4', ', 2')\n"
    run = await run_with(attack + WRONG, suite)

    assert list_changes(run) == ["'test_b.py' was changed while the tests ran"]


REWRITE_JS = """
const fs = require('fs'), path = require('path');
const rewrite = (name, old, now) => {
  const file = path.join(__dirname, '..', name), { atime, mtime } = fs.statSync(file);
  const text = fs.readFileSync(file, 'utf8');
  const write = (content) => { fs.writeFileSync(file, content); fs.utimesSync(file, atime, mtime); };
  write(text.replace(old, now));
  process.on('exit', () => write(text));
};
"""
REWRITE_JS_DATA = f"{REWRITE_JS}rewrite('data/cases.json', '3', '-1');\n"
REWRITE_JS_TEST = f"{REWRITE_JS}rewrite('test/later.test.js', '+', '-');\n"
WRONG_JS = "exports.add = (a, b) => a - b;\n"
TESTS_JS = """
const { add } = require('../src/sum'), fs = require('fs');
test('adds', () => {
  const [a, b, sum] = JSON.parse(fs.readFileSync('data/cases.json'));
  if (add(a, b) !== sum) throw new Error(`${add(a, b)} is not ${sum}`);
});
"""
LATER_TESTS_JS = """
const { add } = require('../src/sum');
test('later', () => { if (add(1, 2) !== 1 + 2) throw new Error('wrong'); });
"""
FILES_JS = {"data/cases.json": "[1, 2, 3]", "src/sum.js": WRONG_JS}


@pytest.mark.heavy
async def test_changed_inputs_of_node_are_no_pass(sandbox: Sandbox, require: Require) -> None:
    require_language("javascript", require)
    head = "const test = require('node:test');\n"
    files = {
        **FILES_JS,
        "package.json": '{"scripts": {"test": "node --test --test-concurrency=1"}}',
        "test/adds.test.js": head + TESTS_JS,
        "test/later.test.js": head + LATER_TESTS_JS,
    }
    suite = await prepare_runner_suite("javascript", files, sandbox)

    await demand_js_changes(suite)


@pytest.mark.heavy
async def test_changed_inputs_of_jest_are_no_pass(tmp_path: Path, sandbox: Sandbox, require: Require) -> None:
    files = {
        **FILES_JS,
        "package.json": json.dumps({"name": "sums", "scripts": {"test": "jest --runInBand"}}),
        "test/adds.test.js": TESTS_JS,
        "test/later.test.js": LATER_TESTS_JS,
    }
    folder = install_project(tmp_path, files, "jest@29", require)
    suite = await prepare_folder_suite(folder, sandbox)

    await demand_js_changes(suite)


async def demand_js_changes(suite: Suite) -> None:
    right = await run_with(WRONG_JS.replace("-", "+"), suite, "src/sum.js")
    assert all(outcome.passed for outcome in right.outcomes), right.outcomes

    run = await run_with(REWRITE_JS_DATA + WRONG_JS, suite, "src/sum.js")
    assert "test/adds.test.js::adds" not in list_failed_tests(run)
    assert list_changes(run) == ["'data/cases.json' was changed while the tests ran"]

    run = await run_with(REWRITE_JS_TEST + WRONG_JS, suite, "src/sum.js")
    assert list_changes(run) == ["'test/later.test.js' was changed while the tests ran"]


@pytest.mark.heavy
async def test_changed_inputs_of_go_are_no_pass(sandbox: Sandbox, require: Require) -> None:
    require_language("go", require)
    wrong = "package sum\n\nfunc Add(a, b int) int { return a - b }\n"
    files = {
        "go.mod": "module example.org/sum\n\ngo 1.19\n",
        "sum.go": wrong,
        "testdata/sum.txt": "3",
        "sum_test.go": (
            'package sum\n\nimport (\n\t"fmt"\n\t"os"\n\t"testing"\n)\n\n'
            "func TestAdd(t *testing.T) {\n\tsum := Add(1, 2)\n"
            '\twant, _ := os.ReadFile("testdata/sum.txt")\n'
            "\tif got := fmt.Sprint(sum); got != string(want) {\n\t\tt.Fatal(got)\n\t}\n}\n"
        ),
    }
    suite = await prepare_runner_suite("go", files, sandbox)
    right = await run_with(wrong.replace("a - b", "a + b"), suite, "sum.go")
    assert all(outcome.passed for outcome in right.outcomes), right.outcomes

    attack = (
        'package sum\n\nimport "os"\n\nfunc Add(a, b int) int {\n'
        '\t_ = os.WriteFile("testdata/sum.txt", []byte("-1"), 0o644)\n\treturn a - b\n}\n'
    )
    run = await run_with(attack, suite, "sum.go")

    assert list_failed_tests(run) == []
    assert list_changes(run) == ["'testdata/sum.txt' was changed while the tests ran"]


@pytest.mark.parametrize(
    ("path", "decides"),
    [
        ("conftest.py", True),
        ("tests/conftest.py", True),
        ("tests/out/conftest.py", False),
        ("tests/out.txt", False),
        ("tests/__pycache__", True),
        ("src/__pycache__", False),
        ("tests/__pycache__/test_a.cpython-311-pytest-8.3.pyc", True),
        ("tests/__pycache__/test_b.cpython-311.pyc", False),
        ("src/__pycache__/calc.cpython-311.pyc", False),
        ("node_modules", False),
        ("tests/node_modules/chai", True),
        ("node_modules/.vite", False),
        ("vitest.config.js.timestamp-1700000000000-0a1b.mjs", False),
    ],
)
def test_only_new_files_that_configure_or_replace_tests_decide(path: str, decides: bool) -> None:
    files = dict.fromkeys(("src/calc.py", "tests/test_a.py", "package.json"), b"")
    for language in ("python", "javascript"):
        inputs = RunInputs(Task(statement="", kind="heal", language=language, files=files))
        fact = inputs.find_change("pytest", RunResult(status="ok", created=frozenset({path})), None)
        is_configuration = path.endswith("conftest.py")  # of Python only
        assert (fact is not None) == (decides and (language == "python" or not is_configuration))
