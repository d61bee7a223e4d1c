"""Find reasons to doubt a change that passes: it seems to game the tests, or it passed only one full run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from suture.core.ledger import last_payload
from suture.core.ledger.kinds import (
    CandidateProposed,
    ComparedCall,
    ComparedChange,
    RepairUndetermined,
    SearchFinished,
)
from suture.core.records import Candidate, CapabilityUse, TaskKind, Verdict
from suture.judge.capabilities import find_change_capabilities, is_rule_relevant
from suture.judge.differential.memorised_examples import ExampleSearch
from suture.judge.mutation_testing.mutant_runs import MutationResult
from suture.judge.signs import (
    WEAK_CODES,
    FileSign,
    TamperingWarning,
    find_change_signs,
    find_test_support_signs,
    find_verdict_signs,
    read_test_texts,
    render_tampering_warning,
)
from suture.judge.signs.diagnostic_signs import find_diagnostic_signs, find_silencing_signs
from suture.judge.signs.lazy_tree_signs import find_lazy_tree_signs
from suture.judge.signs.tree_signs import collect_tree_literals, find_tree_warnings
from suture.judge.signs.tree_special_cases import find_tree_special_cases
from suture.judge.suite import Suite
from suture.loop.evaluation.flaky_repairs import list_diagnoses
from suture.loop.evaluation.repeated_runs import passed_only_once
from suture.mutation import has_grammar
from suture.project.languages import LANGUAGES, detect_file_languages
from suture.project.languages.compiled.junit_xml import BUILD
from suture.project.workspace import decode_text, overlay_candidate, unified_diff

if TYPE_CHECKING:  # it imports the models and the search, which `suture judge` does not need
    from suture.loop.context import RunContext

DISTINCTIVE = re.compile(r'".{3,}"|-?\d{3,}(?:\.\d+)?|-?\d+\.\d{2,}', re.DOTALL)
"""Literals of a test of JavaScript, TypeScript or Go that are significant if the code contains them: in many honest
commits, both have smaller numbers and shorter strings."""
UNGUARDED_TEXT = "no tests guard the change: only linters, type checkers or compilers decide"
UNCERTIFIED_TEXT = (
    "it has no certificate, because a replay would prove nothing: a flaky test may also pass without it"
)
PASSED_ONCE_TEXT = "passed one complete run, and there was no time for a second one on the same files"


@dataclass(frozen=True, kw_only=True)
class ChangeWarnings:
    """Why a result is worth less than its checks say.

    Attributes:
        texts: One line for each reason.
        remarks: Lines on what was not found out. They do not lower the confidence.
        signs: Those of the reasons that are signs of gaming the tests.
    """

    texts: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    signs: tuple[FileSign, ...] = ()

    @property
    def limits_confidence(self) -> bool:
        """Whether one of the signs limits the confidence."""
        return any(sign.limits_confidence for _, sign in self.signs)


def find_warnings(
    candidate: Candidate,
    verdict: Verdict | None,
    context: RunContext,
    memorised: Sequence[FileSign] = (),
    *,
    suite: Suite | None = None,
) -> ChangeWarnings:
    """Return why a result is worth less than its checks say.

    Args:
        suite: The suite whose tests the change may game; by default that of the task's own checks.
        memorised: What calls of the changed functions showed, as `find_memorised_examples` returns it.
    """
    signs: list[FileSign] = []
    if candidate.files and candidate.origin != "user":
        kind, task_files = context.task.kind, context.task.files
        tests = read_test_texts(suite) if suite is not None else context.suites.test_texts()
        shares_process = is_rule_relevant(context.task, verdict)
        signs = [
            (path, sign)
            for path, text in sorted(candidate.files.items())
            for sign in find_gaming_signs(
                path,
                decode_text(task_files.get(path, b"")),
                text,
                tests,
                kind=kind,
                shares_process=shares_process,
            )
        ]
        diagnostics = suite.diagnostics if suite is not None else context.suites.diagnostics
        signs += [
            (path, sign)
            for path, text in sorted(candidate.files.items())
            for sign in find_diagnostic_signs(diagnostics, path, decode_text(task_files.get(path, b"")), text)
        ]
        if diagnostics is None and _may_run_tools(verdict):
            signs += [
                (path, sign)
                for path, text in sorted(candidate.files.items())
                for sign in find_silencing_signs(decode_text(task_files.get(path, b"")), text)
            ]
        signs += find_test_support_signs(context.task, tests, candidate.files)
        signs += find_verdict_signs(context.task, verdict)
    signs += memorised
    texts = [f"{path}: {render_tampering_warning(sign)}" for path, sign in signs]
    if candidate.origin in ("sample", "repair") and any(
        note.code == "no_guard_tests" for note in (verdict.notes if verdict is not None else ())
    ):
        texts.append(UNGUARDED_TEXT)
    if passed_only_once(verdict):
        texts.append(PASSED_ONCE_TEXT)
    remarks = (*_describe_unsafe_fixes(candidate, context), *_describe_flaky_tests(verdict, context))
    return ChangeWarnings(texts=tuple(texts), remarks=remarks, signs=tuple(signs))


def _may_run_tools(verdict: Verdict | None) -> bool:
    """Return whether a command may run a compiler or a linter whose report is not read."""
    if verdict is None:
        return False
    return verdict.evidence == "exit_status" or any(o.check_id == BUILD for o in verdict.outcomes)


def _describe_unsafe_fixes(candidate: Candidate, context: RunContext) -> Iterator[str]:
    """Yield which fixes made a candidate, or one that it was derived from, that their tool calls unsafe."""
    hashes, parent = {candidate.hash}, candidate.parent
    proposal = context.candidates.find_proposal(candidate.hash)
    while proposal is None or not proposal.unsafe_fixes:
        parent = proposal.parent if proposal is not None else parent
        if parent is None or parent in hashes:
            return
        hashes.add(parent)
        proposal = context.candidates.find_proposal(parent)
    commands = ", ".join(map(repr, proposal.unsafe_fixes))
    yield f"the change contains fixes by {commands} that may change what the code does"


def _describe_flaky_tests(verdict: Verdict | None, context: RunContext) -> Iterator[str]:
    """Yield which flaky tests decided nothing, and why a repair of flaky tests has no certificate."""
    notes = verdict.notes if verdict is not None else ()
    if tests := sorted({test for note in notes if note.code == "flaky_tests" for test in note.subjects}):
        more = f" and {len(tests) - 1} more" if tests[1:] else ""
        yield f"not part of what was decided, because flaky: {tests[0]}{more}"
    if list_diagnoses(context) and verdict is not None and verdict.all_passed:
        yield UNCERTIFIED_TEXT


def describe_unfinished_search(search: ExampleSearch) -> tuple[str, ...]:
    """Return lines that say what a search for memorised examples did not find out."""
    lines = [
        f"{path}: {render_tampering_warning(sign)} (not certain)"
        for path, sign in search.possible
        if (path, sign) not in search.untried
    ]
    if search.unmeasured is not None and not any(sign.shows_memorising for _, sign in search.signs):
        places = [f"{path}:{sign.line}" for path, sign in search.untried if (path, sign) in search.possible]
        parts = (
            f"the code was not tried without {', '.join(places)}" if places else "the change was not compared"
        )
        lines.append(f"the search for memorised examples did not finish for lack of time: {parts}")
    return tuple(lines)


def find_capabilities(
    candidate: Candidate, verdict: Verdict | None, context: RunContext
) -> tuple[CapabilityUse, ...]:
    """Return what a candidate newly uses of the test machinery and the interpreter."""
    if not is_rule_relevant(context.task, verdict):
        return ()
    return find_change_capabilities(context.task.files, candidate.files)


def find_gaming_signs(
    path: str,
    before: str,
    after: str,
    tests: Mapping[str, str],
    *,
    kind: TaskKind = "heal",
    shares_process: bool = False,
) -> tuple[TamperingWarning, ...]:
    """Return signs in one file that a change games the tests; none for a language without a known syntax.

    New code is searched in Python only.

    Args:
        kind: Whether the change is a repair or new code.
        tests: The project's tests and the data files that they name: path -> text.
        shares_process: Whether a check of new code shares its process.
    """
    language = next(iter(detect_file_languages((path,))), None)
    if language is None:
        return ()
    if LANGUAGES[language].parsed:
        return find_change_signs(kind, before, after, tests, shares_process=shares_process)
    if kind == "heal" and has_grammar(language):
        sources = [(name, text) for name, text in tests.items() if _is_parsed_by_trees(name)]
        literals = frozenset(filter(DISTINCTIVE.fullmatch, collect_tree_literals(sources, language)))
        signs = find_tree_warnings(before, after, path, language, literals)
        signs += find_tree_special_cases(before, after, path, language, sources, reported=signs)
        signs += find_lazy_tree_signs(before, after, path, language, sources)
        return tuple(sign for sign in signs if sign.code not in WEAK_CODES)
    return ()


def _is_parsed_by_trees(path: str) -> bool:
    languages = detect_file_languages((path,))
    return any(not LANGUAGES[language].parsed and has_grammar(language) for language in languages)


LABEL_PREFIX = "mutation, "
"""Prefix of the label of a candidate of the search; the label of the repair follows."""
FIX_SEPARATOR = "; then "
"""Separates, in the label of a candidate of the search, the repair from the fixes of tools that were added to it."""


def compare_with_rivals(
    candidate: Candidate, mutation: MutationResult, context: RunContext
) -> RepairUndetermined:
    """Return a repair together with its rivals, as the search recorded them.

    Args:
        candidate: The repair, which may have been minimised.
        mutation: How well the tests guard it.
    """
    search = last_payload(context.ledger.events, SearchFinished) or SearchFinished()
    proposal = context.candidates.find_search_proposal(candidate)
    labels = _find_labels(proposal)
    is_minimised = proposal is not None and proposal.candidate != candidate.hash
    hashes = [repair.candidate for repair in search.repairs]
    equal = hashes.index(candidate.hash) if is_minimised and candidate.hash in hashes else None
    positions: list[int] = []
    for label in labels:
        positions += [
            n
            for n, repair in enumerate(search.repairs)
            if repair.label == label and n not in (*positions, equal)
        ][:1]
    if equal is not None:  # minimisation made the repair equal to another one, which it now stands for
        positions[:1] = [equal]
    found = [search.repairs[position] for position in positions]
    changes = tuple(ComparedChange(label=repair.label, diff=repair.diff) for repair in found)
    answered = select_answers(search.compared_calls, positions)
    if is_minimised and equal is None and changes:
        # The search compared the complete change, so its answers may not be those of the minimised one.
        base = context.task.files
        diff = unified_diff(base, overlay_candidate(base, candidate.files))
        changes = (ComparedChange(label=candidate.label, diff=diff), *changes[1:])
        answered = [replace(call, answers=("", *call.answers[1:])) for call in answered]
    return RepairUndetermined(
        changes=changes or (ComparedChange(label=candidate.label, diff=""),),
        calls=tuple(answered),
        noticed=mutation.killed,
        mistakes=len(mutation.mutants),
        # Rivals that a person ruled out are no longer among those of the proposal.
        count=1 + (proposal.rivals or 0) if proposal is not None and len(changes) > 1 else 1,
    )


def _find_labels(proposal: CandidateProposed | None) -> list[str]:
    """Return the label of a repair and those of its rivals."""
    if proposal is None:
        return []
    label = proposal.label.removeprefix(LABEL_PREFIX).partition(FIX_SEPARATOR)[0]
    return [label, *proposal.rival_descriptions]


def select_answers(calls: tuple[ComparedCall, ...], positions: list[int]) -> list[ComparedCall]:
    """Return the calls that distinguish some of the repairs, with the answers of these repairs only."""
    selected = [
        replace(call, answers=tuple(call.answers[position] for position in positions)) for call in calls
    ]
    return [call for call in selected if len(set(filter(None, call.answers))) > 1]
