"""Record which lines of the project's code run, what the tests call it with, and which kinds of values it handles."""

from __future__ import annotations

import inspect
import os
import re
import sys
import threading
from collections import deque
from contextlib import suppress
from typing import Any

from .call_names import CallNames
from .child_processes import ROOT

MAX_CALLS = 60
"""Calls whose arguments are recorded, as seeds for other inputs."""
MAX_ARGUMENT_CHARS = 1500
"""Characters of one call's arguments. One more character shows that longer ones were cut."""
REPR_FUNCTIONS = frozenset(("_saferepr", "_call_reprcompare", "safe_repr", "_common_shorten_repr"))
REPR_MODULES = (os.path.join("_pytest", "assertion", "rewrite.py"), os.path.join("unittest", "util.py"))
"""Where pytest and unittest render the values of a failed comparison."""
MAX_EXAMINED_CALLS = 5
"""Calls of each function whose variables are examined when it ends."""
KINDS: tuple[tuple[tuple[type, ...], str], ...] = (
    ((bool,), ""),
    ((int, float, complex), "number"),
    ((str, bytes), "text"),
    ((dict,), "mapping"),
    ((set, frozenset), "set"),
    ((list, tuple, range, deque), "sequence"),
)
"""Types and the kind of their values, as `suture.mutation` names it; empty where it says nothing."""
MAX_IDLE_LINES = 3000
"""Consecutive lines that have run before, after which a frame is no longer traced if shortcuts are allowed."""
MAX_IDLE_CALLS = 30
"""Consecutive calls of a function that run no new line, after which only some of its calls are traced."""
TRACED_CALL_INTERVAL = 16
"""After `MAX_IDLE_CALLS`, one call of the function in this number is traced."""


