"""A pytest plugin that writes down what each test said, signed line by line.

It runs behind the wall in the user's own interpreter and pytest, beside the code under test: Python 3.8
syntax, the standard library and pytest only, and nothing of Suture. The key comes over stdin and is never
written. A line that the code under test forges, repeats or removes does not verify; code that hunts through
this process's memory for the key could still forge a report, and verdicts made of it say so.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from typing import Any

import pytest

__all__ = ["Reporter", "pytest_configure"]

LONGEST = 4000


class Reporter:
    """Appends signed lines to the report."""

    def __init__(self, path: str, key: bytes) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._key = key
        self._lines = 0
        self._root = os.getcwd()  # noqa: PTH109 - nothing heavy is imported here

    def _write(self, **event: Any) -> None:
        line = json.dumps(event, sort_keys=True)
        signed = f"{self._lines} {line}".encode("ascii")
        self._lines += 1
        os.write(
            self._file,
            hmac.new(self._key, signed, hashlib.sha256).hexdigest().encode() + b" " + signed + b"\n",
        )

    def pytest_collection_finish(self, session: Any) -> None:
        """Which tests there are."""
        self._write(event="items", ids=[item.nodeid for item in session.items])

    def pytest_collectreport(self, report: Any) -> None:
        """Which files cannot be collected."""
        if report.failed:
            self._write(event="uncollectable", id=report.nodeid, text=str(report.longrepr)[-LONGEST:])

    def pytest_runtest_logstart(self, nodeid: str, location: Any) -> None:
        """Which test runs, in case that it never ends."""
        self._write(event="start", id=nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """What one phase of a test said."""
        fact = dict(report.user_properties).get("suture") if report.failed else None
        self._write(
            event="phase",
            id=report.nodeid,
            when=report.when,
            outcome=report.outcome,
            xfail=hasattr(report, "wasxfail"),
            text="" if report.passed else str(report.longrepr)[-LONGEST:],
            fact=fact,
        )

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, item: Any, call: Any) -> None:
        """Note where an exception came from, while its traceback is there."""
        # Runs before pytest's own makes the report, which copies the properties.
        item.user_properties[:] = [pair for pair in item.user_properties if pair[0] != "suture"]
        if call.excinfo is not None:
            try:
                item.user_properties.append(("suture", self._fact(item, call.excinfo)))
            except Exception as fault:
                item.user_properties.append(("suture", {"exception": type(fault).__name__}))

    def _fact(self, item: Any, excinfo: Any) -> dict[str, Any]:
        test_file = str(getattr(item, "path", None) or item.fspath)
        text = str(excinfo.value)[:LONGEST]
        fact = {"type": excinfo.type.__name__, "text": text, "file": "", "line": None}
        for entry in excinfo.traceback:
            path = str(entry.path)
            if path == test_file:
                fact["statement"] = str(entry.statement)[:LONGEST]
            elif self._is_projects(path):
                fact["file"], fact["line"] = os.path.relpath(path, self._root), entry.lineno + 1
        if isinstance(excinfo.value, SyntaxError) and self._is_projects(str(excinfo.value.filename)):
            fact["file"] = os.path.relpath(str(excinfo.value.filename), self._root)
            fact["line"] = excinfo.value.lineno
        return fact

    def _is_projects(self, path: str) -> bool:
        inside = path.startswith(self._root + os.sep) and "site-packages" not in path
        name = os.path.basename(path)  # noqa: PTH119 - nothing heavy is imported here
        return inside and not name.startswith(("test_", "conftest")) and not name.endswith("_test.py")

    def pytest_sessionfinish(self, session: Any, exitstatus: int) -> None:
        """Pytest got to its end."""
        self._write(event="end", exit=int(exitstatus))


def _given() -> list[tuple[str, bytes]]:
    if "PYTEST_XDIST_WORKER" in os.environ:
        return []  # its stdin belongs to xdist, and its reports reach the main process
    parts = []
    while True:
        part = os.read(0, 4096)
        if not part:
            break
        parts.append(part)
    lines = b"".join(parts).split(b"\n")
    if len(lines) < 2:
        return []
    return [(lines[0].decode("ascii"), bytes.fromhex(lines[1].decode("ascii")))]


def pytest_configure(config: Any) -> None:
    """Start reporting, where a key was given."""
    if GIVEN:
        config.pluginmanager.register(Reporter(*GIVEN.pop()), "suture-reporter")


# At import: pytest points stdin elsewhere before it configures plugins, and no test file is loaded yet.
GIVEN = _given()
