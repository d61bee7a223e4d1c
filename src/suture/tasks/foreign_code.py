"""Code in another language than Python, as a `Task`: one file, with examples, asserts or a file of tests."""

from __future__ import annotations

import re
from pathlib import Path

from suture.checks import asserts_in, examples_in
from suture.errors import UsageError
from suture.languages import LANGUAGES, filled
from suture.records import Language, Task
from suture.tasks.entry_point import entry_point_of
from suture.tasks.given_tests import read_test
from suture.workspace import DEFAULT_PROTECTED, is_test_file

STUB = re.compile(r"\b(?:function\*?|func|const)\s+([A-Za-z_$][\w$]*)\s*(?:[(<=])")


def foreign_task(
    statement: str,
    language: Language,
    *,
    test: Path | None = None,
    asserts: str = "",
    entry_point: str | None = None,
) -> Task:
    """A task to write one file of code.

    Args:
        statement: In plain words or with a signature; examples such as `add(1, 2) => 3` decide.
        language: What it is written in.
        test: A file of tests that the language's own runner runs.
        asserts: Asserts in Python on the code's functions, such as `assert add(1, 2) == 3`.
        entry_point: The function, where the statement does not tell.

    Raises:
        UsageError: The test file is none of that language.
    """
    facts = LANGUAGES[language]
    stub = STUB.search(statement)
    name = entry_point or (stub[1] if stub else None) or entry_point_of(statement)
    files: dict[str, bytes] = {}
    command: tuple[str, ...] = ()
    if test is not None:
        if not is_test_file(test.name) or not test.name.endswith(facts.endings):
            raise UsageError(
                f"{test.name!r} is no name of a test in {facts.label}",
                remedy="name it as its test runner does, such as x.test.js or x_test.go",
            )
        manifest = facts.layout.manifest("library", "solution")
        files = {test.name: read_test(test).encode(), **{p: t.encode() for p, t in manifest.items()}}
        command = filled(facts.layout.one_test, "", test.name)
    return Task(
        statement=statement,
        language=language,
        module=facts.layout.module,
        entry_point=name,
        files=files,
        checks=(*asserts_in(asserts), *examples_in(statement, name)),
        test_command=command,
        protected=DEFAULT_PROTECTED,
    )
