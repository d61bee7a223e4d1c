"""Objects in the judge that stand for objects of the candidate: functions, iterators and whatever is no data.

Runs inside the sandbox, in the judge; the candidate's code runs in another process.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar, Protocol

DATA_TYPES: tuple[type, ...] = (
    *(bool, int, float, complex, str, bytes, bytearray),
    *(tuple, list, set, frozenset, dict, range, slice),
)
DATA_ATTRIBUTES = (
    frozenset(name for kind in DATA_TYPES for name in dir(kind))
    # Attributes of collections, dates and numbers that hardly any other type has.
    | {"appendleft", "extendleft", "most_common", "move_to_end", "popleft"}
    | {"isocalendar", "isoformat", "isoweekday", "limit_denominator", "quantize", "total_seconds"}
) - {"__call__"}
NAN_RE = re.compile(r"\bnan\b|is_?nan|isfinite", re.IGNORECASE)
ARITHMETIC = (
    "abs", "add", "divmod", "floordiv", "mod", "mul", "neg", "pos", "pow", "round", "sub", "truediv",
)  # fmt: skip
REFLECTED = ("radd", "rdivmod", "rfloordiv", "rmod", "rmul", "rpow", "rsub", "rtruediv")


class NeedsLiveObjects(BaseException):
    """The program needs to share objects with the candidate, because data is not enough.

    Each one that is raised is remembered for the program, since unittest swallows the exceptions of a test.
    """

    reasons: ClassVar[list[str]] = []

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reasons.append(reason)


class UnfitAnswer(Exception):
    """The candidate answered with something other than data where only data could have passed."""


class CandidateLink(Protocol):
    """The operations that proxies need from the candidate's side."""

    def call(self, target: dict[str, Any], name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function of the candidate."""
        ...

    def step(self, op: str, handle: int) -> Any:
        """Return the next item of an iterator, or an iterator over an iterable."""
        ...


class RemoteFunction:
    """Stands for a function of the candidate."""

    def __init__(self, remote: CandidateLink, target: dict[str, Any]) -> None:
        self.__dict__.update(_remote=remote, _target=target, __name__=target["name"])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the candidate's function; see `RemoteCandidate.call`."""
        return self._remote.call(self._target, self._target["name"], args, kwargs)

    def __getattr__(self, name: str) -> Any:
        if name in DATA_ATTRIBUTES and not (name.startswith("__") and name.endswith("__")):
            raise AttributeError(f"{self._target['name']} is a function, not plain data")
        raise NeedsLiveObjects(f"the attribute {self._target['name']}.{name}")

    def __setattr__(self, name: str, value: Any) -> None:
        raise NeedsLiveObjects(f"the attribute {self._target['name']}.{name} is set")


class OpaqueObject:
    """Stands for an object of the candidate that is no data: it equals nothing and can be passed back.

    Whether a check needs live objects must not be the candidate's choice. So reading an attribute that plain
    data has too is an error of the candidate, and only an attribute that no data could have needs the object
    itself.
    """

    def __init__(self, remote: CandidateLink, handle: int, kind: str, truth: bool | None) -> None:
        self.__dict__.update(_remote=remote, suture_handle=handle, _kind=kind, _truth=truth, _called=True)

    def __bool__(self) -> bool:
        if self.__dict__["_truth"] is None:  # a class, a function or an exception is neither yes nor no
            raise UnfitAnswer(f"an object of type {self.__dict__['_kind']} is neither true nor false")
        return bool(self.__dict__["_truth"])

    def __repr__(self) -> str:
        return f"<{self.__dict__['_kind']} object, not plain data>"

    def __enter__(self) -> Any:
        raise NeedsLiveObjects(f"an object of type {self.__dict__['_kind']} is entered")

    def __exit__(self, *_: object) -> None: ...

    def __iter__(self) -> Any:
        return self.__dict__["_remote"].step("iter", self.__dict__["suture_handle"])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Refuse: an object that stays on the candidate's side cannot be called from here."""
        if not self.__dict__["_called"]:  # the test calls it by name, so it can only be meant as a function
            raise TypeError(f"an object of type {self.__dict__['_kind']} is not callable")
        raise NeedsLiveObjects(f"the result, an object of type {self.__dict__['_kind']}, is called")

    def __getattr__(self, name: str) -> Any:
        kind = self.__dict__["_kind"]
        if name in DATA_ATTRIBUTES or (name.startswith("__") and name.endswith("__")):
            raise AttributeError(f"the result is an object of type {kind}, not plain data")
        raise NeedsLiveObjects(f"the attribute {name} of an object of type {kind}")


class DataSubclass:
    """Mixin for a stand-in of a data subclass instance, which has the data but no other attributes."""

    suture_handle: int

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(f"the result has no {name}")
        raise NeedsLiveObjects(f"the attribute {name} of an object of type {type(self).__name__}")


class RemoteIterator:
    """Stands for a generator or another iterator of the candidate."""

    def __init__(self, remote: CandidateLink, handle: int, kind: str) -> None:
        self._remote = remote
        self.suture_handle = handle
        self._kind = kind

    def __iter__(self) -> RemoteIterator:
        return self

    def __next__(self) -> Any:
        item = self._remote.step("next", self.suture_handle)
        if type(item) is not tuple or len(item) > 1:
            raise UnfitAnswer("the iterator answered with something else than one item")
        if not item:
            raise StopIteration
        return item[0]

    def __bool__(self) -> bool:
        raise UnfitAnswer(f"an iterator of type {self._kind} is neither true nor false")

    def __repr__(self) -> str:
        return f"<{self._kind}>"

    def __getattr__(self, name: str) -> Any:
        if name in DATA_ATTRIBUTES or (name.startswith("__") and name.endswith("__")):
            raise AttributeError(f"the result is an iterator of type {self._kind}, not plain data")
        raise NeedsLiveObjects(f"the attribute {name} of an iterator")


class UnorderedComparison(Exception):
    """A test asked whether nan is less or more than something."""


class NotANumber(float):
    """nan for a test that does not mention it: it can be computed with, but refuses to be less or more.

    A plain nan makes every `<` and `>` false, so a test that looks for values that are too large would find
    nothing.
    """

    def _refuse(self, other: object) -> bool:
        raise UnorderedComparison("the answer is nan, which is neither less nor more than anything")

    __lt__ = __le__ = __gt__ = __ge__ = _refuse


def _staying(name: str) -> Any:
    plain = getattr(float, name)

    def compute(self: NotANumber, *others: Any) -> Any:
        found = plain(self, *others)
        return self if type(found) is float and found != found else found

    return compute


for _name in (*ARITHMETIC, *REFLECTED):
    setattr(NotANumber, f"__{_name}__", _staying(f"__{_name}__"))


def mentions_nan(source: str) -> bool:
    """Whether a test's text mentions nan."""
    return NAN_RE.search(source) is not None
