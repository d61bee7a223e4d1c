"""Watching the process that runs the tests, from an audit hook (PEP 578).

The hook holds the report's key and the snapshot of the test machinery. Python code can neither remove an audit
hook nor find it without an operation that the hook sees first: reading frames, searching the garbage collector,
replacing the code of a function. When the candidate's code does so, the hook reports it at once, in a line that
cannot be changed later.

The reporter asks for a line with an audit event too. The hook accepts it only from functions of this plugin that
are as they were loaded.
"""

from __future__ import annotations

import builtins
import sys
from _thread import get_ident
from collections.abc import Callable, Iterator
from operator import is_
from os import O_RDWR, O_WRONLY, getcwd, getpid
from sys import _getframe as get_frame
from types import CodeType, FunctionType
from typing import Any

from .assert_notes import ASSERT_REQUESTS, AssertNotes
from .assert_watch import find_replaceable_names, read_text
from .machinery import TestMachinery, compile_comparer, make_readers
from .origins import Origins, decode_path, get_file, get_library_name, identify_file, make_absolute
from .signing import SignedReport
from .test_classes import TestClasses, list_own_functions

# The functions below use this copy, even if code changes the builtins. Type checkers expect a module.
__builtins__ = dict(vars(builtins))  # type: ignore[assignment]
BUILTINS = dict(vars(builtins))
REQUEST = "suture.report"
"""The audit event by which the reporter asks for something."""
OPERATIONS = frozenset((
    "sys._getframe", "sys._current_frames", "sys._current_exceptions", "sys.settrace", "sys.setprofile",
    "sys.addaudithook", "sys.monitoring.register_callback", "gc.get_objects", "gc.get_referrers",
    "gc.get_referents", "code.__new__", "function.__new__", "marshal.loads", "exec", "compile",
    "ctypes.dlopen", "ctypes.dlsym", "ctypes.cdata", "ctypes.addressof", "ctypes.string_at",
))  # fmt: skip
"""Audit events of operations by which code reaches other code of its process."""
ATTRIBUTES = {
    "object.__getattr__": frozenset(("tb_frame", "gi_frame", "cr_frame", "ag_frame")),
    "object.__setattr__": frozenset(("__code__",)),
}
"""Audit event -> attributes that lead to a frame, or that are a function's code."""
WRITING_EVENTS = {
    "os.utime": 0,
    "os.chmod": 0,
    "os.truncate": 0,
    "os.remove": 0,
    "os.rename": 1,
    "os.link": 1,
}
"""Audit event of an operation that changes a file -> position of its path."""
WRITING_FLAGS = O_WRONLY | O_RDWR
RENAMING_EVENTS = frozenset(("os.rename", "os.link", "os.symlink"))
"""Audit events of operations after which a file can be read under another name. Its own name comes first."""
FILE_EVENTS = RENAMING_EVENTS.union(WRITING_EVENTS)
EVENTS = OPERATIONS.union(ATTRIBUTES, FILE_EVENTS, ("open", REQUEST))
CODE_SUFFIXES = (".py", ".pyc")
ACTING_FILES = frozenset((
    "inspect.py", "timeit.py", "cProfile.py", "profile.py", "doctest.py", "code.py", "codeop.py", "trace.py",
    "bdb.py", "pdb.py", "cmd.py", "runpy.py",
))  # fmt: skip
"""Files of the library that pass frames on to their caller, or run strings for it. What the code in such a string does
itself is reported for all files."""
RENDERING_FILES = frozenset(("warnings.py", "traceback.py", "logging/__init__.py", "base_tasks.py"))
"""Files of the library that read frames, and lines of source code, to show them."""
FUNCTIONS_FOR_CALLERS = frozenset((
    "walk_tb", "walk_stack", "extract_stack", "format_stack", "print_stack", "findCaller", "formatwarning",
    "_task_get_stack",
))  # fmt: skip
"""Functions in these files that pass what they read to a caller outside of them."""
IMPORTING_FUNCTION = "exec_module"
OWN_REPORT, TEST_TEXT = "the report of the tests", "the text of a test"
LOST_FAILURE = "a failed assert of a test"
COMPILED_AFTER = 600
"""Number of checks of this plugin's own functions after which these are compiled; see `machinery.COMPILED_AFTER`."""
PASS_FIELDS = 4
"""Fields of a phase that only says which test passed."""


