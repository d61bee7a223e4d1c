"""Find what an indirect test command runs, such as `npm test` or `make check`.

Such a command only names a script of `package.json`, or a target of make, just, tox or another task runner. The
lines of that script or target decide the outcome, so the files that they name are protected.
"""

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
from typing import Any

from suture.project.languages.language import ProjectOverview
from suture.project.tuning import (
    MAX_SCRIPT_PATTERNS,
    MAX_TASK_FILE_BYTES,
    MAX_TASK_INDIRECTIONS,
    MAX_TASK_LINE_CHARS,
    MAX_TASK_LINES,
    MAX_WORKSPACE_PACKAGES,
)

NO_SCRIPT = "no test specified"
"""Text of the test script that `npm init` writes."""
RUNNERS = ("npm", "yarn", "pnpm")
"""Package managers that run scripts of `package.json`."""
WORKSPACE_RUNNERS = (*RUNNERS, "turbo", "lerna", "nx", "wsrun", "rush", "bun")
"""Programs that run scripts of packages within a project."""
COMMAND_SEPARATORS = re.compile(r"&&|\|\||[;|&\n]")
"""Matches what separates the commands of a shell line."""
FOLDER_OPTIONS = ("--prefix", "-C", "--dir", "--cwd")
"""Options of npm, yarn and pnpm for the working folder."""
WORKSPACE_OPTIONS = ("-w", "--workspace", "-F", "--filter", "workspace")
"""Words of npm, pnpm and yarn before the name or the folder of one package of a workspace."""
PLAIN_FOLDER = re.compile(r"(?:\./)?[\w.@-]+(?:/[\w.@-]+)*/?")
"""Matches a folder of the project that is written without variables or patterns."""
PACKAGE_NAME = re.compile(r"(?:@[a-z0-9_-][\w.-]*/)?[a-z0-9_-][\w.-]*", re.IGNORECASE)
"""Matches the name of a package, which may have a scope."""
PLAIN_SCRIPT = re.compile(r"(?!workspaces?$|exec$|dlx$)\w[\w:.-]*|-s|--silent")
"""Matches a word that leads to no other folder: the name of a script, or an option for less output."""
SCRIPT_STARTERS = (*RUNNERS, "npm-run-all", "run-s", "run-p", "bun", "--run")
"""Words of a script that are followed by names of scripts, such as in `node --run NAME`."""
BETWEEN_WORDS = re.compile(r"[\s;&|()<>'\"]+")
"""Matches what separates the words of a shell line."""
PLAIN_NAME = re.compile(r"[a-z][\w.-]*")
"""Matches the plain name of a program. A name with a version or a scope may have to be fetched by npx first."""


def detect_npm_tests(signs: ProjectOverview) -> tuple[tuple[str, ...], str] | None:
    """Return `npm test` if the project has such a script."""
    script = _scripts(signs.files).get("test", "")
    if not script.strip() or NO_SCRIPT in script:
        return None
    return ("npm", "test"), "package.json has a test script"


def find_started_scripts(command: Collection[str], files: Mapping[str, bytes]) -> tuple[str, ...]:
    """Return the scripts of `package.json` that a command runs, as shell lines; they decide its outcome.

    Args:
        command: The argument vector.
    """
    scripts, words = _scripts(files), list(command)
    names = _script_names(command)
    if len(words) > 2 and words[0] in RUNNERS and words[1] in ("run", "run-script") and words[2] in scripts:
        names = _with_hooks(words[2])
        for name in names & scripts.keys():  # the script may start others, such as by `npm test`
            names |= _script_names((scripts[name],))
    return tuple(script for name, script in scripts.items() if name in names)


def _script_names(command: Collection[str]) -> set[str]:
    """Return the names of the scripts that a command may run: the test script, and all that it names."""
    words = {part for word in command for part in word.split()}
    if not any(PurePosixPath(word).name in RUNNERS for word in words):
        return set()
    return {name for word in ("test", *words) for name in _with_hooks(word)}


