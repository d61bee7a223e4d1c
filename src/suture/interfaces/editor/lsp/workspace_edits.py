"""Turn a verified change into an edit of the editor's documents, unless they have changed meanwhile."""

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

    Raises:
        EditOutdated: A file has changed since, or cannot be created.
    """
    assert findings.change is not None
    changes: list[types.TextDocumentEdit | types.CreateFile | types.RenameFile | types.DeleteFile] = []
    for path, text in sorted(findings.change.files.items()):
        file = findings.root / path
        if not file.resolve().is_relative_to(findings.root.resolve()):
            raise EditOutdated(f"{path} is outside the project, behind a symbolic link")
        tested_text, document = findings.texts.get(path), read_document(file)
        if tested_text is None:
            if document is not None or not can_create:
                raise EditOutdated(f"{path} is a new file that cannot be created")
            changes.append(types.CreateFile(uri=file.as_uri()))
            document = ("", None)
        # A lone carriage return ends a line for the protocol, but not for the line numbers here.
        elif document is None or "\r" in _normalized(document[0]) or _normalized(document[0]) != tested_text:
            raise EditOutdated(f"{path} has changed since the tests ran")
        current_text, version = document
        changes.append(
            types.TextDocumentEdit(
                text_document=types.OptionalVersionedTextDocumentIdentifier(
                    uri=file.as_uri(), version=version
                ),
                edits=list(_line_edits(current_text, text, count_units)),
            )
        )
    return types.WorkspaceEdit(document_changes=changes)


def without_versions(edit: types.WorkspaceEdit) -> types.WorkspaceEdit:
    """Return the edit for a client that does not support document versions."""
    changes = {
        change.text_document.uri: list(change.edits)
        for change in edit.document_changes or ()
        if isinstance(change, types.TextDocumentEdit)
    }
    return types.WorkspaceEdit(changes=changes)  # type: ignore[arg-type]  # all edits made above are plain


def _line_edits(old: str, new: str, count_units: Callable[[str], int]) -> Iterator[types.TextEdit]:
    """Yield the edits between two texts in whole lines, keeping the document's line ends."""
    line_end = "\r\n" if "\r\n" in old else "\n"
    before, after = PROTOCOL_LINE.findall(_normalized(old)), PROTOCOL_LINE.findall(new)
    lacks_final_line_end = bool(before) and not before[-1].endswith("\n")

    def position(line: int) -> types.Position:
        # After a last line without a line end there is no next line to insert at.
        if line == len(before) and lacks_final_line_end:
            return types.Position(line=line - 1, character=count_units(before[-1]))
        return types.Position(line=line, character=0)

    matcher = SequenceMatcher(None, before, after, autojunk=False)
    for tag, old_start, old_end, new_start, new_end in matcher.get_opcodes():
        if tag == "equal":
            continue
        text = "".join(after[new_start:new_end]).replace("\n", line_end)
        if lacks_final_line_end and old_start == len(before):
            text = line_end + text
        yield types.TextEdit(
            range=types.Range(start=position(old_start), end=position(old_end)), new_text=text
        )


def _normalized(text: str) -> str:
    """Return text as `decode_text` reads it from a file: without a byte order mark, and with plain line feeds."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n")
