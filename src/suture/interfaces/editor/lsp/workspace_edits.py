"""A verified change as an edit of the editor's own documents, line by line, and never over other text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from difflib import SequenceMatcher
from pathlib import Path

from lsprotocol import types

from suture.interfaces.editor.lsp.run_findings import RunFindings

LINE = re.compile(r"[^\n]*\n|[^\n]+")
"""As the protocol counts lines, and not as `str.splitlines` does."""
Held = Callable[[Path], tuple[str, int | None] | None]
"""The text of a file as the editor has it, its version where it is open; `None` where there is no file."""


class EditOutdated(Exception):
    """A file is no longer what the change was verified on."""


def make_workspace_edit(
    findings: RunFindings, held: Held, units: Callable[[str], int], *, creates: bool
) -> types.WorkspaceEdit:
    """The change of a run's findings.

    Args:
        findings: With a change.
        held: What the editor has.
        units: How long a text is, as the client counts characters.
        creates: Whether the client makes new files.

    Raises:
        EditOutdated: The user has changed a file since, or it cannot be made.
    """
    assert findings.change is not None
    changes: list[types.TextDocumentEdit | types.CreateFile | types.RenameFile | types.DeleteFile] = []
    for path, text in sorted(findings.change.files.items()):
        place = findings.root / path
        if not place.resolve().is_relative_to(findings.root.resolve()):
            raise EditOutdated(f"{path} lies behind a link that leads out of the project")
        before, now = findings.texts.get(path), held(place)
        if before is None:
            if now is not None or not creates:
                raise EditOutdated(f"{path} is new, and cannot be made")
            changes.append(types.CreateFile(uri=place.as_uri()))
            now = ("", None)
        elif now is None or "\r" in _unified(now[0]) or _unified(now[0]) != before:
            raise EditOutdated(f"{path} has changed since its tests ran")
        document = types.OptionalVersionedTextDocumentIdentifier(uri=place.as_uri(), version=now[1])
        changes.append(
            types.TextDocumentEdit(text_document=document, edits=list(_edits(now[0], text, units)))
        )
    return types.WorkspaceEdit(document_changes=changes)


def as_plain_changes(edit: types.WorkspaceEdit) -> types.WorkspaceEdit:
    """The same for a client that knows of no versions of documents."""
    changes = {
        one.text_document.uri: list(one.edits)
        for one in edit.document_changes or ()
        if isinstance(one, types.TextDocumentEdit)
    }
    return types.WorkspaceEdit(changes=changes)  # type: ignore[arg-type]  # made by us: all are plain edits


def _edits(old: str, new: str, units: Callable[[str], int]) -> Iterator[types.TextEdit]:
    """From a document's text to another one, whole lines at a time; its line ends stay."""
    ends = "\r\n" if "\r\n" in old else "\n"
    before, after = LINE.findall(_unified(old)), LINE.findall(new)
    open_end = bool(before) and not before[-1].endswith("\n")
    # Behind a last line without an end there is no next line to write to.
    behind = (
        types.Position(line=len(before) - 1, character=units(before[-1]))
        if open_end
        else types.Position(line=len(before), character=0)
    )
    for tag, start, end, first, last in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        text = "".join(after[first:last]).replace("\n", ends)
        begin = behind if start == len(before) else types.Position(line=start, character=0)
        finish = behind if end == len(before) else types.Position(line=end, character=0)
        joint = ends if open_end and start == len(before) else ""
        yield types.TextEdit(range=types.Range(start=begin, end=finish), new_text=joint + text)


def _unified(text: str) -> str:
    return text.removeprefix("\ufeff").replace("\r\n", "\n")
