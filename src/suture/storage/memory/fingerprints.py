"""Fingerprints of failures: the error without its particulars, and the code around it, for recall."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import Any

from suture.core.records import Counterexample, Task, Verdict
from suture.project.python_source.parsing import parse_module
from suture.project.workspace import decode_text
from suture.storage.tuning import MAX_CODE_CHARS, MAX_LITERAL_CHARS, MAX_SHAPE_NODES, MAX_SIGNATURE_CHARS

WRONG_RESULT = "WrongResult"
"""Error class of a failure without an exception: a check expected another value."""
NO_ERROR = "Failure"
"""Error class of a failure about which nothing is known."""

KEPT_TYPE_NAMES = frozenset(
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
"""Quoted words that are kept, because they name the kind of a value and not the value."""
ERROR_LINE = re.compile(
    r"^(?:E\s+)?(?P<type>[A-Za-z_][\w.]*(?:Error|Exception|Warning|Exit|Interrupt|Timeout|Iteration))\b"
)
QUOTED = re.compile(r"'(?:[^'\\\n]|\\.){0,400}'|\"(?:[^\"\\\n]|\\.){0,400}\"|`[^`\n]{0,400}`|‘[^’\n]{0,400}’")
REPLACEMENTS = (
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


def error_signature(error: str) -> str:
    """Return an error without paths, numbers, addresses and quoted values; its type stays.

    Args:
        error: What was raised, as `TypeError: ...`; of a log, the last line that names an error.

    Returns:
        One line of at most 200 characters; `Failure` if the text is empty.
    """
    line = _error_line(error)
    if not line:
        return NO_ERROR
    line = QUOTED.sub(_replace_quoted, line)
    for pattern, name in REPLACEMENTS:
        line = pattern.sub(name, line)
    while (simpler := LITERAL.sub("<value>", line)) != line:
        line = simpler
    return " ".join(line.split())[:MAX_SIGNATURE_CHARS]


def counterexample_signature(fact: Counterexample) -> str:
    """Return the signature of a failing check: of its exception, else of how its value is wrong."""
    if fact.exception:
        return error_signature(fact.exception)
    if fact.actual or fact.expected:
        return f"{WRONG_RESULT}: {describe_difference(fact.actual, fact.expected)}"
    return NO_ERROR


def error_class(signature: str) -> str:
    """Return the error's class, such as `TypeError`; for wrong values the whole signature."""
    return signature if signature.startswith(WRONG_RESULT) else signature.partition(":")[0]


def describe_difference(got: str, expected: str) -> str:
    """Describe how a value differs from the expected one without naming either.

    Args:
        got: The actual value as source; a text that is not a literal tells nothing.
        expected: The expected value as source.
    """
    have, want = _parse_literal(got), _parse_literal(expected)
    if have is _NO_LITERAL or want is _NO_LITERAL:
        return "another value"
    if type(have) is not type(want) and not _are_numbers(have, want):
        return f"{type(have).__name__} in place of {type(want).__name__}"
    if isinstance(want, bool):
        return f"{have} in place of {want}"
    if _are_numbers(have, want):
        return f"{type(want).__name__}, {_describe_number_difference(have, want)}"
    if isinstance(want, (str, bytes, list, tuple, dict, set, frozenset)):
        return f"{type(want).__name__}, {_describe_size_difference(have, want)}"
    return f"another {type(want).__name__}"


def syntax_shape(source: str, line: int | None) -> str:
    """Return the syntax node kinds around a line: the enclosing statements, then what is in them.

    Args:
        source: Python text; other text has no shape.
        line: The line's number, from 1.
    """
    tree = parse_module(source)
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
    return " ".join(names[:MAX_SHAPE_NODES])


def _error_line(error: str) -> str:
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    headed = [line for line in lines if ERROR_LINE.match(line)]
    line = headed[-1] if headed else (lines[0] if lines else "")
    return re.sub(r"^E\s+", "", line)[: 10 * MAX_SIGNATURE_CHARS]


def _replace_quoted(match: re.Match[str]) -> str:
    word = match.group()[1:-1]
    return f"'{word}'" if word in KEPT_TYPE_NAMES else "<value>"


def _statements(node: ast.AST) -> list[ast.AST]:
    kinds = (ast.stmt, ast.ExceptHandler, ast.match_case)
    return [child for child in ast.iter_child_nodes(node) if isinstance(child, kinds)]


def _spans(node: ast.AST, line: int) -> bool:
    first, last = getattr(node, "lineno", None), getattr(node, "end_lineno", None)
    if first is None and isinstance(node, ast.match_case):
        first, last = node.pattern.lineno, node.body[-1].end_lineno
    return first is not None and last is not None and first <= line <= last


class _NoLiteral:
    """A text that is not a literal."""


_NO_LITERAL = _NoLiteral()


def _parse_literal(text: str) -> Any:
    if len(text) > MAX_LITERAL_CHARS:
        return _NO_LITERAL
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return _NO_LITERAL


def _are_numbers(one: Any, two: Any) -> bool:
    return all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in (one, two))


