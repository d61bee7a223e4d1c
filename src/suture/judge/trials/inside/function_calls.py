"""Call functions of a candidate, and write what they answer.

Equal answers are rendered as equal strings, in whichever process they were made.
"""

from __future__ import annotations

import enum
import hashlib
import importlib
import io
import json
import logging
import os
import re
import signal
import sys
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Any

from .argument_source import EnumMember, read_source
from .call_names import prepare_call
from .child_processes import ROOT, limit_cpu

MAX_MESSAGE_CHARS = 200
"""Characters of an exception's message that become part of an answer."""
TIMED_OUT = "!timeout"
EXCEPTION_MARK = "!"
NO_VISIBLE_EFFECT_MARK = "?"
OWN_TYPE_MARK = "~"
EARLIER_VALUES = 10
"""Earlier values with which each one is compared. Chosen by judgement; not measured."""


class CallTimeout(BaseException):
    """A call has no answer, because it used up its CPU seconds or has no arguments."""


def call_all(calls: list[Any], call_cpu_s: float, write: Callable[[bytes], None]) -> None:
    """Make each call, and write its answer as one line of JSON; then which answers are equal.

    An answer begins with `!` for an exception or a time-out, which also stands for arguments that cannot be made. It
    begins with `?` if the call had no visible effect. The last line is a list of `[first, second, has_same_text,
    is_equal]` for pairs of returned values, by the numbers of their calls.

    Args:
        calls: (path, name as in `call_names`, arguments as the source of a tuple) of each call.
    """

    def raise_timeout(signal: int, frame: Any) -> None:
        raise CallTimeout

    _leave_test_run()
    sys.path[:0] = [folder for folder in (ROOT, os.path.join(ROOT, "src")) if folder not in sys.path]
    modules: dict[str, Any] = {}
    returned: list[tuple[int, str, Any]] = []
    for number, (path, name, arguments) in enumerate(calls):
        try:
            if path not in modules:
                dotted = path[: -len(".py")].replace("/", ".")
                module_name = dotted[len("src.") :] if dotted.startswith("src.") else dotted
                modules[path] = importlib.import_module(module_name)
            limit_cpu(call_cpu_s, raise_timeout)
            values = _make_arguments(arguments)
            value, answer = _call(modules[path], name, values)
            returned.append((number, canonical_repr(value), value))
        except CallTimeout:
            answer = TIMED_OUT
        except BaseException as fault:
            answer = EXCEPTION_MARK + _describe(fault)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        write(json.dumps(answer).encode("ascii") + b"\n")
    limit_cpu(call_cpu_s, raise_timeout)
    try:
        pairs = _compare_pairs(returned)
    except BaseException:  # `__eq__` may be the project's own, or the time may run out
        pairs = []
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    write(json.dumps(json.dumps(pairs)).encode("ascii") + b"\n")


def _make_arguments(text: str) -> Any:
    """Return the arguments of a call.

    Raises:
        CallTimeout: They cannot be made, so that the call has no answer: the function is not at fault.
    """
    try:
        return read_source(text, _find_member)
    except BaseException as fault:  # the module of an enumeration is the project's own
        raise CallTimeout from fault


def _find_member(member: EnumMember) -> Any:
    importlib.import_module(member.module)
    return member.find()


def _leave_test_run() -> None:
    """Make this process look like one of an ordinary program: code must not be able to recognise a test run here."""
    for name in [name for name in os.environ if name.startswith("PYTEST_")]:
        del os.environ[name]
    sys.argv[:] = [""]
    sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115  (it stays open as long as the process)
    sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
    logging.getLogger().handlers.clear()
    warnings.resetwarnings()
    warnings.simplefilter("ignore")


def _compare_pairs(returned: list[tuple[int, str, Any]]) -> list[tuple[int, int, bool, bool]]:
    """Return (first, second, has_same_text, is_equal) for each value and a few of the earlier ones.

    Values of built-in classes with the same `repr` are equal by definition, and count as different.
    """
    return [
        (earlier_number, number, text == earlier_text, _is_equal(value, earlier, text == earlier_text))
        for at, (number, text, value) in enumerate(returned)
        for earlier_number, earlier_text, earlier in returned[max(0, at - EARLIER_VALUES) : at]
    ]


def _is_equal(value: Any, earlier: Any, has_same_text: bool) -> bool:
    return bool(value == earlier) and (not has_same_text or type(value).__module__ != "builtins")


