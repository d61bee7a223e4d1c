"""Compare candidates that pass the same checks on inputs that no check has.

The idea comes from S* (arXiv 2502.14382). There a model makes the inputs; here they are mutated from those of
the checks.
"""

from __future__ import annotations

import ast
import asyncio
import builtins
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from suture.core.records import Candidate, Check, Task
from suture.judge.differential.input_generation import edge_inputs, is_literal, mutate_inputs, read_arguments
from suture.judge.extraction.prose_examples import extract_examples
from suture.judge.split.answer_digest import ANSWER_NAME
from suture.judge.split.split_runner import ProgramOutcome
from suture.judge.suite import Suite
from suture.judge.tuning import CALL_BATCH, FIRST_CALL_BATCH, MAX_CALL_TIMEOUTS, MAX_SHOWN_DIFFERENCES
from suture.judge.verdicts import run_programs
from suture.project.python_source.parsing import parse_module

ComparisonCode = Literal[
    "single_candidate", "no_known_call", "no_comparable_call", "all_alike", "plurality", "tie"
]
"""What a comparison showed. In a plurality, one cluster is larger than each of the others, even if it is not more
than half; in a tie, the two largest are equal."""
TIMED_OUT = "no answer in time"


@dataclass(frozen=True, kw_only=True)
class ComparisonLimits:
    """Limits of a comparison. The numbers are chosen by judgement and not measured.

    Attributes:
        inputs: Calls near those of the checks, per candidate.
        edges: Calls at the edges of their types, such as zero or an empty list, if the others show no
            difference.
        call_timeout_s: Wall-clock seconds of one call, unless the settings allow less.
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
        answers: Candidate hash -> its answer, as source or as a string.
    """

    call: str
    answers: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class BehaviourComparison:
    """How candidates behave on inputs that no check has.

    Attributes:
        code: What the comparison showed, or why there is none.
        clusters: Hashes of candidates that answer every call alike, the largest cluster first. Of equally
            large clusters, the one with the earliest candidate comes first. Candidates in no cluster were not
            compared.
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


def render_comparison(comparison: BehaviourComparison) -> str:
    """Return what a comparison showed, in one line."""
    total = sum(comparison.sizes)
    largest = comparison.sizes[0] if comparison.sizes else 0
    timed_out = f"; {comparison.timed_out} timed out on several calls" if comparison.timed_out else ""
    texts: dict[ComparisonCode, str] = {
        "single_candidate": "not compared: there is only one candidate",
        "no_known_call": "not compared: no other call is known",
        "no_comparable_call": "not compared: no call could be compared",
        "all_alike": f"all {total} candidates answer {comparison.calls} further calls alike",
        "plurality": f"{largest} of {total} candidates answer {comparison.calls} further calls alike{timed_out}",
        "tie": f"no majority: {total} candidates answer {comparison.calls} further calls in "
        f"{len(comparison.sizes)} ways{timed_out}",
    }
    return texts[comparison.code]


@dataclass(frozen=True, kw_only=True)
class CallAnswer:
    """An answer to one call: a key that is equal for equal answers, and the answer as people read it."""

    key: str
    text: str


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
    compared = {candidate.hash: candidate for candidate in candidates[: limits.candidates]}
    if len(compared) < 2:
        return BehaviourComparison(code="single_candidate")
    near_calls = generate_near_calls(suite.task, hints, limits.inputs, seed)
    edge_calls = generate_edge_calls(suite.task, hints, limits.edges)
    answers: dict[str, list[CallAnswer | None]] = {hash_: [] for hash_ in compared}
    call_timeout_s = min(limits.call_timeout_s, suite.settings.check_timeout_s)
    slots = asyncio.Semaphore(limits.concurrency)

    async def call_candidate(hash_: str, calls: Sequence[str]) -> None:
        if not _has_timed_out(answers[hash_]):
            async with slots:
                programs = [make_call_program(call) for call in calls]
                results = await run_programs(compared[hash_], suite, programs, call_timeout_s)
            answers[hash_] += map(read_answer, results)

    async def call_in_batches(calls: Sequence[str]) -> None:
        for batch in _iter_batches(calls):
            runs = (call_candidate(hash_, batch) for hash_ in compared)
            # All runs of the batch end before the first fault is raised.
            results = await asyncio.gather(*runs, return_exceptions=True)
            for fault in filter(None, results):
                raise fault

    calls = near_calls
    try:
        async with asyncio.timeout(limits.timeout_s):
            await call_in_batches(near_calls)
            if len(_compare_answers(near_calls, answers, {}).clusters) < 2:
                calls = (*near_calls, *edge_calls)
                await call_in_batches(edge_calls)
    except TimeoutError:
        pass  # the calls that all candidates answered until then are compared
    return _compare_answers(calls, answers, drawn or {})


def _iter_batches(calls: Sequence[str]) -> Iterator[Sequence[str]]:
    if calls:
        yield calls[:FIRST_CALL_BATCH]
    for start in range(FIRST_CALL_BATCH, len(calls), CALL_BATCH):
        yield calls[start : start + CALL_BATCH]


def make_call_program(call: str) -> str:
    """Return a program whose answer is the call's value and its arguments, which the call may change."""
    name, _, arguments = call.partition("(")
    values = f"({arguments.removesuffix(')')},)" if arguments != ")" else "()"
    return f"__suture_arguments__ = {values}\n{ANSWER_NAME} = ({name}(*__suture_arguments__), __suture_arguments__)\n"


