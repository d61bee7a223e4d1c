"""Frozen dataclasses that share their methods, so that a program with hundreds of them starts fast.

The standard library compiles six methods for each frozen dataclass, in 0.6 ms. Suture has 500 such classes, which
was a third of the processor time that a command needed to start. Here all of them share methods that look up the
fields of their class. Everything else is that of the standard library, for type checkers, too.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from functools import cache
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(
        cls: Any = None, /, *, frozen: bool = False, kw_only: bool = False, eq: bool = True, **options: Any
    ) -> Any:
        """Make a class a dataclass; a frozen, keyword-only one gets the shared methods."""
        if cls is None:
            return lambda decorated: dataclass(decorated, frozen=frozen, kw_only=kw_only, eq=eq, **options)
        if options or not (frozen and kw_only):
            return dataclasses.dataclass(cls, frozen=frozen, kw_only=kw_only, eq=eq, **options)
        dataclasses.dataclass(cls, init=False, repr=False, eq=False, kw_only=True)
        for name, method in (SHARED_METHODS | COMPARISONS if eq else SHARED_METHODS).items():
            if vars(cls).get(name) is None:  # a class that defines `__eq__` has `__hash__ = None`
                setattr(cls, name, method)
        return cls


__all__ = ["dataclass"]


class ClassFields(NamedTuple):
    """What the shared methods need to know of a class.

    Attributes:
        defaults: Argument -> its default value, or `MISSING`, in the order of the fields.
        factories: Field without a default value -> what makes its value; `None` for a required argument.
        shown: The fields that `repr` shows.
        get_compared: Returns the values of an instance that are compared.
        get_hashed: Returns the values of an instance that are hashed.
        has_post_init: Whether the class has a `__post_init__`.
    """

    defaults: dict[str, Any]
    factories: dict[str, Callable[[], Any] | None]
    shown: tuple[str, ...]
    get_compared: Callable[[Any], Any]
    get_hashed: Callable[[Any], Any]
    has_post_init: bool


@cache
def fields_of_class(cls: Any) -> ClassFields:
    """Return what the shared methods need to know of a class."""
    fields = dataclasses.fields(cls)
    factories: dict[str, Callable[[], Any] | None] = {}
    for field in fields:
        if field.default_factory is not dataclasses.MISSING:
            factories[field.name] = field.default_factory
        elif field.init and field.default is dataclasses.MISSING:
            factories[field.name] = None
    compared = [field for field in fields if field.compare]
    return ClassFields(
        defaults={field.name: field.default for field in fields if field.init},
        factories=factories,
        shown=tuple(field.name for field in fields if field.repr),
        get_compared=_make_getter(field.name for field in compared),
        get_hashed=_make_getter(field.name for field in compared if field.hash is not False),
        has_post_init=hasattr(cls, "__post_init__"),
    )


def _make_getter(names: Iterable[str]) -> Callable[[Any], Any]:
    chosen = tuple(names)
    return attrgetter(*chosen) if chosen else lambda _: ()


def initialise_fields(self: Any, /, **values: Any) -> None:
    """Set the fields of a new instance: the `__init__` of the classes."""
    known = fields_of_class(self.__class__)
    attributes = {**known.defaults, **values}
    if len(attributes) != len(known.defaults):
        unknown = next(name for name in values if name not in known.defaults)
        raise TypeError(f"{type(self).__name__}() got an unexpected keyword argument {unknown!r}")
    for name, factory in known.factories.items():
        if name not in values:
            if factory is None:
                raise TypeError(f"{type(self).__name__}() is missing the keyword argument {name!r}")
            attributes[name] = factory()
    # One by one and not as a new `__dict__`: the instances of a class then share the table of their names.
    for name, value in attributes.items():
        object.__setattr__(self, name, value)
    if known.has_post_init:
        self.__post_init__()


@recursive_repr()
def represent_fields(self: Any) -> str:
    """Return `Name(field=value, ...)`: the `__repr__` of the classes."""
    shown = (f"{name}={getattr(self, name)!r}" for name in fields_of_class(self.__class__).shown)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def compare_fields(self: Any, other: Any) -> Any:
    """Return whether another instance of the same class has the same values: the `__eq__` of the classes."""
    if other.__class__ is not self.__class__:
        return NotImplemented
    get_compared = fields_of_class(self.__class__).get_compared
    return get_compared(self) == get_compared(other)


def hash_fields(self: Any) -> int:
    """Return a hash of the values: the `__hash__` of the classes."""
    return hash(fields_of_class(self.__class__).get_hashed(self))


def refuse_assignment(self: Any, name: str, value: object) -> None:
    """Raise: the `__setattr__` of the classes."""
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def refuse_deletion(self: Any, name: str) -> None:
    """Raise: the `__delattr__` of the classes."""
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


SHARED_METHODS: dict[str, Callable[..., Any]] = {
    "__init__": initialise_fields,
    "__repr__": represent_fields,
    "__setattr__": refuse_assignment,
    "__delattr__": refuse_deletion,
}
COMPARISONS: dict[str, Callable[..., Any]] = {"__eq__": compare_fields, "__hash__": hash_fields}
