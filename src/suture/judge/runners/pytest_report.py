"""Reading the report of a pytest run after its signatures have been verified."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from suture.core.records import CheckOutcome, CheckStatus, Counterexample
from suture.judge.failures import render_failure
from suture.judge.runners.signed_lines import streams, verified_events
from suture.project.python_source.parsing import PARSE_FAULTS

WHERE_RE = re.compile(r"^\s*\+\s+where (?P<value>.+) = (?P<call>.+\(.*\))$")

Pair = tuple[str, str]


@dataclass
class PytestReport:
    """The report of one pytest run.

    Attributes:
        begun: Whether pytest started at all.
        named: Files, folders and ids that the command names.
        patterns: Name patterns of test files, from pytest's settings.
        left_out: Names of folders that pytest does not enter.
        rootdir: The folder that pytest's ids are relative to, relative to the project's root.
        items: Ids of the collected tests.
        examples: Id of a docstring's test -> its examples, each as source and expected output.
        files: Files that hold the other tests.
        deselected: Ids that the command's own options excluded.
        uncollectable: File or folder that could not be collected -> the error text.
        phases: Test id -> the phases that it went through.
        started: Ids of the tests that began, in order.
        last_used_s: Seconds of the run that were used when the last test began.
        last_limit_s: Seconds that the last test was allowed to take; 0 if it had no limit.
        together: The report of the tests that ran together, if some of them then ran in isolation.
        early: Modules of the project that were loaded before the plugin could look, each with its file.
        changed: Parts of the test machinery that differed at the end, each with the file of its new value: a
            path relative to the project, an absolute path outside of it, or empty if unknown.
        meanwhile: The same, seen after a single test.
        others: Name of another process that ran tests -> its report.
        exit_code: The exit code of pytest; `None` if it did not come to its end.
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
    early: frozenset[Pair] = frozenset()
    changed: frozenset[Pair] = frozenset()
    meanwhile: frozenset[Pair] = frozenset()
    others: dict[str, PytestReport] = field(default_factory=dict)
    exit_code: int | None = None
    last_used_s: float = 0.0
    last_limit_s: float = 0.0
    together: PytestReport | None = None


def read_report(content: bytes, key: bytes) -> PytestReport:
    """Read a report up to the first line that does not verify or that the plugin would not write.

    Code under test shares the process and may have made the plugin sign something else.
    """
    reports = {name: _read(*lines) for name, lines in streams(content, key).items()}
    report = reports.pop("")
    report.others = {name: other for name, other in reports.items() if other.begun or other.phases}
    for other in report.others.values():
        report.changed |= other.changed
        report.meanwhile |= other.meanwhile
        if not report.items:  # each pytest-xdist worker collects all tests
            report.items, report.examples, report.files = other.items, other.examples, other.files
            report.deselected = other.deselected
    return report


def _read(content: bytes, key: bytes) -> PytestReport:
    report = PytestReport()
    for event in verified_events(content, key):
        if not is_sound(event):
            break
        _apply_event(report, event)
    return report


def _apply_event(report: PytestReport, event: dict[str, Any]) -> None:
    match event["event"]:
        case "begin":
            report.begun = True
            report.named, report.patterns = tuple(event["named"]), tuple(event["patterns"])
            report.left_out = tuple(event["left_out"])
            report.rootdir = event.get("rootdir", ".")
            report.early = _pairs(event, "early")
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
            report.phases.setdefault(event["id"], []).append(event)
        case "isolated":
            report.together = replace(report, exit_code=0)
            report.phases, report.started = {}, []
        case "end":
            report.exit_code = event["exit"]
            report.changed, report.meanwhile = _pairs(event, "changed"), _pairs(event, "meanwhile")


def _pairs(event: Mapping[str, Any], name: str) -> frozenset[Pair]:
    return frozenset((str(one), str(file)) for one, file in event.get(name, ()))


