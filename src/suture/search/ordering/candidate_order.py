"""Generates single changes of suspicious lines, the likeliest first."""

from __future__ import annotations

import asyncio
import hashlib
import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from heapq import merge
from itertools import islice
from operator import itemgetter
from typing import Protocol

from suture.core.ledger.kinds import BrokenOperator, SuspectLine
from suture.core.records import CheckOutcome
from suture.judge.trials.trial_records import Proposal, Spectrum
from suture.mutation import Mutant, OperatorName
from suture.mutation.changes import FaultReporter, ValueDifference, compare_values
from suture.mutation.edits import encode_source
from suture.mutation.python.scope_names import ObservedKinds
from suture.mutation.tuning import MAX_DIFFERENCES
from suture.search import tuning
from suture.search.localisation.fault_ranking import (
    Clue,
    clue_factor,
    find_clues,
    rank_suspects,
    score_lines,
    score_named_lines,
)
from suture.search.ordering.reverts import Hunk, favour_changed_lines, find_changed_lines, generate_reverts
from suture.search.search_records import ChangeKey, SearchLimits, change_key
from suture.search.tuning import MAX_SINGLES

LineScores = Mapping[str, Mapping[int, float]]
"""Path -> line -> suspiciousness."""


@dataclass(frozen=True, kw_only=True)
class ObservedValues:
    """What the runs of the tests showed about values.

    Attributes:
        differences: How the actual values of failing tests differ from the expected ones.
        kinds: Path -> the kinds of values that variables hold.
    """

    differences: Sequence[ValueDifference] = ()
    kinds: Mapping[str, ObservedKinds] = field(default_factory=dict)


NOTHING_OBSERVED = ObservedValues()
MutantGenerator = Callable[
    [str, str, Mapping[int, float], FaultReporter | None, ObservedValues], Iterator[Mutant]
]
"""Yields the mutants of a file by its path, its text, its suspicious lines and the values that were observed; reports
operators that raise."""
RankedProposal = tuple[float, str, Proposal]
"""`(negative score, tie-breaker, candidate)`: the likeliest candidate sorts first."""


@dataclass(frozen=True, kw_only=True)
class OrderedCandidates:
    """Suspicious lines and single changes of them, the likeliest first.

    Attributes:
        line_scores: The suspiciousness of all lines that may be changed.
        operator_failures: Mutation operators that raised.
    """

    suspect_lines: tuple[SuspectLine, ...]
    line_scores: LineScores
    singles: tuple[Proposal, ...]
    operator_failures: tuple[BrokenOperator, ...]


async def order_candidates(
    spectrum: Spectrum,
    texts: Mapping[str, str],
    hunks: Sequence[Hunk],
    *,
    generate: MutantGenerator,
    outcomes: Sequence[CheckOutcome],
    seed: int,
    limit: int,
    seconds: float,
    on_early: Callable[[OrderedCandidates], None] | None = None,
) -> OrderedCandidates:
    """Return single changes of the lines that the failing tests point to.

    Args:
        texts: Path -> text of the files that may be changed.
        hunks: What changed when the tests began to fail. It is reverted first, and its lines are suspected
            most.
        outcomes: The outcomes of the tests in the user's run, whose messages show where to look if no line is
            known to run.
        limit: Maximum number of changes to return.
        seconds: Wall-clock seconds of the whole search.
        on_early: Receives the likeliest changes of the most suspicious lines, if there are many changes.
    """
    failures: list[BrokenOperator] = []
    suspects = rank_suspects(spectrum, texts)
    line_scores = score_lines(suspects, spectrum, texts)
    if not line_scores:
        suspects, line_scores = score_named_lines(texts, outcomes)
    scores = favour_changed_lines(line_scores, find_changed_lines(hunks, texts))

    def complete(singles: Sequence[Proposal]) -> OrderedCandidates:
        singles = [*generate_reverts(hunks, texts), *singles]
        if spectrum.collection_errors:  # the code of failing tests is not loaded, so nothing can be patched
            singles = [replace(proposal, is_swappable=False) for proposal in singles]
        elif spectrum.collect_s >= tuning.EXPENSIVE_COLLECT_CPU_S:
            singles = interleave_expensive(singles)
        return OrderedCandidates(
            suspect_lines=tuple(suspects),
            line_scores=scores,
            singles=tuple(singles),
            operator_failures=tuple(failures),
        )

    singles = await order_single_changes(
        scores,
        texts,
        spectrum.import_lines,
        seed=seed,
        limit=limit,
        seconds=min(seconds * tuning.GENERATION_SHARE, tuning.MAX_GENERATION_S),
        clues=find_clues(spectrum),
        observed=ObservedValues(differences=find_differences(outcomes), kinds=spectrum.kinds),
        generate=generate,
        failures=failures,
        on_early=None if on_early is None else lambda singles: on_early(complete(singles)),
    )
    return complete(singles)


