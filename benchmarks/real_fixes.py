"""Measure which bug fixes of public Python projects are one change that the mutation operators make.

    python benchmarks/real_fixes.py REPOSITORY ... --rows ROWS
    python benchmarks/real_fixes.py --print --rows ROWS
    python benchmarks/real_fixes.py --show COMMIT REPOSITORY ...

REPOSITORY is a clone with its history. A commit counts if its message speaks of a fix or a bug, and if it changes
tests and, besides tests and documentation, one Python file. Backports count once. Nothing runs: the operators change
the file before the commit, and a change *makes* the fix if the file then has the same syntax tree as after the commit.
Both files are normalised first: without comments; docstrings, version numbers and the messages of raised exceptions
replaced with one text; plain tests of names in `and` and `or`, and caught classes, sorted; written by `ast.unparse`.

The repositories are split in two by their names: the operators are improved by reading one half (`tune`), and the
other (`report`) is for reporting.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import math
import re
import statistics
import warnings
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher, unified_diff
from pathlib import Path, PurePosixPath

from row_files import append_row, read_rows
from run_program import run_program

from suture.errors import SutureError
from suture.mutation import Edit, Mutant, apply_edits, generate_mutants

FIX_MESSAGE = re.compile(r"\b(?:fix(?:e[sd])?|bug(?:s|fix)?)\b", re.IGNORECASE)
MAX_COMMITS = 40
"""Commits of one repository, the newest first, so that no large project decides the result."""
MAX_CHANGED_LINES = 30
"""Lines that a fix changes; no operator changes more."""
MAX_HUNKS = 2
"""Hunks of a change at one place: a statement moves, or a default is created in each call."""
IGNORED_BYTES = b" \t\r\n()'\",\\"
"""Bytes that may differ in a candidate that has the fix's syntax tree."""
TEST_PATH = re.compile(
    r"(?:^|/)(?:conftest|tests?|testing|tests?_[^/]*|[^/]*_tests?)(?:/|\.py$)", re.IGNORECASE
)
VERSION_NAME = re.compile(r"(?:__version(?:_info)?__|version|VERSION)$")
DOCUMENTATION = ("docs", "doc", "changelog", "changes", "news", "newsfragments", "changelog.d", "examples")


@dataclass(frozen=True, kw_only=True)
class Row:
    """One commit that fixes a bug.

    Attributes:
        is_single: Whether it is one change: one hunk, or several that replace the same tokens with the same ones.
        operator: The operator that makes it; empty if none does.
        rank: Place of that change among all of the touched functions by its prior, from 1; 0 if none makes it.
        candidates: Changes of the touched functions that the operators offer; 0 if none makes the fix.
    """

    project: str
    commit: str
    subject: str
    path: str
    is_single: bool
    operator: str
    rank: int
    candidates: int

    @property
    def half(self) -> str:
        """`tune` or `report`."""
        return "tune" if hashlib.sha256(self.project.encode()).digest()[0] % 2 else "report"


def main() -> int:
    """Measure the repositories, or print the rows so far, or show one fix."""
    wanted = _parse_arguments()
    if wanted.show:
        show_fix(wanted.repositories[0], wanted.show)
        return 0
    done = {row.project for row in read_rows(wanted.rows, Row)}
    for repository in wanted.repositories:
        name = repository.parent.name if repository.name == "repo" else repository.name
        if name not in done:
            for row in measure_repository(repository, name):
                append_row(wanted.rows, row)
    print_rows(read_rows(wanted.rows, Row))
    return 0


def measure_repository(repository: Path, name: str) -> Iterator[Row]:
    """Yield a row for each of the newest fixes of a repository."""
    changes: set[tuple[tuple[str, str], ...]] = set()
    for commit, subject, path in find_fixes(repository):
        if len(changes) == MAX_COMMITS:
            break
        sources = read_fix(repository, commit, path)
        change = tuple(_kind_of_hunk(*sources, hunk) for hunk in _find_hunks(*sources)) if sources else ()
        if sources is not None and change not in changes:
            changes.add(change)
            yield measure_fix(name, commit, subject, path, *sources)


def find_fixes(repository: Path) -> Iterator[tuple[str, str, str]]:
    """Yield `(commit, subject, path of the source)` for commits that fix a bug, the newest first."""
    log = run_program(
        ["git", "log", "--no-merges", "--name-status", "--no-renames", "--format=%x1d%H%x1e%s%x1e%b%x1e"],
        repository,
    )
    for entry in log.split("\x1d")[1:]:
        commit, subject, body, names = entry.split("\x1e")
        changes = (line.split("\t", 1) for line in names.split("\n") if "\t" in line)
        statuses = {path: status for status, path in changes}
        sources = [path for path in statuses if path.endswith(".py") and not _is_beside_source(path)]
        has_tests = any(TEST_PATH.search(path) for path in statuses)
        is_fix = FIX_MESSAGE.search(f"{subject}\n{body}") is not None
        if is_fix and has_tests and len(sources) == 1 and statuses[sources[0]] == "M":
            yield commit, subject, sources[0]


