"""Which lines of the project's code run, and what the tests call it with."""

from __future__ import annotations

import os
import sys
import threading
from typing import Any

from .child_processes import ROOT

MOST_INPUTS = 60
"""Calls whose arguments are noted: they are seeds for others."""
LONGEST_INPUT = 1500
"""Characters of one call's arguments; of longer ones no more is kept than shows that they are."""
QUIET_LINES = 3000
"""Lines without a new one, after which a frame is looked at no more, where that is allowed."""
TELLING = frozenset(("_saferepr", "_call_reprcompare", "safe_repr", "_common_shorten_repr"))
TELLERS = (os.path.join("_pytest", "assertion", "rewrite.py"), os.path.join("unittest", "util.py"))
"""Where pytest and unittest put the values of a comparison that failed into words."""
QUIET_CALLS = 30
"""Calls of a function without a new line, after which it is looked at every sixteenth time only."""


class Tracer:
    """Notes lines by `sys.settrace`, of some files.

    Args:
        files: Their paths, from the project's root.
    """

    def __init__(self, files: list[str]) -> None:
        self._paths = {os.path.join(ROOT, path): path for path in files}
        self._known: dict[str, str | None] = {}
        self._lines: dict[str, Any] = {}
        self._quiet: dict[Any, int] = {}
        self._is_told = False
        self.sparing = False
        self.seen: dict[str, set[int]] = {path: set() for path in files}
        self.calls: list[tuple[str, str, int, str]] = []

    def path_of(self, filename: str) -> str | None:
        """The project's name of a file, where it is one that we look at."""
        if filename not in self._known:
            self._known[filename] = self._paths.get(os.path.abspath(filename))
        return self._known[filename]

    def start(self, *, sparing: bool = False) -> None:
        """Look at everything that is called from now on.

        Args:
            sparing: Whether what runs over and over may be looked at less closely.
        """
        self.sparing = sparing
        self._lines.clear()
        self._quiet.clear()
        self._is_told = False
        threading.settrace(self._called)
        sys.settrace(self._called)

    def stop(self) -> None:
        """Look no more."""
        sys.settrace(None)
        threading.settrace(None)

    def take(self) -> dict[str, Any]:
        """What was seen since the last time."""
        taken = {"lines": {p: _packed(seen) for p, seen in self.seen.items() if seen}, "calls": self.calls}
        for seen in self.seen.values():
            seen.clear()
        self._quiet.clear()
        self.calls = []
        return taken

    def frames_of(self, fault: BaseException) -> list[tuple[str, int]]:
        """Where an exception went through the project's code, the outermost first."""
        found = []
        trace = fault.__traceback__
        while trace is not None:
            path = self.path_of(trace.tb_frame.f_code.co_filename)
            if path is not None:
                found.append((path, trace.tb_lineno))
            trace = trace.tb_next
        if isinstance(fault, SyntaxError) and fault.filename and fault.lineno:
            path = self.path_of(fault.filename)
            found += [(path, fault.lineno)] if path is not None else []
        return found

    def stack_of(self, frame: Any) -> list[tuple[str, int]]:
        """The project's code in a stack, the outermost first."""
        found: list[tuple[str, int]] = []
        while frame is not None:
            path = self.path_of(frame.f_code.co_filename)
            if path is not None:
                found.insert(0, (path, frame.f_lineno))
            frame = frame.f_back
        return found

    def _called(self, frame: Any, event: str, arg: Any) -> Any:
        code = frame.f_code
        if self._is_told:
            return None
        path = self.path_of(code.co_filename)
        if path is None:
            is_teller = code.co_name in TELLING and code.co_filename.endswith(TELLERS)
            return self._until_told(frame) if is_teller else None
        back = frame.f_back
        if back is not None and self.path_of(back.f_code.co_filename) is None:
            self._note_call(frame, path)
        seen = self.seen[path]
        seen.add(frame.f_lineno)
        if self.sparing:
            return self._sparing(code, seen)
        if path not in self._lines:
            self._lines[path] = _watcher(seen)
        return self._lines[path]

    def _until_told(self, frame: Any) -> Any:
        """Look away while a failure is put into words: a `__repr__` that runs for that is not at fault."""
        self._is_told = True
        frame.f_trace_lines = False

        def told(frame: Any, event: str, arg: Any) -> Any:
            if event == "return":
                self._is_told = False
            return told

        return told

    def _sparing(self, code: Any, seen: set[int]) -> Any:
        """As a watcher of lines; none for a function that has nothing new to show, most of the time."""
        quiet = self._quiet.get(code, 0)
        self._quiet[code] = quiet + 1
        if quiet > QUIET_CALLS and quiet % 16:
            return None
        return _sparing_watcher(seen, self._quiet, code)

    def _note_call(self, frame: Any, path: str) -> None:
        code = frame.f_code
        if len(self.calls) >= MOST_INPUTS or code.co_name.startswith("<"):
            return
        names = code.co_varnames[: code.co_argcount]
        try:
            taken = repr(tuple(frame.f_locals[name] for name in names))
        except Exception:
            taken = ""
        self.calls.append((path, code.co_name, code.co_firstlineno, taken[: LONGEST_INPUT + 1]))


def _packed(lines: set[int]) -> str:
    """Line numbers as the bits of a number, the lowest byte first: there may be millions of them."""
    packed = bytearray(max(lines) // 8 + 1)
    for line in lines:
        packed[line >> 3] |= 1 << (line & 7)
    return packed.hex()


def _watcher(seen: set[int]) -> Any:
    add = seen.add

    def line(frame: Any, event: str, arg: Any) -> Any:
        if event == "line":
            add(frame.f_lineno)
        return line

    return line


def _sparing_watcher(seen: set[int], quiet: dict[Any, int], code: Any) -> Any:
    idle = 0

    def line(frame: Any, event: str, arg: Any) -> Any:
        nonlocal idle
        if event == "line":
            number = frame.f_lineno
            if number not in seen:
                seen.add(number)
                idle = quiet[code] = 0
            else:
                idle += 1
                if idle > QUIET_LINES:
                    frame.f_trace_lines = False
        return line

    return line
