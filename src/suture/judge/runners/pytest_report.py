"""What the report of a pytest run says, once its signatures are checked."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from suture.core.records import CheckOutcome, CheckStatus, Counterexample
from suture.judge.runners.signed_lines import streams, verified_events
from suture.judge.runners.sound_events import is_sound
from suture.project.python_source.parsing import PARSE_FAULTS

WHERE_RE = re.compile(r"^\s*\+\s+where (?P<value>.+) = (?P<call>.+\(.*\))$")

Pair = tuple[str, str]


@dataclass
class PytestReport:
    """One run.

    Attributes:
        begun: Whether pytest started at all.
        named: Files, folders and ids that the command names, where it names any.
        patterns: Names of test files, by pytest's settings.
        left_out: Names of folders that pytest does not enter.
        rootdir: The folder from which pytest itself counts its ids, seen from the project's root.
        items: Ids that pytest collected.
        examples: Id of a docstring's test -> its examples, each as source and wanted output.
        files: Files that hold the other tests.
        deselected: Ids that the command's own options left out.
        uncollectable: Files (or folders) that it could not collect, with its complaint.
        phases: Test id -> the phases it went through.
        started: Ids of tests that began, in order.
        last_used_s: Seconds of the run that were used when the last of them began.
        last_limit_s: Seconds that this one could take; 0 where nobody set it a limit.
        together: The same of the tests that ran together before some of them ran apart.
        early: Modules of the project that were loaded before anything could look, each with its file.
        changed: What decides and was another at the end, each with the file that it was written in: relative
            in the project, absolute elsewhere, empty where nothing tells.
        meanwhile: The same after some test.
        others: Name of another process that ran tests -> what it reported.
        exit_code: Pytest's own; `None` where it did not get to the end.
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
    """Read a report up to the first line that does not verify, or that our plugin does not write so.

    What shares a process with the plugin may have made it sign something else.
    """
    reports = {name: _read(*lines) for name, lines in streams(content, key).items()}
    report = reports.pop("")
    report.others = {name: other for name, other in reports.items() if other.begun or other.phases}
    for other in report.others.values():
        report.changed |= other.changed
        report.meanwhile |= other.meanwhile
        if not report.items:  # of workers each collects all tests
            report.items, report.examples, report.files = other.items, other.examples, other.files
            report.deselected = other.deselected
    return report


def _read(content: bytes, key: bytes) -> PytestReport:
    report = PytestReport()
    for event in verified_events(content, key):
        if not is_sound(event):
            break
        _take(report, event)
    return report


def _take(report: PytestReport, event: dict[str, Any]) -> None:
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
        case "apart":
            report.together = replace(report, exit_code=0)
            report.phases, report.started = {}, []
        case "end":
            report.exit_code = event["exit"]
            report.changed, report.meanwhile = _pairs(event, "changed"), _pairs(event, "meanwhile")


def _pairs(event: Mapping[str, Any], name: str) -> frozenset[Pair]:
    return frozenset((str(one), str(file)) for one, file in event.get(name, ()))


def outcome_of(test_id: str, phases: Iterable[Mapping[str, Any]]) -> CheckOutcome:
    """What the phases of one test add up to. An expected failure is no pass: it counts as skipped."""
    status: CheckStatus = "missing"
    counterexample = None
    finished = False
    for phase in phases:
        if phase["outcome"] == "failed":
            status = "failed" if phase["when"] == "call" else "error"
            status = "timeout" if "no_end_s" in (phase.get("fact") or {}) else status
            counterexample = _counterexample(test_id, phase)
            break
        if phase["outcome"] == "rerun":  # what it said so far counts for nothing
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
    if "no_end_s" in fact:
        why = f"no end within {fact['no_end_s']:.3g} s"
        return Counterexample(check_id=test_id, call=statement, exception=why, file=file, line=line)
    if "example" in fact:
        return _example_failed(test_id, fact)
    if fact.get("type") == "AssertionError" and "assert " in text:
        introspected = _introspection(text[text.index("assert ") :])
        return Counterexample(
            check_id=test_id,
            call=introspected.get("call", statement),
            expected=introspected.get("expected", ""),
            actual=introspected.get("got", ""),
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
    """`assert 3 == 4` and `where 3 = add(1, 2)` as call, expected and got, as far as they can be told."""
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
        got = {"got": where[0]["value"]} if where else {}
        return {**introspected, "expected": wanted, **got}
    left, right = ast.unparse(tree.left), ast.unparse(tree.comparators[0])
    swapped = bool(where) and where[0]["value"].strip() == right != left
    return {**introspected, "expected": left if swapped else right, "got": right if swapped else left}
