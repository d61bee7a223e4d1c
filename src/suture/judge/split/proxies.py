"""Stand-ins in the judge for objects that stay in the candidate's process because they are not data.

If a test needs more of such an object than a stand-in can offer, the test needs *live objects*: the test and
the object must be in one process. `NeedsLiveObjects` is raised then, and the check runs in nonce mode.

Runs inside the sandbox, in the judge; the candidate's code runs in another process.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

DATA_TYPES: tuple[type, ...] = (
    bool, int, float, complex, str, bytes, bytearray, tuple, list, set, frozenset, dict, range, slice,
)  # fmt: skip
DATA_ATTRIBUTES = (
    frozenset(name for kind in DATA_TYPES for name in dir(kind))
    # Attributes of collections, dates and numbers that hardly any other type has.
    | {"appendleft", "extendleft", "most_common", "move_to_end", "popleft"}
    | {"isocalendar", "isoformat", "isoweekday", "limit_denominator", "quantize", "total_seconds"}
) - {"__call__"}
"""Attributes that a test of plain data may read; an object of the candidate that lacks them is a wrong answer."""


class NeedsLiveObjects(BaseException):
    """The test program must run in the candidate's process, because data is not enough for it.

    `reasons` collects the reason of each one that is raised, because unittest catches the exceptions of tests.
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
    """Stands for an object of the candidate that is not data: it equals nothing and can be passed back.

    The candidate must not choose whether a check needs live objects. So if the test reads an attribute that
    plain data has, the candidate's answer is wrong. Only an attribute that no data has needs the live object.

    Args:
        handle: The object's handle (see wire.py).
        truth: Whether the object is true; `None` for a class, a function or an exception, where the question
            makes no sense.
    """

    def __init__(self, remote: CandidateLink, handle: int, kind: str, truth: bool | None) -> None:
        self.__dict__.update(
            _remote=remote, suture_handle=handle, _kind=kind, _truth=truth, _may_be_called=True
        )

    def __bool__(self) -> bool:
        if self.__dict__["_truth"] is None:
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
        if not self.__dict__["_may_be_called"]:  # a name that the test calls must be a function
            raise TypeError(f"an object of type {self.__dict__['_kind']} is not callable")
        raise NeedsLiveObjects(f"the result, an object of type {self.__dict__['_kind']}, is called")

    def __getattr__(self, name: str) -> Any:
        kind = self.__dict__["_kind"]
        if name in DATA_ATTRIBUTES or (name.startswith("__") and name.endswith("__")):
            raise AttributeError(f"the result is an object of type {kind}, not plain data")
        raise NeedsLiveObjects(f"the attribute {name} of an object of type {kind}")


class DataSubclass:
    """Mixin of the stand-ins for instances of a data type's subclass: they have its data and nothing else."""

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
