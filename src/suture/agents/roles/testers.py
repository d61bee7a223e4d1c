"""Roles that write tests.

The spec tester and the property tester write checks for a statement without seeing the code; the adversarial
tester tries to break a candidate. `replies.generated_checks` reads their replies. The project tester writes a
test file for a new project, and the reproducer a test that shows an issue.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pydantic import BaseModel, Field

from suture.agents.prompting.fitting import PromptDraft, PromptPart
from suture.agents.prompting.prompt_files import Prompt
from suture.agents.prompting.prompt_parts import (
    examples_part,
    files_part,
    list_part,
    refused_part,
    render_task,
    render_user_hints,
)
from suture.agents.replies.fenced_blocks import fenced_blocks
from suture.agents.replies.generated_checks import GeneratedChecks, checks_from_reply
from suture.agents.tuning import MAX_REPRODUCER_CHARS, MAX_TEST_FILE_CHARS
from suture.core.records import Language, Provenance, Task
from suture.errors import MalformedReply
from suture.judge.extraction.doctest_examples import RAISED_BY_HELPER
from suture.judge.extraction.literal_calls import is_literal
from suture.models import Reply
from suture.models.structured_output import describe_schema
from suture.project.languages import LANGUAGES, fill_placeholders
from suture.project.python_source.parsing import PARSE_FAULTS, limit_parsing_work, parse_module

GENERATOR_NAME = "seeded_random"
"""The variable with the random generator of a property."""


@dataclass(frozen=True, kw_only=True)
class SpecTestBrief:
    """What the spec tester and the property tester may know.

    Attributes:
        examples: Source of existing tests. They show how the entry point is called, and must not be repeated.
        count: How many tests or properties to ask for. The default is chosen by judgement; not measured.
    """

    statement: str
    entry_point: str | None = None
    examples: str = ""
    count: int = 6


def draft_spec_test_prompt(
    brief: SpecTestBrief, prompt: Prompt, *, is_structured: bool = False
) -> PromptDraft:
    """Return the prompt of the spec or the property tester.

    Args:
        is_structured: Whether the answer is an `ExamplesReply`, which the property tester does not give; if
            not, `checks_from_reply` reads it.
    """
    return _draft_tests(brief, prompt, {}, "the function of the task", is_structured=is_structured)


def _draft_tests(
    brief: SpecTestBrief,
    prompt: Prompt,
    parts: Mapping[str, PromptPart],
    default_name: str,
    *,
    is_structured: bool,
) -> PromptDraft:
    texts = {
        "task": render_task(brief.statement),
        "name": f"`{brief.entry_point}`" if brief.entry_point else default_name,
        "count": str(brief.count),
    }
    parts = {"examples": examples_part(brief.examples), **parts}
    if is_structured:
        texts["format"] = describe_schema(ExamplesReply)
        return PromptDraft(prompt=prompt, template="examples", texts=texts, parts=parts)
    return PromptDraft(prompt=prompt, template="tests", texts=texts, parts=parts)


def properties_from_reply(reply: Reply, entry_point: str | None) -> GeneratedChecks:
    """Return the properties of a reply as checks that draw the same inputs in every run."""
    generated = checks_from_reply(reply, "property", entry_point)
    checks = tuple(replace(check, source=_seed_randomness(check.source)) for check in generated.checks)
    return replace(generated, checks=checks)


def _seed_randomness(source: str) -> str:
    """Return the source with a seeded random generator of its own instead of the shared one.

    The shared generator starts at an arbitrary state, and seeding it would also change the code under test.
    """
    tree = parse_module(source)
    if tree is None or "random" not in source or _creates_generator(tree):
        return source
    body: list[ast.stmt] = []
    for node in tree.body:
        if isinstance(node, ast.Import) and any(alias.name == "random" for alias in node.names):
            names = [alias.asname or "random" for alias in node.names if alias.name == "random"]
            body += [node, *ast.parse("\n".join(f"{name} = {name}.Random(0)" for name in names)).body]
        elif isinstance(node, ast.ImportFrom) and node.module == "random":
            lines = ["import random", f"{GENERATOR_NAME} = random.Random(0)"]
            lines += [f"{a.asname or a.name} = {GENERATOR_NAME}.{a.name}" for a in node.names]
            body += ast.parse("\n".join(lines)).body
        elif not _is_seed_call(node):
            body.append(node)
    return ast.unparse(ast.Module(body, [])) + "\n"


def _creates_generator(tree: ast.Module) -> bool:
    attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    imported = {a.name for node in tree.body if isinstance(node, ast.ImportFrom) for a in node.names}
    return bool((attributes | imported) & {"Random", "SystemRandom"})


def _is_seed_call(node: ast.stmt) -> bool:
    call = node.value if isinstance(node, ast.Expr) else None
    return isinstance(call, ast.Call) and ast.unparse(call.func).rpartition(".")[2] == "seed"


@dataclass(frozen=True, kw_only=True)
class AdversarialBrief(SpecTestBrief):
    """What the adversarial tester needs: besides the task, the candidate's code (path -> text)."""

    files: Mapping[str, str]


