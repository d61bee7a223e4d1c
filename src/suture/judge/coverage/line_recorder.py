"""Notes which of some lines run: the `sitecustomize` of one measured run.

It runs behind the wall in the user's own interpreter, beside the code under test: Python 3.8 syntax, the
standard library, and nothing of Suture. Code under test could write notes of its own: what is measured here
is no verdict.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
from typing import Any

WANTED = "SUTURE_LINES"
NOTES = "SUTURE_NOTES"


def _start(wanted: Any, path: str) -> None:
    """Watch statements; `wanted` is a mapping of absolute path -> the lines of each.

    Where a line of each has run nothing is left to watch, and the rest of the run is as fast as any.
    """
    notes = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    lines = {name: frozenset(line for spot in spots for line in spot) for name, spots in wanted.items()}
    waiting = {(name, number) for name, spots in wanted.items() for number in range(len(spots))}
    known = {}  # type: dict[str, Any]
    seen = set()

    def watched(code: Any) -> Any:
        name = code.co_filename
        if name not in known:
            known[name] = lines.get(os.path.realpath(name)), os.path.realpath(name)
        return known[name]

    def note(code: Any, line: int) -> bool:
        """Note a line; whether nothing is left to watch."""
        numbers, name = watched(code)
        if numbers and line in numbers and (name, line) not in seen:
            seen.add((name, line))
            os.write(notes, (json.dumps([name, line]) + "\n").encode("ascii"))
            for number, spot in enumerate(wanted[name]):
                if line in spot:
                    waiting.discard((name, number))
        return not waiting

    os.write(notes, b"[]\n")
    monitoring = getattr(sys, "monitoring", None)
    if monitoring is not None:
        _monitor(monitoring, note)
    else:
        _trace(note, watched, known)


def _monitor(monitoring: Any, note: Any) -> None:
    tool = next(number for number in (4, 3, 1) if monitoring.get_tool(number) is None)

    def on_line(code: Any, line: int) -> Any:
        note(code, line)
        return monitoring.DISABLE

    monitoring.use_tool_id(tool, "suture")
    monitoring.register_callback(tool, monitoring.events.LINE, on_line)
    monitoring.set_events(tool, monitoring.events.LINE)


def _trace(note: Any, watched: Any, known: Any) -> None:
    def local(frame: Any, event: str, _: Any) -> Any:
        if event == "line" and note(frame.f_code, frame.f_lineno) and sys.gettrace() is on_call:
            sys.settrace(None)
            threading.settrace(None)
        return local

    def on_call(frame: Any, event: str, _: Any) -> Any:
        return local if (known.get(frame.f_code.co_filename) or watched(frame.f_code))[0] else None

    sys.settrace(on_call)
    threading.settrace(on_call)


def _give_way() -> None:
    """Run the environment's own `sitecustomize`, in whose place this one was found."""
    here = os.path.realpath(os.path.join(__file__, os.pardir))  # noqa: PTH118 - nothing heavy is imported here
    sys.path[:] = [entry for entry in sys.path if os.path.realpath(entry) != here]
    own = sys.modules.pop("sitecustomize")
    with contextlib.suppress(ImportError):
        __import__("sitecustomize")
    sys.modules.setdefault("sitecustomize", own)  # the import under way looks for it


if WANTED in os.environ:
    _start(json.loads(os.environ[WANTED]), os.environ[NOTES])
    _give_way()