def make_test_outcome(test_id: str, phases: Iterable[Mapping[str, Any]]) -> CheckOutcome:
    """Return the outcome of one test from its phases; an expected failure counts as skipped."""
    status: CheckStatus = "missing"
    counterexample = None
    finished = False
    for phase in phases:
        if phase["outcome"] == "failed":
            status = "failed" if phase["when"] == "call" else "error"
            status = "timeout" if "timeout_s" in (phase.get("fact") or {}) else status
            counterexample = _counterexample(test_id, phase)
            break
        if phase["outcome"] == "rerun":  # the test starts again, so its earlier phases do not count
            status, finished = "missing", False
            continue
        finished = finished or phase["when"] == "teardown"
        if phase["outcome"] == "skipped":
            status = "skipped"
        elif phase["when"] == "call":
            status = "passed"
    if status == "passed" and not finished:
        status = "missing"
    return CheckOutcome(check_id=test_id, status=status, evidence="nonce", counterexample=counterexample)


def _counterexample(test_id: str, phase: Mapping[str, Any]) -> Counterexample:
    fact = phase.get("fact") or {}
    text = str(fact.get("text", ""))
    file, line = str(fact.get("file", "")), fact.get("line")
    statement = " ".join(str(fact.get("statement", "")).split())
    if "timeout_s" in fact:
        return Counterexample(
            check_id=test_id,
            call=statement,
            exception=render_failure("test_timeout", seconds=fact["timeout_s"]),
            file=file,
            line=line,
            code="test_timeout",
        )
    if "example" in fact:
        return _example_failed(test_id, fact)
    if fact.get("type") == "AssertionError" and "assert " in text:
        introspected = _introspection(text[text.index("assert ") :])
        return Counterexample(
            check_id=test_id,
            call=introspected.get("call", statement),
            expected=introspected.get("expected", ""),
            actual=introspected.get("actual", ""),
            file=file,
            line=line,
        )
    lines = (text or str(phase.get("text", ""))).strip().splitlines() or [""]
    exception = f"{fact['type']}: {lines[0]}" if "type" in fact else lines[-1]
    return Counterexample(
        check_id=test_id, call=statement, exception=exception.rstrip(": "), file=file, line=line
    )


def _example_failed(test_id: str, fact: Mapping[str, Any]) -> Counterexample:
    source, wanted, got = (str(part).strip() for part in fact["example"])
    raised = "" if got else f"{fact['type']}: {fact['text']}".rstrip(": ")
    file = str(fact.get("file", "")) or test_id.partition("::")[0]
    return Counterexample(
        check_id=test_id,
        call=source,
        expected=wanted,
        actual=got,
        exception=raised,
        file=file,
        line=fact["line"],
    )


def _introspection(text: str) -> dict[str, str]:
    """Split `assert 3 == 4` and `where 3 = add(1, 2)` into call, expected and actual value where possible."""
    lines = text.splitlines()
    first = lines[0].removeprefix("assert ")
    where = [match for line in lines[1:] if (match := WHERE_RE.match(line))]
    introspected = {"call": where[0]["call"]} if where else {}
    try:
        tree = ast.parse(first, mode="eval").body
    except PARSE_FAULTS:
        tree = None
    if not isinstance(tree, ast.Compare) or not isinstance(tree.ops[0], ast.Eq) or len(tree.ops) > 1:
        wanted = f"`{first}` to hold"
        actual = {"actual": where[0]["value"]} if where else {}
        return {**introspected, "expected": wanted, **actual}
    left, right = ast.unparse(tree.left), ast.unparse(tree.comparators[0])
    swapped = bool(where) and where[0]["value"].strip() == right != left
    return {**introspected, "expected": left if swapped else right, "actual": right if swapped else left}


