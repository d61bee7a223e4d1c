"""What a failure is recalled by: its signature, the failing function, syntax and words around it."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from suture.core.records import Counterexample, Task, Verdict
from suture.project.python_source.parsing import parsed
from suture.project.workspace import text_of
from suture.storage.memory.signature import NO_ERROR, shape_of, signature, signature_of

MOST_CODE_CHARS = 1200
MOST_SHAPE = 24
CALLED = re.compile(r"([A-Za-z_]\w*)\s*\(")


@dataclass(frozen=True, kw_only=True)
class FailureClue:
    """One kind of failure of some code.

    Attributes:
        signature: See `memory.signature.signature_of`.
        function: The function that fails, where it is known.
        shape: Kinds of syntax in it.
        fact: What was called, wanted and got; empty where nothing is known of that.
        searched: All words that it is found by.
    """

    signature: str
    function: str = ""
    shape: str = ""
    fact: str = ""
    searched: str = ""

    @property
    def meaning(self) -> str:
        """What its vector is made of: see `meaning_of`."""
        return meaning_of(self.signature, self.shape, self.searched)


def meaning_of(sign: str, shape: str, searched: str) -> str:
    """The text that the vector of a clue, or of a memory, is made of.

    Of a failure that is its signature and the shape of its code, without the code's own names: with these
    recall was worse (docs/results.md). What has no signature has all its words.
    """
    return f"{sign}\n{shape}" if sign else searched


def clues_of_failure(verdict: Verdict, files: Mapping[str, bytes], task: Task) -> list[FailureClue]:
    """The kinds of failures in a verdict, each once, the most frequent first.

    Args:
        verdict: On the files.
        files: Path -> content.
        task: What is wanted; its statement is among the words.
    """
    facts = [one.counterexample for one in verdict.outcomes if one.counterexample and not one.passed]
    if not facts:
        sign = signature(verdict.output) if verdict.failed else NO_ERROR
        words = f"{sign}\n{task.statement}\n{verdict.output[-MOST_CODE_CHARS:]}"
        return [FailureClue(signature=sign, searched=words)] if verdict.failed else []
    by_sign: dict[str, list[Counterexample]] = {}
    for fact in facts:
        by_sign.setdefault(signature_of(fact), []).append(fact)
    ordered = sorted(by_sign.items(), key=lambda pair: -len(pair[1]))
    texts = {path: text_of(content) for path, content in files.items() if path.endswith(".py")}
    return [_clue(sign, group, texts, task) for sign, group in ordered]


def clue_of_task(task: Task) -> FailureClue:
    """What a task is recalled by whose code is not there yet."""
    return FailureClue(signature="", searched=f"{task.entry_point or ''} {task.statement}")


def _clue(sign: str, facts: Sequence[Counterexample], texts: Mapping[str, str], task: Task) -> FailureClue:
    fact = next((one for one in facts if one.file and one.line), facts[0])
    source, shape, name = "", "", ""
    if fact.file in texts and fact.line:
        shape = shape_of(texts[fact.file], fact.line)
        name, source = _enclosing(texts[fact.file], fact.line)
    if not source:
        name, source = _called(fact.call or fact.check_id, texts)
        shape = _kinds_in(source)
    told = [
        fact.call,
        f"expected {fact.expected}" if fact.expected else "",
        f"got {fact.got}" if fact.got else "",
    ]
    said = "; ".join(part for part in told if part) or fact.exception
    words = f"{sign}\n{shape}\n{name}\n{task.statement}\n{source[:MOST_CODE_CHARS]}"
    return FailureClue(
        signature=sign, function=name, shape=shape, fact=said[:MOST_CODE_CHARS], searched=words
    )


def _enclosing(text: str, line: int) -> tuple[str, str]:
    """The innermost function around a line: its name and its text."""
    tree = parsed(text)
    spans = [
        node
        for node in (ast.walk(tree) if tree else ())
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and node.lineno <= line <= (node.end_lineno or 0)
    ]
    if not spans:
        return "", ""
    inner = max(spans, key=lambda node: node.lineno)
    return inner.name, ast.get_source_segment(text, inner) or ""


def _called(call: str, texts: Mapping[str, str]) -> tuple[str, str]:
    """The first function of the project that a call, or a test's name, names."""
    names = [*CALLED.findall(call), *sorted(re.findall(r"[A-Za-z_]\w*", call), key=len, reverse=True)]
    for name in dict.fromkeys(names):
        for path in sorted(texts):
            if "test" in path:
                continue
            tree = parsed(texts[path])
            for node in ast.walk(tree) if tree else ():
                if (
                    isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
                    and node.name == name
                ):
                    return name, ast.get_source_segment(texts[path], node) or ""
    return "", ""


def _kinds_in(source: str) -> str:
    tree = parsed(source)
    kinds = (ast.stmt, ast.expr, ast.operator, ast.cmpop, ast.boolop)
    named = [type(node).__name__ for node in ast.walk(tree) if isinstance(node, kinds)] if tree else []
    return " ".join(dict.fromkeys(named[:200]))[: MOST_SHAPE * 12]
