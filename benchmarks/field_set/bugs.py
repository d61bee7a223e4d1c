"""The bugs: told by the tool, the operator and its occurrence, so that each is made anew from the package."""

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
    """One mutant: the file, the tool's operator, and its place there, from 0; the line is for people."""

    file: str
    operator: str
    occurrence: int
    line: int = 0


@dataclass(frozen=True, kw_only=True)
class Bug:
    """A bug of one package.

    Attributes:
        id: Its name here.
        package: The package's.
        version: The package's release, whose tests are run.
        kind: One mutant, two that are both killed alone, or a fix that an older release did not have yet.
        failing: Tests that fail with it, where the suite was run outside of any sandbox.
        interrupted: Whether those are files that cannot be imported, and no test is run.
        seed: With which it was drawn.
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
    """All that were drawn, in the order of the list."""
    lines = listed.read_text("utf-8").splitlines() if listed.exists() else []
    return [_bug(json.loads(line)) for line in lines if line]


def write_bugs(bugs: Iterable[Bug], listed: Path = LISTED) -> None:
    """Make this the list."""
    bare = [{k: v for k, v in asdict(bug).items() if v not in ((), None, "", False)} for bug in bugs]
    listed.write_text("".join(json.dumps(fields) + "\n" for fields in bare), "utf-8")


def _bug(fields: dict[str, Any]) -> Bug:
    mutations = tuple(Mutation(**told) for told in fields.get("mutations", ()))
    return Bug(**{**fields, "mutations": mutations})


def broken_files(bug: Bug, package: Package, cache: Cache) -> dict[str, str]:
    """Path -> text of the files that hold the bug.

    Raises:
        UsageError: The bug is of another release, or cannot be made.
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
    """The changes of several mutants in one text; `None` where two change the same lines."""
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
    """Ask the mutation tool, in its own environment, about the files of a tree.

    Args:
        cache: Where its environment is.
        tree: The package's root, in which the tool runs.
        job: `list` of files, or `make` of mutations.

    Raises:
        PrerequisiteError: It failed.
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
    """All mutants of a package that the tool knows."""
    tree = cache.tree(package)
    told = ask_tool(cache, tree, {"list": code_files(package, tree)})["found"]
    return [Mutation(**fields) for fields in told]


def read_text(path: Path) -> str:
    """A file's text, its line ends as they are."""
    with path.open(encoding="utf-8", newline="") as file:
        return file.read()
