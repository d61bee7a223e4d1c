"""Starts a written project behind the wall and reports what it saw, in signed lines.

It runs on a bare interpreter, in a process that loads nothing of the project. What it starts shares its
namespaces: the key is read before anything is started, and this process's memory is closed to the others.
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

OURS = "_suture"
PORT = 8765
"""Any will do: behind the wall there is a network of its own."""
LONGEST_STEP_S = 30.0
"""Seconds of one step, so that one that hangs leaves time to see the others."""
MOST_OUTPUT = 200_000
"""Bytes of what one program, or one reply, says that are read."""
MOST_SAID = 600
PR_SET_DUMPABLE = 4
"""Of `linux/prctl.h`: nobody may look into a process that is not dumpable."""
IN_A_PATH = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
"""All of ASCII that is printed: it is sent as it is written."""


class StepReport:
    """Writes one signed line for each step."""

    def __init__(self, path: str, key: bytes) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._key = key
        self._number = 0

    def write(self, event: dict[str, Any]) -> None:
        """Write an event down."""
        text = f"{self._number} {json.dumps(event)}".encode()
        self._number += 1
        signature = hmac.new(self._key, text, hashlib.sha256).hexdigest().encode()
        os.write(self._file, signature + b" " + text + b"\n")


def main() -> None:
    """Do what the plan on stdin says."""
    given = json.load(sys.stdin.buffer)
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    report = StepReport(given["report"], bytes.fromhex(given["key"]))
    deadline = time.monotonic() + given["wall_s"]
    for number, group in enumerate(given["groups"]):
        place = Path(f"/tmp/place-{number}")
        shutil.copytree(given["root"], place / "project", ignore=shutil.ignore_patterns(OURS), symlinks=True)
        good = _group(group, place, Speech(given["crash"], given["error_line"]), deadline, report)
        shutil.rmtree(place, ignore_errors=True)
        if group.get("needed") and not good:
            return  # what does not build tells nothing more
    report.write({"end": True})


class Speech:
    """How programs of a language say what went wrong: a mark of a crash, and a line that tells the error."""

    def __init__(self, crash: str, error_line: str) -> None:
        self.crash = crash
        self._error_line = re.compile(error_line)

    def short(self, text: str) -> str:
        """The line that tells the error, and the last ones."""
        lines = [line.strip() for line in text.strip().splitlines()]
        errors = [line for line in lines if self._error_line.search(line)][:1]
        last = [line for line in lines[-4:] if line not in errors]
        return " / ".join([*errors, *last])[:MOST_SAID]


def _group(group: dict[str, Any], place: Path, speech: Speech, deadline: float, report: StepReport) -> bool:
    server = ProjectServer(group["serve"], place, speech, deadline) if group.get("serve") else None
    good = True
    try:
        for step in group["steps"]:
            fact = server.ask(step) if server else _run(step, place, speech, deadline)
            good = good and not fact
            report.write({"id": step["id"], "fact": fact})
    finally:
        if server:
            server.stop()
    return good


def _environment(place: Path) -> dict[str, str]:
    home = place / "home"
    home.mkdir(exist_ok=True)
    return {**os.environ, "HOME": str(home), "PORT": str(PORT), "HOST": "127.0.0.1"}


def _left(deadline: float) -> float:
    return max(0.1, min(LONGEST_STEP_S, deadline - time.monotonic()))


def _start(argv: list[str], place: Path, said: Path) -> subprocess.Popen[bytes]:
    with said.open("wb") as out, said.with_suffix(".err").open("wb") as err:
        return subprocess.Popen(
            argv,
            cwd=place / "project",
            env=_environment(place),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a program and what it has started in its session."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _read(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(MOST_OUTPUT).decode("utf-8", "replace")


def _run(step: dict[str, Any], place: Path, speech: Speech, deadline: float) -> dict[str, str]:
    """What is wrong with one run; empty where it is as it should be."""
    call, said = step["call"], place / "said.out"
    try:
        process = _start(step["argv"], place, said)
    except OSError as fault:
        return {"call": call, "exception": f"it cannot be started: {fault.strerror}"}
    limit = _left(deadline)
    try:
        code = process.wait(limit)
    except subprocess.TimeoutExpired:
        return {"call": call, "exception": f"no end within {limit:.3g} s"}
    finally:
        _end(process)
    out, err = _read(said), _read(said.with_suffix(".err"))
    return _judged(step, call, code, out, err, speech, place)


def _judged(
    step: dict[str, Any], call: str, code: int, out: str, err: str, speech: Speech, place: Path
) -> dict[str, str]:
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    if speech.crash in err or code < 0:
        return {"call": call, "exception": f"{how}: {speech.short(err)}"}
    if step.get("fails"):
        return {} if code else {"call": call, "got": how, "expected": "an exit code that is not 0"}
    if code not in step["codes"]:
        return {"call": call, "exception": f"{how}: {speech.short(err or out)}"}
    if step.get("prints") and not (out + err).strip():
        return {"call": call, "got": "no output", "expected": "some output"}
    wanted = step.get("stdout")
    got = [line.strip() for line in out.strip().splitlines()]
    if wanted is not None and got != wanted:
        return {"call": call, "got": "\n".join(got)[:MOST_SAID], "expected": "\n".join(wanted)[:MOST_SAID]}
    written = step.get("writes")
    if written and not _is_written(place / "project" / written):
        return {
            "call": call,
            "got": f"no file {written!r}, or an empty one",
            "expected": "a file with content",
        }
    return {}


def _is_written(path: Path) -> bool:
    return path.is_file() and not path.is_symlink() and path.stat().st_size > 0


class ProjectServer:
    """A server of the project's, started when it is first asked."""

    def __init__(self, argv: list[str], place: Path, speech: Speech, deadline: float) -> None:
        self._argv, self._place, self._speech, self._deadline = argv, place, speech, deadline
        self._said = place / "server.out"
        self._process: subprocess.Popen[bytes] | None = None
        self._dead = ""

    def ask(self, step: dict[str, Any]) -> dict[str, str]:
        """What is wrong with one answer; empty where it is as it should be."""
        method, path = step["ask"]
        call = f"{method} {path}" + ("" if step.get("body") is None else f" {json.dumps(step['body'])}")
        why = self._up()
        if why:
            return {"call": call, "exception": why}
        try:
            status, text = self._answer(method, path, step.get("body"))
        except (OSError, http.client.HTTPException) as fault:
            return {"call": call, "exception": f"no answer: {fault}; {self._words()}"}
        got = f"status {status}: {text[:MOST_SAID]}"
        if status >= step.get("below", 1000):
            return {"call": call, "got": got, "expected": f"a status below {step['below']}"}
        wanted, answer = step.get("status"), step.get("answer")
        if (wanted is not None and status != wanted) or (answer is not None and _json(text) != answer):
            more = "" if answer is None else f": {json.dumps(answer)}"
            return {"call": call, "got": got, "expected": f"status {wanted}{more}"[:MOST_SAID]}
        return {}

    def _answer(self, method: str, path: str, body: object) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=_left(self._deadline))
        try:
            sent = None if body is None else json.dumps(body)
            plain = urllib.parse.quote(
                path, safe=IN_A_PATH, errors="replace"
            )  # the statement may write other letters
            connection.request(method, plain, sent, {"Content-Type": "application/json"} if sent else {})
            reply = connection.getresponse()
            return reply.status, reply.read(MOST_OUTPUT).decode("utf-8", "replace")
        finally:
            connection.close()

    def _up(self) -> str:
        """Start it, and wait until it listens; why it does not, where it does not."""
        if self._process is None and not self._dead:
            try:
                self._process = _start(self._argv, self._place, self._said)
            except OSError as fault:
                self._dead = f"it cannot be started: {fault.strerror}"
                return self._dead
            self._dead = self._wait(self._process)
        return self._dead

    def _wait(self, process: subprocess.Popen[bytes]) -> str:
        limit = _left(self._deadline)
        until = time.monotonic() + limit
        while time.monotonic() < until:
            if process.poll() is not None:
                return f"the server ended by itself with exit code {process.returncode}: {self._words()}"
            try:
                socket.create_connection(("127.0.0.1", PORT), 1).close()
                return ""
            except OSError:
                time.sleep(0.1)
        return f"nothing listens at 127.0.0.1:{PORT}, the port in PORT, after {limit:.3g} s: {self._words()}"

    def _words(self) -> str:
        return self._speech.short(_read(self._said.with_suffix(".err")) or _read(self._said))

    def stop(self) -> None:
        """End the program and all that it started."""
        if self._process is not None:
            _end(self._process)


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


if __name__ == "__main__":
    main()
