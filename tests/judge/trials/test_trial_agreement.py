"""A trial of the unchanged code agrees with the user's own run, whatever features the tests use."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from failing_projects import search_python
from prepared_suites import prepare_python_suite
from requirements import Require
from suture.judge import Suite
from suture.loop.evaluation.search_setup import editable_texts
from suture.mutation import apply_edits
from suture.sandbox import BubblewrapSandbox, Requirement
from suture.search import SearchLimits, SearchResult

pytestmark = pytest.mark.asyncio(loop_scope="module")

WRONG = "def add(a, b):\n    return a - b\n"
RIGHT = "def add(a, b):\n    return a + b\n"
PLAIN = "from shop import add\n\n\ndef test_add():\n    assert add(2, 3) == 5\n"
PROJECTS: dict[str, dict[str, str]] = {
    "xfail": {
        "test_shop.py": PLAIN + "\n\n@pytest.mark.xfail\ndef test_expected():\n    assert add(1, 1) == 3\n"
        "\n\n@pytest.mark.xfail(strict=True)\ndef test_strict():\n    assert add(1, 1) == 4\n"
        "\n\n@pytest.mark.xfail\ndef test_by_chance():\n    assert add(0, 0) == 0\n"
        "\n\n@pytest.mark.xfail(raises=ValueError)\ndef test_raises():\n    raise ValueError(add(0, 0))\n"
        "\n\ndef test_imperative():\n    pytest.xfail('not yet')\n",
    },
    "subtests": {
        "test_shop.py": "def test_all(subtests):\n    for n in range(3):\n        with subtests.test(n=n):\n"
        "            assert add(n, n) == 2 * n\n\n\nclass TestUnit(unittest.TestCase):\n"
        "    def test_sub(self):\n        for n in range(3):\n            with self.subTest(n=n):\n"
        "                self.assertEqual(add(n, 1), n + 1)\n\n    def test_none(self):\n"
        "        with self.subTest('zero'):\n            self.assertEqual(add(0, 0), 0)\n",
    },
    "odd-ids": {
        "test_shop.py": "@pytest.mark.parametrize('n', range(8), ids=['a b', 'x::y', '[', 'é', 'a/b', '\\n', "
        "'-k', ''])\ndef test_add(n):\n    assert add(n, 1) == n + 1\n\n\n"
        "@pytest.mark.parametrize('n', [0, 0, 0])\ndef test_zero(n):\n    assert add(n, n) == 0\n",
    },
    "scopes": {
        "conftest.py": "import pytest\n\nmade = []\n\n\n@pytest.fixture(scope='session')\ndef shared():\n"
        "    made.append('session')\n    yield made\n    made.append('gone')\n\n\n"
        "@pytest.fixture(scope='module')\ndef of_module(shared):\n    shared.append('module')\n"
        "    return shared\n\n\n@pytest.fixture(autouse=True)\ndef each(request):\n    yield\n",
        "test_one.py": "from shop import add\n\n\ndef test_first(of_module):\n"
        "    assert of_module.count('session') == 1 and of_module.count('module') == 1\n\n\n"
        "def test_second(of_module):\n    assert of_module.count('module') == 1 and add(1, 0) == 1\n",
        "test_two.py": PLAIN + "\n\ndef test_kept(of_module):\n    assert of_module.count('session') == 1\n"
        "    assert 'gone' not in of_module\n",
    },
    "hooks": {
        "conftest.py": "import pytest\n\n\n@pytest.hookimpl(wrapper=True)\n"
        "def pytest_runtest_makereport(item, call):\n    report = yield\n"
        "    if report.failed and 'lenient' in item.keywords:\n        report.outcome = 'skipped'\n"
        "        report.longrepr = ('x', 1, 'lenient')\n    return report\n\n\n"
        "def pytest_runtest_setup(item):\n    if 'away' in item.keywords:\n        pytest.skip('away')\n",
        "deep/conftest.py": "import pytest\n\n\n@pytest.fixture\ndef two():\n    return 2\n",
        "deep/test_deep.py": "from shop import add\n\n\ndef test_two(two):\n    assert add(two, 1) == 3\n",
        "test_shop.py": PLAIN + "\n\n@pytest.mark.lenient\ndef test_lenient():\n    assert add(1, 1) == 7\n"
        "\n\n@pytest.mark.away\ndef test_away():\n    assert False\n",
        "pytest.ini": "[pytest]\nmarkers =\n    lenient\n    away\n",
    },
    "asyncio": {
        "pytest.ini": "[pytest]\nasyncio_mode = auto\n",
        "test_shop.py": "import asyncio\n\n\n@pytest.fixture\nasync def two():\n    await asyncio.sleep(0)\n"
        "    yield 2\n\n\nasync def test_add(two):\n    assert add(two, 2) == 4\n\n\n"
        "class TestUnit(unittest.IsolatedAsyncioTestCase):\n    async def test_zero(self):\n"
        "        self.assertEqual(add(0, 0), 0)\n",
    },
    "doctest-modules": {
        "pytest.ini": "[pytest]\naddopts = --doctest-modules\n",
        "shop.py": 'def add(a, b):\n    """Sum.\n\n    >>> add(2, 3)\n    5\n    """\n    return a - b\n',
        "other.py": 'def same(a):\n    """Itself.\n\n    >>> same(1)\n    1\n    """\n    return a\n',
    },
    "warnings": {
        "pytest.ini": "[pytest]\nasyncio_default_fixture_loop_scope = function\n"
        "filterwarnings =\n    error\n    ignore:old\n",
        "test_shop.py": "import warnings\n\n\ndef test_add():\n    warnings.warn('old')\n"
        "    assert add(2, 3) == 5\n"
        "\n\ndef test_told():\n    with pytest.raises(DeprecationWarning):\n"
        "        warnings.warn('new', DeprecationWarning)\n",
    },
    "setups": {
        "test_shop.py": "def setup_module(module):\n    module.base = 3\n\n\nclass TestPlain:\n"
        "    def setup_method(self):\n        self.two = 2\n\n    def test_add(self):\n"
        "        assert add(base, self.two) == 5\n\n\nclass TestUnit(unittest.TestCase):\n    @classmethod\n"
        "    def setUpClass(cls):\n        cls.made = [1]\n\n    def setUp(self):\n"
        "        self.addCleanup(self.made.append, 2)\n\n    def test_one(self):\n"
        "        self.assertEqual(add(len(self.made), 1), 2)\n\n    @unittest.expectedFailure\n"
        "    def test_wrong(self):\n        self.assertEqual(add(0, 0), 1)\n\n    @unittest.skip('no')\n"
        "    def test_skipped(self):\n        pass\n",
    },
    "importlib": {
        "pytest.ini": "[pytest]\naddopts = --import-mode=importlib\npythonpath = src\n",
        "src/space/part/shop.py": WRONG,
        "one/test_same.py": PLAIN.replace("shop", "space.part.shop"),
        "two/test_same.py": "def test_zero():\n    assert sum([]) == 0\n",
    },
    "root-below": {
        "tests/pytest.ini": "[pytest]\npythonpath = ..\n",
        "tests/test_shop.py": PLAIN,
    },
    "pytest-itself": {
        "test_shop.py": "import subprocess, sys\n\n\ndef test_add():\n    assert add(2, 3) == 5\n\n\n"
        "def test_again(tmp_path):\n"
        "    inner = 'def test_a(): pass\\ndef test_b(): assert 0\\n'\n"
        "    tmp_path.joinpath('test_in.py').write_text(inner)\n"
        "    run = [sys.executable, '-m', 'pytest', '-q', '--lf']\n"
        "    said = [subprocess.run(run, cwd=tmp_path, stdout=-1, text=True).stdout for _ in '12']\n"
        "    assert '1 failed, 1 passed' in said[0]\n"
        "    assert '1 failed' in said[1] and 'passed' not in said[1]\n",
    },
    "frost": {
        "test_shop.py": "import time\n\n\n@pytest.fixture(scope='module', autouse=True)\ndef frozen():\n"
        "    kept, time.monotonic = time.monotonic, lambda: 1e9\n    yield\n    time.monotonic = kept\n\n\n"
        "def test_add():\n    assert add(2, 3) == 5\n\n\n"
        "def test_slow():\n    time.sleep(1.1)\n    assert add(0, 0) == 0\n",
    },
    "beside": {
        "pack/__init__.py": "",
        "pack/shop.py": WRONG,
        "pack/shop_test.py": PLAIN.replace("shop", "pack.shop"),
    },
}
COMMANDS = {"root-below": "python -m pytest -q tests"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sandbox(bubblewrap: Requirement, require: Require) -> AsyncIterator[BubblewrapSandbox]:
    """Return one sandbox for all tests: opening one takes longer than most searches here."""
    require("bubblewrap", bubblewrap.ok, f"{bubblewrap.detail} ({bubblewrap.remedy})")
    sandbox = BubblewrapSandbox()
    yield sandbox
    await sandbox.close()


@dataclass(frozen=True, kw_only=True)
class SearchOutcome:
    """A search and the run that it is compared with."""

    suite: Suite
    statuses: Mapping[str, str]
    search: SearchResult

    @property
    def repaired(self) -> set[str]:
        """The file contents of the plausible repairs."""
        return {apply_edits(self.search.texts[p.path], p.edits) for p in self.search.plausible}


async def search_project(
    folder: Path, files: Mapping[str, str], sandbox: BubblewrapSandbox, command: str = "python -m pytest -q"
) -> SearchOutcome:
    for path, text in files.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        header = (
            "import unittest\n\nimport pytest\nfrom shop import add\n\n\n" if path == "test_shop.py" else ""
        )
        place.write_text(header + text, encoding="utf-8")
    suite, test_command = await prepare_python_suite(folder, sandbox, command)
    run = await test_command.run(suite.task.files)
    statuses = {result.check_id: result.status for result in run.outcomes}
    failing = [test for test, status in statuses.items() if status not in ("passed", "skipped")]
    limits = SearchLimits(max_seconds=100, max_candidates=30)
    search = await search_python(test_command, editable_texts(suite), failing, limits, statuses=statuses)
    return SearchOutcome(suite=suite, statuses=statuses, search=search)


@pytest.mark.heavy
@pytest.mark.parametrize("project_name", PROJECTS)
async def test_a_trial_agrees_with_the_run_and_the_bug_is_repaired(
    project_name: str, tmp_path: Path, sandbox: BubblewrapSandbox
) -> None:
    files = {"shop.py": WRONG, **PROJECTS[project_name]}
    outcome = await search_project(
        tmp_path, files, sandbox, COMMANDS.get(project_name, "python -m pytest -q")
    )
    spectrum = outcome.search.spectrum

    assert spectrum.disagreements == ()
    assert set(spectrum.collected) == set(outcome.statuses)
    assert spectrum.compared == len(set(spectrum.collected))
    assert any("return a + b\n" in text for text in outcome.repaired), outcome.search


@pytest.mark.heavy
async def test_tests_of_a_parallel_command_are_tried_in_one_process(
    tmp_path: Path, sandbox: BubblewrapSandbox
) -> None:
    files = {"shop.py": WRONG, "test_shop.py": PLAIN.partition("\n\n\n")[2]}
    outcome = await search_project(tmp_path, files, sandbox, "python -m pytest -q -n 2 --dist loadfile")
    assert outcome.search.spectrum.disagreements == ()
    assert outcome.search.spectrum.compared == 1
    assert RIGHT in outcome.repaired


@pytest.mark.heavy
async def test_code_that_fails_to_import_is_no_repair(tmp_path: Path, sandbox: BubblewrapSandbox) -> None:
    code = "class Box:\n    def twice(self, n: Missing) -> int:\n        return n * 2\n"
    tests = "from box import Box\n\n\ndef test_twice():\n    assert Box().twice(2) == 4\n"
    outcome = await search_project(tmp_path, {"box.py": code, "test_box.py": tests}, sandbox)
    assert outcome.suite.command is not None
    assert outcome.search.tried_count

    for text in outcome.repaired:
        run = await outcome.suite.command.run({**outcome.suite.task.files, "box.py": text.encode()})
        assert all(result.passed for result in run.outcomes), text


async def test_a_test_that_fails_only_in_the_run_is_a_disagreement(
    tmp_path: Path, sandbox: BubblewrapSandbox
) -> None:
    tests = (
        "from _pytest.assertion import rewrite\n\n\ndef test_watched():\n"
        "    assert rewrite._format_explanation.__name__ == 'format_explanation'\n\n\n"
        "def test_zero():\n    assert add(0, 0) == 0\n"
    )
    outcome = await search_project(tmp_path, {"shop.py": WRONG, "test_shop.py": tests}, sandbox)
    (disagreement,) = outcome.search.spectrum.disagreements

    assert (disagreement.test, disagreement.run, disagreement.trial) == (
        "test_shop.py::test_watched",
        "failed",
        "passed",
    )
    assert outcome.search.ending == "trials_disagree"
    assert outcome.search.tried_count == 0


async def test_a_test_that_fails_only_in_trials_is_left_to_the_verdict(
    tmp_path: Path, sandbox: BubblewrapSandbox
) -> None:
    tests = PLAIN.partition("\n\n\n")[2] + (
        "\n\ndef test_watched():\n    import sys\n    assert 'suture_trials' not in sys.modules\n"
    )
    outcome = await search_project(tmp_path, {"shop.py": WRONG, "test_shop.py": tests}, sandbox)
    (disagreement,) = outcome.search.spectrum.disagreements

    assert (disagreement.test, disagreement.run, disagreement.trial) == (
        "test_shop.py::test_watched",
        "passed",
        "failed",
    )
    assert RIGHT in outcome.repaired
