"""What is suspicious about a change, whoever made it: signs that it games the tests, or that it ran once."""

from __future__ import annotations

from collections.abc import Mapping

from suture.core.records import Candidate, Verdict
from suture.judge.tampering import TamperingWarning, render_tampering_warning
from suture.loop.context import RunContext
from suture.loop.evaluation.two_runs import PASSED_ONCE, passed_only_once
from suture.mutation.tree_sitter.node_kinds import has_grammar
from suture.project.languages import LANGUAGES, detect_file_languages
from suture.project.workspace import text_of
from suture.search import collect_literals, find_tampering_warnings
from suture.search.tree_sitter.tampering_signs import collect_tree_literals, find_tree_warnings


def find_warnings(candidate: Candidate, verdict: Verdict | None, context: RunContext) -> tuple[str, ...]:
    """Why less can be thought of a result than its checks say."""
    signs = suspicious_signs(candidate, context)
    return (*signs, PASSED_ONCE) if passed_only_once(verdict) else signs


def suspicious_signs(candidate: Candidate, context: RunContext) -> tuple[str, ...]:
    """Signs that a change games the tests, each with its file; new code has none.

    Files in languages of whose syntax nothing is known are not looked at.
    """
    if context.task.kind != "heal" or candidate.origin == "user":
        return ()
    tests = context.test_sources()
    return tuple(
        f"{path}: {render_tampering_warning(sign)}"
        for path, text in sorted(candidate.files.items())
        for sign in find_gaming_signs(path, text_of(context.task.files.get(path, b"")), text, tests)
    )


def find_gaming_signs(path: str, before: str, after: str, tests: Mapping[str, str]) -> tuple[TamperingWarning, ...]:
    """Return the signs in one file that a change games the tests.

    Args:
        path: For its language.
        before: Its text before the change.
        after: Its text with it.
        tests: The project's tests, path -> text.
    """
    language = next(iter(detect_file_languages((path,))), None)
    if language is None:
        return ()
    if LANGUAGES[language].parsed:
        return find_tampering_warnings(before, after, collect_literals(tests.values()))
    if has_grammar(language):
        return find_tree_warnings(before, after, path, language, collect_tree_literals(tests.items(), language))
    return ()
