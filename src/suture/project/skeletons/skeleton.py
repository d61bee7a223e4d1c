"""Load the skeleton for a kind of project and a language."""

from __future__ import annotations

import re
import textwrap
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

from suture.core.records import Language, ProjectKind

NAME_WORD = "project_name"
"""Placeholder for the project's name in the stored files and their paths."""
SAMPLE_WORD = "sample_path"
"""Placeholder for the path of the sample data in the stored files."""
TASK_WORD = "task_line"
"""Placeholder for the first line of the task in a beginning."""
TYPE_COMMENT = re.compile(r"/\*(: .*?) ?\*/")
"""A type in a stored JavaScript file, such as `path/*: string */`. Only the TypeScript made of it has the type."""
TYPESCRIPT_FORMS = (
    (re.compile(r'^"use strict";\n\n', re.MULTILINE), ""),
    (re.compile(r"^const (\{.*\}) = require\((.*)\);$", re.MULTILINE), r"import \1 from \2;"),
    (re.compile(r"^const (\w+) = require\(", re.MULTILINE), r"import \1 = require("),
    (re.compile(r"^module\.exports = (\{ .* \};)$", re.MULTILINE), r"export \1"),
    (re.compile(r"\b((?:src|test)/\w+)\.js\b"), r"\1.ts"),
)
"""How stored JavaScript is written in TypeScript: pattern -> replacement."""
MAX_TASK_LINE_CHARS = 200
"""Characters of the task's first line in a beginning; it is cut at a word. With 80, a model missed what the task asked
for."""
DESCRIPTION_PATH = "skeleton.toml"
PROGRAM_KEY = "program"
"""The entry of a TypeScript skeleton that names the JavaScript one of which its program is made."""


@dataclass(frozen=True, kw_only=True)
class Skeleton:
    """The files of a program that runs, and what a model needs to know to write the one that is missing.

    Attributes:
        file: Path of the file that the model writes.
        rules: What this file must hold.
        beginning: How the file begins, for a model that continues a given prefix. It ends without a blank, because
            tokens of words start with one.
        example: Such a file for another task.
        example_task: That task.
        example_word: The subject of the example. A task that names it may get the same names in its code.
        example_pattern: What only code in lower case that repeats the example contains: its subject and a name that
            it defines. The subject alone may also occur in a task about a garden.
        readme: What the README says about the files.
        stops: Strings before which the file ends, for a model that would write more than is asked for.
        files: All files, path -> text, with a version of `file` that holds nothing.
        words: Words of which a task must hold one; empty if the skeleton suits any task of its kind.
        other_frameworks: Names in a task that ask for a framework other than the skeleton's.
    """

    file: str
    rules: str
    beginning: str
    example: str
    example_task: str
    example_word: str
    example_pattern: str
    readme: str
    files: Mapping[str, str]
    stops: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    other_frameworks: tuple[str, ...] = ()

    def suits(self, statement: str) -> bool:
        """Return whether a task is what the skeleton is for, and names no other framework."""
        # "REST" is an architecture, "the rest" is not.
        stated = {word if word == "REST" else word.lower() for word in re.findall(r"\w+", statement)}
        return (not self.words or bool(stated & {*self.words})) and not stated & {*self.other_frameworks}

    def begin(self, statement: str) -> str:
        """Return the beginning of the file for a task, whose first line may become its docstring."""
        line = re.sub(r"[\"\\]", "'", statement.strip().partition("\n")[0]).strip().rstrip(".")
        return self.beginning.replace(TASK_WORD, textwrap.shorten(line, MAX_TASK_LINE_CHARS, placeholder=""))

    def repeats_example(self, code: str, statement: str) -> bool:
        """Return whether code is about the example and not about the task."""
        is_similar = re.search(self.example_pattern, code.lower(), re.DOTALL) is not None
        return is_similar and self.example_word not in statement.lower()


def find_skeleton(
    language: Language, kind: ProjectKind, *, name: str = NAME_WORD, sample: str = SAMPLE_WORD
) -> Skeleton | None:
    """Return the skeleton for a kind of project in a language; `None` if there is none.

    Args:
        name: The project's name.
        sample: Path of the sample data.
    """
    texts = dict(_load_texts(language, kind))
    if not texts:
        return None
    words = {NAME_WORD: name, NAME_WORD.upper(): name.upper(), SAMPLE_WORD: sample}
    for word, replacement in words.items():
        texts = {
            path.replace(word, replacement): text.replace(word, replacement) for path, text in texts.items()
        }
    description = tomllib.loads(texts.pop(DESCRIPTION_PATH))
    description.pop(PROGRAM_KEY, None)
    lists: dict[str, Any] = {
        key: tuple(description.pop(key, ())) for key in ("stops", "words", "other_frameworks")
    }
    example = texts.pop(f"example.{description['file'].rpartition('.')[2]}")
    return Skeleton(**description, example=example, files=texts, **lists)


@cache
def _load_texts(language: Language, kind: ProjectKind) -> Mapping[str, str]:
    """Return the files of a skeleton, path -> text; empty if there is none.

    The program of a TypeScript skeleton is that of the JavaScript one with types, so that only what the model reads and
    writes is stored for both.
    """
    texts = _read_folder(f"{language}_{kind}")
    if not texts:
        return {}
    source = tomllib.loads(texts[DESCRIPTION_PATH]).get(PROGRAM_KEY)
    if source is not None:
        stored = _read_folder(source)
        written = tomllib.loads(stored[DESCRIPTION_PATH])["file"]
        program = {path: text for path, text in stored.items() if "/" in path and path != written}
        texts |= {re.sub(r"\.js$", ".ts", path): _add_types(text) for path, text in program.items()}
    return {
        path: TYPE_COMMENT.sub("", text) if path.endswith(".js") else text for path, text in texts.items()
    }


def _add_types(text: str) -> str:
    """Return stored JavaScript as TypeScript."""
    for pattern, replacement in TYPESCRIPT_FORMS:
        text = pattern.sub(replacement, text)
    return TYPE_COMMENT.sub(r"\1", text)


def _read_folder(name: str) -> dict[str, str]:
    folder = resources.files("suture.project.skeletons") / name
    return dict(_read_files(folder)) if folder.is_dir() else {}


def _read_files(folder: Traversable, prefix: str = "") -> Iterator[tuple[str, str]]:
    for entry in folder.iterdir():
        if entry.is_file() and not entry.name.endswith(".pyc"):
            yield f"{prefix}{entry.name}", entry.read_text(encoding="utf-8")
        elif entry.is_dir():
            yield from _read_files(entry, f"{prefix}{entry.name}/")
