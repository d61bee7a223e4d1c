"""A person in the loop: what they are asked, what they may say, and who asks them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from suture.core.ledger import Event, RunFolder, first_of, read_ledger, those_of
from suture.core.ledger.kinds import (
    Choice,
    Decided,
    ReviewAnswered,
    ReviewAsked,
    ReviewChoice,
    ReviewStage,
    RunFinished,
    RunRefused,
    RunStarted,
    UserAnswered,
)
from suture.core.records import (
    Candidate,
    Counterexample,
    Diagnosis,
    Move,
    Task,
    Verdict,
)
from suture.errors import StorageError, UsageError
from suture.project.languages import is_source
from suture.project.workspace import DEFAULT_PROTECTED, is_protected, overlay, text_of, unified_diff
from suture.search import Difference

OF_STEPS = get_args(ReviewChoice)
OF_DIFFERENCES = (*get_args(Choice), "unsure")


@dataclass(frozen=True, kw_only=True)
class ReviewAnswer:
    """What a person says to a review.

    Attributes:
        choice: `approve` what comes next; `edit`: judge this candidate in its place; `redirect`: go on
            with a hint; `reject`: something else in its place; `abort` the run. Where two repairs differ:
            `first`, `second`, `neither`, or `unsure`, with which the run goes on as if nobody had been asked.
        hint: For `redirect`, what the model is to be told from now on.
        files: For `edit`, path -> text, over those of the candidate that was shown.

    Raises:
        UsageError: A redirect has no hint, or an edit no files.
    """

    choice: ReviewChoice | Choice | Literal["unsure"]
    hint: str = ""
    files: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.choice == "redirect" and not self.hint.strip():
            raise UsageError("a redirect needs a hint", remedy="say what the model is to be told")
        if self.choice == "edit" and not self.files:
            raise UsageError("an edit needs a file", remedy="give the edited candidate")


@dataclass(frozen=True, kw_only=True)
class Review:
    """A question to a person: may this be done? Or, where repairs differ: which is right?

    Attributes:
        run_id: The run.
        key: Names the question; equal in a replay of the run.
        stage: Before what.
        moves: What would be done; none at the end.
        candidate: The one that would be mended or handed over, or the best so far; `None` before the first.
        verdict: What the checks said of it.
        diagnosis: Why it fails, where somebody has said so.
        diff: From the task's own files to the candidate's.
        task: What is wanted, with its own files.
        difference: For the stage `distinguish`, what tells two repairs apart.
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
    difference: Difference | None = None

    @property
    def facts(self) -> tuple[Counterexample, ...]:
        """What is known of the candidate's failures."""
        return self.verdict.counterexamples if self.verdict else ()

    @property
    def editable(self) -> Mapping[str, str]:
        """Path -> text of what a person may edit: the candidate's files first, then those that facts name."""
        task, written = self.task, dict(self.candidate.files) if self.candidate else {}
        if task.kind == "write":
            return written or dict.fromkeys(task.modules, "")
        files = {path: text_of(content) for path, content in overlay(task.files, written).items()}
        named = [fact.file for fact in self.facts]
        free = [path for path in dict.fromkeys([*written, *named, *sorted(files)]) if self._may_change(path)]
        return {path: files[path] for path in free if path in files}

    def _may_change(self, path: str) -> bool:
        task = self.task
        closed = is_protected(path, task.protected or DEFAULT_PROTECTED)
        return (
            is_source(path, task.language) and not closed and (not task.only or is_protected(path, task.only))
        )

    @property
    def asked(self) -> str:
        """The question in a few words."""
        count = len(self.moves)
        return {
            "search": "search for a repair without a model",
            "samples": f"ask for {count} fresh candidate{'s' if count > 1 else ''}",
            "repairs": f"ask for {count} repair{'s' if count > 1 else ''}",
            "hand_over": "hand this over as the result",
            "distinguish": "choose between repairs that differ",
            "safety": "run code that does what the safety scan asks about",
            "test": "use this test, which fails on your code, and mend the code until it passes",
        }[self.stage]

    @property
    def wish(self) -> str:
        """The question as one that yes and no answer."""
        if self.stage == "test":
            return "Use this test?"
        return "Accept this fix?" if self.stage == "hand_over" else f"May it {self.asked}?"

    @property
    def question(self) -> str:
        """The question as a sentence."""
        if self.difference is None:
            return f"may it {self.asked}?"
        first, second = self.difference.apart
        return f"which is right for {self.difference.call}: first, {first}, or second, {second}?"

    def require_answered_by(self, answer: ReviewAnswer) -> None:
        """Refuse an answer to another kind of question.

        Raises:
            UsageError: It says nothing to this one.
        """
        fitting = OF_DIFFERENCES if self.difference is not None else OF_STEPS
        if self.stage in ("test", "safety"):
            fitting = tuple(choice for choice in OF_STEPS if choice != "edit")
        if answer.choice not in fitting:
            raise UsageError(
                f"{answer.choice!r} is no answer to: {self.question}",
                remedy=f"say one of: {', '.join(fitting)}",
            )


