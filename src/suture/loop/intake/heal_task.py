"""Build a task to repair existing code from its folder, and choose the test command and the language."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from suture.core.records import Task
from suture.errors import UsageError
from suture.loop.intake.test_subject import find_tests_by_content
from suture.loop.tuning import MAX_BUG_REPORT_CHARS
from suture.project.languages import (
    LANGUAGES,
    DetectedCommand,
    add_prefix,
    detect_command,
    detect_file_languages,
    detect_language,
    find_wrapped_tests,
    is_source,
)
from suture.project.languages.diagnostics import CONFIGURATION_GLOBS, find_tool, require_tool
from suture.project.mixed_files import find_mixed_files
from suture.project.test_commands import (
    escape_glob,
    find_deciding_files,
    find_deciding_tool_files,
    split_command,
)
from suture.project.workspace import (
    Snapshot,
    default_protected,
    find_earlier_versions,
    is_protected,
    is_test_file,
    render_exclusion,
    take_snapshot,
    take_snapshot_with_parents,
)
from suture.sandbox import discover_interpreter

ROOT_FILES = ("pyproject.toml", "setup.py", "setup.cfg", "package.json", "go.mod", "Cargo.toml", ".git")
"""Files and folders that the root of a project has."""
TEST_FOLDERS = ("tests", "test")
MAX_PARENTS = 8
"""Folders above some code in which the root of its project is looked for."""


class NoTestsFound(UsageError):
    """A project holds no tests, and no command says how to test it. The web page has its own advice for this."""


def build_heal_task(
    path: Path,
    *,
    test: str | Sequence[str] | None = None,
    protect: Iterable[str] = (),
    only: Iterable[str] = (),
    since: str | None = None,
    secrets: Sequence[str] = (),
    python: Path | None = None,
    bug_report: str = "",
    reads_parents: bool = True,
) -> tuple[Task, Snapshot]:
    """Build a task to repair existing code, and return it with the snapshot of the project.

    Args:
        path: A project folder, or one file in it.
        test: The test command; by default the one that the project's files suggest.
        protect: Globs of files that must not change, besides the tests and the project's configuration.
            The files that the test command names are protected too.
        only: Globs of the files that may change; by default every file that is not protected.
        since: The oldest commit that may have broken the tests; by default the last few commits.
        secrets: Globs of files that belong to the project although they look like secrets.
        python: The Python interpreter that the user has chosen for the tests.
        reads_parents: Whether files above the folder may be read that decide its tests.

    Raises:
        UsageError: There is nothing to heal, there is no test command or more than one, the command needs a
            shell, or there is no such commit.
        PrerequisiteError: The project's Python environment is broken.
    """
    read = take_snapshot_with_parents if reads_parents else take_snapshot
    snapshot = read(path, secrets=secrets)
    task = build_task_from_snapshot(
        snapshot, test=test, protect=protect, only=only, since=since, python=python, bug_report=bug_report
    )
    return task, snapshot


def build_task_from_snapshot(
    snapshot: Snapshot,
    *,
    test: str | Sequence[str] | None = None,
    protect: Iterable[str] = (),
    only: Iterable[str] = (),
    since: str | None = None,
    python: Path | None = None,
    bug_report: str = "",
    protects_outside: bool = True,
) -> Task:
    """Build a task to repair the code in a snapshot; other arguments and errors are as for `build_heal_task`.

    Args:
        protects_outside: Whether files outside of the snapshot's folder must not change.
    """
    # A build overwrites the files that it generates: a repair in one of them would be lost.
    generated = (escape_glob(name) for name in snapshot.built_files)
    tests = frozenset(find_tests_by_content(snapshot.files))
    outside = _globs_outside(snapshot.folder) if protects_outside else ()
    own = _move_globs(protect, snapshot.folder)
    # The tests in these files are compared statement by statement, so the files may change.
    mixed = find_mixed_files(snapshot.files)
    # Files with inline tests, as in Rust, are code by their names, which no glob of tests covers.
    opened = [name for name in mixed if name in tests or is_test_file(name)]
    fixed = (escape_glob(name) for name in (*sorted(tests), *snapshot.links))
    defaults = (*default_protected(), *fixed, *_globs_without(opened))
    protected: tuple[str, ...] = (*outside, *defaults, *own, *generated)
    writable = _move_globs(only, snapshot.folder)
    command = split_command(test or ())
    if test is not None and not command:
        raise UsageError("the test command is empty", remedy="leave it out: the project's files show one")
    tools, command = split_tools(add_prefix(snapshot.folder, (), command) if command else (), snapshot.files)
    protected += CONFIGURATION_GLOBS if tools else ()
    if tools and not command:
        detected = _choose_guard(tools, snapshot, protected, python)
    else:
        detected = _choose_test_command(command, snapshot, protected, writable, python)
        _require_one_language(tools, detected.language)
    # A candidate that may write a file which the command names could make the command pass at will. The files that
    # a linter checks do not decide what it reports.
    deciding = [
        name
        for argv in dict.fromkeys((command, detected.command))
        for name in find_deciding_files(argv, snapshot.files, snapshot.root)
        if name not in mixed
    ]
    deciding += find_deciding_tool_files(tools, snapshot.files, snapshot.root)
    protected += tuple(escape_glob(name) for name in deciding if not is_protected(name, protected))
    code = [name for name in snapshot.files if is_source(name, detected.language)]
    changeable = [name for name in code if not is_protected(name, protected)]
    if not changeable:
        raise UsageError(
            f"the test command names all of the code ({', '.join(deciding)}), which must not decide on itself",
            remedy="put the tests into a file of their own, and name that one",
        )
    # `is_protected` only matches globs, here those of the files that may change.
    if writable and not [name for name in changeable if is_protected(name, writable)]:
        label = LANGUAGES[detected.language].label
        raise UsageError(
            f"no file may change: {', '.join(writable)} names no {label} code that is not protected",
            remedy="give --only globs as in a .gitignore, relative to the project",
        )
    return Task(
        statement=_shorten_bug_report(bug_report.strip()),
        kind="heal",
        language=detected.language,
        files=snapshot.files,
        test_command=detected.command,
        test_origin=detected.why,
        tools=tools,
        tests_only_guard=bool(tools and not command),
        protected=protected,
        user_protected=(*outside, *own),
        writable=writable,
        earlier_versions=find_earlier_versions(
            snapshot.root, snapshot.files, since, set(changeable).__contains__
        ),
        since=since or "",
        excluded_files=snapshot.excluded_files,
        links=snapshot.links,
    )


def _shorten_bug_report(text: str) -> str:
    """Cut a long bug report in the middle: the beginning and the end of a log say most."""
    if len(text) <= MAX_BUG_REPORT_CHARS:
        return text
    half = MAX_BUG_REPORT_CHARS // 2
    left_out = len(text) - 2 * half
    return f"{text[:half]}\n... {left_out:,} characters are left out here ...\n{text[-half:]}"


def _choose_test_command(
    command: tuple[str, ...],
    snapshot: Snapshot,
    protected: Sequence[str],
    only: Sequence[str],
    python: Path | None,
) -> DetectedCommand:
    """Return the user's test command, or detect one if it is empty, and the language that it tests."""
    unprotected = [name for name in snapshot.files if not is_protected(name, protected)]
    if not detect_file_languages(unprotected):
        raise _no_code_error(snapshot)
    if command:
        detected = _recognise_command(command, unprotected, only, snapshot)
    else:
        detected = _detect_command(snapshot, unprotected, protected, python)
    label = LANGUAGES[detected.language].label
    if not any(is_source(name, detected.language) for name in unprotected):
        raise UsageError(
            f"{' '.join(detected.command)!r} tests {label}, and there is no {label} code to heal",
            remedy='say how to test the code that is there: --test "COMMAND"',
        )
    return detected


