"""Build the brief of a move: the task, the facts of the failing candidate, and the code that may be at
fault.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from suture.agents.context.deciding_checks import collect_deciding_facts
from suture.agents.context.excerpts import make_excerpt
from suture.agents.context.file_selection import select_named_files, select_suspicious_files
from suture.agents.context.project_briefs import (
    is_written_as_files,
    make_new_project_brief,
    make_project_repair_brief,
)
from suture.agents.context.related_functions import find_related_functions
from suture.agents.context.search_clues import SearchClues, find_suspicious_functions
from suture.agents.prompting.prompt_parts import EarlierAttempt, describe_fact
from suture.agents.roles.coder import Brief, RepairBrief, WriteBrief
from suture.agents.roles.project_coder import ProjectBrief
from suture.agents.roles.text_coder import TextBrief
from suture.agents.tuning import MAX_WHOLE_FILE_CHARS
from suture.core.records import Candidate, Counterexample, Move, Strategy, Task, Verdict
from suture.judge import Suite, find_protected_files
from suture.project.languages import LANGUAGES
from suture.project.python_source.parsing import parse_module
from suture.project.workspace import DEFAULT_PROTECTED, decode_text, is_protected, overlay_candidate

HINT_PREFIX = "A person who reviews this adds: "


@dataclass(frozen=True, kw_only=True)
class FailingCandidate:
    """A candidate to repair, with its verdict."""

    candidate: Candidate
    verdict: Verdict


@dataclass(frozen=True, kw_only=True)
class BriefBuilder:
    """Builds the briefs of one round.

    Attributes:
        task: The task.
        suite: The tests that decide; it says which files a candidate may write.
        trust_threshold: Trust below which a check does not decide. Facts of such checks are never shown.
        clues: What the search found out before.
        history: The last attempts, without the one that is repaired.
        refused: Why the replies of the last round could not be used.
    """

    task: Task
    suite: Suite
    trust_threshold: float
    clues: SearchClues = field(default_factory=SearchClues)
    history: tuple[EarlierAttempt, ...] = ()
    refused: Sequence[str] = ()

    def for_move(self, move: Move, parent: FailingCandidate | None) -> Brief:
        """Return the brief of a move; `parent` is the candidate that it repairs, if any."""
        task = self.task
        is_fresh = move.kind == "sample" or parent is None
        if is_written_as_files(task):
            return self._for_project(move, None if is_fresh else parent)
        if move.kind == "sample" or parent is None:
            return WriteBrief(
                statement=task.statement,
                module=task.module,
                other_modules=task.extra_modules,
                allows_several_files=task.allows_more_files,
                entry_point=task.entry_point,
                tests=_visible_tests(task),
            )
        if not LANGUAGES[task.language].parsed:
            return self._for_text(move, parent)
        return self.for_repair(parent, move.strategy)

    def for_repair(self, parent: FailingCandidate, strategy: Strategy = "minimal") -> RepairBrief:
        """Return everything that is known about a failing candidate of Python code."""
        task, candidate = self.task, parent.candidate
        is_new = task.kind == "write"
        brief = RepairBrief(
            statement=task.statement,
            files=_order_files(candidate, task) if is_new else {},
            entry_point=task.entry_point,
            facts=collect_deciding_facts(parent.verdict, self.trust_threshold),
            output=parent.verdict.output,
            history=self.history,
            strategy=strategy,
            refused=self.refused,
            project=(
                frozenset((*task.files, *candidate.files)) if is_new and task.allows_more_files else None
            ),
        )
        return brief if is_new else self._with_located_code(brief, candidate)

    def _for_project(self, move: Move, parent: FailingCandidate | None) -> ProjectBrief:
        brief = replace(make_new_project_brief(self.task, self.suite), refused=self.refused)
        if parent is None:
            return brief
        known = replace(
            brief,
            facts=collect_deciding_facts(parent.verdict, self.trust_threshold),
            output=parent.verdict.output,
            history=self.history,
        )
        return make_project_repair_brief(move, parent.candidate, known, self.task, self.suite)

    def _for_text(self, move: Move, parent: FailingCandidate) -> TextBrief:
        """Return a brief of code that is judged by exit status: only the command's output is known."""
        output = parent.verdict.output
        files = overlay_candidate(self.task.files, parent.candidate.files)
        protected = find_protected_files(dict.fromkeys(files, ""), self.suite)
        return TextBrief(
            statement=self.task.statement,
            language=self.task.language,
            files=select_named_files(files, output, protected, self.task.language),
            output=output,
            history=self.history,
            strategy=move.strategy,
            project=frozenset(files),
            refused=self.refused,
        )

    def _with_located_code(self, brief: RepairBrief, candidate: Candidate) -> RepairBrief:
        """Add the project's code to a brief, guided by what the search found out about it."""
        clues = self.clues
        files = overlay_candidate(self.task.files, candidate.files)
        protected = find_protected_files(dict.fromkeys(files, ""), self.suite)
        located = [fault.path for fault in clues.faults]
        shown = select_suspicious_files(files, brief.facts, protected, located)
        # The line numbers of the clues are those of the user's code. They do not fit a changed file.
        unchanged = {path: text for path, text in shown.items() if path not in candidate.files}
        suspects = find_suspicious_functions(unchanged, clues)
        lines = {
            path: _suspicious_lines(path, clues if path in unchanged else None, brief.facts) for path in shown
        }
        shown = _drop_unsuspicious(shown, lines)
        excerpts = _make_excerpts(shown, lines)
        code = {
            path: decode_text(files[path])
            for path in files
            if path.endswith(".py") and not self._is_test(path)
        }
        return replace(
            brief,
            files=shown,
            divergences={} if candidate.files else clues.divergences,
            project=frozenset(files),
            excerpts=excerpts,
            suspects=suspects,
            hints=[hint for hint in clues.hints if hint.path in unchanged],
            related_functions=find_related_functions(suspects, code, tuple({**shown, **excerpts}.values())),
        )

    def _is_test(self, path: str) -> bool:
        return path in self.suite.test_files or is_protected(path, DEFAULT_PROTECTED)


