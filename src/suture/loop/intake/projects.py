"""A whole project to write, or a feature for one that is there, as a `Task`.

What decides about it (manifest, settings of tests, tests that a user gives) is laid down here and is no
candidate's to write.
"""

from __future__ import annotations

import keyword
import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from suture.core.records import Language, Project, ProjectKind, Task
from suture.errors import UsageError
from suture.judge import asserts_in, examples_in
from suture.judge.smoke.shown_runs import shown_commands, shown_requests
from suture.loop.intake.given_tests import LONGEST_TEST_NAME, is_pytest_source, read_bounded, read_test
from suture.project.languages import LANGUAGES, detect_command, filled, is_source, languages_of_files
from suture.project.test_commands import literal_glob
from suture.project.workspace import DEFAULT_PROTECTED, TEST_FILES, is_protected, is_test_file, take_snapshot
from suture.sandbox.packages import asks_in

KINDS: dict[ProjectKind, str] = {
    "web_app": "web application",
    "data_pipeline": "data pipeline",
    "cli_tool": "command-line tool",
    "library": "library",
}
NAMED = re.compile(r"\b(?:called|named)\s+[`'\"]?([A-Za-z][\w-]{0,40})")
ABOUT = re.compile(r"\bfor\s+(?:an?\s+|the\s+|my\s+)?([A-Za-z]{3,20})\b")
USUAL: dict[ProjectKind, str] = {
    "web_app": "webapp",
    "data_pipeline": "pipeline",
    "cli_tool": "tool",
    "library": "library",
}
SAMPLE = "sample/data.csv"
SAMPLE_ROWS = (
    "id,name,group,amount,score\n1,Ada,a,12.5,90\n2,Ben,b,7,71\n3,Cleo,a,,88\n4,Dan,b,30.25,64\n"
    '5,"Eve, the elder",c,3,100\n'
)
"""With what real data has: a gap, a comma in quotes, whole numbers and others."""


@dataclass(frozen=True, kw_only=True)
class ProjectWish:
    """What a user says of a project, beside the statement.

    Attributes:
        kind: What it is to be; `None` for a feature of a project whose tests alone decide.
        language: What it is written in; of a project that is there, where left out, its own.
        existing: The folder of a project that is there.
        test: A file of tests that decide.
        asserts: Plain asserts that decide, for a library in Python.
        sample: Data that a pipeline is run on; a small table of ours where left out.
        folder: Where it will be written, for its name.
    """

    kind: ProjectKind | None
    language: Language | None = None
    existing: Path | None = None
    test: Path | None = None
    asserts: str = ""
    sample: Path | None = None
    folder: Path | None = None


def project_kind(word: str) -> ProjectKind:
    """The kind that a user names; `cli-tool` is one too.

    Raises:
        UsageError: There is none.
    """
    said = word.strip().lower().replace("-", "_")
    for kind in KINDS:
        if said == kind:
            return kind
    raise UsageError(f"there is no kind of project {word!r}", remedy=f"name one of {', '.join(KINDS)}")


def existing_folder(folder: Path) -> Path:
    """The folder of a project that is there, absolute.

    Raises:
        UsageError: There is none.
    """
    if not folder.is_dir():
        raise UsageError(f"{str(folder)!r} is no folder", remedy="name the folder of a project")
    return folder.resolve()


def project_task(statement: str, wish: ProjectWish, *, secrets: Sequence[str] = ()) -> Task:
    """A task to make a project, or more of one.

    Args:
        statement: In plain words, perhaps with examples of runs (`$ todo add milk`, `GET / -> 200`).
        wish: What else the user says.
        secrets: Globs of files that are part of an existing project although they look like secrets.

    Raises:
        UsageError: It cannot be worked with: no statement, no such file, no language.
    """
    if not statement.strip():
        raise UsageError("the task is empty", remedy='say what to make, as in `suture run "Build a ..."`')
    there = dict(take_snapshot(wish.existing, secrets=secrets).files) if wish.existing else {}
    language = wish.language or _language_of(there, wish.existing)
    layout = LANGUAGES[language].layout
    kind = wish.kind or "library"
    name = project_name(statement, kind, wish.folder or wish.existing)
    entry = filled((layout.entry[kind],), name, "")[0]
    if wish.kind and wish.existing and entry not in there:
        raise UsageError(
            f"{str(wish.existing)!r} has no {entry}, by which a {KINDS[kind]} would be started",
            remedy="leave out --project: then its tests alone decide",
        )
    if wish.existing and entry not in there:
        entry = next((path for path in sorted(there) if is_source(path, language)), entry)
    new = {} if wish.existing else _scaffold(statement, kind, name, language, entry)
    sample, data = _sample(kind, wish)
    tests, command = _given_tests(wish, language, there)
    shows = bool(shown_commands(statement) or shown_requests(statement))
    project = Project(
        kind=wish.kind,
        name=name,
        scaffold=() if wish.existing else (*new, *data),  # with one it would count as a project that is new
        sample=sample,
        unshown=bool(wish.existing and not wish.test and not (wish.kind and shows)),
    )
    asks = "" if wish.existing else asks_in(language)
    closed = (*tests, *new.keys() & _manifests(language, kind, name) - {asks}, *data)
    opened = () if wish.existing or wish.test else TEST_FILES
    globs = tuple(
        glob
        for glob in DEFAULT_PROTECTED
        if glob not in opened and not (asks and is_protected(asks, (glob,)))
    )
    checked = LANGUAGES[language].parsed and kind == "library" and wish.existing is None
    checks = (*asserts_in(wish.asserts), *examples_in(statement)) if checked else ()
    return Task(
        statement=statement,
        language=language,
        module=entry,
        several=True,
        files={**there, **{path: text.encode() for path, text in new.items()}, **data, **tests},
        checks=checks,
        test_command=command,
        protected=(*globs, "conftest.py", *map(literal_glob, closed)),
        project=project,
    )


