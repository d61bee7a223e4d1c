"""Which test command, and so which language, a project is healed by."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from suture.errors import UsageError
from suture.project.languages import (
    LANGUAGES,
    DetectedCommand,
    detect_command,
    is_source,
    language_of_command,
    languages_of_files,
)
from suture.project.workspace import UNSPEAKABLE, Snapshot, is_protected
from suture.sandbox import discover_interpreter


def chosen_command(
    command: tuple[str, ...],
    snapshot: Snapshot,
    protected: Sequence[str],
    only: Sequence[str],
    python: Path | None = None,
) -> DetectedCommand:
    """The command that was given, or the one that the project shows, and the language that it tests.

    Args:
        command: As the user gave it; empty where none was given.
        snapshot: The project's files as they are now.
        protected: Globs of files that stay as they are.
        only: Globs of the files that may change; all others where there are none.
        python: The interpreter that the user has named.

    Raises:
        UsageError: There is no code that may change, no test command, or more than one to choose from.
        PrerequisiteError: The project's Python environment is broken.
    """
    free = [name for name in snapshot.files if not is_protected(name, protected)]
    labels = [facts.label for facts in LANGUAGES.values()]
    if not languages_of_files(free):
        _refuse_left_out(snapshot)
        raise UsageError(
            f"{str(snapshot.root)!r} holds no {labels[0]} code to heal, nor {' or '.join(labels[1:])}",
            remedy="name a folder with source files",
        )
    chosen = _given(command, free, only) if command else _detected(snapshot, free, protected, python)
    facts = LANGUAGES[chosen.language]
    if not any(is_source(name, chosen.language) for name in free):
        raise UsageError(
            f"{' '.join(chosen.command)!r} tests {facts.label}, and there is no {facts.label} code to heal",
            remedy='say how to test the code that is there: --test "COMMAND"',
        )
    return chosen


def _refuse_left_out(snapshot: Snapshot) -> None:
    """Where the only code that is there was not taken: say which, and why.

    Raises:
        UsageError: There is some.
    """
    for entry in snapshot.skipped:
        path, _, reason = entry.removesuffix(")").rpartition(" (")
        if languages_of_files((path,)):
            raise UsageError(
                f"{str(snapshot.root)!r} holds no code that can be healed: {path!r} is left out ({reason})",
                remedy="give it another name"
                if reason == UNSPEAKABLE
                else "or name a folder with other code",
            )


def _given(command: tuple[str, ...], free: Sequence[str], only: Sequence[str]) -> DetectedCommand:
    language = language_of_command(command, free)
    if language is None:
        # Such as `make test`. What we parse comes first: of it, more than the exit status can be learnt.
        there = languages_of_files(name for name in free if not only or is_protected(name, only))
        parsed = [language for language in there if LANGUAGES[language].parsed]
        if not parsed and len(there) > 1:
            raise UsageError(
                f"{' '.join(command)!r} does not tell which language it tests",
                remedy="say which files may change: --only GLOB",
            )
        language = next(iter((*parsed, *there, *LANGUAGES)))
    return DetectedCommand(command=command, language=language, why="")


def _detected(
    snapshot: Snapshot, free: Sequence[str], protected: Sequence[str], named: Path | None
) -> DetectedCommand:
    tests = [name for name in snapshot.files if is_protected(name, protected)]
    found = detect_command(snapshot.files, tests, lambda: _has_pytest(snapshot.root, named))
    if found is None:
        raise UsageError(
            f"{str(snapshot.root)!r} holds no tests", remedy='say how to test it: --test "COMMAND"'
        )
    return replace(found, language=language_of_command(found.command, free) or found.language)


def _has_pytest(project: Path, named: Path | None) -> bool:
    interpreter = discover_interpreter(project, os.environ, named)
    return any((Path(folder) / "pytest").is_dir() for folder in interpreter.site_packages)
