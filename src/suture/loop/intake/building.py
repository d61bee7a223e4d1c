"""From what a user types to a `Task`: a statement with tests, or a folder with a failing test command."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from suture.core.records import Check, Language, Task
from suture.errors import UsageError
from suture.judge import asserts_in, examples_in
from suture.loop.intake.entry_point import entry_point_of
from suture.loop.intake.foreign_code import foreign_task
from suture.loop.intake.given_tests import is_pytest_source, read_bounded, read_test, tests_by_content
from suture.loop.intake.intake import chosen_command
from suture.loop.intake.module_under_test import (
    asks_for_several,
    module_under_test,
    new_modules,
    wanted_files,
)
from suture.project.languages import LANGUAGES, is_source
from suture.project.test_commands import files_deciding, literal_glob, words_of
from suture.project.workspace import (
    DEFAULT_PROTECTED,
    Snapshot,
    default_protected,
    earlier_versions,
    is_protected,
    take_snapshot,
)

DEFAULT_MODULE = "solution.py"
MOST_WORDS_CHARS = 6000
"""Of what a user says of code to heal."""


def write_task(
    statement: str,
    *,
    test: Path | None = None,
    asserts: str = "",
    entry_point: str | None = None,
    several: bool = False,
    language: Language = "python",
) -> Task:
    """A task to write new code.

    Args:
        statement: In plain words, or a signature with a docstring.
        test: A file of tests: pytest's, or plain asserts.
        asserts: Plain asserts as text; in another language than Python calls with their results.
        entry_point: The name to define, where the statement does not tell.
        several: Whether it may end in other files than those that are asked for by name.
        language: What it is written in.

    Raises:
        UsageError: The statement is empty, or the test file cannot be used.
    """
    if not statement.strip():
        raise UsageError(
            "the task is empty", remedy='say what to write, as in `suture run "Write a function ..."`'
        )
    if not LANGUAGES[language].parsed:
        return foreign_task(statement, language, test=test, asserts=asserts, entry_point=entry_point)
    source = read_test(test) if test else ""
    name = entry_point or entry_point_of(statement)
    given = asserts
    wanted = wanted_files(statement)
    several = several or len(wanted) > 1 or asks_for_several(statement)
    if test is not None and is_pytest_source(source):
        path = _path_inside(test)
        module, imported = module_under_test(source, path, test.resolve().parent)
        tested = new_modules(source, path, test.resolve().parent)
        beside = tuple(dict.fromkeys(name for name in (*tested, *wanted) if name != module))
        return Task(
            statement=statement,
            module=module,
            beside=beside,
            several=several or bool(beside),
            entry_point=entry_point or imported or name,
            files=_with_conftest(test, path),
            checks=(*asserts_in(asserts, provenance="user"), *examples_in(statement, name)),
            test_command=("python", "-m", "pytest", "-q", path),
            protected=DEFAULT_PROTECTED,
        )
    if test is not None:
        given = f"{asserts}\n{source}"
    checks: tuple[Check, ...] = (*asserts_in(given, provenance="user"), *examples_in(statement, name))
    if test is not None and not any(check.provenance == "user" for check in checks):
        raise UsageError(
            f"{str(test)!r} holds no test: neither a test function nor an assert",
            remedy="write one into it, such as: assert double(2) == 4",
        )
    module, *others = wanted or (DEFAULT_MODULE,)
    return Task(
        statement=statement,
        module=module,
        beside=tuple(others),
        several=several,
        entry_point=name,
        checks=checks,
    )


def heal_task(
    path: Path,
    *,
    test: str | Sequence[str] | None = None,
    protect: Iterable[str] = (),
    only: Iterable[str] = (),
    since: str | None = None,
    secrets: Sequence[str] = (),
    python: Path | None = None,
    words: str = "",
) -> tuple[Task, Snapshot]:
    """A task to repair code that exists, and the snapshot it was made of.

    Args:
        path: A project folder, or one file in it.
        test: The test command; where none is given, the one that the project's files show: pytest, unittest,
            `npm test` or `go test ./...`.
        protect: Globs of files that must stay as they are, besides the tests and the project's settings.
            What the test command names is protected too.
        only: Globs of the files that may change; any that is not protected where there are none.
        since: The oldest commit that may have broken the tests; the last few where not given.
        secrets: Globs of files that are part of it although they look like secrets.
        python: The interpreter that the user has named for the tests.
        words: What the user says of it, such as a bug report; a model reads both ends of it.

    Raises:
        UsageError: There is nothing there to heal, no way to test it or more than one, the command needs a
            shell, or there is no such commit.
        PrerequisiteError: The project's Python environment is broken.
    """
    snapshot = take_snapshot(path, secrets=secrets)
    # What a build has written, the next one writes again: a repair there would be lost.
    built = (literal_glob(name) for name in snapshot.built)
    held = (literal_glob(name) for name in tests_by_content(snapshot.files))
    given, chosen = (*default_protected(), *protect, *built, *held), tuple(only)
    typed = words_of(test or ())
    if test is not None and not typed:
        raise UsageError("the test command is empty", remedy="leave it out: the project's files show one")
    wanted = chosen_command(typed, snapshot, given, chosen, python)
    label = LANGUAGES[wanted.language].label
    # What the command names decides whether it passes: a candidate that may write it passes at will.
    named = files_deciding(wanted.command, snapshot.files, snapshot.root)
    protected = (*given, *(literal_glob(name) for name in named if not is_protected(name, given)))
    code = [name for name in snapshot.files if is_source(name, wanted.language)]
    open_to_change = [name for name in code if not is_protected(name, protected)]
    if not open_to_change:
        raise UsageError(
            f"the test command names all of the code ({', '.join(named)}), which must not decide on itself",
            remedy="put the tests into a file of their own, and name that one",
        )
    if chosen and not [name for name in open_to_change if is_protected(name, chosen)]:
        raise UsageError(
            f"no file may change: {', '.join(chosen)} names no {label} code that is not protected",
            remedy="give --only globs as in a .gitignore, relative to the project",
        )
    task = Task(
        statement=_ends_of(words.strip()),
        kind="heal",
        language=wanted.language,
        files=snapshot.files,
        test_command=wanted.command,
        test_origin=wanted.why,
        protected=protected,
        only=chosen,
        earlier=earlier_versions(snapshot.root, snapshot.files, since, set(open_to_change).__contains__),
        since=since or "",
        left_out=snapshot.left_out,
    )
    return task, snapshot


def _ends_of(text: str) -> str:
    """A text that a small model's context has room for: of a long log the beginning and the end tell most."""
    if len(text) <= MOST_WORDS_CHARS:
        return text
    half = MOST_WORDS_CHARS // 2
    left_out = len(text) - 2 * half
    return f"{text[:half]}\n... {left_out:,} characters are left out here ...\n{text[-half:]}"


