"""A search for a repair without a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from suture.core.ledger.event import Payload


class SearchStarted(Payload, kind="search.started"):
    """A search begins.

    Attributes:
        files: Files that it may change.
        failing: Tests that fail.
        candidates: The most changes that it tries.
        seconds: Wall-clock seconds that it may take.
        seed: Of its order.
    """

    files: tuple[str, ...]
    failing: int
    candidates: int
    seconds: float
    seed: int


class SearchSkipped(Payload, kind="search.skipped"):
    """There is no search: the project's tests cannot be run one by one.

    Attributes:
        command: What was tried.
        message: Why it is no use.
    """

    command: tuple[str, ...]
    message: str


class HistorySearched(Payload, kind="history.searched"):
    """Today's failing tests were run on the project's code at earlier commits.

    Attributes:
        since: The commit that the user named; empty where none was.
        runs: How often the tests were run.
        good: The commit on whose code they pass; empty where there is none.
        broke: What came after it, on whose code they fail.
    """

    since: str
    runs: int
    last_good: str
    first_bad: str


@dataclass(frozen=True, kw_only=True)
class FoundRepair:
    """A change with which all tests pass.

    Attributes:
        label: The change in a few words.
        file: The file.
        score: In [0, 1], for ordering.
        operators: Names of the operators that made it.
        warnings: What makes it doubtful.
        equivalents: Labels of others that behave like it.
    """

    label: str
    file: str
    score: float
    operators: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    equivalents: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PartialRepair:
    """A change that made some failing test pass and broke none.

    Attributes:
        path: The file.
        label: The change in a few words.
        passing: Failing tests that pass with it.
        failing: Failing tests that still fail.
    """

    path: str
    label: str
    passing: int
    failing: int


@dataclass(frozen=True, kw_only=True)
class SuspectLine:
    """A line that may be at fault.

    Attributes:
        path: The file.
        line: Counted from 1.
        function: The function that holds it; empty at the top of a module.
        score: In [0, 1], for ordering.
        ochiai: Ochiai's suspiciousness.
        dstar: DStar's, as a share of the highest.
    """

    path: str
    line: int
    function: str
    score: float
    ochiai: float = 0.0
    dstar: float = 0.0


@dataclass(frozen=True, kw_only=True)
class TrialDisagreement:
    """A test that ends otherwise in a trial of the unchanged code than in the user's run.

    Attributes:
        test: Its id.
        run: How it ended in the run.
        trial: How it ended in the trial.
        alone: Whether that was seen only where it ran without the tests before it.
    """

    test: str
    run: str
    trial: str
    only_in_isolation: bool = False


@dataclass(frozen=True, kw_only=True)
class TrialAgreement:
    """How far trials of the unchanged code agree with the run, and where the time went.

    Attributes:
        compared: Tests that were compared.
        disagreements: How many of them end otherwise.
        differing: These, at most 40.
        partly: Why only a part was seen; empty where all was.
        notes: What else was seen, for people.
        located_s: Seconds in which the fault was located.
        made_s: Seconds in which changes were made.
    """

    compared: int = 0
    disagreements: int = 0
    disagreeing_tests: tuple[TrialDisagreement, ...] = ()
    limitation: str = ""
    notes: tuple[str, ...] = ()
    localisation_s: float = 0.0
    mutation_s: float = 0.0


@dataclass(frozen=True, kw_only=True)
class DistinguishingInput:
    """An input that tells repairs apart.

    Attributes:
        call: The call, as source.
        answers: Label of a repair -> what it answers, for the likeliest and the next that differs.
        by_repair: What each repair answers, in their order.
    """

    call: str
    answers: Mapping[str, str]
    answers_by_repair: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class BrokenOperator:
    """An operator of ours that broke on somebody's code.

    Attributes:
        path: The file.
        operator: Its name.
        line: The line of the node that it looked at.
        fault: Type and message.
    """

    path: str
    operator: str
    line: int
    fault: str


class SearchFinished(Payload, kind="search.finished"):
    """A search has ended.

    Attributes:
        tried: Changes that were tried.
        seconds: Wall-clock seconds that it took.
        ended: Why it ended.
        plausible: Changes with which all tests pass.
        repairs: The likeliest of these, the likeliest first.
        partial: Changes that half worked, at most 5.
        trials: How far trials agree with the user's run.
        difference: What tells the likeliest two apart; null where nothing does.
        faults: The most suspicious lines, at most 40.
        broken: Operators that broke, at most 40.
        divergences: Id of a failing check -> where its call first goes wrong, in words.
    """

    candidates_tried: int = 0
    seconds: float = 0.0
    ending: str = ""
    plausible_count: int = 0
    repairs: tuple[FoundRepair, ...] = ()
    partial: tuple[PartialRepair, ...] = ()
    agreement: TrialAgreement = TrialAgreement()
    distinguishing_input: DistinguishingInput | None = None
    faults: tuple[SuspectLine, ...] = ()
    broken_operators: tuple[BrokenOperator, ...] = ()
    divergences: Mapping[str, str] = field(default_factory=dict)
