"""Roles that write tests: for a statement, against code, for a project, to reproduce an issue.

Spec and property testers do not see the code. Their prompts' answers are read by `replies.generated_checks`.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from suture.agents.prompting.fitting import PromptDraft, PromptPart
from suture.agents.prompting.prompt_files import Prompt
from suture.agents.prompting.prompt_parts import (
    examples_part,
    files_part,
    refused_part,
    render_task,
    render_user_hints,
)
from suture.agents.replies.fenced_blocks import fenced_blocks
from suture.agents.replies.generated_checks import UNTRIED_TRUST, GeneratedChecks, checks_from_reply
from suture.agents.tuning import MAX_REPRODUCER_CHARS, MAX_TEST_FILE_CHARS
from suture.core.records import Language
from suture.errors import MalformedReply
from suture.models import Reply
from suture.project.languages import LANGUAGES, fill_placeholders
from suture.project.python_source.parsing import limit_parsing_work, parse_module

GENERATOR_NAME = "seeded_random"


@dataclass(frozen=True, kw_only=True)
class SpecTestBrief:
    """What the spec tester and the property tester may know.

    Attributes:
        statement: The task, in words or as a stub.
        entry_point: The function or class to test, if known.
        examples: Source of existing tests: they show how it is called, and must not be repeated.
        count: How many tests or properties to ask for.
    """

    statement: str
    entry_point: str | None = None
    examples: str = ""
    count: int = 6


def draft_spec_test_prompt(brief: SpecTestBrief, prompt: Prompt) -> PromptDraft:
    """Return a tester's prompt; `checks_from_reply` reads the answer."""
    texts = {
        "task": render_task(brief.statement),
        "name": f"`{brief.entry_point}`" if brief.entry_point else "the function of the task",
        "count": str(brief.count),
    }
    parts: dict[str, PromptPart] = {"examples": examples_part(brief.examples)}
    return PromptDraft(prompt=prompt, template="tests", texts=texts, parts=parts)


def properties_from_reply(
    reply: Reply, entry_point: str | None, *, trust: float = UNTRIED_TRUST
) -> GeneratedChecks:
    """Return the properties of a reply as checks with the same inputs each time.

    Args:
        reply: The tester's reply.
        entry_point: What is tested, if known.
        trust: Trust in each check, in [0, 1].

    Raises:
        MalformedReply: No check is usable.
    """
    written = checks_from_reply(reply, "property", entry_point, trust=trust)
    checks = tuple(replace(check, source=_with_own_generator(check.source)) for check in written.checks)
    return replace(written, checks=checks)


def _with_own_generator(source: str) -> str:
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
            drawn = [f"{a.asname or a.name} = {GENERATOR_NAME}.{a.name}" for a in node.names]
            made = ["import random", f"{GENERATOR_NAME} = random.Random(0)", *drawn]
            body += ast.parse("\n".join(made)).body
        elif not _is_seed_call(node):
            body.append(node)
    return ast.unparse(ast.Module(body, [])) + "\n"


def _creates_generator(tree: ast.Module) -> bool:
    made = {part.attr for part in ast.walk(tree) if isinstance(part, ast.Attribute)}
    taken = {a.name for node in tree.body if isinstance(node, ast.ImportFrom) for a in node.names}
    return bool((made | taken) & {"Random", "SystemRandom"})


def _is_seed_call(node: ast.stmt) -> bool:
    call = node.value if isinstance(node, ast.Expr) else None
    return isinstance(call, ast.Call) and ast.unparse(call.func).rpartition(".")[2] == "seed"


@dataclass(frozen=True, kw_only=True)
class AdversarialBrief:
    """What the adversarial tester needs.

    Attributes:
        statement: The task, in words or as a stub.
        files: The candidate's code, path -> text.
        entry_point: The function or class to break, if known.
        examples: Source of existing tests, which must not be repeated.
        count: How many tests to ask for.
    """

    statement: str
    files: Mapping[str, str]
    entry_point: str | None = None
    examples: str = ""
    count: int = 6


def draft_adversarial_prompt(brief: AdversarialBrief, prompt: Prompt) -> PromptDraft:
    """Return the adversarial tester's prompt; `checks_from_reply` reads the answer."""
    texts = {
        "task": render_task(brief.statement),
        "name": f"`{brief.entry_point}`" if brief.entry_point else "the code",
        "count": str(brief.count),
    }
    parts = {"examples": examples_part(brief.examples), "files": files_part(brief.files)}
    return PromptDraft(prompt=prompt, template="tests", texts=texts, parts=parts)


