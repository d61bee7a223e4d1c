"""Split the test command that a user types into words, and find the files that decide its outcome.

These files are protected: a candidate that changed them could make the command succeed.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, pairwise, takewhile
from pathlib import Path

from suture.errors import UsageError
from suture.project.languages import LANGUAGES, find_reachable_scripts, find_task_commands, is_source
from suture.project.languages.command_prefix import ASSIGNMENT, find_working_folder, split_prefix
from suture.project.languages.diagnostics import (
    CONFIGURATION_GLOBS,
    find_configuration_files,
    find_hook_commands,
    find_tool,
)
from suture.project.tuning import MAX_LOADED_GLOBS, MAX_REACHED_LINES, MAX_SHELL_SCRIPT_BYTES
from suture.project.workspace import is_protected, is_test_file

SHELL_CHARACTERS = frozenset(";<>|&`")
"""Characters that only a shell interprets, outside of quotes."""
MISSING_COMMAND = re.compile(r"^\s*&&|&&\s*(?:&&|$)")
"""Matches `&&` without a command on both sides, which a shell refuses."""
WORD_ENDS = re.compile(r"[\s;&|()<>'\"]+")
"""Matches what separates the words of a shell line."""
COMMAND_ENDS = re.compile(r"[;&|\n]+")
"""Matches what separates its commands."""
WHOLE_FOLDER_GLOB = re.compile(r"/$|/\*(?:\.\w+)?$")
"""Matches a glob of everything in a folder, or of everything with one ending."""
OPTIONS_WITH_VALUE = ("-k", "-s", "-p", "-t")
"""Options of `python -m unittest` whose next word is not a test."""


def split_command(test: str | Sequence[str]) -> tuple[str, ...]:
    """Return the argument vector of a test command. It runs without a shell, unless it joins commands by `&&`.

    Raises:
        UsageError: A quote is not closed, or the command needs a shell.
    """
    if not isinstance(test, str):
        words = tuple(test)
    else:
        try:
            words = tuple(shlex.split(test))
        except ValueError as fault:
            raise UsageError(
                f"the test command {test!r} cannot be read: {str(fault).lower()}",
                remedy="close the quote, or put a backslash before it",
            ) from fault
        if _needs_shell(test.replace("&&", "")):
            raise UsageError(
                f"the test command {test!r} needs a shell, and is started without one",
                remedy=f"write it as: sh -c {shlex.quote(test)}",
            )
        if "&&" in test and _needs_shell(test):
            if MISSING_COMMAND.search(test):
                raise UsageError(
                    f"the test command {test!r} lacks a command beside '&&'",
                    remedy="write the command, or leave out the '&&'",
                )
            return ("sh", "-c", test)
    # Only a shell sets such variables itself.
    if words and ASSIGNMENT.match(words[0]) and not all(map(ASSIGNMENT.match, words)):
        words = ("env", *words)
    return words


def _needs_shell(test: str) -> bool:
    """Return whether a command has, outside of quotes, a character that only a shell interprets."""
    quote, is_escaped = "", False
    for char, following in zip(test, f"{test[1:]} ", strict=True):
        if is_escaped:
            is_escaped = False
        elif char == "\\" and quote != "'":
            is_escaped = True
        elif quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char in SHELL_CHARACTERS or char + following == "$(":
            return True
    return False


def find_deciding_files(command: Sequence[str], files: Mapping[str, bytes], root: Path) -> tuple[str, ...]:
    """Return the task's files that decide the outcome of a test command.

    The command, and the scripts and targets that it runs, name some of them. Its programs load others because
    of the command or their configuration, such as plugins and the tests in a folder. In a folder whose tests
    have the usual names, only these decide; the other files are code.

    Args:
        command: The argument vector. A word may be a shell line.
    """
    if folder := find_working_folder(command):
        own_files = {path.removeprefix(f"{folder}/"): path for path in files if path.startswith(f"{folder}/")}
        contents = {name: files[path] for name, path in own_files.items()}
        deciding = find_deciding_files(split_prefix(command)[1], contents, root / folder)
        return tuple(own_files[name] for name in deciding)
    lines = _reached_lines(command, files, root)
    commands = list(_commands_in(lines))
    named_files = dict.fromkeys(path for words in commands for path in find_named_files(words, files, root))
    languages = tuple(LANGUAGES.values())
    loaded_globs = (
        glob for words in commands for facts in languages for glob in facts.find_loaded_files(words)
    )
    configured_globs = (glob for facts in languages for glob in facts.find_configured_files(files))
    globs = dict.fromkeys(islice(loaded_globs, MAX_LOADED_GLOBS))
    globs |= dict.fromkeys(islice(configured_globs, MAX_LOADED_GLOBS))
    loaded_files: list[str] = []
    for glob in globs:
        matches = [path for path in files if is_protected(path, (glob,))]
        loaded_files += [] if WHOLE_FOLDER_GLOB.search(glob) and any(map(is_test_file, matches)) else matches
    return tuple(dict.fromkeys((*named_files, *loaded_files)))


def find_deciding_tool_files(
    tools: Sequence[Sequence[str]], files: Mapping[str, bytes], root: Path
) -> tuple[str, ...]:
    """Return the files that decide what linters and type checkers report, besides those with the usual names.

    These are the files that their options and configuration name, and the programs of local hooks. The files that
    they check do not decide.
    """
    if not tools:
        return ()
    configuration = [path for path in files if is_protected(path, CONFIGURATION_GLOBS)]
    deciding = [*find_configuration_files(tools, configuration, files)]
    runs_hooks = any((found := find_tool(argv)) and found.tool.name == "pre-commit run" for argv in tools)
    for hook in find_hook_commands(files) if runs_hooks else ():
        tool = find_tool(hook)
        deciding += find_deciding_files(hook, files, root) if tool is None else ()
        deciding += find_configuration_files((hook,), (), files) if tool is not None else ()
    return tuple(dict.fromkeys(deciding))


def _reached_lines(command: Sequence[str], files: Mapping[str, bytes], root: Path) -> list[str]:
    """Return a command as a line, and the lines of all scripts and targets that it runs."""
    command_line = " ".join(command)
    reached, waiting = {command_line: None}, [command_line]
    while waiting and len(reached) < MAX_REACHED_LINES:
        line = waiting.pop(0)
        started_lines = [*find_reachable_scripts(command if line is command_line else line.split(), files)]
        for words in _commands_in((line,)):
            started_lines += find_task_commands(words, files)
        for path in find_named_files((line,), files, root):
            # A file that is not source of a known language is read as a shell script, whatever its name is.
            is_shell = not any(is_source(path, language) for language in LANGUAGES)
            if is_shell and len(files[path]) <= MAX_SHELL_SCRIPT_BYTES:
                started_lines += files[path].decode("utf-8", "replace").splitlines()
        unseen_lines = [s for s in dict.fromkeys(started_lines) if s.strip() and s not in reached]
        reached.update(dict.fromkeys(unseen_lines))
        waiting += unseen_lines
    return list(reached)


def _commands_in(lines: Iterable[str]) -> Iterator[list[str]]:
    """Yield the words of each command in shell lines."""
    for line in lines:
        for shell_command in COMMAND_ENDS.split(line):
            if words := [word for word in WORD_ENDS.split(shell_command) if word]:
                yield words


def find_named_files(command: Sequence[str], files: Mapping[str, bytes], root: Path) -> tuple[str, ...]:
    """Return the task's files that are words of a test command, or the modules that it runs."""
    words = [part for word in command for part in WORD_ENDS.split(word) if part]
    prefix, paths = f"{root.as_posix()}/", list[str]()
    for word in words:
        for path in (word, word.split("::")[0]):
            paths.append(posixpath.normpath(path.removeprefix(prefix)))
    for module in _modules(words):
        paths += _module_files(module)
    return tuple(dict.fromkeys(path for path in paths if path in files))


