"""Compound changes: partial repairs that are extended by further changes, one at a time.

A change is worth extending if some failing test passes with it, or gets further: to a later line, or past an
exception that hid the next fault. Such a change is a *start*, and the changes that extend it are its *partners*.
Only a compound change that makes progress becomes a start itself. So three faults are fixed in three steps, and
not by trying all triples of changes.

Pairs of likely changes that help no test by themselves are tried too. The second change of an extension is made in
the text with the first one. So it may change code that the first one wrote, and use names that the first one
declares.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from suture.judge.trials.trial_records import FailurePoint, Proposal, Spectrum, TestLines, TestRun, Trial
from suture.mutation import Edit, apply_edits
from suture.mutation.edits import compose_edits, edits_overlap, encode_source
from suture.mutation.python.python_tree import body_lines, parse_python_tree
from suture.search import tuning
from suture.search.localisation.fault_ranking import find_clues, rank_suspects, score_lines
from suture.search.ordering.candidate_order import (
    LineScores,
    MutantGenerator,
    interleave_expensive,
    order_single_changes,
)
from suture.search.tuning import (
    GENERATION_SHARE,
    MAX_PAIRED_SINGLES,
    MAX_PARTNERS,
    MAX_PARTNERS_EXAMINED,
)

LineTracer = Callable[[Proposal], Awaitable[TestLines]]
"""Returns the lines that failing tests run with a change."""
StartExtender = Callable[[Proposal, Spectrum, LineScores], Awaitable[list[Proposal]]]
"""Extends a partial repair, given the spectrum and the suspicious lines that remain (`CompoundMutations`)."""
STRUCTURAL_ERRORS = ("NameError", "UnboundLocalError", "AttributeError", "ModuleNotFoundError", "ImportError")
"""Exceptions that occur whatever the values are: if one no longer occurs, something was fixed."""


def has_progressed(before: FailurePoint, after: FailurePoint) -> bool:
    """Return whether a test that still fails gets further than before a change."""
    test_file = before.test.partition("::")[0]
    old, new = before.traceback, after.traceback
    if after.test != before.test or not old or not new or not after.error:
        return False
    # A TypeError in its place is not taken for progress. By judgement.
    is_fixed = not after.error.startswith((*STRUCTURAL_ERRORS, "TypeError"))
    if before.error.startswith(STRUCTURAL_ERRORS) and is_fixed:
        return True  # even if the next fault is on an earlier line, as in a loop
    for (old_path, old_line), (new_path, new_line) in zip(old, new, strict=False):
        if (old_path, old_line) != (new_path, new_line):
            return old_path == new_path and new_line > old_line
    # Both tracebacks agree up to the end of the shorter one. If the new one ends in the test, the call that
    # raised an exception returns now.
    return len(new) < len(old) and new[-1][0] == test_file and old[-1][0] != test_file


def remaining_spectrum(spectrum: Spectrum, trial: Trial, texts: Mapping[str, str]) -> Spectrum:
    """Return the spectrum after a first change: the tests that still fail, and where they fail now.

    Tests that the change fixes count as passing. Where the lines that a test runs were not traced with the
    change, all lines of the functions in its traceback count as run: code after the old exception may run now.
    Failing tests that trials do not run are left out.
    """
    tests, failures = [], {failure.test: failure for failure in trial.failures}
    for test in spectrum.tests:
        failure, traced = failures.get(test.id), trial.lines.get(test.id)
        if traced:
            test = replace(test, lines=traced)
        if test.id in trial.now_passing:
            test = replace(test, outcome="passed")
        elif test.failed and spectrum.target_tests and test.id not in spectrum.target_tests:
            continue
        if failure is not None and failure.traceback:
            frames = tuple(frame for frame in failure.traceback if frame[0] in texts)
            lines = {path: set(path_lines) for path, path_lines in test.lines.items()}
            for path, line in () if traced else frames:
                tree = parse_python_tree(texts[path])
                function = tree.innermost_function(line) if tree is not None else None
                function_lines = (line,) if function is None else body_lines(function)
                lines.setdefault(path, set()).update(function_lines)
            test = replace(
                test,
                frames=frames,
                error=failure.error,
                traceback=failure.traceback,
                lines={path: frozenset(path_lines) for path, path_lines in lines.items()},
            )
        tests.append(test)
    failing_in_suite = spectrum.failing_in_suite - trial.now_passing
    return replace(spectrum, tests=tuple(tests), failing_in_suite=failing_in_suite)


def get_start_weight(trial: Trial, spectrum: Spectrum) -> float:
    """Return the weight of a start: the share of the failing tests that it fixes, or a small one if it fixes none."""
    test_count = max(trial.passing + trial.failing, len(spectrum.target_tests), 1)
    return max(trial.passing, tuning.PROGRESS_WEIGHT) / test_count


@dataclass(frozen=True)
class Start:
    """A partial repair that may be extended, with its trial."""

    proposal: Proposal
    trial: Trial

    @property
    def test_results(self) -> tuple[object, ...]:
        """The tests that it fixes and the first remaining failure; equal for starts that repair the same."""
        return self.trial.now_passing, self.trial.failures[:1]


class CompoundQueue:
    """The partial repairs of one search, and the compound changes that extend them."""

    def __init__(self) -> None:
        self._starts: list[Start] = []
        self._parents: dict[Proposal, Trial] = {}
        self._waiting: list[Proposal] = []
        self._extended_count = 0
        self._result_counts: Counter[tuple[object, ...]] = Counter()
        self._improved_at: int | None = None  # number of candidates tried before a better start was found
        self._most_passing = 0

    def record(
        self, proposal: Proposal, trial: Trial, before: Mapping[str, TestRun], tried_count: int
    ) -> bool:
        """Keep a failing candidate as a start if it makes progress; return whether it was kept.

        A compound change is compared with the start that it extends, a single change with the unchanged code.

        Args:
            before: Test -> its run on the unchanged code.
        """
        if trial.broken or trial.timed_out or not trial.failing:
            return False
        parent = self._parents.get(proposal)
        if not _is_progress(trial, parent, before):
            return False
        self._starts.append(Start(proposal, trial))
        is_better = trial.passing > self._most_passing
        if self._improved_at is None and (parent is not None or is_better):
            self._improved_at = tried_count
        self._most_passing = max(self._most_passing, trial.passing)
        return True

    @property
    def has_waiting(self) -> bool:
        """Whether compound changes wait to be tried."""
        return bool(self._waiting)

    def has_promising_start(self) -> bool:
        """Return whether most of the failing tests pass with a start that has not been extended."""
        return any(start.trial.passing > start.trial.failing for start in self._starts)

    def is_due(self, tried_count: int) -> bool:
        """Return whether the next starts should be extended: after an improvement, or when nothing waits."""
        if not self._starts or self._extended_count >= tuning.MAX_STARTS:
            return False
        improved_at = self._improved_at
        has_settled = improved_at is not None and tried_count >= improved_at + tuning.SETTLING_TRIALS
        return not self._waiting or has_settled

    async def extend(
        self,
        spectrum: Spectrum,
        texts: Mapping[str, str],
        trace_lines: LineTracer,
        extend_start: StartExtender,
        *,
        limit: int,
    ) -> None:
        """Extend the best starts that have not been extended."""
        self._improved_at = None
        chosen = self._choose_starts()
        self._extended_count += len(chosen)
        for number, start in enumerate(chosen):
            trial = replace(start.trial, lines=await trace_lines(start.proposal))
            remaining = remaining_spectrum(spectrum, trial, texts)
            changed_file = {start.proposal.path: texts[start.proposal.path]}
            scores = score_lines(rank_suspects(remaining, changed_file), remaining, changed_file)
            compounds = await extend_start(start.proposal, remaining, scores)
            # Scores are rounded here and below, so that a floating-point error does not decide the order.
            compounds.sort(key=lambda proposal: -round(proposal.score, 6))
            weight = get_start_weight(trial, spectrum) * tuning.START_DECAY**number
            for rank, proposal in enumerate(compounds[:limit]):
                rescored = replace(proposal, score=proposal.score * weight * tuning.RANK_DECAY**rank)
                if rescored not in self._parents:
                    self._parents[rescored] = start.trial
                    self._waiting.append(rescored)
        self._waiting.sort(key=lambda proposal: -round(proposal.score, 6))
        del self._waiting[tuning.MAX_WAITING :]
        if spectrum.collect_s >= tuning.EXPENSIVE_COLLECT_CPU_S:
            self._waiting = interleave_expensive(self._waiting)

    def _choose_starts(self) -> list[Start]:
        """Remove the starts of the next round from the waiting ones, and return them."""
        self._starts.sort(key=lambda s: (-s.trial.passing, s.trial.failing, -round(s.proposal.score, 6)))
        chosen: list[Start] = []
        remaining: list[Start] = []
        has_passing = any(start.trial.passing for start in self._starts)
        # Whether some test passes with a start -> how many such starts may still be chosen.
        quota = {
            True: tuning.STARTS_PER_ROUND,
            False: tuning.NON_PASSING_STARTS_PER_ROUND if has_passing else tuning.STARTS_PER_ROUND,
        }
        for start in self._starts:
            passes = start.trial.passing > 0
            if self._result_counts[start.test_results] >= tuning.MAX_EQUAL_STARTS:
                continue
            if len(chosen) < tuning.STARTS_PER_ROUND and quota[passes]:
                quota[passes] -= 1
                self._result_counts[start.test_results] += 1
                chosen.append(start)
            else:
                remaining.append(start)
        self._starts = remaining
        return chosen

    def pop(self) -> Proposal | None:
        """Return the likeliest compound change that waits; `None` if none does."""
        return self._waiting.pop(0) if self._waiting else None


def _is_progress(trial: Trial, parent: Trial | None, before: Mapping[str, TestRun]) -> bool:
    """Return whether more tests pass than before, or as many pass and more of the others get further than back."""
    passing_before = parent.passing if parent else 0
    if trial.passing != passing_before:
        return trial.passing > passing_before
    earlier = parent.failures if parent else _baseline_failures(trial.failures, before)
    old_failures = {failure.test: failure for failure in earlier}
    pairs = [(old_failures[new.test], new) for new in trial.failures if new.test in old_failures]
    forward_count = sum(has_progressed(old, new) for old, new in pairs)
    backward_count = sum(has_progressed(new, old) for old, new in pairs)
    return forward_count > backward_count


def _baseline_failures(
    failures: Iterable[FailurePoint], before: Mapping[str, TestRun]
) -> Iterator[FailurePoint]:
    """Return the failures of the same tests on the unchanged code."""
    return (before[failure.test].failure_point for failure in failures if failure.test in before)


@dataclass
class CompoundMutations:
    """Generates the compound changes of one search.

    Attributes:
        generate: Generates the mutants of a file.
        scores: Path -> line -> suspiciousness.
        remaining_s: Returns the seconds that the search has left, a share of which is for generating changes.
    """

    texts: Mapping[str, str]
    scores: LineScores
    generate: MutantGenerator
    seed: int
    remaining_s: Callable[[], float]

    async def extend_start(self, start: Proposal, remaining: Spectrum, scores: LineScores) -> list[Proposal]:
        """Return compound changes: a start, each time with one likely change for the tests that still fail.

        Args:
            remaining: The spectrum of the project with the start (see `remaining_spectrum`).
            scores: Path -> line -> suspiciousness, by that spectrum. If no line is suspected any more, the lines
                suspected before the start are used.
        """
        text, path = self.texts[start.path], start.path
        lines = shift_scores((scores or self.scores).get(path, {}), start.edits, text)
        if not lines:
            return []
        import_lines = dict.fromkeys(remaining.import_lines.get(path, frozenset()), 1.0)
        second_changes = await order_single_changes(
            {path: lines},
            {path: apply_edits(text, start.edits)},
            {path: frozenset(shift_scores(import_lines, start.edits, text))},
            generate=self.generate,
            seed=self.seed,
            limit=MAX_PARTNERS,
            seconds=GENERATION_SHARE * self.remaining_s(),
            clues=find_clues(remaining),
            max_examined=MAX_PARTNERS_EXAMINED,
        )
        best = max((second.score for second in second_changes), default=1.0) or 1.0
        compounds = (
            replace(
                second,
                edits=compose_edits(start.edits, second.edits, text),
                label=f"{start.label}; {second.label}",
                score=second.score / best,
                operators=(*start.operators, *second.operators),
                is_swappable=start.is_swappable and second.is_swappable,
            )
            for second in second_changes
        )
        return [compound for compound in compounds if compound.edits]  # a second change may undo the first


def combine_pairs(singles: Sequence[Proposal]) -> Iterator[Proposal]:
    """Yield the pairs of the likeliest single changes at different places of a file, the likeliest pair first."""
    pairs = [
        (first, second)
        for first, second in combinations(singles[:MAX_PAIRED_SINGLES], 2)
        if first.path == second.path and not edits_overlap(first.edits, second.edits)
    ]
    pairs.sort(key=lambda pair: -pair[0].score * pair[1].score)
    for first, second in pairs:
        yield Proposal(
            path=first.path,
            edits=tuple(sorted((*first.edits, *second.edits), key=lambda edit: (edit.start, edit.end))),
            label=f"{first.label}; {second.label}",
            score=first.score * second.score,
            operators=(*first.operators, *second.operators),
            is_swappable=first.is_swappable and second.is_swappable,
        )


def shift_scores(scores: Mapping[int, float], edits: Sequence[Edit], text: str) -> dict[int, float]:
    """Return the scores after a change; new lines get the highest score of the lines they replace."""
    raw, shifted = encode_source(text), dict(scores)
    for edit in sorted(edits, key=lambda e: e.start, reverse=True):
        line = raw[: edit.start].count(b"\n") + 1
        removed, added = raw[edit.start : edit.end].count(b"\n"), edit.text.count("\n")
        highest = max(shifted.get(replaced, 0.0) for replaced in range(line, line + removed + 1))
        before = {number: score for number, score in shifted.items() if number < line}
        changed = {number: highest for number in range(line, line + added + 1) if highest}
        shift, last_line = added - removed, line + removed
        after = {number + shift: score for number, score in shifted.items() if number > last_line}
        shifted = {**before, **changed, **after}
    return shifted
