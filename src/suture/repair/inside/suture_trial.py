"""One process for many trials: each in a fork, with a limit of its own, that writes what it saw to a pipe."""

from __future__ import annotations

import ast
import importlib
import itertools
import json
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from suture.repair.inside.suture_told import told_of
else:  # behind the wall these files stand alone
    from suture_told import told_of

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
SLACK_S = 4.0
"""Wall-clock seconds without a word, beyond a test's own, after which a trial is killed."""
MOST_INPUTS = 60
LONGEST_INPUT = 1500
FAILED_AT_MOST = 4
"""Failing tests after which a candidate is tried no further."""


def load_job() -> dict[str, Any]:
    """What to do."""
    with open(os.path.join(HERE, "job.json"), encoding="utf-8") as file:
        job: dict[str, Any] = json.load(file)
    job["deadline"] = time.monotonic() + job["seconds"]
    return job


class Report:
    """Where findings go, a JSON value a line."""

    def __init__(self) -> None:
        self._file = open(os.path.join(HERE, "found"), "a", encoding="utf-8")  # noqa: SIM115

    def write(self, value: Any) -> None:
        """Write one finding."""
        self._file.write(json.dumps(value) + "\n")
        self._file.flush()


def in_fork(
    act: Callable[[Callable[[bytes], None]], None], quiet_s: float, through: Any = ()
) -> tuple[bytes, bool]:
    """Run a function in a child, and read what it writes.

    Args:
        act: Gets a function that writes.
        quiet_s: Seconds of silence after which the child is killed.
        through: An exception of the function's that leaves this call, in the child.

    Returns:
        What it wrote, and whether it came to its end.
    """
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(ours)
            os.setsid()
            act(lambda words: _write(theirs, words))
            os._exit(0)
        except through:
            raise
        except BaseException:
            os._exit(1)
    os.close(theirs)
    words = b""
    while True:
        if not select.select([ours], [], [], quiet_s)[0]:
            break
        part = os.read(ours, 65536)
        if not part:
            break
        words += part
    os.close(ours)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    status = os.waitpid(pid, 0)[1]
    return words, os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0


def _write(handle: int, words: bytes) -> None:
    while words:
        words = words[os.write(handle, words) :]


def limit_cpu(seconds: float, then: Callable[[Any, Any], None] | None = None) -> None:
    """End this process, or call a function, after so many seconds of its own CPU time from now."""
    signal.signal(signal.SIGPROF, then or signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, seconds)


class Tracer:
    """Notes the lines of the project's code that run, and what the tests call it with."""

    def __init__(self, files: list[str]) -> None:
        self._paths = {os.path.join(ROOT, path): path for path in files}
        self._known: dict[str, str | None] = {}
        self._lines: dict[str, Any] = {}
        self.seen: dict[str, set[int]] = {path: set() for path in files}
        self.calls: list[tuple[str, str, int, str]] = []

    def path_of(self, filename: str) -> str | None:
        """The project's name of a file, where it is one that we look at."""
        if filename not in self._known:
            self._known[filename] = self._paths.get(os.path.abspath(filename))
        return self._known[filename]

    def start(self) -> None:
        """Look at everything that is called from now on."""
        threading.settrace(self._called)
        sys.settrace(self._called)

    def stop(self) -> None:
        """Look no more."""
        sys.settrace(None)
        threading.settrace(None)

    def take(self) -> dict[str, Any]:
        """What was seen since the last time."""
        told = {"lines": {p: sorted(seen) for p, seen in self.seen.items() if seen}, "calls": self.calls}
        for seen in self.seen.values():
            seen.clear()
        self.calls = []
        return told

    def _called(self, frame: Any, event: str, arg: Any) -> Any:
        path = self.path_of(frame.f_code.co_filename)
        if path is None:
            return None
        back = frame.f_back
        if back is not None and self.path_of(back.f_code.co_filename) is None:
            self._note_call(frame, path)
        if path not in self._lines:
            add = self.seen[path].add

            def line(frame: Any, event: str, arg: Any) -> Any:
                if event == "line":
                    add(frame.f_lineno)
                return line

            self._lines[path] = line
        self.seen[path].add(frame.f_lineno)
        return self._lines[path]

    def _note_call(self, frame: Any, path: str) -> None:
        code = frame.f_code
        if len(self.calls) >= MOST_INPUTS or code.co_name.startswith("<"):
            return
        names = code.co_varnames[: code.co_argcount]
        try:
            told = repr(tuple(frame.f_locals[name] for name in names))
        except Exception:
            told = ""
        self.calls.append((path, code.co_name, code.co_firstlineno, told[: LONGEST_INPUT + 1]))


