"""Turn a run's findings into diagnostics, and offer code actions for each of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lsprotocol import types

from suture.interfaces.editor.lsp.run_findings import FailingTest, RunFindings, SourceLocation
from suture.interfaces.editor.tuning import MAX_MESSAGE_CHARS
from suture.interfaces.narrative.plain_text import sanitize_text

SOURCE = "suture"
"""What the editor shows as the origin of a diagnostic."""
CodeAction = types.CodeAction | types.Command


def make_diagnostics(
    findings: RunFindings, count_units: Callable[[str], int]
) -> Mapping[str, list[types.Diagnostic]]:
    """Return URI of a file -> the diagnostics in it: one for each failing test, at its most suspicious line.

    `count_units` returns a text's length in the client's character units.
    """
    diagnostics_by_uri: dict[str, list[types.Diagnostic]] = {}
    for failing in findings.failing:
        if failing.location is None:
            continue
        severity = types.DiagnosticSeverity
        diagnostic = types.Diagnostic(
            range=_range(findings, failing.location, count_units),
            message=sanitize_text(failing.message, MAX_MESSAGE_CHARS),
            severity=severity.Warning if failing.is_excluded else severity.Error,
            source=SOURCE,
            code="not the code's fault" if failing.is_excluded else "failing test",
            related_information=[
                types.DiagnosticRelatedInformation(
                    location=types.Location(
                        uri=_uri(findings, location), range=_range(findings, location, count_units)
                    ),
                    message=sanitize_text(location.description, MAX_MESSAGE_CHARS),
                )
                for location in failing.related
            ],
            data={"run": findings.run, "test": failing.test},
        )
        diagnostics_by_uri.setdefault(_uri(findings, failing.location), []).append(diagnostic)
    return diagnostics_by_uri


def make_code_actions(
    findings: RunFindings,
    params: types.CodeActionParams,
    edit: types.WorkspaceEdit | None,
    count_units: Callable[[str], int],
    *,
    asks_model: bool,
) -> list[CodeAction]:
    """Return the actions for the failing tests that are shown in a range.

    Args:
        count_units: Returns a text's length in the client's character units.
        asks_model: Whether a model is configured, which could heal what the search did not.
    """
    diagnostics = make_diagnostics(findings, count_units).get(params.text_document.uri, [])
    failing_by_test = {failing.test: failing for failing in findings.failing}
    actions: list[CodeAction] = []
    for diagnostic in diagnostics:
        if not _share_lines(diagnostic.range, params.range):
            continue
        failing = failing_by_test[(diagnostic.data or {})["test"]]  # set by make_diagnostics
        if failing.is_fixed and edit is not None:
            actions.append(_apply_action(findings, failing, diagnostic, edit))
        elif not failing.is_excluded and asks_model:
            actions.append(_ask_model_action(failing, diagnostic, params.text_document.uri))
    if actions and findings.change is not None:
        actions.append(
            types.Command(
                title="Explain the change's certificate", command="suture.explain", arguments=[findings.run]
            )
        )
    return actions


def _apply_action(
    findings: RunFindings, failing: FailingTest, diagnostic: types.Diagnostic, edit: types.WorkspaceEdit
) -> types.CodeAction:
    return types.CodeAction(
        title=(
            f"Heal {sanitize_text(failing.test, 100)} "
            f"(verified: {findings.passing} of {findings.total} tests pass)"
        ),
        kind=types.CodeActionKind.QuickFix,
        diagnostics=[diagnostic],
        is_preferred=findings.passing == findings.total,
        edit=edit,
    )


def _ask_model_action(failing: FailingTest, diagnostic: types.Diagnostic, uri: str) -> types.CodeAction:
    title = f"Heal {sanitize_text(failing.test, 100)} with a model"
    return types.CodeAction(
        title=title,
        kind=types.CodeActionKind.QuickFix,
        diagnostics=[diagnostic],
        command=types.Command(title=title, command="suture.heal", arguments=[uri]),
    )


def _uri(findings: RunFindings, location: SourceLocation) -> str:
    return (findings.root / location.path).as_uri()


def _range(findings: RunFindings, location: SourceLocation, count_units: Callable[[str], int]) -> types.Range:
    """Return the range of a line from its first letter to its end, as the run read it."""
    lines = findings.texts.get(location.path, "").split("\n")
    text = lines[location.line - 1] if 0 < location.line <= len(lines) else ""
    start = len(text) - len(text.lstrip())
    line = max(0, location.line - 1)
    return types.Range(
        start=types.Position(line=line, character=count_units(text[:start])),
        end=types.Position(line=line, character=count_units(text)),
    )


def _share_lines(first: types.Range, second: types.Range) -> bool:
    return first.start.line <= second.end.line and second.start.line <= first.end.line
