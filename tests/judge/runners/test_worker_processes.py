"""Tests that run outside of pytest's main process: pytest-xdist workers and forks."""

from __future__ import annotations

import pytest

from judge.conftest import PYTEST
from judge.runners.test_changed_machinery import ATTACKS, PROJECT, RIGHT, WRONG, prepare_project_suite
from suture.core.records import Candidate, VerdictNote
from suture.core.settings import SandboxSettings
from suture.judge import check_candidate
from suture.sandbox import Sandbox

pytestmark = pytest.mark.timeout(300)
WORKERS = f"{PYTEST} -p xdist -n 2"
FORKING_CONFTEST = """
import marshal, os
import pytest
from _pytest.runner import runtestprotocol
from _pytest.reports import TestReport

def pytest_runtest_protocol(item, nextitem):
    ours, theirs = os.pipe()
    pid = os.fork()
    if not pid:
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        os.write(theirs, marshal.dumps([one._to_json() for one in reports]))
        os._exit(0)
    os.close(theirs)
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for one in marshal.loads(os.read(ours, 1 << 20)):
        item.ihook.pytest_runtest_logreport(report=TestReport._from_json(one))
    os.close(ours)
    os.waitpid(pid, 0)
    return True
"""
"""Runs each test in a fork, as pytest-forked does."""
PROJECT_WITH_CONFTEST = {
    "sums.py": WRONG,
    "tests/conftest.py": "import sums\n",
    "tests/test_sums.py": PROJECT["test_sums.py"],
}
FORGE_WORKER_REPORTS = (
    "import gc, os, sys\nfor one in gc.get_objects():\n    if type(one).__name__ == 'WorkerInteractor':\n"
    "        from _pytest.reports import TestReport\n"
    "        for at, item in enumerate(one.session.items):\n"
    "            for when in ('setup', 'call', 'teardown'):\n"
    "                made = TestReport(item.nodeid, item.location, {}, 'passed', None, when)\n"
    "                data = one.config.hook.pytest_report_to_serializable(config=one.config, report=made)\n"
    "                data.update(item_index=at, worker_id=one.workerid, testrun_uid=one.testrunuid)\n"
    "                one.sendevent('testreport', data=data)\n"
    "        one.sendevent('workerfinished', workeroutput={'exitstatus': 0, 'shouldfail': False,\n"
    "            'shouldstop': False})\n        import time; time.sleep(9)\n        os._exit(0)\n"
)


@pytest.mark.heavy
async def test_xdist_workers_are_watched(sandbox: Sandbox, sandbox_settings: SandboxSettings) -> None:
    suite = await prepare_project_suite(PROJECT_WITH_CONFTEST, sandbox, sandbox_settings, WORKERS)
    right = await check_candidate(Candidate(files={"sums.py": RIGHT}, origin="sample"), suite)
    assert right.all_passed, right
    assert "unwatched_processes" not in [note.code for note in right.notes]

    wrong = await check_candidate(Candidate(files={}, origin="sample"), suite)
    values = {(fact.expected, fact.actual) for fact in wrong.counterexamples}
    assert len(wrong.counterexamples) == 2, wrong
    assert values & {("6", "3"), ("5", "2")}, wrong  # the worker that reports first names its values

    attacks = {**ATTACKS, "speaks for its worker": f"def total(numbers):\n{indent(FORGE_WORKER_REPORTS)}#"}
    for name, text in attacks.items():
        verdict = await check_candidate(Candidate(files={"sums.py": text + WRONG}, origin="sample"), suite)
        assert not verdict.all_passed, name


async def test_modules_that_workers_import_are_protected(
    sandbox: Sandbox, sandbox_settings: SandboxSettings
) -> None:
    suite = await prepare_project_suite(PROJECT, sandbox, sandbox_settings)
    for name in ("execnet", "setproctitle", "xdist"):
        planted = Candidate(files={f"{name}.py": "", "sums.py": RIGHT}, origin="sample")
        verdict = await check_candidate(planted, suite)
        assert VerdictNote(code="protected_file", subjects=(f"{name}.py",)) in verdict.notes


async def test_forks_confirm_their_tests(sandbox: Sandbox, sandbox_settings: SandboxSettings) -> None:
    suite = await prepare_project_suite(
        {**PROJECT, "conftest.py": FORKING_CONFTEST}, sandbox, sandbox_settings
    )
    right = await check_candidate(Candidate(files={"sums.py": RIGHT}, origin="sample"), suite)
    assert right.all_passed, right
    assert "unwatched_processes" not in [note.code for note in right.notes]

    for name, text in ATTACKS.items():
        verdict = await check_candidate(Candidate(files={"sums.py": text + WRONG}, origin="sample"), suite)
        assert not verdict.all_passed, name


FAKE_FILE_SYSTEM = """
import sys

@pytest.fixture
def no_disk(monkeypatch):
    was = os.write
    for module in list(sys.modules.values()):
        if vars(module).get("write") is was:
            monkeypatch.setattr(module, "write", lambda *given: os.close(-1))
"""
"""Disables writes while a test runs, as pyfakefs does."""


async def test_a_fork_confirms_a_test_with_a_fake_file_system(
    sandbox: Sandbox, sandbox_settings: SandboxSettings
) -> None:
    test = "from sums import total\n\ndef test_it(no_disk): assert total([2, 3]) == 5\n"
    project = {"sums.py": WRONG, "test_sums.py": test, "conftest.py": FORKING_CONFTEST + FAKE_FILE_SYSTEM}
    suite = await prepare_project_suite(project, sandbox, sandbox_settings)
    right = await check_candidate(Candidate(files={"sums.py": RIGHT}, origin="sample"), suite)
    assert right.all_passed, right

    (fact,) = (await check_candidate(Candidate(files={}, origin="sample"), suite)).counterexamples
    assert (fact.expected, fact.actual) == ("5", "2"), fact


def indent(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())
