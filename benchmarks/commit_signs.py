"""Count the signs of gaming and the new capabilities that ordinary commits show, without running anything.

    python benchmarks/commit_signs.py REPOSITORY --count 200 --rows rows.jsonl
    python benchmarks/commit_signs.py --print --rows rows.jsonl

REPOSITORY is a git repository with its history; no file of it is checked out. Every changed source file of a commit
is searched as a repair, the strictest case, with the tests of that commit. A sign in a commit that its authors
accepted is a false alarm unless a person finds, after reading it, that it deserves it.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from row_files import append_row, read_rows
from run_program import run_program
from script_exit import run_script

from suture.bench.measures.paired_statistics import exact_interval
from suture.judge.capabilities import find_change_capabilities
from suture.judge.signs import collect_literals
from suture.judge.signs.test_values import select_test_texts
from suture.loop.evaluation.change_warnings import find_gaming_signs
from suture.project.languages import detect_file_languages
from suture.project.workspace import decode_text, is_test_file

SUFFIXES = (".py", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".tsx", ".go")
LANGUAGES = {"py": "Python", "go": "Go"}
"""Ending of a file -> its language; the others are JavaScript and TypeScript."""
REPAIR = re.compile(r"\b(fix|bug|regress|crash|correct|wrong|broken|issue)", re.IGNORECASE)
"""Matches the subject of a commit that repairs something, as far as its author says so."""
MAX_BLOB_BYTES = 1_000_000


@dataclass(frozen=True, kw_only=True)
class FileRow:
    """What one file of a commit shows.

    Attributes:
        is_repair: Whether the subject of the commit says that it repairs something.
        signs: `code name, name` of each sign, and `capability:code name` of each new capability.
        folded: Codes of the signs about literals that the file does not spell out, but computes.
    """

    project: str
    commit: str
    subject: str
    path: str
    is_repair: bool
    signs: list[str]
    folded: list[str]

    @property
    def language(self) -> str:
        """The language of the file."""
        return LANGUAGES.get(self.path.rpartition(".")[2], "JavaScript")

    @property
    def codes(self) -> set[str]:
        """What is counted: the codes, and `folded` for each sign about computed literals."""
        return {sign.partition(" ")[0] for sign in self.signs} | {f"folded {code}" for code in self.folded}


def main() -> int:
    """Search the commits of some repositories, and print the rates so far."""
    wanted = _parse_arguments()
    done = {(row.project, row.commit) for row in read_rows(wanted.rows, FileRow)}
    for repository in wanted.repositories:
        name = repository.parent.name if repository.name == "repo" else repository.name
        known: dict[str, bytes] = {}
        for commit, subject in list_commits(repository, wanted.skip, wanted.count):
            if (name, commit) not in done:
                for row in search_commit(repository, name, commit, subject, known):
                    append_row(wanted.rows, row)
                    if row.signs:
                        print(f"{name} {commit[:10]} {row.path}: {row.signs} {row.folded}", flush=True)
    print_rates(read_rows(wanted.rows, FileRow))
    return 0


def list_commits(repository: Path, skip: int, count: int) -> list[tuple[str, str]]:
    """Return `(commit, subject)` of the last commits that touch source files, merges left out."""
    globs = [f"*{suffix}" for suffix in SUFFIXES]
    command = ["git", "log", "--no-merges", f"--skip={skip}", f"-n{count}", "--format=%H %s", "--", *globs]
    rows = (line.partition(" ") for line in run_program(command, repository).splitlines())
    return [(commit, subject) for commit, _, subject in rows]


def search_commit(
    repository: Path, name: str, commit: str, subject: str, known: dict[str, bytes]
) -> Iterator[FileRow]:
    """Yield a row for each source file that a commit changes, tests and new files left out.

    Args:
        known: See `read_files`.
    """
    before, after = read_tree(repository, f"{commit}^"), read_tree(repository, commit)
    changed = [
        path
        for path in sorted(before.keys() & after.keys())
        if before[path] != after[path] and path.endswith(SUFFIXES) and not is_test_file(path)
    ]
    if not changed:
        return
    old_contents, contents = (read_files(repository, tree, known) for tree in (before, after))
    tests = [path for path in contents if is_test_file(path) and detect_file_languages((path,))]
    texts = select_test_texts(contents, tests)
    new_texts = {path: decode_text(contents[path]) for path in changed}
    uses = find_change_capabilities(old_contents, new_texts)
    for path, text in new_texts.items():
        signs = find_gaming_signs(path, decode_text(old_contents[path]), text, texts)
        spelled = collect_literals([text]) if path.endswith(".py") else frozenset()
        yield FileRow(
            project=name,
            commit=commit,
            subject=subject,
            path=path,
            is_repair=REPAIR.search(subject) is not None,
            signs=[
                *(f"{sign.code} {', '.join(sign.names)}".strip() for sign in signs),
                *(f"capability:{use.code} {use.name}" for use in uses if use.path == path),
            ],
            folded=[
                sign.code
                for sign in signs
                if path.endswith(".py")
                and sign.code in ("compares_with_test_literals", "adds_test_literals", "encodes_test_values")
                and not spelled.issuperset(sign.names)
            ],
        )


def read_tree(repository: Path, commit: str) -> dict[str, str]:
    """Return the path and the object id of each file of a commit; empty for the parent of the first one."""
    command = ["git", "ls-tree", "-r", "-z", commit]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=False)
    rows = (row.partition("\t") for row in done.stdout.split("\0") if " blob " in row)
    return {path: head.split()[2] for head, _, path in rows}


def read_files(repository: Path, tree: Mapping[str, str], known: dict[str, bytes]) -> dict[str, bytes]:
    """Return the content of each file of a commit; that of a large file is left out.

    Args:
        known: Object id -> content of the objects that were read before; it is updated.
    """
    blobs = sorted({*tree.values()} - known.keys())
    command = ["git", "cat-file", "--batch"]
    request = "".join(f"{blob}\n" for blob in blobs).encode()
    output = subprocess.run(command, cwd=repository, input=request, capture_output=True, check=True).stdout
    start = 0
    for blob in blobs:
        end = output.index(b"\n", start)
        size = int(output[start:end].split()[2])
        known[blob] = output[end + 1 : end + 1 + size] if size <= MAX_BLOB_BYTES else b""
        start = end + size + 2
    return {path: known[blob] for path, blob in tree.items()}


def print_rates(rows: Sequence[FileRow]) -> None:
    """Print how many commits show each sign, by language, with the interval of the rate."""
    for label, chosen in (("commits", rows), ("repairs", [row for row in rows if row.is_repair])):
        commits: dict[str, set[tuple[str, str]]] = defaultdict(set)
        showing: dict[str, dict[str, set[tuple[str, str]]]] = defaultdict(lambda: defaultdict(set))
        for row in chosen:
            commits[row.language].add((row.project, row.commit))
            for code in row.codes:
                showing[row.language][code].add((row.project, row.commit))
        for language, total in commits.items():
            found = Counter({code: len(places) for code, places in showing[language].items()})
            print(
                f"{language}: {len(total)} {label}, {_count_showing(showing[language].values())} with a sign"
            )
            for code, count in found.most_common():
                interval = exact_interval(count, len(total))
                print(
                    f"    {count:>4}  {count / len(total):6.2%} ({interval.low:.2%} to {interval.high:.2%})  {code}"
                )


def _count_showing(places: Iterable[set[tuple[str, str]]]) -> int:
    return len(set[tuple[str, str]]().union(*places))


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("repositories", type=Path, nargs="*", help="git repositories with their history")
    parser.add_argument("--count", type=int, default=200, help="how many commits of each")
    parser.add_argument("--skip", type=int, default=0, help="how many of the last commits are left out")
    parser.add_argument("--rows", type=Path, default=Path("commit_signs.jsonl"), help="file of the results")
    parser.add_argument("--print", action="store_true", help="only print the results so far")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(run_script(main))
