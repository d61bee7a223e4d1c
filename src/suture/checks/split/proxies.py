"""What stands in the judge for the candidate: its functions, iterators, exceptions, objects that are no data.

Runs behind the wall, in the judge. Each stand-in sends typed data out and gets typed data back; the
candidate's code is elsewhere.
"""

from __future__ import annotations

import builtins
import math
import re
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, ClassVar

from suture.checks.split.asserts import Asserts, Call, shorten
from suture.checks.split.decoding import decode
from suture.checks.split.encoding import Encoder
from suture.checks.split.unordered import NotANumber, speaks_of_nan
from suture.checks.split.wire import BadFrame, NotData

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
DATA_ATTRIBUTES = (
    frozenset(name for kind in DATA_TYPES for name in dir(kind))
    # Of the collections, dates and numbers that cross as data, those that hardly anything else has.
    | {"appendleft", "extendleft", "most_common", "move_to_end", "popleft"}
    | {"isocalendar", "isoformat", "isoweekday", "limit_denominator", "quantize", "total_seconds"}
) - {"__call__"}
ENDINGS = frozenset(
    ("GeneratorExit", "KeyboardInterrupt", "StopAsyncIteration", "StopIteration", "SystemExit")
)
CATCH_ALL = frozenset(("AssertionError", "BaseException", "Exception"))
"""Under another name, one of these would catch the test's own failing asserts."""
RUNNERS = frozenset(("doctest", "unittest"))
"""Their exceptions tell who runs a test what to do with it."""


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


class Missing(Exception):
    """The candidate has no such name."""


