"""Applying the edit of a verified change produces exactly that change, whatever the line ends."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol import types

from interfaces.editor.test_lsp_server import offset_of
from suture.core.records import Candidate
from suture.interfaces.editor.lsp.run_findings import RunFindings
from suture.interfaces.editor.lsp.workspace_edits import EditOutdated, make_workspace_edit, without_versions

ROOT = Path("/project")
LINES = st.lists(st.sampled_from(["a = 1", "b = 2", "", "    \N{GRINNING FACE}", "\x0cc"]), max_size=6)


def utf16(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def edited(before: str, after: str, held: str | None, *, can_create: bool = True) -> types.WorkspaceEdit:
    """The edit from what was tested to a change, where the editor holds this."""
    change = Candidate(files={"a.py": after}, origin="sample")
    texts = {"a.py": before} if before else {}
    found = RunFindings(run="r", root=ROOT, texts=texts, failing=(), change=change)
    return make_workspace_edit(
        found, lambda _: None if held is None else (held, 7), utf16, can_create=can_create
    )


def applied(text: str, edit: types.WorkspaceEdit) -> str:
    for change in edit.document_changes or ():
        if isinstance(change, types.TextDocumentEdit):
            for one in reversed(change.edits):
                assert isinstance(one, types.TextEdit)
                start, end = offset_of(text, one.range.start), offset_of(text, one.range.end)
                text = text[:start] + one.new_text + text[end:]
    return text


@given(before=LINES.filter(any), after=LINES, ends=st.sampled_from(["\n", "\r\n"]), last=st.booleans())
def test_an_edit_makes_the_changed_text(before: list[str], after: list[str], ends: str, last: bool) -> None:
    old = "\n".join(before) + ("\n" if last else "")
    new = "\n".join(after) + ("\n" if last else "")
    held = old.replace("\n", ends)
    made = applied(held, edited(old, new, held))
    assert made.replace("\r\n", "\n").rstrip("\n") == new.rstrip("\n")
    assert "\r" not in made.replace("\r\n", "")


def test_what_the_user_has_changed_since_is_not_written_over() -> None:
    for held in ("a = 2\n", None, "a = 1\r"):
        with pytest.raises(EditOutdated):
            edited("a = 1\n", "a = 3\n", held)
    with pytest.raises(EditOutdated):  # a new file that is there by now
        edited("", "a = 3\n", "a = 4\n")
    with pytest.raises(EditOutdated):
        edited("", "a = 3\n", None, can_create=False)


def test_a_new_file_is_made_and_plain_clients_get_plain_edits() -> None:
    create, fill = edited("", "a = 3\n", None).document_changes or ()
    assert isinstance(create, types.CreateFile)
    assert create.uri == "file:///project/a.py"
    assert isinstance(fill, types.TextDocumentEdit)
    plain = without_versions(edited("a = 1\n", "a = 3\n", "a = 1\n"))
    assert plain.changes is not None
    assert [one.new_text for one in plain.changes["file:///project/a.py"]] == ["a = 3\n"]


def test_a_link_of_the_project_leads_no_edit_out_of_it(tmp_path: Path) -> None:
    root, other = tmp_path / "project", tmp_path / "other"
    root.mkdir()
    other.mkdir()
    (root / "out").symlink_to(other)
    change = Candidate(files={"out/a.py": "a = 3\n"}, origin="sample")
    found = RunFindings(run="r", root=root, texts={}, failing=(), change=change)
    with pytest.raises(EditOutdated):
        make_workspace_edit(found, lambda _: None, utf16, can_create=True)
