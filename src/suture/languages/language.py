"""What a language is to us: one object, which other rooms ask and never compare."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from suture.languages.grammars import Grammars
from suture.languages.layouts.layout import ProjectLayout
from suture.languages.reports import Runner
from suture.languages.unsafe.rule import FindUses, SafetyRule

NEVER = re.compile(r"(?!)")


@dataclass(frozen=True, kw_only=True)
class LanguageFacts:
    """One language.

    Attributes:
        label: Its name, for people and models.
        fence: What stands behind the opening fence of a block of its code.
        endings: Of its source files.
        program: What must be installed for its tests.
        commands: Programs that run its tests.
        runners: Those that report on each test; any other command is judged by its exit status. Pytest's
            report is a plug-in of `suture.checks`, which runs in pytest.
        line_comment: What begins a comment up to the line's end.
        block_comment: What begins and ends a longer one; empty where there is none.
        formatter: The usual program that formats a file which it is given on stdin, and its arguments.
        linter: The usual program that finds mistakes in files named behind it, and its arguments.
        installation: What lies in an installation outside the system's folders, and is shown with it.
        packages: The folder of a project that holds what it requires; empty where it lies elsewhere.
        variables: Environment variables of its programs behind the wall.
        error_line: A line of output that tells of an error.
        aliases: What else people call it.
        layout: How a new project of it is laid out.
        ran: How many tests ran, in the output of a command without a report: each match counts one, or the
            number that its group holds.
        grammars: Tree-sitter's, for its files.
        safety_rules: What the safety scan looks for in it.
        unsafe_uses: Finds that.
    """

    label: str
    fence: str
    endings: tuple[str, ...]
    program: str
    commands: re.Pattern[str]
    layout: ProjectLayout
    aliases: tuple[str, ...] = ()
    runners: tuple[Runner, ...] = ()
    line_comment: str
    block_comment: tuple[str, str] | None = None
    formatter: tuple[str, ...] = ()
    linter: tuple[str, ...] = ()
    installation: tuple[str, ...] = ()
    packages: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    error_line: re.Pattern[str] = NEVER
    ran: re.Pattern[bytes] = re.compile(rb"(?!)")
    grammars: Grammars = field(default_factory=dict)
    safety_rules: tuple[SafetyRule, ...] = ()
    unsafe_uses: FindUses | None = None