def _call(module: Any, name: str, arguments: Any) -> tuple[Any, str]:
    """Return the value of one call, and its answer: the value, its arguments after the call, and what it printed.

    The state of an object that was made for the call counts as printed, if it is plain data.
    """
    arguments_before, printed = canonical_repr(arguments), io.StringIO()
    with redirect_stdout(printed):
        call, made = prepare_call(module, name, arguments)
        state_before = _render_state(made)
        value = call()
    state, output = _render_state(made), printed.getvalue()
    has_effect = bool(output) or state != state_before or canonical_repr(arguments) != arguments_before
    mark = "" if has_effect or value is not None else NO_VISIBLE_EFFECT_MARK
    if _has_own_type(value):
        mark = f"{OWN_TYPE_MARK}{type(value).__name__} "
    shown = (value, arguments, output + state) if output or state else (value, arguments)
    return value, mark + canonical_repr(shown)


def _render_state(made: Any) -> str:
    """Return the attributes of an object that was made for a call, as far as they are plain data."""
    text = canonical_repr(vars(made)) if getattr(made, "__dict__", None) else ""
    return "" if " object" in text else text


def _has_own_type(value: Any) -> bool:
    """Return whether a value is a number or a string of a class in the project, other than an enumeration."""
    kind = type(value)
    if not isinstance(value, (int, float, complex, str, bytes)) or isinstance(value, enum.Enum):
        return False
    module = sys.modules.get(kind.__module__)
    return (getattr(module, "__file__", None) or "").startswith(ROOT + os.sep)


def _describe(fault: BaseException) -> str:
    """Return the class of an exception and its message."""
    name = type(fault).__name__
    try:
        message = ADDRESS.sub(HIDDEN_ADDRESS, str(fault))[:MAX_MESSAGE_CHARS]
    except BaseException:  # `__str__` may be the project's own, or the time may run out
        message = ""
    return f"{name}: {message}" if message else name


ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
HIDDEN_ADDRESS = " at ?"
"""Replaces an address in the `repr` of an object whose content is not visible."""
MAX_CHARS = 4000
"""Characters of one answer. Chosen by judgement; not measured."""
MAX_DEPTH = 40
"""Levels of a value that are rendered; the walk is recursive."""
CHECKSUM_CHARS = 16
"""Characters of the checksum that replaces the end of a long string, so that different long strings differ."""


def canonical_repr(value: Any) -> str:
    """Return the `repr` of a value, with the items of sets sorted and plain objects shown by their
    attributes.

    The end of a long string is replaced by a checksum.
    """
    text = repr(value)
    if "{" in text or " at 0x" in text:
        text = ADDRESS.sub(HIDDEN_ADDRESS, _CanonicalText().render(value, 0))
    if len(text) <= MAX_CHARS:
        return text
    checksum = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return text[: MAX_CHARS - CHECKSUM_CHARS] + checksum[:CHECKSUM_CHARS]


class _CanonicalText:
    """Renders one value. The items of two equal sets may be in different orders, so they are sorted."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}

    def render(self, value: Any, depth: int) -> str:
        """Return the value, or a part of it, as a string."""
        kind = type(value)
        if kind not in (set, frozenset, list, tuple, dict) or not value:
            text = repr(value)
            return self._render_object(value, depth) if " at 0x" in text and _has_only_dict(kind) else text
        if depth > MAX_DEPTH:
            return "..."
        if kind is dict:
            pairs = [
                f"{self.render(key, depth + 1)}: {self.render(item, depth + 1)}"
                for key, item in value.items()
            ]
            return "{" + ", ".join(pairs) + "}"
        parts = [self.render(item, depth + 1) for item in value]
        if kind is list:
            return "[" + ", ".join(parts) + "]"
        if kind is tuple:
            return "(" + ", ".join(parts) + (",)" if len(parts) == 1 else ")")
        joined = "{" + ", ".join(sorted(parts, key=lambda part: (len(part), part))) + "}"
        return joined if kind is set else "frozenset(" + joined + ")"

    def _render_object(self, value: Any, depth: int) -> str:
        """Return the attributes of an object without its own `repr`, or its number if it occurred before."""
        kind = type(value)
        name = f"{kind.__module__}.{kind.__qualname__} object"
        if id(value) in self._numbers:
            return f"<{name} #{self._numbers[id(value)]}>"
        self._numbers[id(value)] = len(self._numbers)
        attributes = dict(getattr(value, "__dict__", ()))
        return f"<{name} {self.render(attributes, depth + 1)}>" if attributes else f"<{name}>"


def _has_only_dict(kind: type) -> bool:
    """Return whether the default `repr` applies and all that an object of a class holds is in its `__dict__`."""
    has_no_slots = all(
        base is object or ("__dict__" in dir(base) and not vars(base).get("__slots__"))
        for base in kind.__mro__
    )
    default_repr: Any = object.__repr__
    return kind.__repr__ is default_repr and has_no_slots
