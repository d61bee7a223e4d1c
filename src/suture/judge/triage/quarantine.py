"""Quarantine of flaky tests: a patch that marks them, so that they still run and their failures decide nothing.

The patch is an offer. Suture changes no test on its own.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Sequence
from dataclasses import replace

from suture.core.records.flakiness import FlakyDiagnosis, render_flaky_cause, render_flaky_statistics
from suture.judge.triage.flaky_conditions import FlakyTestRunner, RunConditions
from suture.project.python_source.parsing import first_line, parse_module
from suture.project.workspace import decode_text, overlay_candidate, unified_diff
from suture.project.workspace.diffs import split_lines

Definition = ast.FunctionDef | ast.AsyncFunctionDef


async def make_quarantine_patch(diagnoses: Sequence[FlakyDiagnosis], runs: FlakyTestRunner) -> str:
    """Return a patch for `git apply` with the evidence above it; empty if no test can be marked.

    The comment above the patch names the tests that cannot be marked. The marked tests run once, and no patch is
    offered if the mark does not take effect.

    Args:
        runs: Runs tests of the unchanged files.

    Raises:
        SandboxError: The sandbox failed.
    """
    texts: dict[str, str] = {}
    functions: set[str] = set()
    marked_diagnoses: list[FlakyDiagnosis] = []
    for diagnosis in diagnoses:
        function = diagnosis.test.partition("[")[0]
        path, *names = function.split("::")
        if function not in functions:  # one mark serves all parameters of a function
            text = texts.get(path) or decode_text(runs.files.get(path, b""))
            marked = mark_test(text, names, _make_reason(diagnosis))
            if marked is None:
                continue
            texts[path] = marked
            functions.add(function)
        marked_diagnoses.append(diagnosis)
    if not texts:
        return ""
    after = overlay_candidate(runs.files, {path: _import_pytest(text) for path, text in texts.items()})
    tests = {diagnosis.test for diagnosis in marked_diagnoses}
    outcomes = await replace(runs, files=after).run_outcomes(tests, RunConditions())
    # An expected failure counts as skipped.
    harmless = {outcome.check_id for outcome in outcomes if outcome.status in ("passed", "skipped")}
    if not tests <= harmless:
        return ""
    evidence = "".join(
        f"{diagnosis.test}: {render_flaky_cause(diagnosis)}.\n  It passed {render_flaky_statistics(diagnosis)}.\n"
        for diagnosis in marked_diagnoses
    )
    evidence += "".join(
        f"{diagnosis.test} is flaky as well, but the patch cannot mark it.\n"
        for diagnosis in diagnoses
        if diagnosis not in marked_diagnoses
    )
    before = {path: runs.files[path] for path in texts}
    return f"{evidence}\n{unified_diff(before, {path: after[path] for path in texts})}"


def mark_test(text: str, names: Sequence[str], reason: str) -> str | None:
    """Return a test file in which a test function is expected to fail now and then; `None` if it is not there.

    Args:
        names: Names of the classes around the function, and its own.
    """
    tree = parse_module(text)
    function = _find_definition(tree.body, names) if tree is not None else None
    if function is None:
        return None
    lines = split_lines(text)
    mark = f"@pytest.mark.xfail(strict=False, reason={json.dumps(reason, ensure_ascii=False)})\n"
    place = first_line(function) - 1
    return "".join([*lines[:place], " " * function.col_offset + mark, *lines[place:]])


def _find_definition(body: Sequence[ast.stmt], names: Sequence[str]) -> Definition | None:
    """Return the last definition of a function with these names, which is the one that Python keeps."""
    for node in reversed(body):
        if len(names) == 1 and isinstance(node, Definition) and node.name == names[0]:
            return node
        if len(names) > 1 and isinstance(node, ast.ClassDef) and node.name == names[0]:
            return _find_definition(node.body, names[1:])
    return None


def _import_pytest(text: str) -> str:
    """Return a test file that imports pytest by its name."""
    tree = parse_module(text)
    if tree is None or any(
        isinstance(node, ast.Import)
        and any(alias.name == "pytest" and not alias.asname for alias in node.names)
        for node in tree.body
    ):
        return text
    is_head = [
        (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        or (isinstance(node, ast.ImportFrom) and node.module == "__future__")
        for node in tree.body
    ]
    first = tree.body[is_head.index(False)]
    lines = split_lines(text)
    place = first_line(first) - 1
    # A blank line below it, unless other imports follow.
    gap = "" if isinstance(first, ast.Import | ast.ImportFrom) else "\n\n"
    return "".join([*lines[:place], f"import pytest\n{gap}", *lines[place:]])


def _make_reason(diagnosis: FlakyDiagnosis) -> str:
    runs = sum(experiment.runs for experiment in diagnosis.experiments)
    passed = sum(experiment.passed for experiment in diagnosis.experiments)
    return f"flaky ({diagnosis.cause}): passed {passed} of {runs} runs"
