"""Build the brief of a move: the task, the counterexamples of the failing candidate, and the code to show."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from suture.agents.context.failure_causes import collect_deciding_facts, count_deciding_checks
from suture.agents.context.file_selection import make_excerpt, select_named_files, select_suspicious_files
from suture.agents.context.suspects import find_related_functions, find_suspicious_functions
from suture.agents.prompting.prompt_parts import EarlierAttempt, describe_fact
from suture.agents.roles.coder import Brief, RepairBrief, TextBrief, WriteBrief
from suture.agents.roles.project_coder import ProjectBrief, find_task_skeleton, render_project_rules
from suture.agents.tuning import (
    MAX_PROJECT_CHARS,
    MAX_SAMPLE_LINE_CHARS,
    MAX_SAMPLE_LINES,
    MAX_WHOLE_FILE_CHARS,
)
from suture.core.ledger.kinds import SearchFinished, SuspectLine
from suture.core.records import Candidate, Counterexample, Move, Strategy, Task, Verdict
from suture.judge import Suite, find_protected_paths
from suture.project.languages import LANGUAGES
from suture.project.python_source.parsing import parse_module
from suture.project.workspace import (
    DEFAULT_PROTECTED,
    decode_text,
    is_protected,
    is_test_file,
    overlay_candidate,
)

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
        suite: The tests that decide; it says which files a candidate may write.
        trust_threshold: Trust below which a check does not decide. Facts of such checks are never shown.
        clues: What the search found out before; its line numbers refer to the user's unchanged code.
        history: The last attempts, without the one that is repaired.
        refused: Why the replies of the last round could not be used. A `WriteBrief` does not show it.
    """

    task: Task
    suite: Suite
    trust_threshold: float
    clues: SearchFinished = field(default_factory=SearchFinished)
    history: tuple[EarlierAttempt, ...] = ()
    refused: Sequence[str] = ()

    def for_move(self, move: Move, parent: FailingCandidate | None) -> Brief:
        """Return the brief of a move; `parent` is the candidate that it repairs, if any."""
        task = self.task
        if move.kind == "sample":
            parent = None
        is_python = LANGUAGES[task.language].parsed
        if task.kind == "write" and (task.project is not None or not is_python):
            return self._for_project(move, parent)
        if parent is None:
            return WriteBrief(
                statement=task.statement,
                module=task.module,
                other_modules=task.extra_modules,
                allows_several_files=task.allows_more_files,
                entry_point=task.entry_point,
                tests=_render_visible_tests(task),
            )
        return self.for_repair(parent, move.strategy) if is_python else self._for_text(move, parent)

    def for_repair(self, parent: FailingCandidate, strategy: Strategy = "minimal") -> RepairBrief:
        """Return everything that is known about a failing candidate of Python code."""
        task, candidate = self.task, parent.candidate
        is_new = task.kind == "write"
        may_create_files = is_new and task.allows_more_files
        # The task's modules come first: a prompt that is too long loses the last files.
        paths = dict.fromkeys(path for path in (*task.modules, *candidate.files) if path in candidate.files)
        brief = RepairBrief(
            statement=task.statement,
            files={path: candidate.files[path] for path in paths} if is_new else {},
            entry_point=task.entry_point,
            facts=collect_deciding_facts(parent.verdict, self.trust_threshold),
            output=parent.verdict.output,
            history=self.history,
            strategy=strategy,
            passing_checks=_count_passing_checks(parent.verdict, self.trust_threshold),
            refused=self.refused,
            # `None` says that the reply may not create files; for existing code, `_with_located_code` sets it.
            project=frozenset((*task.files, *candidate.files)) if may_create_files else None,
        )
        return brief if is_new else self._with_located_code(brief, candidate)

    def _for_project(self, move: Move, parent: FailingCandidate | None) -> ProjectBrief:
        """Return a brief for a coder that writes whole files: for a project, or in another language."""
        task = self.task
        skeleton = find_task_skeleton(task)
        is_new = task.project is not None and task.project.is_new
        candidate_files = parent.candidate.files if parent else {}
        files = dict(candidate_files)
        if not is_new:
            for path, text in self._select_writable_files(candidate_files).items():
                files.setdefault(path, text)
        brief = ProjectBrief(
            statement=task.statement,
            rules=render_project_rules(task),
            files=files,
            entry=task.module if task.project is None or is_new else "",  # an existing project has its own
            tests=_render_given_tests(task),
            project=frozenset((*task.files, *candidate_files)),
            refused=self.refused,
            skeleton=skeleton,
            sample=_render_sample(task) if skeleton is not None else "",
        )
        if parent is None:
            return brief
        return replace(
            brief,
            facts=collect_deciding_facts(parent.verdict, self.trust_threshold),
            output=parent.verdict.output,
            history=self.history,
            strategy=move.strategy,
            is_repair=True,
        )

    def _select_writable_files(self, candidate_files: Mapping[str, str]) -> dict[str, str]:
        """Return the files of a project that may change, those whose paths the statement mentions first."""
        files = overlay_candidate(self.task.files, candidate_files)
        protected = self._protected_files(files)
        # Words of one or two letters say nothing about a path.
        statement_words = {word.lower() for word in re.findall(r"[A-Za-z]{3,}", self.task.statement)}

        def rank(path: str) -> tuple[bool, str]:
            return not statement_words & set(re.findall(r"[a-z]{3,}", path.lower())), path

        selected: dict[str, str] = {}
        room_chars = MAX_PROJECT_CHARS
        for path in sorted((p for p in files if p not in protected and not is_test_file(p)), key=rank):
            text = decode_text(files[path])
            is_binary = b"\0" in files[path]
            if not is_binary and len(text) <= room_chars:
                selected[path] = text
                room_chars -= len(text)
        return selected

    def _for_text(self, move: Move, parent: FailingCandidate) -> TextBrief:
        """Return a brief of code that is judged by exit status: only the command's output is known."""
        output = parent.verdict.output
        files = overlay_candidate(self.task.files, parent.candidate.files)
        shown = select_named_files(files, output, self._protected_files(files), self.task.language)
        return TextBrief(
            statement=self.task.statement,
            language=self.task.language,
            files=shown,
            other_files=self._other_files(files, shown),
            output=output,
            history=self.history,
            strategy=move.strategy,
            project=frozenset(files),
            refused=self.refused,
        )

    def _other_files(self, files: Mapping[str, bytes], shown: Collection[str]) -> dict[str, str]:
        """Return the text files that a reply may change although the prompt does not show them."""
        hidden = {*shown, *self._protected_files(files)}
        return {
            path: decode_text(content)
            for path, content in files.items()
            if path not in hidden and b"\0" not in content
        }

    def _with_located_code(self, brief: RepairBrief, candidate: Candidate) -> RepairBrief:
        """Add the project's code to a brief, guided by what the search found out about it."""
        clues = self.clues
        files = overlay_candidate(self.task.files, candidate.files)
        located_paths = [suspect_line.path for suspect_line in clues.faults]
        shown = select_suspicious_files(files, brief.facts, self._protected_files(files), located_paths)
        # The line numbers of the clues are those of the user's code. They do not fit a changed file.
        unchanged = {path: text for path, text in shown.items() if path not in candidate.files}
        suspects = find_suspicious_functions(unchanged, clues)
        located = [suspect_line for suspect_line in clues.faults if suspect_line.path in unchanged]
        lines = {path: _suspicious_lines(path, located, brief.facts) for path in shown}
        shown = _drop_unsuspicious(shown, lines)
        excerpts = {
            path: excerpt
            for path, text in shown.items()
            if (excerpt := make_excerpt(text, lines[path])) is not None
        }
        # Related functions are only read. So files count that this task does not let a candidate write, but no
        # tests and nothing that serves them.
        non_test_code = {
            path: decode_text(files[path])
            for path in files
            if path.endswith(".py")
            and path not in self.suite.test_files
            and not is_protected(path, DEFAULT_PROTECTED)
        }
        return replace(
            brief,
            files=shown,
            # Divergences were observed on the user's own code, which a candidate without files leaves as it is.
            divergences={} if candidate.files else clues.divergences,
            project=frozenset(files),
            other_files=self._other_files(files, shown),
            excerpts=excerpts,
            suspects=suspects,
            hints=[partial_repair for partial_repair in clues.partial if partial_repair.path in unchanged],
            related_functions=find_related_functions(
                suspects, non_test_code, tuple({**shown, **excerpts}.values())
            ),
        )

    def _protected_files(self, files: Mapping[str, bytes]) -> tuple[str, ...]:
        return find_protected_paths(files, self.suite)


