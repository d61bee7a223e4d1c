"""What is suspicious about a change, whoever made it: signs that it games the tests, or that it ran once."""

from __future__ import annotations

from collections.abc import Mapping

from suture.core.records import Candidate, Verdict
from suture.loop.context import RunContext
from suture.loop.evaluation.two_runs import ONCE, is_of_one_run
from suture.mutation.tree_sitter.grammars import has_grammar
from suture.project.languages import LANGUAGES, languages_of_files
from suture.project.workspace import text_of
from suture.search import literals_of, warnings_about
from suture.search.tree_sitter.tampering_signs import collect_tree_literals, find_tree_warnings


def doubts_about(candidate: Candidate, verdict: Verdict | None, context: RunContext) -> tuple[str, ...]:
    """Why less can be thought of a result than its checks say."""
    signs = suspicious_signs(candidate, context)
    return (*signs, ONCE) if is_of_one_run(verdict) else signs


def suspicious_signs(candidate: Candidate, context: RunContext) -> tuple[str, ...]:
    """Signs that a change games the tests, each with its file; new code has none.

    Files in languages of whose syntax nothing is known are not looked at.
    """
    if context.task.kind != "heal" or candidate.origin == "user":
        return ()
    tests = context.test_sources()
    return tuple(
        f"{path}: {sign}"
        for path, text in sorted(candidate.files.items())
        for sign in signs_in_file(path, text_of(context.task.files.get(path, b"")), text, tests)
    )


def signs_in_file(path: str, before: str, after: str, tests: Mapping[str, str]) -> tuple[str, ...]:
    """Those of one file.

    Args:
        path: For its language.
        before: Its text before the change.
        after: Its text with it.
        tests: The project's tests, path -> text.
    """
    language = next(iter(languages_of_files((path,))), None)
    if language is None:
        return ()
    if LANGUAGES[language].parsed:
        return warnings_about(before, after, literals_of(tests.values()))
    if has_grammar(language):
        return find_tree_warnings(before, after, path, language, collect_tree_literals(tests.items(), language))
    return ()
