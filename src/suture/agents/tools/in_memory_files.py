"""Files that a model works on with tools: all in memory, so that nothing is touched until it is judged."""

from __future__ import annotations

import ast
import posixpath
from collections.abc import Callable, Mapping

from suture.agents.tools.react_loop import Action, AgentTool
from suture.project.python_source.parsing import parsed
from suture.project.python_source.splicing import covers, promised_names, splice
from suture.project.python_source.statements import without_nodes

LONGEST_FILE = 40_000
MOST_WRITTEN = 12


class InMemoryFiles:
    """The files of a project, and what was written over them.

    Args:
        files: The project's text files, path -> text.
        may_write: Whether a path may be written, such as one that is no test.
    """

    def __init__(self, files: Mapping[str, str], may_write: Callable[[str], bool]) -> None:
        self._files = dict(files)
        self._may_write = may_write
        self.written: dict[str, str] = {}
        """What was written, path -> text."""

    def tools(self) -> tuple[AgentTool, ...]:
        """The tools `create_file`, and `read_file` and `list_files` where there is a file."""
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
        """The text of a file as it is now; `None` where there is none."""
        return self.written.get(path, self._files.get(path))

    def write(self, path: str, code: str) -> str:
        """Write a file; of one that is there, what the code does not define stays.

        Returns:
            Empty where it was written, else why it was not.
        """
        path = posixpath.normpath(path.strip())
        outside = not path or path.startswith(("/", "..")) or "\\" in path or "\0" in path
        if outside or not path.endswith(".py") or not self._may_write(path):
            return f"{path!r} may not be written."
        if len(code) > LONGEST_FILE or len(self.written.keys() | {path}) > MOST_WRITTEN:
            return f"That is too much for {MOST_WRITTEN} files of {LONGEST_FILE} characters."
        tree = parsed(code)
        if tree is None:
            return "The code is not Python: it does not parse. Nothing was written."
        if not tree.body:
            return "There was no code."
        merged = _laid_over(self.read(path) or "", code)
        if merged is None:
            return "The file is there already, and this leaves out parts of it. Write the whole file."
        self.written[path] = merged
        return ""

    async def _create_file(self, action: Action) -> str:
        path = action.input.strip("`'\" ")
        refused = self.write(path, action.code) if path else "There was no path."
        names = ", ".join(sorted(promised_names(self.read(posixpath.normpath(path)) or ""))) if path else ""
        return refused or f"{path} is written; it defines {names or 'nothing'}."

    async def _read_file(self, action: Action) -> str:
        path = posixpath.normpath(action.input.strip("`'\" ") or ".")
        text = self.read(path)
        return f"There is no file {path!r}." if text is None else text or "(it is empty)"

    async def _list_files(self, _: Action) -> str:
        return "\n".join(sorted(self._files.keys() | self.written.keys())) or "There are no files."


def _laid_over(old: str, code: str) -> str | None:
    return code if not old.strip() or parsed(old) is None or covers(code, old) else splice(old, code)


def merged_work(base: Mapping[str, str], works: list[Mapping[str, str]]) -> dict[str, str]:
    """What several workers wrote from the same files, put together; of two versions the later stays.

    Args:
        base: The files that each began with, path -> text.
        works: What each wrote, in the order of the plan.

    Returns:
        Path -> text. A version that cannot be put into the others' takes their place.
    """
    merged: dict[str, str] = {}
    for work in works:
        for path, text in work.items():
            if path not in merged:
                merged[path] = text
                continue
            both = splice(merged[path], _own_part(base.get(path, ""), text))
            merged[path] = text if both is None else both
    return merged


def _own_part(base: str, text: str) -> str:
    """What a text has that the base has not, or has otherwise; imports stay."""
    old, new = parsed(base), parsed(text)
    if old is None or new is None:
        return text
    known = {ast.dump(node) for node in old.body}
    same = [n for n in new.body if ast.dump(n) in known and not isinstance(n, ast.Import | ast.ImportFrom)]
    return without_nodes(text, new, same)
