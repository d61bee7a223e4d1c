"""What the report of a pytest run says, once its signatures are checked."""

from __future__ import annotations

import ast
import hashlib
import hmac
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from suture.records import CheckOutcome, CheckStatus, Counterexample

__all__ = ["PytestReport", "outcome_of", "read_report", "tests_written_in"]

WHERE_RE = re.compile(r"^\s*\+\s+where (?P<value>.+) = (?P<call>.+\(.*\))$")


@dataclass
class PytestReport:
    """One run.

    Attributes:
        items: Ids that pytest collected.
        uncollectable: Files (or folders) that it could not collect, with its complaint.
        phases: Test id -> the phases it went through.
        started: Ids of tests that began, in order.
        exit_code: Pytest's own; `None` where it did not get to the end.
    """

    items: tuple[str, ...] = ()
    uncollectable: dict[str, str] = field(default_factory=dict)
    phases: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    started: list[str] = field(default_factory=list)
    exit_code: int | None = None


def read_report(content: bytes, key: bytes) -> PytestReport:
    """Read a report up to the first line that does not verify."""
    report = PytestReport()
    for number, line in enumerate(content.split(b"\n")):
        signature, _, signed = line.partition(b" ")
        expected = hmac.new(key, signed, hashlib.sha256).hexdigest().encode()
        if not hmac.compare_digest(signature, expected) or not signed.startswith(b"%d " % number):
            break
        _take(report, json.loads(signed.partition(b" ")[2]))
    return report


def _take(report: PytestReport, event: dict[str, Any]) -> None:
    match event["event"]:
        case "items":
            report.items = tuple(event["ids"])
        case "uncollectable":
            report.uncollectable[event["id"]] = event["text"]
        case "start":
            report.started.append(event["id"])
        case "phase":
            report.phases.setdefault(event["id"], []).append(event)
        case "end":
            report.exit_code = event["exit"]


def outcome_of(test_id: str, phases: Iterable[Mapping[str, Any]]) -> CheckOutcome:
    """What the phases of one test add up to. An expected failure is no pass: it counts as skipped."""
    status: CheckStatus = "missing"
    counterexample = None
    finished = False
    for phase in phases:
        if phase["outcome"] == "failed":
            status = "failed" if phase["when"] == "call" else "error"
            counterexample = _counterexample(test_id, phase)
            break
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
    if fact.get("type") == "AssertionError" and "assert " in text:
        told = _introspection(text[text.index("assert ") :])
        return Counterexample(
            check_id=test_id,
            call=told.get("call", statement),
            expected=told.get("expected", ""),
            got=told.get("got", ""),
            file=file,
            line=line,
        )
    lines = (text or str(phase.get("text", ""))).strip().splitlines() or [""]
    exception = f"{fact['type']}: {lines[0]}" if "type" in fact else lines[-1]
    return Counterexample(
        check_id=test_id, call=statement, exception=exception.rstrip(": "), file=file, line=line
    )


def _introspection(text: str) -> dict[str, str]:
    """`assert 3 == 4` and `where 3 = add(1, 2)` as call, expected and got, as far as they can be told."""
    lines = text.splitlines()
    first = lines[0].removeprefix("assert ")
    where = [match for line in lines[1:] if (match := WHERE_RE.match(line))]
    told = {"call": where[0]["call"]} if where else {}
    try:
        tree = ast.parse(first, mode="eval").body
    except (SyntaxError, ValueError):
        tree = None
    if not isinstance(tree, ast.Compare) or not isinstance(tree.ops[0], ast.Eq) or len(tree.ops) > 1:
        wanted = f"`{first}` to hold"
        got = {"got": where[0]["value"]} if where else {}
        return {**told, "expected": wanted, **got}
    left, right = ast.unparse(tree.left), ast.unparse(tree.comparators[0])
    swapped = bool(where) and where[0]["value"].strip() == right != left
    return {**told, "expected": left if swapped else right, "got": right if swapped else left}


def tests_written_in(path: str, source: bytes) -> tuple[str, ...]:
    """The ids of the test functions that a file holds, found without running it; parameters unknown."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return (path,)  # it can never be collected; the file itself must then be reported
    found: list[str] = []
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and (node.name.startswith("Test") or _is_test_case(node)):
            found += [f"{path}::{node.name}::{name}" for name in _test_names(node.body)]
    return (*(f"{path}::{name}" for name in _test_names(tree.body)), *found)


def _test_names(body: list[ast.stmt]) -> list[str]:
    functions = (node for node in body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))
    return [node.name for node in functions if node.name.startswith("test")]


def _is_test_case(node: ast.ClassDef) -> bool:
    return any(ast.unparse(base).endswith("TestCase") for base in node.bases)