LIST_FIELDS = {
    "begin": ("named", "patterns", "left_out"),
    "items": ("ids",),
    "end": (),
}
OPTIONAL_LIST_FIELDS = ("files", "deselected")
PAIR_FIELDS = ("early", "changed", "meanwhile")
TEXT_FIELDS = {"uncollectable": ("id", "text"), "start": ("id",), "phase": ("id", "when", "outcome", "text")}
PHASE_OUTCOMES = ("passed", "failed", "skipped", "rerun")
"""`rerun` comes from pytest-rerunfailures: the test failed and starts again."""


def is_sound(event: Mapping[str, Any]) -> bool:
    """Whether an event has the fields that the plugin writes; its texts come from code under test."""
    kind = event.get("event")
    if not isinstance(kind, str):
        return False
    named = [event.get(name) for name in LIST_FIELDS.get(kind, ())]
    named += [event[name] for name in OPTIONAL_LIST_FIELDS if name in event]
    pairs = [pair for name in PAIR_FIELDS if name in event for pair in _listed(event[name])]
    named += [pair if isinstance(pair, list) and len(pair) == 2 else None for pair in pairs]
    texts = [event.get(name) for name in TEXT_FIELDS.get(kind, ())]
    numbers = [event.get(name, 0.0) for name in ("used_s", "limit_s")]
    return (
        all(isinstance(text, str) for text in (*texts, event.get("rootdir", "")))
        and all(isinstance(one, list) and all(isinstance(name, str) for name in one) for one in named)
        and all(type(number) in (int, float) for number in numbers)
        and (kind != "end" or type(event.get("exit")) is int)
        and (kind != "phase" or (event["outcome"] in PHASE_OUTCOMES and _is_fact(event.get("fact"))))
        and _are_examples(event.get("examples", {}))
    )


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else [None]


def _are_examples(examples: object) -> bool:
    return isinstance(examples, dict) and all(
        isinstance(of_test, list) and all(isinstance(one, list) for one in of_test)
        for of_test in examples.values()
    )


def _is_fact(fact: object) -> bool:
    if fact is None:
        return True
    if not isinstance(fact, dict) or type(fact.get("line")) not in (int, type(None)):
        return False
    if type(fact.get("timeout_s", 0.0)) not in (int, float):
        return False
    if "example" not in fact:
        return True
    example = fact["example"]
    return isinstance(example, list) and len(example) == 3 and {"type", "text", "line"} <= fact.keys()


def find_unstable_functions(first: Sequence[str], again: Sequence[str]) -> frozenset[str]:
    """Return the test functions whose parameter ids differ between two collections of the same files.

    A time, a random number or an address in an id does that. Such a test is identified by its position among
    the tests of its function. Which functions are affected is learnt on the unchanged code alone: a
    candidate's choice of test names proves nothing.

    Args:
        first: The ids of one collection, in order.
        again: The ids of another collection.
    """
    one, other = _by_function(first), _by_function(again)
    return frozenset(
        name for name, ids in one.items() if ids != other.get(name) and len(ids) == len(other.get(name, ()))
    )


def find_renamed_functions(first: Sequence[str], items: Sequence[str]) -> frozenset[str]:
    """Return the test functions that lost an id and gained another one."""
    gone, new = set(first) - set(items), set(items) - set(first)
    return frozenset(map(_function, gone)) & frozenset(map(_function, new))


def map_ids_by_position(
    first: Sequence[str], items: Sequence[str], functions: Collection[str]
) -> dict[str, str]:
    """Return id in a collection -> the first id of the test at that position, for some functions."""
    one, other = _by_function(first), _by_function(items)
    pairs = [
        (other[name], one[name]) for name in functions if len(one.get(name, ())) == len(other.get(name, ()))
    ]
    return {new: old for here, before in pairs for new, old in zip(here, before, strict=True) if new != old}


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


def _function(test: str) -> str:
    return test.partition("[")[0]


def _by_function(tests: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for test in tests:
        found.setdefault(_function(test), []).append(test)
    return found
