"""What an error is called when its particulars are taken out: two bugs of one kind get the same words."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import Any

from suture.core.records import Counterexample, Task, Verdict
from suture.project.python_source.parsing import parsed
from suture.project.workspace import text_of

MOST_CHARS = 200
MOST_LITERAL_CHARS = 2000
"""Of a value that is read to compare it with another."""
MOST_SHAPE = 24
"""Node kinds that a shape names."""
WRONG = "WrongResult"
"""What a failure without an exception is called: a check wanted another value."""
NO_ERROR = "Failure"
"""What a failure is called of which nothing is known."""

TYPES = frozenset(
    {name for name, value in vars(builtins).items() if isinstance(value, type)}
    | {
        "NoneType",
        "function",
        "method",
        "module",
        "generator",
        "coroutine",
        "dict_keys",
        "Decimal",
        "datetime",
    }
)
"""Quoted words that stay: they say what kind of value it was, not which."""
HEADED = re.compile(
    r"^(?:E\s+)?(?P<type>[A-Za-z_][\w.]*(?:Error|Exception|Warning|Exit|Interrupt|Timeout|Iteration))\b"
)
QUOTED = re.compile(r"'(?:[^'\\\n]|\\.){0,400}'|\"(?:[^\"\\\n]|\\.){0,400}\"|`[^`\n]{0,400}`|‘[^’\n]{0,400}’")
PLAIN = (
    (re.compile(r"\b[a-z][a-z0-9+.-]{1,20}://[^\s'\"]+"), "<path>"),
    (re.compile(r"\b0x[0-9a-fA-F]+\b"), "<address>"),
    (re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b(?=\w*\d)[0-9a-f]{12,}\b"), "<id>"),
    (
        re.compile(
            r"(?:\b[A-Za-z]:)?(?:[\w.~-]*[/\\])+[\w.-]+(?::\d+)*|\b[\w-]+\.(?:py|pyi|js|ts|go|json|toml)\b(?::\d+)*"
        ),
        "<path>",
    ),
    (re.compile(r"(?<![\w<])[-+]?\d[\d_]*(?:\.\d+)?(?:[eE][-+]?\d+)?\b"), "<number>"),
)
LITERAL = re.compile(r"(?<!\w)[\[({](?:[\s,:]|<value>|<number>|<path>|<id>|None|True|False)*[\])}]")


def signature(error: str) -> str:
    """An error without paths, numbers, addresses and quoted values; its type stays.

    Args:
        error: What was raised, as `TypeError: ...`; of a log the last line that names an error.

    Returns:
        One line of at most 200 characters; `Failure` where nothing is said.
    """
    line = _telling_line(error)
    if not line:
        return NO_ERROR
    line = QUOTED.sub(_kept_type, line)
    for pattern, name in PLAIN:
        line = pattern.sub(name, line)
    while (simpler := LITERAL.sub("<value>", line)) != line:
        line = simpler
    return " ".join(line.split())[:MOST_CHARS]


def signature_of(fact: Counterexample) -> str:
    """The signature of a failing check: of what it raised, else of how its value was wrong."""
    if fact.exception:
        return signature(fact.exception)
    if fact.actual or fact.expected:
        return f"{WRONG}: {difference(fact.actual, fact.expected)}"
    return NO_ERROR


def kind_of(sign: str) -> str:
    """The class of error, such as `TypeError`; with the relation where only a value was wrong."""
    return sign if sign.startswith(WRONG) else sign.partition(":")[0]


def difference(got: str, expected: str) -> str:
    """How a value differs from what was wanted, without either of them.

    Args:
        got: A value as source; whatever is none tells nothing.
        expected: Another.
    """
    have, want = _value(got), _value(expected)
    if have is _UNKNOWN or want is _UNKNOWN:
        return "another value"
    if type(have) is not type(want) and not _are_numbers(have, want):
        return f"{type(have).__name__} in place of {type(want).__name__}"
    if isinstance(want, bool):
        return f"{have} in place of {want}"
    if _are_numbers(have, want):
        return f"{type(want).__name__}, {_number_apart(have, want)}"
    if isinstance(want, (str, bytes, list, tuple, dict, set, frozenset)):
        return f"{type(want).__name__}, {_sized_apart(have, want)}"
    return f"another {type(want).__name__}"


def shape_of(source: str, line: int | None) -> str:
    """The kinds of syntax around a line: what encloses its statement, outermost first, then what is in it.

    Args:
        source: Python text; other text has no shape.
        line: From 1.
    """
    tree = parsed(source)
    if tree is None or line is None:
        return ""
    chain: list[ast.AST] = []
    node: ast.AST | None = tree
    while node is not None:
        node = next((child for child in _statements(node) if _spans(child, line)), None)
        if node is not None:
            chain.append(node)
    if not chain:
        return ""
    inner = [type(one).__name__ for one in ast.walk(chain[-1]) if isinstance(one, (ast.expr, ast.operator))]
    names = [type(one).__name__ for one in chain] + list(dict.fromkeys(inner))
    return " ".join(names[:MOST_SHAPE])


def _telling_line(error: str) -> str:
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    headed = [line for line in lines if HEADED.match(line)]
    line = headed[-1] if headed else (lines[0] if lines else "")
    return re.sub(r"^E\s+", "", line)[: 10 * MOST_CHARS]


def _kept_type(match: re.Match[str]) -> str:
    word = match.group()[1:-1]
    return f"'{word}'" if word in TYPES else "<value>"


def _statements(node: ast.AST) -> list[ast.AST]:
    kinds = (ast.stmt, ast.ExceptHandler, ast.match_case)
    return [child for child in ast.iter_child_nodes(node) if isinstance(child, kinds)]


def _spans(node: ast.AST, line: int) -> bool:
    first, last = getattr(node, "lineno", None), getattr(node, "end_lineno", None)
    if first is None and isinstance(node, ast.match_case):
        first, last = node.pattern.lineno, node.body[-1].end_lineno
    return first is not None and last is not None and first <= line <= last


class _Unknown:
    """A text that is no value."""


_UNKNOWN = _Unknown()


def _value(text: str) -> Any:
    if len(text) > MOST_LITERAL_CHARS:
        return _UNKNOWN
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return _UNKNOWN


def _are_numbers(one: Any, two: Any) -> bool:
    return all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in (one, two))


def _number_apart(have: float, want: float) -> str:
    if have == -want:
        return "of the other sign"
    if abs(have - want) == 1:
        return "one too many" if have > want else "one too few"
    return "too large" if have > want else "too small"


def _sized_apart(have: Sized, want: Sized) -> str:
    if len(have) != len(want):
        if not len(have):
            return "empty"
        return "too long" if len(have) > len(want) else "too short"
    if isinstance(have, (list, tuple, str)) and isinstance(want, (list, tuple, str)):
        if sorted(map(repr, have)) == sorted(map(repr, want)):
            return "in another order"
        apart = sum(one != two for one, two in zip(have, want, strict=True))
        return "one item differs" if apart == 1 else "items differ"
    return "items differ"


MOST_CODE_CHARS = 1200
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
        f"got {fact.actual}" if fact.actual else "",
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