def _with_hooks(name: str) -> set[str]:
    """Return the name of a script, and of the scripts that npm runs before and after it."""
    return {f"pre{name}", name, f"post{name}"}


def find_reachable_scripts(command: Collection[str], files: Mapping[str, bytes]) -> tuple[str, ...]:
    """Return the scripts of `find_started_scripts`, and the scripts that these start.

    Args:
        command: The argument vector.
    """
    scripts, waiting = _scripts(files), [*find_started_scripts(command, files)]
    reached: dict[str, None] = {}
    while waiting:
        line = waiting.pop(0)
        if line in reached:
            continue
        reached[line] = None
        words = BETWEEN_WORDS.split(line)
        # Any word may be the name of a script: each program decides in its own way which ones are.
        if any(PurePosixPath(word).name in SCRIPT_STARTERS for word in words):
            patterns = [word for word in words if "*" in word][:MAX_SCRIPT_PATTERNS]
            matching = {name for name in scripts for pattern in patterns if fnmatchcase(name, pattern)}
            names = {hook for name in (*words, *matching) for hook in _with_hooks(name)}
            waiting += [script for name, script in scripts.items() if name in names]
    lines = (" ".join(command), *reached)
    return (*reached, *(line for line in _package_scripts(lines, files) if line not in reached))


def _package_scripts(lines: Sequence[str], files: Mapping[str, bytes]) -> Iterator[str]:
    """Yield the scripts of packages within a project that some lines may start, with the project's paths."""
    words = {word for line in lines for word in BETWEEN_WORDS.split(line)}
    if not any(PurePosixPath(word).name in WORKSPACE_RUNNERS for word in words):
        return
    package_paths = (path for path in files if path.endswith("/package.json") and "node_modules/" not in path)
    folders = _certain_folders(lines)
    for path in islice(package_paths, MAX_WORKSPACE_PACKAGES):
        folder = path.rpartition("/")[0]
        if folders and folder not in folders:
            continue
        package_files = {"package.json": files[path]}
        names = {"run", "run-script", "test", *_scripts(package_files)}
        for line in find_reachable_scripts(("npm", "run", "test", *words), package_files):
            yield " ".join(_prefix_words(line.split(), folder, names))


def _prefix_words(words: Sequence[str], folder: str, names: Collection[str]) -> Iterator[str]:
    """Yield the words of a package's script as they would be written in the project.

    Files get the package's folder as a prefix, and commands that run scripts of the package get `--prefix`.
    """
    is_after_runner = False
    for word in words:
        if word[0] in "-/&|;":  # an option, an absolute path, or the end of a command
            is_after_runner = is_after_runner and word[0] not in "&|;"
            yield word
        elif word in RUNNERS:
            is_after_runner = True
            yield from (word, "--prefix", folder)
        else:
            yield word if is_after_runner and word in names else f"{folder}/{word}"


def _certain_folders(lines: Sequence[str]) -> set[str]:
    """Return the folders whose scripts some lines start; empty if they may start scripts of any folder.

    Commands such as `npm --prefix DIR run NAME` name the folder, and `npm run NAME` means the project's own.
    Any other word, such as `cd`, a workspace or a program, may lead to any folder.
    """
    folders = set()
    for command in (command.split() for line in lines for command in COMMAND_SEPARATORS.split(line)):
        words = iter(command)
        if next(words, "npm") not in RUNNERS:
            return set()
        for word in words:
            option, equals_sign, value = word.partition("=")
            if option in FOLDER_OPTIONS:
                folder = value if equals_sign else next(words, "")
                if not PLAIN_FOLDER.fullmatch(folder):
                    return set()
                folders.add(normpath(folder))
            elif not PLAIN_SCRIPT.fullmatch(word):
                return set()
    return folders


