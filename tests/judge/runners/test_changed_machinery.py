"""Code under test that changes the test machinery in its own process."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from judge.conftest import PYTEST, PYTHON
from judge.runners.signed import sign_line
from suture.core.records import Candidate, Task
from suture.core.settings import SandboxSettings
from suture.judge import Suite, check_candidate, prepare_suite
from suture.judge.runners.pytest_report import read_report
from suture.sandbox import Sandbox

pytestmark = pytest.mark.timeout(180)
WRONG = "\ndef total(numbers):\n    return len(numbers)\n"
RIGHT = "def total(numbers):\n    return sum(numbers)\n"
PROJECT = {
    "sums.py": WRONG,
    "test_sums.py": (
        "import unittest\n\nfrom sums import total\n\n\n"
        "def test_adds():\n    assert total([1, 2, 3]) == 6\n\n\n"
        "class TestMore(unittest.TestCase):\n    def test_two(self):\n"
        "        self.assertEqual(total([2, 3]), 5)\n"
    ),
}
ATTACKS = {
    "reports are made of no exception": (
        "import _pytest.reports as r\nwas = r.TestReport.from_item_and_call\n"
        "def made(item, call):\n    call.excinfo = None\n    return was(item, call)\n"
        "r.TestReport.from_item_and_call = made\n"
    ),
    "every outcome is passed": (
        "import _pytest.reports as r\n"
        "r.TestReport.outcome = property(lambda self: 'passed', lambda self, value: None)\n"
    ),
    "tests do nothing": (
        "import _pytest.python, _pytest.unittest\n"
        "_pytest.python.Function.runtest = lambda self: None\n"
        "_pytest.unittest.TestCaseFunction.runtest = lambda self: None\n"
    ),
    "a function has other code": (
        "import _pytest.runner as r\n"
        "def made(item, call):\n    call.excinfo = None\n"
        "    from _pytest.reports import TestReport\n    return TestReport.from_item_and_call(item, call)\n"
        "r.pytest_runtest_makereport.__code__ = made.__code__\n"
    ),
    "asserts of unittest always hold": (
        "import unittest.case as u\nu.TestCase.assertEqual = lambda *given, **named: None\n"
        "import _pytest.python\n_pytest.python.Function.runtest = lambda self: None\n"
    ),
    "reports are empty": "import json\njson.dumps = lambda *given, **named: '{}'\n",
    "reports say passed": (
        "import json\nwas = json.dumps\n"
        "json.dumps = lambda *given, **named: was(*given, **named).replace('failed', 'passed')\n"
    ),
}


async def prepare_project_suite(
    project: Mapping[str, str],
    sandbox: Sandbox,
    settings: SandboxSettings,
    command: str = PYTEST,
    *,
    run: bool = False,
) -> Suite:
    files = {path: text.encode() for path, text in project.items()}
    task = Task(statement="", kind="heal", files=files, test_command=tuple(command.split()))
    return await prepare_suite(task, sandbox, settings, PYTHON, run=run)


async def test_code_that_changes_the_machinery_does_not_pass(
    sandbox: Sandbox, sandbox_settings: SandboxSettings
) -> None:
    suite = await prepare_project_suite(PROJECT, sandbox, sandbox_settings)
    right = Candidate(files={"sums.py": RIGHT}, origin="sample")
    assert (await check_candidate(right, suite)).all_passed

    for name, text in ATTACKS.items():
        verdict = await check_candidate(Candidate(files={"sums.py": text + WRONG}, origin="sample"), suite)
        assert not verdict.all_passed, name
    changed = Candidate(files={"sums.py": ATTACKS["every outcome is passed"] + RIGHT}, origin="sample")
    (fact,) = (await check_candidate(changed, suite)).counterexamples
    assert fact.exception == "the code under test changed _pytest.reports.TestReport.outcome"


FIND_PLUGIN_MANAGERS = (
    "import sys\nframe, found = sys._getframe(), []\nwhile frame:\n"
    "    found += [getattr(v, 'pluginmanager', 0) for v in list(frame.f_locals.values())]\n"
    "    frame = frame.f_back\n"
)
REGISTER_PLUGIN = FIND_PLUGIN_MANAGERS + (
    "import pytest\nclass Plugin:\n    @pytest.hookimpl(tryfirst=True)\n"
    "    def {hook}: return True\n[one.register(Plugin()) for one in [*filter(None, found)][:1]]\n"
)
USES = {
    "raises": (
        "def test_it():\n    with pytest.raises(TypeError): total([1, 'a'])\n",
        "import pytest, contextlib\npytest.raises = lambda *a, **k: contextlib.suppress(BaseException)\n",
    ),
    "bounds": (
        "def test_it(): assert total([0.5, 0.25]) == pytest.approx(0.75)\n",
        "import pytest\ntype(pytest.approx(1.0)).DEFAULT_RELATIVE_TOLERANCE = 1e9\n",
    ),
    "a base class": (
        "class TestIt(unittest.TestCase):\n    def test_it(self): self.assertEqual(total([2, 3]), 5)\n",
        "import unittest\nclass T(unittest.TestCase):\n    def assertEqual(self, *a): pass\n"
        "unittest.TestCase = T\n",
    ),
    "mocks": (
        "def test_it():\n    m = mock.Mock()\n    m(total([2, 3]))\n    m.assert_called_once_with(5)\n",
        "from unittest import mock\nmock.NonCallableMock.assert_called_once_with = lambda *a, **k: None\n",
    ),
    "doctest": (
        "def test_it():\n    import doctest, shown\n    assert doctest.testmod(shown).failed == 0\n",
        "import doctest\ndoctest.OutputChecker.check_output = lambda *a: True\n",
    ),
    "a hook": (
        "def test_it(): assert total([2, 3]) == 5\n",
        REGISTER_PLUGIN.format(hook="pytest_pyfunc_call(self, pyfuncitem)"),
    ),
    "builtins": (
        "def test_it(): assert max(total([2, 3]), 0) == 5\n",
        "import builtins\nwas = max\nbuiltins.max = lambda *a, **k: 5 if a == (2, 0) else was(*a, **k)\n",
    ),
    "a constant": (
        "def test_it(): assert str(total([2, 3])) == string.digits[5]\n",
        "import string\ndef define(module, **values): vars(module).update(values)\n"
        "define(string, digits='9876521')\n",
    ),
    "a sorted constant": (
        "def test_it(): assert total([1, 1]) == len(string.whitespace) - 4\n",
        "import string\nname = ''.join(sorted('psihtecewa'))\n"
        "[string.__dict__.__setitem__(k, 'abcdef') for k in dir(string) if sorted(k) == sorted(name)]\n",
    ),
    "the method of a test": (
        "def test_it(): assert total([2, 3]) == 5\n",
        FIND_PLUGIN_MANAGERS
        + "session = next(filter(None, found)).get_plugin('session')\nwalk = session.genitems\n"
        "def genitems(node):\n    for item in walk(node):\n        item.runtest = int\n        yield item\n"
        "session.genitems = genitems\n",
    ),
    "raises, restored in the next test": (
        "def test_it():\n    with pytest.raises(TypeError): total([1, 'a'])\n"
        "def test_next(): assert total([]) == 0\n",
        "import pytest, contextlib\nwas = pytest.raises\n"
        "pytest.raises = lambda *a, **k: contextlib.suppress(BaseException)\n"
        "def total(numbers):\n    if not numbers: pytest.raises = was\n    return len(numbers)\n#",
    ),
    "the names of levels": (
        "class TestIt(unittest.TestCase):\n    def test_it(self):\n"
        "        import logging\n        with self.assertLogs(level='ERROR'):\n"
        "            logging.log(total([10, 30]), 'late')\n",
        "import logging\nlogging.addLevelName(2, 'ERROR')\n",
    ),
    "a dialect": (
        "import csv\ndef test_it(): assert list(csv.reader([f'{total([2, 3])},']))[0] == ['5', '']\n",
        "import csv\ncsv.register_dialect('excel', csv.excel, delimiter=';')\n",
    ),
    "a codec": (
        "def test_it(): assert b'\\xff'.decode(errors='replace') * total([1]) == '\\ufffd'\n",
        "import codecs\ncodecs.register_error('replace', lambda e: ('', e.end))\n",
    ),
    "a compiled pattern": (
        "def test_it():\n    with pytest.raises(TypeError, match='operand'): total([1, 'a'])\n",
        "import re\nre._cache[str, 'operand', 0] = re.compile('')\n",
    ),
    "the comparison of one test": (
        "class TestIt(unittest.TestCase):\n    def test_it(self):\n        class Bag(list): owner = self\n"
        "        self.assertEqual([total(Bag([2, 3]))], [5])\n",
        "def same(*given, **options): pass\ndef len(bag): bag.owner.addTypeEqualityFunc(list, same)\n",
    ),
}
"""Name -> a test, and code that changes a function, or data, that the test uses."""


@pytest.mark.parametrize("name", USES)
async def test_code_must_not_change_functions_that_tests_use(
    name: str, sandbox: Sandbox, sandbox_settings: SandboxSettings
) -> None:
    test, text = USES[name]
    imports = "import pytest, string, unittest\nfrom unittest import mock\nfrom sums import total\n"
    doctest_module = '"""\n>>> from sums import total\n>>> total([2, 3])\n5\n"""\n'
    project = {"sums.py": WRONG, "shown.py": doctest_module, "test_sums.py": imports + test}
    suite = await prepare_project_suite(project, sandbox, sandbox_settings)
    right = Candidate(files={"sums.py": RIGHT}, origin="sample")
    assert (await check_candidate(right, suite)).all_passed

    verdict = await check_candidate(Candidate(files={"sums.py": text + WRONG}, origin="sample"), suite)
    assert "the code under test changed" in str([fact.exception for fact in verdict.counterexamples])
    assert not verdict.all_passed


DATA_OF_TESTS = (
    "import csv, http.client, logging, re, unittest.mock\nfrom sums import total\n\n\n"
    "class Test(unittest.TestCase):\n    def test_all(self):\n"
    "        self.addTypeEqualityFunc(list, lambda left, right, msg=None: None)\n"
    "        with unittest.mock.patch.dict(http.client.responses, {200: 'Fine'}):\n"
    "            self.assertEqual([http.client.responses[198 + total([2])]], ['Fine'])\n"
    "        assert csv.get_dialect('sums').delimiter == ';' and http.client.responses[299] == 'Summed'\n"
    "        assert logging.getLevelName(5) == 'TRACE' and re.match('(?i)A(?-i:b)', 'ab')\n"
)
ADDING = (
    "import csv, http.client, logging, re\nlogging.addLevelName(5, 'TRACE')\n"
    "logging.addLevelName(30, '\\033[33mWARNING\\033[0m')\ncsv.register_dialect('sums', delimiter=';')\n"
    "http.client.responses.update({299: 'Summed', 413: 'Content Too Large'})\n"
    "[re.compile('a', flag) for flag in (0, re.I, re.A, re.X | re.M)]\n"
    "re.compile(b'a', re.L)\n"
)


async def test_code_may_add_to_the_tables_of_the_library_and_tests_may_change_them(
    sandbox: Sandbox, sandbox_settings: SandboxSettings
) -> None:
    suite = await prepare_project_suite({**PROJECT, "test_data.py": DATA_OF_TESTS}, sandbox, sandbox_settings)

    verdict = await check_candidate(Candidate(files={"sums.py": ADDING + RIGHT}, origin="sample"), suite)

    assert verdict.all_passed, verdict


CONFTEST = "import unittest\nimport sums\nunittest.TestCase.assertSums = lambda self: None\n"


async def test_code_imported_by_a_conftest_does_not_pass_either(
    sandbox: Sandbox, sandbox_settings: SandboxSettings
) -> None:
    suite = await prepare_project_suite({**PROJECT, "conftest.py": CONFTEST}, sandbox, sandbox_settings)
    right = Candidate(files={"sums.py": RIGHT}, origin="sample")
    assert (await check_candidate(right, suite)).all_passed
    for name, text in ATTACKS.items():
        verdict = await check_candidate(Candidate(files={"sums.py": text + WRONG}, origin="sample"), suite)
        assert not verdict.all_passed, name


async def test_tests_may_change_the_machinery(sandbox: Sandbox, sandbox_settings: SandboxSettings) -> None:
    tests = (
        "import unittest\nwas = unittest.TestCase.assertEqual\n"
        "unittest.TestCase.assertEqual = lambda self, *given, **named: was(self, *given, **named)\n"
        "def test_patched(monkeypatch):\n"
        "    monkeypatch.setattr('_pytest.runner.show_test_item', lambda item: None)\n"
    )
    suite = await prepare_project_suite({**PROJECT, "test_own.py": tests}, sandbox, sandbox_settings)

    verdict = await check_candidate(Candidate(files={"sums.py": RIGHT}, origin="sample"), suite)

    assert verdict.all_passed, verdict


async def test_tests_may_change_the_machinery_and_undo_it_later(
    sandbox: Sandbox, sandbox_settings: SandboxSettings
) -> None:
    """The first run of the task's own files does not look after each test, so another one has to show this."""
    tests = (
        "import unittest\nwas = unittest.TestCase.assertEqual\n"
        "def test_changes():\n    unittest.TestCase.assertEqual = lambda self, *given: was(self, *given)\n"
        "def test_undoes():\n    unittest.TestCase.assertEqual = was\n"
    )
    project = {**PROJECT, "test_own.py": tests}
    suite = await prepare_project_suite(project, sandbox, sandbox_settings, run=True)
    assert not (await check_candidate(Candidate(files={}, origin="user"), suite)).all_passed

    right = await check_candidate(Candidate(files={"sums.py": RIGHT}, origin="sample"), suite)
    assert right.all_passed, right

    text = ATTACKS["tests do nothing"] + WRONG
    assert not (await check_candidate(Candidate(files={"sums.py": text}, origin="sample"), suite)).all_passed


