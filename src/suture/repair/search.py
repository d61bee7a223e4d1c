"""The search for a repair: mutants of suspicious lines, tried in the order of how likely they are.

A pass over single changes; then pairs that begin with a change which made some failing test pass. What comes
through is plausible and no more: it is ranked elsewhere, and judged by the trusted suite.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from suture.checks.test_command import TestCommand
from suture.repair.edits import mutated
from suture.repair.faults import Fault, line_scores, rank_faults
from suture.repair.mutants import OperatorFault
from suture.repair.orders import first_order, second_order
from suture.repair.reverts import Hunk, changed_lines, narrowed, reverts
from suture.repair.trials import LEAST_S, Proposal, Spectrum, Trial, locate, screen
from suture.repair.warnings import DEAD, literals_of, warnings_about

__all__ = ["Findings", "SearchLimits", "search"]

AT_ONCE = 2
MOST_BATCH = 600
LEAST_BATCH_S = 2.0
"""Seconds of a batch; later ones may take half of the time so far. After each the search may end."""
LOCATE_SHARE = 0.34
"""Of the seconds, the most that localisation may take."""
MAKING_SHARE = 0.2
"""Of the seconds, the most that making single changes may take."""
LINGER = 0.5
"""After the first plausible repair the search goes on for this part of the time that it took, to compare."""
LEAST_LINGER_S = 1.5
PATIENT_S = 8.0
"""CPU seconds of a test, for a candidate that did well until it was late."""
MOST_PATIENT = 6
"""Such candidates."""
PATIENT_SHARE = 0.3
"""Of the seconds: when they are over, such candidates are tried again, even if others wait."""


@dataclass(frozen=True, kw_only=True)
class SearchLimits:
    """What a search may use.

    Attributes:
        candidates: Candidates tried.
        seconds: Wall-clock seconds.
        patches: Plausible repairs, after which it ends.
        seed: Decides between candidates that are equally likely.
    """

    candidates: int = 4000
    seconds: float = 60.0
    patches: int = 24
    seed: int = 0


@dataclass
class Findings:
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
    """

    texts: Mapping[str, str]
    spectrum: Spectrum = field(default_factory=Spectrum)
    faults: tuple[Fault, ...] = ()
    plausible: list[Proposal] = field(default_factory=list)
    partial: list[tuple[Proposal, Trial]] = field(default_factory=list)
    tried: int = 0
    seconds: float = 0.0
    first_s: float | None = None
    ended: str = ""
    broken: list[tuple[str, OperatorFault]] = field(default_factory=list)


async def search(
    command: TestCommand,
    texts: Mapping[str, str],
    failing: Iterable[str],
    limits: SearchLimits,
    tests: Iterable[str] = (),
    hunks: Sequence[Hunk] = (),
) -> Findings:
    """Search for changes with which all tests pass.

    Args:
        command: The project's pytest command, collected.
        texts: Path -> text of the files that may be changed.
        failing: Ids of the tests that fail.
        limits: What it may use.
        tests: Sources of the tests: a repair that names their literals does not end the search.
        hunks: What changed when the tests began to fail: it is taken back first, and suspected most.

    Raises:
        SandboxError: The wall failed.
    """
    return await Search(command, texts, limits, literals_of(tests), hunks).run(frozenset(failing))


