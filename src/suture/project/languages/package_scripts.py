"""The scripts of `package.json`: what `npm test` and its like run."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import islice, pairwise
from pathlib import PurePosixPath
from posixpath import normpath

from suture.project.languages.language import ProjectOverview

NO_SCRIPT = "no test specified"
"""What `npm init` writes in the place of a test script."""
RUNNERS = ("npm", "yarn", "pnpm")
IN_PACKAGES = (*RUNNERS, "turbo", "lerna", "nx", "wsrun", "rush", "bun")
"""Programs that run scripts of the packages within a project."""
MOST_PACKAGES = 200
BETWEEN_COMMANDS = re.compile(r"&&|\|\||[;|&\n]")
FOLDER_OPTIONS = ("--prefix", "-C", "--dir", "--cwd")
"""How npm, yarn and pnpm are told in which folder to work."""
PLAIN_FOLDER = re.compile(r"(?:\./)?[\w.@-]+(?:/[\w.@-]+)*/?")
PLAIN_SCRIPT = re.compile(r"(?!workspaces?$|exec$|dlx$)\w[\w:.-]*|-s|--silent")
STARTING_OTHERS = (*RUNNERS, "npm-run-all", "run-s", "run-p", "bun", "--run")
"""Words of a script behind which names of scripts stand; `node --run NAME` among them."""
BETWEEN_WORDS = re.compile(r"[\s;&|()<>'\"]+")
MOST_PATTERNS = 20
"""Of the words of one script, such as `test:*`."""
PLAIN_NAME = re.compile(r"[a-z][\w.-]*")


def detect_npm_tests(signs: ProjectOverview) -> tuple[tuple[str, ...], str] | None:
    """`npm test`, where the project has such a script."""
    script = _scripts(signs.files).get("test", "")
    return (
        (("npm", "test"), "package.json has a test script")
        if script.strip() and NO_SCRIPT not in script
        else None
    )


def find_started_scripts(command: Collection[str], files: Mapping[str, bytes]) -> tuple[str, ...]:
    """The scripts of `package.json` that a command runs, as lines for a shell; they decide what it says.

    Args:
        command: The argument vector.
        files: The project's files.
    """
    scripts, given = _scripts(files), list(command)
    wanted = _wanted_by(command)
    if len(given) > 2 and given[0] in RUNNERS and given[1] in ("run", "run-script") and given[2] in scripts:
        wanted = _with_their_own(given[2])
        for name in wanted & scripts.keys():  # it may go on to others, such as to `npm test`
            wanted |= _wanted_by((scripts[name],))
    return tuple(script for name, script in scripts.items() if name in wanted)


def _wanted_by(command: Collection[str]) -> set[str]:
    """Names of the scripts that a command may run: that for tests, and all that it names."""
    words = {part for word in command for part in word.split()}
    if not any(PurePosixPath(word).name in RUNNERS for word in words):
        return set()
    return {name for word in ("test", *words) for name in _with_their_own(word)}


def _with_their_own(name: str) -> set[str]:
    """A script, and those that npm runs before and after it."""
    return {f"pre{name}", name, f"post{name}"}


def find_reachable_scripts(command: Collection[str], files: Mapping[str, bytes]) -> tuple[str, ...]:
    """As `find_started_scripts`, and the scripts that these start.

    Args:
        command: The argument vector.
        files: The project's files.
    """
    scripts, waiting = _scripts(files), [*find_started_scripts(command, files)]
    found: dict[str, None] = {}
    while waiting:
        line = waiting.pop(0)
        if line in found:
            continue
        found[line] = None
        words = BETWEEN_WORDS.split(line)
        if any(PurePosixPath(word).name in STARTING_OTHERS for word in words):
            patterns = [word for word in words if "*" in word][:MOST_PATTERNS]
            named = {*words, *(name for name in scripts for word in patterns if fnmatchcase(name, word))}
            wanted = {f"{before}{name}" for name in named for before in ("pre", "", "post")}
            waiting += [script for name, script in scripts.items() if name in wanted]
    lines = (" ".join(command), *found)
    return (*found, *(line for line in _of_packages(lines, files) if line not in found))


def _of_packages(lines: Sequence[str], files: Mapping[str, bytes]) -> Iterator[str]:
    """The scripts of packages within a project that some lines may go on to; paths are the project's."""
    words = {word for line in lines for word in BETWEEN_WORDS.split(line)}
    inner = (path for path in files if path.endswith("/package.json") and "node_modules/" not in path)
    if not any(PurePosixPath(word).name in IN_PACKAGES for word in words):
        return
    folders = _folders_named(lines)
    for path in islice(inner, MOST_PACKAGES):
        folder = path.rpartition("/")[0]
        if folders and folder not in folders:
            continue
        own = {"package.json": files[path]}
        for line in find_reachable_scripts(("npm", "run", "test", *words), own):
            yield " ".join(
                _seen_from_above(line.split(), folder, {"run", "run-script", "test", *_scripts(own)})
            )


