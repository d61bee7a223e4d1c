"""The testers that see no code: one writes tests of the task's words, one what holds for every input.

The inputs of the latter are drawn with a fixed seed.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace

from suture.agents.prompting.fitting import Draft, PromptPart
from suture.agents.prompting.prompt_files import Prompt
from suture.agents.prompting.prompt_parts import examples_part, task_text
from suture.agents.testers.written_checks import UNTRIED, WrittenChecks, checks_from_reply
from suture.models import Reply
from suture.project.python_source.parsing import parsed

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