def read_answer(result: ProgramOutcome) -> CallAnswer | None:
    """Return the answer to a call; `None` if it is not data, so that it cannot be compared."""
    if result.digest:
        return CallAnswer(key=result.digest[0], text=result.digest[1])
    if result.live_reason:  # the answer is a live object: it exists only in the candidate's process
        return None
    if result.status == "timeout":
        return CallAnswer(key=TIMED_OUT, text=TIMED_OUT)
    exception = str(result.fact.get("exception", "")).partition(":")[0]
    return CallAnswer(key=f"! {exception}", text=f"raises {exception}")


def _compare_answers(
    calls: Sequence[str], answers: Mapping[str, Sequence[CallAnswer | None]], drawn: Mapping[str, int]
) -> BehaviourComparison:
    timed_out = [hash_ for hash_, own_answers in answers.items() if _has_timed_out(own_answers)]
    in_time = {hash_: own_answers for hash_, own_answers in answers.items() if hash_ not in timed_out}
    answered = min(map(len, in_time.values()), default=0)
    # Only calls that every candidate answered with data are compared: position -> candidate -> answer.
    comparable: dict[int, dict[str, CallAnswer]] = {}
    for position in range(answered):
        row = {hash_: own_answers[position] for hash_, own_answers in in_time.items()}
        data_answers = {hash_: answer for hash_, answer in row.items() if answer is not None}
        if len(data_answers) == len(row):
            comparable[position] = data_answers
    if not comparable:
        return BehaviourComparison(code="no_comparable_call" if calls else "no_known_call")
    groups: dict[tuple[str, ...], list[str]] = {}
    for hash_ in in_time:
        groups.setdefault(tuple(row[hash_].key for row in comparable.values()), []).append(hash_)
    clusters = [*map(tuple, groups.values()), *((hash_,) for hash_ in timed_out)]
    order = list(answers)

    def size(cluster: Sequence[str]) -> int:
        return sum(max(1, drawn.get(hash_, 1)) for hash_ in cluster)

    clusters.sort(key=lambda cluster: (-size(cluster), cluster[0] in timed_out, order.index(cluster[0])))
    sizes = tuple(size(cluster) for cluster in clusters)
    code: ComparisonCode = "plurality"
    if sizes[0] == sum(sizes):
        code = "all_alike"
    elif sizes[1] == sizes[0]:
        code = "tie"
    disagreements = [
        AnswerDifference(call=calls[position], answers={hash_: answer.text for hash_, answer in row.items()})
        for position, row in comparable.items()
        if len({answer.key for answer in row.values()}) > 1
    ]
    return BehaviourComparison(
        code=code,
        clusters=tuple(clusters),
        sizes=sizes,
        disagreements=tuple(disagreements[:MAX_SHOWN_DIFFERENCES]),
        calls=len(comparable),
        timed_out=len(timed_out),
    )


def _has_timed_out(answers: Sequence[CallAnswer | None]) -> bool:
    return sum(answer is not None and answer.key == TIMED_OUT for answer in answers) >= MAX_CALL_TIMEOUTS


def generate_near_calls(task: Task, hints: Sequence[Check], count: int, seed: int) -> tuple[str, ...]:
    """Return calls of a task's function that no trusted check makes: those of the hints, then mutated ones.

    Args:
        task: The task; its checks and the statement's examples show how the function is called.
        hints: Other checks whose calls may be used.
    """
    by_function, hinted = _find_seeds(task, hints)
    draw = random.Random(seed)
    mutated_calls = [
        render_call(name, repr(arguments))
        for name, texts in by_function.items()
        for arguments in mutate_inputs(read_arguments(texts), count, draw)
    ]
    # Half of the calls at most (by judgement): hints are not trusted, and may call the function wrongly.
    hinted_calls = [render_call(name, arguments) for name, arguments in hinted[: count // 2]]
    return tuple(dict.fromkeys((*hinted_calls, *mutated_calls)))[:count]


def generate_edge_calls(task: Task, hints: Sequence[Check], count: int) -> tuple[str, ...]:
    """Return calls with arguments at the edges of their types; the arguments are as in `generate_near_calls`."""
    by_function, _ = _find_seeds(task, hints)
    return tuple(
        render_call(name, repr(arguments))
        for name, texts in by_function.items()
        for arguments in edge_inputs(read_arguments(texts), count)
    )[:count]


def _find_seeds(task: Task, hints: Sequence[Check]) -> tuple[dict[str, list[str]], list[tuple[str, str]]]:
    """Return (function -> its arguments as source, calls that only the hints make)."""
    trusted = (*task.checks, *extract_examples(task.statement, task.entry_point))
    trusted_calls = dict.fromkeys(iter_literal_calls(trusted, task))
    hinted = [call for call in dict.fromkeys(iter_literal_calls(hints, task)) if call not in trusted_calls]
    by_function: dict[str, list[str]] = {}
    for name, arguments in (*trusted_calls, *hinted):
        by_function.setdefault(name, []).append(arguments)
    return by_function, hinted


def iter_literal_calls(checks: Sequence[Check], task: Task) -> Iterator[tuple[str, str]]:
    """Yield (function, tuple of arguments as source) of each plain call with literal arguments."""
    for check in checks:
        tree = parse_module(check.source)
        for node in ast.walk(tree) if tree is not None else ():
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.keywords:
                continue
            if task.entry_point not in (None, node.func.id) or hasattr(builtins, node.func.id):
                continue
            try:
                arguments = ast.unparse(ast.Tuple(node.args, ast.Load()))
            except RecursionError:
                continue
            if is_literal(arguments):
                yield node.func.id, arguments


def render_call(name: str, arguments: str) -> str:
    """Return the source of a call; `arguments` is the source of a tuple."""
    return f"{name}{arguments.removesuffix(',)')})" if arguments.endswith(",)") else f"{name}{arguments}"