class Remote:
    """The candidate of one program, as seen from the judge.

    Args:
        ask: Sends a request and answers the reply.
        asserts: Notes every call and its answer, to explain an assert that fails.
        program: The name of the file that the program's frames have.
        source: The program's text; an exception of a library that it does not name does not come through.
        expects: The exceptions of `ENDINGS` that it does expect.

    Attributes:
        asked: How often it was asked for more than what a name stands for.
    """

    def __init__(
        self, ask: Ask, asserts: Asserts, program: str, source: str, expects: frozenset[str]
    ) -> None:
        self._ask = ask
        self._asserts = asserts
        self._program = program
        self._source = source
        self._expects = expects
        self._opaque: dict[int, Any] = {}
        self._nan = math.nan if speaks_of_nan(source) else NotANumber("nan")
        self.asked = 0
        self.exceptions: dict[str, type[BaseException]] = {}

    def call(self, target: dict[str, Any], name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function of the candidate; the arguments are then what the candidate made of them.

        But where the test computes what it expects from the arguments, they stay as they were.
        """
        encoder = Encoder(_to_handle)
        try:
            sent = {"op": "call", **target, "value": encoder.encode((args, kwargs)), "nodes": encoder.nodes()}
        except NotData as fault:
            raise NeedsLiveObjects(f"{name}() is given {fault}") from fault
        call = Call(show=lambda: _show_call(name, sent, self._from_handle), result=None)
        known = encoder.objects
        if self._asserts.keeping and self._line() in self._asserts.keeping:
            known = decode(sent["value"], sent["nodes"], self._from_handle)[1]
        try:
            call.result = self._ask_for(sent, known)
        except BaseException as fault:
            fault.suture_call = call.show  # type: ignore[attr-defined]  # read by asserts.explain
            self._asserts.crossed(fault)
            raise
        self._asserts.calls.append(call)
        return call.result

    def _line(self) -> int:
        """The line of the program from which the candidate is called."""
        frame: FrameType | None = sys._getframe(2)
        while frame is not None and frame.f_code.co_filename != self._program:
            frame = frame.f_back
        return 0 if frame is None else frame.f_lineno

    def look_up(self, kind: str, modules: Sequence[str], name: str) -> Any:
        """What a name stands for: data, a stand-in of a function, or of an exception class.

        Args:
            kind: `exception` where the test uses it as one.
            modules: Where it may be; the first that has it counts.
            name: The name.

        Raises:
            Missing: None of the modules has it.
        """
        for module in modules:
            where = {"module": module, "name": name}
            reply = self._ask({"op": "get", **where})
            if "died" in reply:
                raise CandidateDied(reply["died"])
            if "raised" in reply:
                continue
            if kind == "exception" and "exception" in reply:
                self.asked += 1
                return self._named_exception(name, *reply["exception"])
            if reply.get("callable"):
                return Function(self, where)
            value = self._value(reply, [])
            self.asked += 1
            if type(value) is Opaque:
                value.__dict__["_called"] = False
            return value
        raise Missing(name)

    def _named_exception(self, name: str, module: str, *kinds: str) -> type[BaseException]:
        """What an exception class of the candidate is here: a builtin one, or a new one of that name."""
        if module == "builtins" and kinds[0] not in CATCH_ALL:
            known = self._builtin_exception(kinds[0])
            if known is not None:
                return known
        self.exceptions[name] = made = self.exception(kinds[0], list(kinds[1:]))
        return made

    def step(self, op: str, handle: int) -> Any:
        """Take the next item of an iterator, or an iterator of something iterable."""
        return self._ask_for({"op": op, "handle": handle}, [])

    def _ask_for(self, request: dict[str, Any], known: list[Any]) -> Any:
        self.asked += 1
        return self._value(self._ask(request), known)

    def _value(self, reply: dict[str, Any], known: list[Any]) -> Any:
        if "died" in reply:
            raise CandidateDied(reply["died"])
        try:
            value = decode(reply["value"], reply["nodes"], self._from_handle, known, self._nan)[0]
        except BadFrame as fault:
            raise Unfit(f"the answer is no data: {fault}") from fault
        if "raised" in reply:
            raise self._exception(reply["raised"])
        return value

    def _from_handle(self, value: list[Any]) -> Any:
        tag, handle, *more = value
        if tag == "k":
            return self._kin_of(handle, *more)
        if handle not in self._opaque:
            made = Iterator if tag == "it" else Opaque
            self._opaque[handle] = made(self, handle, *more)
        return self._opaque[handle]

    def _kin_of(self, handle: int, kind: str, base: Any) -> Any:
        """Stands for an instance of a subclass of data; the same one each time."""
        known = self._opaque.get(handle)
        if not isinstance(known, Kin) or not isinstance(known, type(base)):
            made = type(str(kind), (Kin, type(base)), {})(base)
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
            # Nothing is imported for it, and it is what it is called in the test's own text.
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
        """A class that stands for an exception class of the candidate."""
        if name not in self.exceptions:
            parents = (self.exceptions.get(base) or self._builtin_exception(base) for base in bases)
            parent = next((kind for kind in parents if kind is not None), Exception)
            self.exceptions[name] = type(name, (parent,), {})
        return self.exceptions[name]


class Function:
    """Stands for a function of the candidate."""

    def __init__(self, remote: Remote, target: dict[str, Any]) -> None:
        self.__dict__.update(_remote=remote, _target=target, __name__=target["name"])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the candidate's; see `Remote.call`."""
        return self._remote.call(self._target, self._target["name"], args, kwargs)

    def __getattr__(self, name: str) -> Any:
        if name in DATA_ATTRIBUTES and not (name.startswith("__") and name.endswith("__")):
            raise AttributeError(f"{self._target['name']} is a function, not plain data")
        raise NeedsLiveObjects(f"the attribute {self._target['name']}.{name}")

    def __setattr__(self, name: str, value: Any) -> None:
        raise NeedsLiveObjects(f"the attribute {self._target['name']}.{name} is set")


class Opaque:
    """Stands for an object of the candidate that is no data: it equals nothing, and can be handed back.

    Whether a check needs live objects must not be the candidate's choice. So an attribute that plain data has
    too is an error of the candidate, and only what no data could answer needs the object itself.
    """

    def __init__(self, remote: Remote, handle: int, kind: str, truth: bool | None) -> None:
        self.__dict__.update(_remote=remote, suture_handle=handle, _kind=kind, _truth=truth, _called=True)

    def __bool__(self) -> bool:
        if self.__dict__["_truth"] is None:  # a class, a function, an exception: no answer to yes or no
            raise Unfit(f"an object of type {self.__dict__['_kind']} is neither true nor false")
        return bool(self.__dict__["_truth"])

    def __repr__(self) -> str:
        return f"<{self.__dict__['_kind']} object, not plain data>"

    def __enter__(self) -> Any:
        raise NeedsLiveObjects(f"an object of type {self.__dict__['_kind']} is entered")

    def __exit__(self, *_: object) -> None: ...

    def __iter__(self) -> Any:
        return self.__dict__["_remote"].step("iter", self.__dict__["suture_handle"])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Refuse: what stays on the candidate's side cannot be called from here."""
        if not self.__dict__["_called"]:  # what the test calls by its name can only be meant as a function
            raise TypeError(f"an object of type {self.__dict__['_kind']} is not callable")
        raise NeedsLiveObjects(f"the result, an object of type {self.__dict__['_kind']}, is called")

    def __getattr__(self, name: str) -> Any:
        kind = self.__dict__["_kind"]
        if name in DATA_ATTRIBUTES or (name.startswith("__") and name.endswith("__")):
            raise AttributeError(f"the result is an object of type {kind}, not plain data")
        raise NeedsLiveObjects(f"the attribute {name} of an object of type {kind}")


class Kin:
    """What stands for an instance of a subclass of data has besides the data: no attributes of its own."""

    suture_handle: int

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(f"the result has no {name}")
        raise NeedsLiveObjects(f"the attribute {name} of an object of type {type(self).__name__}")


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

    def __bool__(self) -> bool:
        raise Unfit(f"an iterator of type {self._kind} is neither true nor false")

    def __repr__(self) -> str:
        return f"<{self._kind}>"

    def __getattr__(self, name: str) -> Any:
        if name in DATA_ATTRIBUTES or (name.startswith("__") and name.endswith("__")):
            raise AttributeError(f"the result is an iterator of type {self._kind}, not plain data")
        raise NeedsLiveObjects(f"the attribute {name} of an iterator")


def _to_handle(thing: Any) -> list[Any]:
    if type(thing) is NotANumber:
        return ["f", "nan"]
    if type(thing) in (Opaque, Iterator) or isinstance(thing, Kin):
        return ["h", thing.suture_handle]
    raise NotData(f"an object of type {type(thing).__name__}")


def _show_call(name: str, sent: dict[str, Any], handle: Callable[[list[Any]], Any]) -> str:
    # From the frame that was sent: the arguments themselves may have changed since.
    def show(value: list[Any]) -> Any:
        return handle(["o", *value[1:], "", True])

    args, kwargs = decode(sent["value"], sent["nodes"], show)[0]
    shown = [shorten(arg) for arg in args] + [f"{key}={shorten(arg)}" for key, arg in kwargs.items()]
    return f"{name}({', '.join(shown)})"
