"""Name what a test calls, so that the call can be made again, and make it.

`Price.label/1,sign*width` is the method `label` of an object that is made with one positional argument and the keyword
`sign`; the method gets the keyword `width`. The values follow each other in this order.
"""

from __future__ import annotations

import dataclasses
import itertools
import signal
import weakref
from collections.abc import Callable
from types import FunctionType
from typing import Any

from .argument_source import render_source
from .object_state import ModuleStates, fingerprint_object, is_project_object, iter_attributes

CO_VARARGS, CO_VARKEYWORDS = 0x04, 0x08
"""Flags of a code object: `inspect.CO_VARARGS` and `inspect.CO_VARKEYWORDS`."""
CLASS_VARIABLE = frozenset(("__class__",))
"""The free variable of a method that calls `super()`, which is the same for each call."""
MAX_WRAPPERS = 8
"""Decorators of one function that are followed."""
MAX_GENERATED_ITEMS = 2000
"""Items of a generator that become part of an answer."""


class CallNames:
    """Names the calls of one process. It remembers by which arguments objects were made."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[Callable[[], Any], str, list[str]]] = {}
        """Address of an object -> the object and how it was made. A later object may have the same address."""
        self._states: dict[int, int | None] = {}
        """Address of an object -> fingerprint of its state when its constructor returned."""
        self._modules = ModuleStates()
        self._names: dict[tuple[Any, Any], str] = {}

    def describe(self, frame: Any) -> tuple[str, str]:
        """Return the name of what a frame runs, and its arguments as the source of a tuple.

        The arguments are empty if the call cannot be made again.
        """
        values, keywords = _read_arguments(frame)
        receiver = values[0] if values else None
        method = self._find_name(frame, type(receiver))
        if method:
            return self._describe_method(receiver, method, frame, values[1:], keywords)
        class_method = self._find_name(frame, receiver) if isinstance(receiver, type) else ""
        if isinstance(receiver, type) and class_method:
            name, values = f"{receiver.__name__}.{class_method}", values[1:]
        else:
            name = self._find_name(frame, None)
        if not name:
            return frame.f_code.co_name, ""
        return name + _join("*", keywords), _render(list(map(render_source, (*values, *keywords.values()))))

    def depends_on_history(self, frame: Any) -> bool:
        """Return whether a call may answer differently in a new process: earlier code changed its object or module."""
        values, _ = _read_arguments(frame)
        receiver = values[0] if values else None
        if self._modules.have_changed(frame.f_globals):
            return True
        if frame.f_code.co_name == "__init__" or not is_project_object(receiver):
            return False
        if self._find_made(receiver) is not None:
            state = fingerprint_object(receiver)
            return state is None or state != self._states.get(id(receiver))
        fields = dataclasses.fields(receiver) if dataclasses.is_dataclass(receiver) else ()
        given = {field.name for field in fields if field.init}
        return any(name not in given for name, _ in iter_attributes(receiver))

    def remember_state(self, receiver: Any) -> None:
        """Remember the state of an object whose recorded constructor returns."""
        if self._find_made(receiver) is not None:
            self._states[id(receiver)] = fingerprint_object(receiver)

    def _find_made(self, receiver: Any) -> tuple[str, list[str]] | None:
        made = self._made.get(id(receiver))
        return made[1:] if made is not None and made[0]() is receiver else None

    def _describe_method(
        self, receiver: Any, method: str, frame: Any, values: list[Any], keywords: dict[str, Any]
    ) -> tuple[str, str]:
        kind, module = type(receiver), frame.f_globals
        name = f"{kind.__name__}.{method}"
        given = list(map(render_source, (*values, *keywords.values())))
        if method == "__init__":
            self._made[id(receiver)] = (_refer(receiver), f"/{len(values)}{_join(',', keywords)}", given)
            return name, ""
        variable = next((key for key, value in list(module.items()) if value is receiver), "")
        if variable:
            return f"{variable}.{method}{_join('*', keywords)}", _render(given)
        making = self._find_constructor(receiver) if module.get(kind.__name__) is kind else None
        if making is None:
            return name, ""
        return f"{name}{making[0]}{_join('*', keywords)}", _render([*making[1], *given])

    def _find_constructor(self, receiver: Any) -> tuple[str, list[str]] | None:
        """Return how the object can be made again: as it was made, or a dataclass from its present fields.

        Of other objects, what happened to them since they were made is left out (see `depends_on_history`).
        """
        kind: Any = type(receiver)
        made = self._find_made(receiver)
        if made is not None:
            return made
        values: list[Any] | None = None
        if dataclasses.is_dataclass(receiver):
            fields = [field for field in dataclasses.fields(receiver) if field.init]
            if not any(getattr(field, "kw_only", False) for field in fields):
                values = [getattr(receiver, field.name) for field in fields]
        elif kind.__init__ is object.__init__ and kind.__new__ is object.__new__:
            values = []
        return None if values is None else (f"/{len(values)}", list(map(render_source, values)))

    def _find_name(self, frame: Any, kind: type | None) -> str:
        """Return the name in a class, or else in its module, of the function that a frame runs; empty if none."""
        key = (frame.f_code, kind)
        if key not in self._names or not CLASS_VARIABLE.issuperset(frame.f_code.co_freevars):
            self._names[key] = _find_global(frame) if kind is None else _find_attribute(kind, frame)
        return self._names[key]


def _refer(value: Any) -> Callable[[], Any]:
    """Return a reference by which an object is recognised; one without weak references stays alive."""
    try:
        return weakref.ref(value)
    except TypeError:
        return lambda: value


def _join(mark: str, keywords: dict[str, Any]) -> str:
    return mark + ",".join(keywords) if keywords else ""


def _render(values: list[str]) -> str:
    """Return the source of a tuple."""
    return "(" + ", ".join(values) + (",)" if len(values) == 1 else ")")


def _read_arguments(frame: Any) -> tuple[list[Any], dict[str, Any]]:
    """Return the positional arguments of a frame, and those that only keywords can pass."""
    code, local = frame.f_code, frame.f_locals
    end = code.co_argcount + code.co_kwonlyargcount
    values = [local[name] for name in code.co_varnames[: code.co_argcount]]
    keywords = {name: local[name] for name in code.co_varnames[code.co_argcount : end]}
    if code.co_flags & CO_VARARGS:
        values += local[code.co_varnames[end]]
        end += 1
    if code.co_flags & CO_VARKEYWORDS:
        keywords.update(local[code.co_varnames[end]])
    return values, keywords


def _find_global(frame: Any) -> str:
    name: str = frame.f_code.co_name
    variables = frame.f_globals
    key: str
    for key, value in [(name, variables.get(name)), *variables.items()]:
        if _runs(value, frame):
            return key
        if issubclass(type(value), type) and value.__module__ == variables.get("__name__"):
            static = _find_attribute(value, frame)
            if static:
                return f"{key}.{static}"
    # A decorator need not show what it wraps.
    return name if isinstance(variables.get(name), FunctionType) else ""


def _find_attribute(kind: type, frame: Any) -> str:
    """Return the name of the method or property of a class that a frame runs."""
    for owner in kind.__mro__:
        for name, value in list(vars(owner).items()) if owner.__module__ != "builtins" else ():
            if _runs(value, frame):
                return name
    return ""


def _runs(value: Any, frame: Any) -> bool:
    """Return whether a call of a value runs the function of a frame, as far as decorators show what they wrap.

    `isinstance` would ask the value for its class, which a lazy object would have to be made for.
    """
    for _ in range(MAX_WRAPPERS):
        if type(value) in (staticmethod, classmethod):
            value = value.__func__
        elif type(value) is property:
            value = value.fget
        elif type(value) is FunctionType:
            if value.__code__ is frame.f_code and _has_variables(value, frame):
                return True
            value = value.__dict__.get("__wrapped__")
        elif type(value).__module__ == "functools":  # such as `lru_cache`
            value = getattr(value, "__wrapped__", None)
        else:
            return False
    return False


def _has_variables(function: Any, frame: Any) -> bool:
    """Return whether a function has the same free variables as a frame, as one made by another call has not."""
    try:
        return all(
            function.__closure__[at].cell_contents is frame.f_locals[name]
            for at, name in enumerate(frame.f_code.co_freevars)
        )
    except (KeyError, ValueError):  # a variable without a value
        return False


def prepare_call(module: Any, text: str, arguments: tuple[Any, ...]) -> tuple[Callable[[], Any], Any]:
    """Return what makes a call that `CallNames` named, and the object that was made for it, or `None`."""
    name, _, keywords = text.partition("*")
    name, slash, making = name.partition("/")
    owner, _, attribute = name.rpartition(".")
    found, made, rest = getattr(module, owner) if owner else module, None, list(arguments)
    if slash:
        count, *words = making.split(",")
        size = int(count) + len(words)
        found = made = _apply(found, rest[:size], words)
        del rest[:size]

    def call() -> Any:
        value = getattr(found, attribute)
        if not isinstance(getattr(type(found), attribute, None), property):
            value = _apply(value, rest, keywords.split(",") if keywords else [])
        return _collect_result(value)

    return call, made


def _collect_result(value: Any) -> Any:
    """Return the result of a coroutine, or the items of a generator; any other value as it is."""
    if hasattr(value, "cr_frame"):
        left = signal.setitimer(signal.ITIMER_PROF, 0)  # importing asyncio is not part of the call
        import asyncio

        signal.setitimer(signal.ITIMER_PROF, *left)
        return asyncio.run(value)
    return list(itertools.islice(value, MAX_GENERATED_ITEMS)) if hasattr(value, "__next__") else value


def _apply(function: Any, values: list[Any], words: list[str]) -> Any:
    """Call a function whose last values are passed by keywords."""
    count = len(values) - len(words)
    return function(*values[:count], **{word: values[count + at] for at, word in enumerate(words)})
