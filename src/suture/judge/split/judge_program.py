"""The judge's side of a split verdict: tests run here, and the candidate's process answers their calls.

Runs in a sandbox of its own, in a process that never loads the candidate's code; every assert runs here. One
judge serves many verdicts, each in a process forked for it, so that nothing that tests do to their
interpreter reaches the next verdict.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import types
from functools import cache
from typing import Any

from suture.judge.split.answer_digest import ANSWER_NAME, digest_answer
from suture.judge.split.assert_recorder import AssertRecorder, FrameworkFailures, explain_failure
from suture.judge.split.program_rewriting import RECORDER_NAME, compile_program
from suture.judge.split.proxies import NeedsLiveObjects, RemoteFunction
from suture.judge.split.remote_candidate import Ask, CandidateDied, NameMissing, RemoteCandidate
from suture.judge.split.wire import FrameStream

PROGRAM = "<test>"
WRITABLE = (".", "/tmp", "/dev/shm")
SET_DUMPABLE = 4
"""`PR_SET_DUMPABLE` of linux/prctl.h; Python's library has no `prctl`."""


def run_program(request: dict[str, Any], ask: Ask) -> dict[str, Any]:
    """Run one test program.

    Args:
        request: `source`; `names`: name -> what it stands for; `expects` (see `ProgramPlan`).
        ask: Sends a request to the candidate and returns its reply.

    Returns:
        `passed`, and if it is false the `fact`; or `live`, why the program needs live objects. `digest` is
        present if the program left an answer to compare: its digest and its `repr` (see answer_digest.py).
    """
    NeedsLiveObjects.reasons.clear()
    outcome = _run(request, ask)
    if NeedsLiveObjects.reasons:
        return {"passed": False, "live": NeedsLiveObjects.reasons[0]}
    return outcome


def _run(request: dict[str, Any], ask: Ask) -> dict[str, Any]:
    recorder, source = AssertRecorder(), request["source"]
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    fault: BaseException | None = None
    remote = RemoteCandidate(ask, recorder, PROGRAM, source, frozenset(request["expects"]))
    with FrameworkFailures(source) as failures:
        try:
            code = compile_program(source, PROGRAM, recorder)
            for name, target in request["names"].items():
                _give(module, name, remote, target)
            setattr(module, RECORDER_NAME, recorder)
            exec(code, module.__dict__)
            digest = (
                {"digest": digest_answer(*module.__dict__[ANSWER_NAME])}
                if ANSWER_NAME in module.__dict__
                else {}
            )
        except BaseException as raised:
            fault, digest = raised, {}
    ended_well = recorder.ended_well(fault)
    if ended_well and remote.request_count and not failures.seen:
        return {"passed": True, **digest}
    fault = recorder.find_cause(fault)
    if fault is None or ended_well:
        why = failures.seen[0] if failures.seen else "the test does not use the code under test"
        return {"passed": False, "fact": {"exception": why}}
    fact: dict[str, Any] = dict(explain_failure(fault, recorder, source, PROGRAM))
    if isinstance(fault, CandidateDied):
        fact["exception"] = str(fault)
    fact["file"], fact["line"] = getattr(fault, "suture_place", ("", None))
    return {"passed": False, "fact": fact}


def _give(module: types.ModuleType, name: str, remote: RemoteCandidate, target: dict[str, Any]) -> None:
    """Bind a name of the program to what it stands for; a name that the candidate lacks stays undefined."""
    library = importlib.import_module(target["library"]) if "library" in target else None
    if library is not None and all(hasattr(library, used) for used in target["uses"]):
        setattr(module, name, library if library.__name__ == name else getattr(library, name))
    elif target["kind"] == "function":
        setattr(
            module, name, RemoteFunction(remote, {"module": target["modules"][0], "name": target["name"]})
        )
    else:
        with contextlib.suppress(NameMissing):
            setattr(module, name, remote.look_up(target["kind"], target["modules"], target["name"]))


def main() -> None:
    """Serve one verdict after another, each in a process of its own, until the host closes the channel.

    The host ends a verdict, and learns that everything of it is gone from the key that it sent at the start.
    Only this process knows the key, because the process that runs the tests was forked before the key came.
    So tests that write to the host themselves cannot pass for the judge of the next verdict. A judge whose
    tests leave something behind ends.
    """
    stream = FrameStream()
    hide(True)
    alone = look_around()
    while True:
        waiting, go = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(go)
            begins = os.read(waiting, 1)
            os.close(waiting)
            if begins:
                hear_verdict(stream)
            os._exit(0)
        os.close(waiting)
        start = stream.receive()
        if start is None:
            os._exit(0)
        os.write(go, b"g")
        os.close(go)
        status = os.waitpid(pid, 0)[1]
        if status or look_around() != alone:
            os._exit(1)  # the verdict ended early or left something behind, so this judge is not reused
        stream.send({"over": start["key"]})


def hear_verdict(stream: FrameStream) -> None:
    """Run the programs of one verdict."""
    hide(False)  # the default of every program

    def ask(request: dict[str, Any]) -> dict[str, Any]:
        stream.send({"ask": request})
        reply = stream.receive()
        if reply is None:
            os._exit(1)
        return reply

    while (request := stream.receive()) is not None and "source" in request:
        outcome = run_program(request, ask)
        stream.flush_prints()
        stream.send({"outcome": outcome})


def hide(hidden: bool) -> None:
    """Make this process unreadable for other processes, or undo that."""
    if _own_process().prctl(SET_DUMPABLE, int(not hidden), 0, 0, 0) != 0:
        raise OSError("PR_SET_DUMPABLE")


@cache
def _own_process() -> Any:
    import ctypes

    return ctypes.CDLL(None)


def look_around() -> list[list[str]]:
    """Return the entries of writable folders and all processes, each twice.

    A single listing can miss a process that keeps forking.
    """
    found = []
    for _ in range(2):
        found += [sorted(os.listdir(folder)) for folder in WRITABLE]
        found.append(sorted(name for name in os.listdir("/proc") if name.isdigit()))
    return found
