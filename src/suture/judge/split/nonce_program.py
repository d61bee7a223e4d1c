"""Nonce mode inside the sandbox: run a test program and the candidate in this one process.

`nonce_runner.py` is the host's side; it explains the nonce and what it cannot protect against.
"""

from __future__ import annotations

import importlib
import os
import sys
import types
from typing import Any

from suture.judge.split.assert_recorder import AssertRecorder, FrameworkFailures, explain_failure
from suture.judge.split.candidate_program import find_candidate_line, isolate_imports
from suture.judge.split.program_rewriting import RECORDER_NAME, compile_program
from suture.judge.split.wire import FrameStream

PROGRAM_NAME = "<test>"
"""The file name that the program's stack frames show."""


def run_in_one_process(module: str, source: str, root: str) -> dict[str, Any]:
    """Run a test program that sees the names of a candidate's module; return `passed`, and `fact` if it is false."""
    recorder = AssertRecorder()
    try:
        candidate_module = importlib.import_module(module)
    except BaseException as fault:
        return {"passed": False, "fact": _make_fact(fault, recorder, "", root)}
    program = types.ModuleType("__main__")
    program.__dict__.update(
        {name: value for name, value in vars(candidate_module).items() if not name.startswith("__")}
    )
    setattr(program, RECORDER_NAME, recorder)
    sys.modules["__main__"] = program
    exception: BaseException | None = None
    with FrameworkFailures(source) as failures:
        try:
            exec(compile_program(source, PROGRAM_NAME, recorder), program.__dict__)
        except BaseException as fault:
            exception = fault
    if recorder.ended_well(exception) and not failures.seen:
        return {"passed": True}
    reason = failures.seen[0] if failures.seen else "the test did not get to its end, or tests nothing"
    cause = recorder.find_cause(exception) or RuntimeError(reason)
    return {"passed": False, "fact": _make_fact(cause, recorder, source, root)}


def _make_fact(fault: BaseException, recorder: AssertRecorder, source: str, root: str) -> dict[str, Any]:
    fact: dict[str, Any] = dict(explain_failure(fault, recorder, source, PROGRAM_NAME))
    fact["file"], fact["line"] = find_candidate_line(fault, root)
    return fact


def main() -> None:
    """Run the one test program that the host sends, and return its outcome with the nonce."""
    stream = FrameStream()
    request = stream.receive()
    if request is None:
        return
    root = os.getcwd()
    isolate_imports(root)
    outcome = run_in_one_process(request["module"], request["source"], root)
    stream.flush_prints()
    stream.send({**outcome, "nonce": request["nonce"]})
    os._exit(0)  # skips the candidate's threads and exit hooks
