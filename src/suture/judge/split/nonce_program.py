"""A test program and a candidate in one process, for tests that need live objects.

Runs inside the sandbox. The program passes only if the nonce comes back, which is written after its last
statement, so an early exit is no pass. A candidate that searches this process's memory could forge the nonce,
which is why verdicts list such checks.
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

PROGRAM = "<test>"


def run_beside(module: str, source: str, root: str) -> dict[str, Any]:
    """Run a test program with the names of a candidate's module.

    Returns:
        `passed`, and if it is false the `fact`.
    """
    recorder = AssertRecorder()
    try:
        loaded = importlib.import_module(module)
    except BaseException as fault:
        return {"passed": False, "fact": _fact(fault, recorder, "", root)}
    program = types.ModuleType("__main__")
    program.__dict__.update({k: v for k, v in loaded.__dict__.items() if not k.startswith("__")})
    setattr(program, RECORDER_NAME, recorder)
    sys.modules["__main__"] = program
    ended: BaseException | None = None
    with FrameworkFailures(source) as failures:
        try:
            exec(compile_program(source, PROGRAM, recorder), program.__dict__)
        except BaseException as fault:
            ended = fault
    if recorder.ended_well(ended) and not failures.seen:
        return {"passed": True}
    why = failures.seen[0] if failures.seen else "the test did not get to its end, or tests nothing"
    ended = recorder.find_cause(ended) or RuntimeError(why)
    return {"passed": False, "fact": _fact(ended, recorder, source, root)}


def _fact(fault: BaseException, recorder: AssertRecorder, source: str, root: str) -> dict[str, Any]:
    fact: dict[str, Any] = dict(explain_failure(fault, recorder, source, PROGRAM))
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
    outcome = run_beside(request["module"], request["source"], root)
    stream.flush_prints()
    stream.send({**outcome, "nonce": request["nonce"]})
    os._exit(0)
