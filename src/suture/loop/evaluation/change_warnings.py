"""Find reasons to doubt a change that passes: it seems to game the tests, or it passed only one full run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from suture.core.records import Candidate, CapabilityUse, Verdict
from suture.judge.capabilities import find_change_capabilities, is_rule_relevant
from suture.judge.tampering import (
    WEAK_CODES,
    TamperingWarning,
    find_python_signs,
    render_tampering_warning,
)
from suture.loop.context import RunContext
from suture.loop.evaluation.repeated_runs import passed_only_once
from suture.mutation import has_grammar
from suture.project.languages import LANGUAGES, detect_file_languages
from suture.project.workspace import decode_text
from suture.search.tree_sitter.tampering_signs import collect_tree_literals, find_tree_warnings

PASSED_ONCE_TEXT = "passed one complete run, and there was no time for a second one on the same files"


@dataclass(frozen=True, kw_only=True)
class ChangeWarnings:
    """Why a result is worth less than its checks say.

    Attributes:
        texts: One line for each reason.
        shows_memorising: Whether a reason is that the change has memorised the tests' examples.
    """

    texts: tuple[str, ...] = ()
    shows_memorising: bool = False


def find_warnings(
    candidate: Candidate,
    verdict: Verdict | None,
    context: RunContext,
    memorised: Sequence[tuple[str, TamperingWarning]] = (),
) -> ChangeWarnings:
    """Return why a result is worth less than its checks say.

    Args:
        memorised: What calls of the changed functions showed, as `find_memorised_examples` returns it.
    """
    signs: list[tuple[str, TamperingWarning]] = []
    if context.task.kind == "heal" and candidate.origin != "user":
        tests, task_files = context.suites.test_texts(), context.task.files
        signs = [
            (path, sign)
            for path, text in sorted(candidate.files.items())
            for sign in find_gaming_signs(path, decode_text(task_files.get(path, b"")), text, tests)
            if sign.code not in WEAK_CODES
        ]
    signs += memorised
    texts = [f"{path}: {render_tampering_warning(sign)}" for path, sign in signs]
    if passed_only_once(verdict):
        texts.append(PASSED_ONCE_TEXT)
    return ChangeWarnings(
        texts=tuple(texts), shows_memorising=any(sign.shows_memorising for _, sign in signs)
    )


def find_capabilities(
    candidate: Candidate, verdict: Verdict | None, context: RunContext
) -> tuple[CapabilityUse, ...]:
    """Return what a candidate newly uses of the test machinery and the interpreter."""
    if not is_rule_relevant(context.task, verdict):
        return ()
    return find_change_capabilities(context.task.files, candidate.files)


def find_gaming_signs(
    path: str, before: str, after: str, tests: Mapping[str, str]
) -> tuple[TamperingWarning, ...]:
    """Return signs in one file that a change games the tests; none for a language without a known syntax.

    Args:
        tests: The project's tests and the data files that they name: path -> text.
    """
    language = next(iter(detect_file_languages((path,))), None)
    if language is None:
        return ()
    if LANGUAGES[language].parsed:
        return find_python_signs(before, after, tests)
    if has_grammar(language):
        sources = [(name, text) for name, text in tests.items() if _is_parsed_by_trees(name)]
        literals = collect_tree_literals(sources, language)
        return find_tree_warnings(before, after, path, language, literals)
    return ()


def _is_parsed_by_trees(path: str) -> bool:
    languages = detect_file_languages((path,))
    return any(not LANGUAGES[language].parsed and has_grammar(language) for language in languages)
