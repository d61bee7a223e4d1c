"""What stands in the judge for what is the candidate's: its functions, iterators, objects that are no data.

Runs behind the wall, in the judge; the candidate's code is elsewhere.
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
    # Of the collections, dates and numbers that cross as data, those that hardly anything else has.
    | {"appendleft", "extendleft", "most_common", "move_to_end", "popleft"}
    | {"isocalendar", "isoformat", "isoweekday", "limit_denominator", "quantize", "total_seconds"}
) - {"__call__"}
NAN_RE = re.compile(r"\bnan\b|is_?nan|isfinite", re.IGNORECASE)
ARITHMETIC = (
    *("abs", "add", "divmod", "floordiv", "mod", "mul", "neg", "pos", "pow", "round", "sub"),
    *("truediv",),
)
REFLECTED = ("radd", "rdivmod", "rfloordiv", "rmod", "rmul", "rpow", "rsub", "rtruediv")


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


class Reaches(Protocol):
    """What proxies need of the candidate's side, which `remote.py` reaches."""

    def call(self, target: dict[str, Any], name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function of the candidate."""
        ...

    def step(self, op: str, handle: int) -> Any:
        """Take the next item of an iterator, or an iterator of something iterable."""
        ...


class Function:
    """Stands for a function of the candidate."""

    def __init__(self, remote: Reaches, target: dict[str, Any]) -> None:
        self.__dict__.update(_remote=remote, _target=target, __name__=target["name"])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the candidate's; see `remote.Remote.call`."""
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

    def __init__(self, remote: Reaches, handle: int, kind: str, truth: bool | None) -> None:
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

    def __init__(self, remote: Reaches, handle: int, kind: str) -> None:
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


class Unordered(Exception):
    """nan was asked whether it is less or more than something."""


class NotANumber(float):
    """nan, for a test that does not speak of it: it can be computed with, and refuses to be less or more.

    A plain nan makes every `<` and `>` false, so a test that looks for what is too large would find nothing.
    """

    def _refuse(self, other: object) -> bool:
        raise Unordered("the answer is nan, which is neither less nor more than anything")

    __lt__ = __le__ = __gt__ = __ge__ = _refuse


def _staying(name: str) -> Any:
    plain = getattr(float, name)

    def compute(self: NotANumber, *others: Any) -> Any:
        found = plain(self, *others)
        return self if type(found) is float and found != found else found

    return compute


for _name in (*ARITHMETIC, *REFLECTED):
    setattr(NotANumber, f"__{_name}__", _staying(f"__{_name}__"))


def speaks_of_nan(source: str) -> bool:
    """Whether a test knows that there is such a thing."""
    return NAN_RE.search(source) is not None
