"""The judge's side of a split verdict: tests run here, their calls are answered elsewhere.

Runs behind a wall of its own, in a process that never loads the candidate's code; every assert runs here. One
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
from suture.judge.split.assert_recorder import Asserts, explain
from suture.judge.split.frames import FrameStream
from suture.judge.split.own_failures import OwnFailures
from suture.judge.split.program_rewriting import HOOK, compile_program
from suture.judge.split.proxies import Function, NeedsLiveObjects
from suture.judge.split.remote_candidate import Ask, CandidateDied, Missing, Remote

PROGRAM = "<test>"
WRITABLE = (".", "/tmp", "/dev/shm")
SET_DUMPABLE = 4
"""`PR_SET_DUMPABLE` of linux/prctl.h; Python's library has no `prctl`."""


def run_program(request: dict[str, Any], ask: Ask) -> dict[str, Any]:
    """Run one test program.

    Args:
        request: `source`; `names`: name -> what it stands for; `expects` (see names.py).
        ask: Sends a request to the candidate and answers its reply.

    Returns:
        `passed`, and where it is false the `fact`; or `live`, why the program needs live objects. `told` is
        there where the program left an answer to compare: its digest and its `repr` (see value_digest.py).
    """
    NeedsLiveObjects.reasons.clear()
    outcome = _run(request, ask)
    if NeedsLiveObjects.reasons:
        return {"passed": False, "live": NeedsLiveObjects.reasons[0]}
    return outcome


def _run(request: dict[str, Any], ask: Ask) -> dict[str, Any]:
    asserts, source = Asserts(), request["source"]
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    fault: BaseException | None = None
    remote = Remote(ask, asserts, PROGRAM, source, frozenset(request["expects"]))
    with OwnFailures(source) as failures:
        try:
            code = compile_program(source, PROGRAM, asserts)
            for name, target in request["names"].items():
                _give(module, name, remote, target)
            setattr(module, HOOK, asserts)
            exec(code, module.__dict__)
            digest = (
                {"told": digest_answer(*module.__dict__[ANSWER_NAME])}
                if ANSWER_NAME in module.__dict__
                else {}
            )
        except BaseException as raised:
            fault, digest = raised, {}
    ended_well = asserts.came_to_an_end(fault)
    if ended_well and remote.asked and not failures.seen:
        return {"passed": True, **digest}
    fault = asserts.lost(fault)
    if fault is None or ended_well:
        why = failures.seen[0] if failures.seen else "the test asked nothing of the code under test"
        return {"passed": False, "fact": {"exception": why}}
    fact: dict[str, Any] = dict(explain(fault, asserts, source, PROGRAM))
    if isinstance(fault, CandidateDied):
        fact["exception"] = str(fault)
    fact["file"], fact["line"] = getattr(fault, "suture_place", ("", None))
    return {"passed": False, "fact": fact}


def _give(module: types.ModuleType, name: str, remote: Remote, target: dict[str, Any]) -> None:
    """Give a program what one of its names stands for; one that the candidate lacks stays undefined."""
    library = importlib.import_module(target["library"]) if "library" in target else None
    if library is not None and all(hasattr(library, used) for used in target["uses"]):
        setattr(module, name, library if library.__name__ == name else getattr(library, name))
    elif target["kind"] == "function":
        setattr(module, name, Function(remote, {"module": target["modules"][0], "name": target["name"]}))
    else:
        with contextlib.suppress(Missing):
            setattr(module, name, remote.look_up(target["kind"], target["modules"], target["name"]))


def main() -> None:
    """Serve until the host hangs up: one verdict after another, each in a process of its own.

    The host ends a verdict, and hears that all of it is gone by the key that it sent at the start of it. Only
    this process knows the key, for what runs the tests was forked before it came: tests that write to the
    host themselves cannot pass for the next verdict's judge. One whose tests leave something behind ends.
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
            os._exit(1)  # it ended early, or left something behind: this judge has served
        stream.send({"over": start["key"]})


def hear_verdict(stream: FrameStream) -> None:
    """Run the programs of one verdict."""
    hide(False)  # as every program starts out

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
    """Let no other process look into this one, or take that back."""
    if _own_process().prctl(SET_DUMPABLE, int(not hidden), 0, 0, 0) != 0:
        raise OSError("PR_SET_DUMPABLE")


@cache
def _own_process() -> Any:
    import ctypes

    return ctypes.CDLL(None)


def look_around() -> list[list[str]]:
    """What lies where tests can write, and all processes; twice, for one look can miss one that forks on."""
    found = []
    for _ in range(2):
        found += [sorted(os.listdir(folder)) for folder in WRITABLE]
        found.append(sorted(name for name in os.listdir("/proc") if name.isdigit()))
    return found
