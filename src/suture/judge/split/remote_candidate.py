"""The candidate as the judge reaches it: calls go out as typed data, and answers come back.

Runs inside the sandbox, in the judge. `proxies.py` holds the stand-ins for answers that are no data.
"""

from __future__ import annotations

import builtins
import math
import re
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

from suture.judge.split.assert_recorder import AssertRecorder, RecordedCall, shorten_repr
from suture.judge.split.codec import Encoder, decode
from suture.judge.split.proxies import (
    DataSubclass,
    NeedsLiveObjects,
    NotANumber,
    OpaqueObject,
    RemoteFunction,
    RemoteIterator,
    UnfitAnswer,
    mentions_nan,
)
from suture.judge.split.wire import BadFrame, NotData

Ask = Callable[[dict[str, Any]], dict[str, Any]]

ENDINGS = frozenset(
    ("GeneratorExit", "KeyboardInterrupt", "StopAsyncIteration", "StopIteration", "SystemExit")
)

CATCH_ALL = frozenset(("AssertionError", "BaseException", "Exception"))
"""Under another name, one of these would catch the test's own failed asserts."""

RUNNERS = frozenset(("doctest", "unittest"))
"""Modules whose exceptions tell a test runner what to do with a test."""


class CandidateDied(BaseException):
    """The candidate's process ended during a call; no `except Exception` of a test hides it."""


class NameMissing(Exception):
    """The candidate has no such name."""