def find_differences(outcomes: Sequence[CheckOutcome]) -> tuple[ValueDifference, ...]:
    """Return how the actual values of failing tests differ from the expected ones, each difference once."""
    counterexamples = (o.counterexample for o in outcomes if o.counterexample is not None)
    pairs = dict.fromkeys((c.expected, c.actual) for c in counterexamples if c.expected and c.actual)
    differences = (difference for pair in pairs for difference in compare_values(*pair))
    return tuple(dict.fromkeys(islice(differences, MAX_DIFFERENCES)))


def interleave_expensive(singles: Sequence[Proposal]) -> list[Proposal]:
    """Return changes in their order, but with a few cheap ones after each that needs a reimport.

    Where importing takes as long as dozens of trials, a few likely changes of imported code would keep all
    others waiting.
    """
    ordered: list[Proposal] = []
    expensive: deque[Proposal] = deque()
    cheap_count = tuning.CHEAP_PER_EXPENSIVE  # since the last expensive change
    for proposal in singles:
        if not proposal.is_swappable:
            expensive.append(proposal)
        else:
            ordered.append(proposal)
            cheap_count += 1
        if expensive and cheap_count >= tuning.CHEAP_PER_EXPENSIVE:
            ordered.append(expensive.popleft())
            cheap_count = 0
    return [*ordered, *expensive]


async def order_single_changes(
    scores: LineScores,
    texts: Mapping[str, str],
    import_lines: Mapping[str, frozenset[int]],
    *,
    generate: MutantGenerator,
    seed: int = 0,
    limit: int = tuning.MAX_SINGLES,
    seconds: float = math.inf,
    clues: Sequence[Clue] = (),
    observed: ObservedValues = NOTHING_OBSERVED,
    failures: list[BrokenOperator] | None = None,
    on_early: Callable[[Sequence[Proposal]], None] | None = None,
    max_examined: float = math.inf,
) -> list[Proposal]:
    """Return the likeliest single changes of suspicious lines. Other tasks of the event loop may run in the meantime.

    Args:
        scores: Path -> line -> suspiciousness.
        import_lines: Path -> lines that run on import: a change of them needs a reimport.
        limit: Maximum number of changes to return; about twice as many are held at a time.
        seconds: Wall-clock seconds, after which what has been generated is returned.
        generate: Generates the mutants of a file.
        failures: Receives operators that raise; such an operator makes no more changes of that node. Without
            it, the exception ends the search.
        on_early: Receives the likeliest of the first `EARLY_SAMPLE` changes, if there are more.
        max_examined: Maximum number of changes to generate, those of the most suspicious lines first.
    """
    end_s = time.monotonic() + seconds
    ranked: list[RankedProposal] = []
    worst_rank = math.inf
    # The most suspicious lines of all files come first, because there may not be enough time for all.
    by_suspicion = sorted(scores.items(), key=lambda item: -max(item[1].values()))
    streams = []
    for path, line_scores in by_suspicion:
        on_fault = None if failures is None else partial(_record_fault, failures, path)
        mutants = generate(path, texts[path], line_scores, on_fault, observed)
        lines_on_import = import_lines.get(path, frozenset())
        streams.append(_score_mutants(mutants, path, texts[path], line_scores, lines_on_import, clues))
    for count, (_, proposal) in enumerate(merge(*streams, key=lambda pair: -pair[0]), 1):
        # Rounded, so that a floating-point error does not decide between equal scores.
        rank = -round(proposal.score, 6)
        if rank <= worst_rank:
            ranked.append((rank, _tie_breaker(proposal, seed), proposal))
        if len(ranked) >= 2 * limit + tuning.SPARE_HELD:
            ranked = _select_best(ranked, limit)
            worst_rank = ranked[-1][0]
        if count % tuning.YIELD_EVERY == 0:
            await asyncio.sleep(0)
            if time.monotonic() > end_s or count >= max_examined:
                break
        if count == tuning.EARLY_SAMPLE and on_early is not None:
            on_early([proposal for _, _, proposal in _select_best(ranked, tuning.EARLY_CANDIDATES)])
    return [proposal for _, _, proposal in _select_best(ranked, limit)]


def _select_best(ranked: list[RankedProposal], limit: int) -> list[RankedProposal]:
    """Return the likeliest candidates, each change once."""
    unique: dict[ChangeKey, RankedProposal] = {}
    for candidate in sorted(ranked, key=itemgetter(0, 1)):
        unique.setdefault(change_key(candidate[2]), candidate)
    return list(unique.values())[:limit]


