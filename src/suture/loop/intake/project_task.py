"""Build a task to write a whole project, or to add a feature to an existing one.

No candidate may write the files that influence the verdict: the user's tests, test configuration and sample
data. The manifest of a new project is an exception, because its author asks for packages there.
"""

from __future__ import annotations

import keyword
import posixpath
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from suture.core.records import Language, Project, ProjectKind, Task
from suture.errors import UsageError
from suture.judge import extract_asserts
from suture.judge.smoke.smoke_plan import find_shown_commands, find_shown_requests
from suture.loop.intake.test_subject import is_pytest_source, read_bounded_file, read_test_file
from suture.loop.intake.write_task import read_statement_examples
from suture.loop.tuning import MAX_TEST_NAME_CHARS
from suture.project.languages import (
    LANGUAGES,
    ProjectLayout,
    detect_command,
    detect_file_languages,
    fill_placeholders,
    is_source,
)
from suture.project.test_commands import escape_glob
from suture.project.workspace import DEFAULT_PROTECTED, TEST_FILES, is_protected, is_test_file, take_snapshot
from suture.sandbox.packages import manifest_name_for

PROJECT_KINDS: dict[ProjectKind, str] = {
    "web_app": "web application",
    "data_pipeline": "data pipeline",
    "cli_tool": "command-line tool",
    "library": "library",
}
DEFAULT_NAMES: dict[ProjectKind, str] = {
    "web_app": "webapp",
    "data_pipeline": "pipeline",
    "cli_tool": "tool",
    "library": "library",
}
KIND_ALIASES: dict[str, ProjectKind] = {
    **dict.fromkeys(("flask", "fastapi", "django", "web", "webapp", "api", "rest_api", "website"), "web_app"),
    **dict.fromkeys(("cli", "click", "typer", "argparse", "command_line", "tool", "script"), "cli_tool"),
    **dict.fromkeys(("pipeline", "etl", "csv", "pandas"), "data_pipeline"),
    **dict.fromkeys(("lib", "package", "module"), "library"),
}
"""Words that people try for a kind of project -> the kind that they mean."""
NAME_RE = re.compile(r"\b(?:called|named)\s+[`'\"]?([A-Za-z][\w-]{0,40})")
"""A name that a statement gives to the project, as in "called todo"."""
PURPOSE_RE = re.compile(r"\bfor\s+(?:an?\s+|the\s+|my\s+)?([A-Za-z]{3,20})\b")
"""Matches the purpose of the project, as in "for recipes"."""
SAMPLE_PATH = "sample/data.csv"
SAMPLE_ROWS = (
    "id,name,group,amount,score\n1,Ada,a,12.5,90\n2,Ben,b,7,71\n3,Cleo,a,,88\n4,Dan,b,30.25,64\n"
    '5,"Eve, the elder",c,3,100\n'
)
"""Sample rows with the irregularities of real data: a missing value, a quoted comma, integers and floats."""
RESERVED_NAMES = frozenset(("tests", "main", "src", "sample", "app", "node", "go", "flask", "pytest"))
"""Names that a test runner, a package or a program uses already; those of Python's own modules are not taken either."""


@dataclass(frozen=True, kw_only=True)
class ProjectRequest:
    """What a user requests for a project, besides the statement.

    Attributes:
        kind: The kind of project; `None` for a feature of an existing project that only its own tests judge.
        language: The language; by default that of the existing project, else Python.
        existing: The folder of the existing project that gets a feature.
        test: A file of tests that decide.
        asserts: Plain asserts that decide, for a Python library.
        sample: Data on which a pipeline is run; by default a small built-in table.
        folder: The folder that the project will be written to, from which its name is taken.
    """

    kind: ProjectKind | None
    language: Language | None = None
    existing: Path | None = None
    test: Path | None = None
    asserts: str = ""
    sample: Path | None = None
    folder: Path | None = None


def parse_project_kind(text: str) -> ProjectKind:
    """Return the project kind that a user typed, such as `cli_tool` or `cli-tool`.

    Raises:
        UsageError: There is no such kind.
    """
    word = text.strip().lower().replace("-", "_").replace(" ", "_")
    for kind in PROJECT_KINDS:
        if kind == word:
            return kind
    names = ", ".join(PROJECT_KINDS)
    meant = KIND_ALIASES.get(word)
    remedy = f"for {text}, use --project {meant}; the kinds are {names}" if meant else f"name one of {names}"
    raise UsageError(f"there is no kind of project {text!r}", remedy=remedy)


