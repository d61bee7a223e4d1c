"""Suture's comment on a pull request: a hidden first line that says which heal it offers, then Markdown.

There is one such comment on a pull request. Later heals and the commands of people update it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

HealState = Literal["open", "applied", "rejected"]
"""What became of a heal that a comment offers."""
MARK_PATTERN = re.compile(
    r"<!-- suture-heal ([0-9a-f]{40,64}) (open|applied|rejected) ([0-9a-f]{16}) (\d{1,19}) -->"
)
"""The first line of the comment: the commit, the state, the seal's first digits, and the workflow run."""
STATUS_PREFIX = "> "
"""Starts the second line of the comment if it says what became of the heal."""
COMMANDS_TEXT = (
    "\nComment `/suture apply` to commit this change to the branch, or `/suture reject` to decline it. "
    "Both need write access to the repository.\n"
)


@dataclass(frozen=True, kw_only=True)
class HealMark:
    """The heal that a comment offers.

    Attributes:
        commit: The commit that the heal changes.
        seal: The first 16 hex digits of the seal of its certificate.
        workflow_run: The id of the workflow run whose artifact has the certificate; "0" if unknown.
    """

    commit: str
    seal: str
    workflow_run: str = "0"
    state: HealState = "open"


def parse_mark(comment: str) -> HealMark | None:
    """Return the mark of Suture's comment; `None` for any other comment."""
    match = MARK_PATTERN.match(comment)
    if match is None:
        return None
    commit, state, seal, workflow_run = match.groups()
    return HealMark(commit=commit, state=state, seal=seal, workflow_run=workflow_run)  # type: ignore[arg-type] # by the pattern


def render_heal_comment(mark: HealMark, text: str) -> str:
    """Return the comment that offers a heal; `text` is its Markdown."""
    return f"{_render_mark(mark)}\n{text}"


def set_comment_status(comment: str, mark: HealMark, status: str) -> str:
    """Return the comment with a new mark, and with a status in place of an earlier one.

    Args:
        status: One line of Markdown.
    """
    _, _, text = comment.replace("\r\n", "\n").partition("\n")  # GitHub's editor writes CR LF
    if text.startswith(STATUS_PREFIX):
        text = text.partition("\n")[2].removeprefix("\n")
    return f"{_render_mark(mark)}\n{STATUS_PREFIX}{status}\n\n{text}"


def _render_mark(mark: HealMark) -> str:
    return f"<!-- suture-heal {mark.commit} {mark.state} {mark.seal} {mark.workflow_run} -->"