def draft_adversarial_prompt(
    brief: AdversarialBrief, prompt: Prompt, *, is_structured: bool = False
) -> PromptDraft:
    """Return the adversarial tester's prompt; for `is_structured` see `draft_spec_test_prompt`."""
    return _draft_tests(
        brief, prompt, {"files": files_part(brief.files)}, "the code", is_structured=is_structured
    )


def project_test_path(language: Language, project_name: str) -> str:
    """Return the path of a new project's test file."""
    return fill_placeholders((LANGUAGES[language].layout.test_file,), project_name, "")[0]


def draft_project_test_prompt(
    prompt: Prompt, *, task: Task, project_name: str, files: Mapping[str, str]
) -> PromptDraft:
    """Return the prompt for one test file for a project that consists of `files` (path -> text)."""
    facts = LANGUAGES[task.language]
    texts = {
        "task": task.statement.strip(),
        "path": project_test_path(task.language, project_name),
        "tester": facts.layout.test_framework,
        "style": facts.layout.style.format(name=project_name),
    }
    parts = {"files": files_part(files, facts.fence)}
    return PromptDraft(prompt=prompt, template="write", texts=texts, parts=parts)


@limit_parsing_work
def tests_from_project_reply(reply: Reply) -> str:
    """Return the test file in a reply: its longest block of code."""
    blocks = [block for block in fenced_blocks(reply.text) if block.may_be_code and block.code.strip()]
    code = max((block.code for block in blocks if block.is_closed), key=len, default="")
    if not code or len(code) > MAX_TEST_FILE_CHARS:
        raise MalformedReply("the reply holds no whole file of tests in a fenced block")
    return code


def draft_reproducer_prompt(
    prompt: Prompt,
    *,
    statement: str,
    path: str,
    files: Mapping[str, str],
    examples: str = "",
    refused: Sequence[str] = (),
    hints: Sequence[str] = (),
) -> PromptDraft:
    """Return the prompt for a test that shows an issue; `test_from_reply` reads the answer.

    Args:
        statement: The issue, in the user's words.
        path: The test file to write, relative to the project root.
        files: Code that the issue may concern, path -> text, the likeliest first.
        examples: A test file of the project, which shows how its code is imported and called.
        refused: Why earlier tests were unusable, the latest last.
        hints: A person's hints about earlier tests.
    """
    texts = {"task": render_task(statement), "path": path, "hints": render_user_hints(hints)}
    parts = {
        "files": files_part(files),
        "examples": examples_part(examples),
        "refused": refused_part(refused),
    }
    return PromptDraft(prompt=prompt, template="test", texts=texts, parts=parts)


@limit_parsing_work
def test_from_reply(reply: Reply) -> str:
    """Return the source of the test file in a reply."""
    blocks = [block for block in fenced_blocks(reply.text) if block.may_be_code and block.is_closed]
    sources = [block.code for block in blocks] or [reply.text]
    source = next(filter(_holds_a_test, sources), None)
    if source is None:
        raise MalformedReply("the reply holds no pytest function")
    if len(source) > MAX_REPRODUCER_CHARS:
        raise MalformedReply(f"the test is longer than {MAX_REPRODUCER_CHARS} characters")
    try:
        source.encode()
    except UnicodeEncodeError as fault:
        raise MalformedReply("the test is no Unicode text") from fault
    return source


test_from_reply.__test__ = False  # type: ignore[attr-defined]  # pytest must not collect it


def _holds_a_test(source: str) -> bool:
    tree = parse_module(source)
    return tree is not None and any(
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test")
        for node in ast.walk(tree)
    )


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
    """Return the checks of stated examples, of trust 0; those that are not a call with a plain result are dropped.

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
    """Return an example as an assert; `None` if it is not a call with a plain result."""
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