def require_project_folder(folder: Path) -> Path:
    """Return the absolute path of an existing project's folder.

    Raises:
        UsageError: There is no such folder.
    """
    if not folder.is_dir():
        raise UsageError(f"{str(folder)!r} is not a folder", remedy="name the folder of a project")
    return folder.resolve()


def build_project_task(statement: str, request: ProjectRequest, *, secrets: Sequence[str] = ()) -> Task:
    """Build a task to make a project, or to extend one.

    Args:
        statement: Plain words, possibly with examples of runs (`$ todo add milk`, `GET / -> 200`).
        secrets: Globs of files that belong to an existing project although they look like secrets.

    Raises:
        UsageError: The statement is empty, a file is missing, or the language is not known.
    """
    if not statement.strip():
        raise UsageError("the task is empty", remedy='say what to make, as in `suture run "Build a ..."`')
    existing = dict(take_snapshot(request.existing, secrets=secrets).files) if request.existing else {}
    language = request.language or _detect_project_language(existing, request.existing)
    kind = request.kind or "library"
    name = _choose_project_name(statement, kind, language, request.folder or request.existing)
    # The entry is the file that starts the program. Its pattern contains only the project's name.
    entry = fill_placeholders((LANGUAGES[language].layout.entry[kind],), name, "")[0]
    if request.kind and request.existing and entry not in existing:
        raise UsageError(
            f"{str(request.existing)!r} has no {entry}, by which a {PROJECT_KINDS[kind]} would be started",
            remedy="leave out --project: then its tests alone decide",
        )
    if request.existing and entry not in existing:
        # A task needs a main file. Any source file serves, because only the tests decide.
        entry = next((path for path in sorted(existing) if is_source(path, language)), entry)
    scaffold = {} if request.existing else _make_scaffold(statement, kind, name, language, entry)
    sample_path, sample_files = _read_sample(kind, request)
    test_files, command = _read_tests(request, language, existing)
    shows_runs = bool(find_shown_commands(statement) or find_shown_requests(statement))
    project = Project(
        kind=request.kind,
        name=name,
        # A task with a scaffold counts as a new project.
        scaffold=() if request.existing else (*scaffold, *sample_files),
        sample=sample_path,
        is_feature_untested=bool(request.existing and not request.test and not (request.kind and shows_runs)),
    )
    # The author of a new project may write its manifest, because that is where it asks for packages, and its
    # tests, unless the user gave some.
    manifest = "" if request.existing else manifest_name_for(language)
    unprotected_globs = () if request.existing or request.test else TEST_FILES
    globs = [
        glob
        for glob in DEFAULT_PROTECTED
        if glob not in unprotected_globs and not (manifest and is_protected(manifest, (glob,)))
    ]
    configuration = [
        path
        for path in LANGUAGES[language].layout.manifest(kind, name)
        if path in scaffold and path != manifest and not path.endswith(LANGUAGES[language].extensions)
    ]
    has_checks = LANGUAGES[language].parsed and kind == "library" and request.existing is None
    scaffold_files = {path: text.encode() for path, text in scaffold.items()}
    return Task(
        statement=statement,
        language=language,
        module=entry,
        allows_more_files=True,
        files={**existing, **scaffold_files, **sample_files, **test_files},
        checks=(*extract_asserts(request.asserts), *read_statement_examples(statement)) if has_checks else (),
        test_command=command,
        protected=(*globs, "conftest.py", *map(escape_glob, (*test_files, *configuration, *sample_files))),
        project=project,
    )


def _choose_project_name(statement: str, kind: ProjectKind, language: Language, folder: Path | None) -> str:
    """Return a project's name as a plain identifier: its folder's name, else one from the statement."""
    suggestions = [folder.resolve().name] if folder else []
    suggestions += [command.words[0] for command in find_shown_commands(statement)[:1]]
    suggestions += [match[1] for pattern in (NAME_RE, PURPOSE_RE) if (match := pattern.search(statement))]
    for suggestion in suggestions:
        name = re.sub(r"\W+", "_", posixpath.basename(suggestion)).strip("_").lower()[:40]
        is_identifier = re.fullmatch(r"[a-z][a-z0-9_]*", name) and not keyword.iskeyword(name)
        is_reserved = name in RESERVED_NAMES or LANGUAGES[language].layout.reserved_names.fullmatch(name)
        if is_identifier and not is_reserved and name not in sys.stdlib_module_names:
            return name
    return DEFAULT_NAMES[kind]


