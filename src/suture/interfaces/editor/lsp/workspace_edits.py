"""A verified change as an edit of the editor's documents, line by line, never on top of other changes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from difflib import SequenceMatcher
from pathlib import Path

from lsprotocol import types

from suture.interfaces.editor.lsp.run_findings import RunFindings

PROTOCOL_LINE = re.compile(r"[^\n]*\n|[^\n]+")
"""A line as the protocol counts lines, unlike `str.splitlines`."""
ReadDocument = Callable[[Path], tuple[str, int | None] | None]
"""Returns a file's text in the editor and its version if it is open; `None` if the file does not exist."""


class EditOutdated(Exception):
    """A file has changed since the change was verified."""


def make_workspace_edit(
    findings: RunFindings, read_document: ReadDocument, count_units: Callable[[str], int], *, can_create: bool
) -> types.WorkspaceEdit:
    """Return the edit for the verified change of a run.

    Args:
        findings: The findings, with a change.
        read_document: Returns the editor's text of a file.
        count_units: Returns a text's length in the client's character units.
        can_create: Whether the client can create files.

    Raises:
        EditOutdated: A file has changed since, or cannot be created.
    """
    assert findings.change is not None
    changes: list[types.TextDocumentEdit | types.CreateFile | types.RenameFile | types.DeleteFile] = []
    for path, text in sorted(findings.change.files.items()):
        place = findings.root / path
        if not place.resolve().is_relative_to(findings.root.resolve()):
            raise EditOutdated(f"{path} is outside the project, behind a symbolic link")
        before, now = findings.texts.get(path), read_document(place)
        if before is None:
            if now is not None or not can_create:
                raise EditOutdated(f"{path} is a new file that cannot be created")
            changes.append(types.CreateFile(uri=place.as_uri()))
            now = ("", None)
        elif now is None or "\r" in _normalized(now[0]) or _normalized(now[0]) != before:
            raise EditOutdated(f"{path} has changed since the tests ran")
        document = types.OptionalVersionedTextDocumentIdentifier(uri=place.as_uri(), version=now[1])
        changes.append(
            types.TextDocumentEdit(text_document=document, edits=list(_line_edits(now[0], text, count_units)))
        )
    return types.WorkspaceEdit(document_changes=changes)


def without_versions(edit: types.WorkspaceEdit) -> types.WorkspaceEdit:
    """Return the edit for a client that does not support document versions."""
    changes = {
        one.text_document.uri: list(one.edits)
        for one in edit.document_changes or ()
        if isinstance(one, types.TextDocumentEdit)
    }
    return types.WorkspaceEdit(changes=changes)  # type: ignore[arg-type]  # all edits made above are plain


def _line_edits(old: str, new: str, count_units: Callable[[str], int]) -> Iterator[types.TextEdit]:
    """Yield the edits between two texts in whole lines, keeping the document's line ends."""
    ends = "\r\n" if "\r\n" in old else "\n"
    before, after = PROTOCOL_LINE.findall(_normalized(old)), PROTOCOL_LINE.findall(new)
    open_end = bool(before) and not before[-1].endswith("\n")
    # After a last line without a line end there is no next line to insert at.
    end_position = (
        types.Position(line=len(before) - 1, character=count_units(before[-1]))
        if open_end
        else types.Position(line=len(before), character=0)
    )
    for tag, start, end, first, last in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        text = "".join(after[first:last]).replace("\n", ends)
        begin = end_position if start == len(before) else types.Position(line=start, character=0)
        finish = end_position if end == len(before) else types.Position(line=end, character=0)
        joint = ends if open_end and start == len(before) else ""
        yield types.TextEdit(range=types.Range(start=begin, end=finish), new_text=joint + text)


def _normalized(text: str) -> str:
    return text.removeprefix("\ufeff").replace("\r\n", "\n")
