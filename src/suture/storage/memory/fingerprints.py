"""Fingerprints of failures: the error without its particulars, and the code around it, for recall."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Mapping, Sequence
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
"""Pairs `(pattern, placeholder)`, applied in this order."""
LITERAL = re.compile(r"(?<!\w)[\[({](?:[\s,:]|<value>|<number>|<path>|<id>|None|True|False)*[\])}]")
"""A list, tuple, set or dictionary whose members are placeholders; repeated use replaces nested ones."""


def error_signature(error: str) -> str:
    """Return one line: an error without paths, numbers, addresses and quoted values; its type stays.

    The error is what was raised, as `TypeError: ...`, or a log. Of a log, the last line that names an error is
    used, else the first line. An empty string gives `Failure`.
    """
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    if not lines:
        return NO_ERROR
    error_lines = [line for line in lines if ERROR_LINE.match(line)]
    line = error_lines[-1] if error_lines else lines[0]
    # The substitutions shorten the line, so more of it is kept here than in the signature. The factor is chosen
    # by judgement; not measured.
    line = re.sub(r"^E\s+", "", line)[: 10 * MAX_SIGNATURE_CHARS]
    line = QUOTED.sub(_replace_quoted, line)
    for pattern, placeholder in REPLACEMENTS:
        line = pattern.sub(placeholder, line)
    while (simpler_line := LITERAL.sub("<value>", line)) != line:  # nested literals, from the inside
        line = simpler_line
    return " ".join(line.split())[:MAX_SIGNATURE_CHARS]


def counterexample_signature(counterexample: Counterexample) -> str:
    """Return the signature of a failing check: of its exception, else of how its value is wrong."""
    if counterexample.exception:
        return error_signature(counterexample.exception)
    if counterexample.actual or counterexample.expected:
        return f"{WRONG_RESULT}: {describe_difference(counterexample.actual, counterexample.expected)}"
    return NO_ERROR


def error_class(signature: str) -> str:
    """Return the error's class, such as `TypeError`; for wrong values the whole signature."""
    return signature if signature.startswith(WRONG_RESULT) else signature.partition(":")[0]


def describe_difference(actual_source: str, expected_source: str) -> str:
    """Describe by their types how a value differs from the expected one.

    Both are given as source; nothing is known about source that is not a literal.
    """
    try:
        actual, expected = _parse_literal(actual_source), _parse_literal(expected_source)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return "another value"
    if type(actual) is not type(expected):
        return f"{type(actual).__name__} in place of {type(expected).__name__}"
    return f"another {type(expected).__name__}"


def _replace_quoted(match: re.Match[str]) -> str:
    word = match.group()[1:-1]
    return f"'{word}'" if word in KEPT_TYPE_NAMES else "<value>"


def _parse_literal(source: str) -> Any:
    if len(source) > MAX_LITERAL_CHARS:
        raise ValueError("too long to compare")
    return ast.literal_eval(source.strip())


CALLED_NAME = re.compile(r"([A-Za-z_]\w*)\s*\(")


@dataclass(frozen=True, kw_only=True)
class FailureFingerprint:
    """One kind of failure of some code, described so that similar failures resemble each other.

    Attributes:
        signature: See `counterexample_signature`.
        function: The failing function, if known.
        shape: Kinds of syntax nodes in it.
        counterexample: The call, the expected and the actual value; empty if unknown.
        search_text: The error, its code and the task: what lessons are compared with.
    """

    signature: str
    function: str = ""
    shape: str = ""
    counterexample: str = ""
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
    """Return the kinds of failures in the verdict on some files, each once, the most frequent first."""
    by_signature: dict[str, list[Counterexample]] = {}
    for outcome in verdict.outcomes:
        if outcome.counterexample and not outcome.passed:
            signature = counterexample_signature(outcome.counterexample)
            by_signature.setdefault(signature, []).append(outcome.counterexample)
    if not by_signature and verdict.failed:
        signature = error_signature(verdict.output)
        search_text = f"{signature}\n{task.statement}\n{verdict.output[-MAX_CODE_CHARS:]}"
        return [FailureFingerprint(signature=signature, search_text=search_text)]
    most_frequent = sorted(by_signature.items(), key=lambda pair: -len(pair[1]))
    texts = {path: decode_text(content) for path, content in files.items() if path.endswith(".py")}
    return [_make_fingerprint(signature, group, texts, task) for signature, group in most_frequent]


def fingerprint_task(task: Task) -> FailureFingerprint:
    """Return the fingerprint of a task whose code does not exist yet."""
    return FailureFingerprint(signature="", search_text=f"{task.entry_point or ''} {task.statement}")


def _make_fingerprint(
    signature: str, counterexamples: Sequence[Counterexample], texts: Mapping[str, str], task: Task
) -> FailureFingerprint:
    # One with a location comes first, because it says more.
    located = (example for example in counterexamples if example.file and example.line)
    example = next(located, counterexamples[0])
    name, source = "", ""
    if example.file in texts and example.line:
        name, source = _find_enclosing_function(texts[example.file], example.line)
    if not source:
        name, source = _find_called_function(example.call or example.check_id, texts)
    shape = _list_node_kinds(source)
    parts = [
        example.call,
        f"expected {example.expected}" if example.expected else "",
        f"got {example.actual}" if example.actual else "",
    ]
    text = "; ".join(part for part in parts if part) or example.exception
    return FailureFingerprint(
        signature=signature,
        function=name,
        shape=shape,
        counterexample=text[:MAX_CODE_CHARS],
        search_text=f"{signature}\n{shape}\n{name}\n{task.statement}\n{source[:MAX_CODE_CHARS]}",
    )


def _find_enclosing_function(text: str, line: int) -> tuple[str, str]:
    """Return `(name, source)` of the innermost function around a line; both are empty if there is none."""
    tree = parse_module(text)
    functions = [
        node
        for node in (ast.walk(tree) if tree else ())
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and node.lineno <= line <= (node.end_lineno or 0)
    ]
    if not functions:
        return "", ""
    innermost = max(functions, key=lambda node: node.lineno)
    return innermost.name, ast.get_source_segment(text, innermost) or ""


def _find_called_function(call: str, texts: Mapping[str, str]) -> tuple[str, str]:
    """Return `(name, source)` of the first function or class of the project that a call or test id mentions.

    Called names come first, then all words of the text, the longest first.
    """
    words = sorted(re.findall(r"[A-Za-z_]\w*", call), key=len, reverse=True)
    for name in dict.fromkeys([*CALLED_NAME.findall(call), *words]):
        for path in sorted(texts):
            if "test" in path:  # taken for a test, which calls the function and is not at fault
                continue
            tree = parse_module(texts[path])
            for node in ast.walk(tree) if tree else ():
                if (
                    isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
                    and node.name == name
                ):
                    return name, ast.get_source_segment(texts[path], node) or ""
    return "", ""


def _list_node_kinds(source: str) -> str:
    """Return the syntax node kinds of a function, which stand for its shape."""
    tree = parse_module(source)
    classes = (ast.stmt, ast.expr, ast.operator, ast.cmpop, ast.boolop)
    kinds = [type(node).__name__ for node in ast.walk(tree) if isinstance(node, classes)] if tree else []
    # Some 12 characters for each kind. Both numbers are chosen by judgement; not measured.
    return " ".join(dict.fromkeys(kinds[:200]))[: MAX_SHAPE_NODES * 12]