def _no_code_error(snapshot: Snapshot) -> UsageError:
    """Return the error that names the code file which the snapshot left out, if there is one."""
    for path, reason in snapshot.skipped.items():
        if detect_file_languages((path,)):
            return UsageError(
                f"{str(snapshot.root)!r} holds no code that can be healed: {path!r} is left out"
                f" ({render_exclusion(reason)})",
                remedy="rename it" if reason == "unprintable_name" else "name a folder with other code",
            )
    *labels, last = (facts.label for facts in LANGUAGES.values())
    return UsageError(
        f"there is no code to heal in {str(_find_path(snapshot))!r}",
        remedy=f"name a folder with code in {', '.join(labels)} or {last}",
    )


def _find_path(snapshot: Snapshot) -> Path:
    """Return the folder of a project, or its only file."""
    return snapshot.root / (next(iter(snapshot.files)) if len(snapshot.files) == 1 else "")


def _globs_without(paths: Iterable[str]) -> Iterator[str]:
    """Yield globs that exclude files from earlier globs that cover the files, or a folder around them."""
    names = sorted(paths)
    # A folder sorts before the folders in it. The files come last, or the folder of one would cover another.
    folders = {str(folder) for name in names for folder in PurePosixPath(name).parents} - {"."}
    for folder in map(escape_glob, sorted(folders)):
        yield from (f"!{folder}/", f"{folder}/*")
    yield from (f"!{escape_glob(name)}" for name in names)


