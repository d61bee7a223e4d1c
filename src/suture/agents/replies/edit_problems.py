"""Name why a part of a reply could not be applied, and render that for the model.

The logic compares codes only. The sentences are for the model, and name what to send instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from suture.agents.tuning import MAX_QUOTED_CHARS

ProblemCode = Literal[
    "text_not_found",
    "text_repeats",
    "elided",
    "names_no_file",
    "no_such_file",
    "several_files",
    "bad_path",
    "file_exists",
    "protected",
    "deletes_file",
    "partial_file",
    "ambiguous_definition",
    "no_place",
    "syntax_error",
    "line_out_of_range",
    "incomplete",
    "unreadable",
]

EXPLANATIONS: dict[ProblemCode, str] = {
    "text_not_found": "the text to replace is not in the file. Copy it from the lines below",
    "text_repeats": "the text to replace is in the file {count} times. Add lines around it that make it unique",
    "elided": "it leaves out code (`...`). Write out every line, or send smaller edits",
    "names_no_file": "it names no file. Write the file's path in the line above it",
    "no_such_file": "the project has no such file. Use a path of the project, or send a new file as a whole",
    "several_files": "the path fits several files. Write the whole path",
    "bad_path": "no file can be written there. Use a relative path inside the project",
    "file_exists": "the file is there already. Send the whole file, or an edit of it",
    "protected": "this file may not be changed. Change the code that it tests instead",
    "deletes_file": "no file can be deleted or renamed. Leave it, and change its content",
    "partial_file": "it is not the whole file, and its definitions do not show which lines it replaces. "
    "Send the whole file or an edit",
    "ambiguous_definition": "several definitions have this name. Put it into its class, or send an edit",
    "no_place": "its definitions have no unique place in the file. Send the whole file or an edit",
    "syntax_error": "its code cannot be parsed. Send it again, or send an edit of the lines that change",
    "line_out_of_range": "the file has only {count} lines",
    "incomplete": "it has no end. Send it again, complete",
    "unreadable": "it cannot be read as a change. Send a search/replace block or the whole file",
}
"""What each code means and what the model can do about it."""


@dataclass(frozen=True, kw_only=True)
class NumberedLine:
    """A line of a file as it is; the number counts from 1."""

    number: int
    text: str


@dataclass(frozen=True, kw_only=True)
class EditProblem:
    """A part of a reply that could not be applied.

    Attributes:
        code: Why.
        path: The file that it names or means; `None` if that is unknown.
        number: Its number among the parts of the reply, from 1.
        quote: The first line of the code, or the name of the definition, that the problem is about.
        count: The number that the code refers to: places or lines in the file.
        nearest: The lines of the file that resemble the lines to replace.
        candidates: What it may mean: paths, or qualified names of definitions.
    """

    code: ProblemCode
    path: str | None = None
    number: int = 0
    quote: str = ""
    count: int = 0
    nearest: tuple[NumberedLine, ...] = ()
    candidates: tuple[str, ...] = ()

    def render(self) -> str:
        """Return the problem for the model: one sentence, and the nearest lines with their numbers."""
        where = f" ({self.path})" if self.path else ""
        quote = f", from {self.quote[:MAX_QUOTED_CHARS]!r} on," if self.quote else ""
        explanation = EXPLANATIONS[self.code].format(count=self.count)
        candidates = f" It may be: {', '.join(self.candidates)}." if self.candidates else ""
        lines = [f"Edit {self.number}{where}{quote} was not applied: {explanation}.{candidates}"]
        lines += [f"{line.number:5}  {line.text}" for line in self.nearest]
        return "\n".join(lines)


class EditFault(Exception):
    """An edit cannot be applied. Only the modules of this package raise and catch it."""

    def __init__(
        self,
        code: ProblemCode,
        *,
        quote: str = "",
        count: int = 0,
        nearest: Sequence[NumberedLine] = (),
        candidates: Sequence[str] = (),
    ) -> None:
        super().__init__(code)
        self.code = code
        self.quote = quote
        self.count = count
        self.nearest = tuple(nearest)
        self.candidates = tuple(candidates)

    def at(self, path: str | None, number: int) -> EditProblem:
        """Return the problem of a part of the reply."""
        return EditProblem(
            code=self.code,
            path=path,
            number=number,
            quote=self.quote,
            count=self.count,
            nearest=self.nearest,
            candidates=self.candidates,
        )
