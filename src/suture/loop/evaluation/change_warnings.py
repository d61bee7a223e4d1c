"""Warn about a change: signs that it games the tests, or that it passed only one complete run."""

from __future__ import annotations

from collections.abc import Mapping

from suture.core.records import Candidate, Verdict
from suture.judge.tampering import (
    TamperingWarning,
    collect_literals,
    find_tampering_warnings,
    render_tampering_warning,
)
from suture.loop.context import RunContext
from suture.loop.evaluation.repeated_runs import passed_only_once
from suture.mutation import has_grammar
from suture.project.languages import LANGUAGES, detect_file_languages
from suture.project.workspace import decode_text
from suture.search.tree_sitter.tampering_signs import collect_tree_literals, find_tree_warnings

PASSED_ONCE_TEXT = "passed one complete run, and there was no time for a second one on the same files"


def find_warnings(candidate: Candidate, verdict: Verdict | None, context: RunContext) -> tuple[str, ...]:
    """Return why a result is worth less than its checks say, one line for each reason."""
    signs = _find_gaming_signs(candidate, context)
    return (*signs, PASSED_ONCE_TEXT) if passed_only_once(verdict) else signs


def _find_gaming_signs(candidate: Candidate, context: RunContext) -> tuple[str, ...]:
    """Return signs that a change games the tests, each with its file. New code has none."""
    if context.task.kind != "heal" or candidate.origin == "user":
        return ()
    tests, given = context.suites.test_sources(), context.task.files
    return tuple(
        f"{path}: {render_tampering_warning(sign)}"
        for path, text in sorted(candidate.files.items())
        for sign in find_gaming_signs(path, decode_text(given.get(path, b"")), text, tests)
    )


def find_gaming_signs(
    path: str, before: str, after: str, tests: Mapping[str, str]
) -> tuple[TamperingWarning, ...]:
    """Return signs in one file that a change games the tests; none for a language without a known syntax.

    Args:
        path: The path of the file, from which its language follows.
        before: The text before the change.
        after: The text with the change.
        tests: The project's tests: path -> text.
    """
    language = next(iter(detect_file_languages((path,))), None)
    if language is None:
        return ()
    if LANGUAGES[language].parsed:
        return find_tampering_warnings(before, after, collect_literals(tests.values()))
    if has_grammar(language):
        literals = collect_tree_literals(tests.items(), language)
        return find_tree_warnings(before, after, path, language, literals)
    return ()
