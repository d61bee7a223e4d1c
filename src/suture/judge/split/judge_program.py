"""The judge's side of a split verdict: it runs the tests, and the candidate's process answers their calls.

It runs in its own sandbox and never loads the candidate's code. One judge serves many verdicts. It forks
a process for each, so that nothing that tests do to their interpreter reaches the next verdict.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import os
import sys
import types
from functools import cache
from typing import Any

from suture.judge.split.answer_digest import ANSWER_NAME, digest_answer
from suture.judge.split.argument_protection import find_argument_use, has_variables
from suture.judge.split.assert_recorder import (
    AssertRecorder,
    FrameworkFailures,
    explain_failure,
    list_program_frames,
)
from suture.judge.split.program_rewriting import RECORDER_NAME, compile_program
from suture.judge.split.proxies import NeedsLiveObjects, RemoteFunction
from suture.judge.split.remote_candidate import Ask, CandidateDied, NameMissing, RemoteCandidate
from suture.judge.split.special_numbers import choose_number_guard
from suture.judge.split.wire import FrameStream

PROGRAM_NAME = "<test>"
"""The file name that the program's stack frames show."""
WRITABLE_FOLDERS = (".", "/tmp", "/dev/shm")
"""Folders in the sandbox in which a test may leave files."""
SET_DUMPABLE = 4
"""`PR_SET_DUMPABLE` of linux/prctl.h; Python's library has no `prctl`."""


def run_program(request: dict[str, Any], ask: Ask) -> dict[str, Any]:
    """Run one test program.

    Args:
        request: The fields `source`, `names` and `expects` of a `ProgramPlan`, and `protects_arguments`:
            whether arguments keep their values, except for variables that the program inspects on the lines
            `failed_lines`.

    Returns:
        `passed`, whether the program passed. If it did not, also `fact`, or `live` with the reason why the
        program needs live objects. If the program left an answer to compare, also `digest`, the pair
        (digest, text) that `digest_answer` returns. `changing_call` is the first call that changed something
        that the program can still reach; missing if none did. If a program with protected arguments failed,
        `failed_lines` are the lines, and `joint` is whether one of them checks an answer and an argument
        together.
    """
    NeedsLiveObjects.reasons.clear()
    outcome = _run(request, ask)
    if NeedsLiveObjects.reasons:
        return {"passed": False, "live": NeedsLiveObjects.reasons[0]}
    return outcome


def _run(request: dict[str, Any], ask: Ask) -> dict[str, Any]:
    source = request["source"]
    recorder = AssertRecorder(guard_number=choose_number_guard(source))
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    fault: BaseException | None = None
    outcome: dict[str, Any]
    remote = RemoteCandidate(ask, recorder, PROGRAM_NAME, source, frozenset(request["expects"]))
    with FrameworkFailures(source) as failures:
        try:
            code = compile_program(source, PROGRAM_NAME, recorder)
            targets = request["names"].items()
            candidate_names = [name for name, target in targets if _bind_name(module, name, remote, target)]
            if request.get("protects_arguments"):
                remote.argument_use = find_argument_use(
                    ast.parse(source), candidate_names, request["failed_lines"]
                )
            setattr(module, RECORDER_NAME, recorder)
            exec(code, module.__dict__)
            digest = digest_answer(*vars(module)[ANSWER_NAME]) if ANSWER_NAME in vars(module) else None
        except BaseException as raised:
            fault, digest = raised, None
    ended_well = recorder.ended_well(fault)
    if ended_well and remote.request_count and not failures.seen:
        outcome = {"passed": True} if digest is None else {"passed": True, "digest": digest}
        if remote.changing_call and has_variables(ast.parse(source)):
            outcome["changing_call"] = remote.changing_call
        return outcome
    fault = recorder.find_cause(fault)
    outcome = {"passed": False}
    if remote.argument_use is not None:
        traces: list[types.TracebackType | None] = [*failures.tracebacks]
        if fault is not None and not traces:
            traces = [fault.__traceback__]
        frames = [list_program_frames(trace, PROGRAM_NAME)[-1:] for trace in traces]
        outcome["failed_lines"] = sorted({line for innermost in frames for _, line in innermost})
        outcome["joint"] = any(map(remote.argument_use.is_joint, outcome["failed_lines"]))
    if fault is None or ended_well:
        reason = failures.seen[0] if failures.seen else "the test does not use the code under test"
        return {**outcome, "fact": {"exception": reason}}
    fact: dict[str, Any] = dict(explain_failure(fault, recorder, source, PROGRAM_NAME))
    if isinstance(fault, CandidateDied):
        fact["exception"] = str(fault)
    fact["file"], fact["line"] = getattr(fault, "suture_place", ("", None))
    return {**outcome, "fact": fact}


def _bind_name(module: types.ModuleType, name: str, remote: RemoteCandidate, target: dict[str, Any]) -> bool:
    """Bind a name of the program to what it stands for; a name that the candidate lacks stays undefined.

    Returns:
        Whether the name is the candidate's, and not the standard library's.
    """
    library = importlib.import_module(target["library"]) if "library" in target else None
    if library is not None and all(hasattr(library, attribute) for attribute in target["uses"]):
        setattr(module, name, library if library.__name__ == name else getattr(library, name))
        return False
    if target["kind"] == "function":
        # Bound without asking, so that the candidate cannot say that the name is something else.
        function = RemoteFunction(remote, {"module": target["modules"][0], "name": target["name"]})
        setattr(module, name, function)
    else:
        with contextlib.suppress(NameMissing):
            setattr(module, name, remote.look_up(target["kind"], target["modules"], target["name"]))
    return True


def main() -> None:
    """Serve one verdict after another, each in its own process, until the host closes the channel.

    Tests may send their own messages to the host. So a verdict begins with a key from the host and is over
    when the key comes back. Only this process can send it: the process that runs the tests is forked before
    the key arrives, and cannot read this process. If the tests leave a file or a process behind, the judge
    ends without sending the key, and the host does not use it again.
    """
    stream = FrameStream()
    set_readable(readable=False)
    clean_surroundings = list_surroundings()
    while True:
        start_pipe, start_signal = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(start_signal)
            may_start = os.read(start_pipe, 1)  # empty if this judge ended without another verdict
            os.close(start_pipe)
            if may_start:
                serve_verdict(stream)
            os._exit(0)
        os.close(start_pipe)
        start = stream.receive()
        if start is None:
            os._exit(0)
        os.write(start_signal, b"1")
        os.close(start_signal)
        status = os.waitpid(pid, 0)[1]
        if status or list_surroundings() != clean_surroundings:
            os._exit(1)
        stream.send({"over": start["key"]})


def serve_verdict(stream: FrameStream) -> None:
    """Run the programs of one verdict, until the host sends a message without a program."""
    set_readable(readable=True)  # the default of every program

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


def set_readable(*, readable: bool) -> None:
    """Set whether other processes may read this process's memory."""
    if _load_c_library().prctl(SET_DUMPABLE, int(readable), 0, 0, 0) != 0:
        raise OSError("PR_SET_DUMPABLE")


@cache
def _load_c_library() -> Any:
    import ctypes

    return ctypes.CDLL(None)


def list_surroundings() -> list[list[str]]:
    """Return the entries of writable folders and all processes, each twice.

    A single listing can miss a process that keeps forking.
    """
    listings = []
    for _ in range(2):
        listings += [sorted(os.listdir(folder)) for folder in WRITABLE_FOLDERS]
        listings.append(sorted(name for name in os.listdir("/proc") if name.isdigit()))
    return listings
