"""The table of all languages, and functions that detect the language of a command, a file or a project."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import PurePosixPath

from suture.core.plugins import load_plugin, plugin_names
from suture.core.records import Language
from suture.errors import PrerequisiteError, UsageError
from suture.project.languages.compiled.cpp import CPP
from suture.project.languages.compiled.java import JAVA
from suture.project.languages.compiled.rust import RUST
from suture.project.languages.go import GO
from suture.project.languages.javascript import JAVASCRIPT, TYPESCRIPT
from suture.project.languages.language import LanguageFacts, ProjectOverview
from suture.project.languages.package_scripts import find_started_scripts
from suture.project.languages.python import PYTHON_FACTS
from suture.project.languages.reports import Runner
from suture.project.tuning import MAX_LANGUAGE_NAME_CHARS

SEPARATOR_CLIENTS = ("npm", "pnpm")
"""Package managers that pass arguments to a script only after `--`."""
SHELLS = ("sh", "bash", "dash", "zsh")
COMMAND_END = re.compile(r"&&|\|\||[;|&\n]")
"""Matches what separates the commands of a shell line."""
BUILT_IN_LANGUAGES: Mapping[Language, LanguageFacts] = {
    "python": PYTHON_FACTS,
    "javascript": JAVASCRIPT,
    "typescript": TYPESCRIPT,
    "go": GO,
    "java": JAVA,
    "rust": RUST,
    "cpp": CPP,
}
ENTRY_POINT_GROUP = "suture.languages"
"""Entry points by which installed packages provide languages."""
NAME = re.compile(rf"[a-z][a-z0-9_]{{0,{MAX_LANGUAGE_NAME_CHARS - 1}}}")
"""Matches a name that a plugin may give to its language."""


class _Languages(Mapping[Language, LanguageFacts]):
    """The built-in languages, followed by those of plugins, which are loaded on first use."""

    def __getitem__(self, name: Language) -> LanguageFacts:
        if name not in self:
            raise UsageError(
                f"there is no language {name[:MAX_LANGUAGE_NAME_CHARS]!r}",
                remedy=f"name one of {', '.join(self)}, or install the package that provides it",
            )
        return BUILT_IN_LANGUAGES[name] if name in BUILT_IN_LANGUAGES else _load_plugins()[name]

    def __contains__(self, name: object) -> bool:
        return name in BUILT_IN_LANGUAGES or name in _load_plugins()

    def __iter__(self) -> Iterator[Language]:
        yield from (*BUILT_IN_LANGUAGES, *_load_plugins())

    def __len__(self) -> int:
        return len(BUILT_IN_LANGUAGES) + len(_load_plugins())


LANGUAGES: Mapping[Language, LanguageFacts] = _Languages()
"""All languages by name. Looking up an unknown name raises a `UsageError`."""


@cache
def _load_plugins() -> Mapping[Language, LanguageFacts]:
    plugins: dict[Language, LanguageFacts] = {}
    for name in plugin_names(ENTRY_POINT_GROUP):
        facts = load_plugin(ENTRY_POINT_GROUP, name, what="language", where="an installed package")
        if name in BUILT_IN_LANGUAGES or not NAME.fullmatch(name) or not isinstance(facts, LanguageFacts):
            raise PrerequisiteError(
                f"an installed package provides the language {name!r}, which cannot be used",
                remedy="its entry point must be a LanguageFacts with an unused name, such as `lua`",
            )
        plugins[name] = facts
    return plugins


def find_language(word: str) -> Language:
    """Return the language that a word means, such as `node`.

    Raises:
        UsageError: There is no such language.
    """
    name = word.strip().lower()
    for language, facts in LANGUAGES.items():
        if name in (language, *facts.aliases):
            return language
    raise UsageError(f"there is no language {word!r}", remedy=f"name one of {', '.join(LANGUAGES)}")


def is_source(path: str, language: Language) -> bool:
    """Return whether a file is source code of a language, by its extension."""
    return path.endswith(LANGUAGES[language].extensions)


def detect_file_languages(paths: Iterable[str]) -> tuple[Language, ...]:
    """Return the languages of files, in the order of `LANGUAGES`.

    A language without a search counts only if there is no other one: a package in Python may have parts in C.
    """
    names = tuple(paths)
    languages = [language for language in LANGUAGES if any(is_source(name, language) for name in names)]
    searched = [name for name in languages if LANGUAGES[name].is_searched]
    return tuple(searched or languages)


def detect_language(argv: Sequence[str], paths: Iterable[str] = ()) -> Language | None:
    """Return the language whose test program a command starts, or `None` if its words do not show it.

    Args:
        argv: The command. A word may be a shell line.
        paths: The project's files, which decide between languages with the same programs.
    """
    names = tuple(paths)
    for word in (part for text in argv for part in re.split(r"[\s;&|()<>'\"]+", text)):
        name = PurePosixPath(word).name
        matches = [language for language, facts in LANGUAGES.items() if facts.command_pattern.fullmatch(name)]
        if matches:  # the language with the most files
            return max(matches, key=lambda language: sum(is_source(path, language) for path in names))
    return None


def find_runner(argv: Sequence[str], files: Mapping[str, bytes], language: Language) -> Runner | None:
    """Return the test runner that a command starts, if it can report each test.

    Args:
        argv: The command. For a package manager, its script is inspected.
    """
    lines = [script for script in find_started_scripts(argv, files) if script] or [" ".join(argv)]
    for runner in LANGUAGES[language].runners:
        if any(runner.starts(line) for line in lines):
            return runner
    return None


def add_report_arguments(
    argv: Sequence[str], words: Sequence[str], *, before_separator: bool = False
) -> tuple[str, ...]:
    """Return a command with the arguments that request a report.

    Args:
        argv: The command. If it is a line for a shell, its last command gets the arguments.
        words: Arguments from `Runner.arguments`, of which those that the command has already are left out. A
            script of a package manager gets them after `--`.
        before_separator: Whether the arguments must come before a `--` of the command.
    """
    given = " ".join(argv).split()
    words = [word for word in words if word not in given]
    if not words:
        return tuple(argv)
    if len(argv) == 3 and PurePosixPath(argv[0]).name in SHELLS and argv[1] == "-c":
        start = max((match.end() for match in COMMAND_END.finditer(argv[2])), default=0)
        separator = argv[2].find(" -- ", start) if before_separator else -1
        end = separator if separator >= 0 else len(argv[2])
        return (*argv[:2], f"{argv[2][:end]} {shlex.join(words)}{argv[2][end:]}")
    if before_separator and "--" in argv:
        end = tuple(argv).index("--")
        return (*argv[:end], *words, *argv[end:])
    passes_on = PurePosixPath(argv[0]).name in SEPARATOR_CLIENTS and "--" not in argv
    return (*argv, *(("--",) if passes_on else ()), *words)


@dataclass(frozen=True, kw_only=True)
class DetectedCommand:
    """A test command that was detected.

    Attributes:
        command: The argument vector.
        language: Language of the code that it tests.
        why: How it was found, in words.
    """

    command: tuple[str, ...]
    language: Language
    why: str


def detect_command(
    files: Mapping[str, bytes], tests: Collection[str], has_pytest: Callable[[], bool]
) -> DetectedCommand | None:
    """Return the test command of a project, or `None` if its files do not show one.

    Args:
        tests: Paths of the tests among them.
        has_pytest: Returns whether the project's Python has pytest. It is called only if unittest would be enough.

    Raises:
        UsageError: The project has tests in more than one language.
    """
    commands: list[DetectedCommand] = []
    for language, facts in LANGUAGES.items():
        language_tests = [path for path in tests if is_source(path, language)]
        project = ProjectOverview(files=files, tests=language_tests, has_pytest=has_pytest)
        if facts.detect_test_command is not None and (detected := facts.detect_test_command(project)):
            command, why = detected
            commands.append(DetectedCommand(command=command, language=language, why=why))
    if len(commands) > 1:
        choices = " or ".join(f"`{' '.join(choice.command)}` ({choice.why})" for choice in commands)
        raise UsageError(
            f"the project is tested in more than one language: {choices}",
            remedy='choose one: --test "COMMAND"',
        )
    return commands[0] if commands else None