Reviewer = Callable[[Review], ReviewAnswer | Awaitable[ReviewAnswer | None] | None]
"""Asks a person, and waits; `None` where nobody answers now, so that the run is parked."""


def review_of(folder: RunFolder, asked: ReviewAsked) -> Review:
    """A question of the ledger with all that a person has to see.

    Raises:
        StorageError: Something of it cannot be read.
    """
    started = first_of(read_ledger(folder.ledger_path).events, RunStarted)
    if started is None:
        raise StorageError(f"run {folder.id} does not say how it began")
    task = folder.get_record(Task, started.task)
    candidate = folder.get_record(Candidate, asked.blob) if asked.blob else None
    files = candidate.files if candidate else {}
    return Review(
        run_id=folder.id,
        key=asked.key,
        stage=asked.stage,
        moves=asked.moves,
        candidate=candidate,
        verdict=folder.get_record(Verdict, asked.verdict) if asked.verdict else None,
        diagnosis=asked.diagnosis,
        diff=unified_diff(task.files, overlay(task.files, files)),
        task=task,
        difference=Difference(**vars(asked.difference)) if asked.difference is not None else None,
    )


def pending_review(folder: RunFolder) -> Review | None:
    """The question that a run waits for an answer to; `None` where it waits for none.

    Raises:
        StorageError: The run folder is damaged.
    """
    waiting: ReviewAsked | None = None
    for event in read_ledger(folder.ledger_path).events:
        match event.payload:
            case ReviewAsked() as asked:
                waiting = asked
            case Decided() | ReviewAnswered() | UserAnswered() | RunFinished() | RunRefused():
                waiting = None
    return review_of(folder, waiting) if waiting is not None else None


def recorded_reviewer(folder: RunFolder, events: Iterable[Event]) -> Reviewer:
    """Answers as the person did in a recorded run; nobody answers what was never answered there."""
    kept = tuple(events)
    by_key = {answered.key: answered for _, answered in those_of(kept, ReviewAnswered)}

    def answer(review: Review) -> ReviewAnswer | None:
        if review.difference is not None:
            return ReviewAnswer(choice=recorded_choice(review.difference, kept) or "unsure")
        answered = by_key.get(review.key)
        return _as_said(answered, folder) if answered is not None else None

    return answer


def recorded_choice(difference: Difference, events: Iterable[Event]) -> Choice | None:
    """Which answer was said to be right, where somebody was asked about this very difference."""
    for _, said in those_of(events, UserAnswered):
        if (said.call, said.answers) == (difference.call, difference.apart):
            return said.choice
    return None


def was_asked_to_distinguish(events: Iterable[Event]) -> bool:
    """Whether a person was to say which of two repairs is right, in a run of now or of an older Suture."""
    return any(
        isinstance(event.payload, UserAnswered)
        or (isinstance(event.payload, ReviewAsked) and event.payload.stage == "distinguish")
        for event in events
    )


def _as_said(answered: ReviewAnswered, folder: RunFolder) -> ReviewAnswer:
    files = folder.get_record(Candidate, answered.blob).files if answered.blob else {}
    return ReviewAnswer(choice=answered.choice, hint=answered.hint, files=files)


def answered_with(answer: ReviewAnswer, review: Review, then: Reviewer | None) -> Reviewer:
    """Answers one question with what is given, and has somebody else asked the later ones."""

    def ask(asked: Review) -> ReviewAnswer | Awaitable[ReviewAnswer | None] | None:
        if asked.key == review.key:
            return answer
        return then(asked) if then is not None else None

    return ask
