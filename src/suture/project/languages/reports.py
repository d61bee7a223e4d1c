"""What a test runner says of each test, whatever language it runs; and how it is asked for that."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True, kw_only=True)
class ReportedTest:
    """One test, as its runner reports it.

    Attributes:
        id: `FILE::NAME > INNER NAME` in JavaScript, `PACKAGE::NAME/INNER` in Go; of a file or a package that
            could not be loaded only what stands before the `::`.
        status: How it ended.
        message: What was wrong; empty where it did not fail.
        expected: What the test wanted, where the runner tells.
        got: What came instead, where the runner tells.
        file: Where it went wrong, relative to the project; empty where that is not told.
        line: The line in that file, counted from 1.
    """

    id: str
    status: Literal["passed", "failed", "skipped"]
    message: str = ""
    expected: str = ""
    actual: str = ""
    file: str = ""
    line: int | None = None


@dataclass(frozen=True, kw_only=True)
class RunnerOutput:
    """What one run left behind.

    Attributes:
        stdout: What it printed.
        stderr: What it complained of.
        events: What our reporter wrote, with the signatures checked; empty where the runner has none.
        files: The project, path -> content.
        root: The project's folder where it ran.
        attested: Package -> test -> how it ended, as far as test programs vouched for it; `None` where they
            cannot.
    """

    stdout: bytes
    stderr: bytes
    events: Sequence[Mapping[str, Any]]
    files: Mapping[str, bytes]
    root: str
    attested: Mapping[str, Mapping[str, str]] | None = None


@dataclass(frozen=True, kw_only=True)
class Report:
    """One run's tests.

    Attributes:
        tests: In the order of the report, groups of tests among them.
        printed: What the run printed, for people, where stdout holds something else.
        begun: Whether the runner said that it begins: it may be stopped before any test ends.
        ended: Whether the runner got to its end.
        watched: File of tests, where something of ours watched -> what decides and was another at some time
            than before the project was loaded.
    """

    tests: tuple[ReportedTest, ...] = ()
    printed: bytes | None = None
    begun: bool = False
    ended: bool = False
    changed_state: Mapping[str, frozenset[str]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Attestation:
    """How test programs vouch for what they ran, where the runner makes its report of what they print.

    Attributes:
        files: What lies beside the project, by the runner's program and the folder; empty where it cannot.
        tokens: File -> the secret in it, by the project's paths: each is for the first process that takes it.
        environment: The variables that ask for it, by that folder.
        read: What was vouched for, by the report and the secrets.
        probe: A project whose only test passes, and `probe_command` the command for it: to see whether it works.
        probe_command: An argument vector.
        supports_command: Whether a command, as a line, leaves us the way to ask.
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
    """A program that runs tests and can report on each.

    Attributes:
        name: For people.
        command: Where this is found, a line for a shell starts it.
        read: Its report.
        reporters: Files of `suture.project.languages.reporters` that lie beside the project in a run; they write
            signed lines, and find the key on stdin.
        environment: The variables that ask for the report, by the folder of these files.
        arguments: The words that ask for it, by the same folder; the runner must be the line's last command.
        group_separator: What stands between the name of a group and that of a test in it.
        conflicting_options: What `environment` and `arguments` cannot undo: options of the user's own that choose
            another report. Such a command is judged by its exit status.
        watches_state: Whether one of these files watches what the code changes of what decides.
        vouching: What makes its report worth more, where it has no reporter of ours.
    """

    name: str
    command: re.Pattern[str]
    read: Callable[[RunnerOutput], Report]
    reporters: tuple[str, ...] = ()
    environment: Callable[[str], Mapping[str, str]] = lambda folder: {}
    arguments: Callable[[str], tuple[str, ...]] = lambda folder: ()
    group_separator: str = " > "
    conflicting_options: re.Pattern[str] = re.compile(r"--(?:test-)?reporter")
    watches_state: bool = False
    attestation: Attestation | None = None

    @property
    def signed(self) -> bool:
        """Whether its report is signed with the run's secret."""
        return bool(self.reporters)

    def starts(self, line: str) -> bool:
        """Whether a line for a shell starts this runner so that it can be asked for a report."""
        last = re.split(r"&&|\|\||[;|&\n]", line)[-1]
        asked = last if self.arguments("") else line
        return bool(self.command.search(asked)) and not self.conflicting_options.search(asked)