def project_name(statement: str, kind: ProjectKind, folder: Path | None) -> str:
    """What a project is called: its folder's name, else the statement's word for it; a plain identifier."""
    shown = next((command.words[0] for command in shown_commands(statement)), "")
    named = NAMED.search(statement)
    about = ABOUT.search(statement)
    said = (
        folder.resolve().name if folder else "",
        shown,
        named[1] if named else "",
        about[1] if about else "",
    )
    for word in (*said, USUAL[kind]):
        plain = re.sub(r"\W+", "_", posixpath.basename(word)).strip("_").lower()[:40]
        if re.fullmatch(r"[a-z][a-z0-9_]*", plain) and not keyword.iskeyword(plain) and plain not in RESERVED:
            return plain
    return USUAL[kind]


RESERVED = frozenset(("test", "tests", "main", "src", "sample", "json", "csv", "http", "app", "node", "go"))
"""Names that a test runner, a module of the library or a program has already."""


def _language_of(files: dict[str, bytes], folder: Path | None) -> Language:
    found = languages_of_files(path for path in files if not is_test_file(path))
    if folder is None:
        return next(iter(LANGUAGES))
    if len(found) != 1:
        raise UsageError(
            f"{str(folder)!r} holds {' and '.join(found) or 'no code that is known'}",
            remedy=f"say what the feature is written in: --language {'|'.join(LANGUAGES)}",
        )
    return found[0]


def _manifests(language: Language, kind: ProjectKind, name: str) -> set[str]:
    manifest = LANGUAGES[language].layout.manifest(kind, name)
    return {path for path in manifest if not path.endswith(LANGUAGES[language].endings)}


def _scaffold(statement: str, kind: ProjectKind, name: str, language: Language, entry: str) -> dict[str, str]:
    """The files of a new project that need no author: manifest, `.gitignore`, README."""
    layout = LANGUAGES[language].layout
    ignored = filled(layout.ignored, name, entry)
    return {
        **layout.manifest(kind, name),
        ".gitignore": "\n".join(ignored) + "\n",
        "README.md": _readme(statement, kind, name, language, entry),
    }


def _readme(statement: str, kind: ProjectKind, name: str, language: Language, entry: str) -> str:
    layout = LANGUAGES[language].layout
    start = " ".join(filled(layout.by_hand, name, entry))
    more = {"data_pipeline": " INPUT OUTPUT", "cli_tool": " --help"}.get(kind, "")
    port = "PORT=8000 " if kind == "web_app" else ""
    sections = [f"# {name}", statement.strip()]
    if kind != "library":
        sections.append(f"## Run\n\n    {port}{start}{more}")
    sections.append(f"## Test\n\n    {' '.join(filled(layout.tests, name, entry))}")
    return "\n\n".join(sections) + "\n"


def _sample(kind: ProjectKind, wish: ProjectWish) -> tuple[str, dict[str, bytes]]:
    if kind != "data_pipeline" or wish.kind is None:
        if wish.sample is not None:
            raise UsageError(
                "--sample is for a data pipeline", remedy="leave it out, or --project data_pipeline"
            )
        return "", {}
    if wish.sample is None:
        return SAMPLE, {SAMPLE: SAMPLE_ROWS.encode()}
    content = read_bounded(wish.sample)
    if content is None:
        raise UsageError(
            f"the sample data {str(wish.sample)!r} cannot be read: there is no regular file",
            remedy="name a file of data",
        )
    path = f"sample/{wish.sample.name}"
    return path, {path: content}


def _given_tests(
    wish: ProjectWish, language: Language, there: dict[str, bytes]
) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """The tests that a user gives, where the language looks for them, and the command that decides."""
    if wish.test is None:
        tests = [path for path in there if is_test_file(path)]
        found = detect_command(there, tests, lambda: True)
        return {}, found.command if found and any(map(is_test_file, there)) else ()
    source = read_test(wish.test)
    if LANGUAGES[language].parsed and not is_pytest_source(source):
        raise UsageError(
            f"{str(wish.test)!r} holds no test function, and a project is tested by pytest",
            remedy="write `def test_...`; plain asserts are for one function",
        )
    if len(wish.test.name) > LONGEST_TEST_NAME or not is_test_file(wish.test.name):
        raise UsageError(
            f"{wish.test.name!r} is no name of a test in {LANGUAGES[language].label}",
            remedy="name it as test runners do: test_x.py, x.test.js, x_test.go",
        )
    folder = posixpath.dirname(LANGUAGES[language].layout.test_file)
    path = posixpath.join(folder, wish.test.name)
    return {path: source.encode()}, filled(LANGUAGES[language].layout.one_test, "", path)
