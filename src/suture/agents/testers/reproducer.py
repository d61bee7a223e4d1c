"""The reproducer: writes a test that shows what an issue reports, on code whose tests all pass."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from suture.agents.prompting.fitting import Draft
from suture.agents.prompting.prompt_files import Prompt
from suture.agents.prompting.prompt_parts import (
    examples_part,
    files_part,
    hints_text,
    refused_part,
    task_text,
)
from suture.agents.replies.fenced import fenced_blocks
from suture.errors import MalformedReply
from suture.models import Reply
from suture.project.python_source.bounded_reading import bounded
from suture.project.python_source.parsing import parsed

MOST_CHARS = 8000
"""Of a test that a person is to read and to answer for."""


@dataclass(frozen=True, kw_only=True)
class ReproducerBrief:
    """What there is to know before a test is written.

    Attributes:
        statement: The issue, in the user's words.
        path: The file that the test will be, relative to the project root.
        files: Code that the issue may be about, path -> text, the likeliest first.
        examples: A test file of the project, which shows how its code is imported and called.
        refused: Why earlier tests could not be used, the latest last.
        hints: What a person said of earlier ones.
    """

    statement: str
    path: str
    files: Mapping[str, str]
    examples: str = ""
    refused: Sequence[str] = ()
    hints: Sequence[str] = ()


def reproducer_draft(brief: ReproducerBrief, prompt: Prompt) -> Draft:
    """The prompt, before it is cut to the room there is; the answer is for `test_from_reply`."""
    texts = {"task": task_text(brief.statement), "path": brief.path, "hints": hints_text(brief.hints)}
    parts = {
        "files": files_part(brief.files),
        "examples": examples_part(brief.examples),
        "refused": refused_part(brief.refused),
    }
    return Draft(prompt=prompt, template="test", texts=texts, parts=parts)


@bounded
def test_from_reply(reply: Reply) -> str:
    """The source of the test file in a reply.

    Raises:
        MalformedReply: It holds no pytest function, or one that nobody would read.
    """
    blocks = [block for block in fenced_blocks(reply.text) if block.may_be_code and block.closed]
    sources = [block.code for block in blocks] or [reply.text]
    found = [source for source in sources if _holds_a_test(source)]
    if not found:
        raise MalformedReply("the reply holds no pytest function")
    if len(found[0]) > MOST_CHARS:
        raise MalformedReply(f"the test is longer than {MOST_CHARS} characters")
    try:
        found[0].encode()
    except UnicodeEncodeError as fault:
        raise MalformedReply("the test is no Unicode text") from fault
    return found[0]


test_from_reply.__test__ = False  # type: ignore[attr-defined]  # pytest must not collect it


def _holds_a_test(source: str) -> bool:
    tree = parsed(source)
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return tree is not None and any(
        isinstance(node, functions) and node.name.startswith("test") for node in ast.walk(tree)
    )
