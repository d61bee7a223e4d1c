"""Findings as an editor shows them: diagnostics, and what can be done about each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from lsprotocol import types

from suture.interfaces.editor.lsp.run_findings import FailingTest, RunFindings, SourceLocation
from suture.interfaces.narrative.plain_text import sanitize_text

SOURCE = "suture"
Action = types.CodeAction | types.Command
MOST_CHARS = 1500


class Shows(Protocol):
    """What an action of the editor may ask the server that offers it."""

    @property
    def asks_model(self) -> bool:
        """Whether a model is there to be asked."""

    def edit_of(self, found: RunFindings) -> types.WorkspaceEdit | None:
        """The change of a run's findings."""

    def units(self, text: str) -> int:
        """How long a text is, as the client counts characters."""


def make_diagnostics(found: RunFindings, units: Callable[[str], int]) -> Mapping[str, list[types.Diagnostic]]:
    """Each failing test at the line that is likeliest at fault, by the file's address.

    Args:
        found: What a run found out.
        units: How long a text is, as the client counts characters.
    """
    by_uri: dict[str, list[types.Diagnostic]] = {}
    for failing in found.failing:
        if failing.place is None:
            continue
        diagnostic = types.Diagnostic(
            range=_range(found, failing.place, units),
            message=sanitize_text(failing.words, MOST_CHARS),
            severity=(types.DiagnosticSeverity.Warning if failing.apart else types.DiagnosticSeverity.Error),
            source=SOURCE,
            code="not the code's fault" if failing.apart else "failing test",
            related_information=[
                types.DiagnosticRelatedInformation(
                    location=types.Location(uri=_uri(found, place), range=_range(found, place, units)),
                    message=sanitize_text(place.why, MOST_CHARS),
                )
                for place in failing.related
            ],
            data={"run": found.run, "test": failing.test},
        )
        by_uri.setdefault(_uri(found, failing.place), []).append(diagnostic)
    return by_uri


def make_code_actions(server: Shows, found: RunFindings, params: types.CodeActionParams) -> list[Action]:
    """What can be done about the failing tests that are shown in a range."""
    here = make_diagnostics(found, server.units).get(params.text_document.uri, [])
    shown = [one for one in here if _meet(one.range, params.range)]
    by_test = {failing.test: failing for failing in found.failing}
    actions: list[Action] = []
    edit = server.edit_of(found)
    for diagnostic in shown:
        failing = by_test[(diagnostic.data or {})["test"]]  # we have put it there
        if failing.mended and edit is not None:
            actions.append(_mend(found, failing, diagnostic, edit))
        elif not failing.apart and server.asks_model:
            actions.append(_ask(failing, diagnostic, params.text_document.uri))
    if actions and found.change is not None:
        actions.append(
            types.Command(
                title="Explain the change's certificate", command="suture.explain", arguments=[found.run]
            )
        )
    return actions


def _mend(
    found: RunFindings, failing: FailingTest, diagnostic: types.Diagnostic, edit: types.WorkspaceEdit
) -> types.CodeAction:
    return types.CodeAction(
        title=f"Heal {sanitize_text(failing.test, 100)} (verified: {found.passing} of {found.total} "
        f"tests pass)",
        kind=types.CodeActionKind.QuickFix,
        diagnostics=[diagnostic],
        is_preferred=found.passing == found.total,
        edit=edit,
    )


def _ask(failing: FailingTest, diagnostic: types.Diagnostic, uri: str) -> types.CodeAction:
    title = f"Heal {sanitize_text(failing.test, 100)} with a model"
    return types.CodeAction(
        title=title,
        kind=types.CodeActionKind.QuickFix,
        diagnostics=[diagnostic],
        command=types.Command(title=title, command="suture.heal", arguments=[uri]),
    )


def _uri(found: RunFindings, place: SourceLocation) -> str:
    return (found.root / place.path).as_uri()


def _range(found: RunFindings, place: SourceLocation, units: Callable[[str], int]) -> types.Range:
    """A line from its first letter to its end, as the run read it."""
    lines = found.texts.get(place.path, "").split("\n")
    text = lines[place.line - 1] if 0 < place.line <= len(lines) else ""
    start = len(text) - len(text.lstrip())
    line = max(0, place.line - 1)
    return types.Range(
        start=types.Position(line=line, character=units(text[:start])),
        end=types.Position(line=line, character=units(text)),
    )


def _meet(one: types.Range, other: types.Range) -> bool:
    return one.start.line <= other.end.line and other.start.line <= one.end.line