def _seen_from_above(words: Sequence[str], folder: str, names: Collection[str]) -> Iterator[str]:
    """The words of a package's script, as they would be written in the project's: files with the package's
    folder, and what it runs of its own scripts with `--prefix`.
    """
    running = False
    for word in words:
        if word[0] in "-/&|;":
            running = running and word[0] not in "&|;"
            yield word
        elif word in RUNNERS:
            running = True
            yield from (word, "--prefix", folder)
        else:
            yield word if running and word in names else f"{folder}/{word}"


def _folders_named(lines: Sequence[str]) -> set[str]:
    """The only folders whose scripts some lines go on to; none where that is not plain to see.

    Plain are `npm --prefix DIR run NAME` and its like, and runs of the scripts beside them: one other word,
    such as `cd`, a workspace or a program, may lead to any package.
    """
    folders = set()
    for one in (one.split() for line in lines for one in BETWEEN_COMMANDS.split(line)):
        words = iter(one)
        if next(words, "npm") not in RUNNERS:
            return set()
        for word in words:
            option, is_one, folder = word.partition("=")
            if option in FOLDER_OPTIONS:
                named = folder if is_one else next(words, "")
                if not PLAIN_FOLDER.fullmatch(named):
                    return set()
                folders.add(normpath(named))
            elif not PLAIN_SCRIPT.fullmatch(word):
                return set()
    return folders


def bypass_npm(command: Sequence[str], files: Mapping[str, bytes]) -> tuple[str, ...] | None:
    """What `npm test`, `npm run NAME` or `npx NAME` starts, without npm, which takes most of the time.

    Args:
        command: The argument vector.
        files: The project's files.

    Returns:
        An argument vector, whose program is on PATH with the project's; `None` where npm does more.
    """
    first, *words = command or ("",)
    if first == "npx" and words and PLAIN_NAME.fullmatch(words[0]):
        return tuple(words)
    name = "test" if words[:1] == ["test"] else words[1] if words[:1] == ["run"] and len(words) == 2 else ""
    scripts = _scripts(files)
    around = {f"pre{name}", f"post{name}"} & scripts.keys()
    if first != "npm" or name not in scripts or around or (name == "test" and len(words) > 1):
        return None
    return ("/bin/sh", "-c", scripts[name])


def _scripts(files: Mapping[str, bytes]) -> dict[str, str]:
    try:
        package = json.loads(files.get("package.json", b"{}"))
    except (ValueError, RecursionError):
        return {}
    scripts = package.get("scripts") if isinstance(package, dict) else None
    pairs = scripts.items() if isinstance(scripts, dict) else ()
    return {name: script for name, script in pairs if isinstance(script, str)}


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


def find_task_commands(words: Sequence[str], files: Mapping[str, bytes]) -> Iterator[str]:
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
