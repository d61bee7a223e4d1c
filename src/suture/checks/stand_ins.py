"""What stands in the judge for the candidate: its functions, iterators, exceptions, objects that are no data.

Runs behind the wall, in the judge. Each stand-in sends typed data out and gets typed data back; the
candidate's code is elsewhere.
"""

from __future__ import annotations

import builtins
import importlib
import sys
from collections.abc import Callable
from typing import Any, ClassVar

from suture.checks.asserts import Asserts, Call, shorten
from suture.checks.decoding import decode
from suture.checks.encoding import Encoder
from suture.checks.wire import BadFrame, NotData

__all__ = ["Ask", "CandidateDied", "Function", "NeedsLiveObjects", "Remote"]

Ask = Callable[[dict[str, Any]], dict[str, Any]]
DATA_TYPES = (
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    bytearray,
    tuple,
    list,
    set,
    frozenset,
    dict,
    range,
    slice,
)
DATA_ATTRIBUTES = frozenset(name for kind in DATA_TYPES for name in dir(kind)) - {"__call__"}


class CandidateDied(BaseException):
    """The candidate's process ended in the middle of a call; no `except Exception` of a test hides it."""


class NeedsLiveObjects(BaseException):
    """This program needs to share objects with the candidate; data is not enough.

    Raising one is remembered for the program: unittest swallows every exception of a test.
    """

    reasons: ClassVar[list[str]] = []

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reasons.append(reason)


class Unfit(Exception):
    """The candidate answered with something that is not data where only data could have passed."""


