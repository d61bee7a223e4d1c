"""What a candidate answers to calls of its functions."""

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

from .answer_digest import ADDRESS, UNSEEN, digest_of
from .child_processes import ROOT, limit_cpu

MOST_SAID = 200
"""Characters of what an exception says."""


class Late(BaseException):
    """A call took too long."""


def call_all(calls: list[Any], call_s: float, write: Callable[[bytes], None]) -> None:
    """Make each call, and write what came of it, a JSON text a line.

    It begins with `!` where an exception came or no end, and with `?` where nothing that can be seen did.

    Args:
        calls: File, function and arguments of each.
        call_s: CPU seconds of one.
        write: Gets each line.
    """

    def late(signal: int, frame: Any) -> None:
        raise Late

    sys.path[:0] = [folder for folder in (ROOT, os.path.join(ROOT, "src")) if folder not in sys.path]
    modules: dict[str, Any] = {}
    for path, name, arguments in calls:
        try:
            if path not in modules:
                dotted = path[: -len(".py")].replace("/", ".")
                modules[path] = importlib.import_module(dotted[4:] if dotted.startswith("src.") else dotted)
            given = ast.literal_eval(arguments)
            limit_cpu(call_s, late)
            digest = _answer(getattr(modules[path], name), given)
        except Late:
            digest = "!late"
        except BaseException as fault:
            digest = "!" + _said_by(fault)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        write(json.dumps(digest).encode("ascii") + b"\n")


def _answer(function: Any, given: Any) -> str:
    before, printed = digest_of(given), io.StringIO()
    with redirect_stdout(printed):
        value = function(*given)
        if hasattr(value, "__next__"):
            value = list(itertools.islice(value, 2000))
    if said := printed.getvalue():
        return digest_of((value, given, said))
    unseen = "?" if value is None and digest_of(given) == before else ""
    return unseen + digest_of((value, given))


def _said_by(fault: BaseException) -> str:
    """An exception's name and what it says."""
    name = type(fault).__name__
    try:
        said = ADDRESS.sub(UNSEEN, str(fault))[:MOST_SAID]
    except BaseException:  # it may have run out of time, or be the project's own
        said = ""
    return f"{name}: {said}" if said else name
