"""Reading the report that the reporting plugin writes during a pytest run.

The plugin signs each line, but code under test runs in the same process and may have made it sign something
else. So every event is checked before it is used.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from suture.core.records import CheckOutcome, CheckStatus, CodeFrame, Counterexample
from suture.judge.failures import render_failure
from suture.judge.runners.failed_asserts import read_failed_assert
from suture.judge.runners.signed_lines import streams, verified_events

OWN_REPORT, TEST_TEXT = "the report of the tests", "the text of a test"
"""What `reached` says if something other than the plugin wrote into the report, and if a file with tests was opened;
see report_plugin/watch.py."""
USES = ("reached", "opened", "written", "overwritten")
"""Events that may also come after pytest's end."""
LOST_FAILURE = "a failed assert of a test"
"""What `reached` says if an assert failed in a function that the candidate's code called, and the test passed."""
PASSED_PHASES = (
    {"when": "call", "outcome": "passed"},
    {"when": "teardown", "outcome": "passed"},
)
"""The phases of a test that passed, which are one field of the following event."""
Pair = tuple[str, str]
"""(name, file): a module or another part of the test machinery, and the file that it comes from."""


@dataclass
class PytestReport:
    """The report of one pytest run.

    Attributes:
        named: Files, folders and ids that the command names.
        patterns: Name patterns of test files, from pytest's settings.
        left_out: Names of folders that pytest does not enter.
        rootdir: The folder that pytest's ids are relative to, relative to the project's root.
        examples: Id of a docstring's test -> its examples, each as source and expected output.
        files: Files that hold the other tests.
        deselected: Ids that the command's own options excluded.
        uncollectable: File or folder that could not be collected -> the error text.
        phases: Test id -> the phases that it went through.
        started: Ids of the tests that began, in order.
        last_used_s: Seconds of the run that were used when the last test began.
        last_limit_s: Seconds that the last test was allowed to take; 0 if it had no limit.
        joint_report: The report of the tests that ran together, if some of them then ran in isolation.
        early_modules: Modules of the project that were loaded before the plugin.
        changed: Parts of the test machinery (modules and functions of pytest and of Python) that differed at
            the end. The file is that of the new value: a path relative to the project, an absolute path
            outside of it, or empty if unknown.
        changed_by_tests: The same, found after the collection or after a single test.
        search_path: Entries of `sys.path` at any time, relative to the project or absolute.
        loaded_modules: Top-level modules and namespace packages that were loaded. The file is relative to the
            project, and the folder of a namespace package; it is empty for modules from outside of the project.
        others: Name of another process that ran tests, such as a worker of pytest-xdist -> its report.
        reached: What the candidate's code did to reach other code of its process or the tests' source, with the
            candidate's file.
        opened: Files of the project, other than Python code, that tests opened; known of base runs only.
        written: Such files that tests wrote or removed.
        overwritten: Such files that the candidate's code wrote or removed.
        may_rerun: Whether pytest-rerunfailures is installed, which repeats failed tests.
        has_reruns: Whether a failed test was repeated.
        unreached: Ids of tests that passed without the assertion at which they failed before the change.
        exit_code: The exit code of pytest; `None` if it did not run to its end.
    """

    begun: bool = False
    named: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    rootdir: str = "."
    items: tuple[str, ...] = ()
    examples: dict[str, list[list[str]]] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    deselected: tuple[str, ...] = ()
    uncollectable: dict[str, str] = field(default_factory=dict)
    phases: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    started: list[str] = field(default_factory=list)
    early_modules: frozenset[Pair] = frozenset()
    changed: frozenset[Pair] = frozenset()
    changed_by_tests: frozenset[Pair] = frozenset()
    search_path: frozenset[str] = frozenset()
    loaded_modules: frozenset[Pair] = frozenset()
    reached: frozenset[Pair] = frozenset()
    opened: frozenset[str] = frozenset()
    written: frozenset[str] = frozenset()
    overwritten: frozenset[str] = frozenset()
    may_rerun: bool = False
    has_reruns: bool = False
    unreached: frozenset[str] = frozenset()
    others: dict[str, PytestReport] = field(default_factory=dict)
    exit_code: int | None = None
    last_used_s: float = 0.0
    last_limit_s: float = 0.0
    joint_report: PytestReport | None = None


