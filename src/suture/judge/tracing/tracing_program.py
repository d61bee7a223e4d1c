"""Run a few lines of code in the process of a candidate, and record the values of variables line by line.

This runs inside the sandbox, also in the user's interpreter: Python 3.8 syntax, the standard library, and
nothing of Suture. Code under test could forge the answer, so it informs and never decides.
"""

from __future__ import annotations

import ast
import collections
import importlib
import io
import json
import os
import re
import reprlib
import sys
import time
from types import CodeType, FrameType
from typing import Any

PRIVATE_FOLDER = "_suture"
"""Suture's own folder next to the candidate's files."""
FIRST_ENTRIES, LAST_ENTRIES = 120, 40
"""Entries that are kept of the beginning and of the end of a run."""
MAX_LINES = 20000
"""Executed lines after which the run is stopped."""
# What one entry shows, and how much is printed: chosen by judgement; not measured.
MAX_NAMES = 20
MAX_VALUE_CHARS = 120
MAX_PRINTED_CHARS = 2000
ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")

SHORT_REPR = reprlib.Repr()
for _kind in ("list", "tuple", "set", "frozenset", "deque", "dict"):
    setattr(SHORT_REPR, "max" + _kind, 12)
SHORT_REPR.maxstring = SHORT_REPR.maxother = SHORT_REPR.maxlong = MAX_VALUE_CHARS
SHORT_REPR.maxlevel = 4


class _RunStopped(BaseException):
    """The run took too many lines or seconds."""


def render_value(value: Any) -> str:
    """Return the `repr` of a value, on one short line and without addresses."""
    try:
        text = SHORT_REPR.repr(value)
    except Exception as fault:
        text = "<" + type(value).__name__ + " whose repr raised " + type(fault).__name__ + ">"
    text = ADDRESS.sub("", text).replace("\n", "\\n")
    return text if len(text) <= MAX_VALUE_CHARS else text[: MAX_VALUE_CHARS - 4] + " ..."


class VariableTracer:
    """Records, for each executed line of the candidate's files, which local variables it changed.

    An entry is `[file, function, depth, line, [[name, value], ...], note]`.
    """

    def __init__(self, root: str, seconds: float) -> None:
        self.head = []  # type: list[list[Any]]
        self.tail = collections.deque(maxlen=LAST_ENTRIES)  # type: collections.deque[list[Any]]
        self.count = 0
        self._prefix = root + os.sep
        self._private = self._prefix + PRIVATE_FOLDER
        self._end_s = time.monotonic() + seconds
        self._depth = 0

    def __call__(self, frame: FrameType, event: str, argument: Any) -> Any:
        """Trace a new frame; `sys.settrace` calls this."""
        file = frame.f_code.co_filename
        if event != "call" or not file.startswith(self._prefix) or file.startswith(self._private):
            return None
        self._depth += 1
        arguments = _render_locals(frame)
        call_entry = self._add_entry(frame, [[name, text] for name, text in arguments.items()], "called")
        entry, values_before = call_entry, arguments

        def trace_line(frame: FrameType, event: str, argument: Any) -> Any:
            nonlocal entry, values_before
            values = _render_locals(frame)
            if entry is not call_entry:  # a line's changes are visible when the next line begins
                entry[4] += [[name, text] for name, text in values.items() if values_before.get(name) != text]
            values_before = values
            if event == "line":
                entry = self._add_entry(frame, [], "")
            elif event == "exception":
                entry[5] = ("raises " + argument[0].__name__ + ": " + str(argument[1]))[:MAX_VALUE_CHARS]
            elif event == "return":
                self._depth -= 1
                if not entry[5].startswith("raises"):
                    entry[5] = "returns " + render_value(argument)
            return trace_line

        return trace_line

    def _add_entry(self, frame: FrameType, changed: list[list[str]], note: str) -> list[Any]:
        self.count += 1
        if self.count > MAX_LINES or time.monotonic() > self._end_s:
            raise _RunStopped
        code = frame.f_code
        file = code.co_filename[len(self._prefix) :]
        entry = [file, code.co_name, self._depth, frame.f_lineno, changed, note]
        (self.head if len(self.head) < FIRST_ENTRIES else self.tail).append(entry)
        return entry


def _render_locals(frame: FrameType) -> dict[str, str]:
    names = [name for name in frame.f_locals if not name.startswith("__")]
    return {name: render_value(frame.f_locals[name]) for name in names[:MAX_NAMES]}


def _compile(source: str) -> tuple[CodeType, CodeType | None]:
    """Return (statements, last expression or `None`) of some source; the value of the expression is reported."""
    tree = ast.parse(source)
    last = tree.body[-1] if tree.body else None
    if isinstance(last, ast.Expr):
        statements = compile(ast.Module(tree.body[:-1], []), "<snippet>", "exec")
        return statements, compile(ast.Expression(last.value), "<snippet>", "eval")
    return compile(tree, "<snippet>", "exec"), None


def run(request: dict[str, Any], root: str) -> dict[str, Any]:
    """Answer a request: import the module, run the set-up, and run the code, traced if requested."""
    printed = io.StringIO()
    tracer = VariableTracer(root, request["seconds"])
    answer = {"ending": "returned", "value": "", "exception": ""}  # type: dict[str, Any]
    sys.stdout = sys.stderr = printed
    try:
        names = dict(vars(importlib.import_module(request["module"])))
        names["__name__"] = "__snippet__"
        statements, expression = _compile(request["code"])
        exec(compile(request["setup"], "<setup>", "exec"), names)
        if request["trace"]:
            sys.settrace(tracer)
        exec(statements, names)
        value = eval(expression, names) if expression is not None else None
        sys.settrace(None)
        answer["value"] = render_value(value) if expression is not None else ""
    except _RunStopped:
        sys.settrace(None)
        answer["ending"] = "stopped"
    except BaseException as fault:
        sys.settrace(None)
        answer["ending"] = "raised"
        answer["exception"] = (type(fault).__name__ + ": " + str(fault))[:400]  # by judgement; not measured
    text = printed.getvalue()
    answer["printed"] = text if len(text) <= MAX_PRINTED_CHARS else text[:MAX_PRINTED_CHARS] + "\n..."
    answer["entries"] = [*tracer.head, *tracer.tail]
    answer["omitted"] = tracer.count - len(answer["entries"]) if tracer.count <= MAX_LINES else -1
    return answer


def main() -> None:
    """Read a request from stdin, and write the answer to the original stdout."""
    request = json.loads(sys.stdin.read())
    channel = os.dup(1)
    os.dup2(2, 1)
    root = os.getcwd()
    sys.path[:] = [root, *(path for path in sys.path if not path.startswith(root))]
    for name in [name for name in sys.modules if name.partition(".")[0] == "suture"]:
        del sys.modules[name]  # a project may have a package of that name
    answer = run(request, root)
    view = memoryview(json.dumps(answer).encode("ascii"))
    while view:
        view = view[os.write(channel, view) :]
    os._exit(0)  # do not wait for the candidate's threads and exit hooks


if __name__ == "__main__":
    main()
