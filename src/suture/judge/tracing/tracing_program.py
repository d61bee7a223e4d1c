"""Runs one call, or a few lines, beside a candidate, and notes the values of variables line by line.

Runs behind the wall, also in the user's own interpreter: Python 3.8 syntax, the standard library, and nothing
of Suture. The code under test could write notes of its own: what is seen here informs and decides nothing.
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

PRIVATE = "_suture"
HEAD, TAIL = 120, 40
"""Entries that are kept of the beginning and of the end of a run."""
MOST_LINES = 20000
"""Executed lines that are looked at; of what runs on, nobody counts the rest."""
MOST_NAMES = 20
LONGEST = 120
MOST_PRINTED = 2000
ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")

_SHORT = reprlib.Repr()
_SHORT.maxlist = _SHORT.maxtuple = _SHORT.maxset = _SHORT.maxfrozenset = _SHORT.maxdeque = _SHORT.maxdict = 12
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = LONGEST
_SHORT.maxlevel = 4


class _Enough(BaseException):
    """The run has gone on for too many lines or seconds."""


def shown(value: Any) -> str:
    """The `repr` of a value, on one short line and without addresses."""
    try:
        text = _SHORT.repr(value)
    except Exception as fault:
        text = "<" + type(value).__name__ + " whose repr raised " + type(fault).__name__ + ">"
    text = ADDRESS.sub("", text).replace("\n", "\\n")
    return text if len(text) <= LONGEST else text[: LONGEST - 4] + " ..."


class Tracer:
    """Notes, for each executed line of the candidate's files, which local variables it changed.

    An entry is `[file, function, depth, line, [[name, value], ...], note]`.
    """

    def __init__(self, root: str, seconds: float) -> None:
        self.head = []  # type: list[list[Any]]
        self.tail = collections.deque(maxlen=TAIL)  # type: collections.deque[list[Any]]
        self.count = 0
        self._prefix = root + os.sep
        self._private = self._prefix + PRIVATE
        self._until = time.monotonic() + seconds
        self._depth = 0

    def __call__(self, frame: FrameType, event: str, argument: Any) -> Any:
        """What `sys.settrace` calls at each new frame."""
        file = frame.f_code.co_filename
        if event != "call" or not file.startswith(self._prefix) or file.startswith(self._private):
            return None
        self._depth += 1
        values = _values(frame)
        entry = self._entry(frame, [[name, text] for name, text in values.items()], "called")
        return self._watcher(entry, values)

    def _watcher(self, called: list[Any], given: dict[str, str]) -> Any:
        at = called
        before = given

        def watch(frame: FrameType, event: str, argument: Any) -> Any:
            nonlocal at, before
            now = _values(frame)
            if at is not called:  # what a line changed is seen when the next one begins
                at[4] += [[name, text] for name, text in now.items() if before.get(name) != text]
            before = now
            if event == "line":
                at = self._entry(frame, [], "")
            elif event == "exception":
                at[5] = ("raises " + argument[0].__name__ + ": " + str(argument[1]))[:LONGEST]
            elif event == "return":
                self._depth -= 1
                if not at[5].startswith("raises"):
                    at[5] = "returns " + shown(argument)
            return watch

        return watch

    def _entry(self, frame: FrameType, changed: list[list[str]], note: str) -> list[Any]:
        self.count += 1
        if self.count > MOST_LINES or time.monotonic() > self._until:
            raise _Enough
        code = frame.f_code
        file = code.co_filename[len(self._prefix) :]
        entry = [file, code.co_name, self._depth, frame.f_lineno, changed, note]
        (self.head if len(self.head) < HEAD else self.tail).append(entry)
        return entry


def _values(frame: FrameType) -> dict[str, str]:
    names = [name for name in frame.f_locals if not name.startswith("__")]
    return {name: shown(frame.f_locals[name]) for name in names[:MOST_NAMES]}


def _compiled(source: str) -> tuple[list[CodeType], bool]:
    """The code of a text, and whether the last piece is an expression, whose value is of interest."""
    tree = ast.parse(source)
    last = tree.body[-1] if tree.body else None
    if isinstance(last, ast.Expr):
        rest = compile(ast.Module(tree.body[:-1], []), "<snippet>", "exec")
        return [rest, compile(ast.Expression(last.value), "<snippet>", "eval")], True
    return [compile(tree, "<snippet>", "exec")], False


def run(request: dict[str, Any], root: str) -> dict[str, Any]:
    """Carry out one request: load the module, prepare, and run the code, traced where that is wanted."""
    printed = io.StringIO()
    tracer = Tracer(root, request["seconds"])
    answer = {"ended": "returned", "value": "", "exception": ""}  # type: dict[str, Any]
    sys.stdout = sys.stderr = printed
    try:
        names = dict(vars(importlib.import_module(request["module"])))
        names["__name__"] = "__snippet__"
        pieces, has_value = _compiled(request["code"])
        exec(compile(request["setup"], "<setup>", "exec"), names)
        if request["trace"]:
            sys.settrace(tracer)
        for piece in pieces[:-1]:
            exec(piece, names)
        value = eval(pieces[-1], names)
        sys.settrace(None)
        answer["value"] = shown(value) if has_value else ""
    except _Enough:
        sys.settrace(None)
        answer["ended"] = "stopped"
    except BaseException as fault:
        sys.settrace(None)
        answer["ended"] = "raised"
        answer["exception"] = (type(fault).__name__ + ": " + str(fault))[:400]
    text = printed.getvalue()
    answer["printed"] = text if len(text) <= MOST_PRINTED else text[:MOST_PRINTED] + "\n..."
    answer["entries"] = [*tracer.head, *tracer.tail]
    answer["left_out"] = tracer.count - len(answer["entries"]) if tracer.count <= MOST_LINES else -1
    return answer


def main() -> None:
    """Read a request from stdin, and write the answer to where stdout was."""
    request = json.loads(sys.stdin.read())
    channel = os.dup(1)
    os.dup2(2, 1)
    root = os.getcwd()
    sys.path[:] = [root, *(path for path in sys.path if not path.startswith(root))]
    for name in [name for name in sys.modules if name.partition(".")[0] == "suture"]:
        del sys.modules[name]  # a project of that name is the candidate's own
    answer = run(request, root)
    view = memoryview(json.dumps(answer).encode("ascii"))
    while view:
        view = view[os.write(channel, view) :]
    os._exit(0)  # the candidate's threads and exit hooks are of no interest


if __name__ == "__main__":
    main()
