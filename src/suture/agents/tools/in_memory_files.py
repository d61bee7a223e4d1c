"""Files that a model writes with tools. They stay in memory until they are judged."""

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
        read = AgentTool(
            name="read_file",
            usage="the input is a path; shows the content of the file",
            run=self._read_file,
        )
        list_all = AgentTool(
            name="list_files", usage="shows the paths of all files; no input", run=self._list_files
        )
        return (create, read, list_all) if self._files or self.written else (create,)

    def read(self, path: str) -> str | None:
        """Return the current text of a file, or `None`."""
        return self.written.get(path, self._files.get(path))

    def write(self, path: str, code: str) -> str:
        """Write a file; of an existing file, definitions that the code lacks stay.

        Return why the file was not written, for the model; empty if it was.
        """
        path = posixpath.normpath(path.strip())
        is_outside = not path or path.startswith(("/", "..")) or "\\" in path or "\0" in path
        if is_outside or not path.endswith(".py") or not self._may_write(path):
            return f"{path!r} may not be written."
        if len(code) > MAX_TOOL_FILE_CHARS or len(self.written.keys() | {path}) > MAX_TOOL_FILES:
            return f"That is too much for {MAX_TOOL_FILES} files of {MAX_TOOL_FILE_CHARS} characters."
        tree = parse_module(code)
        if tree is None:
            return "The code is not Python: it does not parse. Nothing was written."
        if not tree.body:
            return "There was no code."
        old = self.read(path) or ""
        is_complete = not old.strip() or parse_module(old) is None or preserves_definitions(code, old)
        merged = code if is_complete else splice(old, code)
        if merged is None:
            return "The file is there already, and this leaves out parts of it. Write the whole file."
        self.written[path] = merged
        return ""

    async def _create_file(self, action: ToolAction) -> str:
        path = action.input.strip("`'\" ")
        if not path:
            return "There was no path."
        if refusal := self.write(path, action.code):
            return refusal
        names = ", ".join(sorted(top_level_names(self.read(posixpath.normpath(path)) or "")))
        return f"{path} is written; it defines {names or 'nothing'}."

    async def _read_file(self, action: ToolAction) -> str:
        path = posixpath.normpath(action.input.strip("`'\" ") or ".")
        text = self.read(path)
        return f"There is no file {path!r}." if text is None else text or "(it is empty)"

    async def _list_files(self, _: ToolAction) -> str:
        return "\n".join(sorted(self._files.keys() | self.written.keys())) or "There are no files."


def merge_subtask_files(base: Mapping[str, str], written: list[Mapping[str, str]]) -> dict[str, str]:
    """Merge the files (path -> text) of subtasks that started from the same base.

    Of two versions of a definition the later one wins. A file that cannot be merged replaces earlier versions.

    Args:
        written: The files that each subtask wrote, in the order of the plan.
    """
    merged: dict[str, str] = {}
    for files in written:
        for path, text in files.items():
            earlier = merged.get(path)
            spliced = (
                splice(earlier, _changed_part(base.get(path, ""), text)) if earlier is not None else None
            )
            merged[path] = text if spliced is None else spliced
    return merged


def _changed_part(base: str, text: str) -> str:
    """Return the statements of a text that differ from those of the base, and all its imports."""
    old, new = parse_module(base), parse_module(text)
    if old is None or new is None:
        return text
    old_statements = {ast.dump(node) for node in old.body}
    unchanged = [
        node
        for node in new.body
        if ast.dump(node) in old_statements and not isinstance(node, ast.Import | ast.ImportFrom)
    ]
    return remove_statements(text, new, unchanged)
