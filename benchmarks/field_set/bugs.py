"""The bugs, described by operator and occurrence, so that each can be made again from the package."""

from __future__ import annotations

import difflib
import json
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from field_set.cache import Cache
from field_set.packages import FOLDER, Package, code_files
from suture.errors import PrerequisiteError, UsageError

__all__ = [
    "Bug",
    "Mutation",
    "ask_tool",
    "broken_files",
    "combined",
    "list_mutations",
    "read_bugs",
    "read_text",
    "write_bugs",
]

LISTED = FOLDER / "bugs.jsonl"
TOOL_S = 300


@dataclass(frozen=True, kw_only=True)
class Mutation:
    """One mutant: the file, the operator of the tool, and its occurrence, from 0. The line is only for people."""

    file: str
    operator: str
    occurrence: int
    line: int = 0


@dataclass(frozen=True, kw_only=True)
class Bug:
    """A bug of one package.

    Attributes:
        id: The name of the bug.
        package: The name of the package.
        version: The release of the package.
        kind: `one` mutant, or `two` that are both killed alone.
        failing: Number of tests that fail with the bug, outside any sandbox.
        interrupted: Whether these are files that cannot be imported, so that no test runs.
        seed: The seed with which the bug was drawn.
        mutations: The mutants.
    """

    id: str
    package: str
    version: str
    kind: Literal["one", "two"]
    failing: int
    interrupted: bool = False
    seed: int = 0
    mutations: tuple[Mutation, ...] = ()


def read_bugs(listed: Path = LISTED) -> list[Bug]:
    """Return all bugs of the list, in its order."""
    lines = listed.read_text("utf-8").splitlines() if listed.exists() else []
    return [_bug(json.loads(line)) for line in lines if line]


def write_bugs(bugs: Iterable[Bug], listed: Path = LISTED) -> None:
    """Replace the list."""
    bare = [{k: v for k, v in asdict(bug).items() if v not in ((), None, "", False)} for bug in bugs]
    listed.write_text("".join(json.dumps(fields) + "\n" for fields in bare), "utf-8")


def _bug(fields: dict[str, Any]) -> Bug:
    mutations = tuple(Mutation(**told) for told in fields.get("mutations", ()))
    return Bug(**{**fields, "mutations": mutations})


def broken_files(bug: Bug, package: Package, cache: Cache) -> dict[str, str]:
    """Return path -> text of the files that contain the bug.

    Raises:
        UsageError: The bug belongs to another release, or cannot be made.
    """
    if bug.version != package.version:
        raise UsageError(f"{bug.id} is a bug of {bug.package} {bug.version}, not of {package.version}")
    tree = cache.tree(package)
    made = ask_tool(cache, tree, {"make": [asdict(mutation) for mutation in bug.mutations]})["made"]
    texts: dict[str, list[str]] = {}
    for mutation, text in zip(bug.mutations, made, strict=True):
        if text is None:
            raise UsageError(f"{bug.id}: {mutation.operator} has no occurrence {mutation.occurrence}")
        texts.setdefault(mutation.file, []).append(text)
    return {path: _joined(bug, read_text(tree / path), mutants) for path, mutants in texts.items()}


def _joined(bug: Bug, original: str, mutants: Sequence[str]) -> str:
    joined = combined(original, mutants)
    if joined is None:
        raise UsageError(f"{bug.id}: its mutants are of the same lines")
    return joined


def combined(original: str, mutants: Sequence[str]) -> str | None:
    """Return the changes of several mutants in one text; `None` if two of them change the same lines."""
    lines = original.splitlines(keepends=True)
    changes = []
    for mutant in mutants:
        other = mutant.splitlines(keepends=True)
        matcher = difflib.SequenceMatcher(None, lines, other, autojunk=False)
        changes += [
            (start, end, other[first:last])
            for tag, start, end, first, last in matcher.get_opcodes()
            if tag != "equal"
        ]
    changes.sort(key=lambda change: change[:2])
    if any(before[1] > after[0] for before, after in pairwise(changes)):
        return None
    for start, end, new in reversed(changes):
        lines[start:end] = new
    return "".join(lines)


def ask_tool(cache: Cache, tree: Path, job: Mapping[str, Any]) -> dict[str, Any]:
    """Run the mutation tool, in its own environment, on the files of a tree.

    Args:
        cache: The cache with that environment.
        tree: The root of the package, in which the tool runs.
        job: `list` with files, or `make` with mutations.

    Raises:
        PrerequisiteError: The tool failed.
    """
    python = cache.environment("mutation") / "bin" / "python"
    script = str(FOLDER / "mutate.py")
    answer = subprocess.run(
        [str(python), "-P", script],
        cwd=tree,
        input=json.dumps(job),
        capture_output=True,
        text=True,
        timeout=TOOL_S,
        check=False,
    )
    if answer.returncode:
        raise PrerequisiteError(
            f"the mutation tool failed: {answer.stderr[-300:]}", remedy="remove its environment"
        )
    told: dict[str, Any] = json.loads(answer.stdout)
    return told


def list_mutations(package: Package, cache: Cache) -> list[Mutation]:
    """Return all mutants of a package that the tool knows."""
    tree = cache.tree(package)
    told = ask_tool(cache, tree, {"list": code_files(package, tree)})["found"]
    return [Mutation(**fields) for fields in told]


def read_text(path: Path) -> str:
    """Return the text of a file with its line ends unchanged."""
    with path.open(encoding="utf-8", newline="") as file:
        return file.read()
