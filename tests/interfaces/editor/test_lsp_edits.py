"""Applying the edit of a verified change produces exactly that change, whatever the line endings."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol import types

from interfaces.editor.test_lsp_server import find_offset
from suture.core.records import Candidate
from suture.interfaces.editor.lsp.language_server import EditOutdated, make_workspace_edit, without_versions
from suture.interfaces.editor.lsp.run_findings import RunFindings

ROOT = Path("/project")
LINES = st.lists(st.sampled_from(["a = 1", "b = 2", "", "    \N{GRINNING FACE}", "\x0cc"]), max_size=6)


def count_utf16_units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def make_edit(
    before: str, after: str, editor_text: str | None, *, can_create: bool = True
) -> types.WorkspaceEdit:
    """Return the edit from the tested text to the changed text, for an editor with the text `editor_text`."""
    change = Candidate(files={"a.py": after}, origin="sample")
    texts = {"a.py": before} if before else {}
    findings = RunFindings(run="r", root=ROOT, texts=texts, failing=(), change=change)
    return make_workspace_edit(
        findings,
        lambda _: None if editor_text is None else (editor_text, 7),
        count_utf16_units,
        can_create=can_create,
    )


def apply_edit(text: str, edit: types.WorkspaceEdit) -> str:
    """Apply the text edits of a workspace edit to a text."""
    for change in edit.document_changes or ():
        if isinstance(change, types.TextDocumentEdit):
            for text_edit in reversed(change.edits):
                assert isinstance(text_edit, types.TextEdit)
                start, end = find_offset(text, text_edit.range.start), find_offset(text, text_edit.range.end)
                text = text[:start] + text_edit.new_text + text[end:]
    return text


@given(
    before=LINES.filter(any),
    after=LINES,
    line_ending=st.sampled_from(["\n", "\r\n"]),
    ends_with_newline=st.booleans(),
)
def test_an_edit_makes_the_changed_text(
    before: list[str], after: list[str], line_ending: str, ends_with_newline: bool
) -> None:
    old_text = "\n".join(before) + ("\n" if ends_with_newline else "")
    new_text = "\n".join(after) + ("\n" if ends_with_newline else "")
    editor_text = old_text.replace("\n", line_ending)
    edited_text = apply_edit(editor_text, make_edit(old_text, new_text, editor_text))
    assert edited_text.replace("\r\n", "\n").rstrip("\n") == new_text.rstrip("\n")
    assert "\r" not in edited_text.replace("\r\n", "")


def test_a_change_of_the_user_is_not_overwritten() -> None:
    for editor_text in ("a = 2\n", None, "a = 1\r"):
        with pytest.raises(EditOutdated):
            make_edit("a = 1\n", "a = 3\n", editor_text)
    with pytest.raises(EditOutdated):  # the new file exists already
        make_edit("", "a = 3\n", "a = 4\n")
    with pytest.raises(EditOutdated):
        make_edit("", "a = 3\n", None, can_create=False)


def test_a_new_file_is_created_and_simple_clients_get_simple_edits() -> None:
    create, content_edit = make_edit("", "a = 3\n", None).document_changes or ()
    assert isinstance(create, types.CreateFile)
    assert create.uri == "file:///project/a.py"
    assert isinstance(content_edit, types.TextDocumentEdit)

    unversioned_edit = without_versions(make_edit("a = 1\n", "a = 3\n", "a = 1\n"))
    assert unversioned_edit.changes is not None
    assert [text_edit.new_text for text_edit in unversioned_edit.changes["file:///project/a.py"]] == [
        "a = 3\n"
    ]


def test_an_edit_does_not_follow_a_link_out_of_the_project(tmp_path: Path) -> None:
    root, outside_folder = tmp_path / "project", tmp_path / "other"
    root.mkdir()
    outside_folder.mkdir()
    (root / "out").symlink_to(outside_folder)
    change = Candidate(files={"out/a.py": "a = 3\n"}, origin="sample")

    findings = RunFindings(run="r", root=root, texts={}, failing=(), change=change)

    with pytest.raises(EditOutdated):
        make_workspace_edit(findings, lambda _: None, count_utf16_units, can_create=True)
