"""A test runner that stops by itself, and a service that does not run, are not blamed on the code."""

from __future__ import annotations

import pytest

from judge.conftest import Prepare
from suture.core.records import Candidate
from suture.judge import check_candidate
from suture.judge.triage.environment_faults import find_environment_fault, find_internal_error
from suture.judge.triage.triage import triage_failures

CODE = "def double(n):\n    return n + n + 1\n"
TEST = "from code_under_test import double\n\ndef test_two():\n    assert double(2) == 4\n"
PLUGIN_FAILURE = """INTERNALERROR> Traceback (most recent call last):
INTERNALERROR>   File "/usr/lib/python3/site-packages/_pytest/main.py", line 281, in wrap_session
INTERNALERROR>   File "{path}", line 12, in pytest_configure
INTERNALERROR> ValueError: the option "colour" is unknown
"""


def test_an_internal_error_of_a_plugin_is_shown_in_its_own_words() -> None:
    fault = find_internal_error(PLUGIN_FAILURE.format(path="/usr/lib/python3/site-packages/colourful.py"))
    assert fault is not None
    assert 'the option "colour" is unknown' in fault.explanation
    assert "colourful.py" in fault.advice


@pytest.mark.parametrize("output", [PLUGIN_FAILURE.format(path="/box/paint.py"), "1 failed", ""])
def test_an_internal_error_in_code_of_the_project_may_be_its_fault(output: str) -> None:
    assert find_internal_error(output) is None


async def test_no_test_is_the_codes_fault_if_pytest_stops_before_all_of_them(prepare: Prepare) -> None:
    # The log's folder cannot be made, so pytest's own logging plugin fails before any test.
    configuration = "[pytest]\nlog_file = /proc/none/log\n"
    files = {"code_under_test.py": CODE, "test_double.py": TEST, "pytest.ini": configuration}
    suite = await prepare(files)
    base = await check_candidate(Candidate(files={}, origin="user"), suite)
    assert not base.passed
    result = await triage_failures(suite, base)
    assert result.ending_cause == "environment"
    assert not result.code_failures


@pytest.mark.parametrize(
    ("exception", "service"),
    [
        ('OperationalError: connection to server at "localhost" (127.0.0.1), port 5432 failed: Connection refused',
         "PostgreSQL at localhost:5432"),
        ("redis.exceptions.ConnectionError: Error 111 connecting to localhost:6379. Connection refused.",
         "Redis at localhost:6379"),
        ("ConnectionRefusedError: 127.0.0.1:7777: Connection refused", "a service at 127.0.0.1:7777"),
    ],
)  # fmt: skip
def test_a_service_that_does_not_run_is_named(exception: str, service: str) -> None:
    fault = find_environment_fault(exception, {})
    assert fault is not None
    assert service in fault.explanation
    assert exception in fault.explanation
    assert "set project.services = {" in fault.advice


@pytest.mark.parametrize(
    ("exception", "files", "advice"),
    [
        ('OperationalError: could not translate host name "db" to address: Name or service not known',
         {"docker-compose.yml": b"services:\n a:\n  image: docker.io/library/postgres:16\n b:\n  image: redis\n"},
         "docker-compose.yml names it; to start it inside the sandbox, set project.services ="
         " {postgresql = {}, redis = {}}"),
        ("DockerException: Error while fetching server API version: ('Connection aborted.')",
         {"test_a.py": b"from testcontainers.postgres import PostgresContainer"},
         "testcontainers names it; to start it inside the sandbox, set project.services = {postgresql = {}}"),
        ("pytest_postgresql.exceptions.ExecutableMissingException: Could not find pg_ctl",
         {"pyproject.toml": b'[project]\ndependencies = ["pytest-postgresql>=7"]'},
         "pytest-postgresql names it; to start it inside the sandbox, set project.services = {postgresql = {}}"),
        ("ConnectionRefusedError: 127.0.0.1:3306: Connection refused", {},
         'set project.services = {NAME = {command = "...", port = 3306}}'),
    ],
)  # fmt: skip
def test_services_that_files_name_are_offered(exception: str, files: dict[str, bytes], advice: str) -> None:
    fault = find_environment_fault(exception, files)
    assert fault is not None
    assert advice in fault.advice
