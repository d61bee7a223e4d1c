"""Signs that a change silences linters, type checkers or compilers instead of repairing what they report."""

from __future__ import annotations

import re

from suture.judge.runners.diagnostics import DiagnosticsRunner
from suture.judge.signs.tampering_warning import TamperingWarning
from suture.project.languages.diagnostics import (
    find_definitions,
    find_lost_annotations,
    find_new_suppressions,
    find_new_widenings,
)

MAX_NAMES = 5
"""Names that one sign lists."""
REMOVABLE = re.compile(
    r"\bunused\b|\b(?:never|not) (?:used|read|accessed|constructed)\b"
    r"|redefin|redeclare|already (?:defined|declared)|duplicate|multiple times|obscured",
    re.IGNORECASE,
)
"""Matches a message that calls code unused, or defined twice."""
REMOVABLE_NAME = re.compile(
    r"[`'\"]([\w.$]+)[`'\"]|^(\w+) declared (?:and|but) not|not used: (\w+)|^\w+ ([\w.]+) is unused"
)
"""Matches the name of that code: in quotes, or as the compiler and the linters of Go write it."""
SILENCING = re.compile(
    r"noqa|nolint|nosec|nosonar|nocheck|ignor|disabl|suppress|allow|expect|pragma|skip|\boff\b", re.IGNORECASE
)
"""Matches a suppression that only silences a tool, unlike a condition of a build such as `#[cfg(test)]`."""


def find_silencing_signs(before: str, after: str) -> tuple[TamperingWarning, ...]:
    """Return the sign that a change of a file silences a tool; for commands in which one may run unseen."""
    names = tuple(name for name in find_new_suppressions(before, after) if SILENCING.search(name))
    return (TamperingWarning(code="silences_tools", names=names[:MAX_NAMES]),) if names else ()


def find_diagnostic_signs(
    runner: DiagnosticsRunner | None, path: str, before: str, after: str
) -> tuple[TamperingWarning, ...]:
    """Return the signs in one file that a change of a task with such tools only silences them.

    Code that a diagnostic calls unused may go, and so may any other code that no definition names.

    Args:
        runner: Runs the tools of the task; `None` if it has none.
    """
    if runner is None:
        return ()
    signs: list[TamperingWarning] = []
    if runner.checks_types:
        widened = find_new_widenings(path, before, after)
        lost = tuple(f"{name} without annotations" for name in find_lost_annotations(path, before, after))
        if names := (*widened, *lost):
            signs.append(TamperingWarning(code="widens_types", names=names[:MAX_NAMES]))
    old, new = ({name for name, *_ in find_definitions(path, text)} for text in (before, after))
    removable = find_removable_names(runner.messages)
    removed = tuple(sorted(name for name in old - new if name.rpartition(".")[2] not in removable))
    if removed:
        signs.append(TamperingWarning(code="removes_definitions", names=removed[:MAX_NAMES]))
    return tuple(signs)


def find_removable_names(messages: tuple[str, ...]) -> frozenset[str]:
    """Return the names of the code that diagnostics call unused or defined twice."""
    names = [
        name
        for message in messages
        if REMOVABLE.search(message)
        for groups in REMOVABLE_NAME.findall(message)
        for name in filter(None, groups)
    ]
    return frozenset(name.rpartition(".")[2] for name in names)