def _describe_number_difference(have: float, want: float) -> str:
    if have == -want:
        return "of the other sign"
    if abs(have - want) == 1:
        return "one too many" if have > want else "one too few"
    return "too large" if have > want else "too small"


def _describe_size_difference(have: Sized, want: Sized) -> str:
    if len(have) != len(want):
        if not len(have):
            return "empty"
        return "too long" if len(have) > len(want) else "too short"
    if isinstance(have, (list, tuple, str)) and isinstance(want, (list, tuple, str)):
        if sorted(map(repr, have)) == sorted(map(repr, want)):
            return "in another order"
        differing = sum(one != two for one, two in zip(have, want, strict=True))
        return "one item differs" if differing == 1 else "items differ"
    return "items differ"


CALLED = re.compile(r"([A-Za-z_]\w*)\s*\(")


@dataclass(frozen=True, kw_only=True)
class FailureFingerprint:
    """One kind of failure of some code.

    Attributes:
        signature: See `counterexample_signature`.
        function: The failing function, if known.
        shape: Kinds of syntax nodes in it.
        fact: The call, the expected and the actual value; empty if unknown.
        search_text: All words that it is found by.
    """

    signature: str
    function: str = ""
    shape: str = ""
    fact: str = ""
    search_text: str = ""

    @property
    def embedding_text(self) -> str:
        """Return the text that its vector is computed from."""
        return embedding_text(self.signature, self.shape, self.search_text)


def embedding_text(signature: str, shape: str, search_text: str) -> str:
    """Return the text that the vector of a fingerprint or of an item is computed from.

    For a failure that is its signature and the shape of its code without identifiers: recall was worse with
    them (docs/results.md). Without a signature it is the whole search text.
    """
    return f"{signature}\n{shape}" if signature else search_text


def fingerprint_failures(
    verdict: Verdict, files: Mapping[str, bytes], task: Task
) -> list[FailureFingerprint]:
    """Return the kinds of failures in a verdict, each once, the most frequent first.

    Args:
        verdict: The verdict on the files.
        files: Path -> content.
        task: The task; its statement is part of the search text.
    """
    facts = [one.counterexample for one in verdict.outcomes if one.counterexample and not one.passed]
    if not facts:
        signature = error_signature(verdict.output) if verdict.failed else NO_ERROR
        words = f"{signature}\n{task.statement}\n{verdict.output[-MAX_CODE_CHARS:]}"
        return [FailureFingerprint(signature=signature, search_text=words)] if verdict.failed else []
    by_signature: dict[str, list[Counterexample]] = {}
    for fact in facts:
        by_signature.setdefault(counterexample_signature(fact), []).append(fact)
    ordered = sorted(by_signature.items(), key=lambda pair: -len(pair[1]))
    texts = {path: decode_text(content) for path, content in files.items() if path.endswith(".py")}
    return [_fingerprint(signature, group, texts, task) for signature, group in ordered]


def fingerprint_task(task: Task) -> FailureFingerprint:
    """Return the fingerprint of a task whose code does not exist yet."""
    return FailureFingerprint(signature="", search_text=f"{task.entry_point or ''} {task.statement}")


def _fingerprint(
    signature: str, facts: Sequence[Counterexample], texts: Mapping[str, str], task: Task
) -> FailureFingerprint:
    fact = next((one for one in facts if one.file and one.line), facts[0])
    source, shape, name = "", "", ""
    if fact.file in texts and fact.line:
        shape = syntax_shape(texts[fact.file], fact.line)
        name, source = _enclosing(texts[fact.file], fact.line)
    if not source:
        name, source = _called(fact.call or fact.check_id, texts)
        shape = _node_kinds(source)
    facts_text = [
        fact.call,
        f"expected {fact.expected}" if fact.expected else "",
        f"got {fact.actual}" if fact.actual else "",
    ]
    fact_text = "; ".join(part for part in facts_text if part) or fact.exception
    words = f"{signature}\n{shape}\n{name}\n{task.statement}\n{source[:MAX_CODE_CHARS]}"
    return FailureFingerprint(
        signature=signature, function=name, shape=shape, fact=fact_text[:MAX_CODE_CHARS], search_text=words
    )


def _enclosing(text: str, line: int) -> tuple[str, str]:
    """Return the name and source of the innermost function around a line."""
    tree = parse_module(text)
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
    """Return the name and source of the first project function that a call or a test's name mentions."""
    names = [*CALLED.findall(call), *sorted(re.findall(r"[A-Za-z_]\w*", call), key=len, reverse=True)]
    for name in dict.fromkeys(names):
        for path in sorted(texts):
            if "test" in path:
                continue
            tree = parse_module(texts[path])
            for node in ast.walk(tree) if tree else ():
                if (
                    isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
                    and node.name == name
                ):
                    return name, ast.get_source_segment(texts[path], node) or ""
    return "", ""


def _node_kinds(source: str) -> str:
    tree = parse_module(source)
    kinds = (ast.stmt, ast.expr, ast.operator, ast.cmpop, ast.boolop)
    named = [type(node).__name__ for node in ast.walk(tree) if isinstance(node, kinds)] if tree else []
    return " ".join(dict.fromkeys(named[:200]))[: MAX_SHAPE_NODES * 12]
