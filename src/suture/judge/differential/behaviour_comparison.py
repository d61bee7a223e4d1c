"""Inputs that tell candidates apart which pass the same checks: made, run behind the wall, and shown.

After S* (arXiv 2502.14382), which makes such inputs with a model; here they are near those of the checks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from suture.core.records import Candidate, Check
from suture.judge.differential.questions import edge_questions, generate_questions
from suture.judge.split.answer_digest import ANSWER_NAME
from suture.judge.split.split_runner import ProgramOutcome
from suture.judge.suite import Suite
from suture.judge.verdicts import run_programs

FIRST_BATCH, BATCH = 6, 18
"""Calls made in one go: few at first, to find out who never ends."""
MOST_LATE = 2
"""Calls without an answer in time, after which a candidate is asked no more: each costs its whole limit."""
LATE = "no end in time"
MOST_SHOWN = 5


@dataclass(frozen=True, kw_only=True)
class ComparisonLimits:
    """What a comparison may use.

    Attributes:
        inputs: Calls that are made of each candidate, near those of the checks.
        edges: Calls at the edges of their types, where the others show no difference: the empty list, zero.
        candidates: Candidates that are compared; the first ones.
        call_s: Wall-clock seconds of one call, where the settings do not allow less.
        seconds: Wall-clock seconds of the whole.
        at_once: Candidates that run at the same time.
    """

    inputs: int = 60
    edges: int = 18
    candidates: int = 8
    call_s: float = 2.0
    seconds: float = 30.0
    at_once: int = 2


@dataclass(frozen=True, kw_only=True)
class AnswerDifference:
    """A call that candidates answer differently.

    Attributes:
        call: The call, as source.
        answers: Candidate hash -> its answer, as source or in words.
    """

    call: str
    answers: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """How candidates behave on inputs that no check has.

    Attributes:
        clusters: Hashes of candidates that answered every call alike, the largest cluster first; of equally
            large ones that with the earliest candidate. Nothing is known of candidates that are in none.
        disagreements: Some calls that tell clusters apart.
        calls: How many calls all of them were asked.
        reason: One line for people: which cluster is preferred, and why.
    """

    clusters: tuple[tuple[str, ...], ...]
    disagreements: tuple[AnswerDifference, ...]
    calls: int
    reason: str

    @property
    def preferred(self) -> str | None:
        """The first candidate of the largest cluster, where there is one."""
        return self.clusters[0][0] if self.clusters else None


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
) -> Comparison:
    """Ask candidates that pass the same checks what they answer to inputs near those of the checks.

    Args:
        candidates: Different ones, the likeliest first.
        suite: The suite that judged them.
        hints: Checks that are not trusted: their calls are inputs too, what they expect is not looked at.
        drawn: Hash of a candidate -> how often it was written: it counts so many times; once where absent.
        limits: The most it may use.
        seed: Seed of the random changes that make inputs.

    Raises:
        SandboxError: The wall failed.
    """
    limits = limits or ComparisonLimits()
    chosen = {candidate.hash: candidate for candidate in candidates[: limits.candidates]}
    if len(chosen) < 2:
        return _not_compared("there is no second candidate")
    near = generate_questions(suite.task, hints, limits.inputs, seed)
    edges = edge_questions(suite.task, hints, limits.edges)
    answers: dict[str, list[_Answer | None]] = {name: [] for name in chosen}
    wall_s = min(limits.call_s, suite.settings.check_timeout_s)
    gate = asyncio.Semaphore(limits.at_once)

    async def ask(name: str, batch: Sequence[str]) -> None:
        if not _is_late(answers[name]):
            async with gate:
                results = await run_programs(chosen[name], suite, [_program(call) for call in batch], wall_s)
            answers[name] += map(_answer_of, results)

    async def ask_all(questions: Sequence[str]) -> None:
        for batch in _batches(questions):
            ended = await asyncio.gather(*(ask(name, batch) for name in chosen), return_exceptions=True)
            for fault in filter(None, ended):
                raise fault

    questions = near
    try:
        async with asyncio.timeout(limits.seconds):
            await ask_all(near)
            if len(_compared(near, answers, {}).clusters) < 2:
                questions = (*near, *edges)
                await ask_all(edges)
    except TimeoutError:
        pass  # what everyone was asked until then is compared
    return _compared(questions, answers, drawn or {})


def _batches(questions: Sequence[str]) -> Iterator[Sequence[str]]:
    yield questions[:FIRST_BATCH]
    for first in range(FIRST_BATCH, len(questions), BATCH):
        yield questions[first : first + BATCH]


def _program(call: str) -> str:
    name, _, arguments = call.partition("(")
    given = f"({arguments.removesuffix(')')},)" if arguments != ")" else "()"
    return f"__suture_given__ = {given}\n{ANSWER_NAME} = ({name}(*__suture_given__), __suture_given__)\n"


def _answer_of(result: ProgramOutcome) -> _Answer | None:
    if result.digest:
        return _Answer(key=result.digest[0], shown=result.digest[1])
    if result.live_reason:
        return None
    if result.status == "timeout":
        return _Answer(key=LATE, shown=LATE)
    fault = str(result.fact.get("exception", "")).partition(":")[0]
    return _Answer(key=f"! {fault}", shown=f"raises {fault}")


def _compared(
    questions: Sequence[str], answers: Mapping[str, Sequence[_Answer | None]], drawn: Mapping[str, int]
) -> Comparison:
    late = [name for name, given in answers.items() if _is_late(given)]
    in_time = {name: given for name, given in answers.items() if name not in late}
    asked = min((len(given) for given in in_time.values()), default=0)
    usable = [n for n in range(asked) if all(given[n] is not None for given in in_time.values())]
    if not usable:
        why = "no other call is known" if not questions else "no call could be compared"
        return _not_compared(why)
    order = list(answers)
    groups: dict[tuple[str, ...], list[str]] = {}
    for name, given in in_time.items():
        groups.setdefault(tuple(a.key for n in usable if (a := given[n]) is not None), []).append(name)
    clusters = [*map(tuple, groups.values()), *((name,) for name in late)]

    def voices(names: Sequence[str]) -> int:
        return sum(max(1, drawn.get(name, 1)) for name in names)

    clusters.sort(key=lambda names: (-voices(names), names[0] in late, order.index(names[0])))
    return Comparison(
        clusters=tuple(clusters),
        disagreements=tuple(_disagreements(questions, usable, in_time))[:MOST_SHOWN],
        calls=len(usable),
        reason=_reason([voices(names) for names in clusters], len(usable), len(late)),
    )


def _not_compared(why: str) -> Comparison:
    return Comparison(clusters=(), disagreements=(), calls=0, reason=f"not compared: {why}")


def _is_late(given: Sequence[_Answer | None]) -> bool:
    return sum(answer is not None and answer.key == LATE for answer in given) >= MOST_LATE


def _disagreements(
    questions: Sequence[str], usable: Sequence[int], in_time: Mapping[str, Sequence[_Answer | None]]
) -> Iterator[AnswerDifference]:
    for n in usable:
        answers = {name: answer for name, given in in_time.items() if (answer := given[n]) is not None}
        if len({answer.key for answer in answers.values()}) > 1:
            yield AnswerDifference(
                call=questions[n], answers={name: answer.shown for name, answer in answers.items()}
            )


def _reason(sizes: Sequence[int], calls: int, late: int) -> str:
    total, largest = sum(sizes), sizes[0]
    slow = f"; {late} did not end in time on several" if late else ""
    if largest == total:
        return f"all {total} candidates answer {calls} further calls alike"
    if len(sizes) > 1 and sizes[1] == largest:
        return f"no majority: {total} candidates answer {calls} further calls in {len(sizes)} ways{slow}"
    return f"{largest} of {total} candidates answer {calls} further calls alike{slow}"
