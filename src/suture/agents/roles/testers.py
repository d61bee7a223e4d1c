"""The testers that see no code: one writes tests of the task's words, one what holds for every input.

The inputs of the latter are drawn with a fixed seed.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from suture.agents.prompting.fitting import Draft, PromptPart
from suture.agents.prompting.prompt_files import Prompt
from suture.agents.prompting.prompt_parts import (
    examples_part,
    files_part,
    hints_text,
    refused_part,
    task_text,
)
from suture.agents.replies.fenced_blocks import fenced_blocks
from suture.agents.replies.generated_checks import UNTRIED, WrittenChecks, checks_from_reply
from suture.core.records import Language
from suture.errors import MalformedReply
from suture.models import Reply
from suture.project.languages import LANGUAGES, filled
from suture.project.python_source.parsing import bounded, parsed

GENERATOR = "seeded_random"
ASKED_FOR = 3
"""How many properties."""


@dataclass(frozen=True, kw_only=True)
class SpecTestBrief:
    """What the spec tester may know, and the property tester.

    Attributes:
        statement: The task, in words or as a stub.
        entry_point: The function or class to test, where known.
        examples: Source of tests that exist already: they show how it is called, and are not to be
            repeated.
        count: How many tests, or properties, to ask for.
    """

    statement: str
    entry_point: str | None = None
    examples: str = ""
    count: int = 6


def spec_test_draft(brief: SpecTestBrief, prompt: Prompt) -> Draft:
    """A tester's prompt, before it is cut to size; the answer is for `checks_from_reply`."""
    texts = {
        "task": task_text(brief.statement),
        "name": f"`{brief.entry_point}`" if brief.entry_point else "the function of the task",
        "count": str(brief.count),
    }
    parts: dict[str, PromptPart] = {"examples": examples_part(brief.examples)}
    return Draft(prompt=prompt, template="tests", texts=texts, parts=parts)


def properties_from_reply(reply: Reply, entry_point: str | None, *, trust: float = UNTRIED) -> WrittenChecks:
    """The properties of a reply, as checks that give the same inputs each time.

    Args:
        reply: What the tester wrote.
        entry_point: What is under test, where known.
        trust: How far each check is believed, in [0, 1].

    Raises:
        MalformedReply: No check can be used.
    """
    written = checks_from_reply(reply, "property", entry_point, trust=trust)
    checks = tuple(replace(check, source=_seeded(check.source)) for check in written.checks)
    return replace(written, checks=checks)


def _seeded(source: str) -> str:
    """A program that draws from a generator of its own in the place of the one that all share.

    That one begins anywhere; and a test that seeds it could not be judged apart from the code.
    """
    tree = parsed(source)
    if tree is None or "random" not in source or _makes_its_own(tree):
        return source
    body: list[ast.stmt] = []
    for node in tree.body:
        if isinstance(node, ast.Import) and any(alias.name == "random" for alias in node.names):
            names = [alias.asname or "random" for alias in node.names if alias.name == "random"]
            body += [node, *ast.parse("\n".join(f"{name} = {name}.Random(0)" for name in names)).body]
        elif isinstance(node, ast.ImportFrom) and node.module == "random":
            drawn = [f"{a.asname or a.name} = {GENERATOR}.{a.name}" for a in node.names]
            made = ["import random", f"{GENERATOR} = random.Random(0)", *drawn]
            body += ast.parse("\n".join(made)).body
        elif not _seeds(node):
            body.append(node)
    return ast.unparse(ast.Module(body, [])) + "\n"


def _makes_its_own(tree: ast.Module) -> bool:
    made = {part.attr for part in ast.walk(tree) if isinstance(part, ast.Attribute)}
    taken = {a.name for node in tree.body if isinstance(node, ast.ImportFrom) for a in node.names}
    return bool((made | taken) & {"Random", "SystemRandom"})


def _seeds(node: ast.stmt) -> bool:
    call = node.value if isinstance(node, ast.Expr) else None
    return isinstance(call, ast.Call) and ast.unparse(call.func).rpartition(".")[2] == "seed"


@dataclass(frozen=True, kw_only=True)
class AdversarialBrief:
    """What the adversarial tester needs.

    Attributes:
        statement: The task, in words or as a stub.
        files: The candidate's code, path -> text.
        entry_point: The function or class to break, where known.
        examples: Source of tests that exist already, and are not to be repeated.
        count: How many tests to ask for.
    """

    statement: str
    files: Mapping[str, str]
    entry_point: str | None = None
    examples: str = ""
    count: int = 6


def adversarial_draft(brief: AdversarialBrief, prompt: Prompt) -> Draft:
    """The adversarial tester's prompt, before it is cut to size; the answer is for `checks_from_reply`."""
    texts = {
        "task": task_text(brief.statement),
        "name": f"`{brief.entry_point}`" if brief.entry_point else "the code",
        "count": str(brief.count),
    }
    parts = {"examples": examples_part(brief.examples), "files": files_part(brief.files)}
    return Draft(prompt=prompt, template="tests", texts=texts, parts=parts)


LONGEST_FILE = 100_000


@dataclass(frozen=True, kw_only=True)
class ProjectTestBrief:
    """What the tester needs.

    Attributes:
        statement: The task.
        language: What the project is written in.
        name: The project's.
        files: What is written, path -> text: only so can a test know what to call.
    """

    statement: str
    language: Language
    name: str
    files: Mapping[str, str]

    @property
    def path(self) -> str:
        """Where the tests go."""
        return filled((LANGUAGES[self.language].layout.test_file,), self.name, "")[0]


def project_test_draft(brief: ProjectTestBrief, prompt: Prompt) -> Draft:
    """The question, before it is cut to the room there is."""
    facts = LANGUAGES[brief.language]
    pieces = [f"### {path}\n```{facts.fence}\n{text.strip()}\n```" for path, text in brief.files.items()]
    texts = {
        "task": brief.statement.strip(),
        "path": brief.path,
        "tester": facts.layout.tester,
        "style": facts.layout.style.format(name=brief.name),
    }
    return Draft(
        prompt=prompt, template="write", texts=texts, parts={"files": PromptPart(pieces=pieces, joint="\n\n")}
    )


@bounded
def tests_from_project_reply(reply: Reply) -> str:
    """The one file of tests in a reply: its longest block of code.

    Raises:
        MalformedReply: There is none, or it was cut short.
    """
    blocks = [block for block in fenced_blocks(reply.text) if block.may_be_code and block.code.strip()]
    code = max((block.code for block in blocks if block.closed), key=len, default="")
    if not code or len(code) > LONGEST_FILE:
        raise MalformedReply("the reply holds no whole file of tests in a fenced block")
    return code


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