def _is_beside_source(path: str) -> bool:
    """Return whether a file is a test, documentation or a setup script."""
    parts = PurePosixPath(path.lower()).parts
    is_documentation = any(part in DOCUMENTATION for part in parts)
    return is_documentation or TEST_PATH.search(path) is not None or parts[-1] == "setup.py"


def read_fix(repository: Path, commit: str, path: str) -> tuple[str, str] | None:
    """Return the normalised source before and after a commit; `None` if they are equal or do not parse."""
    try:
        before, after = (
            normalise(run_program(["git", "show", f"{version}:{path}"], repository))
            for version in (f"{commit}^", commit)
        )
    except (SutureError, SyntaxError, ValueError):
        return None
    return (before, after) if before != after else None


def normalise(source: str) -> str:
    """Return a source without comments, with docstrings and messages of exceptions replaced with one text.

    Raises:
        SyntaxError: It does not parse.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.BoolOp):
            node.values = list(_operands(node))
            if all(_never_raises(value) for value in node.values):
                node.values.sort(key=ast.dump)
        elif isinstance(node, ast.ExceptHandler) and isinstance(node.type, ast.Tuple):
            node.type.elts.sort(key=ast.dump)
        elif isinstance(node, ast.Assign) and VERSION_NAME.match(ast.unparse(node.targets[0])):
            node.value = ast.Constant("text")
        elif isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                first.value = ast.Constant("text")
        elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            arguments = node.exc.args
            node.exc.args = [ast.Constant("text") if _is_message(value) else value for value in arguments]
    return ast.unparse(tree) + "\n"


def _operands(node: ast.BoolOp) -> Iterator[ast.expr]:
    """Yield the operands of `and` or `or`, of which some may be in superfluous parentheses."""
    for value in node.values:
        if isinstance(value, ast.BoolOp) and type(value.op) is type(node.op):
            yield from _operands(value)
        else:
            yield value


def _never_raises(node: ast.expr) -> bool:
    """Return whether an operand is a plain test of names, so that its place in `and` or `or` does not matter."""
    plain = (ast.Name, ast.expr_context, ast.Constant, ast.UnaryOp, ast.Not, ast.Is, ast.IsNot)
    return all(
        isinstance(part, plain)
        or (isinstance(part, ast.Compare) and isinstance(part.ops[0], (ast.Is, ast.IsNot)))
        for part in ast.walk(node)
    )


def _is_message(node: ast.expr) -> bool:
    return any(
        isinstance(part, ast.Constant) and isinstance(part.value, str) for part in ast.walk(node)
    ) and isinstance(node, (ast.Constant, ast.JoinedStr, ast.BinOp, ast.Call))


def measure_fix(project: str, commit: str, subject: str, path: str, before: str, after: str) -> Row:
    """Return the row of one fix."""
    hunks = _find_hunks(before, after)
    is_single = len({_kind_of_hunk(before, after, hunk) for hunk in hunks}) == 1
    changed_lines = sum(last - first + right - left for first, last, left, right in hunks)
    made: Mutant | None = None
    if changed_lines <= MAX_CHANGED_LINES and (is_single or len(hunks) <= MAX_HUNKS):
        made = find_fixing_mutant(before, after, hunks)
    rank, candidates = 0, 0
    if made is not None:
        priors: dict[tuple[Edit, ...], float] = {}
        for mutant in generate_mutants(before, _lines_of_functions(before, hunks)):
            priors[mutant.edits] = max(mutant.prior, priors.get(mutant.edits, 0.0))
        candidates = len(priors)
        rank = 1 + sum(prior > priors.get(made.edits, 0.0) for prior in priors.values())
    return Row(
        project=project,
        commit=commit,
        subject=subject,
        path=path,
        is_single=is_single,
        operator=made.operator if made is not None else "",
        rank=rank,
        candidates=candidates,
    )


Hunk = tuple[int, int, int, int]
"""`(first, last, left, right)`: lines `first:last` of the file before, and `left:right` of the file after, from 0."""


def _find_hunks(before: str, after: str) -> list[Hunk]:
    matcher = SequenceMatcher(None, before.splitlines(), after.splitlines(), autojunk=False)
    return [(a, b, c, d) for tag, a, b, c, d in matcher.get_opcodes() if tag != "equal"]


def _kind_of_hunk(before: str, after: str, hunk: Hunk) -> tuple[str, str]:
    """Return the words that a hunk replaces, and those that it puts in their place."""
    first, last, left, right = hunk
    old, new = (
        re.findall(r"\w+|\W", "\n".join(lines).strip())
        for lines in (before.splitlines()[first:last], after.splitlines()[left:right])
    )
    while old and new and old[0] == new[0]:
        old, new = old[1:], new[1:]
    while old and new and old[-1] == new[-1]:
        old, new = old[:-1], new[:-1]
    return "".join(old), "".join(new)


def find_fixing_mutant(before: str, after: str, hunks: Sequence[Hunk]) -> Mutant | None:
    """Return the first mutant of the changed lines that makes the fix."""
    raw, wanted = before.encode("utf-8", "surrogatepass"), _essence(after)
    tree, growth = ast.dump(ast.parse(after)), len(wanted) - len(_essence(before))
    for mutant in generate_mutants(before, _changed_lines(before, hunks)):
        # Cheap, so that few candidates are written and parsed.
        grown = sum(len(_essence(e.text)) - len(_strip(raw[e.start : e.end])) for e in mutant.edits)
        if grown == growth:
            candidate = apply_edits(before, mutant.edits)
            if _essence(candidate) == wanted and _has_tree(candidate, tree):
                return mutant
    return None


def _essence(text: str) -> bytes:
    return _strip(text.encode("utf-8", "surrogatepass"))


def _strip(raw: bytes) -> bytes:
    return raw.translate(None, IGNORED_BYTES)


def _has_tree(candidate: str, tree: str) -> bool:
    try:
        return ast.dump(ast.parse(normalise(candidate))) == tree
    except SyntaxError:
        return False


def _changed_lines(before: str, hunks: Sequence[Hunk]) -> Collection[int]:
    """Return the lines, from 1, that hunks change, those beside them, and the first lines of their functions."""
    changed = {line for first, last, _, _ in hunks for line in range(first, last + 2)}
    headers = {lines.start for lines in _function_spans(before) if changed & set(lines)}
    return changed | headers


def _lines_of_functions(before: str, hunks: Sequence[Hunk]) -> Collection[int]:
    """Return the lines of the innermost functions that hold the changed lines, and these lines themselves."""
    changed = {line for first, last, _, _ in hunks for line in range(first + 1, max(last, first + 1) + 1)}
    spans = sorted(_function_spans(before), key=len)
    innermost = (next((span for span in spans if line in span), ()) for line in changed)
    return changed.union(*innermost)


def _function_spans(source: str) -> list[range]:
    return [
        range(node.lineno, (node.end_lineno or node.lineno) + 1)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]


def show_fix(repository: Path, commit: str) -> None:
    """Print the normalised difference of a fix."""
    for found, subject, path in find_fixes(repository):
        sources = read_fix(repository, found, path) if found.startswith(commit) else None
        if sources is not None:
            print(subject, path)
            print("\n".join(unified_diff(sources[0].splitlines(), sources[1].splitlines(), n=6, lineterm="")))


def print_rows(rows: Sequence[Row]) -> None:
    """Print the share of the fixes that the operators make, by halves and by operator."""
    for half in ("tune", "report"):
        chosen = [row for row in rows if row.half == half]
        made = [row for row in chosen if row.operator]
        singles = [row for row in chosen if row.is_single]
        if not chosen:
            continue
        low, high = wilson_interval(len(made), len(chosen))
        print(
            f"{half}: {len({row.project for row in chosen})} projects, {len(chosen)} commits, "
            f"{len(singles)} single changes; made {len(made)} "
            f"({len(made) / len(chosen):.1%} [{low:.1%}, {high:.1%}] of the commits, "
            f"{sum(row.is_single for row in made)} single changes); "
            f"median rank {statistics.median(row.rank for row in made) if made else 0:.0f}, "
            f"median of {statistics.median(row.candidates for row in made) if made else 0:.0f} candidates"
        )
    operators = sorted(row.operator for row in rows if row.operator)
    for operator in dict.fromkeys(operators):
        print(f"    {operator} {operators.count(operator)}")


def wilson_interval(successes: int, count: int) -> tuple[float, float]:
    """Return the 95% interval of a share (Wilson, 1927)."""
    share, z = successes / count, 1.96
    middle = share + z * z / (2 * count)
    spread = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    return (middle - spread) / (1 + z * z / count), (middle + spread) / (1 + z * z / count)


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Which bug fixes are one change that the operators make.")
    parser.add_argument("repositories", nargs="*", type=Path, metavar="REPOSITORY", help="clone with history")
    parser.add_argument("--rows", type=Path, default=Path("real_fixes.jsonl"), help="file of the results")
    parser.add_argument("--show", metavar="COMMIT", help="print the normalised difference of one fix")
    parser.add_argument("--print", action="store_true", help="only print the rows so far")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
