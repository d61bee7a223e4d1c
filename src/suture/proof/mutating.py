"""How well tests guard a change: small changes of the touched statements, and whether any test notices."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

from suture.proof.certificate import MutantRun, Mutation
from suture.records import content_hash
from suture.repair import mutants, mutated
from suture.workspace import apply_diff, text_of, unified_diff

__all__ = ["NoticedBy", "measure_mutation", "mutants_of", "replay_mutants"]

NoticedBy = Callable[[Mapping[str, str]], Awaitable[bool]]
"""Whether a test that passes on the result fails on files (path -> text) over the project's own."""

OPERATORS = (
    *("comparison", "boolean", "negation", "returned condition", "arithmetic sign", "off by one", "constant"),
    *("variable", "attribute", "arguments", "returned", "statement goes"),
)
"""Operators that change or remove what is there; those that add code mostly mean the same."""
AT_ONCE = 4
NO_STATEMENT = "no statement of a Python file was changed"
NONE_THERE = "there is no small change of what was changed"
SWITCHED_OFF = "switched off (proof.mutants = 0)"


def mutants_of(after: Mapping[str, bytes], statements: Mapping[str, Sequence[range]]) -> list[MutantRun]:
    """The mutants of touched statements, none of them run yet.

    They are shuffled by their own hashes, so that the first few are a sample that nobody has chosen.

    Args:
        after: The project with the change.
        statements: Path -> touched statements, as lines.
    """
    found = [mutant for path in sorted(statements) for mutant in _mutants(path, after, statements[path])]
    return sorted(found, key=lambda mutant: content_hash([mutant.path, mutant.diff]))


def _mutants(path: str, after: Mapping[str, bytes], statements: Sequence[range]) -> Iterator[MutantRun]:
    source = text_of(after[path])
    lines = {line for spot in statements for line in spot}
    for mutant in mutants(source, lines, operators=OPERATORS, on_fault=lambda fault: None):
        changed = {path: mutated(source, mutant.edits).encode("utf-8", "surrogateescape")}
        diff = unified_diff({path: source.encode("utf-8", "surrogateescape")}, changed)
        yield MutantRun(path=path, line=mutant.line, label=mutant.label, diff=diff, killed=False)


async def measure_mutation(
    after: Mapping[str, bytes],
    statements: Mapping[str, Sequence[range]],
    noticed: NoticedBy,
    *,
    most: int,
    seconds: float,
) -> Mutation:
    """Run mutants of the touched statements.

    Args:
        after: The project with the change.
        statements: Path -> touched statements, as lines.
        noticed: Runs the tests.
        most: The most mutants to run.
        seconds: The most seconds; mutants that were run by then count.
    """
    if not statements:
        return Mutation(unmeasured=NO_STATEMENT)
    if most == 0:
        return Mutation(unmeasured=SWITCHED_OFF)
    there = mutants_of(after, statements)
    if not there:
        return Mutation(unmeasured=NONE_THERE)
    drawn = there[:most]
    done: list[MutantRun] = []
    try:
        async with asyncio.timeout(seconds):
            for start in range(0, len(drawn), AT_ONCE):
                done += await replay_mutants(after, drawn[start : start + AT_ONCE], noticed)
    except TimeoutError:
        pass
    unmeasured = "" if done else "there was no time for it"
    return Mutation(unmeasured=unmeasured, generated=len(there), mutants=tuple(done))


async def replay_mutants(
    after: Mapping[str, bytes], runs: Sequence[MutantRun], noticed: NoticedBy
) -> list[MutantRun]:
    """The same mutants, with what the tests say of them now.

    Raises:
        PatchRefused: A mutant's diff does not fit the result.
    """

    async def one(run: MutantRun) -> MutantRun:
        source = text_of(after[run.path]).encode("utf-8", "surrogateescape")
        changed = apply_diff({run.path: source}, run.diff)
        killed = await noticed({run.path: changed[run.path].decode("utf-8", "surrogateescape")})
        return MutantRun(path=run.path, line=run.line, label=run.label, diff=run.diff, killed=killed)

    answers: list[MutantRun] = []
    for start in range(0, len(runs), AT_ONCE):
        answers += await asyncio.gather(*map(one, runs[start : start + AT_ONCE]))
    return answers
