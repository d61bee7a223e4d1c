"""Find reasons to doubt a change that passes: it seems to game the tests, or it passed only one full run."""

from __future__ import annotations

from collections.abc import Mapping

from suture.core.records import Candidate, CapabilityUse, Verdict
from suture.judge.capabilities import find_change_capabilities, is_rule_relevant
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
    warnings: list[str] = []
    if context.task.kind == "heal" and candidate.origin != "user":
        tests, task_files = context.suites.test_sources(), context.task.files
        warnings = [
            f"{path}: {render_tampering_warning(sign)}"
            for path, text in sorted(candidate.files.items())
            for sign in find_gaming_signs(path, decode_text(task_files.get(path, b"")), text, tests)
        ]
    if passed_only_once(verdict):
        warnings.append(PASSED_ONCE_TEXT)
    return tuple(warnings)


def find_capabilities(candidate: Candidate, context: RunContext) -> tuple[CapabilityUse, ...]:
    """Return what a candidate newly uses of the test machinery and the interpreter."""
    if not is_rule_relevant(context.task):
        return ()
    return find_change_capabilities(context.task.files, candidate.files)


def find_gaming_signs(
    path: str, before: str, after: str, tests: Mapping[str, str]
) -> tuple[TamperingWarning, ...]:
    """Return signs in one file that a change games the tests; none for a language without a known syntax.

    Args:
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