def read_report(content: bytes, key: bytes) -> PytestReport:
    """Read a report up to the first line that does not verify or that the plugin would not write.

    Args:
        key: The run's secret.
    """
    reports = {name: _read_process(*lines) for name, lines in streams(content, key).items()}
    report = reports.pop("")
    report.others = {name: other for name, other in reports.items() if other.begun or other.phases}
    for other in reports.values():
        report.reached |= other.reached
        report.unreached |= other.unreached
        report.opened |= other.opened
        report.written |= other.written
        report.overwritten |= other.overwritten
    for other in report.others.values():
        report.changed |= other.changed
        report.changed_by_tests |= other.changed_by_tests
        report.search_path |= other.search_path
        report.loaded_modules |= other.loaded_modules
        if not report.items:  # each pytest-xdist worker collects all tests
            report.items, report.examples, report.files = other.items, other.examples, other.files
            report.deselected = other.deselected
    return report


def _read_process(content: bytes, key: bytes) -> PytestReport:
    report = PytestReport()
    uses: dict[str, set[Any]] = {use: set() for use in USES}  # a large suite may open many files
    for event in verified_events(content, key):
        if not is_sound(event):
            break
        kind = event["event"]
        if kind in uses:
            uses[kind].add((event["what"], event["file"]) if kind == "reached" else event["path"])
        if report.exit_code is not None and (kind not in uses or "passed" in event):
            uses["reached"].add((OWN_REPORT, ""))  # nothing is reported after the end
        _apply_event(report, event)
    for use, found in uses.items():
        setattr(report, use, frozenset(found))
    return report


def _apply_event(report: PytestReport, event: dict[str, Any]) -> None:
    if "passed" in event:
        report.phases.setdefault(event["passed"], []).extend(PASSED_PHASES)
    match event["event"]:
        case "begin":
            report.begun = True
            report.named, report.patterns = tuple(event["named"]), tuple(event["patterns"])
            report.left_out = tuple(event["left_out"])
            report.rootdir = event.get("rootdir", ".")
            report.early_modules = _read_pairs(event, "early")
            report.may_rerun = event.get("may_rerun") is True
        case "items":
            report.items = tuple(event["ids"])
            report.examples = event.get("examples", {})
            report.files = tuple(event.get("files", ()))
            report.deselected = tuple(event.get("deselected", ()))
        case "uncollectable":
            report.uncollectable[event["id"]] = event["text"]
        case "start":
            report.started.append(event["id"])
            report.last_used_s, report.last_limit_s = event.get("used_s", 0.0), event.get("limit_s", 0.0)
        case "phase":
            if event.get("unreached") is True:
                report.unreached |= {event["id"]}
            report.has_reruns |= event["outcome"] == "rerun"
            report.phases.setdefault(event["id"], []).append(event)
        case "isolated":
            # The process of the joint run has ended, without an exit code from pytest.
            report.joint_report = replace(report, exit_code=0)
            report.phases, report.started = {}, []
        case "end":
            report.exit_code = event["exit"]
            report.changed = _read_pairs(event, "changed")
    if "meanwhile" in event:
        report.changed_by_tests |= _read_pairs(event, "meanwhile")
    if "search_path" in event or "loaded" in event:
        report.search_path |= frozenset(event.get("search_path", ()))
        report.loaded_modules |= _read_pairs(event, "loaded")


def _read_pairs(event: Mapping[str, Any], name: str) -> frozenset[Pair]:
    return frozenset((str(part), str(file)) for part, file in event.get(name, ()))


def make_test_outcome(test_id: str, phases: Iterable[Mapping[str, Any]]) -> CheckOutcome:
    """Return the outcome of one test from its phases; an expected failure counts as skipped."""
    status: CheckStatus = "missing"
    counterexample = None
    reached_teardown = False
    for phase in phases:
        if phase["outcome"] == "failed":
            status = "failed" if phase["when"] == "call" else "error"
            status = "timeout" if "timeout_s" in (phase.get("fact") or {}) else status
            counterexample = _make_counterexample(test_id, phase)
            break
        if phase["outcome"] == "rerun":  # the test starts again, so its earlier phases do not count
            status, reached_teardown = "missing", False
            continue
        reached_teardown = reached_teardown or phase["when"] == "teardown"
        if phase["outcome"] == "skipped":
            status = "skipped"
        elif phase["when"] == "call":
            status = "passed"
    if status == "passed" and not reached_teardown:  # code under test ended the process
        status = "missing"
    return CheckOutcome(check_id=test_id, status=status, evidence="nonce", counterexample=counterexample)


