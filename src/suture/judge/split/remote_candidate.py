"""The judge's view of the candidate: it sends calls as typed data and turns the answers into values.

`wire.py` describes the data, and `proxies.py` holds the stand-ins for objects that are not data. Runs inside
the sandbox, in the judge.
"""

from __future__ import annotations

import builtins
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any

from suture.judge.split.argument_copies import ArgumentCopies, find_exposed
from suture.judge.split.argument_protection import ArgumentUse
from suture.judge.split.assert_recorder import AssertRecorder, RecordedCall, shorten_repr
from suture.judge.split.codec import Encoder, decode
from suture.judge.split.proxies import (
    DataSubclass,
    NeedsLiveObjects,
    OpaqueObject,
    RemoteFunction,
    RemoteIterator,
    UnfitAnswer,
)
from suture.judge.split.special_numbers import STAND_INS, choose_number_guard, write_number
from suture.judge.split.wire import BadFrame, NotData

Ask = Callable[[dict[str, Any]], dict[str, Any]]

CONTROL_EXCEPTIONS = frozenset(
    ("GeneratorExit", "KeyboardInterrupt", "StopAsyncIteration", "StopIteration", "SystemExit")
)
"""Exceptions that end a loop or a program. Only a test that expects one receives it from the candidate."""

CATCH_ALL = frozenset(("AssertionError", "BaseException", "Exception"))
"""Exception classes that catch a failed assert. If the candidate has one under another name, the test must not
catch its own failed asserts with it."""

RUNNERS = frozenset(("doctest", "unittest"))
"""Modules whose exceptions tell a test runner how to treat a test."""


class CandidateDied(BaseException):
    """The candidate's process ended during a call. It is not an `Exception`, so that tests do not catch it."""


class NameMissing(Exception):
    """The candidate has no such name."""