def bypass_npm(command: Sequence[str], files: Mapping[str, bytes]) -> tuple[str, ...] | None:
    """Return what `npm test`, `npm run NAME` or `npx NAME` starts, without npm, which takes most of the time.

    Args:
        command: The argument vector.

    Returns:
        An argument vector whose program is in the project's PATH; `None` if npm does more than start it.
    """
    program, *words = command or ("",)
    if program == "npx" and words and PLAIN_NAME.fullmatch(words[0]):
        return tuple(words)
    name = "test" if words[:1] == ["test"] else words[1] if words[:1] == ["run"] and len(words) == 2 else ""
    scripts = _scripts(files)
    hooks = {f"pre{name}", f"post{name}"} & scripts.keys()
    # Further words are arguments for the script, which npm passes in its own way.
    if program != "npm" or name not in scripts or hooks or (name == "test" and len(words) > 1):
        return None
    return ("/bin/sh", "-c", scripts[name])


def find_package_lines(command: Sequence[str], files: Mapping[str, bytes]) -> Iterator[str]:
    """Yield the shell lines of the one script that a package manager runs, as for `npm test -w NAME`.

    A package of the project is named by its name or its folder; a line `cd FOLDER` comes first then. Nothing is
    yielded for several packages, and for arguments of the script, which each manager passes on in its own way.
    """
    names: list[str] = []
    folder = ""
    words = iter(command[1:] if command and command[0] in RUNNERS else ())
    for word in words:
        option, equals_sign, value = word.partition("=")
        if option in (*WORKSPACE_OPTIONS, *FOLDER_OPTIONS):
            found = _find_package_folder(value if equals_sign else next(words, ""), files)
            if folder or not found:
                return
            folder = found
        elif word[:1] != "-" and word not in ("run", "run-script"):
            names.append("test" if word == "t" else word)
        elif word not in ("run", "run-script", "-s", "--silent", "--if-present"):
            return
    start = f"{folder}/" if folder else ""
    scripts = _scripts({"package.json": files.get(f"{start}package.json", b"{}")})
    if len(names) == 1 and names[0] in scripts:
        lines = [scripts[name] for name in (f"pre{names[0]}", names[0], f"post{names[0]}") if name in scripts]
        yield from (f"cd {folder}", *lines) if folder else lines


def _find_package_folder(name: str, files: Mapping[str, bytes]) -> str:
    """Return the folder of the project's package with a name or in a folder; empty if there is none."""
    folder = normpath(name.strip("{}")) if name else ""
    if f"{folder}/package.json" in files and PLAIN_FOLDER.fullmatch(folder):
        return folder
    return _find_named_packages(files).get(name, "")


def find_workspace_packages(files: Mapping[str, bytes]) -> dict[str, str]:
    """Return name -> folder of the packages of a workspace; empty for another project."""
    is_workspace = "workspaces" in _read_package(files.get("package.json", b"{}"))
    return _find_named_packages(files) if is_workspace or "pnpm-workspace.yaml" in files else {}


def _find_named_packages(files: Mapping[str, bytes]) -> dict[str, str]:
    """Return name -> folder of the packages in a project's folders; of several with one name, the first."""
    paths = (path for path in files if path.endswith("/package.json") and "node_modules/" not in path)
    folders: dict[str, str] = {}
    for path in islice(paths, MAX_WORKSPACE_PACKAGES):
        name = _read_package(files[path]).get("name")
        if isinstance(name, str) and PACKAGE_NAME.fullmatch(name) and PLAIN_FOLDER.fullmatch(path):
            folders.setdefault(name, path.rpartition("/")[0])
    return folders


def _scripts(files: Mapping[str, bytes]) -> dict[str, str]:
    """Return the scripts of the project's `package.json`, name -> shell line."""
    scripts = _read_package(files.get("package.json", b"{}")).get("scripts")
    pairs = scripts.items() if isinstance(scripts, dict) else ()
    return {name: script for name, script in pairs if isinstance(script, str)}


def _read_package(content: bytes) -> dict[str, Any]:
    try:
        package = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return package if isinstance(package, dict) else {}


