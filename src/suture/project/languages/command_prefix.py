"""The call of `env` before a test command, as in `env -C backend DEBUG=1 python -m pytest`.

A command runs without a shell, so this is how it gets variables, and a working folder other than the project's.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from itertools import pairwise

ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
"""Matches a variable before a command, as in `CI=1 npm test`."""
FOLDER_OPTIONS = ("-C", "--chdir")


def split_prefix(argv: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return `(the call of env with its folder and variables, the command after it)`.

    The first part is empty if the command has no such call, or one with other options of `env`.
    """
    words = tuple(argv)
    if not words or posixpath.basename(words[0]) != "env":
        return (), words
    index = 1
    while index < len(words) and (words[index] in FOLDER_OPTIONS or ASSIGNMENT.match(words[index])):
        index += 2 if words[index] in FOLDER_OPTIONS else 1
    is_plain = index < len(words) and not words[index].startswith("-")
    return (words[:index], words[index:]) if is_plain else ((), words)


def find_working_folder(argv: Sequence[str]) -> str:
    """Return the folder in which a command runs, relative to the project; empty for the project's own folder."""
    prefix, _ = split_prefix(argv)
    folder = ""
    for option, value in pairwise(prefix):
        if option in FOLDER_OPTIONS:
            folder = posixpath.join(folder, value)
    normal_folder = posixpath.normpath(folder) if folder else ""
    return "" if normal_folder == "." else normal_folder


def add_prefix(folder: str, variables: Sequence[str], argv: Sequence[str]) -> tuple[str, ...]:
    """Return a command that runs in a folder of the project and with variables.

    Args:
        folder: The folder, relative to the project; empty for the project's own folder.
        variables: Assignments such as `CI=1`.
    """
    prefix, command = split_prefix(argv)
    inner_folder = find_working_folder(argv)
    folders = [part for part in (folder, inner_folder) if part]
    assignments = [*variables, *(word for word in prefix[1:] if ASSIGNMENT.match(word))]
    options = ["-C", posixpath.normpath(posixpath.join(*folders))] if folders else []
    if not options and not assignments:
        return command
    return ("env", *options, *assignments, *command)