class RemoteCandidate:
    """The candidate of one program, as seen from the judge.

    Args:
        source: The program's source. An exception class of the standard library reaches the test as that class only if
            the source names it.
        expects: The exceptions of `CONTROL_EXCEPTIONS` that the program expects.

    Attributes:
        argument_use: If set, the candidate changes copies of the arguments, and only the arguments that
            `find_exposed` selects receive the changes. Otherwise all arguments do.
        changing_call: The first call that changed something that the test holds, as source; empty if none did.
        request_count: How many values the candidate sent: results, items of iterators, data that names refer to. A
            program that passes without any does not use the candidate.
        exceptions: Name of an exception class of the candidate -> the class that stands for it.
    """

    def __init__(
        self, ask: Ask, recorder: AssertRecorder, program: str, source: str, expects: frozenset[str]
    ) -> None:
        self._ask = ask
        self._recorder = recorder
        self._program = program
        self._source = source
        self._expects = expects
        self._proxies: dict[int, Any] = {}
        """Handle -> the stand-in for that object."""
        self._read_number = choose_number_guard(source)
        self.argument_use: ArgumentUse | None = None
        self._copies = ArgumentCopies(_write_foreign, self._read_foreign, self._read_number)
        self.request_count = 0
        self.changing_call = ""
        self.exceptions: dict[str, type[BaseException]] = {}

    def call(self, target: dict[str, Any], name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function of the candidate and change the arguments in place as the candidate did.

        If the candidate receives copies, only exposed arguments change (see argument_copies.py).

        Args:
            target: `module` and `name` of the function.

        Raises:
            NeedsLiveObjects: An argument is not data.
            CandidateDied: The candidate's process ended.
        """
        arguments: Any = (args, kwargs)
        originals: list[Any] = []
        encoder = Encoder(_write_foreign)
        try:
            if self.argument_use is not None:
                arguments, originals = self._copies.copy(arguments)
            value = encoder.encode(arguments)
            request = {"op": "call", **target, "value": value, "nodes": encoder.new_nodes()}
        except NotData as fault:
            raise NeedsLiveObjects(f"{name}() is given {fault}") from fault
        call = RecordedCall(render=lambda: _render_call(name, request, self._read_foreign), result=None)
        self.request_count += 1
        reply = self._ask(request)
        known = encoder.objects
        changed = [known[node[0]] for node in reply.get("nodes", ()) if node[0] < len(known)]
        if changed:
            self.changing_call = self.changing_call or call.render()
        try:
            call.result = self._read_reply(reply, known)
        except BaseException as fault:
            fault.suture_call = call.render  # type: ignore[attr-defined]  # read by explain_failure
            self._recorder.record_candidate_exception(fault)
            raise
        finally:
            if self.argument_use is not None:
                differing = self._copies.find_differing(originals, changed)
                # The frame of `call`'s caller is that of `RemoteFunction.__call__`, and the test's is above it.
                frame = sys._getframe(2)
                exposed = (
                    find_exposed(differing, self.argument_use, frame, self._program) if differing else []
                )
                call.result = self._copies.restore(call.result, originals, exposed)
        self._recorder.calls.append(call)
        return call.result

    def look_up(self, kind: str, modules: Sequence[str], name: str) -> Any:
        """Return what a name stands for: data, or a stand-in for a function or an exception class.

        Args:
            kind: `exception` if the test uses the name as one.
            modules: Modules that may have the name; the first one that has it counts.

        Raises:
            NameMissing: None of the modules has the name.
        """
        for module in modules:
            target = {"module": module, "name": name}
            reply = self._ask({"op": "get", **target})
            if "died" in reply:
                raise CandidateDied(reply["died"])
            if "raised" in reply:
                continue
            if kind == "exception" and "exception" in reply:
                self.request_count += 1
                return self._make_named_exception(name, *reply["exception"])
            if reply.get("callable"):
                return RemoteFunction(self, target)
            value = self._read_reply(reply)
            self.request_count += 1
            if type(value) is OpaqueObject:  # the name is bound to no function, so calling it is a mistake
                value.__dict__["_may_be_called"] = False
            return value
        raise NameMissing(name)

    def _make_named_exception(self, name: str, module: str, *class_names: str) -> type[BaseException]:
        """Return the class that stands for an exception class of the candidate."""
        if module == "builtins" and class_names[0] not in CATCH_ALL:
            builtin = self._find_builtin_exception(class_names[0])
            if builtin is not None:
                return builtin
        self.exceptions[name] = self.exception(class_names[0], list(class_names[1:]))
        return self.exceptions[name]

    def step(self, op: str, handle: int) -> Any:
        """Return the next item of an iterator, or an iterator over an iterable."""
        return self._request({"op": op, "handle": handle})

    def _request(self, request: dict[str, Any]) -> Any:
        self.request_count += 1
        return self._read_reply(self._ask(request))

    def _read_reply(self, reply: dict[str, Any], known: Sequence[Any] = ()) -> Any:
        """Return the value of a reply.

        Args:
            known: The containers of the request, which the reply may change.
        """
        if "died" in reply:
            raise CandidateDied(reply["died"])
        try:
            known_by_id = dict(enumerate(known))
            value = decode(
                reply["value"], reply["nodes"], self._read_foreign, known_by_id, self._read_number
            )[0]
        except BadFrame as fault:
            raise UnfitAnswer(f"the answer is no data: {fault}") from fault
        if "raised" in reply:
            raise self._make_exception(reply["raised"])
        return value

    def _read_foreign(self, value: list[Any]) -> Any:
        """Return the stand-in for an object of the candidate; the same object each time."""
        tag, handle, *details = value
        if tag == "k":
            return self._make_subclass_instance(handle, *details)
        if handle not in self._proxies:
            proxy_class = RemoteIterator if tag == "it" else OpaqueObject
            self._proxies[handle] = proxy_class(self, handle, *details)
        return self._proxies[handle]

    def _make_subclass_instance(self, handle: int, type_name: str, base_data: Any) -> Any:
        base = type(base_data)
        instance = self._proxies.get(handle)
        is_known = isinstance(instance, DataSubclass) and isinstance(instance, base)
        if is_known and base in (list, dict, set):  # the test may hold it, and its content changes
            self.changing_call = self.changing_call or f"a call that answers {type_name}"
            is_known = self.argument_use is None
        if not is_known:
            instance = type(str(type_name), (DataSubclass, base), {})(base_data)
            instance.suture_handle = handle
            self._proxies[handle] = instance
        return instance

    def _make_exception(self, described: dict[str, Any]) -> BaseException:
        """Return the exception that `candidate_program.describe_exception` describes."""
        exception_class = self._find_exception_class(described)
        try:
            args, state = decode(
                described["args"], described["nodes"], self._read_foreign, None, self._read_number
            )[0]
        except Exception:
            args, state = (described["text"],), {}
        try:
            fault = exception_class(*args)
        except Exception:
            fault = exception_class.__new__(exception_class)
            fault.args = (described["text"],)
        if type(state) is dict:
            for name, value in state.items():
                if type(name) is str and name.isidentifier():
                    fault.__dict__[name] = value
        fault.suture_place = (described["file"], described["line"])  # type: ignore[attr-defined]  # read by run_program
        return fault

    def _find_exception_class(self, described: dict[str, Any]) -> type[BaseException]:
        name, module = described["type"], described["module"]
        exception_class: type[BaseException] | None = None
        if module == "builtins":
            exception_class = self._find_builtin_exception(name)
        elif module in sys.stdlib_module_names and module.partition(".")[0] not in RUNNERS:
            exception_class = self._find_library_exception(module, name)
        return exception_class or self.exception(name, described["bases"])

    def _find_library_exception(self, module: str, name: str) -> type[Exception] | None:
        """Return an exception class of a module that is already loaded, if the test's source names the class."""
        member = vars(sys.modules[module]).get(name) if module in sys.modules else None
        is_exception = isinstance(member, type) and issubclass(member, Exception)
        return member if is_exception and re.search(rf"\b{re.escape(name)}\b", self._source) else None

    def _find_builtin_exception(self, name: str) -> type[BaseException] | None:
        """Return a builtin exception class, if the test may receive it from the candidate."""
        builtin = vars(builtins).get(name)
        if not isinstance(builtin, type) or not issubclass(builtin, BaseException):
            return None
        may_pass = name in self._expects if name in CONTROL_EXCEPTIONS else issubclass(builtin, Exception)
        return builtin if may_pass else None

    def exception(self, name: str, bases: list[str]) -> type[BaseException]:
        """Return the class that stands for an exception class of the candidate."""
        if name not in self.exceptions:
            known_bases = (self.exceptions.get(base) or self._find_builtin_exception(base) for base in bases)
            parent = next((base for base in known_bases if base is not None), Exception)
            self.exceptions[name] = type(name, (parent,), {})
        return self.exceptions[name]


def _write_foreign(value: Any) -> list[Any]:
    if type(value) in STAND_INS:
        return write_number(value)
    if type(value) in (OpaqueObject, RemoteIterator) or isinstance(value, DataSubclass):
        return ["h", value.suture_handle]
    raise NotData(f"an object of type {type(value).__name__}")


def _render_call(name: str, request: dict[str, Any], read_foreign: Callable[[list[Any]], Any]) -> str:
    # Decoded from the request, because the arguments may have changed since.
    def read_own_object(value: list[Any]) -> Any:
        return read_foreign(["o", *value[1:], "", True])

    args, kwargs = decode(request["value"], request["nodes"], read_own_object)[0]
    rendered = [shorten_repr(arg) for arg in args]
    rendered += [f"{key}={shorten_repr(arg)}" for key, arg in kwargs.items()]
    return f"{name}({', '.join(rendered)})"