def _score_mutants(
    mutants: Iterator[Mutant],
    path: str,
    text: str,
    line_scores: Mapping[int, float],
    lines_on_import: frozenset[int],
    clues: Sequence[Clue],
) -> Iterator[tuple[float, Proposal]]:
    """Yield `(suspicion of its line, change)` for the mutants of one file."""
    default_suspicion = max(line_scores.values()) / 2
    raw = encode_source(text)
    for mutant in mutants:
        # An edit may begin on an earlier line than the node that it changes. The half above is by judgement.
        suspicion = line_scores.get(mutant.line, default_suspicion)
        score = mutant.prior * suspicion**tuning.SUSPICION_EXPONENT * clue_factor(mutant, path, raw, clues)
        proposal = Proposal(
            path=path,
            edits=mutant.edits,
            label=mutant.label,
            score=score,
            operators=(mutant.operator,),
            # What ran on import, such as a default value, is not replaced with a function's new code.
            is_swappable=mutant.in_function_body and mutant.line not in lines_on_import,
        )
        yield suspicion, proposal


def _record_fault(
    failures: list[BrokenOperator], path: str, operator: OperatorName, line: int, fault: Exception
) -> None:
    message = f"{type(fault).__name__}: {fault}"
    failures.append(BrokenOperator(path=path, operator=operator, line=line, fault=message))


def _tie_breaker(proposal: Proposal, seed: int) -> str:
    """Return a deterministic tie-breaker that does not follow the order of the source."""
    return hashlib.sha256(encode_source(f"{seed} {proposal.path} {proposal.edits}")).hexdigest()


class Baseline(Protocol):
    """Trials of the unchanged code."""

    async def run_failing_tests(self) -> Spectrum:
        """Return what the failing tests did: enough to begin a search."""
        ...

    async def run_all_tests(self) -> Spectrum:
        """Return what all tests did."""
        ...

    async def close(self) -> None:
        """Cancel the run; safe to call twice."""
        ...


class BaselineCandidates:
    """Runs the baseline of one search and generates its candidates, both in the background.

    Args:
        outcomes: The outcomes of the tests in the user's run; they show where to look if no line is known to run.
    """

    def __init__(
        self,
        baseline: Baseline,
        texts: Mapping[str, str],
        limits: SearchLimits,
        generate: MutantGenerator,
        outcomes: Sequence[CheckOutcome] = (),
    ) -> None:
        self._baseline, self._texts, self._limits = baseline, texts, limits
        self._generate, self._outcomes = generate, outcomes
        self._early: asyncio.Future[OrderedCandidates] = asyncio.get_running_loop().create_future()
        self._failing_tests = asyncio.create_task(baseline.run_failing_tests())
        self._ordered = asyncio.create_task(self._order_by_failing_tests())

    async def _order_by_failing_tests(self) -> OrderedCandidates | None:
        spectrum = await self._failing_tests
        return await self._order(spectrum) if spectrum.target_tests else None

    async def _order(self, spectrum: Spectrum, hunks: Sequence[Hunk] = ()) -> OrderedCandidates:
        limits = self._limits
        return await order_candidates(
            spectrum,
            self._texts,
            hunks,
            generate=self._generate,
            outcomes=self._outcomes,
            seed=limits.seed,
            limit=min(limits.max_candidates, MAX_SINGLES),
            seconds=limits.max_seconds,
            on_early=self._set_early,
        )

    def _set_early(self, candidates: OrderedCandidates) -> None:
        if not self._early.done():
            self._early.set_result(candidates)

    async def early_candidates(self, hunks: Sequence[Hunk]) -> OrderedCandidates | None:
        """Return the likeliest changes of the most suspicious lines; `None` if all changes are ready.

        Args:
            hunks: What changed when the tests began to fail. Reverts of it are tried before everything else,
                so that there are no early candidates then.
        """
        if hunks:
            return None
        await asyncio.wait((self._ordered, self._early), return_when=asyncio.FIRST_COMPLETED)
        return None if self._ordered.done() else self._early.result()

    def is_ordered(self) -> bool:
        """Return whether all candidates that follow from the failing tests are ready."""
        return self._ordered.done()

    async def ordered_candidates(self, spectrum: Spectrum, hunks: Sequence[Hunk]) -> OrderedCandidates:
        """Return the candidates of a search.

        Args:
            spectrum: The result of a baseline run. The candidates for that of the failing tests exist
                already.
            hunks: What changed when the tests began to fail.
        """
        candidates = await self._ordered
        is_for_spectrum = spectrum is self._failing_tests.result() and not hunks
        if candidates is not None and is_for_spectrum:
            return candidates
        return await self._order(spectrum, hunks)

    async def run_failing_tests(self) -> Spectrum:
        """Return the result of `BaselineRun.run_failing_tests`."""
        return await self._failing_tests

    async def run_all_tests(self) -> Spectrum:
        """Return the result of `BaselineRun.run_all_tests`."""
        return await self._baseline.run_all_tests()

    async def close(self) -> None:
        """Cancel the baseline run and the generation of candidates."""
        for task in (self._ordered, self._failing_tests):
            task.cancel()
        await asyncio.gather(self._ordered, self._failing_tests, return_exceptions=True)
        await self._baseline.close()
