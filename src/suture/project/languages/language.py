"""A language as data: one object that other packages query, so that they never compare language names."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from suture.errors import UsageError
from suture.project.languages.calling.javascript_calls import CallDriver
from suture.project.languages.layouts import ProjectLayout
from suture.project.languages.reports import Grammars, Runner
from suture.project.languages.safety_rules.rule import FindUses, SafetyRule
from suture.project.tuning import MAX_EXPANDED_WORD_CHARS, MAX_WORD_GLOBS


@dataclass(frozen=True, kw_only=True)
class ProjectOverview:
    """A project whose test command is to be detected.

    Attributes:
        files: Path -> content.
        tests: Paths of the tests in the language.
        has_pytest: Returns whether the project's Python has pytest. The call takes a moment.
    """

    files: Mapping[str, bytes]
    tests: Collection[str]
    has_pytest: Callable[[], bool]


DetectTestCommand = Callable[[ProjectOverview], tuple[tuple[str, ...], str] | None]
"""Returns `(test command as an argument vector, how it was found in words)`, or `None` if there is none."""

NEVER = re.compile(r"(?!)")
"""Matches nothing, for languages that lack a pattern."""
WILDCARD = re.compile(r"[*?\[{]")
"""Matches a character that makes a word a pattern."""
BRACES = re.compile(r"\{([^{}]*)\}")
"""Matches the choices of a pattern such as `{a,b}`."""
FindMissing = Callable[[str, Mapping[str, bytes]], tuple[str, str] | None]
"""Takes a line of output and the project's files; returns `(what is not installed, what to do)`, or `None`."""


@dataclass(frozen=True, kw_only=True)
class PackageCache:
    """A folder of downloaded packages outside of the project. The sandbox has no network to download them.

    Attributes:
        folder: Returns the folder, from the user's environment.
        mount_path: Where the sandbox mounts it.
        variable: Environment variable that tells the language's programs this path; empty if `LanguageFacts.variables`
            contains it.
    """

    folder: Callable[[Mapping[str, str]], str]
    mount_path: str
    variable: str = ""


@dataclass(frozen=True, kw_only=True)
class ModuleLookup:
    """What imports find in a project before any candidate.

    Attributes:
        files: The project's own files, path -> content.
        command: The test command as an argument vector.
        runner: The runner that reports its tests; `None` for pytest and for a command without a report.
        source_roots: Folders of the project that its environment has on `sys.path`.
        search_path: Folders of the project that were on `sys.path` while its tests ran; empty if unknown.
        loaded: (module, place) of what Python had loaded by then: a file of the project, the folder of a
            namespace package, or an empty string for what is outside of the project. Empty if unknown.
        modules: Dotted names of the modules that Python can import from outside of the project.
        packages: Names of the installed packages of other languages, such as those in `node_modules`.
    """

    files: Mapping[str, bytes]
    command: tuple[str, ...] = ()
    test_files: Collection[str] = ()
    runner: Runner | None = None
    source_roots: Collection[str] = ()
    search_path: Collection[str] = ()
    loaded: frozenset[tuple[str, str]] = field(default_factory=frozenset)
    modules: frozenset[str] = frozenset()
    packages: frozenset[str] = frozenset()