def _count_passing_checks(verdict: Verdict, threshold: float) -> int | None:
    """Return the number of deciding checks that pass; `None` if one fails, or only the output shows a fault."""
    passed, failed, _ = count_deciding_checks(verdict, None, threshold)
    is_faultless = not failed and (passed or not verdict.output)
    return passed if is_faultless else None


def _render_visible_tests(task: Task) -> str:
    """Return the tests that the user gave, without examples, because the statement shows those."""
    files = [
        content.decode("utf-8", "replace")
        for path, content in task.files.items()
        if path in task.test_command and path.endswith(".py")
    ]
    return _join_user_tests(task, files)


def _render_given_tests(task: Task) -> str:
    """Return the tests that the user gave with the statement; not the tests of an existing project."""
    is_new = not task.project or task.project.is_new
    given_files = task.given_files if is_new else {}
    files = [decode_text(content) for path, content in given_files.items() if is_test_file(path)]
    return _join_user_tests(task, files)


def _render_sample(task: Task) -> str:
    """Return the first lines of the sample data."""
    path = task.project.sample if task.project else ""
    lines = decode_text(task.files[path]).splitlines() if path else []
    return "\n".join(line[:MAX_SAMPLE_LINE_CHARS] for line in lines[:MAX_SAMPLE_LINES])