class Remote:
    """The candidate of one program, as seen from the judge.

    Args:
        ask: Sends a request and answers the reply.
        asserts: Is told of every call.
    """

    def __init__(self, ask: Ask, asserts: Asserts) -> None:
        self._ask = ask
        self._asserts = asserts
        self._opaque: dict[int, Any] = {}
        self.exceptions: dict[str, type[Exception]] = {}

    def call(self, target: dict[str, Any], name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function of the candidate; the arguments are then what the candidate made of them."""
        encoder = Encoder(_to_handle)
        try:
            sent = {"op": "call", **target, "value": encoder.encode((args, kwargs)), "nodes": encoder.nodes()}
        except NotData as fault:
            raise NeedsLiveObjects(f"{name}() is given {fault}") from fault
        call = Call(show=lambda: _show_call(name, sent, self._from_handle), result=None)
        try:
            call.result = self._ask_for(sent, encoder.objects)
        except BaseException as fault:
            fault.suture_call = call.show  # type: ignore[attr-defined]  # read by asserts.explain
            raise
        self._asserts.calls.append(call)
        return call.result

    def fetch(self, target: dict[str, Any]) -> Any:
        """The value of a name, or a stand-in where it is callable."""
        reply = self._ask({"op": "get", **target})
        if reply.get("callable"):
            return Function(self, target)
        return self._value(reply, [])

    def step(self, op: str, handle: int) -> Any:
        """Take the next item of an iterator, or an iterator of something iterable."""
        return self._ask_for({"op": op, "handle": handle}, [])

    def _ask_for(self, request: dict[str, Any], known: list[Any]) -> Any:
        return self._value(self._ask(request), known)

    def _value(self, reply: dict[str, Any], known: list[Any]) -> Any:
        if "died" in reply:
            raise CandidateDied(reply["died"])
        try:
            value = decode(reply["value"], reply["nodes"], self._from_handle, known)[0]
        except BadFrame as fault:
            raise Unfit(f"the answer is no data: {fault}") from fault
        if "raised" in reply:
            raise self._exception(reply["raised"])
        return value

    def _from_handle(self, value: list[Any]) -> Any:
        if value[1] not in self._opaque:
            made = Iterator if value[0] == "it" else Opaque
            self._opaque[value[1]] = made(self, *value[1:])
        return self._opaque[value[1]]

    def _exception(self, told: dict[str, Any]) -> Exception:
        kind = self._exception_type(told)
        try:
            args = decode(told["args"], told["nodes"], self._from_handle)[0]
            fault = kind(*args)
        except Exception:
            fault = kind.__new__(kind)
            fault.args = (told["text"],)
        fault.suture_place = (told["file"], told["line"])  # type: ignore[attr-defined]  # read by run_program
        return fault

    def _exception_type(self, told: dict[str, Any]) -> type[Exception]:
        name = told["type"]
        if told["module"] == "builtins" or told["module"] in sys.stdlib_module_names:
            kind = getattr(importlib.import_module(told["module"]), name, None)
            if isinstance(kind, type) and issubclass(kind, Exception):
                return kind
        return self.exception(name, told["bases"])

    def exception(self, name: str, bases: list[str]) -> type[Exception]:
        """A class that stands for an exception class of the candidate."""
        if name not in self.exceptions:
            parents = (self.exceptions.get(base) or getattr(builtins, base, None) for base in bases)
            fit = [kind for kind in parents if isinstance(kind, type) and issubclass(kind, Exception)]
            self.exceptions[name] = type(name, (fit[0] if fit else Exception,), {})
        return self.exceptions[name]


class Function:
    """Stands for a function of the candidate."""

    def __init__(self, remote: Remote, target: dict[str, Any]) -> None:
        self.__dict__.update(_remote=remote, _target=target, __name__=target["name"])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the candidate's; see `Remote.call`."""
        return self._remote.call(self._target, self._target["name"], args, kwargs)

    def __getattr__(self, name: str) -> Any:
        raise NeedsLiveObjects(f"the attribute {self._target['name']}.{name}")

    def __setattr__(self, name: str, value: Any) -> None:
        raise NeedsLiveObjects(f"the attribute {self._target['name']}.{name} is set")


class Opaque:
    """Stands for an object of the candidate that is no data: it equals nothing, and can be handed back.

    Whether a check needs live objects must not be the candidate's choice. So an attribute that plain data has
    too is an error of the candidate, and only what no data could answer needs the object itself.
    """

    def __init__(self, remote: Remote, handle: int, kind: str, truth: bool) -> None:
        self.__dict__.update(_remote=remote, suture_handle=handle, _kind=kind, _truth=truth)

    def __bool__(self) -> bool:
        return bool(self.__dict__["_truth"])

    def __repr__(self) -> str:
        return f"<{self.__dict__['_kind']} object, not plain data>"

    def __iter__(self) -> Any:
        return self.__dict__["_remote"].step("iter", self.__dict__["suture_handle"])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise NeedsLiveObjects(f"the result, an object of type {self.__dict__['_kind']}, is called")

    def __getattr__(self, name: str) -> Any:
        kind = self.__dict__["_kind"]
        if name in DATA_ATTRIBUTES or (name.startswith("__") and name.endswith("__")):
            raise AttributeError(f"the result is an object of type {kind}, not plain data")
        raise NeedsLiveObjects(f"the attribute {name} of an object of type {kind}")


class Iterator:
    """Stands for a generator or another iterator of the candidate."""

    def __init__(self, remote: Remote, handle: int, kind: str) -> None:
        self._remote = remote
        self.suture_handle = handle
        self._kind = kind

    def __iter__(self) -> Iterator:
        return self

    def __next__(self) -> Any:
        item = self._remote.step("next", self.suture_handle)
        if type(item) is not tuple or len(item) > 1:
            raise Unfit("the iterator answered with something else than one item")
        if not item:
            raise StopIteration
        return item[0]

    def __repr__(self) -> str:
        return f"<{self._kind}>"

    def __getattr__(self, name: str) -> Any:
        raise NeedsLiveObjects(f"the attribute {name} of an iterator")


def _to_handle(thing: Any) -> list[Any]:
    if type(thing) in (Opaque, Iterator):
        return ["h", thing.suture_handle]
    raise NotData(f"an object of type {type(thing).__name__}")


def _show_call(name: str, sent: dict[str, Any], handle: Callable[[list[Any]], Any]) -> str:
    # From the frame that was sent: the arguments themselves may have changed since.
    def show(value: list[Any]) -> Any:
        return handle(["o", *value[1:], "", True])

    args, kwargs = decode(sent["value"], sent["nodes"], show)[0]
    shown = [shorten(arg) for arg in args] + [f"{key}={shorten(arg)}" for key, arg in kwargs.items()]
    return f"{name}({', '.join(shown)})"