def _globs_outside(folder: str) -> tuple[str, ...]:
    """Return globs of all files outside of a folder; none if the folder is the whole project."""
    parts = folder.split("/") if folder else []
    paths = [escape_glob("/".join(parts[:count])) for count in range(1, len(parts) + 1)]
    above = ["", *paths][: len(paths)]
    return tuple(
        glob for outer, path in zip(above, paths, strict=True) for glob in (f"{outer}/*", f"!{path}/")
    )


def _move_globs(globs: Iterable[str], folder: str) -> tuple[str, ...]:
    """Return the globs that mean the same files relative to the project as `globs` do relative to a folder."""
    if not folder:
        return tuple(globs)
    start = escape_glob(folder)
    return tuple(
        f"{start}/{glob.lstrip('/')}" if "/" in glob.rstrip("/") else f"{start}/**/{glob}" for glob in globs
    )


def split_tools(
    command: tuple[str, ...], files: Mapping[str, bytes]
) -> tuple[tuple[tuple[str, ...], ...], tuple[str, ...]]:
    """Return (commands of linters, type checkers and compilers that a command runs, the test command).

    A command that runs anything else too is judged as a whole, and has no tools.
    """
    if find_tool(command) is not None:
        return (command,), ()
    wrapped = find_wrapped_tests(command, files)
    if wrapped is None or not wrapped.is_whole or not wrapped.tools:
        return (), command
    return wrapped.tools, wrapped.command


def _suggest_tests(path: Path) -> str:
    """Return how to find the tests of code that has none next to it: perhaps it is only a part of a project."""
    for folder in path.parents[:MAX_PARENTS]:
        is_root = any((folder / name).exists() for name in ROOT_FILES)
        if is_root and any((folder / name).is_dir() for name in TEST_FOLDERS):
            inner = path.relative_to(folder).as_posix() + ("/" if path.is_dir() else "")
            shown = min(os.path.relpath(folder), str(folder), key=len)
            command = shlex.join(("suture", "heal", shown, "--only", inner))
            return f"its project is {str(folder)!r}: {command}"
        if (folder / ".git").exists():
            break
    if path.is_file() and len([*path.parent.iterdir()]) > 1:
        shown = min(os.path.relpath(path.parent), str(path.parent), key=len)
        return f"if its folder holds them: {shlex.join(('suture', 'heal', shown, '--only', path.name))}"
    return 'say how to test it: --test "COMMAND"; to write new code: suture run "TASK"'


