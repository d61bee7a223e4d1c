"""Call functions of a candidate, and write what they answer."""

from __future__ import annotations

import ast
import importlib
import io
import itertools
import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Any

from .canonical_repr import ADDRESS, HIDDEN_ADDRESS, canonical_repr
from .child_processes import ROOT, limit_cpu

MAX_MESSAGE_CHARS = 200
"""Characters of an exception's message that become part of an answer."""
MAX_GENERATED_ITEMS = 2000
"""Items of a generator that become part of an answer."""
TIMED_OUT = "!timeout"
EXCEPTION_MARK = "!"
NO_VISIBLE_EFFECT_MARK = "?"


class CallTimeout(BaseException):
    """A call used up its CPU seconds."""


def call_all(calls: list[Any], call_cpu_s: float, write: Callable[[bytes], None]) -> None:
    """Make each call, and write its answer as one line of JSON.

    An answer begins with `!` for an exception or a time-out, and with `?` if the call had no visible effect.

    Args:
        calls: (path, function, arguments as the source of a tuple) of each call.
    """

    def raise_timeout(signal: int, frame: Any) -> None:
        raise CallTimeout

    sys.path[:0] = [folder for folder in (ROOT, os.path.join(ROOT, "src")) if folder not in sys.path]
    modules: dict[str, Any] = {}
    for path, name, arguments in calls:
        try:
            if path not in modules:
                dotted = path[: -len(".py")].replace("/", ".")
                module_name = dotted[len("src.") :] if dotted.startswith("src.") else dotted
                modules[path] = importlib.import_module(module_name)
            values = ast.literal_eval(arguments)
            limit_cpu(call_cpu_s, raise_timeout)
            answer = _call(getattr(modules[path], name), values)
        except CallTimeout:
            answer = TIMED_OUT
        except BaseException as fault:
            answer = EXCEPTION_MARK + _describe(fault)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        write(json.dumps(answer).encode("ascii") + b"\n")


def _call(function: Any, arguments: Any) -> str:
    """Return the answer of one call: its value, its arguments after the call, and what it printed."""
    arguments_before, printed = canonical_repr(arguments), io.StringIO()
    with redirect_stdout(printed):
        value = function(*arguments)
        if hasattr(value, "__next__"):
            value = list(itertools.islice(value, MAX_GENERATED_ITEMS))
    output = printed.getvalue()
    if output:
        return canonical_repr((value, arguments, output))
    has_no_effect = value is None and canonical_repr(arguments) == arguments_before
    return (NO_VISIBLE_EFFECT_MARK if has_no_effect else "") + canonical_repr((value, arguments))


def _describe(fault: BaseException) -> str:
    """Return the class of an exception and its message."""
    name = type(fault).__name__
    try:
        message = ADDRESS.sub(HIDDEN_ADDRESS, str(fault))[:MAX_MESSAGE_CHARS]
    except BaseException:  # `__str__` may be the project's own, or the time may run out
        message = ""
    return f"{name}: {message}" if message else name
