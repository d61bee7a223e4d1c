"""What a search for a repair brings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from suture.core.ledger.kinds import SuspectLine
from suture.judge.trials.trial_records import Proposal, Spectrum, Trial
from suture.mutation.edits import Edit
from suture.mutation.python.python_mutants import OperatorFault
from suture.search.search_limits import SearchLimits


@dataclass
class SearchResult:
    """What a search found.

    Attributes:
        texts: Path -> text, of the files that could be changed.
        spectrum: What the tests did on the project as it is.
        faults: Suspicious lines, the most suspicious first.
        plausible: Candidates that passed all tests in their trial, in the order of the search.
        partial: Candidates that made some failing test pass and broke none, the best first.
        tried: Candidates tried.
        seconds: How long it took.
        first_s: Seconds until the first plausible one about which nothing is suspicious.
        ended: Why it ended.
        broken: Operators of ours that broke on a file: path, and what happened.
        located_s: Seconds until localisation was done.
        made_s: Seconds until single changes were made.
        idle: Path and edits of a plausible one -> blocks that it guards and no test runs, beyond those that
            all of its place leave so; where that was seen.
        notes: What the user should know of how it was tried.
    """

    texts: Mapping[str, str]
    spectrum: Spectrum = field(default_factory=Spectrum)
    suspect_lines: tuple[SuspectLine, ...] = ()
    plausible: list[Proposal] = field(default_factory=list)
    partial: list[tuple[Proposal, Trial]] = field(default_factory=list)
    tried_count: int = 0
    seconds: float = 0.0
    first_repair_s: float | None = None
    ending: str = ""
    operator_failures: list[tuple[str, OperatorFault]] = field(default_factory=list)
    localisation_s: float = 0.0
    generation_s: float = 0.0
    idle_block_counts: Mapping[tuple[str, tuple[Edit, ...]], int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def deadline_s(self, limits: SearchLimits) -> float:
        """Seconds of the search: what is kept for the proof of a repair is its own while there is none."""
        return limits.max_seconds + (0.0 if self.plausible else limits.reserve_s)
