"""Starts a written project inside the sandbox and reports what it observes, in signed lines.

It runs on a bare interpreter, in a process that loads nothing of the project. The programs that it starts run in
the same sandbox and could read its memory. So it reads the key before it starts anything, and makes its memory
unreadable for other processes.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import hmac
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.parse
from pathlib import Path
from typing import Any

PRIVATE_FOLDER = "_suture"
OWN_PATH = "/project/"
"""Part of the path of each file of the project, wherever the sandbox puts the project."""
PORT = 8765
"""Any port will do, because the sandbox has its own network."""
MAX_STEP_S = 30.0
"""The time limit of one step, so that a step that hangs leaves time for the others."""
MAX_OUTPUT_BYTES = 200_000
"""Maximum bytes of a program's output, or of a response, that are read."""
MAX_MESSAGE_CHARS = 600
"""Maximum number of characters of a message in the report. Chosen by judgement; not measured."""
PR_SET_DUMPABLE = 4
"""From `linux/prctl.h`: other processes cannot read a process that is not dumpable."""
PATH_PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
"""All printable ASCII punctuation: a path is sent as it is written."""


class StepReport:
    """Writes one signed line for each step."""

    def __init__(self, path: str, key: bytes) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._key = key
        self._number = 0

    def write(self, event: dict[str, Any]) -> None:
        """Append an event to the report."""
        text = f"{self._number} {json.dumps(event)}".encode()
        self._number += 1
        signature = hmac.new(self._key, text, hashlib.sha256).hexdigest().encode()
        self._key = hmac.digest(self._key, b"next", "sha256")  # see `signed_lines.py`
        os.write(self._file, signature + b" " + text + b"\n")


def main() -> None:
    """Carry out the plan that stdin contains."""
    plan = json.load(sys.stdin.buffer)
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    report = StepReport(plan["report"], bytes.fromhex(plan["key"]))
    deadline = time.monotonic() + plan["wall_s"]
    for number, group in enumerate(plan["groups"]):
        folder = Path(f"/tmp/place-{number}")
        shutil.copytree(
            plan["root"], folder / "project", ignore=shutil.ignore_patterns(PRIVATE_FOLDER), symlinks=True
        )
        is_good = _run_group(group, folder, ErrorFormat(plan["crash"], plan["error_line"]), deadline, report)
        shutil.rmtree(folder, ignore_errors=True)
        if group.get("needed") and not is_good:
            return  # without a build, further steps say nothing
    report.write({"end": True})


class ErrorFormat:
    """How programs of a language describe a failure: a crash's mark, and the line that names the error."""

    def __init__(self, crash: str, error_line: str) -> None:
        self.crash = crash
        self._error_line = re.compile(error_line)

    def shorten(self, text: str) -> str:
        """Return the line that names the error, the last place in the project's own code, and the last lines."""
        lines = [line.strip() for line in text.strip().splitlines()]
        errors = [line for line in lines if self._error_line.search(line)][:1]
        last = [line for line in lines[-4:] if line not in errors]  # four by judgement; not measured
        # Where a library raises, the last lines are its own. The place is a line with the path and one with the code.
        own = max((number for number, line in enumerate(lines[:-4]) if OWN_PATH in line), default=-1)
        place = lines[own : own + 2] if own >= 0 and not any(OWN_PATH in line for line in last) else []
        return " / ".join([*errors, *place, *last])[:MAX_MESSAGE_CHARS]


def _run_group(
    group: dict[str, Any], folder: Path, error_format: ErrorFormat, deadline: float, report: StepReport
) -> bool:
    server = ProjectServer(group["serve"], folder, error_format, deadline) if group.get("serve") else None
    is_good = True
    try:
        for step in group["steps"]:
            fact = server.ask(step) if server else _run(step, folder, error_format, deadline)
            is_good = is_good and not fact
            report.write({"id": step["id"], "fact": fact})
    finally:
        if server:
            server.stop()
    return is_good


def _environment(folder: Path) -> dict[str, str]:
    home = folder / "home"
    home.mkdir(exist_ok=True)
    return {**os.environ, "HOME": str(home), "PORT": str(PORT), "HOST": "127.0.0.1"}


def _get_step_timeout(deadline: float) -> float:
    # The minimum, by judgement, lets a step begin that then times out.
    return max(0.1, min(MAX_STEP_S, deadline - time.monotonic()))