def _visible_tests(task: Task) -> str:
    """Return the tests that the user gave. The coder may read them; examples are part of the statement."""
    asserts = [check.source for check in task.checks if check.provenance == "user"]
    files = [
        content.decode("utf-8", "replace")
        for path, content in task.files.items()
        if path in task.test_command and path.endswith(".py")
    ]
    return "\n".join(text.strip("\n") for text in [*asserts, *files])


def _order_files(candidate: Candidate, task: Task) -> dict[str, str]:
    """Return a candidate's files, the task's modules first: a prompt that is too long loses the last ones."""
    return {
        path: candidate.files[path] for path in (*task.modules, *candidate.files) if path in candidate.files
    }


def _suspicious_lines(path: str, clues: SearchClues | None, facts: Sequence[Counterexample]) -> list[int]:
    """Return suspicious lines of a file: those that the search located, then those that raised in a test."""
    located = [fault.line for fault in clues.faults if fault.path == path] if clues else []
    raised = [fact.line for fact in facts if fact.file == path and fact.line is not None]
    return list(dict.fromkeys([*located, *raised]))


def _drop_unsuspicious(shown: Mapping[str, str], lines: Mapping[str, Sequence[int]]) -> dict[str, str]:
    """Drop files without a suspicious line where the files are long: a small model reads slowly."""
    if not any(lines.values()) or sum(map(len, shown.values())) <= MAX_WHOLE_FILE_CHARS:
        return dict(shown)
    return {path: text for path, text in shown.items() if lines[path]}


def _make_excerpts(files: Mapping[str, str], lines: Mapping[str, Sequence[int]]) -> dict[str, str]:
    excerpts = {path: make_excerpt(text, lines[path]) for path, text in files.items()}
    return {path: excerpt for path, excerpt in excerpts.items() if excerpt is not None}


def describe_attempt(
    label: str, passed: int, failed: int, verdict: Verdict, threshold: float
) -> EarlierAttempt:
    """Return a judged attempt as a prompt lists it, with its first deciding failure."""
    facts = collect_deciding_facts(verdict, threshold)
    return EarlierAttempt(
        label=label,
        passed=passed,
        total=passed + failed,
        first_failure=describe_fact(facts[0]) if facts else "",
    )


def with_hints(brief: Brief, hints: Sequence[str]) -> Brief:
    """Add a person's hints to a brief, the last one first and before all other advice.

    Args:
        brief: The brief of a move.
        hints: The hints in the order in which they were given.
    """
    return with_advice(brief, [f"{HINT_PREFIX}{hint}" for hint in reversed(hints)])


def with_advice(brief: Brief, advice: Sequence[str]) -> Brief:
    """Add advice to a brief, before all other that it holds."""
    if not advice:
        return brief
    if isinstance(brief, RepairBrief):
        return replace(brief, advice=(*advice, *brief.advice))
    # As comments, the hints keep a stub valid Python, so that it stays in its code fence in the prompt.
    mark = "# " if parse_module(brief.statement) is not None else ""
    lines = "\n".join(f"{mark}{' '.join(line.split())}" for line in advice)
    return replace(brief, statement=f"{brief.statement.rstrip()}\n\n{lines}".lstrip())