@dataclass(frozen=True, kw_only=True)
class ProjectTestBrief:
    """What the tester of a project needs.

    Attributes:
        statement: The task.
        language: The project's language.
        name: The project's name.
        files: The written code, path -> text, so that the tests know what to call.
    """

    statement: str
    language: Language
    name: str
    files: Mapping[str, str]

    @property
    def path(self) -> str:
        """Return the path of the test file."""
        return fill_placeholders((LANGUAGES[self.language].layout.test_file,), self.name, "")[0]


def draft_project_test_prompt(brief: ProjectTestBrief, prompt: Prompt) -> PromptDraft:
    """Return the prompt for one test file in the usual way of the language."""
    facts = LANGUAGES[brief.language]
    pieces = [f"### {path}\n```{facts.fence}\n{text.strip()}\n```" for path, text in brief.files.items()]
    texts = {
        "task": brief.statement.strip(),
        "path": brief.path,
        "tester": facts.layout.test_framework,
        "style": facts.layout.style.format(name=brief.name),
    }
    return PromptDraft(
        prompt=prompt,
        template="write",
        texts=texts,
        parts={"files": PromptPart(pieces=pieces, separator="\n\n")},
    )


@limit_parsing_work
def tests_from_project_reply(reply: Reply) -> str:
    """Return the test file in a reply: its longest block of code.

    Raises:
        MalformedReply: There is none, or it was cut off.
    """
    blocks = [block for block in fenced_blocks(reply.text) if block.may_be_code and block.code.strip()]
    code = max((block.code for block in blocks if block.is_closed), key=len, default="")
    if not code or len(code) > MAX_TEST_FILE_CHARS:
        raise MalformedReply("the reply holds no whole file of tests in a fenced block")
    return code


@dataclass(frozen=True, kw_only=True)
class ReproducerBrief:
    """What the reproducer needs to write a test that shows the issue.

    Attributes:
        statement: The issue, in the user's words.
        path: The test file to write, relative to the project root.
        files: Code that the issue may concern, path -> text, the likeliest first.
        examples: A test file of the project, which shows how its code is imported and called.
        refused: Why earlier tests were unusable, the latest last.
        hints: A person's hints about earlier tests.
    """

    statement: str
    path: str
    files: Mapping[str, str]
    examples: str = ""
    refused: Sequence[str] = ()
    hints: Sequence[str] = ()


def draft_reproducer_prompt(brief: ReproducerBrief, prompt: Prompt) -> PromptDraft:
    """Return the reproducer's prompt; `test_from_reply` reads the answer."""
    texts = {
        "task": render_task(brief.statement),
        "path": brief.path,
        "hints": render_user_hints(brief.hints),
    }
    parts = {
        "files": files_part(brief.files),
        "examples": examples_part(brief.examples),
        "refused": refused_part(brief.refused),
    }
    return PromptDraft(prompt=prompt, template="test", texts=texts, parts=parts)


@limit_parsing_work
def test_from_reply(reply: Reply) -> str:
    """Return the source of the test file in a reply.

    Raises:
        MalformedReply: There is no pytest function, or it is too long to review.
    """
    blocks = [block for block in fenced_blocks(reply.text) if block.may_be_code and block.is_closed]
    sources = [block.code for block in blocks] or [reply.text]
    found = [source for source in sources if _holds_a_test(source)]
    if not found:
        raise MalformedReply("the reply holds no pytest function")
    if len(found[0]) > MAX_REPRODUCER_CHARS:
        raise MalformedReply(f"the test is longer than {MAX_REPRODUCER_CHARS} characters")
    try:
        found[0].encode()
    except UnicodeEncodeError as fault:
        raise MalformedReply("the test is no Unicode text") from fault
    return found[0]


test_from_reply.__test__ = False  # type: ignore[attr-defined]  # pytest must not collect it


def _holds_a_test(source: str) -> bool:
    tree = parse_module(source)
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return tree is not None and any(
        isinstance(node, functions) and node.name.startswith("test") for node in ast.walk(tree)
    )
