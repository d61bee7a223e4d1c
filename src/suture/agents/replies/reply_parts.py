"""The parts of a reply that may change files, in whatever form they are written."""

from __future__ import annotations

from dataclasses import dataclass

from suture.agents.replies.edit_problems import ProblemCode
from suture.agents.replies.fenced_blocks import NOT_CODE_LABELS
from suture.agents.replies.text_edits import DiffHunk


@dataclass(frozen=True, kw_only=True)
class ReplyPart:
    """A part of a reply.

    Attributes:
        line: Index of its first line in the reply.
        path: The file that it names, as the reply writes it.
        mentioned: The text before it, which may name a file or a class.
        is_closed: Whether its end is in the reply.
    """

    line: int = 0
    path: str | None = None
    mentioned: str = ""
    is_closed: bool = True


@dataclass(frozen=True, kw_only=True)
class TextEdit(ReplyPart):
    """Text to replace in a file: a search/replace block, a diff of one file, or the call of an edit tool.

    Attributes:
        is_new: Whether the diff says that the file is new.
    """

    hunks: tuple[DiffHunk, ...] = ()
    is_new: bool = False


@dataclass(frozen=True, kw_only=True)
class CodePart(ReplyPart):
    """Code without a place: a whole file, or some of its definitions.

    Attributes:
        code: The text, with a newline at the end unless it is empty.
        is_whole: Whether the reply says that this is the whole file.
        label: The language that the reply names, such as `python`; lower case.
    """

    code: str = ""
    is_whole: bool = False
    label: str = ""

    @property
    def may_be_code(self) -> bool:
        """Return whether the label allows that this is Python."""
        return self.label not in NOT_CODE_LABELS


@dataclass(frozen=True, kw_only=True)
class UnusablePart(ReplyPart):
    """A part that is meant as a change and cannot be one.

    Attributes:
        code: Why; it is shown to the model.
        quote: Its first line.
    """

    code: ProblemCode
    quote: str = ""


@dataclass(frozen=True, kw_only=True)
class IgnorablePart(ReplyPart):
    """A block that is no change, such as a command or a log."""