def _make_counterexample(test_id: str, phase: Mapping[str, Any]) -> Counterexample:
    fact = phase.get("fact") or {}
    text = str(fact.get("text", ""))
    if "example" in fact:
        return _make_example_counterexample(test_id, fact)
    counterexample = Counterexample(
        check_id=test_id,
        call=" ".join(str(fact.get("statement", "")).split()),
        file=str(fact.get("file", "")),
        line=fact.get("line"),
        message=text if "\n" in text.strip() else "",
        frames=_read_frames(fact),
        inputs=fact.get("inputs", {}),
    )
    if "timeout_s" in fact:
        text = render_failure("test_timeout", seconds=fact["timeout_s"])
        return replace(counterexample, exception=text, code="test_timeout")
    failed_assert = None
    if fact.get("type") == "AssertionError":
        failed_assert = read_failed_assert(text, str(fact.get("statement", "")), fact.get("compared"))
    if failed_assert is not None:
        return replace(
            counterexample,
            call=failed_assert.call or counterexample.call,
            expected=failed_assert.expected,
            actual=failed_assert.actual,
        )
    lines = (text or str(phase.get("text", ""))).strip().splitlines() or [""]
    exception = f"{fact['type']}: {lines[0]}" if "type" in fact else lines[-1]
    return replace(counterexample, exception=exception.rstrip(": "))


def _read_frames(fact: Mapping[str, Any]) -> tuple[CodeFrame, ...]:
    return tuple(
        CodeFrame(file=path, line=line, function="" if function.startswith("<") else function)
        for path, line, function in fact.get("frames", ())
    )


def _make_example_counterexample(test_id: str, fact: Mapping[str, Any]) -> Counterexample:
    source, expected, actual = (str(part).strip() for part in fact["example"])
    exception = "" if actual else f"{fact['type']}: {fact['text']}".rstrip(": ")
    file = str(fact.get("file", "")) or test_id.partition("::")[0]
    return Counterexample(
        check_id=test_id,
        call=source,
        expected=expected,
        actual=actual,
        exception=exception,
        file=file,
        line=fact["line"],
        frames=_read_frames(fact),
    )


LIST_FIELDS = {"begin": ("named", "patterns", "left_out"), "items": ("ids",), "end": ()}
"""Event -> its fields that must be lists of strings."""
OPTIONAL_TEXT_FIELDS = ("rootdir", "text", "passed")
OPTIONAL_LIST_FIELDS = ("files", "deselected", "search_path")
PAIR_FIELDS = ("early", "changed", "meanwhile", "loaded")
"""Fields of any event that are lists of `Pair`s."""
TEXT_FIELDS = {
    "uncollectable": ("id", "text"),
    "start": ("id",),
    "phase": ("id", "when", "outcome"),
    "reached": ("what", "file"),
    "opened": ("path",),
    "written": ("path",),
    "overwritten": ("path",),
}
"""Event -> its fields that must be strings."""
PHASE_OUTCOMES = ("passed", "failed", "skipped", "rerun")
"""`rerun` comes from pytest-rerunfailures: the test failed and starts again."""


def is_sound(event: Mapping[str, Any]) -> bool:
    """Whether an event has the fields that the plugin writes; its strings come from code under test."""
    kind = event.get("event")
    if not isinstance(kind, str):
        return False
    text_lists = [event.get(name) for name in LIST_FIELDS.get(kind, ())]
    text_lists += [event[name] for name in OPTIONAL_LIST_FIELDS if name in event]
    for pairs in (event[name] for name in PAIR_FIELDS if name in event):
        if not isinstance(pairs, list):
            return False
        text_lists += [pair if isinstance(pair, list) and len(pair) == 2 else None for pair in pairs]
    texts = [event.get(name) for name in TEXT_FIELDS.get(kind, ())]
    numbers = [event.get(name, 0.0) for name in ("used_s", "limit_s")]
    return (
        all(
            isinstance(text, str)
            for text in (*texts, *(event.get(name, "") for name in OPTIONAL_TEXT_FIELDS))
        )
        and all(
            isinstance(texts, list) and all(isinstance(text, str) for text in texts) for texts in text_lists
        )
        and all(type(number) in (int, float) for number in numbers)
        and (kind != "end" or type(event.get("exit")) is int)
        and (kind != "phase" or (event["outcome"] in PHASE_OUTCOMES and _is_fact(event.get("fact"))))
        and _are_examples(event.get("examples", {}))
    )