def mutate_file(texts: dict[str, str], mutant: dict[str, Any]) -> str:
    """Write a candidate's file where the project has its own; answers the new text."""
    raw = texts[mutant["path"]].encode("utf-8", "surrogatepass")
    for start, end, text in sorted(mutant["edits"], key=lambda e: (e[0], e[1]), reverse=True):
        raw = raw[:start] + text.encode("utf-8", "surrogatepass") + raw[end:]
    with open(os.path.join(ROOT, mutant["path"]), "wb") as file:
        file.write(raw)
    return raw.decode("utf-8", "surrogatepass")


def restore_file(texts: dict[str, str], path: str) -> None:
    """The project's own file again."""
    with open(os.path.join(ROOT, path), "wb") as file:
        file.write(texts[path].encode("utf-8", "surrogatepass"))


def try_candidate(
    job: dict[str, Any],
    prepare: Callable[[Callable[[bytes], None]], bool],
    run: Callable[[str], bool | None],
) -> tuple[bytes, bool]:
    """Run the tests on a candidate: in one fork those that fail, in another all of them in their own order.

    Args:
        job: Names the tests.
        prepare: Puts the candidate into the fork; false where that cannot be done.
        run: Runs a test.

    Returns:
        `P` for a failing test that passes now, `f` for one that does not, `|` when all of those pass, then
        `b` for a test that fails among all of them, and `.` when none does; and whether the end was reached.
    """

    def failing(write: Callable[[bytes], None]) -> None:
        if prepare(write):
            _try_failing(job, run, write)

    def every(write: Callable[[bytes], None]) -> None:
        if prepare(write):
            _try_all(job, run, write)

    words, ended = in_fork(failing, quiet_of(job))
    if ended and words.endswith(b"|"):
        more, ended = in_fork(every, quiet_of(job))
        words += more
    return words, ended


def _try_failing(
    job: dict[str, Any], run: Callable[[str], bool | None], write: Callable[[bytes], None]
) -> None:
    failed = 0
    for test in job["failing"]:
        limit_cpu(job["limits"].get(test, job["least_s"]))
        fine = run(test)
        write(b"P" if fine else b"f")
        failed += not fine
        if failed >= FAILED_AT_MOST:
            return
    if not failed:
        write(b"|")


def _try_all(job: dict[str, Any], run: Callable[[str], bool | None], write: Callable[[bytes], None]) -> None:
    for test in job["all"]:
        limit_cpu(job["limits"].get(test, job["least_s"]))
        if run(test) is False:
            write(b"b")
            return
    write(b".")


def quiet_of(job: dict[str, Any]) -> float:
    """Seconds of silence that are too long for any test or call of a job."""
    longest: float = max([job.get("call_s", 0.0), *job["limits"].values()])
    return SLACK_S + 4 * longest


def verdict_line(number: int, words: bytes, ended: bool) -> dict[str, Any]:
    """What a trial of a candidate showed."""
    return {
        "mutant": number,
        "passing": words.count(b"P"),
        "failing": words.count(b"f"),
        "broken": words.count(b"b"),
        "plausible": words.endswith(b"."),
        "unsupported": b"u" in words,
        "late": not ended or b"L" in words,
    }


class Late(BaseException):
    """A call took too long."""


def call_all(job: dict[str, Any], write: Callable[[bytes], None]) -> None:
    """Make each of a job's calls, and write what came of it, a JSON text a line."""

    def late(signal: int, frame: Any) -> None:
        raise Late

    sys.path[:0] = [folder for folder in (ROOT, os.path.join(ROOT, "src")) if folder not in sys.path]
    modules: dict[str, Any] = {}
    for path, name, arguments in job["calls"]:
        try:
            if path not in modules:
                dotted = path[: -len(".py")].replace("/", ".")
                modules[path] = importlib.import_module(dotted[4:] if dotted.startswith("src.") else dotted)
            given = ast.literal_eval(arguments)
            limit_cpu(job["call_s"], late)
            value = getattr(modules[path], name)(*given)
            if hasattr(value, "__next__"):
                value = list(itertools.islice(value, 2000))
            told = told_of((value, given))
        except Late:
            told = "!late"
        except BaseException as fault:
            told = "!" + type(fault).__name__
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        write(json.dumps(told).encode("ascii") + b"\n")
