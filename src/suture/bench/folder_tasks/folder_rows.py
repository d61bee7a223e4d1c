"""The row that is stored for each task, and the table that is computed from rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from suture.bench.measures.paired_statistics import Interval, exact_interval
from suture.core.records import Outcome, Result


@dataclass(frozen=True, kw_only=True)
class AttemptRow:
    """One attempt at a task, graded after it has ended.

    Attributes:
        outcome: How the run ended, which says nothing about the hidden tests.
        reward: What the hidden tests give, in [0, 1]; 1 if all of them pass.
        reason: Why the reward is not 1, in one line.
        calls: Calls of the model that were answered.
        seconds: Wall-clock seconds of the run, without the grading.
    """

    run: str
    outcome: Outcome
    reward: float
    reason: str = ""
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class FolderRow:
    """The result of one task with one model.

    Attributes:
        task: Id of the task, such as `python/two-fer`.
        task_hash: Hash of everything that defines the task.
        settings_hash: Hash of the settings and the version on which the result depends.
        max_attempts: Number of attempts that the benchmark allows.
        attempts: The attempts in order; the last one solved the task, or there was none left.
        fault: Why there is no result, such as a missing program; empty if there is one.
    """

    task: str
    task_hash: str
    settings_hash: str
    model: str
    max_attempts: int
    attempts: tuple[AttemptRow, ...] = ()
    fault: str = ""

    def is_solved_within(self, attempts: int) -> bool:
        """Return whether one of the first attempts passes all hidden tests."""
        return any(attempt.reward >= 1 for attempt in self.attempts[:attempts])


def make_attempt_row(result: Result, reward: float, reason: str) -> AttemptRow:
    """Return the row of an ended run with what the hidden tests gave it."""
    spend = result.spend
    return AttemptRow(
        run=result.run_id,
        outcome=result.outcome,
        reward=reward,
        reason="" if reward >= 1 else reason,
        calls=spend.model_calls,
        prompt_tokens=spend.prompt_tokens,
        completion_tokens=spend.completion_tokens,
        seconds=spend.seconds,
    )


@dataclass(frozen=True, kw_only=True)
class TaskSummary:
    """What one model did on a group of tasks.

    Attributes:
        group: The first part of the tasks' ids, such as the language of polyglot exercises; `all` for all tasks.
        tasks: Number of tasks with a result.
        faults: Number of tasks without one.
        passed: For 1, 2, ... attempts: the share of tasks solved within them, with its exact 95 % interval.
        calls: Calls of the model, for all tasks together, as the other sums.
    """

    model: str
    group: str
    tasks: int
    faults: int
    passed: tuple[Interval, ...]
    calls: int
    prompt_tokens: int
    completion_tokens: int
    seconds: float


def find_group(task: str) -> str:
    """Return the group of a task's id: the part before a `/`, such as a language, else `all`."""
    return task.partition("/")[0] if "/" in task else "all"


def summarise_rows(rows: Sequence[FolderRow]) -> list[TaskSummary]:
    """Return one summary for each model and group of tasks, and one for all groups if there are several."""
    summaries = []
    for model in dict.fromkeys(row.model for row in rows):
        own = [row for row in rows if row.model == model]
        groups: dict[str, list[FolderRow]] = {}
        for row in own:
            groups.setdefault(find_group(row.task), []).append(row)
        if len(groups) > 1:
            groups["all"] = own
        summaries += [_summarise(model, group, members) for group, members in groups.items()]
    return summaries


def _summarise(model: str, group: str, rows: Sequence[FolderRow]) -> TaskSummary:
    measured = [row for row in rows if not row.fault]
    attempts = [attempt for row in measured for attempt in row.attempts]
    max_attempts = max((row.max_attempts for row in measured), default=0)
    return TaskSummary(
        model=model,
        group=group,
        tasks=len(measured),
        faults=len(rows) - len(measured),
        passed=tuple(
            exact_interval(_count(row.is_solved_within(number) for row in measured), len(measured))
            for number in range(1, max_attempts + 1)
        ),
        calls=sum(attempt.calls for attempt in attempts),
        prompt_tokens=sum(attempt.prompt_tokens for attempt in attempts),
        completion_tokens=sum(attempt.completion_tokens for attempt in attempts),
        seconds=sum(attempt.seconds for attempt in attempts),
    )


def _count(values: Iterable[bool]) -> int:
    return sum(values)
