"""Faults of a test's surroundings as programs print them: a package, file or network that is not there."""

from __future__ import annotations

import re
from collections.abc import Mapping

from suture.checks.triage.surroundings import missing_file
from suture.languages import LANGUAGES
from suture.records import Language

FILE = re.compile(r"ENOENT: no such file or directory, \w+ '(?P<node>[^']+)'|open (?P<go>\S+): no such file")
NETWORK = re.compile(
    r"\b(?:EAI_AGAIN|ENOTFOUND|ECONNREFUSED|ENETUNREACH)\b|dial tcp\b.*(?:lookup|refused|unreachable)"
)


def printed_errors(output: str, language: Language) -> list[str]:
    """The lines of a test command's output that tell of an error: each must be one of the surroundings.

    Args:
        output: What the test command printed.
        language: What the project is written in; not Python.
    """
    error = LANGUAGES[language].error_line
    return [line.strip() for line in output.splitlines() if error.search(line)]


def fault_in_line(line: str, files: Mapping[str, bytes], language: Language) -> tuple[str, str] | None:
    """Why a line of output tells of no fault of the code, and what to do; `None` where it may be the code's.

    A module of the project's own, and a name that is nearly one that it requires, is a slip in the code.

    Args:
        line: As `printed_errors` answers it.
        files: The project's files, path -> content.
        language: What the project is written in.
    """
    find = LANGUAGES[language].find_absent
    if find is not None and (absent := find(line, files)):
        return absent
    if match := FILE.search(line):
        return missing_file(match["node"] or match["go"], files)
    if NETWORK.search(line):
        return "it needs a network, and the sandbox has none", "test against a stand-in that runs in the test"
    return None