class Watch:
    """What the hook knows and does.

    Attributes:
        asserts: What the assertions of the tests have sent.

    Args:
        secret_files: Absolute path -> what it is, of files that the candidate has no reason to open.
        lists_opened: Whether to report which other files of the project the tests open.
    """

    def __init__(
        self,
        report: SignedReport,
        machinery: TestMachinery,
        origins: Origins,
        secret_files: dict[str, str],
        *,
        lists_opened: bool,
    ) -> None:
        self._report = report
        self._machinery = machinery
        self._origins = origins
        self._secret_files = secret_files
        self.lists_opened = lists_opened
        self.secret_names = frozenset(path.rpartition("/")[2] for path in secret_files)
        self._process, self._thread = getpid(), get_ident()
        self._seen = set()  # type: set[tuple[str, str]]
        self._changed_by_tests = set()  # type: set[tuple[str, str]]
        self._new_changes = []  # type: list[tuple[str, str]]
        """Changes that the next line reports. They do not wait for the end, which a stopped run never writes."""
        self.asserts = AssertNotes(self._is_test, origins.is_candidate)
        self._classes = TestClasses(machinery.find_file, origins.is_candidate)
        self._tests_left = 0
        self._passed_phases = []  # type: list[dict[str, Any]]
        """The phases of the current test that are not written yet: those of a test that passes are one field of the
        next line, which saves two lines out of three. None of the last test wait, because the process may end."""

    def concerns(self, event: str, arguments: Any) -> Any:
        """Whether an audit event must be looked at.

        Code under test may send it too, with objects whose methods would run inside of the hook, unseen.
        """
        if event == REQUEST:
            return type(arguments[0]) is str
        if event == "open":
            path, flags = decode_path(arguments[0]), arguments[2]
            if not path or type(flags) is not int:
                return False
            is_listed = not path.endswith(CODE_SUFFIXES) and (self.lists_opened or flags & WRITING_FLAGS)
            return is_listed or path.rpartition("/")[2] in self.secret_names
        if event in WRITING_EVENTS:
            return decode_path(arguments[WRITING_EVENTS[event]])
        if event not in ATTRIBUTES:
            return True
        is_known = type(arguments[1]) is str and arguments[1] in ATTRIBUTES[event]
        return is_known and (event != "object.__setattr__" or type(arguments[2]) is CodeType)

    def handle(self, event: str, arguments: Any, frame: Any, own_codes: frozenset[Any]) -> None:
        """Do what a request says, or report an operation of the candidate's code.

        Args:
            frame: The innermost frame of Python code.
            own_codes: The code of this plugin's functions.
        """
        if event == REQUEST and arguments[0] in ASSERT_REQUESTS:
            self.asserts.receive(*arguments, frame=frame)
        elif event == REQUEST:
            if self._is_own_request(frame, own_codes):
                self._receive(*arguments)
        elif event == "open" or event in FILE_EVENTS:
            self._report_file(event, arguments, frame)
        else:
            if event == "object.__setattr__":
                self._machinery.note_new_code(arguments[0], arguments[2])
            self._report_operation(arguments[1] if event in ATTRIBUTES else event, frame)

    def _report_file(self, event: str, arguments: Any, frame: Any) -> None:
        if event == "open" or event in RENAMING_EVENTS:
            self._report_opening(decode_path(arguments[0]), frame)
        if event in WRITING_EVENTS:
            self._report_use_by_test("written", decode_path(arguments[WRITING_EVENTS[event]]), frame)
        elif event == "open" and arguments[2] & WRITING_FLAGS:
            self._report_use_by_test("written", decode_path(arguments[0]), frame)
        elif event == "open" and self.lists_opened:
            self._report_use_by_test("opened", decode_path(arguments[0]), frame)

    def _is_own_request(self, frame: Any, own_codes: frozenset[Any]) -> bool:
        sender = frame.f_back
        is_own = frame.f_code in own_codes and sender is not None and sender.f_code in own_codes
        if not is_own or get_ident() != self._thread:
            self._note(OWN_REPORT, get_file(frame))
            return False
        harmless_files = self._origins.harmless_files
        while frame is not None:
            if frame.f_code.co_filename not in harmless_files and self._origins.is_candidate(get_file(frame)):
                self._note(OWN_REPORT, get_file(frame))
            frame = frame.f_back
        return True

    def _receive(self, request: str, *details: Any) -> None:
        if request == "write":
            self._write(*details)
        elif request == "look":
            changes = self._machinery.find_changes_since_last(details[0]).items()
            # Until a test has ended, it may have replaced something itself. Only the candidate's code counts then.
            for name, file in changes:
                if details[0] == "teardown" or (file and self._origins.is_candidate(file)):
                    self._note_change(name, file)
            self._look_at_test_function(details[1])
            self._look_at_test_object(details[3])
            for name, file in self._classes.find_changes(details[2], is_over=details[0] == "teardown"):
                self._note_change(name, file)
        elif request == "collected":
            self._look_at_test_modules(*details)
        elif request == "isolate":
            self._process = getpid()
        elif request == "skip_to":
            self._report.skip_to(*details)
        elif request == "derive":
            details[1][:] = self._report.derive(details[0])
        elif request == "count":
            for phase in self._passed_phases:
                self._report.write(phase)
            details[0][:] = [self._report.count]

    def _write(self, event: dict[str, Any]) -> None:
        if event["event"] in ("phase", "start", "end"):
            # Threads may also fail while fixtures are torn down, or between two tests.
            failed = self.asserts.take_failed()
            for file in failed if event.get("outcome", "passed") == "passed" else ():
                self._note(LOST_FAILURE, file)
        if event["event"] == "end":
            changes_left = {**self._machinery.added(), **self._machinery.changed()}
            event = {**event, "changed": sorted(changes_left.items())}
        elif event["event"] == "items":
            self._tests_left = len(event["ids"])
            self.asserts.take_failed()  # files that cannot be collected are failures already
        elif event["event"] == "start":
            self._tests_left -= 1
            self.asserts.passed.clear()
        elif (event["event"], event.get("when"), event.get("outcome")) == ("phase", "call", "passed"):
            event = {**event, "unreached": True} if self.asserts.lacks_assertion(event["id"]) else event
        if not self._defer_pass(event):
            self._append(event)

    def _defer_pass(self, event: dict[str, Any]) -> bool:
        """Keep a phase that only says that it passed for the next line, and return whether it was one."""
        waiting = self._passed_phases
        is_pass = event["event"] == "phase" and event["outcome"] == "passed" and len(event) == PASS_FIELDS
        if not is_pass or self._tests_left <= 0 or getpid() != self._process:
            return False
        is_call = event["when"] == "call" and not waiting
        is_teardown = event["when"] == "teardown" and [phase["id"] for phase in waiting] == [event["id"]]
        if is_call or is_teardown:
            waiting.append(event)
        return is_call or is_teardown

    def _append(self, event: dict[str, Any]) -> None:
        if getpid() != self._process:  # a fork reports in its own lines
            self._process = getpid()
            self._passed_phases = []
            self._report.become(*self._report.derive(str(self._process)))
        if self._new_changes:
            event = {**event, "meanwhile": self._new_changes}
            self._new_changes = []
        waiting, self._passed_phases = self._passed_phases, []
        if len(waiting) == 2:
            event, waiting = {**event, "passed": waiting[0]["id"]}, []
        for phase in (*waiting, event):
            self._report.write(phase)

    def _is_test(self, file: str) -> bool:
        return self._secret_files.get(file) == TEST_TEXT

    def _look_at_test_modules(self, modules: list[Any]) -> None:
        """Report names of test modules that an `import *` binds to the candidate's code instead."""
        for module in modules:
            path = str(getattr(module, "__file__", ""))
            for name, file in self._classes.add(module, read_text(path)):
                self._note_change(name, file)
            for name in find_replaceable_names(path):
                value = vars(module).get(name)
                file = self._machinery.find_file(value)
                # A compiled function in place of a builtin has no file.
                is_other = value is not None and not file and name in BUILTINS and value is not BUILTINS[name]
                if is_other or (file and self._origins.is_candidate(file)):
                    self._note_change(f"{name} in {self._origins.get_path(path)}", file)

    def _look_at_test_function(self, function: Any) -> None:
        """Report that the code of a test is not the test's own."""
        file = self._machinery.find_file(function)
        if file and self._origins.is_candidate(file):
            self._note_change("the code of a test", file)

    def _look_at_test_object(self, test: Any) -> None:
        """Report functions that the candidate's code gave to the object of a test alone."""
        for name, function in list_own_functions(test):
            file = self._machinery.find_file(function)
            if file and self._origins.is_candidate(file):
                self._note_change(f"{name} of a test", file)

    def _note_change(self, name: str, file: str) -> None:
        """Have the next line report a changed part of the test machinery."""
        if (name, file) not in self._changed_by_tests:
            self._changed_by_tests.add((name, file))
            self._new_changes.append((name, file))

    def _report_operation(self, name: str, frame: Any) -> None:
        is_for_caller, is_text = True, False
        while frame is not None and not self._origins.is_project(get_file(frame)):
            name_in_library = get_library_name(frame)
            if name_in_library in RENDERING_FILES:
                is_for_caller = frame.f_code.co_name in FUNCTIONS_FOR_CALLERS
            elif name_in_library[:1] == "<":
                is_text = True  # the function that ran it, such as `typing.get_type_hints`
            elif name_in_library not in ACTING_FILES and not is_text:
                return
            frame = frame.f_back
        if frame is not None and is_for_caller and self._origins.is_candidate(get_file(frame)):
            self._note(name, get_file(frame))

    def _report_opening(self, path: str, frame: Any) -> None:
        """Report that the candidate's code opens a secret file."""
        while frame is not None:
            file = get_file(frame)
            if self._origins.is_candidate(file):
                what = self._find_secret(path)
                if what:
                    self._note(what, file)
            if frame.f_code.co_name == IMPORTING_FUNCTION:
                return  # the importer does not get the source
            is_rendering = get_library_name(frame) in RENDERING_FILES
            is_for_caller = frame.f_code.co_name in FUNCTIONS_FOR_CALLERS
            if (is_rendering and not is_for_caller) or self._origins.is_project(file):
                return
            frame = frame.f_back

    def _find_secret(self, path: str) -> str:
        """Return what a file is that the candidate has no reason to open; empty for any other file."""
        what = self._secret_files.get(make_absolute(path, getcwd()))
        if what is not None:
            return what
        name = path.rpartition("/")[2]
        identity = identify_file(path) if name in self.secret_names else ()
        for file, what in self._secret_files.items():
            # The same file may have other paths, such as `/proc/self/cwd/test_x.py`.
            if identity and file.rpartition("/")[2] == name and identify_file(file) == identity:
                return what
        return ""

    def _report_use_by_test(self, use: str, path: str, frame: Any) -> None:
        """Report that a test opens or writes, or that the candidate overwrites, a file that is not code."""
        path = make_absolute(path, getcwd())
        if path.endswith(CODE_SUFFIXES) or not self._origins.holds(path):
            return
        while frame is not None and not self._origins.is_project(get_file(frame)):
            frame = frame.f_back
        is_candidate = frame is not None and self._origins.is_candidate(get_file(frame))
        if is_candidate and use == "written":
            use = "overwritten"
        if frame is not None and (not is_candidate or use == "overwritten") and (use, path) not in self._seen:
            self._seen.add((use, path))
            self._append({"event": use, "path": self._origins.get_path(path)})

    def _note(self, what: str, file: str) -> None:
        pair = (what, self._origins.get_path(file))
        if pair not in self._seen:
            self._seen.add(pair)
            self._append({"event": "reached", "what": pair[0], "file": pair[1]})


