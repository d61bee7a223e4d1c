"""Compare candidates that pass the same checks on inputs that no check has.

The idea is S*'s (arXiv 2502.14382), where a model makes the inputs; here they are near those of the checks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from suture.core.records import Candidate, Check
from suture.judge.differential.questions import edge_questions, generate_questions
from suture.judge.split.answer_digest import ANSWER_NAME
from suture.judge.split.split_runner import ProgramOutcome
from suture.judge.suite import Suite
from suture.judge.tuning import CALL_BATCH, FIRST_CALL_BATCH, MAX_CALL_TIMEOUTS, MAX_SHOWN_DIFFERENCES
from suture.judge.verdicts import run_programs

ComparisonCode = Literal[
    "single_candidate", "no_known_call", "no_comparable_call", "all_alike", "majority", "no_majority"
]
TIMED_OUT = "no answer in time"


@dataclass(frozen=True, kw_only=True)
class ComparisonLimits:
    """Limits of a comparison.

    Attributes:
        inputs: Calls near those of the checks, per candidate.
        edges: Calls at the edges of their types, such as zero or an empty list, if the others show no
            difference.
        call_timeout_s: Wall-clock seconds of one call, unless the settings allow less.
        timeout_s: Wall-clock seconds of the whole comparison.
        concurrency: Candidates that run at the same time.
    """

    inputs: int = 60
    edges: int = 18
    candidates: int = 8
    call_timeout_s: float = 2.0
    timeout_s: float = 30.0
    concurrency: int = 2


@dataclass(frozen=True, kw_only=True)
class AnswerDifference:
    """A call that candidates answer differently.

    Attributes:
        answers: Candidate hash -> its answer, as source or in words.
    """

    call: str
    answers: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class BehaviourComparison:
    """How candidates behave on inputs that no check has.

    Attributes:
        code: What the comparison showed, or why there is none.
        clusters: Hashes of candidates that answer every call alike, the largest cluster first; of equally
            large ones, the one with the earliest candidate. Candidates in no cluster were not compared.
        sizes: Size of each cluster. A candidate that was written several times counts several times.
        disagreements: Some calls that distinguish clusters.
        calls: Number of calls that all candidates answered.
        timed_out: Number of candidates that timed out on several calls.
    """

    code: ComparisonCode
    clusters: tuple[tuple[str, ...], ...] = ()
    sizes: tuple[int, ...] = ()
    disagreements: tuple[AnswerDifference, ...] = ()
    calls: int = 0
    timed_out: int = 0

    @property
    def preferred(self) -> str | None:
        """Hash of the first candidate of the largest cluster, if there is one."""
        return self.clusters[0][0] if self.clusters else None


def render_comparison(found: BehaviourComparison) -> str:
    """Return what a comparison showed, in one line."""
    total = sum(found.sizes)
    largest = found.sizes[0] if found.sizes else 0
    timed_out = f"; {found.timed_out} timed out on several calls" if found.timed_out else ""
    texts: dict[ComparisonCode, str] = {
        "single_candidate": "not compared: there is only one candidate",
        "no_known_call": "not compared: no other call is known",
        "no_comparable_call": "not compared: no call could be compared",
        "all_alike": f"all {total} candidates answer {found.calls} further calls alike",
        "majority": f"{largest} of {total} candidates answer {found.calls} further calls alike{timed_out}",
        "no_majority": f"no majority: {total} candidates answer {found.calls} further calls in "
        f"{len(found.sizes)} ways{timed_out}",
    }
    return texts[found.code]


@dataclass(frozen=True, kw_only=True)
class _Answer:
    key: str
    shown: str


async def compare_candidates(
    candidates: Sequence[Candidate],
    suite: Suite,
    *,
    hints: Sequence[Check] = (),
    drawn: Mapping[str, int] | None = None,
    limits: ComparisonLimits | None = None,
    seed: int = 0,
) -> BehaviourComparison:
    """Call candidates that pass the same checks with inputs near those of the checks.

    Args:
        candidates: Different candidates, the likeliest first.
        hints: Untrusted checks. Their calls are used as inputs; the results that they expect are ignored.
        drawn: Candidate hash -> how often it was written, and so how often it counts; 1 by default.
    """
    limits = limits or ComparisonLimits()
    chosen = {candidate.hash: candidate for candidate in candidates[: limits.candidates]}
    if len(chosen) < 2:
        return BehaviourComparison(code="single_candidate")
    near = generate_questions(suite.task, hints, limits.inputs, seed)
    edges = edge_questions(suite.task, hints, limits.edges)
    answers: dict[str, list[_Answer | None]] = {name: [] for name in chosen}
    call_timeout_s = min(limits.call_timeout_s, suite.settings.check_timeout_s)
    slots = asyncio.Semaphore(limits.concurrency)

    async def call_one(name: str, batch: Sequence[str]) -> None:
        if not _has_timed_out(answers[name]):
            async with slots:
                programs = [_make_program(call) for call in batch]
                results = await run_programs(chosen[name], suite, programs, call_timeout_s)
            answers[name] += map(_read_answer, results)

    async def call_all(questions: Sequence[str]) -> None:
        for batch in _batches(questions):
            results = await asyncio.gather(
                *(call_one(name, batch) for name in chosen), return_exceptions=True
            )
            for fault in filter(None, results):
                raise fault

    questions = near
    try:
        async with asyncio.timeout(limits.timeout_s):
            await call_all(near)
            if len(_compare_answers(near, answers, {}).clusters) < 2:
                questions = (*near, *edges)
                await call_all(edges)
    except TimeoutError:
        pass  # the calls that all candidates answered until then are compared
    return _compare_answers(questions, answers, drawn or {})


def _batches(questions: Sequence[str]) -> Iterator[Sequence[str]]:
    yield questions[:FIRST_CALL_BATCH]
    for first in range(FIRST_CALL_BATCH, len(questions), CALL_BATCH):
        yield questions[first : first + CALL_BATCH]


def _make_program(call: str) -> str:
    name, _, arguments = call.partition("(")
    given = f"({arguments.removesuffix(')')},)" if arguments != ")" else "()"
    return f"__suture_arguments__ = {given}\n{ANSWER_NAME} = ({name}(*__suture_arguments__), __suture_arguments__)\n"


def _read_answer(result: ProgramOutcome) -> _Answer | None:
    if result.digest:
        return _Answer(key=result.digest[0], shown=result.digest[1])
    if result.live_reason:
        return None
    if result.status == "timeout":
        return _Answer(key=TIMED_OUT, shown=TIMED_OUT)
    fault = str(result.fact.get("exception", "")).partition(":")[0]
    return _Answer(key=f"! {fault}", shown=f"raises {fault}")


def _compare_answers(
    questions: Sequence[str], answers: Mapping[str, Sequence[_Answer | None]], drawn: Mapping[str, int]
) -> BehaviourComparison:
    timed_out = [name for name, given in answers.items() if _has_timed_out(given)]
    in_time = {name: given for name, given in answers.items() if name not in timed_out}
    answered = min((len(given) for given in in_time.values()), default=0)
    usable = [n for n in range(answered) if all(given[n] is not None for given in in_time.values())]
    if not usable:
        return BehaviourComparison(code="no_comparable_call" if questions else "no_known_call")
    order = list(answers)
    groups: dict[tuple[str, ...], list[str]] = {}
    for name, given in in_time.items():
        groups.setdefault(tuple(a.key for n in usable if (a := given[n]) is not None), []).append(name)
    clusters = [*map(tuple, groups.values()), *((name,) for name in timed_out)]

    def size(names: Sequence[str]) -> int:
        return sum(max(1, drawn.get(name, 1)) for name in names)

    clusters.sort(key=lambda names: (-size(names), names[0] in timed_out, order.index(names[0])))
    sizes = tuple(size(names) for names in clusters)
    code: ComparisonCode = "majority"
    if sizes[0] == sum(sizes):
        code = "all_alike"
    elif sizes[1] == sizes[0]:
        code = "no_majority"
    return BehaviourComparison(
        code=code,
        clusters=tuple(clusters),
        sizes=sizes,
        disagreements=tuple(_find_differences(questions, usable, in_time))[:MAX_SHOWN_DIFFERENCES],
        calls=len(usable),
        timed_out=len(timed_out),
    )


def _has_timed_out(given: Sequence[_Answer | None]) -> bool:
    return sum(answer is not None and answer.key == TIMED_OUT for answer in given) >= MAX_CALL_TIMEOUTS


def _find_differences(
    questions: Sequence[str], usable: Sequence[int], in_time: Mapping[str, Sequence[_Answer | None]]
) -> Iterator[AnswerDifference]:
    for n in usable:
        answers = {name: answer for name, given in in_time.items() if (answer := given[n]) is not None}
        if len({answer.key for answer in answers.values()}) > 1:
            yield AnswerDifference(
                call=questions[n], answers={name: answer.shown for name, answer in answers.items()}
            )
