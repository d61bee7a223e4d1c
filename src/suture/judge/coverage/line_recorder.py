"""Record which of some lines run: the `sitecustomize` module of one measured run, and a plugin of its pytest.

A warm interpreter, from which pytest is forked, loads no `sitecustomize` any more. The module runs inside the sandbox
in the user's interpreter, in the process of the code under test. So it uses Python 3.8 syntax, the standard library,
and nothing of Suture. Code under test could write records of its own, so coverage is never part of a verdict.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
from typing import Any

LINES_VARIABLE = "SUTURE_LINES"
"""Environment variable: JSON of absolute path -> the statements, each as its line numbers."""
OUTPUT_VARIABLE = "SUTURE_NOTES"
"""Environment variable: the file that is written, one JSON `[path, line]` per text line."""


def _start(statements: Any, path: str) -> None:
    """Record the lines of some statements, path -> the line numbers of each, in a file.

    Once a line of each statement has run, tracing stops, and the rest of the run is as fast as usual.
    """
    output = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    lines = {
        name: frozenset(line for statement in group for line in statement)
        for name, group in statements.items()
    }
    waiting = {(name, number) for name, group in statements.items() for number in range(len(group))}
    known_files = {}  # type: dict[str, Any]
    recorded = set()

    def get_lines(code: Any) -> Any:
        """Return (lines to record or `None`, real path) for the file of a code object."""
        name = code.co_filename
        if name not in known_files:
            known_files[name] = lines.get(os.path.realpath(name)), os.path.realpath(name)
        return known_files[name]

    def record(code: Any, line: int) -> bool:
        """Record a line, and return whether nothing is left to record."""
        numbers, name = get_lines(code)
        if numbers and line in numbers and (name, line) not in recorded:
            recorded.add((name, line))
            os.write(output, (json.dumps([name, line]) + "\n").encode("ascii"))
            for number, statement in enumerate(statements[name]):
                if line in statement:
                    waiting.discard((name, number))
        return not waiting

    os.write(output, b"[]\n")  # shows that the recorder was loaded, even if no line runs
    monitoring = getattr(sys, "monitoring", None)
    if monitoring is not None:
        _use_monitoring(monitoring, record)
    else:
        _use_settrace(record, get_lines, known_files)


def _use_monitoring(monitoring: Any, record: Any) -> None:
    # The numbers 3 and 4 are free for any tool, and 1 is for coverage; Python reserves the others.
    tool = next(number for number in (4, 3, 1) if monitoring.get_tool(number) is None)

    def on_line(code: Any, line: int) -> Any:
        record(code, line)
        return monitoring.DISABLE

    monitoring.use_tool_id(tool, "suture")
    monitoring.register_callback(tool, monitoring.events.LINE, on_line)
    monitoring.set_events(tool, monitoring.events.LINE)


def _use_settrace(record: Any, get_lines: Any, known_files: Any) -> None:
    def on_line(frame: Any, event: str, _: Any) -> Any:
        if event == "line" and record(frame.f_code, frame.f_lineno) and sys.gettrace() is on_call:
            sys.settrace(None)
            threading.settrace(None)
        return on_line

    def on_call(frame: Any, event: str, _: Any) -> Any:
        # Looked up without a call first: this runs for every call of the whole program.
        numbers, _ = known_files.get(frame.f_code.co_filename) or get_lines(frame.f_code)
        return on_line if numbers else None

    sys.settrace(on_call)
    threading.settrace(on_call)


def _run_own_sitecustomize() -> None:
    """Run the environment's own `sitecustomize`, which this module replaces on the path."""
    here = os.path.realpath(os.path.join(__file__, os.pardir))  # noqa: PTH118 - nothing heavy is imported here
    whole_path = list(sys.path)
    sys.path[:] = [entry for entry in sys.path if os.path.realpath(entry) != here]
    this_module = sys.modules.pop("sitecustomize")
    with contextlib.suppress(ImportError):
        __import__("sitecustomize")
    sys.path[:] = whole_path  # pytest loads Suture's plugins from there
    sys.modules.setdefault("sitecustomize", this_module)  # the import in progress looks it up


if LINES_VARIABLE in os.environ:
    _start(json.loads(os.environ[LINES_VARIABLE]), os.environ[OUTPUT_VARIABLE])
    if __name__ == "sitecustomize":
        _run_own_sitecustomize()
