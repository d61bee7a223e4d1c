"""Program for the mutation tool's own interpreter: list the mutants of files, or make some of them.

A job is read from stdin and an answer written to stdout, both as JSON; paths are relative to the working folder.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

NEEDS_ARGUMENTS = ("core/VariableInserter", "core/VariableReplacer")
"""Operators that need the name of a variable as an argument."""


def operators() -> dict[str, Any]:
    """Return name -> operator, of the operators that need no arguments."""
    return {name: get_operator(name)() for name in sorted(operator_names()) if name not in NEEDS_ARGUMENTS}


def list_places(files: list[str]) -> list[dict[str, Any]]:
    """Return where each operator applies in each file."""
    found = []
    for file in files:
        nodes = list(ast_nodes(get_ast(_text(file))))
        for name, operator in operators().items():
            starts = [start for node in nodes for start, _ in operator.mutation_positions(node)]
            found += [
                {"file": file, "operator": name, "occurrence": number, "line": start[0]}
                for number, start in enumerate(starts)
            ]
    return found


def make_mutants(mutations: list[dict[str, Any]]) -> list[str | None]:
    """Return the text of each mutant; `None` if there is no such occurrence."""
    known = operators()
    return [mutate_code(_text(m["file"]), known[m["operator"]], m["occurrence"]) for m in mutations]


def _text(file: str) -> str:
    with Path(file).open(encoding="utf-8", newline="") as text:
        return text.read()


if __name__ == "__main__":
    job = json.load(sys.stdin)
    json.dump(
        {"found": list_places(job["list"])} if "list" in job else {"made": make_mutants(job["make"])},
        sys.stdout,
    )