def _detect_project_language(files: dict[str, bytes], folder: Path | None) -> Language:
    if folder is None:
        return next(iter(LANGUAGES))  # Python
    languages = detect_file_languages(path for path in files if not is_test_file(path))
    if len(languages) != 1:
        raise UsageError(
            f"{str(folder)!r} holds {' and '.join(languages) or 'no code in a known language'}",
            remedy=f"say what the feature is written in: --language {'|'.join(LANGUAGES)}",
        )
    return languages[0]


def _make_scaffold(
    statement: str, kind: ProjectKind, name: str, language: Language, entry: str
) -> dict[str, str]:
    """Return the files of a new project that Suture creates: manifest, `.gitignore`, README."""
    layout = LANGUAGES[language].layout
    sections = [f"# {name}", statement.strip()]
    if kind != "library":
        start = " ".join(fill_placeholders(layout.manual_start, name, entry))
        arguments = {"data_pipeline": " INPUT OUTPUT", "cli_tool": " --help"}.get(kind, "")
        port = "PORT=8000 " if kind == "web_app" else ""
        sections.append(f"## Run\n\n    {port}{start}{arguments}")
    test_lines = (f"    {' '.join(fill_placeholders(words, name, entry))}" for words in layout.manual_tests)
    sections.append("## Test\n\n" + "\n".join(test_lines))
    readme = "\n\n".join(sections) + "\n"
    return {
        **layout.manifest(kind, name),
        ".gitignore": "\n".join(fill_placeholders(layout.ignored, name, entry)) + "\n",
        "README.md": add_install_section(readme, layout) if layout.needs_packages else readme,
    }


def add_install_section(readme: str, layout: ProjectLayout) -> str:
    """Return the README of a new project with how to install its packages, before how to run and test it.

    A README that has such a section, or a layout without an installation, gets none.
    """
    if not layout.install or re.search(r"^## Install$", readme, re.MULTILINE):
        return readme
    section = f"## Install\n\n    {' '.join(layout.install)}\n\n"
    return re.sub(r"^(?=## (?:Run|Test)$)", section, readme, count=1, flags=re.MULTILINE)


def _read_sample(kind: ProjectKind, request: ProjectRequest) -> tuple[str, dict[str, bytes]]:
    """Return `(path of the sample data, {path: content})`; both are empty unless a pipeline is requested."""
    if kind != "data_pipeline" or request.kind is None:
        if request.sample is not None:
            raise UsageError(
                "--sample is for a data pipeline", remedy="leave it out, or --project data_pipeline"
            )
        return "", {}
    if request.sample is None:
        return SAMPLE_PATH, {SAMPLE_PATH: SAMPLE_ROWS.encode()}
    content = read_bounded_file(request.sample)
    if content is None:
        raise UsageError(
            f"the sample data {str(request.sample)!r} cannot be read: there is no regular file",
            remedy="name a file of data",
        )
    path = f"sample/{request.sample.name}"
    return path, {path: content}


def _read_tests(
    request: ProjectRequest, language: Language, existing: dict[str, bytes]
) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """Return the user's tests, at the paths where the language looks for tests, and the test command."""
    if request.test is None:
        tests = [path for path in existing if is_test_file(path)]
        detected = detect_command(existing, tests, lambda: True)
        return {}, detected.command if detected and tests else ()
    source = read_test_file(request.test)
    if LANGUAGES[language].parsed and not is_pytest_source(source):
        raise UsageError(
            f"{str(request.test)!r} holds no test function, and a project is tested by pytest",
            remedy="write `def test_...`; plain asserts are for one function",
        )
    if len(request.test.name) > MAX_TEST_NAME_CHARS or not is_test_file(request.test.name):
        raise UsageError(
            f"{request.test.name!r} is not the name of a test file in {LANGUAGES[language].label}",
            remedy="name it as test runners do: test_x.py, x.test.js, x_test.go",
        )
    folder = posixpath.dirname(LANGUAGES[language].layout.test_file)
    path = posixpath.join(folder, request.test.name)
    return {path: source.encode()}, fill_placeholders(LANGUAGES[language].layout.test_file_command, "", path)
