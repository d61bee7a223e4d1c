"""A test program and a candidate in one process, for tests that need live objects.

Runs behind the wall. The program counts as passed only if the nonce comes back, which is written after its
last statement: an early exit is no pass. A candidate that hunts through this process's memory could forge it;
that is why such verdicts are listed.
"""

from __future__ import annotations

import importlib
import os
import sys
import types
from typing import Any

from suture.judge.split.assert_recorder import Asserts, explain
from suture.judge.split.candidate_program import make_room, place_of
from suture.judge.split.frames import FrameStream
from suture.judge.split.own_failures import OwnFailures
from suture.judge.split.program_rewriting import HOOK, compile_program

PROGRAM = "<test>"


def run_beside(module: str, source: str, root: str) -> dict[str, Any]:
    """Run a test program in the names of a candidate's module.

    Returns:
        `passed`, and where it is false the `fact`.
    """
    asserts = Asserts()
    try:
        loaded = importlib.import_module(module)
    except BaseException as fault:
        return {"passed": False, "fact": _fact(fault, asserts, "", root)}
    program = types.ModuleType("__main__")
    program.__dict__.update({k: v for k, v in loaded.__dict__.items() if not k.startswith("__")})
    setattr(program, HOOK, asserts)
    sys.modules["__main__"] = program
    ended: BaseException | None = None
    with OwnFailures(source) as failures:
        try:
            exec(compile_program(source, PROGRAM, asserts), program.__dict__)
        except BaseException as fault:
            ended = fault
    if asserts.came_to_an_end(ended) and not failures.seen:
        return {"passed": True}
    why = failures.seen[0] if failures.seen else "the test did not get to its end, or tests nothing"
    ended = asserts.lost(ended) or RuntimeError(why)
    return {"passed": False, "fact": _fact(ended, asserts, source, root)}


def _fact(fault: BaseException, asserts: Asserts, source: str, root: str) -> dict[str, Any]:
    fact: dict[str, Any] = dict(explain(fault, asserts, source, PROGRAM))
    fact["file"], fact["line"] = place_of(fault, root)
    return fact


def main() -> None:
    """Run the one test program that the host sends, and answer its outcome under the nonce."""
    stream = FrameStream()
    request = stream.receive()
    if request is None:
        return
    root = os.getcwd()
    make_room(root)
    outcome = run_beside(request["module"], request["source"], root)
    stream.flush_prints()
    stream.send({**outcome, "nonce": request["nonce"]})
    os._exit(0)