def _are_examples(examples: object) -> bool:
    return isinstance(examples, dict) and all(
        isinstance(test_examples, list) and all(isinstance(example, list) for example in test_examples)
        for test_examples in examples.values()
    )


def _is_fact(fact: object) -> bool:
    if fact is None:
        return True
    if not isinstance(fact, dict) or type(fact.get("line")) not in (int, type(None)):
        return False
    if type(fact.get("timeout_s", 0.0)) not in (int, float) or not _are_details(fact):
        return False
    if "example" not in fact:
        return True
    example = fact["example"]
    return isinstance(example, list) and len(example) == 3 and {"type", "text", "line"} <= fact.keys()


def _are_details(fact: Mapping[str, Any]) -> bool:
    """Whether the frames, the input and the compared values of a fact have the right types."""
    frames, inputs, compared = fact.get("frames", []), fact.get("inputs", {}), fact.get("compared", ["", ""])
    return (
        isinstance(frames, list)
        and all(isinstance(frame, list) and tuple(map(type, frame)) == (str, int, str) for frame in frames)
        and isinstance(inputs, dict)
        and all(isinstance(value, str) for value in inputs.values())
        and isinstance(compared, list)
        and tuple(map(type, compared)) == (str, str)
    )


def list_failed_asserts(report: PytestReport, test_files: Collection[str]) -> list[tuple[str, str, int]]:
    """Return (test, path, line) of the place in a test file at which each failed test ended."""
    places = []
    for test, phases in report.phases.items():
        failed = (phase for phase in phases if phase["outcome"] == "failed" and phase["when"] == "call")
        frames = _read_frames(next(failed, {}).get("fact") or {})
        frame = next((frame for frame in reversed(frames) if frame.file in test_files), None)
        if frame is not None:
            places.append((test, frame.file, frame.line))
    return places


def find_unstable_functions(ids: Sequence[str], other_ids: Sequence[str]) -> frozenset[str]:
    """Return the test functions whose parameter ids differ between two collections of the same files.

    That happens if an id contains a time, a random number or an address. Such a test is identified by its
    position among the tests of its function. Both collections must be of the unchanged code, because a
    candidate can choose the names of tests.
    """
    groups, other_groups = _group_by_function(ids), _group_by_function(other_ids)
    return frozenset(
        function
        for function, group in groups.items()
        if group != other_groups.get(function) and len(group) == len(other_groups.get(function, ()))
    )


def find_renamed_functions(old_ids: Sequence[str], new_ids: Sequence[str]) -> frozenset[str]:
    """Return the test functions that lost an id and gained another one."""
    lost, gained = set(old_ids) - set(new_ids), set(new_ids) - set(old_ids)
    return frozenset(map(get_function, lost)) & frozenset(map(get_function, gained))


def map_ids_by_position(
    old_ids: Sequence[str], new_ids: Sequence[str], functions: Collection[str]
) -> dict[str, str]:
    """Return new id -> old id of the test at the same position in its function.

    Functions whose number of tests changed are left out.
    """
    old_groups, new_groups = _group_by_function(old_ids), _group_by_function(new_ids)
    names: dict[str, str] = {}
    for function in functions:
        old, new = old_groups.get(function, []), new_groups.get(function, [])
        if len(old) == len(new):
            names |= {new_id: old_id for new_id, old_id in zip(new, old, strict=True) if new_id != old_id}
    return names


def rename_tests(report: PytestReport, names: Mapping[str, str]) -> PytestReport:
    """Return a report with some tests renamed."""
    return replace(
        report,
        items=tuple(names.get(test, test) for test in report.items),
        examples={names.get(test, test): value for test, value in report.examples.items()},
        phases={names.get(test, test): value for test, value in report.phases.items()},
        started=[names.get(test, test) for test in report.started],
        others={name: rename_tests(other, names) for name, other in report.others.items()},
    )


def get_function(test: str) -> str:
    """Return the id of a test without its parameters."""
    return test.partition("[")[0]


def _group_by_function(tests: Sequence[str]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for test in tests:
        groups.setdefault(get_function(test), []).append(test)
    return groups