class FindShadowingFiles(Protocol):
    """Yields new files that an import would load in place of what it loads without them."""

    def __call__(self, paths: Collection[str], lookup: ModuleLookup) -> Iterable[str]:
        """Yield some of the paths, which are normalised and none of which is a file of the project."""
        ...


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
        find_shadowing_files: Finds new files that an import would load in place of what it loads without them.
        detect_test_command: Finds the test command of a project; if `None`, the user must give it.
        installation: Paths in an installation outside of the system folders that the sandbox mounts.
        optional_installation: Further such paths, which only some installations have.
        other_programs: Further programs of its commands, which are shown if they are installed: name -> folders of
            its installation that it needs, or none for a single file.
        packages: Folder of a project that holds its installed packages; empty if they are outside of it.
        package_cache: Where the packages are, if they are outside of the project.
        package_client: Client that fetches packages for a new project; empty if there is none.
        variables: Environment variables of its programs inside the sandbox.
        error_pattern: Matches a line of output that reports an error.
        find_missing: Finds the package that is not installed, if such a line reports one.
        find_inline_tests: Finds the tests in a file of code, which no candidate may change.
        aliases: Other names of the language.
        parsed: Whether `suture.project.python_source` can parse it. Then examples and asserts can be checks,
            tests are generated, and replies are merged by syntax. Otherwise, code is handled as plain strings.
        compiled: Whether a compiler may reject code before any test runs.
        new_project: Layout of a new project; `None` if only existing code can be healed.
        test_count_pattern: Matches a number of tests in the output of a command without a report. A match
            without a number counts as one test.
        grammars: Tree-sitter grammars of its files.
        syntax: Templates by which the search writes repairs; `None` if the language has no search.
        safety_rules: Rules of the safety scan.
        find_unsafe_uses: Finds violations of these rules in a file.
        fits_package: Returns whether a test, given as source, can be compiled together with the other files of its
            folder.
        calls: Calls single functions of the language; `None` if that is not supported. Python's functions are
            called by `suture.judge.split`.
    """

    label: str
    fence: str
    extensions: tuple[str, ...]
    program: str
    command_pattern: re.Pattern[str]
    parsed: bool = False
    compiled: bool = False
    new_project: ProjectLayout | None = None
    aliases: tuple[str, ...] = ()
    runners: tuple[Runner, ...] = ()
    line_comment: str
    test_files: tuple[str, ...] = ()
    config_globs: tuple[str, ...] = ()
    find_loaded_files: Callable[[Sequence[str]], Iterable[str]] = lambda words: ()
    find_configured_files: Callable[[Mapping[str, bytes]], Iterable[str]] = lambda files: ()
    find_shadowing_files: FindShadowingFiles = lambda paths, lookup: ()
    detect_test_command: DetectTestCommand | None = None
    installation: tuple[str, ...] = ()
    optional_installation: tuple[str, ...] = ()
    other_programs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    packages: str = ""
    package_cache: PackageCache | None = None
    package_client: Literal["", "pip", "npm", "go"] = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    error_pattern: re.Pattern[str] = NEVER
    find_missing: FindMissing | None = None
    find_inline_tests: Callable[[str], tuple[str, ...]] | None = None
    test_count_pattern: re.Pattern[bytes] = re.compile(rb"(?!)")
    grammars: Grammars = field(default_factory=dict)
    syntax: SyntaxTemplates | None = None
    safety_rules: tuple[SafetyRule, ...] = ()
    find_unsafe_uses: FindUses | None = None
    fits_package: Callable[[str, Iterable[str]], bool] = lambda test, others: True
    calls: CallDriver | None = None

    @property
    def is_searched(self) -> bool:
        """Whether repairs can be found without a model."""
        return self.parsed or self.syntax is not None

    @property
    def layout(self) -> ProjectLayout:
        """The layout of a new project.

        Raises:
            UsageError: No new code can be written in this language.
        """
        if self.new_project is None:
            message = f"nothing new can be written in {self.label}"
            raise UsageError(message, remedy="heal existing code: suture heal")
        return self.new_project


def expand_word_globs(word: str) -> tuple[str, ...]:
    """Return globs of the files that a word of a command may mean.

    `spec/{a,b}*.js` gives a glob for each choice in its braces. `spec/cart` may be a folder, or a file without
    its extension, and gives a glob for each.

    Args:
        word: The word. Options, the whole project and paths outside of it have no globs.
    """
    path = word.removeprefix("./").rstrip("/")
    if not path or path[0] in "-/." or len(path) > MAX_EXPANDED_WORD_CHARS:
        return ()
    if not WILDCARD.search(path):
        return (f"/{path}/", f"/{path}.*")
    globs: list[str] = []
    waiting = [path]
    while waiting and len(globs) < MAX_WORD_GLOBS:
        pattern = waiting.pop(0)
        braces = BRACES.search(pattern)
        if braces is None:
            globs.append(f"/{pattern}")
        else:
            before, after = pattern[: braces.start()], pattern[braces.end() :]
            waiting += [f"{before}{choice}{after}" for choice in braces[1].split(",")]
    return tuple(globs)


@dataclass(frozen=True, kw_only=True)
class SyntaxTemplates:
    """Templates by which the search, a repair without a model, writes code in a language.

    The placeholders `{}`, `{0}` and `{1}` stand for expressions.

    Attributes:
        length: Length of a sequence `{}`.
        terminator: What ends a statement, such as `;`; empty if a line break does.
        equality: Operators for equal and for not equal.
        append: Append a value `{1}` to a sequence `{0}`.
        wrappers: Expressions around `{}` that people forget, the likeliest first.
        default_returns: Values that a function may return by default.
        min_max: Two expressions: the greater of `{0}` and `{1}`, and the smaller one; empty if the language
            has none.
        slices: Two expressions: a sequence `{0}` from index `{1}` on, and the sequence up to that index.
        confusable_names: Groups of functions and methods that people mistake for each other.
        concatenation: A sequence `{0}` followed by another sequence `{1}`.
        global_names: Names that exist in every file without a definition. Empty if another file of the same
            folder may define names, so that no name is known to be undefined.
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
    concatenation: str
    global_names: frozenset[str] = frozenset()
    builtin_members: frozenset[str] = frozenset()