def _start(argv: list[str], folder: Path, output_path: Path) -> subprocess.Popen[bytes]:
    with output_path.open("wb") as out, output_path.with_suffix(".err").open("wb") as err:
        return subprocess.Popen(
            argv,
            cwd=folder / "project",
            env=_environment(folder),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a program and everything that it started in its session."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _read(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(MAX_OUTPUT_BYTES).decode("utf-8", "replace")


def _run(step: dict[str, Any], folder: Path, error_format: ErrorFormat, deadline: float) -> dict[str, str]:
    """Return what is wrong with one run; empty if nothing is."""
    call, output_path = step["call"], folder / "output.out"
    try:
        process = _start(step["argv"], folder, output_path)
    except OSError as fault:
        return {"call": call, "exception": f"it cannot be started: {fault.strerror}"}
    limit = _get_step_timeout(deadline)
    try:
        code = process.wait(limit)
    except subprocess.TimeoutExpired:
        return {"call": call, "exception": f"no end within {limit:.3g} s"}
    finally:
        _kill(process)
    out, err = _read(output_path), _read(output_path.with_suffix(".err"))
    return _find_fault(step, call, code, out, err, error_format, folder)


def _find_fault(
    step: dict[str, Any], call: str, code: int, out: str, err: str, error_format: ErrorFormat, folder: Path
) -> dict[str, str]:
    ending = f"signal {-code}" if code < 0 else f"exit code {code}"
    if error_format.crash in err or code < 0:
        return {"call": call, "exception": f"{ending}: {error_format.shorten(err)}"}
    if step.get("fails"):
        return {} if code else {"call": call, "actual": ending, "expected": "an exit code that is not 0"}
    if code not in step["codes"]:
        return {"call": call, "exception": f"{ending}: {error_format.shorten(err or out)}"}
    if step.get("prints") and not (out + err).strip():
        return {"call": call, "actual": "no output", "expected": "some output"}
    expected = step.get("stdout")
    actual = [line.strip() for line in out.strip().splitlines()]
    if expected is not None and actual != expected:
        return {
            "call": call,
            "actual": "\n".join(actual)[:MAX_MESSAGE_CHARS],
            "expected": "\n".join(expected)[:MAX_MESSAGE_CHARS],
        }
    if file_name := step.get("writes"):
        return _check_written_file(folder / "project" / file_name, step, call)
    return {}


def _check_written_file(path: Path, step: dict[str, Any], call: str) -> dict[str, str]:
    """Return what is wrong with the file that a command had to write; empty if it is as expected."""
    if not _is_written(path):
        actual = f"no file {path.name!r}, or an empty one"
        return {"call": call, "actual": actual, "expected": "a file with content"}
    text = path.read_text(encoding="utf-8", errors="replace")
    missing = [
        words[0]
        for words in step.get("names", ())
        if not re.search(rf"(?<![a-z])({'|'.join(words)})(?![a-z])", text.lower())
    ]
    if missing:
        expected = f"a name for each value, so also for the {', '.join(missing)}"
        return {"call": call, "actual": text[:MAX_MESSAGE_CHARS], "expected": expected}
    return {}


def _is_written(path: Path) -> bool:
    return path.is_file() and not path.is_symlink() and path.stat().st_size > 0


class ProjectServer:
    """A server of the project, which is started at the first request."""

    def __init__(self, argv: list[str], folder: Path, error_format: ErrorFormat, deadline: float) -> None:
        self._argv, self._folder, self._error_format, self._deadline = argv, folder, error_format, deadline
        self._output_path = folder / "server.out"
        self._process: subprocess.Popen[bytes] | None = None
        self._failure = ""

    def ask(self, step: dict[str, Any]) -> dict[str, str]:
        """Return what is wrong with one response; empty if nothing is."""
        method, path = step["ask"]
        call = f"{method} {path}" + ("" if step.get("body") is None else f" {json.dumps(step['body'])}")
        failure = self._ensure_running()
        if failure:
            return {"call": call, "exception": failure}
        try:
            status, text = self._send_request(method, path, step.get("body"))
        except (OSError, http.client.HTTPException) as fault:
            return {"call": call, "exception": f"no answer: {fault}; {self._last_error()}"}
        actual = f"status {status}: {text[:MAX_MESSAGE_CHARS]}"
        if status >= step.get("below", 1000):  # without a limit, any status is below it
            return {"call": call, "actual": actual, "expected": f"a status below {step['below']}"}
        expected, answer = step.get("status"), step.get("answer")
        has_status = expected is None or status == expected
        if has_status and (answer is None or _parse_json(text) == answer):
            return {}
        body = "" if answer is None else f": {json.dumps(answer)}"
        return {"call": call, "actual": actual, "expected": f"status {expected}{body}"[:MAX_MESSAGE_CHARS]}

    def _send_request(self, method: str, path: str, body: object) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=_get_step_timeout(self._deadline))
        try:
            content = None if body is None else json.dumps(body)
            # The statement may write non-ASCII letters in a path.
            quoted_path = urllib.parse.quote(path, safe=PATH_PUNCTUATION, errors="replace")
            headers = {"Content-Type": "application/json"} if content else {}
            connection.request(method, quoted_path, content, headers)
            reply = connection.getresponse()
            return reply.status, reply.read(MAX_OUTPUT_BYTES).decode("utf-8", "replace")
        finally:
            connection.close()

    def _ensure_running(self) -> str:
        """Start the server if it was not started yet; return why it does not listen, or an empty string."""
        if self._process is None and not self._failure:
            try:
                self._process = _start(self._argv, self._folder, self._output_path)
            except OSError as fault:
                self._failure = f"it cannot be started: {fault.strerror}"
                return self._failure
            self._failure = self._wait_until_listening(self._process)
        return self._failure

    def _wait_until_listening(self, process: subprocess.Popen[bytes]) -> str:
        limit = _get_step_timeout(self._deadline)
        end = time.monotonic() + limit
        while time.monotonic() < end:
            if process.poll() is not None:
                return f"the server ended by itself with exit code {process.returncode}: {self._last_error()}"
            try:
                socket.create_connection(("127.0.0.1", PORT), 1).close()
                return ""
            except OSError:
                time.sleep(0.1)
        error = self._last_error()
        return f"nothing listens at 127.0.0.1:{PORT}, the port in PORT, after {limit:.3g} s: {error}"

    def _last_error(self) -> str:
        return self._error_format.shorten(
            _read(self._output_path.with_suffix(".err")) or _read(self._output_path)
        )

    def stop(self) -> None:
        """End the program and everything that it started."""
        if self._process is not None:
            _kill(self._process)


def _parse_json(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


if __name__ == "__main__":
    main()
