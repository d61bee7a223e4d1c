"""A language as data: one object that other packages query, so that they never compare language names."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from suture.errors import UsageError
from suture.project.languages.calling.call_driver import CallDriver
from suture.project.languages.grammars import Grammars
from suture.project.languages.layouts import ProjectLayout
from suture.project.languages.reports import Runner
from suture.project.languages.safety_rules.rule import FindUses, SafetyRule
from suture.project.tuning import MAX_EXPANDED_WORD_CHARS, MAX_WORD_GLOBS


@dataclass(frozen=True, kw_only=True)
class ProjectOverview:
    """A project whose test command is to be detected.

    Attributes:
        files: Path -> content.
        tests: Paths of the tests in the language.
        has_pytest: Returns whether the project's Python has pytest, which takes a moment to find out.
    """

    files: Mapping[str, bytes]
    tests: Collection[str]
    has_pytest: Callable[[], bool]


FindTests = Callable[[ProjectOverview], tuple[tuple[str, ...], str] | None]
"""Returns the test command as an argument vector, and how it was found, in words; `None` if there is none."""

NEVER = re.compile(r"(?!)")
WILDCARD = re.compile(r"[*?\[{]")
BRACES = re.compile(r"\{([^{}]*)\}")
FindMissing = Callable[[str, Mapping[str, bytes]], tuple[str, str] | None]
"""Takes a line of output and the project's files; returns what is not installed and what to do, or `None`."""


@dataclass(frozen=True, kw_only=True)
class PackageCache:
    """A folder of downloaded packages outside of the project. The sandbox has no network to download them.

    Attributes:
        folder: Returns the folder, from the user's environment.
        mount_path: Where the sandbox mounts it.
        variable: Environment variable that tells the language's programs this path.
    """

    folder: Callable[[Mapping[str, str]], str]
    mount_path: str
    variable: str


@dataclass(frozen=True, kw_only=True)
class LanguageFacts:
    """Everything that other packages need to know about a language.

    Attributes:
        label: Name of the language, for people and models.
        fence: Info string of a fenced code block in the language.
        extensions: Extensions of its source files.
        program: Program that must be installed for its tests; empty for Python, which uses an `Interpreter`.
        command_pattern: Matches the names of programs that run its tests.
        runners: Test runners that report each test. Any other command is judged by its exit status. Pytest's
            report comes from a plug-in of `suture.judge`.
        line_comment: Beginning of a comment that extends to the end of the line.
        test_files: Globs of its tests, as in a `.gitignore`.
        config_globs: Globs of files that configure a test run, or that are loaded before the project's own
            code.
        find_loaded_files: Returns globs of the files that a command, given as words, makes its programs
            load, such as tests. The glob of a folder ends with a slash.
        find_configured_files: Returns globs of the files that a project's configuration loads, such as
            plugins of a test runner.
        detect_test_command: Finds the test command of a project; if `None`, the user must give it.
        installation: Paths in an installation outside of the system folders that the sandbox mounts.
        optional_installation: Further such paths, which only some installations have.
        packages: Folder of a project that holds its packages; empty if they are elsewhere.
        package_cache: Where they are, if they are elsewhere.
        package_client: Client that fetches packages for a new project; empty if there is none.
        variables: Environment variables of its programs inside the sandbox.
        error_pattern: Matches a line of output that reports an error.
        find_missing: Finds a package that is not installed in such a line.
        aliases: Other names of the language.
        parsed: Whether `suture.project.python_source` can parse it. Then examples and asserts can be checks,
            tests are generated, and replies are merged by syntax. Otherwise, code is handled as text.
        compiled: Whether a compiler may reject code before any test runs.
        new_project: Layout of a new project; `None` if only existing code can be healed.
        definition_pattern: Matches a top-level definition, with its name as a group. Without it, replies
            must contain whole files.
        test_count_pattern: Matches the number of tests in the output of a command without a report. A match
            without a number counts as one test.
        grammars: Tree-sitter grammars of its files.
        syntax: Templates that a repair without a model needs; `None` if there is no such repair.
        safety_rules: Rules of the safety scan.
        find_unsafe_uses: Finds violations of these rules in a file.
        calls: Calls single functions of the language; Python has its own (`suture.judge.split`).
    """

    label: str
    fence: str
    extensions: tuple[str, ...]
    program: str
    command_pattern: re.Pattern[str]
    parsed: bool = False
    compiled: bool = False
    new_project: ProjectLayout | None = None
    definition_pattern: re.Pattern[str] = NEVER
    aliases: tuple[str, ...] = ()
    runners: tuple[Runner, ...] = ()
    line_comment: str
    test_files: tuple[str, ...] = ()
    config_globs: tuple[str, ...] = ()
    find_loaded_files: Callable[[Sequence[str]], Iterable[str]] = lambda words: ()
    find_configured_files: Callable[[Mapping[str, bytes]], Iterable[str]] = lambda files: ()
    detect_test_command: FindTests | None = None
    installation: tuple[str, ...] = ()
    optional_installation: tuple[str, ...] = ()
    packages: str = ""
    package_cache: PackageCache | None = None
    package_client: Literal["", "pip", "npm", "go"] = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    error_pattern: re.Pattern[str] = NEVER
    find_missing: FindMissing | None = None
    test_count_pattern: re.Pattern[bytes] = re.compile(rb"(?!)")
    grammars: Grammars = field(default_factory=dict)
    syntax: SyntaxTemplates | None = None
    safety_rules: tuple[SafetyRule, ...] = ()
    find_unsafe_uses: FindUses | None = None
    calls: CallDriver | None = None

    @property
    def layout(self) -> ProjectLayout:
        """The layout of a new project.

        Raises:
            UsageError: No new code can be written in this language.
        """
        if self.new_project is None:
            raise UsageError(
                f"nothing new can be written in {self.label}", remedy="heal existing code: suture heal"
            )
        return self.new_project