def install_watch(watch: Watch) -> Callable[..., None]:
    """Start to watch this process, and return the function that sends a request to the hook.

    Requests are `write` with an event, `look` with the phase that is over and not yet reported, the function of the
    test and its module, `collected` with the test modules, `isolate` in a child that continues this report, `skip_to`
    and `count` with the number of lines, and `derive` with a label and a list that receives the name and the key of
    another process.
    """
    package = __name__.rpartition(".")[0] + "."
    names = [*_list_own_names(package)]
    own_values = [(namespace, {name: namespace[name] for name in group}) for namespace, group in names]
    readers = [*make_readers(names)]
    own = [value for read, namespace in readers for value in read(namespace)]
    is_same = is_
    classes = [value for value in own if isinstance(value, type) and value.__module__.startswith(package)]
    namespaces = [vars(class_) for class_ in classes]
    sizes = [*map(len, namespaces)]
    audit, concerns = sys.audit, watch.concerns

    def send(request: str, *details: Any) -> None:
        audit(REQUEST, request, *details)

    own_codes = frozenset([send.__code__, *(value.__code__ for value in own if type(value) is FunctionType)])
    inside = set()  # type: set[int]
    broken = []  # type: list[bool]
    comparers = []  # type: list[Any]
    checks = 0

    def is_intact() -> bool:
        nonlocal checks
        checks += 1
        if checks == COMPILED_AFTER and hasattr(compile_comparer, "__builtins__"):  # Python 3.10
            for namespace, values_by_name in own_values:
                if values_by_name:
                    copy = namespace.get("__builtins__")
                    comparers.append(compile_comparer(namespace, values_by_name, copy))
        values = []  # type: list[Any]
        try:
            if comparers:
                return all([compare() for compare in comparers]) and [*map(len, namespaces)] == sizes
            for read, namespace in readers:
                values += read(namespace)
        except (KeyError, NameError):
            return False
        return all(map(is_same, values, own)) and [*map(len, namespaces)] == sizes

    def hook(event: str, arguments: Any) -> None:
        if event not in EVENTS or get_ident() in inside or broken or not concerns(event, arguments):
            return
        inside.add(get_ident())
        try:
            if is_intact():
                watch.handle(event, arguments, get_frame(1), own_codes)
            else:
                broken.append(True)  # nothing is reported from here on, so the run does not pass
        finally:
            inside.discard(get_ident())

    sys.addaudithook(hook)
    return send


def _list_own_names(package: str) -> Iterator[tuple[Any, list[str]]]:
    """Yield (namespace, names of functions and classes) of the plugin's modules and of their classes."""
    for name, module in list(sys.modules.items()):
        if not name.startswith(package):
            continue
        members = vars(module)
        yield members, [key for key, value in members.items() if callable(value)]
        for value in list(members.values()):
            if isinstance(value, type) and vars(value).get("__module__") == name:
                parts = vars(value).items()
                yield (
                    vars(value),
                    [
                        key
                        for key, part in parts
                        if callable(part) or isinstance(part, (property, staticmethod, classmethod))
                    ],
                )
