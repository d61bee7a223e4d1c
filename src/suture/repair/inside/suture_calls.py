"""What a candidate answers to calls of its functions."""

from __future__ import annotations

import ast
import importlib
import itertools
import json
import os
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from suture.repair.inside.suture_digest import digest_of
    from suture.repair.inside.suture_trial import ROOT, limit_cpu
else:  # behind the wall these files stand alone
    from suture_digest import digest_of
    from suture_trial import ROOT, limit_cpu


class Late(BaseException):
    """A call took too long."""


def call_all(calls: list[Any], call_s: float, write: Callable[[bytes], None]) -> None:
    """Make each call, and write what came of it, a JSON text a line.

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
            value = getattr(modules[path], name)(*given)
            if hasattr(value, "__next__"):
                value = list(itertools.islice(value, 2000))
            digest = digest_of((value, given))
        except Late:
            digest = "!late"
        except BaseException as fault:
            digest = "!" + type(fault).__name__
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        write(json.dumps(digest).encode("ascii") + b"\n")
