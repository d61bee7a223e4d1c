"""The languages there are, and which one a command or a file speaks of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from suture.records import Language


@dataclass(frozen=True, kw_only=True)
class LanguageFacts:
    """What is to know of a language.

    Attributes:
        label: Its name, for people and models.
        fence: What stands behind the opening fence of a block of its code.
        endings: Of its source files.
        program: What must be installed for its tests.
        commands: Programs that run its tests.
    """

    label: str
    fence: str
    endings: tuple[str, ...]
    program: str
    commands: re.Pattern[str]


LANGUAGES: Mapping[Language, LanguageFacts] = {
    "python": LanguageFacts(
        label="Python",
        fence="python",
        endings=(".py",),
        program="python",
        commands=re.compile(r"python(3(\.\d+)?)?|pytest|py\.test|tox|nox|unittest"),
    ),
    "javascript": LanguageFacts(
        label="JavaScript",
        fence="javascript",
        endings=(".js", ".cjs", ".mjs", ".jsx"),
        program="node",
        commands=re.compile(r"node|npm|npx|yarn|pnpm|jest|mocha|vitest|ava|tap"),
    ),
    "go": LanguageFacts(
        label="Go", fence="go", endings=(".go",), program="go", commands=re.compile(r"go|gotestsum")
    ),
}


def is_source(path: str, language: Language) -> bool:
    """Whether a file is source code of a language, by its name."""
    return path.endswith(LANGUAGES[language].endings)


def languages_of_files(paths: Iterable[str]) -> tuple[Language, ...]:
    """The languages of some files, in the order in which `LANGUAGES` has them."""
    names = tuple(paths)
    return tuple(language for language in LANGUAGES if any(is_source(name, language) for name in names))


def language_of_command(argv: Sequence[str]) -> Language | None:
    """The language whose test program a command starts; `None` where its words do not tell.

    Args:
        argv: The command; a word may itself be a line for a shell.
    """
    for word in (part for text in argv for part in re.split(r"[\s;&|()<>'\"]+", text)):
        name = PurePosixPath(word).name
        for language, facts in LANGUAGES.items():
            if facts.commands.fullmatch(name):
                return language
    return None
