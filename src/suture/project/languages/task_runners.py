"""What `make test`, `just check`, `tox` and their like run: lines that a project has written down by name."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise
from pathlib import PurePosixPath

MAKE = ("make", "gmake", "remake")
MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
JUSTFILES = ("justfile", "Justfile", ".justfile")
OTHERS: Mapping[str, tuple[str, ...]] = {
    "tox": ("tox.ini", "setup.cfg", "pyproject.toml", "tox.toml"),
    "nox": ("noxfile.py",),
    **dict.fromkeys(("invoke", "inv", "fab"), ("tasks.py", "fabfile.py")),
    **dict.fromkeys(("hatch", "poe", "pdm", "pixi"), ("pyproject.toml", "hatch.toml", "pixi.toml")),
    "task": ("pyproject.toml", "Taskfile.yml", "Taskfile.yaml"),
    "doit": ("dodo.py",),
    "rake": ("Rakefile",),
    **dict.fromkeys(("gulp", "grunt"), ("gulpfile.js", "gulpfile.mjs", "Gruntfile.js")),
}
"""Program -> files that say what its tasks run, each in a form of its own: every line is taken that starts
a program."""
TASK_FILES = (
    *(*MAKEFILES, "*.mk", *JUSTFILES, "tox.toml", "dodo.py", "Rakefile", "Taskfile.y*ml", "fabfile.py"),
    *("hatch.toml", "pixi.toml", "gulpfile.*", "Gruntfile.*"),
)
"""Globs of what decides what such a command runs, beside what configures a language."""
MOST_BYTES, MOST_LINES, MOST_CHARS, MOST_ROUNDS = 1 << 18, 2000, 4000, 5
"""Of a file of tasks; of what it runs; of one line; of names that stand for names."""
STARTS = re.compile(
    r"(?<![\w.-])(?:python[\d.]*|py\.?test|coverage|node|tsx|np[mx]|yarn|pnpm|mocha|tape|ava|go|sh|bash)(?![\w.-])"
)
SETS = re.compile(r"(?:(?:export|override)\s+)*([\w.-]+)\s*(?:::?:?|[?+!])?=\s*(.*)")
RULE = re.compile(r"@?([^\s:=#][^:#]*?)\s*::?(?!=)\s*([^;#]*)(?:;(.*))?")
MEANS = re.compile(r"\$[({]([\w.-]+)[)}]|\{\{\s*([\w.-]+)\s*\}\}")
INCLUDED = re.compile(r"-?s?(?:include|import)\s+(.+)")
WITH_VALUE = ("-f", "--file", "--makefile", "--justfile", "-C", "--directory")


@dataclass(frozen=True, kw_only=True)
class _Targets:
    """A file of targets: what names stand for, and of each target what it needs and the lines it runs."""

    means: dict[str, str] = field(default_factory=lambda: {"MAKE": "make"})
    needs: dict[str, list[str]] = field(default_factory=dict)
    runs: dict[str, list[str]] = field(default_factory=dict)


def task_lines(words: Sequence[str], files: Mapping[str, bytes]) -> Iterator[str]:
    """The lines that a command has a runner of tasks run; they decide what it says.

    Args:
        words: Of one command.
        files: The project's files, path -> content.
    """
    for at, word in enumerate(words):
        name = PurePosixPath(word).name
        if name in MAKE or name == "just":
            yield from _of_targets(words[at + 1 :], files, JUSTFILES if name == "just" else MAKEFILES)
        for path in OTHERS.get(name, ()):
            lines = _text(files, path).splitlines()
            yield from islice((line[:MOST_CHARS] for line in lines if STARTS.search(line)), MOST_LINES)


def _of_targets(words: Sequence[str], files: Mapping[str, bytes], usual: Collection[str]) -> Iterator[str]:
    """The lines of the targets that are asked for, else of the first, and of all that these need."""
    given = {before: word for before, word in pairwise(words) if before in WITH_VALUE}
    folder = given.get("-C", given.get("--directory", ""))
    named = next((given[option] for option in WITH_VALUE[:4] if option in given), "")
    paths = [posixpath.normpath(posixpath.join(folder, one)) for one in ([named] if named else usual)]
    targets = _Targets()
    _read(next((_text(files, path) for path in paths if path in files), ""), folder, files, targets)
    first = [name for name in targets.runs if not name.startswith(".")][:1]
    waiting, seen, told = [word for word in words if word in targets.runs] or first, set[str](), 0
    while waiting and told < MOST_LINES:
        name = waiting.pop(0)
        needs = targets.needs.get(name, [])
        for line in targets.runs.get(name, []) if name not in seen else []:
            told += 1
            with_needs = line.replace("$<", next(iter(needs), "")).replace("$^", " ".join(needs))
            plain = _meant(with_needs[:MOST_CHARS], targets.means).replace("$$", "$").lstrip("@+- \t")
            yield " ".join(_inside(folder, word) for word in plain.split())
        waiting += [one for one in needs if one not in seen] if name not in seen else []
        seen.add(name)


def _inside(folder: str, word: str) -> str:
    """A word of a line that runs in a folder, as one of the project's."""
    return word if not folder or word[0] in "-/" or "=" in word else posixpath.join(folder, word)


def _read(
    text: str, folder: str, files: Mapping[str, bytes], targets: _Targets, depth: int = MOST_ROUNDS
) -> None:
    names: list[str] = []
    for line in text.replace("\\\n", " ").splitlines()[:MOST_LINES]:
        if line[:1] in (" ", "\t"):
            for name in names:
                targets.runs[name].append(line)
            continue
        if found := SETS.fullmatch(line):
            targets.means[found[1]] = found[2]
        elif (found := INCLUDED.fullmatch(line)) and depth > 0:
            for path in _meant(found[1], targets.means).replace("'", " ").split():
                place = posixpath.normpath(posixpath.join(folder, path))
                _read(_text(files, place), folder, files, targets, depth - 1)
        elif found := RULE.fullmatch(line):
            # Of just, words behind the first name are what the target is given.
            names = _meant(found[1], targets.means).split()
            for name in names:
                targets.runs.setdefault(name, []).extend([found[3]] if found[3] else [])
                targets.needs.setdefault(name, []).extend(_meant(found[2], targets.means).split())


def _meant(text: str, means: Mapping[str, str]) -> str:
    """A line with what its names stand for."""
    for _ in range(MOST_ROUNDS):
        new = MEANS.sub(lambda name: means.get(name[1] or name[2], ""), text)[:MOST_CHARS]
        if new == text:
            break
        text = new
    return text


def _text(files: Mapping[str, bytes], path: str) -> str:
    content = files.get(path, b"")
    return content.decode("utf-8", "replace") if len(content) <= MOST_BYTES else ""