def _join_user_tests(task: Task, files: Iterable[str]) -> str:
    asserts = [check.source for check in task.checks if check.provenance == "user"]
    return "\n".join(text.strip("\n") for text in [*asserts, *files])


def _suspicious_lines(
    path: str, located: Sequence[SuspectLine], facts: Sequence[Counterexample]
) -> list[int]:
    """Return suspicious lines of a file: those that the search located, then those that raised in a test."""
    located_lines = [suspect_line.line for suspect_line in located if suspect_line.path == path]
    raising_lines = [fact.line for fact in facts if fact.file == path and fact.line is not None]
    return list(dict.fromkeys([*located_lines, *raising_lines]))


def _drop_unsuspicious(shown: Mapping[str, str], lines: Mapping[str, Sequence[int]]) -> dict[str, str]:
    """Drop files without a suspicious line where the files are long: a small model reads slowly."""
    if not any(lines.values()) or sum(map(len, shown.values())) <= MAX_WHOLE_FILE_CHARS:
        return dict(shown)
    return {path: text for path, text in shown.items() if lines[path]}


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
    """Add a person's hints to a brief, the newest (the last of `hints`) first and before all other advice."""
    return with_advice(brief, [f"{HINT_PREFIX}{hint}" for hint in reversed(hints)])


def with_advice(brief: Brief, advice: Sequence[str]) -> Brief:
    """Add advice to a brief: before its other advice in a `RepairBrief`, else at the end of the statement."""
    if not advice:
        return brief
    if isinstance(brief, RepairBrief):
        return replace(brief, advice=(*advice, *brief.advice))
    # As comments, the hints keep a stub valid Python, so that it stays in its code fence in the prompt.
    comment_sign = "# " if parse_module(brief.statement) is not None else ""
    lines = "\n".join(f"{comment_sign}{' '.join(line.split())}" for line in advice)
    return replace(brief, statement=f"{brief.statement.rstrip()}\n\n{lines}".lstrip())
