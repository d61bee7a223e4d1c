"""The scripts of `package.json`: what `npm test` and its like run."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import PurePosixPath
from posixpath import normpath

from suture.project.languages.language import ProjectSigns

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


def tests_by_npm(signs: ProjectSigns) -> tuple[tuple[str, ...], str] | None:
    """`npm test`, where the project has such a script."""
    script = _scripts(signs.files).get("test", "")
    return (
        (("npm", "test"), "package.json has a test script")
        if script.strip() and NO_SCRIPT not in script
        else None
    )


def scripts_run_by(command: Collection[str], files: Mapping[str, bytes]) -> tuple[str, ...]:
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


def scripts_reached_by(command: Collection[str], files: Mapping[str, bytes]) -> tuple[str, ...]:
    """As `scripts_run_by`, and the scripts that these start.

    Args:
        command: The argument vector.
        files: The project's files.
    """
    scripts, waiting = _scripts(files), [*scripts_run_by(command, files)]
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
        for line in scripts_reached_by(("npm", "run", "test", *words), own):
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


def without_npm(command: Sequence[str], files: Mapping[str, bytes]) -> tuple[str, ...] | None:
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