class Search:
    """One search."""

    def __init__(
        self,
        command: TestCommand,
        texts: Mapping[str, str],
        limits: SearchLimits,
        literals: frozenset[str],
        hunks: Sequence[Hunk] = (),
    ) -> None:
        self._hunks = hunks
        self._literals = literals
        self._command = command
        self._limits = limits
        self._began_s = time.monotonic()
        self._slow: list[tuple[Proposal, Trial]] = []
        self._again: list[Proposal] = []
        self._was_patient = False
        self._texts: Mapping[str, str] = texts
        self.found = Findings(texts=texts)

    async def run(self, failing: frozenset[str]) -> Findings:
        """Locate, then try single changes, then pairs, then what was late, while there is time."""
        found, limits = self.found, self._limits
        found.spectrum = await locate(
            self._command, list(found.texts), failing, limits.seconds * LOCATE_SHARE
        )
        if found.spectrum.failing or found.spectrum.errors:
            found.faults = rank_faults(found.spectrum, found.texts)
            scores = line_scores(found.faults, found.spectrum, found.texts)
            scores = narrowed(scores, changed_lines(self._hunks, found.texts))
            self._texts = {path: text for path, text in found.texts.items() if path in scores}
            singles = await first_order(
                scores,
                found.texts,
                found.spectrum.imported,
                seed=limits.seed,
                most=limits.candidates,
                seconds=limits.seconds * MAKING_SHARE,
                on_fault=lambda path, fault: found.broken.append((path, fault)),
            )
            singles = [*reverts(self._hunks, found.texts), *singles]
            await self._try(singles)
            if not found.plausible:
                await self._try(second_order(found.partial, singles, most=self._left()))
            found.ended = self._reason() or "everything was tried"
        else:
            found.ended = "no test fails here"
        found.seconds = time.monotonic() - self._began_s
        return found

    def _left(self) -> int:
        return max(0, self._limits.candidates - self.found.tried)

    def _reason(self) -> str:
        """Why the search has to end, where it has to."""
        now_s = time.monotonic() - self._began_s
        if len(self.found.plausible) >= self._limits.patches:
            return f"{len(self.found.plausible)} plausible repairs are enough"
        if self.found.first_s is not None and now_s > self.found.first_s + max(
            LEAST_LINGER_S, LINGER * self.found.first_s
        ):
            return "the likeliest changes were tried"
        if now_s >= self._limits.seconds:
            return f"{self._limits.seconds:g} s are over"
        return "" if self._left() else f"{self._limits.candidates} candidates were tried"

    async def _try(self, proposals: list[Proposal]) -> None:
        waiting = proposals
        while waiting and not self._reason():
            batch = waiting[: min(MOST_BATCH, self._left())]
            limit_s = max(LEAST_BATCH_S, (time.monotonic() - self._began_s) / 2)
            tried = await self._try_batch(batch, limit_s)
            if not tried:
                return  # not one came to its end: there is no sense in going on
            untried = [p for n, p in enumerate(batch) if n not in tried]
            waiting = [*self._again, *untried, *waiting[len(batch) :]]
            self._again = []
            if time.monotonic() - self._began_s > PATIENT_SHARE * self._limits.seconds:
                await self._try_slow()
        await self._try_slow()

    async def _try_slow(self) -> None:
        """Candidates that passed what they came to, once more and with patience."""
        if self._slow and not (self._was_patient or self.found.plausible or self._reason()):
            self._was_patient = True
            self._slow.sort(key=lambda pair: (-pair[1].passing, -pair[0].score))
            slow = [proposal for proposal, _ in self._slow[:MOST_PATIENT]]
            left_s = self._limits.seconds - (time.monotonic() - self._began_s)
            await self._try_batch(slow, left_s / 2, PATIENT_S)

    async def _try_batch(
        self, batch: list[Proposal], limit_s: float, least_s: float = LEAST_S
    ) -> frozenset[int]:
        """Every second one in each of two processes, so that both see likely ones first; answers which."""
        limit_s = min(limit_s, self._limits.seconds - (time.monotonic() - self._began_s))
        spectrum, texts = self.found.spectrum, self._texts
        shares = [batch[number::AT_ONCE] for number in range(AT_ONCE)]
        answers = await asyncio.gather(
            *(screen(self._command, s, spectrum, texts, limit_s, least_s=least_s) for s in shares if s)
        )
        tried = set()
        for first, answer in enumerate(answers):
            for number, trial in answer.items():
                tried.add(first + number * AT_ONCE)
                self._note(batch[first + number * AT_ONCE], trial)
        self.found.plausible.sort(key=lambda proposal: -round(proposal.score, 6))
        self.found.partial.sort(key=lambda pair: (-pair[1].passing, pair[1].failing, -pair[0].score))
        return frozenset(tried)

    def _note(self, proposal: Proposal, trial: Trial) -> None:
        self.found.tried += 1
        if trial.plausible:
            warnings = self._warnings(proposal)
            if DEAD in warnings:
                return
            self.found.plausible.append(proposal)
            if self.found.first_s is None and not warnings:
                self.found.first_s = time.monotonic() - self._began_s
        elif trial.broken:
            return
        elif trial.late and trial.passing and not trial.failing:
            self._slow.append((proposal, trial))
        elif trial.unsupported and proposal.swap:
            self._again.append(replace(proposal, swap=False))
        elif trial.passing and trial.failing:
            self.found.partial.append((proposal, trial))

    def _warnings(self, proposal: Proposal) -> tuple[str, ...]:
        text = self.found.texts[proposal.path]
        return warnings_about(text, mutated(text, proposal.edits), self._literals)