MAKE = ("make", "gmake", "remake")
MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
"""The files that make looks for, in its order."""
JUSTFILES = ("justfile", "Justfile", ".justfile")
TASK_FILES_BY_PROGRAM: Mapping[str, tuple[str, ...]] = {
    "tox": ("tox.ini", "setup.cfg", "pyproject.toml", "tox.toml"),
    "nox": ("noxfile.py",),
    **dict.fromkeys(("invoke", "inv", "fab"), ("tasks.py", "fabfile.py")),
    **dict.fromkeys(("hatch", "poe", "pdm", "pixi"), ("pyproject.toml", "hatch.toml", "pixi.toml")),
    "task": ("pyproject.toml", "Taskfile.yml", "Taskfile.yaml"),
    "doit": ("dodo.py",),
    "rake": ("Rakefile",),
    **dict.fromkeys(("gulp", "grunt"), ("gulpfile.js", "gulpfile.mjs", "Gruntfile.js")),
}
"""Program -> files that define its tasks. They are not parsed: every line that starts a program counts."""
TASK_FILES = (
    *MAKEFILES, "*.mk", *JUSTFILES, "tox.toml", "dodo.py", "Rakefile", "Taskfile.y*ml", "fabfile.py",
    "hatch.toml", "pixi.toml", "gulpfile.*", "Gruntfile.*",
)  # fmt: skip
"""Globs of the files that define tasks, besides the configuration of languages."""
# The lines of a task file that start a program which may run tests.
PROGRAM_START = re.compile(
    r"(?<![\w.-])(?:python[\d.]*|py\.?test|coverage|node|tsx|np[mx]|yarn|pnpm|mocha|tape|ava|go|sh|bash)(?![\w.-])"
)
VARIABLE_ASSIGNMENT = re.compile(r"(?:(?:export|override)\s+)*([\w.-]+)\s*(?:::?:?|[?+!])?=\s*(.*)")
"""Matches a variable of a Makefile or a justfile: its name and its value."""
TARGET_RULE = re.compile(r"@?([^\s:=#][^:#]*?)\s*::?(?!=)\s*([^;#]*)(?:;(.*))?")
"""Matches the head of a target: its name, what it needs, and perhaps a command on the same line."""
VARIABLE_REFERENCE = re.compile(r"\$[({]([\w.-]+)[)}]|\{\{\s*([\w.-]+)\s*\}\}")
"""Matches `$(NAME)` and `${NAME}` of make, and `{{NAME}}` of just."""
INCLUDE_DIRECTIVE = re.compile(r"-?s?(?:include|import)\s+(.+)")
"""Matches the line by which a file includes others."""
WITH_VALUE = ("-f", "--file", "--makefile", "--justfile", "-C", "--directory")
"""Options of make and just that take a value: the first four name the file, the others the working folder."""


@dataclass(frozen=True, kw_only=True)
class _Targets:
    """The parsed targets of a Makefile or a justfile.

    Attributes:
        needs: Target -> targets that it requires.
        runs: Target -> lines that it runs.
    """

    variables: dict[str, str] = field(default_factory=lambda: {"MAKE": "make"})
    needs: dict[str, list[str]] = field(default_factory=dict)
    runs: dict[str, list[str]] = field(default_factory=dict)


def find_task_commands(words: Sequence[str], files: Mapping[str, bytes]) -> Iterator[str]:
    """Yield the lines that a command makes a task runner run; they decide its outcome.

    Args:
        files: The project's files, path -> content.
    """
    for index, word in enumerate(words):
        name = PurePosixPath(word).name
        if name in MAKE or name == "just":
            yield from _target_lines(words[index + 1 :], files, JUSTFILES if name == "just" else MAKEFILES)
        for path in TASK_FILES_BY_PROGRAM.get(name, ()):
            lines = filter(PROGRAM_START.search, _text(files, path).splitlines())
            yield from (line[:MAX_TASK_LINE_CHARS] for line in islice(lines, MAX_TASK_LINES))


