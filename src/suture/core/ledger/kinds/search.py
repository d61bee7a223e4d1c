"""Events of the search for a repair without a model.

The search runs the tests on small changes of the code, each in a trial, and keeps the changes that repair it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from suture.core.ledger.event import Payload

SearchEnding = Literal[
    "enough_repairs",
    "likely_changes_tried",
    "all_tried",
    "time_over",
    "candidate_limit",
    "workers_lost",
    "nothing_could_be_tried",
    "no_failing_test",
    "targets_not_reached",
    "targets_pass_alone",
    "trials_disagree",
    "no_parsable_text",
    "parsable_texts_tried",
]
"""Why a search ended (`interfaces/narrative` turns it into words)."""


class SearchStarted(Payload, kind="search.started"):
    """A search starts.

    Attributes:
        files: Files that it may change.
        failing: Number of failing tests.
        candidates: Max changes to try.
        seconds: Max wall-clock seconds.
        seed: Seed that decides the order of equally likely changes.
    """

    files: tuple[str, ...]
    failing: int
    candidates: int
    seconds: float
    seed: int


class SearchSkipped(Payload, kind="search.skipped"):
    """There is no search, because the project's tests cannot be run one by one.

    Attributes:
        command: Command that was tried.
        message: Why it cannot be used.
    """

    command: tuple[str, ...]
    message: str


class HistorySearched(Payload, kind="history.searched"):
    """The failing tests were run on the project's code at earlier commits.

    Attributes:
        since: Oldest commit to search, as the user named it; empty if the user named none.
        runs: How often the tests ran.
        last_good: Last commit on whose code they pass; empty if there is none.
        first_bad: Commit after it, on whose code they fail.
    """

    since: str
    runs: int
    last_good: str
    first_bad: str


@dataclass(frozen=True, kw_only=True)
class FoundRepair:
    """A change with which all tests pass.

    Attributes:
        label: Short description of the change.
        file: File that it changes.
        score: Score for ordering, in [0, 1].
        operators: Names of the mutation operators that made it.
        warnings: Reasons to doubt it, in words.
        equivalents: Labels of other repairs that behave like it.
        diff: Unified diff from the user's code to the change.
        candidate: Hash of the candidate that consists of the change alone.
    """

    label: str
    file: str
    score: float
    operators: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    equivalents: tuple[str, ...] = ()
    diff: str = ""
    candidate: str = ""


@dataclass(frozen=True, kw_only=True)
class ComparedCall:
    """A call that distinguishes repairs.

    Attributes:
        call: The call, as source.
        before: What the user's code answers; empty if that is not known.
        answers: Answer of each repair, in the order of the repairs; empty for a repair that did not answer.
    """

    call: str
    before: str
    answers: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class PartialRepair:
    """A change that makes some failing test pass and breaks none.

    Attributes:
        path: File that it changes.
        label: Short description of the change.
        passing: Number of failing tests that pass with it.
        failing: Number of failing tests that still fail.
        confirmed: Whether a run of all tests has confirmed that it breaks none. Only the best ones are run, and
            only if there is no model. A trial runs the failing tests first, and the others only if all of these pass.
        diff: Unified diff from the user's code to a confirmed change; empty otherwise.
    """

    path: str
    label: str
    passing: int
    failing: int
    confirmed: bool = False
    diff: str = ""


@dataclass(frozen=True, kw_only=True)
class NearMiss:
    """A change that makes all failing tests pass and breaks another test, so that it is no repair.

    Attributes:
        path: File that it changes.
        label: Short description of the change.
        broken_test: Id of the first test that it breaks; empty if it is not known.
        diff: Unified diff from the user's code to the change.
    """

    path: str
    label: str
    broken_test: str = ""
    diff: str = ""


@dataclass(frozen=True, kw_only=True)
class SuspectLine:
    """A line that may contain the fault.

    Attributes:
        path: File of the line.
        line: Line number, from 1.
        function: Function that contains it; empty at the top level of a module.
        score: Score for ordering, in [0, 1].
        ochiai: Suspiciousness by Ochiai.
        dstar: Suspiciousness by DStar, divided by the highest one.
    """

    path: str
    line: int
    function: str
    score: float
    ochiai: float = 0.0
    dstar: float = 0.0


@dataclass(frozen=True, kw_only=True)
class TrialDisagreement:
    """A test whose outcome in a trial of the unchanged code differs from that in the user's run.

    Attributes:
        test: Id of the test.
        run: Outcome in the user's run.
        trial: Outcome in the trial.
        only_in_isolation: Whether the outcomes differ only if the test runs without the tests before it.
    """

    test: str
    run: str
    trial: str
    only_in_isolation: bool = False


@dataclass(frozen=True, kw_only=True)
class TrialAgreement:
    """How far trials of the unchanged code agree with the user's run, and how the search spent its time.

    Attributes:
        compared: Number of tests compared.
        disagreements: Number of tests whose outcomes differ.
        disagreeing_tests: These tests, at most 40.
        untraced: Number of tests whose lines are not known, because the time was up.
        notes: Other observations, for people.
        localisation_s: Seconds spent on fault localisation.
        mutation_s: Seconds spent on generating changes.
    """

    compared: int = 0
    disagreements: int = 0
    disagreeing_tests: tuple[TrialDisagreement, ...] = ()
    untraced: int = 0
    notes: tuple[str, ...] = ()
    localisation_s: float = 0.0
    mutation_s: float = 0.0


@dataclass(frozen=True, kw_only=True)
class DistinguishingInput:
    """An input on which repairs behave differently.

    Attributes:
        call: The call, as source.
        answers: Label of a repair -> its answer, for two repairs: the likeliest one, and the likeliest of
            those that answer differently.
        answers_by_repair: Answer of each repair, in the order of the repairs.
    """

    call: str
    answers: Mapping[str, str]
    answers_by_repair: tuple[str, ...] = ()

    @property
    def answer_pair(self) -> tuple[str, str]:
        """(answer of the likeliest repair, first answer that differs from it)."""
        likeliest = self.answers_by_repair[0]
        return likeliest, next(answer for answer in self.answers_by_repair if answer != likeliest)


@dataclass(frozen=True, kw_only=True)
class BrokenOperator:
    """A mutation operator of Suture that raised an error on the user's code.

    Attributes:
        path: File that it was applied to.
        operator: Name of the operator.
        line: Line of the node that it was applied to.
        fault: Type and message of the error.
    """

    path: str
    operator: str
    line: int
    fault: str


class SearchFinished(Payload, kind="search.finished"):
    """A search has ended.

    Attributes:
        candidates_tried: Number of changes tried.
        seconds: Wall-clock seconds that it took.
        ending: Why it ended.
        time_limit: Setting that limited its time; empty in older records.
        plausible_count: Number of changes with which all tests pass.
        repairs: Some of these changes, the likeliest first.
        partial: Changes that fix only some tests, at most 5.
        near_misses: Changes that fix all failing tests and break another one, at most 3; only if there is no repair.
        agreement: How far trials agree with the user's run.
        distinguishing_input: Input on which the likeliest two repairs differ; null if none is known.
        compared_calls: Calls that distinguish the repairs, at most 6.
        faults: The most suspicious lines, at most 40.
        broken_operators: Operators that raised an error, at most 40.
        divergences: Id of a failing check -> where its call first goes wrong, in words.
    """

    candidates_tried: int = 0
    seconds: float = 0.0
    ending: SearchEnding | None = None
    time_limit: Literal["", "repair.seconds", "budget.seconds"] = ""
    plausible_count: int = 0
    repairs: tuple[FoundRepair, ...] = ()
    partial: tuple[PartialRepair, ...] = ()
    near_misses: tuple[NearMiss, ...] = ()
    agreement: TrialAgreement = TrialAgreement()
    distinguishing_input: DistinguishingInput | None = None
    compared_calls: tuple[ComparedCall, ...] = ()
    faults: tuple[SuspectLine, ...] = ()
    broken_operators: tuple[BrokenOperator, ...] = ()
    divergences: Mapping[str, str] = field(default_factory=dict)


class RepairChosen(Payload, kind="repair.chosen"):
    """A model or a person said which of several repairs is right, because the tests do not decide.

    Attributes:
        labels: Labels of the repairs that were shown, the likeliest first.
        choice: Number of the chosen repair, from 1; 0 if none of them was chosen.
        candidate: Hash of the candidate that was chosen, or that the model wrote; empty if there is none.
        passed: Whether every deciding check passes on that candidate. Otherwise a model's choice has no effect.
            A person chooses before the candidate is checked, so that it is false then.
        explanation: Why it is right, in the words of the model.
        by: Who chose.
    """

    labels: tuple[str, ...]
    choice: int
    candidate: str = ""
    passed: bool = False
    explanation: str = ""
    by: Literal["model", "person"] = "model"


@dataclass(frozen=True, kw_only=True)
class ComparedChange:
    """A change with which all tests pass, beside others.

    Attributes:
        label: Short description of the change.
        diff: Unified diff from the user's code.
    """

    label: str
    diff: str


class RepairUndetermined(Payload, kind="repair.undetermined"):
    """The result is a repair of the search, and the tests do not decide that it is right.

    Attributes:
        changes: The result and some of its rivals, the result first; only the result if it has no rivals.
        count: Number of changes that pass and are not known to behave alike, also of those that are not in `changes`.
        calls: Calls that distinguish them, with one answer for each of the changes.
        noticed: Number of deliberate mistakes in the changed lines that the tests notice.
        mistakes: Number of deliberate mistakes that were tried; 0 if none was.
    """

    changes: tuple[ComparedChange, ...]
    count: int
    calls: tuple[ComparedCall, ...] = ()
    noticed: int = 0
    mistakes: int = 0
