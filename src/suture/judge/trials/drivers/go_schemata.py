"""Writes Go files in which a function has many bodies, one of which an environment variable selects.

This runs inside the sandbox and may use the standard library only.
"""

from __future__ import annotations

import os.path
import re
from pathlib import Path
from typing import Any

SELECTOR = """package {}

import (
\t"os"
\t"strconv"
)

var sutureMutant, _ = strconv.Atoi(os.Getenv("SUTURE_MUTANT"))
"""
SELECTOR_FILE = "suture_mutant.go"
PACKAGE = re.compile(r"^package\s+(\w+)", re.MULTILINE)
SYNTAX_ERROR = "syntax error"
ERROR = re.compile(r"^(?:\./)?([^\s:]+\.go):(\d{1,9})(?::\d+)?: ", re.MULTILINE)
"""Beginning of a compiler's message: its file and line."""

BodyLines = dict[str, list[tuple[int, int, int]]]
"""Path -> (number of a candidate, first line of its body, last line of its body)."""


def write_candidates(jobs: dict[int, dict[str, Any]], texts: dict[str, str], root: Path) -> BodyLines:
    """Write files that hold the bodies of many candidates, and return the lines of each body.

    Args:
        jobs: Number of a candidate -> its path, where the function's body starts and ends, the new body, and
            whether the function returns a value.
    """
    by_path: dict[str, dict[int, list[int]]] = {}
    for number, job in jobs.items():
        by_path.setdefault(job["path"], {}).setdefault(job["start"], []).append(number)
    body_lines: BodyLines = {}
    for path, functions in by_path.items():
        text, body_lines[path] = _with_all_bodies(
            jobs, functions, texts[path].encode("utf-8", "surrogatepass")
        )
        (root / path).write_bytes(text)
        name = PACKAGE.search(texts[path])
        selector = SELECTOR.format(name[1] if name else "main")
        ((root / path).parent / SELECTOR_FILE).write_text(selector, encoding="utf-8")
    return body_lines


def _with_all_bodies(
    jobs: dict[int, dict[str, Any]], functions: dict[int, list[int]], raw: bytes
) -> tuple[bytes, list[tuple[int, int, int]]]:
    """Return a file whose functions have the bodies of all candidates, and the lines of these bodies."""
    output, copied_to = b"", 0
    body_lines: list[tuple[int, int, int]] = []
    for start, numbers in sorted(functions.items()):
        output += raw[copied_to : start + 1] + b"\nswitch sutureMutant {\n"
        copied_to, line = start + 1, output.count(b"\n") + 1
        cases = []
        for number in numbers:
            # No candidate may continue with the original body below. The number 0 is that body, so cases begin at 1.
            leave = 'panic("suture: no return")' if jobs[number]["returns_value"] else "return"
            case = f"case {number + 1}:\n{jobs[number]['body']}\n{leave}\n".encode("utf-8", "surrogatepass")
            cases.append(case)
            body_lines.append((number, line, line + case.count(b"\n") - 1))
            line += case.count(b"\n")
        output += b"".join(cases) + b"}\n"
    return output + raw[copied_to:], body_lines


def find_rejected(compiler_output: str, body_lines: BodyLines) -> set[int]:
    """Return the candidates about which the compiler complains.

    After a syntax error the compiler also rejects valid code, so that only the first syntax error counts.
    """
    rejected: set[int] = set()
    complaints = list(ERROR.finditer(compiler_output))
    syntax_errors = [match for match in complaints if compiler_output.startswith(SYNTAX_ERROR, match.end())]
    if syntax_errors:
        complaints = [min(syntax_errors, key=lambda match: int(match[2]))]
    for match in complaints:
        for number, first, last in body_lines.get(os.path.normpath(match[1]), ()):
            if first <= int(match[2]) <= last:
                rejected.add(number)
    return rejected
