"""Test runners of languages other than Python, and the reports that they give on each test.

A report is made by a reporter of Suture that the runner loads, which signs it. Go has no such reporters: its
report is made from the output, and the test programs attest the outcomes.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from tree_sitter import Language as Grammar
    from tree_sitter import Node


TestState = Literal["passed", "failed", "skipped"]
"""What a report says about a test."""


@dataclass(frozen=True, kw_only=True)
class ReportedTest:
    """A test in the report of its runner.

    Attributes:
        id: `FILE::NAME > INNER NAME` in JavaScript, `PACKAGE::NAME/INNER` in Go. For a file or package that
            could not be loaded, only the part before the `::`.
        message: What was wrong; empty if it did not fail.
        expected: What the test expected, if the runner reports it.
        actual: The actual value, if the runner reports it.
        file: File of the failure, relative to the project; empty if it is not reported.
        line: Line in that file, from 1.
        details: The message with all its lines, cut if it is long.
        has_exit_status_only: Whether the runner only knows how the test's own program ended.
        frames: (path, line, function) of the stack inside the project, outermost first; the function is empty
            if it is not reported.
    """

    id: str
    status: TestState
    message: str = ""
    expected: str = ""
    actual: str = ""
    file: str = ""
    line: int | None = None
    details: str = ""
    has_exit_status_only: bool = False
    frames: tuple[tuple[str, int, str], ...] = ()


@dataclass(frozen=True, kw_only=True)
class RunnerOutput:
    """The output of a test run.

    Attributes:
        events: Verified events of Suture's reporter; empty if the runner has none.
        process_events: Verified events of the processes that run the tests, if they report on their own.
        files: The project, path -> content.
        root: The project's folder during the run.
        attested: Package -> test -> outcome that the test program attests; `None` if it cannot.
        reports: Report files that the run wrote, path -> content.
    """

    stdout: bytes
    stderr: bytes
    events: Sequence[Mapping[str, Any]]
    files: Mapping[str, bytes]
    root: str
    process_events: Sequence[Mapping[str, Any]] = ()
    attested: Mapping[str, Mapping[str, str]] | None = None
    reports: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Report:
    """The tests of a run.

    Attributes:
        tests: The tests in the order of the report, including groups of tests.
        printed: Output of the run for people, if stdout contains something else.
        has_started: Whether the runner reported its start. It may be stopped before any test ends.
        has_finished: Whether the runner reached its end.
        changed_state: Path of a test file that was watched -> names of what the code changed although it
            decides the outcome, such as a function of the test framework.
    """

    tests: tuple[ReportedTest, ...] = ()
    printed: bytes | None = None
    has_started: bool = False
    has_finished: bool = False
    changed_state: Mapping[str, frozenset[str]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Attestation:
    """How test programs attest the outcomes of their tests.

    This is for a runner whose report is made from the output of these programs, where the code under test could
    print a false outcome.

    Attributes:
        files: Takes the path of the runner's program and a folder; returns the files to put there, or none
            if attestation is impossible.
        tokens: Takes the project's paths; returns file -> secret. Each secret is for the first process that
            reads it.
        environment: Takes the folder; returns the variables that request attestation.
        read: Takes the report and the secrets; returns the attested outcomes.
        probe: A project whose only test passes, to find out whether attestation works.
        supports_command: Returns whether attestation can be requested from a command line.
    """

    files: Callable[[str, str], Mapping[str, bytes]]
    tokens: Callable[[Iterable[str]], Mapping[str, bytes]]
    environment: Callable[[str], Mapping[str, str]]
    read: Callable[[bytes, Collection[bytes]], Mapping[str, Mapping[str, str]]]
    probe: Mapping[str, bytes]
    probe_command: tuple[str, ...]
    supports_command: Callable[[str], bool]


@dataclass(frozen=True, kw_only=True)
class Runner:
    """A test runner that can report each test.

    Attributes:
        name: Name for people.
        command: Matches a shell line that starts it.
        reporters: Files of `suture.project.languages.reporters` that are put next to the project. They write
            signed lines, and read the key from stdin.
        environment: Takes the folder of these files; returns the variables that request the report.
        arguments: Takes the same folder; returns the arguments that request the report. The runner must be
            the last command of the line.
        takes_arguments_first: Whether these arguments must come before `--`, as in `cargo test ... -- NAME`.
        files: Takes the same folder; returns further files to put there, name -> content.
        report_globs: Report files that a run writes, relative to the project, as `find -path` matches them.
        group_separator: Text between the name of a group and the name of a test in it.
        conflicting_options: Matches options of the user that choose another report, and that `environment`
            and `arguments` cannot override. Such a command is judged by its exit status.
        watches_state: Whether a reporter watches the state that decides the outcome of tests.
        attestation: How test programs attest their outcomes, if the runner has no reporter of Suture.
        module_extensions: The extensions that it tries for a module that is named without one, in their order;
            empty if that is the language's own order.
    """

    name: str
    command: re.Pattern[str]
    read: Callable[[RunnerOutput], Report]
    reporters: tuple[str, ...] = ()
    environment: Callable[[str], Mapping[str, str]] = lambda folder: {}
    arguments: Callable[[str], tuple[str, ...]] = lambda folder: ()
    takes_arguments_first: bool = False
    files: Callable[[str], Mapping[str, bytes]] = lambda folder: {}
    report_globs: tuple[str, ...] = ()
    group_separator: str = " > "
    conflicting_options: re.Pattern[str] = re.compile(r"--(?:test-)?reporter")
    watches_state: bool = False
    attestation: Attestation | None = None
    module_extensions: tuple[str, ...] = ()

    @property
    def signed(self) -> bool:
        """Whether its report is signed with the secret of the run."""
        return bool(self.reporters)

    def starts(self, line: str) -> bool:
        """Return whether a shell line starts this runner in a way that lets Suture request a report."""
        last_command = re.split(r"&&|\|\||[;|&\n]", line)[-1]
        # Arguments are added at the end of the line, so they reach only its last command.
        searched = last_command if self.arguments("") else line
        return bool(self.command.search(searched)) and not self.conflicting_options.search(searched)


Grammars = dict[str, tuple[str, str]]
"""File extension -> (package of the grammar, function in it that returns the grammar).

The empty extension stands for all others."""


def parse_tree(text: str, path: str, grammars: Grammars) -> Node:
    """Return the root of the syntax tree of a file. Invalid syntax becomes error nodes."""
    from tree_sitter import Parser

    return Parser(grammar_for(path, grammars)).parse(text.encode("utf-8", "surrogatepass")).root_node


def get_node_text(node: Node) -> str:
    """Return the source of a node."""
    return (node.text or b"").decode("utf-8", "replace")


def grammar_for(path: str, grammars: Grammars) -> Grammar:
    """Return the grammar for a file."""
    return load_grammar(*find_grammar(path, grammars))


def find_grammar(path: str, grammars: Grammars) -> tuple[str, str]:
    """Return `(package, function)` of the grammar for a file, by its extension."""
    extension = next((extension for extension in grammars if extension and path.endswith(extension)), "")
    return grammars[extension]


@cache
def load_grammar(package: str, name: str) -> Grammar:
    """Return a grammar; it is loaded only once."""
    from tree_sitter import Language as Grammar

    return Grammar(getattr(importlib.import_module(package), name)())
