"""A test program and a candidate in one process, for tests that need live objects.

Runs behind the wall. The program counts as passed only if the nonce comes back, which is written after its
last statement: an early exit is no pass. A candidate that hunts through this process's memory could forge it;
that is why such verdicts are listed.
"""

from __future__ import annotations

import ast
import importlib
import os
import sys
import types
from typing import Any

from suture.checks.asserts import HOOK, Asserts, compile_program, explain
from suture.checks.frames import FrameStream
from suture.checks.split_candidate import make_room, place_of

__all__ = ["main", "run_beside"]

PROGRAM = "<test>"
ENDS = ("unittest.main", "sys.exit", "exit", "quit")
"""Calls with which a test program ends itself."""


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
    try:
        exec(compile_program(source, PROGRAM), program.__dict__)
    except BaseException as fault:
        if isinstance(fault, SystemExit) and not fault.code and _is_own_end(fault, source, root):
            return {"passed": True}
        return {"passed": False, "fact": _fact(fault, asserts, source, root)}
    return {"passed": True}


def _is_own_end(fault: SystemExit, source: str, root: str) -> bool:
    """Whether the program itself asked to end, where it ended; `total = sys.exit` of a candidate did not."""
    if place_of(fault, root)[0]:
        return False
    line, trace = 0, fault.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == PROGRAM:
            line = trace.tb_lineno
        trace = trace.tb_next
    return any(_ends_the_program(node, line) for node in ast.walk(ast.parse(source)))


def _ends_the_program(node: ast.AST, line: int) -> bool:
    if not isinstance(node, ast.stmt) or not node.lineno <= line <= (node.end_lineno or node.lineno):
        return False
    if isinstance(node, ast.Raise) and node.exc is not None:
        raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        return ast.unparse(raised) == "SystemExit"
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return ast.unparse(node.value.func) in ENDS
    return False


def _fact(fault: BaseException, asserts: Asserts, source: str, root: str) -> dict[str, Any]:
    fact: dict[str, Any] = dict(explain(fault, asserts, source, PROGRAM))
    fact["file"], fact["line"] = place_of(fault, root)
    return fact


def main() -> None:
    """Serve one request."""
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
