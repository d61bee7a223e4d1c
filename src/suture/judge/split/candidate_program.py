"""The candidate's side of a split verdict: load the candidate's code and answer calls with data.

Runs inside the sandbox, in a process that holds the candidate's code and no test. Whatever the candidate does
to this process, it can only give wrong answers: nothing here decides anything.
"""

from __future__ import annotations

import importlib
import itertools
import os
import sys
import types
from typing import Any

from suture.judge.split.codec import Encoder, decode
from suture.judge.split.wire import FrameStream, NotData

BASE_TYPES = 8
"""How many base classes of an exception are named, so that `pytest.raises` can match one of them."""


class CandidateModules:
    """Answers the host's requests about one candidate's modules.

    Args:
        root: The folder of the candidate's files.
    """

    def __init__(self, root: str) -> None:
        self.root = root
        self._live: list[Any] = []
        self._place_of: dict[int, int] = {}

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to one request; an exception of the candidate is an answer too.

        Raises:
            BaseException: The candidate raised something that is no `Exception`; it ends the process.
        """
        known: list[Any] = []
        try:
            result = getattr(self, f"_{request['op']}")(request, known)
            return self._reply(result, known, request)
        except (Exception, SystemExit, KeyboardInterrupt, GeneratorExit) as fault:
            described = describe_exception(fault, self.root)
            return {**self._reply(None, known, request), "raised": described}

    def _load(self, request: dict[str, Any], known: list[Any]) -> None:
        importlib.import_module(request["module"])

    def _get(self, request: dict[str, Any], known: list[Any]) -> Any:
        return self._named(request)

    def _call(self, request: dict[str, Any], known: list[Any]) -> Any:
        (args, kwargs), objects = decode(request["value"], request["nodes"], self._from_handle)
        known.extend(objects)
        return self._named(request)(*args, **kwargs)

    def _iter(self, request: dict[str, Any], known: list[Any]) -> Any:
        return iter(self._live[request["handle"]])

    def _next(self, request: dict[str, Any], known: list[Any]) -> Any:
        # A tuple of one item, or an empty one at the end.
        return tuple(itertools.islice(self._live[request["handle"]], 1))

    def _named(self, request: dict[str, Any]) -> Any:
        module, name = importlib.import_module(request["module"]), request["name"]
        try:
            return getattr(module, name)
        except AttributeError:
            raise NameError(f"name {name!r} is not defined") from None

    def _reply(self, result: Any, known: list[Any], request: dict[str, Any]) -> dict[str, Any]:
        encoder = Encoder(self._to_handle, known, with_kin=True)
        value = encoder.encode(result)
        nodes = encoder.changed(request.get("nodes", []))
        reply = {"value": value, "nodes": nodes, "callable": request["op"] == "get" and callable(result)}
        if reply["callable"] and isinstance(result, type) and issubclass(result, BaseException):
            reply["exception"] = [str(result.__module__), *_names_of(result.__mro__)]
        return reply

    def _from_handle(self, value: list[Any]) -> Any:
        return self._live[value[1]]

    def _keep(self, thing: Any) -> int:
        if id(thing) not in self._place_of:  # the object is kept alive, so that its id stays unique
            self._place_of[id(thing)] = len(self._live)
            self._live.append(thing)
        return self._place_of[id(thing)]

    def _to_handle(self, thing: Any) -> list[Any]:
        name = type(thing).__name__
        if hasattr(type(thing), "__next__"):
            return ["it", self._keep(thing), name]
        return ["o", self._keep(thing), name, _truth_of(thing)]


def _truth_of(thing: Any) -> bool | None:
    """Return whether an object is true; `None` for an object that is no answer to a yes-or-no question."""
    if callable(thing) or thing is NotImplemented or isinstance(thing, (BaseException, types.ModuleType)):
        return None
    if hasattr(type(thing), "__await__"):
        return None
    try:
        return bool(thing)
    except Exception:
        return True


def describe_exception(fault: BaseException, root: str) -> dict[str, Any]:
    """Return an exception as data: type, base classes, message, arguments and the line where it arose."""
    try:
        text = str(fault.msg if isinstance(fault, SyntaxError) else fault)[:2000]
    except Exception:
        text = ""
    file, line = find_candidate_line(fault, root)
    described: dict[str, Any] = {
        "type": type(fault).__name__,
        "module": str(type(fault).__module__),
        "bases": _names_of(type(fault).__mro__[1:]),
        "text": text,
        "file": file,
        "line": line,
    }
    try:
        encoder = Encoder(_refuse)
        described["args"] = encoder.encode((tuple(fault.args), _state_of(fault)))
        described["nodes"] = encoder.nodes()
    except (NotData, RecursionError):
        described["args"], described["nodes"] = None, []
    return described


def _state_of(fault: BaseException) -> dict[str, Any]:
    """Return the attributes and properties of an exception that are plain data."""
    own = [kind for kind in type(fault).__mro__ if kind.__module__ != "builtins"]
    computed = {n for kind in own for n, part in vars(kind).items() if isinstance(part, property)}
    state = {}
    for name in (*computed, *vars(fault)):
        try:
            value = getattr(fault, name)
            Encoder(_refuse).encode(value)
        except Exception:
            continue  # it is no data, or reading it fails
        state[name] = value
    return state


def _names_of(kinds: tuple[type, ...]) -> list[str]:
    return [kind.__name__ for kind in kinds[:BASE_TYPES]]


def _refuse(thing: Any) -> list[Any]:
    raise NotData(f"an object of type {type(thing).__name__}")


def find_candidate_line(fault: BaseException, root: str) -> tuple[str, int | None]:
    """Return the deepest file and line of the candidate in a traceback; empty if there is none."""
    prefix = root + os.sep
    if isinstance(fault, SyntaxError) and str(fault.filename).startswith(prefix):
        return str(fault.filename)[len(prefix) :], fault.lineno
    found: tuple[str, int | None] = ("", None)
    trace = fault.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if file.startswith(prefix) and not file.startswith(prefix + "_suture"):
            found = (file[len(prefix) :], trace.tb_lineno)
        trace = trace.tb_next
    return found


def isolate_imports(root: str) -> None:
    """Let the candidate import from its own folder, and hide Suture's modules from it."""
    sys.path[:] = [root, *(path for path in sys.path if not path.startswith(root))]
    for name in [name for name in sys.modules if name.partition(".")[0] == "suture"]:
        del sys.modules[name]  # the candidate's own project may have that name


def main() -> None:
    """Answer requests until the host closes the channel."""
    stream = FrameStream()
    root = os.getcwd()
    isolate_imports(root)
    candidate = CandidateModules(root)
    while True:
        request = stream.receive()
        if request is None:
            stream.flush_prints()
            os._exit(0)  # skips the candidate's threads and exit hooks
        try:
            answer = candidate.answer(request)
        except BaseException as fault:
            answer = {"died": f"{type(fault).__name__}: {fault}"[:500], "value": None, "nodes": []}
        stream.flush_prints()
        _send(stream, answer)


def _send(stream: FrameStream, answer: dict[str, Any]) -> None:
    try:
        stream.send(answer)
    except NotData as fault:
        stream.send({"died": str(fault), "value": None, "nodes": []})
