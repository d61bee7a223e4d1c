"""One function in another language than Python, as a `Task`: calls that it shows decide, and tests."""

from __future__ import annotations

import re
from pathlib import Path

from suture.core.records import Check, Language, Task
from suture.errors import UsageError
from suture.judge import calls_in
from suture.loop.intake.entry_point import entry_point_of
from suture.loop.intake.given_tests import read_test
from suture.project.languages import LANGUAGES, filled
from suture.project.workspace import DEFAULT_PROTECTED, is_test_file

STUB = re.compile(
    r"\b(?:function\*?|func(?:[ \t]*\([^)\n]*\))?|const)\s+([A-Za-z_$][\w$]*)\s*(?:[(<=\[:])(?P<rest>[^\n]*)"
)
GIVES_PROMISE = re.compile(r"\basync\b|\bPromise\b")


def foreign_task(
    statement: str,
    language: Language,
    *,
    test: Path | None,
    asserts: str = "",
    entry_point: str | None = None,
) -> Task:
    """A task to write one file of code.

    Args:
        statement: In plain words or with a signature; calls in it with their results decide.
        language: What it is written in.
        test: A file of tests that the language's own runner runs; it decides too.
        asserts: Further calls with their results, one on each line.
        entry_point: The function, where the statement does not tell.

    Raises:
        UsageError: Nothing shows what the code must do, the function cannot be called with data, or the test
            file is none of that language.
    """
    facts = LANGUAGES[language]
    stub = STUB.search(statement)
    name = entry_point or (stub[1] if stub else None) or entry_point_of(statement)
    checks = _shown(statement, asserts, language, name)
    if test is not None and (not is_test_file(test.name) or not test.name.endswith(facts.endings)):
        raise UsageError(
            f"{test.name!r} is no name of a test in {facts.label}",
            remedy="name it as its test runner does, such as x.test.js or x_test.go",
        )
    if test is None and not checks:
        called = f"a call of {name!r}" if name else "a function by its name"
        raise UsageError(
            f"nothing shows what the {facts.label} code must do: {called} with a plain result",
            remedy=f"add one, such as `{name or 'add'}(1, 2) => 3`, or give --test FILE; or make a --project",
        )
    tests = {test.name: read_test(test).encode()} if test is not None else {}
    manifest = facts.layout.manifest("library", "solution")
    return Task(
        statement=statement,
        language=language,
        module=facts.layout.module,
        entry_point=name,
        files={**tests, **{path: text.encode() for path, text in manifest.items()}},
        checks=checks,
        test_command=filled(facts.layout.one_test, "", test.name) if test is not None else (),
        protected=DEFAULT_PROTECTED,
    )


def _shown(statement: str, asserts: str, language: Language, name: str | None) -> tuple[Check, ...]:
    """The calls that a statement and asserts show."""
    driver = LANGUAGES[language].calls
    if driver is None or name is None:
        return ()
    stubs = [match[0] for match in STUB.finditer(statement) if match[1] == name]
    line = next((text for text in statement.splitlines() if stubs and stubs[0] in text), "")
    awaits = GIVES_PROMISE.search(line) is not None
    given = calls_in(asserts, name, driver, "user", awaits=awaits)
    if asserts.strip() and not given:
        raise UsageError(
            f"the asserts show no call of {name!r} with a plain result", remedy=f"such as `{name}(1, 2) => 3`"
        )
    checks = (*given, *calls_in(statement, name, driver, awaits=awaits))
    if checks and (why := driver.unfit(statement, name)):
        raise UsageError(
            f"{name!r} cannot be called with plain data: {why}", remedy="give tests instead: --test FILE"
        )
    return tuple({check.id: check for check in reversed(checks)}.values())[::-1]
