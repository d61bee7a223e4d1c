"""Sources that cannot be read any more: one token of each was lost, added, exchanged or misspelt by chance.

    SUTURE_DATA=... python benchmarks/broken_syntax.py [--set javascript|go] [--seed N] [--first N]

A seeded draw of a program, a token and a slip; only what makes the syntax tree faulty counts. `javascript` is
HumanEvalFix's solutions with its example tests, `go` the packages of `go_set`. A repair is correct where
the hidden tests pass, which no run has seen; of these, those that are the source before, token for token,
count as agreed. `--list` prints the slips, `--ranks` where the source before stands among the texts that are
offered, without any run.
"""

from __future__ import annotations

import random
import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from data_files import read_data
from ending import exit_code_of
from go_bugs import COMMAND as GO_COMMAND
from go_bugs import HIDDEN_S, go_project, packages
from go_bugs import grade as grade_go
from healing import Graded, Grader, Program, run_benchmark
from humanevalfix_js import COMMAND, project_of
from humanevalfix_js import grade as grade_js

from suture.core.records import Language
from suture.core.settings import Settings
from suture.mutation.syntax_repair.tree_repair import build_lexer, find_parsable_trees, find_tree_stop
from suture.sandbox import Sandbox

MOST = 40
SETS = ("go", "javascript")
Source = tuple[str, dict[str, str], str, Grader]
"""A program's name, its files as they should be, the path of the one to break, and who grades."""


def sources(language: Language) -> Iterator[Source]:
    """The programs of a language, whole."""
    if language == "go":
        for name in packages():
            yield name, go_project(name), f"{name}.go", partial(grade_go, name)
        return
    for record in read_data("humanevalfix/js"):
        whole: dict[str, Any] = {**record, "buggy_solution": record["canonical_solution"]}
        if files := project_of(whole):
            yield record["task_id"], files, "solution.js", partial(grade_js, record)


def broken(text: str, path: str, language: Language, chance: random.Random) -> tuple[str, str]:
    """A source with one token lost, added, exchanged or misspelt, and what was done."""
    lexis = build_lexer(path, language)
    tokens = [one for one in lexis.tokens(text) if one.kind != "end" and "\n" not in one.text]
    lines, token = text.split("\n"), chance.choice(tokens)
    how = chance.choice(("lost", "added", "exchanged", "misspelt"))
    other, own = chance.choice([*sorted(lexis.known), *(one.text for one in tokens)]), token.text
    at, line = chance.randrange(len(own)), lines[token.row]
    new = {
        "lost": "",
        "added": f"{own} {other}",
        "exchanged": other,
        "misspelt": own[:at] + own[at : at + 2][::-1] + own[at + 2 :],
    }[how]
    lines[token.row] = f"{line[: token.start]}{new}{line[token.end :]}"
    return "\n".join(lines), f"{path}:{token.row + 1}: {own!r} {how}: {lines[token.row].strip()[:80]}"


def slips(language: Language, seed: int) -> Iterator[tuple[Source, str, str]]:
    """Programs with a text of theirs that cannot be read, and what was done to it; without end."""
    chance, known = random.Random(seed), list(sources(language))
    while True:
        source = chance.choice(known)
        _, files, path, _ = source
        text, done = broken(files[path], path, language, chance)
        if find_tree_stop(text, path, language) and not find_tree_stop(files[path], path, language):
            yield source, text, done


async def grade(
    source: Source, files: Mapping[str, str], folder: Path, settings: Settings, sandbox: Sandbox
) -> Graded:
    """Whether the hidden tests pass, and whether the repair is the source before."""
    _, before, path, own = source
    graded = await own(files, folder, settings, sandbox)
    language: Language = "go" if path.endswith(".go") else "javascript"
    same = is_same(files[path], before[path], path, language)
    return Graded(correct=graded.correct, compared=1, agreed=int(same))


def is_same(text: str, other: str, path: str, language: Language) -> bool:
    """Whether two texts are the same, token for token."""
    lexis = build_lexer(path, language)
    one, two = ([t.text for t in lexis.tokens(held) if t.kind != "end"] for held in (text, other))
    return one == two


def programs(language: Language, seed: int) -> list[Program]:
    """The first slips of a seed."""
    return [
        Program(
            name=f"{source[0]}#{seed}.{number}",
            files={**source[1], source[2]: text},
            grade=partial(grade, source),
            command=GO_COMMAND if language == "go" else COMMAND,
            test_timeout_s=HIDDEN_S if language == "go" else 10,
        )
        for number, (source, text, _) in enumerate(islice(slips(language, seed), MOST))
    ]


def tell_ranks(language: Language, seed: int) -> None:
    """Where the source before stands among the offered texts."""
    places: list[int | None] = []
    began_s = time.monotonic()
    for (_, files, path, _), text, done in islice(slips(language, seed), MOST):
        offered = find_parsable_trees(path, {**files, path: text}, language, seconds=9)
        same = (n for n, one in enumerate(offered) if is_same(one.text, files[path], path, language))
        places.append(next(same, None))
        print(f"{'-' if places[-1] is None else places[-1] + 1:>4}  {done}", flush=True)
    found = [place for place in places if place is not None]
    tops = ", ".join(f"{sum(place < top for place in found)} among the first {top}" for top in (1, 8, 32))
    print(f"{language}, seed {seed}: of {MOST} {tops}; {(time.monotonic() - began_s) / MOST:.1f} s each")


def main() -> None:
    """The command line: what is not of the draw is of every benchmark."""
    parser = ArgumentParser(add_help=False)
    parser.add_argument("--set", choices=SETS, default="javascript")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--ranks", action="store_true")
    wanted, sys.argv[1:] = parser.parse_known_args()
    language: Language = "go" if wanted.set == "go" else "javascript"
    chosen: Callable[[], list[Program]] = partial(programs, language, wanted.seed)
    if wanted.list:
        for _, _, done in islice(slips(language, wanted.seed), MOST):
            print(done)
    elif wanted.ranks:
        tell_ranks(language, wanted.seed)
    else:
        run_benchmark(__doc__ or "", "broken_syntax", chosen)


if __name__ == "__main__":
    sys.exit(exit_code_of(main))
