"""One file of code in another language than Python, as a `Task`: tests that its own runner runs decide."""

from __future__ import annotations

import re
from pathlib import Path

from suture.errors import UsageError
from suture.languages import LANGUAGES, filled
from suture.records import Language, Task
from suture.tasks.entry_point import entry_point_of
from suture.tasks.given_tests import read_test
from suture.workspace import DEFAULT_PROTECTED, is_test_file

STUB = re.compile(r"\b(?:function\*?|func|const)\s+([A-Za-z_$][\w$]*)\s*(?:[(<=])")


def foreign_task(
    statement: str, language: Language, *, test: Path | None, entry_point: str | None = None
) -> Task:
    """A task to write one file of code.

    Args:
        statement: In plain words or with a signature.
        language: What it is written in.
        test: A file of tests that the language's own runner runs; it decides.
        entry_point: The function, where the statement does not tell.

    Raises:
        UsageError: There is no test file, or it is none of that language.
    """
    facts = LANGUAGES[language]
    if test is None:
        raise UsageError(
            f"code in {facts.label} is judged by tests of its own: examples and asserts judge Python alone",
            remedy="give them with --test FILE, such as x.test.js or x_test.go; or make a project: --project",
        )
    if not is_test_file(test.name) or not test.name.endswith(facts.endings):
        raise UsageError(
            f"{test.name!r} is no name of a test in {facts.label}",
            remedy="name it as its test runner does, such as x.test.js or x_test.go",
        )
    stub = STUB.search(statement)
    manifest = facts.layout.manifest("library", "solution")
    return Task(
        statement=statement,
        language=language,
        module=facts.layout.module,
        entry_point=entry_point or (stub[1] if stub else None) or entry_point_of(statement),
        files={test.name: read_test(test).encode(), **{path: t.encode() for path, t in manifest.items()}},
        test_command=filled(facts.layout.one_test, "", test.name),
        protected=DEFAULT_PROTECTED,
    )
