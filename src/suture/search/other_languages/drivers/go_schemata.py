"""Go files in which a function has many bodies, of which a variable of the environment picks one."""

from __future__ import annotations

import os.path
import re
from pathlib import Path
from typing import Any

PICK = """package {}

import (
\t"os"
\t"strconv"
)

var sutureMutant, _ = strconv.Atoi(os.Getenv("SUTURE_MUTANT"))
"""
PICK_FILE = "suture_mutant.go"
PACKAGE = re.compile(r"^package\s+(\w+)", re.MULTILINE)
UNREAD = "syntax error"
ERROR = re.compile(r"^(?:\./)?([^\s:]+\.go):(\d+)(?::\d+)?: ", re.MULTILINE)


Places = dict[str, list[tuple[int, int, int]]]


def lay(jobs: dict[int, dict[str, Any]], texts: dict[str, str], root: Path) -> Places:
    """Write the files of some candidates.

    Args:
        jobs: Number of a candidate -> path, where the function's body lies, what it is, whether it answers.
        texts: Path -> the file as it is.
        root: The project.

    Returns:
        Path -> number of a candidate, and the first and the last line of its body in the file.
    """
    by_path: dict[str, dict[int, list[int]]] = {}
    for number, job in jobs.items():
        by_path.setdefault(job["path"], {}).setdefault(job["start"], []).append(number)
    places: Places = {}
    for path, functions in by_path.items():
        text, places[path] = _many(jobs, functions, texts[path].encode("utf-8", "surrogatepass"))
        (root / path).write_bytes(text)
        name = PACKAGE.search(texts[path])
        pick = PICK.format(name[1] if name else "main")
        ((root / path).parent / PICK_FILE).write_text(pick, encoding="utf-8")
    return places


def _many(
    jobs: dict[int, dict[str, Any]], functions: dict[int, list[int]], raw: bytes
) -> tuple[bytes, list[tuple[int, int, int]]]:
    """A file whose functions have all their bodies, by the offset of the one that is there."""
    made, at = b"", 0
    places: list[tuple[int, int, int]] = []
    for start, numbers in sorted(functions.items()):
        made += raw[at : start + 1] + b"\nswitch sutureMutant {\n"
        at, line = start + 1, made.count(b"\n") + 1
        parts = []
        for number in numbers:
            leave = 'panic("suture: no return")' if jobs[number]["answers"] else "return"
            part = f"case {number + 1}:\n{jobs[number]['body']}\n{leave}\n".encode("utf-8", "surrogatepass")
            parts.append(part)
            places.append((number, line, line + part.count(b"\n") - 1))
            line += part.count(b"\n")
        made += b"".join(parts) + b"}\n"
    return made + raw[at:], places


def blamed(said: str, places: Places) -> set[int]:
    """The candidates about which a compiler complains; of what it cannot read, the first alone.

    Behind that, it takes sound code for unsound.
    """
    found: set[int] = set()
    complaints = list(ERROR.finditer(said))
    unread = [match for match in complaints if said.startswith(UNREAD, match.end())]
    if unread:
        complaints = [min(unread, key=lambda match: int(match[2]))]
    for match in complaints:
        for number, first, last in places.get(os.path.normpath(match[1]), ()):
            if first <= int(match[2]) <= last:
                found.add(number)
    return found