class Tracer:
    """Records lines of some files by `sys.settrace`.

    Args:
        files: Paths of the files, relative to the project's root.
    """

    def __init__(self, files: list[str]) -> None:
        self._paths = {os.path.realpath(os.path.join(ROOT, path)): path for path in files}
        self._path_by_filename: dict[str, str | None] = {}
        self._line_tracers: dict[str, Any] = {}
        self._idle_calls: dict[Any, int] = {}
        self._is_rendering = False
        self._names = CallNames()
        self.takes_shortcuts = False
        self.lines: dict[str, set[int]] = {path: set() for path in files}
        self.calls: list[tuple[str, str, int, str]] = []
        self._kinds: dict[str, dict[int, dict[str, str]]] = {}
        self._examined_calls: dict[Any, int] = {}

    def find_path(self, filename: str) -> str | None:
        """Return the project's path of a file if the file is traced."""
        if filename not in self._path_by_filename:
            self._path_by_filename[filename] = self._paths.get(os.path.realpath(filename))
        return self._path_by_filename[filename]

    def start(self, *, takes_shortcuts: bool = False) -> None:
        """Trace everything that is called from now on.

        Args:
            takes_shortcuts: Whether code that runs over and over may be traced only in part.
        """
        self.takes_shortcuts = takes_shortcuts
        self._line_tracers.clear()
        self._idle_calls.clear()
        self._is_rendering = False
        threading.settrace(self._trace_call)
        sys.settrace(self._trace_call)

    def stop(self) -> None:
        """Stop tracing."""
        sys.settrace(None)
        threading.settrace(None)

    def take(self) -> dict[str, Any]:
        """Return what was recorded since the last time."""
        packed = {path: _pack_lines(lines) for path, lines in self.lines.items() if lines}
        recorded = {"lines": packed, "calls": self.calls, "kinds": self._kinds}
        for lines in self.lines.values():
            lines.clear()
        self._idle_calls.clear()
        self._examined_calls.clear()
        self.calls, self._kinds = [], {}
        return recorded

    def get_error_frames(self, fault: BaseException) -> list[tuple[str, int]]:
        """Return (path, line) of an exception's frames in the traced files, outermost first."""
        frames = []
        trace = fault.__traceback__
        while trace is not None:
            path = self.find_path(trace.tb_frame.f_code.co_filename)
            if path is not None:
                frames.append((path, trace.tb_lineno))
            trace = trace.tb_next
        if isinstance(fault, SyntaxError) and fault.filename and fault.lineno:
            path = self.find_path(fault.filename)
            if path is not None:
                frames.append((path, fault.lineno))
        return frames

    def get_stack(self, frame: Any) -> list[tuple[str, int]]:
        """Return (path, line) of the frames of a stack in the traced files, outermost first."""
        frames: list[tuple[str, int]] = []
        while frame is not None:
            path = self.find_path(frame.f_code.co_filename)
            if path is not None:
                frames.insert(0, (path, frame.f_lineno))
            frame = frame.f_back
        return frames

    def _trace_call(self, frame: Any, event: str, arg: Any) -> Any:
        code = frame.f_code
        if self._is_rendering:
            return None
        path = self.find_path(code.co_filename)
        if path is None:
            renders = code.co_name in REPR_FUNCTIONS and code.co_filename.endswith(REPR_MODULES)
            return self._pause_until_return(frame) if renders else None
        caller = frame.f_back  # a test, unless its file is traced; code may also be in the file of its tests
        self.lines[path].add(frame.f_lineno)
        if caller is not None and (
            self.find_path(caller.f_code.co_filename) is None or caller.f_code.co_name.startswith("test")
        ):
            self._record_call(frame, path)
            if code.co_name == "__init__" and code.co_argcount:
                return self._trace_constructor(frame, self._make_tracer(code, path))
        return self._make_tracer(code, path)

    def _make_tracer(self, code: Any, path: str) -> Any:
        lines = self.lines[path]
        if self.takes_shortcuts:
            return self._trace_with_shortcuts(code, lines)
        if path not in self._line_tracers:
            self._line_tracers[path] = _make_line_tracer(lines, self._examine_variables)
        return self._line_tracers[path]

    def _trace_constructor(self, frame: Any, inner: Any) -> Any:
        """Return a tracer that also remembers the state of the object when its constructor returns."""
        receiver = frame.f_locals.get(frame.f_code.co_varnames[0])
        frame.f_trace_lines = inner is not None

        def trace(frame: Any, event: str, arg: Any) -> Any:
            if event == "return":
                with suppress(Exception):  # an error here would make the test fail
                    self._names.remember_state(receiver)
            elif inner is not None:
                inner(frame, event, arg)
            return trace

        return trace

    def _pause_until_return(self, frame: Any) -> Any:
        """Record nothing while a failure is rendered: a `__repr__` that runs for this is not at fault."""
        self._is_rendering = True
        frame.f_trace_lines = False

        def trace(frame: Any, event: str, arg: Any) -> Any:
            if event == "return":
                self._is_rendering = False
            return trace

        return trace

    def _trace_with_shortcuts(self, code: Any, lines: set[int]) -> Any:
        """Return a line tracer; `None` for most calls of a function that has run no new line for long."""
        idle_calls = self._idle_calls.get(code, 0)
        self._idle_calls[code] = idle_calls + 1
        if idle_calls > MAX_IDLE_CALLS and idle_calls % TRACED_CALL_INTERVAL:
            return None
        return _make_stopping_line_tracer(lines, self._idle_calls, code, self._examine_variables)

    def _examine_variables(self, frame: Any) -> None:
        """Record the kinds of values that a function's variables hold when it ends."""
        code = frame.f_code
        if not code.co_flags & inspect.CO_OPTIMIZED or code.co_name.startswith("<"):
            return  # the names of a class body may be in a mapping of the project's own; or it is a lambda
        count = self._examined_calls[code] = self._examined_calls.get(code, 0) + 1
        path = self.find_path(code.co_filename)
        if count > MAX_EXAMINED_CALLS or path is None:
            return
        kinds = self._kinds.setdefault(path, {}).setdefault(code.co_firstlineno, {})
        for name, value in frame.f_locals.items():
            if value is not None:
                kind = _get_kind(type(value))
                kinds[name] = kind if kinds.get(name, kind) == kind else ""

    def _record_call(self, frame: Any, path: str) -> None:
        if len(self.calls) >= MAX_CALLS:
            return
        try:
            name, arguments = self._names.describe(frame)
            depends_on_history = self._names.depends_on_history(frame)
        except Exception:  # what is called, or its `__repr__`, is the project's own
            name, arguments, depends_on_history = frame.f_code.co_name, "", False
        if name.startswith("<"):  # such as `<lambda>`
            return
        line = frame.f_code.co_firstlineno
        self.calls.append((path, name, line, arguments[: MAX_ARGUMENT_CHARS + 1]))
        if depends_on_history and arguments:
            self._add_unrepeatable(path, name, line)

    def _add_unrepeatable(self, path: str, name: str, line: int) -> None:
        """Record once that a function is also called where the same call may answer otherwise in a new process."""
        call = (path, re.split("[/*]", name)[0], line, "")
        if call not in self.calls:
            self.calls.append(call)


def _pack_lines(lines: set[int]) -> str:
    """Return line numbers as the bits of a number, lowest byte first: reports may have millions of them."""
    packed = bytearray(max(lines) // 8 + 1)
    for line in lines:
        packed[line >> 3] |= 1 << (line & 7)
    return packed.hex()


def _get_kind(type_: type) -> str:
    return next((kind for types, kind in KINDS if issubclass(type_, types)), "")


def _make_line_tracer(lines: set[int], on_end: Any) -> Any:
    add = lines.add

    def trace(frame: Any, event: str, arg: Any) -> Any:
        if event == "line":
            add(frame.f_lineno)
        elif event == "return":
            on_end(frame)
        return trace

    return trace


def _make_stopping_line_tracer(lines: set[int], idle_calls: dict[Any, int], code: Any, on_end: Any) -> Any:
    """Return a tracer that stops after many lines without a new one."""
    idle_lines = 0

    def trace(frame: Any, event: str, arg: Any) -> Any:
        nonlocal idle_lines
        if event == "line":
            number = frame.f_lineno
            if number not in lines:
                lines.add(number)
                idle_lines = idle_calls[code] = 0
            else:
                idle_lines += 1
                if idle_lines > MAX_IDLE_LINES:
                    frame.f_trace_lines = False
        elif event == "return":
            on_end(frame)
        return trace

    return trace
