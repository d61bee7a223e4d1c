"""Program for the mutation tool's own interpreter: list the mutants of Go files, with their text.

A job with paths relative to the working folder is read from stdin; an answer is written to stdout, both as JSON.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any

from universalmutator import mutator

RULES = ["universal.rules", "c_like.rules", "go.rules"]


def list_file_mutants(file: str) -> list[dict[str, Any]]:
    """Return the mutants of one file, in the tool's order."""
    lines = Path(file).read_text("utf-8").splitlines(keepends=True)
    with contextlib.redirect_stdout(io.StringIO()):
        mutants = mutator.mutants_regexp(lines, RULES, ignorePatterns=[], ignoreStringOnly=True)
    seen: dict[str, int] = {}
    found = []
    for number, new, rule, *_ in mutants:
        operator = " ".join(str(rule[0] if isinstance(rule, tuple) else rule).split())
        occurrence = seen.get(operator, 0)
        seen[operator] = occurrence + 1
        text = "".join([*lines[: number - 1], new, *lines[number:]])
        found.append(
            {"file": file, "operator": operator, "occurrence": occurrence, "line": number, "text": text}
        )
    return found


if __name__ == "__main__":
    json.dump([one for file in json.load(sys.stdin) for one in list_file_mutants(file)], sys.stdout)
