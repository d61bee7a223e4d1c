"""Files that a model edits with tools. They stay in memory until they are judged."""

from __future__ import annotations

import ast
import posixpath
from collections.abc import Callable, Mapping

from suture.agents.tools.react_loop import AgentTool, ToolAction
from suture.agents.tuning import MAX_TOOL_FILE_CHARS, MAX_TOOL_FILES
from suture.project.python_source.parsing import parse_module
from suture.project.python_source.splicing import preserves_definitions, splice, top_level_names
from suture.project.python_source.statements import remove_statements


class InMemoryFiles:
    """The files of a project, and what a model has written over them.

    Args:
        files: The project's text files, path -> text.
        may_write: Whether a path may be written; tests may not, for example.
    """

    def __init__(self, files: Mapping[str, str], may_write: Callable[[str], bool]) -> None:
        self._files = dict(files)
        self._may_write = may_write
        self.written: dict[str, str] = {}
        """What was written, path -> text."""

    def tools(self) -> tuple[AgentTool, ...]:
        """Return the tools `create_file`, and `read_file` and `list_files` if there are files."""
        create = AgentTool(
            name="create_file",
            usage="the input is a path, and below it a ```python block with the content of the file",
            run=self._create_file,
        )
        if not self._files and not self.written:
            return (create,)
        read = "the input is a path; shows the content of the file"
        return (
            create,
            AgentTool(name="read_file", usage=read, run=self._read_file),
            AgentTool(
                name="list_files", usage="shows the paths of all files; no input", run=self._list_files
            ),
        )

    def read(self, path: str) -> str | None:
        """Return the current text of a file, or `None`."""
        return self.written.get(path, self._files.get(path))

    def write(self, path: str, code: str) -> str:
        """Write a file; of an existing file, definitions that the code lacks stay.

        Returns:
            Empty if it was written, else the reason for the model.
        """
        path = posixpath.normpath(path.strip())
        outside = not path or path.startswith(("/", "..")) or "\\" in path or "\0" in path
        if outside or not path.endswith(".py") or not self._may_write(path):
            return f"{path!r} may not be written."
        if len(code) > MAX_TOOL_FILE_CHARS or len(self.written.keys() | {path}) > MAX_TOOL_FILES:
            return f"That is too much for {MAX_TOOL_FILES} files of {MAX_TOOL_FILE_CHARS} characters."
        tree = parse_module(code)
        if tree is None:
            return "The code is not Python: it does not parse. Nothing was written."
        if not tree.body:
            return "There was no code."
        merged = _merge_over(self.read(path) or "", code)
        if merged is None:
            return "The file is there already, and this leaves out parts of it. Write the whole file."
        self.written[path] = merged
        return ""

    async def _create_file(self, action: ToolAction) -> str:
        path = action.input.strip("`'\" ")
        refused = self.write(path, action.code) if path else "There was no path."
        names = ", ".join(sorted(top_level_names(self.read(posixpath.normpath(path)) or ""))) if path else ""
        return refused or f"{path} is written; it defines {names or 'nothing'}."

    async def _read_file(self, action: ToolAction) -> str:
        path = posixpath.normpath(action.input.strip("`'\" ") or ".")
        text = self.read(path)
        return f"There is no file {path!r}." if text is None else text or "(it is empty)"

    async def _list_files(self, _: ToolAction) -> str:
        return "\n".join(sorted(self._files.keys() | self.written.keys())) or "There are no files."


def _merge_over(old: str, code: str) -> str | None:
    if not old.strip() or parse_module(old) is None or preserves_definitions(code, old):
        return code
    return splice(old, code)


def merge_subtask_files(base: Mapping[str, str], works: list[Mapping[str, str]]) -> dict[str, str]:
    """Merge what several workers wrote from the same files; of two versions the later wins.

    Args:
        base: The files that each worker started with, path -> text.
        works: What each worker wrote, in the order of the plan.

    Returns:
        Path -> text. A version that cannot be merged replaces the earlier ones.
    """
    merged: dict[str, str] = {}
    for work in works:
        for path, text in work.items():
            if path not in merged:
                merged[path] = text
                continue
            both = splice(merged[path], _changed_part(base.get(path, ""), text))
            merged[path] = text if both is None else both
    return merged


def _changed_part(base: str, text: str) -> str:
    """Return what a text adds to or changes in the base; imports stay."""
    old, new = parse_module(base), parse_module(text)
    if old is None or new is None:
        return text
    known = {ast.dump(node) for node in old.body}
    same = [n for n in new.body if ast.dump(n) in known and not isinstance(n, ast.Import | ast.ImportFrom)]
    return remove_statements(text, new, same)
