"""What a new project of a language looks like."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from suture.core.records import ProjectKind

Words = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class ProjectLayout:
    """Where things lie in a new project, and what starts them; `{name}` and `{entry}` stand for its own.

    Attributes:
        module: The file of a task that is one function.
        entry: The file that a project begins with, by its kind.
        manifest: The files that say what the project is: kind and name -> path -> text.
        ignored: Lines of its `.gitignore`.
        build: Commands that must succeed before anything is started.
        start: The command that starts it.
        by_hand: The same as a person types it.
        load: The command that only loads a library, and fails where it offers nothing.
        tests: The command that runs its tests.
        one_test: The command that runs the tests of one file, `{entry}`.
        test_file: Where generated tests go.
        tester: What these are written with, in words.
        style: What whoever writes the code must know, in words.
        adding: How a feature of a project that is there asks for packages, in words.
        single: What whoever writes one function must know, in words; `{name}` is the function's.
        crash: Text in what a program prints that shows that it crashed.
    """

    module: str
    entry: Mapping[ProjectKind, str]
    manifest: Callable[[ProjectKind, str], Mapping[str, str]]
    ignored: Words
    build: tuple[Words, ...]
    start: Words
    by_hand: Words
    load: Words
    tests: Words
    one_test: Words
    test_file: str
    tester: str
    style: str
    adding: str
    single: str
    crash: str


def filled(words: Words, name: str, entry: str) -> Words:
    """A command with a project's name and entry file in their places."""
    return tuple(word.replace("{name}", name).replace("{entry}", entry) for word in words)
