"""A question to a person, the possible answers, and where answers come from."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from suture.core.ledger import (
    Event,
    RunFolder,
    find_first_payload,
    last_payload,
    read_ledger,
    select_events,
)
from suture.core.ledger.kinds import (
    Choice,
    ComparedChange,
    DistinguishingInput,
    MovesDecided,
    ProposedExample,
    RaisingCall,
    ReviewAnswered,
    ReviewAsked,
    ReviewChoice,
    ReviewStage,
    RunFailed,
    RunFinished,
    RunStarted,
    SearchFinished,
    UserAnswered,
)
from suture.core.records import Candidate, Counterexample, Diagnosis, Move, Task, Verdict
from suture.errors import StorageError, UsageError
from suture.judge.differential.proposed_examples import render_main_call
from suture.loop.review.examples import EXAMPLES_FILE, read_examples, render_agreed, render_examples
from suture.project.languages import is_source
from suture.project.workspace import (
    DEFAULT_PROTECTED,
    decode_text,
    is_protected,
    overlay_candidate,
    unified_diff,
)
from suture.search import PlausibleRepairs

STEP_CHOICES = get_args(ReviewChoice)
DIFFERENCE_CHOICES = (*get_args(Choice), "unsure")
STAGES_WITHOUT_EDIT = ("test", "safety")
"""Stages whose question shows no candidate that could be edited: a new test, and findings of the safety scan."""


@dataclass(frozen=True, kw_only=True)
class ReviewAnswer:
    """A person's answer to a review.

    Attributes:
        choice: `approve` the next step; `edit`: judge the given candidate instead; `redirect`: continue with
            a hint; `reject`: do something else; `abort` the run. If two repairs differ: `first`, `second`,
            `neither`, or `unsure`, which continues as if nobody had been asked.
        hint: For `redirect`, the text that the prompts contain from now on.
        files: For `edit`, files that replace or extend those of the shown candidate: path -> text. If results of
            new code were shown, one file of asserts in their place.

    Raises:
        UsageError: A redirect has no hint, or an edit no files.
    """

    choice: ReviewChoice | Choice | Literal["unsure"]
    hint: str = ""
    files: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.choice == "redirect" and not self.hint.strip():
            raise UsageError("a redirect needs a hint", remedy="say what the model should know")
        if self.choice == "edit" and not self.files:
            raise UsageError("an edit needs a file", remedy="give the edited candidate")


@dataclass(frozen=True, kw_only=True)
class Review:
    """A question to a person: whether a step may be taken, or which of two repairs is right.

    Attributes:
        run_id: The id of the run.
        key: Identifies the question; the same in a replay of the run.
        stage: What happens after the review.
        moves: The moves that would be made; none before the delivery.
        candidate: The candidate that would be repaired or delivered, or the best so far; `None` before the
            first.
        verdict: The verdict on the candidate.
        diagnosis: Why the candidate fails, if a role has diagnosed it.
        diff: The diff from the task's files to the candidate's.
        task: The task with its files.
        difference: For the stage `distinguish`, the input on which two repairs differ.
        changes: For the stage `distinguish`, these two repairs, in the order of the answers.
        examples: For the stage `examples`, calls of the candidate with their results; empty if no call that was
            guessed returned a value, so that the person is asked for a call and its result.
        raising_calls: For the stage `examples`, calls on which the candidate raises an exception.
    """

    run_id: str
    key: str
    stage: ReviewStage
    moves: tuple[Move, ...]
    candidate: Candidate | None
    verdict: Verdict | None
    diagnosis: Diagnosis | None
    diff: str
    task: Task
    difference: DistinguishingInput | None = None
    changes: tuple[ComparedChange, ...] = ()
    examples: tuple[ProposedExample, ...] = ()
    raising_calls: tuple[RaisingCall, ...] = ()

    @property
    def facts(self) -> tuple[Counterexample, ...]:
        """Return the counterexamples of the candidate."""
        return self.verdict.counterexamples if self.verdict else ()

    @property
    def example_call(self) -> str:
        """Return a call of the candidate with its parameters as arguments, such as `show(text)`; empty if unknown."""
        text = self.candidate.files.get(self.task.module, "") if self.candidate else ""
        return render_main_call([text], self.task.entry_point)

    @property
    def misnamed_function(self) -> str:
        """Return the function that the candidate defines instead of the one that the task names, if so; else empty."""
        text = self.candidate.files.get(self.task.module, "") if self.candidate else ""
        wanted = self.task.entry_point
        return render_main_call([text]).partition("(")[0] if wanted and wanted not in text else ""

    @property
    def editable(self) -> Mapping[str, str]:
        """Return the files that a person may edit, path -> text.

        The files that the candidate writes come first, then those that the counterexamples name.
        """
        if self.stage == "examples":
            return {EXAMPLES_FILE: render_examples(self.examples, self.example_call)}
        task, written = self.task, dict(self.candidate.files) if self.candidate else {}
        if task.kind == "write":
            return written or dict.fromkeys(task.modules, "")
        project = overlay_candidate(task.files, written)
        paths = dict.fromkeys([*written, *(fact.file for fact in self.facts), *sorted(project)])
        return {
            path: decode_text(project[path]) for path in paths if path in project and self._may_change(path)
        }

    def _may_change(self, path: str) -> bool:
        task = self.task
        is_open = not is_protected(path, task.protected or DEFAULT_PROTECTED)
        # `is_protected` only matches globs, here those of the files that may change.
        is_selected = not task.writable or is_protected(path, task.writable)
        return is_source(path, task.language) and is_open and is_selected

    @property
    def choices(self) -> tuple[str, ...]:
        """Return the choices that answer the question."""
        if self.difference is not None:
            return DIFFERENCE_CHOICES
        if self.stage == "examples":
            return (
                ("approve", "edit", "reject", "abort")
                if render_agreed(self.examples)
                else ("edit", "reject", "abort")
            )
        if self.stage in STAGES_WITHOUT_EDIT:
            return tuple(choice for choice in STEP_CHOICES if choice != "edit")
        return STEP_CHOICES

    def require_answered_by(self, answer: ReviewAnswer) -> None:
        """Refuse an answer that does not fit the question.

        Raises:
            UsageError: The answer does not fit.
        """
        if answer.choice not in self.choices:
            raise UsageError(
                f"{answer.choice!r} does not answer the question (stage {self.stage!r})",
                remedy=f"give one of: {', '.join(self.choices)}",
            )
        if self.stage == "examples" and answer.choice == "edit":
            read_examples("\n".join(answer.files.values()))


Reviewer = Callable[[Review], ReviewAnswer | Awaitable[ReviewAnswer | None] | None]
"""Asks a person and waits for the answer. `None` means that there is no answer now: the run then waits."""


def load_review(folder: RunFolder, question: ReviewAsked) -> Review:
    """Return a question of the ledger with everything that a person has to see.

    Raises:
        StorageError: A part of it cannot be read.
    """
    started = find_first_payload(folder.ledger_path, RunStarted)
    if started is None:
        raise StorageError(f"run {folder.id} has no first event")
    task = folder.load_record(Task, started.task)
    candidate = folder.load_record(Candidate, question.blob) if question.blob else None
    files = candidate.files if candidate else {}
    return Review(
        run_id=folder.id,
        key=question.key,
        stage=question.stage,
        moves=question.moves,
        candidate=candidate,
        verdict=folder.load_record(Verdict, question.verdict) if question.verdict else None,
        diagnosis=question.diagnosis,
        diff=unified_diff(task.files, overlay_candidate(task.files, files)),
        task=task,
        difference=question.distinguishing_input,
        changes=_find_compared_changes(folder, question.distinguishing_input),
        examples=question.examples,
        raising_calls=question.raising_calls,
    )


def _find_compared_changes(
    folder: RunFolder, difference: DistinguishingInput | None
) -> tuple[ComparedChange, ...]:
    """Return the two repairs of the last search that differ on an input; none if either is not recorded."""
    search = last_payload(read_ledger(folder.ledger_path).events, SearchFinished) if difference else None
    if difference is None or search is None:
        return ()
    # The answers of the question are that of the first repair, and the first one that differs from it.
    positions = [difference.answers_by_repair.index(answer) for answer in difference.answer_pair]
    if max(positions) >= len(search.repairs):
        return ()
    found = [search.repairs[position] for position in positions]
    return tuple(ComparedChange(label=repair.label, diff=repair.diff) for repair in found)


def find_pending_review(folder: RunFolder) -> Review | None:
    """Return the question that a run waits for an answer to; `None` if it waits for none.

    Raises:
        StorageError: The run folder is damaged.
    """
    pending: ReviewAsked | None = None
    for event in read_ledger(folder.ledger_path).events:
        match event.payload:
            case ReviewAsked() as question:
                pending = question
            case MovesDecided() | ReviewAnswered() | UserAnswered() | RunFinished() | RunFailed():
                pending = None
    return load_review(folder, pending) if pending is not None else None


def make_recorded_reviewer(folder: RunFolder, events: Iterable[Event]) -> Reviewer:
    """Return a reviewer that answers as the person did in a recorded run; other questions get no answer."""
    recorded_events = tuple(events)
    answers_by_key = {answer.key: answer for _, answer in select_events(recorded_events, ReviewAnswered)}

    def review_as_recorded(review: Review) -> ReviewAnswer | None:
        if review.difference is not None:
            return ReviewAnswer(choice=find_recorded_choice(review.difference, recorded_events) or "unsure")
        answer = answers_by_key.get(review.key)
        if answer is None:
            return None
        files = folder.load_record(Candidate, answer.blob).files if answer.blob else {}
        return ReviewAnswer(choice=answer.choice, hint=answer.hint, files=files)

    return review_as_recorded


def find_recorded_choice(difference: DistinguishingInput, events: Iterable[Event]) -> Choice | None:
    """Return which answer a person called right, if one was asked about this difference."""
    for _, answer in select_events(events, UserAnswered):
        if (answer.call, answer.answers) == (difference.call, difference.answer_pair):
            return answer.choice
    return None


def asked_user(events: Iterable[Event]) -> bool:
    """Return whether a person was asked in a run which of two repairs is right, or which results are."""
    return any(
        isinstance(event.payload, UserAnswered)
        or (isinstance(event.payload, ReviewAsked) and event.payload.stage in ("distinguish", "examples"))
        for event in events
    )


def make_single_answer_reviewer(answer: ReviewAnswer, review: Review, fallback: Reviewer | None) -> Reviewer:
    """Return a reviewer that answers one question with `answer`, and asks `fallback` all others."""

    def answer_or_ask(question: Review) -> ReviewAnswer | Awaitable[ReviewAnswer | None] | None:
        if question.key == review.key:
            return answer
        return fallback(question) if fallback is not None else None

    return answer_or_ask


Asker = Callable[[DistinguishingInput], Choice | Awaitable[Choice | None] | None]
"""Says which of two answers is right; `None` if that is not known. It may be async."""


def apply_choice(found: PlausibleRepairs, choice: str) -> PlausibleRepairs:
    """Return only the repairs with the right answer; where neither answer is right, those with another one.

    Args:
        choice: A `Choice`; anything else, such as `unsure`, leaves the repairs as they are.
    """
    difference = found.difference
    if difference is None or choice not in get_args(Choice):
        return found
    first, second = difference.answer_pair
    right_answer = {"first": first, "second": second}.get(choice)  # the third choice is `neither`
    positions = [
        position
        for position, answer in enumerate(difference.answers_by_repair)
        if (answer == right_answer if right_answer is not None else answer not in (first, second))
    ]
    compared_calls = tuple(
        replace(call, answers=tuple(call.answers[position] for position in positions))
        for call in found.compared_calls
    )
    remaining = tuple(found.repairs[position] for position in positions)
    return replace(found, repairs=remaining, compared_calls=compared_calls)


def reviewer_with_asker(ask: Asker, reviewer: Reviewer | None) -> Reviewer:
    """Return a reviewer that asks `ask` about differing repairs, and `reviewer`, if any, everything else."""

    async def review_or_ask(review: Review) -> ReviewAnswer | None:
        if review.difference is not None:
            reply = ask(review.difference)
            choice = await reply if inspect.isawaitable(reply) else reply
            return ReviewAnswer(choice=choice or "unsure")  # `None` means that the answer is not known.
        answer = reviewer(review) if reviewer is not None else None
        return await answer if inspect.isawaitable(answer) else answer

    return review_or_ask
