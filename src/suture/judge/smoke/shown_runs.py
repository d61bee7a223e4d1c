"""The runs that a statement shows: `$ todo add milk` with its output, `GET /books -> 200 []`.

They are the user's own examples of a whole program, as `f(1) == 2` is one of a function.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

TYPED = re.compile(r"^[ \t]*\$ (\S.*)$")
ASKED = re.compile(
    r"^[ \t]*(?:[-*] )?`?(GET|POST|PUT|PATCH|DELETE) (/\S*?)`?(?:\s+(\{.*?\}|\[.*?\]))?"
    r"\s*(?:->|=>|→)\s*(\d{3})(?:\s+(\{.*\}|\[.*\]|\"[^\"]*\"))?[`.]?\s*$"
)
NO_PROGRAMS = frozenset(
    ("cat", "cd", "cp", "curl", "echo", "export", "git", "ls", "mkdir", "npm", "npx", "pip", "python", "rm")
)
MOST_SHOWN = 40
MOST_CHARS = 100_000


@dataclass(frozen=True, kw_only=True)
class ShownCommand:
    """A command line that a statement shows.

    Attributes:
        words: The program's name and its arguments.
        output: The lines below it; what it must print, where there are any.
    """

    words: tuple[str, ...]
    output: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class ShownRequest:
    """A request over HTTP that a statement shows, and its answer.

    Attributes:
        method: Such as `GET`.
        path: As it stands there, with its query.
        body: What is sent, as JSON values; `None` where none is shown.
        status: Of the answer.
        answer: The answer's body, as JSON values; `None` where none is shown.
    """

    method: str
    path: str
    body: Any
    status: int
    answer: Any

    @property
    def shown(self) -> str:
        """The request in one line, for people."""
        body = f" {json.dumps(self.body)}" if self.body is not None else ""
        return f"{self.method} {self.path}{body}"


def shown_commands(statement: str) -> tuple[ShownCommand, ...]:
    """The commands behind a `$`, in order; those of the shell and of tools are passed over."""
    found: list[ShownCommand] = []
    lines = statement[:MOST_CHARS].splitlines()
    for at, line in enumerate(lines):
        match = TYPED.match(line)
        words = _words(match[1]) if match else ()
        if words and words[0] not in NO_PROGRAMS:
            found.append(ShownCommand(words=words, output=tuple(_below(lines[at + 1 :]))))
    return tuple(found[:MOST_SHOWN])


def shown_requests(statement: str) -> tuple[ShownRequest, ...]:
    """The requests with the status of their answers, in order; one whose JSON is none is passed over."""
    found: list[ShownRequest] = []
    for line in statement[:MOST_CHARS].splitlines():
        if match := ASKED.match(line):
            try:
                body, answer = (json.loads(text) if text else None for text in (match[3], match[5]))
            except (ValueError, RecursionError):
                continue
            found.append(
                ShownRequest(method=match[1], path=match[2], body=body, status=int(match[4]), answer=answer)
            )
    return tuple(found[:MOST_SHOWN])


def _words(line: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(line))
    except ValueError:
        return ()


def _below(lines: list[str]) -> Iterator[str]:
    """What is printed: up to an empty line, the next command or the end of a block."""
    for line in lines:
        if not line.strip() or TYPED.match(line) or line.strip().startswith("```"):
            return
        yield line.strip()