async def test_tests_that_did_not_load_in_the_base_run_may_change_it(
    sandbox: Sandbox, sandbox_settings: SandboxSettings
) -> None:
    tests = (
        "import unittest\nfrom sums import total\n"
        "unittest.TestCase.assertSame = lambda self, one, other: self.assertIs(one, other)\n"
        "unittest.TestCase.assertEqual = unittest.TestCase.assertEqual\n"
        "def test_own(): assert total([]) == 0\n"
    )
    broken = {**PROJECT, "sums.py": "def total(numbers):\n    return sum(numbers\n", "test_own.py": tests}
    suite = await prepare_project_suite(broken, sandbox, sandbox_settings)
    verdict = await check_candidate(Candidate(files={"sums.py": RIGHT}, origin="sample"), suite)
    assert verdict.all_passed, verdict

    text = ATTACKS["every outcome is passed"] + WRONG
    assert not (await check_candidate(Candidate(files={"sums.py": text}, origin="sample"), suite)).all_passed


@pytest.mark.parametrize(
    "setting", ["addopts = --strict-markers", "filterwarnings = error::pytest.PytestUnknownMarkWarning"]
)
async def test_a_project_that_forbids_unknown_marks_is_judged(
    setting: str, sandbox: Sandbox, sandbox_settings: SandboxSettings
) -> None:
    suite = await prepare_project_suite(
        {**PROJECT, "pytest.ini": f"[pytest]\n{setting}\n"}, sandbox, sandbox_settings
    )
    verdict = await check_candidate(Candidate(files={"sums.py": RIGHT}, origin="sample"), suite)
    assert verdict.all_passed, verdict


