"""The limits and the result of a search."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace

from suture.core.ledger.kinds import BrokenOperator, SearchEnding, SuspectLine
from suture.judge.trials.trial_records import Proposal, Spectrum, Trial
from suture.mutation import Edit

ChangeKey = tuple[str, tuple[Edit, ...]]
"""`(path, edits)` of a change, which identify it."""


def change_key(proposal: Proposal) -> ChangeKey:
    """Return what identifies the change of a proposal."""
    return proposal.path, proposal.edits


@dataclass(frozen=True, kw_only=True)
class SearchLimits:
    """The limits of one search.

    Attributes:
        max_candidates: Candidates that may be tried.
        max_seconds: Wall-clock seconds.
        reserve_s: Further wall-clock seconds for as long as no repair is found. They are reserved for the
            certification of a repair.
        trial_s: Wall-clock seconds for trials, counted from the first one, for as long as no repair is found.
            The order of the candidates does not depend on it.
        max_repairs: Plausible repairs after which the search ends.
        seed: Decides between candidates that are equally likely.
    """

    max_candidates: int = 20_000
    max_seconds: float = 60.0
    reserve_s: float = 0.0
    trial_s: float = math.inf
    max_repairs: int = 24
    seed: int = 0

    def minus(self, seconds: float, candidates: int) -> SearchLimits:
        """Return what is left after a search that took some seconds and tried some candidates."""
        return replace(
            self,
            max_seconds=max(0.0, self.max_seconds - seconds),
            max_candidates=max(0, self.max_candidates - candidates),
        )

    def end_s(self, *, has_repair: bool) -> float:
        """Return the seconds after which a search ends: without a repair it may use the reserve too."""
        return self.max_seconds + (0.0 if has_repair else self.reserve_s)


@dataclass
class SearchResult:
    """What a search has found.

    Attributes:
        texts: Path -> text of the files that may be changed.
        spectrum: What the tests did on the unchanged code.
        suspect_lines: Suspicious lines, the most suspicious first.
        plausible: Candidates that passed all tests in their trial.
        partial: Candidates that made some failing test pass and broke none, with their trials.
        near_misses: Candidates that made all failing tests pass and broke another test, with their trials.
        tried_count: Number of candidates tried.
        seconds: Duration of the search.
        first_repair_s: Seconds until the first plausible candidate without warnings.
        ending: Why the search ended; `None` while it runs.
        operator_failures: Mutation operators that raised.
        localisation_s: Seconds until localisation was done.
        generation_s: Seconds until single changes were generated.
        idle_block_counts: Plausible candidate -> number of blocks that it guards and that no test runs. Blocks
            that all rivals at its location have are not counted. Only some candidates are checked.
        notes: What the user should know about the trials.
    """

    texts: Mapping[str, str]
    spectrum: Spectrum = field(default_factory=Spectrum)
    suspect_lines: tuple[SuspectLine, ...] = ()
    plausible: list[Proposal] = field(default_factory=list)
    partial: list[tuple[Proposal, Trial]] = field(default_factory=list)
    near_misses: list[tuple[Proposal, Trial]] = field(default_factory=list)
    tried_count: int = 0
    seconds: float = 0.0
    first_repair_s: float | None = None
    ending: SearchEnding | None = None
    operator_failures: list[BrokenOperator] = field(default_factory=list)
    localisation_s: float = 0.0
    generation_s: float = 0.0
    idle_block_counts: Mapping[ChangeKey, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def end_s(self, limits: SearchLimits) -> float:
        """Return the seconds after which the search ends."""
        if self.plausible:
            return limits.end_s(has_repair=True)
        # No candidate is tried before the first ones are generated.
        trials_end_s = self.generation_s + limits.trial_s if self.generation_s else math.inf
        return min(limits.end_s(has_repair=False), trials_end_s)

    def sort_plausible(self) -> None:
        """Sort plausible candidates, the likeliest first; a floating-point error decides nothing."""
        self.plausible.sort(key=lambda proposal: -round(proposal.score, 6))

    def sort_partial(self) -> None:
        """Sort partial candidates by the tests that pass, then by score."""
        self.partial.sort(key=lambda pair: (-pair[1].passing, pair[1].failing, -pair[0].score))

    def sort_near_misses(self) -> None:
        """Sort near misses, the likeliest first."""
        self.near_misses.sort(key=lambda pair: -round(pair[0].score, 6))


@dataclass(frozen=True, kw_only=True)
class SearchProgress:
    """How far a search has come.

    Attributes:
        tried: Number of changes tried.
        best: Number of failing tests that the best change so far makes pass.
        targets: Number of failing tests, as far as one trial ran them.
        breaks_another: Whether every change that makes so many of them pass breaks another test.
    """

    tried: int = 0
    best: int = 0
    targets: int = 0
    breaks_another: bool = False

    def after_trial(self, trial: Trial) -> SearchProgress:
        """Return the progress after one more trial."""
        breaks = bool(trial.broken)
        is_better = (trial.passing, not breaks) > (self.best, not self.breaks_another)
        return SearchProgress(
            tried=self.tried + 1,
            best=trial.passing if is_better else self.best,
            targets=max(self.targets, trial.passing + trial.failing),  # a failing trial ends early
            breaks_another=breaks if is_better else self.breaks_another,
        )


SearchListener = Callable[[SearchProgress], None]
"""Called after each trial."""

_listener: ContextVar[SearchListener | None] = ContextVar("search_listener", default=None)


@contextmanager
def listen_to_search(listener: SearchListener) -> Iterator[None]:
    """Let `listener` follow the searches that run inside this context."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def report_progress(progress: SearchProgress) -> None:
    """Report a search to the listener of the current context, if there is one."""
    listener = _listener.get()
    if listener is not None:
        listener(progress)
