"""The candidate's side of a split verdict: it loads the candidate's code and answers calls with data.

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

MAX_BASE_NAMES = 8
"""Maximum number of base classes of an exception that are named, so that `pytest.raises` can match one of them. Chosen
by judgement; not measured."""


class CandidateModules:
    """Answers the host's requests about one candidate's modules."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._kept_objects: list[Any] = []
        """Objects that are not data; the handle of each is its position."""
        self._handles: dict[int, int] = {}
        """id() of a kept object -> its handle."""

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to one request; an exception of the candidate is an answer too.

        Args:
            request: `op` names the method that carries it out: `load`, `get`, `call`, `iter` or `next`. The
                other keys are that method's arguments.

        Raises:
            BaseException: The candidate raised something that is not an `Exception`; it ends the process.
        """
        known: list[Any] = []  # the containers among a call's arguments, whose changes are sent back
        try:
            result = getattr(self, f"_{request['op']}")(request, known)
            return self._reply(result, known, request)
        except (Exception, SystemExit, KeyboardInterrupt, GeneratorExit) as fault:
            described = describe_exception(fault, self.root)
            return {**self._reply(None, known, request), "raised": described}

    def _load(self, request: dict[str, Any], known: list[Any]) -> None:
        importlib.import_module(request["module"])

    def _get(self, request: dict[str, Any], known: list[Any]) -> Any:
        return self._get_attribute(request)

    def _call(self, request: dict[str, Any], known: list[Any]) -> Any:
        (args, kwargs), objects = decode(request["value"], request["nodes"], self._read_foreign)
        known.extend(objects)
        return self._get_attribute(request)(*args, **kwargs)

    def _iter(self, request: dict[str, Any], known: list[Any]) -> Any:
        return iter(self._kept_objects[request["handle"]])

    def _next(self, request: dict[str, Any], known: list[Any]) -> Any:
        """Return a tuple of the next item, or an empty one at the end."""
        return tuple(itertools.islice(self._kept_objects[request["handle"]], 1))

    def _get_attribute(self, request: dict[str, Any]) -> Any:
        module, name = importlib.import_module(request["module"]), request["name"]
        try:
            return getattr(module, name)
        except AttributeError:
            raise NameError(f"name {name!r} is not defined") from None

    def _reply(self, result: Any, known: list[Any], request: dict[str, Any]) -> dict[str, Any]:
        encoder = Encoder(self._write_foreign, known, with_subclasses=True)
        value = encoder.encode(result)
        nodes = encoder.changed_nodes(request.get("nodes", []))
        reply = {"value": value, "nodes": nodes, "callable": request["op"] == "get" and callable(result)}
        if reply["callable"] and isinstance(result, type) and issubclass(result, BaseException):
            reply["exception"] = [str(result.__module__), *_get_class_names(result.__mro__)]
        return reply

    def _read_foreign(self, value: list[Any]) -> Any:
        return self._kept_objects[value[1]]

    def _keep(self, value: Any) -> int:
        """Return the handle of an object. The object stays alive, so that its id() stays unique."""
        if id(value) not in self._handles:
            self._handles[id(value)] = len(self._kept_objects)
            self._kept_objects.append(value)
        return self._handles[id(value)]

    def _write_foreign(self, value: Any) -> list[Any]:
        name = type(value).__name__
        if hasattr(type(value), "__next__"):
            return ["it", self._keep(value), name]
        return ["o", self._keep(value), name, _get_truth(value)]


def _get_truth(value: Any) -> bool | None:
    """Return whether an object is true; `None` for one that a test cannot mean as a truth value."""
    if callable(value) or value is NotImplemented or isinstance(value, (BaseException, types.ModuleType)):
        return None
    if hasattr(type(value), "__await__"):  # a coroutine that the candidate forgot to await
        return None
    try:
        return bool(value)
    except Exception:
        return True


def describe_exception(fault: BaseException, root: str) -> dict[str, Any]:
    """Return an exception as data: type, base classes, message, arguments and the line where it arose."""
    try:
        # The length is chosen by judgement; not measured.
        text = str(fault.msg if isinstance(fault, SyntaxError) else fault)[:2000]
    except Exception:
        text = ""
    file, line = find_candidate_line(fault, root)
    described: dict[str, Any] = {
        "type": type(fault).__name__,
        "module": str(type(fault).__module__),
        "bases": _get_class_names(type(fault).__mro__[1:]),
        "text": text,
        "file": file,
        "line": line,
    }
    try:
        encoder = Encoder(_refuse)
        described["args"] = encoder.encode((tuple(fault.args), _get_state(fault)))
        described["nodes"] = encoder.new_nodes()
    except (NotData, RecursionError):
        described["args"], described["nodes"] = None, []
    return described


def _get_state(fault: BaseException) -> dict[str, Any]:
    """Return the attributes and properties of an exception that are plain data."""
    classes = [cls for cls in type(fault).__mro__ if cls.__module__ != "builtins"]
    properties = {
        name for cls in classes for name, member in vars(cls).items() if isinstance(member, property)
    }
    state = {}
    for name in (*properties, *vars(fault)):
        try:
            value = getattr(fault, name)
            Encoder(_refuse).encode(value)
        except Exception:
            continue  # it is not data, or reading it fails
        state[name] = value
    return state


def _get_class_names(classes: tuple[type, ...]) -> list[str]:
    return [cls.__name__ for cls in classes[:MAX_BASE_NAMES]]


def _refuse(value: Any) -> list[Any]:
    raise NotData(f"an object of type {type(value).__name__}")


def find_candidate_line(fault: BaseException, root: str) -> tuple[str, int | None]:
    """Return the deepest file and line of the candidate in a traceback; `("", None)` if there is none."""
    prefix = root + os.sep
    if isinstance(fault, SyntaxError) and str(fault.filename).startswith(prefix):
        return str(fault.filename)[len(prefix) :], fault.lineno
    deepest: tuple[str, int | None] = ("", None)
    trace = fault.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if file.startswith(prefix) and not file.startswith(prefix + "_suture"):
            deepest = (file[len(prefix) :], trace.tb_lineno)
        trace = trace.tb_next
    return deepest


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
            # The length is chosen by judgement; not measured.
            answer = {"died": f"{type(fault).__name__}: {fault}"[:500], "value": None, "nodes": []}
        stream.flush_prints()
        try:
            stream.send(answer)
        except NotData as fault:
            stream.send({"died": str(fault), "value": None, "nodes": []})