def expand_word_globs(word: str) -> tuple[str, ...]:
    """Return globs for a word of a command: a pattern, a folder, or a file without its extension.

    Args:
        word: The word. Options, the whole project and paths outside of it have no globs.
    """
    plain = word.removeprefix("./").rstrip("/")
    if not plain or plain[0] in "-/." or len(plain) > MAX_EXPANDED_WORD_CHARS:
        return ()
    if not WILDCARD.search(plain):
        return (f"/{plain}/", f"/{plain}.*")
    found: list[str] = []
    waiting = [plain]
    while waiting and len(found) < MAX_WORD_GLOBS:
        one = waiting.pop(0)
        choice = BRACES.search(one)
        if choice is None:
            found.append(f"/{one}")
        else:
            before, after = one[: choice.start()], one[choice.end() :]
            waiting += [f"{before}{way}{after}" for way in choice[1].split(",")]
    return tuple(found)


@dataclass(frozen=True, kw_only=True)
class SyntaxTemplates:
    """Templates by which a repair without a model writes code in a language.

    Attributes:
        length: Length of a sequence `{}`.
        terminator: End of a statement.
        if_statement: An `if` with a condition and a statement.
        raise_statement: A statement that raises an error.
        equality: Operators for equal and for not equal.
        null: The null value.
        append: Append a value `{1}` to a sequence `{0}`.
        wrappers: Expressions around `{}` that people forget, the likeliest first.
        default_returns: Values that a function may return by default.
        min_max: The greater and the smaller of `{0}` and `{1}`.
        slices: A sequence `{0}` from an index `{1}` on, and up to it.
        confusable_names: Groups of names that are easily confused.
        concatenations: A sequence `{0}` followed by another sequence `{1}`.
        global_names: Names that exist without a definition; empty if other files of a folder may define
            names.
        builtin_members: Names of members of built-in objects.
    """

    length: str
    terminator: str
    if_statement: str
    raise_statement: str
    equality: tuple[str, str]
    null: str
    append: str
    wrappers: tuple[str, ...]
    default_returns: tuple[str, ...]
    min_max: tuple[str, ...]
    slices: tuple[str, ...]
    confusable_names: tuple[tuple[str, ...], ...]
    concatenations: tuple[str, ...] = ()
    global_names: frozenset[str] = frozenset()
    builtin_members: frozenset[str] = frozenset()
