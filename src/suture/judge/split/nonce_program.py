"""Nonce mode inside the sandbox: run a test program and the candidate in this one process.

`call_runner.py` has the host's side; it explains the nonce and what it cannot protect against.
"""

from __future__ import annotations

import builtins
import contextlib
import importlib
import os
import sys
import types
from collections.abc import Mapping
from typing import Any

from suture.judge.split.assert_recorder import AssertRecorder, FrameworkFailures, explain_failure
from suture.judge.split.candidate_program import find_candidate_line, isolate_imports
from suture.judge.split.program_rewriting import RECORDER_NAME, compile_program
from suture.judge.split.wire import FrameStream

PROGRAM_NAME = "<test>"
"""The file name that the program's stack frames show."""
RESERVED_NAMES = frozenset(dir(builtins))
MISSING = object()
"""Stands for a name that no module of the candidate has."""


def run_in_one_process(
    module: str, source: str, names: Mapping[str, Mapping[str, Any]], root: str
) -> dict[str, Any]:
    """Run a test program together with a candidate's module; return `passed`, and `fact` if it is false.

    Args:
        names: What the names that the program needs stand for; see `ProgramPlan.names`. Builtins and modules of the
            standard library keep their meaning, so that no candidate replaces what the test decides with.
    """
    recorder = AssertRecorder()
    libraries = _bind_libraries(names)
    try:
        candidate_module = importlib.import_module(module)
        found = {name: _find_name(target) for name, target in names.items() if name not in libraries}
    except BaseException as fault:
        return {"passed": False, "fact": _make_fact(fault, recorder, "", root)}
    program = types.ModuleType("__main__")
    # A string that the program runs may need further names than the program's own source shows.
    program.__dict__.update(
        {
            name: value
            for name, value in vars(candidate_module).items()
            if not name.startswith("__") and name not in RESERVED_NAMES
        }
    )
    program.__dict__.update(
        {name: value for name, value in found.items() if value is not MISSING} | libraries
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


def _bind_libraries(names: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the names that stand for a module of the standard library, or for something in one."""
    bound = {}
    for name, target in names.items():
        library = importlib.import_module(target["library"]) if "library" in target else None
        if library is not None and all(hasattr(library, attribute) for attribute in target["uses"]):
            bound[name] = library if library.__name__ == name else getattr(library, name)
    return bound


def _find_name(target: Mapping[str, Any]) -> Any:
    """Return what the first of a target's modules that has the name defines; `MISSING` if none does."""
    for module in target["modules"]:
        with contextlib.suppress(ModuleNotFoundError):
            value = getattr(importlib.import_module(module), target["name"], MISSING)
            if value is not MISSING:
                return value
    return MISSING


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
    outcome = run_in_one_process(request["module"], request["source"], request["names"], root)
    stream.flush_prints()
    stream.send({**outcome, "nonce": request["nonce"]})
    os._exit(0)  # skips the candidate's threads and exit hooks