def _modules(words: Sequence[str]) -> Iterator[str]:
    """Yield the module that `python -m` runs, and the modules that are arguments of `unittest`.

    The option `-m` of other programs has other meanings.
    """
    before_option = list(takewhile(lambda word: word != "-m", words))
    module_and_arguments = words[len(before_option) + 1 :]
    if not module_and_arguments or not any(re.search(r"python[\d.]*$", word) for word in before_option):
        return
    yield module_and_arguments[0]
    if module_and_arguments[0] == "unittest":
        for before, word in pairwise(module_and_arguments):
            if before not in OPTIONS_WITH_VALUE and not word.startswith("-"):
                yield word


def _module_files(word: str) -> Iterator[str]:
    """Yield the files that a dotted name may mean: `tests.core.TestX` is a class in `tests/core.py`."""
    parts = word.split(".")
    for count in range(1, len(parts) + 1):
        stem = "/".join(parts[:count])
        yield f"{stem}.py"
        if count == len(parts):
            yield from (f"{stem}/__main__.py", f"{stem}/__init__.py")


def escape_glob(path: str) -> str:
    """Return the pattern of a `.gitignore` that matches this one path and no other."""
    escaped = re.sub(r"([\\*?\[\]])", r"\\\1", path)
    return "/" + re.sub(r" $", r"\\ ", escaped)
