"""Examples that a capable model states as data: a call, its result, and the words of the task that demand it."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Sequence

from pydantic import BaseModel, Field

from suture.agents.prompting.fitting import PromptDraft
from suture.agents.prompting.prompt_files import Prompt
from suture.agents.prompting.prompt_parts import list_part, render_task
from suture.agents.replies.generated_checks import GeneratedChecks, checks_from_reply
from suture.core.records import Provenance
from suture.errors import MalformedReply
from suture.judge.extraction.doctest_examples import RAISED_BY_HELPER
from suture.judge.extraction.prose_literals import is_literal
from suture.models import Reply
from suture.models.structured_output import describe_schema
from suture.project.python_source.parsing import PARSE_FAULTS

MAX_STATED_EXAMPLES = 12
"""Examples in one reply. Chosen by judgement; not measured."""


class StatedExample(BaseModel, frozen=True, title="Example"):
    """An example as a model writes it: the words of the task come first, so that the result follows from them."""

    demand: str = Field(min_length=1, max_length=240, description="the words of the task that demand it")
    call: str = Field(min_length=1, max_length=400, description="one call, such as add(2, 3)")
    expected: str = Field(
        min_length=1,
        max_length=800,
        description="the result as a Python literal, or the name of the exception that the call must raise",
    )
    raises: bool = Field(description="true where the call must raise that exception")


class ExamplesReply(BaseModel, frozen=True, title="Examples"):
    """Examples as a model writes them."""

    examples: list[StatedExample] = Field(
        max_length=MAX_STATED_EXAMPLES, description="[] where the task determines none"
    )


def checks_from_examples(
    examples: Iterable[StatedExample], provenance: Provenance, entry_point: str | None
) -> GeneratedChecks:
    """Return the checks of stated examples, of trust 0; those that are no call with a plain result are dropped.

    Raises:
        MalformedReply: No example is usable.
    """
    programs = [_render_assert(example) for example in examples]
    usable = [program for program in programs if program is not None]
    dropped = Counter({"not_python": len(programs) - len(usable)} if len(usable) < len(programs) else {})
    if not usable:
        raise MalformedReply("the reply holds no example that is a call with a plain result")
    has_exception = any("raised_by(" in program for program in usable)
    code = "\n".join([*([RAISED_BY_HELPER] if has_exception else []), *usable])
    checks = checks_from_reply(Reply(text=f"```python\n{code}\n```"), provenance, entry_point)
    return GeneratedChecks(checks=checks.checks, dropped={**dropped, **checks.dropped})


def _render_assert(example: StatedExample) -> str | None:
    """Return an example as an assert; `None` if it is no call with a plain result."""
    try:
        call = ast.parse(example.call.strip(), mode="eval").body
        expected = ast.parse(example.expected.strip(), mode="eval").body
    except PARSE_FAULTS:
        return None
    if not isinstance(call, ast.Call):
        return None
    if example.raises:
        is_name = isinstance(expected, ast.Name | ast.Attribute)
        name = ast.unparse(expected).rpartition(".")[2]
        return f"assert raised_by(lambda: {ast.unparse(call)}) == {name!r}" if is_name else None
    return f"assert {ast.unparse(call)} == {ast.unparse(expected)}" if is_literal(expected) else None


def draft_example_prompt(
    prompt: Prompt, *, statement: str, unread: Sequence[str], functions: Sequence[str]
) -> PromptDraft:
    """Return the prompt that asks for the calls which unread parts of a statement show.

    Args:
        unread: The parts of the statement that look like examples.
        functions: The functions that the task asks for.
    """
    texts = {
        "task": render_task(statement),
        "functions": ", ".join(f"`{name}`" for name in functions),
        "format": describe_schema(ExamplesReply),
    }
    parts = {"unread": list_part("These parts look like examples", unread)}
    return PromptDraft(prompt=prompt, template="read", texts=texts, parts=parts)
