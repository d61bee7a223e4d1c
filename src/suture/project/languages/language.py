"""What a language is to us: one object, which other rooms ask and never compare."""

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


@dataclass(frozen=True, kw_only=True)
class ProjectOverview:
    """A project whose user gave no test command.

    Attributes:
        files: Path -> content.
        tests: Those of them that are tests in the language.
        has_pytest: Whether the project's Python has pytest; it is looked for when asked.
    """

    files: Mapping[str, bytes]
    tests: Collection[str]
    has_pytest: Callable[[], bool]


FindTests = Callable[[ProjectOverview], tuple[tuple[str, ...], str] | None]
"""The test command as an argument vector, and how it was found, in words; `None` where nothing shows one."""

NEVER = re.compile(r"(?!)")
WILD = re.compile(r"[*?\[{]")
CHOICE = re.compile(r"\{([^{}]*)\}")
MOST_CHARS, MOST_CHOICES = 1000, 64
"""Of a word of a command, and of what it may mean."""
FindMissing = Callable[[str, Mapping[str, bytes]], tuple[str, str] | None]
"""A line of output and the project's files -> what is not installed and what to do; `None` for all else."""


@dataclass(frozen=True, kw_only=True)
class PackageCache:
    """Packages outside the project that were downloaded before: there is no network behind the wall.

    Attributes:
        folder: Where they lie, by the user's environment.
        mount_path: Where they are shown behind the wall.
        variable: The environment variable that says so there.
    """

    folder: Callable[[Mapping[str, str]], str]
    mount_path: str
    variable: str


@dataclass(frozen=True, kw_only=True)
class LanguageFacts:
    """One language.

    Attributes:
        label: Its name, for people and models.
        fence: What stands behind the opening fence of a block of its code.
        extensions: Of its source files.
        program: What must be installed for its tests; empty for Python's, which are an `Interpreter`.
        commands: Programs that run its tests.
        runners: Those that report on each test; any other command is judged by its exit status. Pytest's
            report is a plug-in of `suture.judge`, which runs in pytest.
        line_comment: What begins a comment up to the line's end.
        test_files: Globs of its tests, as in a `.gitignore`.
        config_globs: Globs of what configures a run of these, or is loaded before the project's own code.
        find_loaded_files: Globs of the files that the words of one command have its programs load, such as its tests;
            a folder's ends with a slash.
        find_configured_files: The same of what a project's files have them load, such as plugins of a test runner.
        detect_test_command: Finds the test command of a project; where there is none, the user says it.
        installation: What lies in an installation outside the system's folders, and is shown with it.
        optional_installation: What of this lies there too: files that only some installations have.
        packages: The folder of a project that holds what it requires; empty where it lies elsewhere.
        package_cache: Where that is, if so.
        package_client: What fetches packages for a new project; empty where nothing does.
        variables: Environment variables of its programs behind the wall.
        error_line: A line of output that tells of an error.
        find_missing: Finds in such a line a package that is not installed.
        aliases: What else people call it.
        parsed: Whether `suture.project.python_source` reads it, so that examples and asserts can judge it, tests are
            written for it, and replies are put together by its syntax. The rest is read as text.
        compiled: Whether a compiler may refuse what does not fit together before any test runs.
        new_project: How one is laid out; `None` where only code that is there can be healed.
        definition_pattern: What a piece of code at the left margin defines, its name a group; where there is none, a
            reply must hold whole files.
        ran: How many tests ran, in the output of a command without a report: each match counts one, or the
            number that its group holds.
        grammars: Tree-sitter's, for its files.
        syntax: What a repair without a model must know to write it, beside these; `None` where there is none.
        safety_rules: What the safety scan looks for in it.
        find_unsafe_uses: Finds that.
        calls: Calls one function of it from outside; Python has a judge of its own (`suture.judge.split`).
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
        """How a new project is laid out.

        Raises:
            UsageError: No new code can be written in it.
        """
        if self.new_project is None:
            raise UsageError(
                f"nothing new can be written in {self.label}", remedy="heal code that is there: suture heal"
            )
        return self.new_project


def expand_word_globs(word: str) -> tuple[str, ...]:
    """What a word of a command means that is a pattern for files, a folder, or a file without its ending.

    Args:
        word: It; nothing is meant by an option, by all of the project, or by what lies outside of it.
    """
    plain = word.removeprefix("./").rstrip("/")
    if not plain or plain[0] in "-/." or len(plain) > MOST_CHARS:
        return ()
    if not WILD.search(plain):
        return (f"/{plain}/", f"/{plain}.*")
    found: list[str] = []
    waiting = [plain]
    while waiting and len(found) < MOST_CHOICES:
        one = waiting.pop(0)
        choice = CHOICE.search(one)
        if choice is None:
            found.append(f"/{one}")
        else:
            before, after = one[: choice.start()], one[choice.end() :]
            waiting += [f"{before}{way}{after}" for way in choice[1].split(",")]
    return tuple(found)


@dataclass(frozen=True, kw_only=True)
class SyntaxTemplates:
    """What a language writes in its own way.

    Attributes:
        length: Of `{}`, a sequence.
        end: Of a statement.
        test: An `if` with a condition and a statement.
        stop: A statement that ends what runs it with a fault.
        equal: Whether two are the same, and whether they are not.
        null: What stands for no value.
        append: How a value `{1}` gets into a sequence `{0}`.
        wrappers: Expressions that people forget around or behind `{}`, the likeliest first.
        answers: What a function may return where it has nothing to say.
        min_max: Of two, `{0}` and `{1}`, the greater and the smaller.
        rest: A sequence `{0}` from a place `{1}` on, and up to it.
        families: Names of which one is easily taken for another.
        concatenations: A sequence `{0}` and behind it another, `{1}`.
        global_names: Names that no file has to define; none where other files of a folder may define some.
        builtin_members: Names of members of its own objects.
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