def example_task() -> Task:
    """The built-in task of `suture run --example`."""
    return write_task(
        "def merge_intervals(intervals):\n"
        '    """Merge the intervals that overlap or touch.\n\n'
        "    Intervals are [start, end] pairs with start <= end, in any order.\n"
        "    The result is sorted.\n\n"
        "    >>> merge_intervals([[6, 8], [1, 3], [2, 4]])\n"
        "    [[1, 4], [6, 8]]\n"
        "    >>> merge_intervals([[1, 2], [2, 3]])\n"
        "    [[1, 3]]\n"
        "    >>> merge_intervals([[1, 10], [2, 3]])\n"
        "    [[1, 10]]\n"
        "    >>> merge_intervals([])\n"
        "    []\n"
        '    """\n'
    )


def _path_inside(test: Path) -> str:
    """Where the test lies behind the wall: as under the current folder, else by its name alone."""
    try:
        return test.resolve().relative_to(Path.cwd()).as_posix()
    except ValueError:
        return test.name


def _with_conftest(test: Path, path: str) -> dict[str, bytes]:
    files = {path: read_bounded(test) or b""}
    conftest = read_bounded(test.parent / "conftest.py")
    if conftest is not None:
        files[str(Path(path).parent / "conftest.py")] = conftest
    return files