def _target_lines(
    words: Sequence[str], files: Mapping[str, bytes], default_files: Collection[str]
) -> Iterator[str]:
    """Yield the lines of the requested targets, or of the first one, and of all targets that these need."""
    options = {option: value for option, value in pairwise(words) if option in WITH_VALUE}
    folder = options.get("-C", options.get("--directory", ""))
    file = next((options[option] for option in WITH_VALUE[:4] if option in options), "")
    names = [file] if file else default_files
    paths = [posixpath.normpath(posixpath.join(folder, name)) for name in names]
    targets = _Targets()
    _parse_targets(next((_text(files, path) for path in paths if path in files), ""), folder, files, targets)
    default_targets = [name for name in targets.runs if not name.startswith(".")][:1]
    waiting, seen, count = [word for word in words if word in targets.runs] or default_targets, set[str](), 0
    while waiting and count < MAX_TASK_LINES:
        target = waiting.pop(0)
        if target in seen:
            continue
        needs = targets.needs.get(target, [])
        for line in targets.runs.get(target, []):
            count += 1
            # `$<` is the first target that is needed, and `$^` all of them.
            with_needs = line.replace("$<", next(iter(needs), "")).replace("$^", " ".join(needs))
            expanded = _expand_variables(with_needs[:MAX_TASK_LINE_CHARS], targets.variables)
            # `@`, `+` and `-` before a line change how make runs it, and `$$` is a dollar sign.
            plain = expanded.replace("$$", "$").lstrip("@+- \t")
            ignores_failure = "-" in expanded[: len(expanded) - len(expanded.lstrip("@+- \t"))]
            words_of_line = [_in_folder(folder, word) for word in plain.split()]
            yield " ".join((*words_of_line, "||", ":") if ignores_failure else words_of_line)
        waiting += [need for need in needs if need not in seen]
        seen.add(target)


def _in_folder(folder: str, word: str) -> str:
    """Return a word of a line that runs in a folder as it would be written for the project's root."""
    return word if not folder or word[0] in "-/" or "=" in word else posixpath.join(folder, word)


def _parse_targets(
    text: str, folder: str, files: Mapping[str, bytes], targets: _Targets, depth: int = MAX_TASK_INDIRECTIONS
) -> None:
    """Add the targets and variables of a Makefile or justfile, and those of the files that it includes.

    Args:
        depth: How many further levels of included files are read.
    """
    names: list[str] = []
    for line in text.replace("\\\n", " ").splitlines()[:MAX_TASK_LINES]:
        if line[:1] in (" ", "\t"):
            for name in names:
                targets.runs[name].append(line)
            continue
        if match := VARIABLE_ASSIGNMENT.fullmatch(line):
            targets.variables[match[1]] = match[2]
        elif (match := INCLUDE_DIRECTIVE.fullmatch(line)) and depth > 0:
            for path in _expand_variables(match[1], targets.variables).replace("'", " ").split():
                included_path = posixpath.normpath(posixpath.join(folder, path))
                _parse_targets(_text(files, included_path), folder, files, targets, depth - 1)
        elif match := TARGET_RULE.fullmatch(line):
            # In a justfile, the words after the first name are parameters.
            names = _expand_variables(match[1], targets.variables).split()
            needs = _expand_variables(match[2], targets.variables).split()
            for name in names:
                targets.runs.setdefault(name, []).extend([match[3]] if match[3] else [])
                targets.needs.setdefault(name, []).extend(needs)


def _expand_variables(text: str, variables: Mapping[str, str]) -> str:
    """Return a line with its variables replaced by their values."""
    for _ in range(MAX_TASK_INDIRECTIONS):
        expanded = VARIABLE_REFERENCE.sub(lambda match: variables.get(match[1] or match[2], ""), text)
        expanded = expanded[:MAX_TASK_LINE_CHARS]
        if expanded == text:
            break
        text = expanded
    return text


def _text(files: Mapping[str, bytes], path: str) -> str:
    """Return the content of a file; empty if it is missing or too large."""
    content = files.get(path, b"")
    return content.decode("utf-8", "replace") if len(content) <= MAX_TASK_FILE_BYTES else ""