async def test_tests_that_did_not_start_in_the_base_run_may_change_it(
    sandbox: Sandbox, sandbox_settings: SandboxSettings
) -> None:
    late_tests = (
        "import unittest\n\n\ndef test_late():\n"
        "    unittest.TestCase.assertSame = lambda self, one, other: self.assertIs(one, other)\n"
    )
    suite = await prepare_project_suite(
        {**PROJECT, "test_z.py": late_tests}, sandbox, sandbox_settings, f"{PYTEST} -x"
    )
    verdict = await check_candidate(Candidate(files={"sums.py": RIGHT}, origin="sample"), suite)
    assert verdict.all_passed, verdict

    text = ATTACKS["tests do nothing"] + WRONG
    assert not (await check_candidate(Candidate(files={"sums.py": text}, origin="sample"), suite)).all_passed


BEGIN = {"event": "begin", "named": [], "patterns": [], "left_out": [], "rootdir": "."}
PHASE = {"event": "phase", "id": "t", "when": "call", "outcome": "failed", "text": "", "fact": None}
EXAMPLE = {"type": "E", "text": "", "file": "", "line": 3, "example": ["f()", "1", "2"]}


@pytest.mark.parametrize(
    "event",
    [
        {},
        [],
        7,
        {"event": ["begin"]},
        {**BEGIN, "named": "all"},
        {**BEGIN, "patterns": None},
        {"event": "items"},
        {"event": "items", "ids": [1]},
        {"event": "items", "ids": [], "examples": {"t": 3}},
        {"event": "start", "id": {}},
        {"event": "start", "id": "t", "used_s": "long"},
        {"event": "start", "id": "t", "passed": ["s"]},
        {**PHASE, "text": None},
        {**PHASE, "id": None},
        {**PHASE, "outcome": "fine"},
        {**PHASE, "fact": []},
        {**PHASE, "fact": {"line": "3"}},
        {**PHASE, "fact": {"timeout_s": "3"}},
        {**PHASE, "fact": {"example": [1], "line": 3}},
        {**PHASE, "fact": {"example": ["f()", "1", "2"]}},
        {"event": "end", "exit": "0"},
        {"event": "end", "exit": 0, "changed": "x"},
        {"event": "end", "exit": 0, "changed": ["xy"]},
        {"event": "end", "exit": 0, "meanwhile": [["x"]]},
        {**BEGIN, "early": [["x", 1]]},
        {"event": "reached", "what": "exec", "file": 1},
    ],
    ids=json.dumps,
)
def test_a_signed_line_without_a_valid_event_ends_the_report(event: Any) -> None:
    report = read_report(sign_events(BEGIN, event, {"event": "end", "exit": 0}), b"key")
    assert report.begun
    assert (report.exit_code, report.phases) == (None, {})


def test_valid_events_are_read() -> None:
    events: tuple[Any, ...] = (
        BEGIN,
        {"event": "items", "ids": ["t"], "examples": {"t": [["f()", "1"]]}, "files": [], "deselected": []},
        {"event": "start", "id": "t", "used_s": 1, "limit_s": 2.5, "meanwhile": [["y", "b.py"]]},
        {**PHASE, "fact": EXAMPLE},
        {"event": "uncollectable", "id": "u", "text": "why"},
        {"event": "end", "exit": 1, "changed": [["x", "a.py"]], "meanwhile": [["z", "c.py"]]},
    )
    report = read_report(sign_events(*events), b"key")

    assert (report.items, report.exit_code, report.changed) == (("t",), 1, frozenset({("x", "a.py")}))
    assert report.changed_by_tests == {("y", "b.py"), ("z", "c.py")}


def test_an_unreadable_line_ends_the_report() -> None:
    for text in ("{", "[" * 100_000):
        assert not read_report(sign_line(b"key", 0, text), b"key").begun


def sign_events(*events: Any) -> bytes:
    return b"".join(sign_line(b"key", number, json.dumps(event)) for number, event in enumerate(events))