def _choose_guard(
    tools: Sequence[tuple[str, ...]], snapshot: Snapshot, protected: Sequence[str], python: Path | None
) -> DetectedCommand:
    """Return the tests that guard what tools decide about, and the language; no command if there are none."""
    unprotected = [name for name in snapshot.files if not is_protected(name, protected)]
    allowed = _find_tool_languages(tools) or tuple(LANGUAGES)
    counts = {language: sum(is_source(name, language) for name in unprotected) for language in allowed}
    if not any(counts.values()):
        raise _no_code_error(snapshot)
    language = max(counts, key=lambda name: counts[name])
    try:
        detected = _detect_command(snapshot, unprotected, protected, python)
    except UsageError:
        return DetectedCommand(command=(), language=language, why="")
    return (
        detected if detected.language in allowed else DetectedCommand(command=(), language=language, why="")
    )


def _find_tool_languages(tools: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the languages that all of some tools check; empty if each checks any.

    Raises:
        UsageError: There is no such language.
    """
    known = [languages for argv in tools if (languages := require_tool(argv).tool.languages)]
    common = [language for language in next(iter(known), ()) if all(language in other for other in known)]
    if known and not common:
        raise _mixed_languages_error(tools)
    return tuple(language for language in common if language in LANGUAGES)


def _require_one_language(tools: Sequence[tuple[str, ...]], language: str) -> None:
    languages = _find_tool_languages(tools)
    if languages and language not in languages:
        raise _mixed_languages_error(tools)


def _mixed_languages_error(tools: Sequence[tuple[str, ...]]) -> UsageError:
    return UsageError(
        f"the commands check more than one language: {', '.join(map(' '.join, tools))}",
        remedy="heal each language by a run of its own, with --test",
    )


def _recognise_command(
    command: tuple[str, ...], unprotected: Sequence[str], only: Sequence[str], snapshot: Snapshot
) -> DetectedCommand:
    """Return the user's command, or the test command that it only wraps, with the language that it tests."""
    wrapped = find_wrapped_tests(command, snapshot.files)
    if wrapped is not None and wrapped.is_whole:
        inner = _recognise_command(wrapped.command, unprotected, only, snapshot)
        return replace(inner, why=f"{' '.join(command)} runs it")
    tests = wrapped.command if wrapped is not None else ()
    language = detect_language(tests or command, unprotected)
    if language is None:
        # The command names no language, as in `make test`. A language that we parse comes first, because its tests tell
        # more than an exit status.
        languages = detect_file_languages(
            name for name in unprotected if not only or is_protected(name, only)
        )
        parsed = [language for language in languages if LANGUAGES[language].parsed]
        if not parsed and len(languages) > 1:
            raise UsageError(
                f"{' '.join(command)!r} does not tell which language it tests",
                remedy="say which files may change: --only GLOB",
            )
        language = next(iter((*parsed, *languages, *LANGUAGES)))
    return DetectedCommand(command=command, language=language, why="")


def _detect_command(
    snapshot: Snapshot, unprotected: Sequence[str], protected: Sequence[str], python: Path | None
) -> DetectedCommand:
    """Return the test command that the project's files suggest."""

    def has_pytest() -> bool:
        interpreter = discover_interpreter(snapshot.root, os.environ, python)
        return any((Path(folder) / "pytest").is_dir() for folder in interpreter.site_packages)

    # The protected files are the tests, and the configuration of tests.
    mixed = find_mixed_files(snapshot.files)
    start = f"{snapshot.folder}/" if snapshot.folder else ""
    tests = [
        name.removeprefix(start)
        for name in snapshot.files
        if name.startswith(start) and (name in mixed or is_protected(name, protected))
    ]
    files = {
        name.removeprefix(start): content
        for name, content in snapshot.files.items()
        if name.startswith(start)
    }
    # A folder of a Go module may lack the file that makes it a project.
    detected = detect_command(files, tests, has_pytest) or detect_command(snapshot.files, tests, has_pytest)
    if detected is None:
        path = _find_path(snapshot)
        raise NoTestsFound(f"{str(path)!r} holds no tests", remedy=_suggest_tests(path))
    language = detect_language(detected.command, unprotected) or detected.language
    return replace(detected, command=add_prefix(snapshot.folder, (), detected.command), language=language)
