"""Signs that a change silences linters, type checkers or compilers in place of repairing what they report."""

from __future__ import annotations

import re

from suture.judge.runners.diagnostics import DiagnosticsRunner
from suture.judge.signs.tampering_warning import TamperingWarning
from suture.project.languages.diagnostics import find_definitions, find_new_widenings

MAX_NAMES = 5
"""Names that one sign lists."""


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
    if runner.checks_types and (widened := find_new_widenings(path, before, after)):
        signs.append(TamperingWarning(code="widens_types", names=widened))
    old, new = ({name for name, *_ in find_definitions(path, text)} for text in (before, after))
    reported = {word for message in runner.messages for word in re.findall(r"\w+", message)}
    removed = tuple(sorted(name for name in old - new if name.rpartition(".")[2] not in reported))
    if removed:
        signs.append(TamperingWarning(code="removes_definitions", names=removed[:MAX_NAMES]))
    return tuple(signs)