class RemoteCandidate:
    """The candidate of one program, as seen from the judge.

    Args:
        ask: Sends a request and returns the reply.
        recorder: Records every call and its answer, to explain a failed assert.
        program: The file name that the program's stack frames show.
        source: The program's text; a library exception that it does not name is not passed on as such.
        expects: The exceptions of `ENDINGS` that the program expects.

    Attributes:
        request_count: How often the candidate was asked for more than what a name stands for.
    """

    def __init__(
        self, ask: Ask, recorder: AssertRecorder, program: str, source: str, expects: frozenset[str]
    ) -> None:
        self._ask = ask
        self._recorder = recorder
        self._program = program
        self._source = source
        self._expects = expects
        self._opaque: dict[int, Any] = {}
        self._nan = math.nan if mentions_nan(source) else NotANumber("nan")
        self.request_count = 0
        self.exceptions: dict[str, type[BaseException]] = {}

    def call(self, target: dict[str, Any], name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function of the candidate; the arguments then are what the candidate made of them.

        If the test computes its expected value from the arguments, they stay as they were.
        """
        encoder = Encoder(_to_handle)
        try:
            sent = {"op": "call", **target, "value": encoder.encode((args, kwargs)), "nodes": encoder.nodes()}
        except NotData as fault:
            raise NeedsLiveObjects(f"{name}() is given {fault}") from fault
        call = RecordedCall(show=lambda: _show_call(name, sent, self._from_handle), result=None)
        known = encoder.objects
        if self._recorder.protected_lines and self._line() in self._recorder.protected_lines:
            known = decode(sent["value"], sent["nodes"], self._from_handle)[1]
        try:
            call.result = self._ask_for(sent, known)
        except BaseException as fault:
            fault.suture_call = call.show  # type: ignore[attr-defined]  # read by explain_failure
            self._recorder.record_candidate_exception(fault)
            raise
        self._recorder.calls.append(call)
        return call.result

    def _line(self) -> int:
        """Return the line of the program that calls the candidate."""
        frame: FrameType | None = sys._getframe(2)
        while frame is not None and frame.f_code.co_filename != self._program:
            frame = frame.f_back
        return 0 if frame is None else frame.f_lineno

    def look_up(self, kind: str, modules: Sequence[str], name: str) -> Any:
        """Return what a name stands for: data, or a stand-in for a function or an exception class.

        Args:
            kind: `exception` if the test uses the name as one.
            modules: Modules that may have the name; the first one that has it counts.
            name: The name.

        Raises:
            NameMissing: None of the modules has the name.
        """
        for module in modules:
            where = {"module": module, "name": name}
            reply = self._ask({"op": "get", **where})
            if "died" in reply:
                raise CandidateDied(reply["died"])
            if "raised" in reply:
                continue
            if kind == "exception" and "exception" in reply:
                self.request_count += 1
                return self._named_exception(name, *reply["exception"])
            if reply.get("callable"):
                return RemoteFunction(self, where)
            value = self._value(reply, [])
            self.request_count += 1
            if type(value) is OpaqueObject:
                value.__dict__["_called"] = False
            return value
        raise NameMissing(name)

    def _named_exception(self, name: str, module: str, *kinds: str) -> type[BaseException]:
        """Return the class for an exception class of the candidate: a builtin, or a new one of that name."""
        if module == "builtins" and kinds[0] not in CATCH_ALL:
            known = self._builtin_exception(kinds[0])
            if known is not None:
                return known
        self.exceptions[name] = made = self.exception(kinds[0], list(kinds[1:]))
        return made

    def step(self, op: str, handle: int) -> Any:
        """Return the next item of an iterator, or an iterator over an iterable."""
        return self._ask_for({"op": op, "handle": handle}, [])

    def _ask_for(self, request: dict[str, Any], known: list[Any]) -> Any:
        self.request_count += 1
        return self._value(self._ask(request), known)

    def _value(self, reply: dict[str, Any], known: list[Any]) -> Any:
        if "died" in reply:
            raise CandidateDied(reply["died"])
        try:
            value = decode(reply["value"], reply["nodes"], self._from_handle, known, self._nan)[0]
        except BadFrame as fault:
            raise UnfitAnswer(f"the answer is no data: {fault}") from fault
        if "raised" in reply:
            raise self._exception(reply["raised"])
        return value

    def _from_handle(self, value: list[Any]) -> Any:
        tag, handle, *more = value
        if tag == "k":
            return self._kin_of(handle, *more)
        if handle not in self._opaque:
            made = RemoteIterator if tag == "it" else OpaqueObject
            self._opaque[handle] = made(self, handle, *more)
        return self._opaque[handle]

    def _kin_of(self, handle: int, kind: str, base: Any) -> Any:
        """Return the stand-in for an instance of a data subclass; the same object each time."""
        known = self._opaque.get(handle)
        if not isinstance(known, DataSubclass) or not isinstance(known, type(base)):
            made = type(str(kind), (DataSubclass, type(base)), {})(base)
            made.suture_handle = handle
            self._opaque[handle] = known = made
        return known

    def _exception(self, described: dict[str, Any]) -> BaseException:
        kind = self._exception_type(described)
        try:
            args, state = decode(described["args"], described["nodes"], self._from_handle, nan=self._nan)[0]
        except Exception:
            args, state = (described["text"],), {}
        try:
            fault = kind(*args)
        except Exception:
            fault = kind.__new__(kind)
            fault.args = (described["text"],)
        if type(state) is dict:
            fault.__dict__.update({n: v for n, v in state.items() if type(n) is str and n.isidentifier()})
        fault.suture_place = (described["file"], described["line"])  # type: ignore[attr-defined]  # read by run_program
        return fault

    def _exception_type(self, described: dict[str, Any]) -> type[BaseException]:
        name, module = described["type"], described["module"]
        known = None
        if module == "builtins":
            known = self._builtin_exception(name)
        elif module in sys.stdlib_module_names and module.partition(".")[0] not in RUNNERS:
            # Only a module that is already loaded counts, and only a class that the test's text names.
            known = vars(sys.modules[module]).get(name) if module in sys.modules else None
            named = re.search(rf"\b{re.escape(name)}\b", self._source)
            fit = isinstance(known, type) and issubclass(known, Exception)
            known = known if named and fit else None
        return known or self.exception(name, described["bases"])

    def _builtin_exception(self, name: str) -> type[BaseException] | None:
        kind = vars(builtins).get(name)
        if not isinstance(kind, type) or not issubclass(kind, BaseException):
            return None
        fit = name in self._expects if name in ENDINGS else issubclass(kind, Exception)
        return kind if fit else None

    def exception(self, name: str, bases: list[str]) -> type[BaseException]:
        """Return the class that stands for an exception class of the candidate."""
        if name not in self.exceptions:
            parents = (self.exceptions.get(base) or self._builtin_exception(base) for base in bases)
            parent = next((kind for kind in parents if kind is not None), Exception)
            self.exceptions[name] = type(name, (parent,), {})
        return self.exceptions[name]


def _to_handle(thing: Any) -> list[Any]:
    if type(thing) is NotANumber:
        return ["f", "nan"]
    if type(thing) in (OpaqueObject, RemoteIterator) or isinstance(thing, DataSubclass):
        return ["h", thing.suture_handle]
    raise NotData(f"an object of type {type(thing).__name__}")


def _show_call(name: str, sent: dict[str, Any], handle: Callable[[list[Any]], Any]) -> str:
    # Decoded from the frame that was sent, because the arguments may have changed since.
    def show(value: list[Any]) -> Any:
        return handle(["o", *value[1:], "", True])

    args, kwargs = decode(sent["value"], sent["nodes"], show)[0]
    shown = [shorten_repr(arg) for arg in args] + [
        f"{key}={shorten_repr(arg)}" for key, arg in kwargs.items()
    ]
    return f"{name}({', '.join(shown)})"
