"""How well tests guard a change: small changes of the touched statements, and whether any test notices.

A mutant's run has a limit that follows from how long the suite took: of changed code much never ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from suture.core.records import Candidate, Language, Verdict, content_hash
from suture.judge import Suite, check_candidate
from suture.judge.certificates.certificate import MutantRun, Mutation
from suture.judge.mutation_testing.mutant_generation import (
    generate_file_mutants,
    is_parsable_mutant,
    why_no_mutants,
)
from suture.mutation import Mutant, apply_edits
from suture.project.languages import LANGUAGES
from suture.project.workspace import apply_diff, overlay_candidate, text_of, unified_diff

MutantDetector = Callable[[Mapping[str, str]], Awaitable[bool]]
"""Whether a test that passes on the result fails on files (path -> text) over the project's own."""

AT_ONCE = 4
"""Mutants in one round: the time is looked at after each, so a larger one overshoots it further."""
DRAWN = 12
"""Mutants to run, where there are as many. A rule and no setting: who could choose how many could choose the
flattering number."""
MOST_STATEMENTS = 40
MOST_MUTANTS = 4_000
"""The most of both that mutants are drawn from; of a long change there are hundreds of thousands."""
GIVE_WAY = 16
"""Mutants that are made in one go, a few milliseconds, before others get their turn."""
LEAST_WALL_S = 10.0
"""Seconds for a mutant's run at least, however short the suite's own run was."""
TIMES_AS_LONG = 5
"""A mutant's run may take so many times as long as the suite did."""
NONE_THERE = "there is no small change of what was changed"
SWITCHED_OFF = "switched off (proof.mutants = 0)"
NO_TIME = "there was no time for it"


@dataclass(frozen=True, kw_only=True)
class MutantSelection:
    """Mutants of a change, none of them run yet: how many there are to draw from, and those to run."""

    generated: int
    mutants: tuple[MutantRun, ...]


async def select_mutants(
    after: Mapping[str, bytes], statements: Mapping[str, Sequence[range]], language: Language
) -> MutantSelection:
    """The mutants of touched statements that are to be run: they follow from the change alone.

    Statements and mutants are put in the order of their own hashes, so that the first few are a sample that
    nobody has chosen. Only those of the draw are written out as diffs.

    Args:
        after: The project with the change.
        statements: Path -> touched statements, as lines; `find_mutable_lines` finds them.
        language: What the project is written in.
    """
    pool: dict[str, tuple[str, Mutant]] = {}
    for path, lines in sorted(_drawn_lines(after, statements).items()):
        source = text_of(after[path])
        for mutant in generate_file_mutants(path, source, lines, language):
            if len(pool) >= MOST_MUTANTS:
                break
            edits = [[edit.start, edit.end, edit.text] for edit in mutant.edits]
            pool.setdefault(content_hash([path, edits]), (path, mutant))
            if len(pool) % GIVE_WAY == 0:
                await asyncio.sleep(0)
    fitting = (pool[key] for key in sorted(pool) if _can_be_read(*pool[key], after, language))
    drawn = tuple(_written_out(path, mutant, after) for path, mutant in islice(fitting, DRAWN))
    return MutantSelection(generated=len(pool), mutants=drawn)


def _can_be_read(path: str, mutant: Mutant, after: Mapping[str, bytes], language: Language) -> bool:
    return is_parsable_mutant(path, apply_edits(text_of(after[path]), mutant.edits), language)


def _drawn_lines(
    after: Mapping[str, bytes], statements: Mapping[str, Sequence[range]]
) -> dict[str, frozenset[int]]:
    """Path -> lines of the statements that mutants are made of."""
    found: list[tuple[str, str, range]] = []
    for path, spots in statements.items():
        text = text_of(after[path]).split("\n")
        found += [(content_hash([path, text[s.start - 1 : s.stop - 1], s.start]), path, s) for s in spots]
    lines: dict[str, frozenset[int]] = {}
    for _, path, spot in sorted(found, key=lambda entry: entry[0])[:MOST_STATEMENTS]:
        lines[path] = lines.get(path, frozenset()) | frozenset(spot)
    return lines


def _written_out(path: str, mutant: Mutant, after: Mapping[str, bytes]) -> MutantRun:
    source = text_of(after[path])
    texts = (source, apply_edits(source, mutant.edits))
    old, new = (text.encode("utf-8", "surrogateescape") for text in texts)
    diff = unified_diff({path: old}, {path: new})
    return MutantRun(path=path, line=mutant.line, label=mutant.label, diff=diff, killed=False)


async def measure_mutation_score(
    after: Mapping[str, bytes],
    statements: Mapping[str, Sequence[range]],
    noticed: MutantDetector,
    *,
    most: int,
    seconds: float,
    language: Language,
) -> Mutation:
    """Run mutants of the touched statements.

    Args:
        after: The project with the change.
        statements: Path -> touched statements, as lines.
        noticed: Whether the tests notice files that are changed further.
        most: The most mutants to run.
        seconds: The most seconds; mutants that were run by then count, those that were not as not noticed.
        language: What the project is written in.
    """
    draw: MutantSelection | None = None
    done: list[MutantRun] = []
    try:
        async with asyncio.timeout(seconds):
            draw = await select_mutants(after, statements, language)
            wanted = draw.mutants[:most]
            for start in range(0, len(wanted), AT_ONCE):
                done += await replay_mutants(after, wanted[start : start + AT_ONCE], noticed)
    except TimeoutError:
        pass
    if draw is None:
        return Mutation(unmeasured=NO_TIME)
    count = len(draw.mutants)
    return Mutation(
        unmeasured=_unmeasured("" if statements else why_no_mutants(language), len(done), count, most),
        generated=draw.generated,
        drawn=count,
        mutants=tuple(done),
    )


def _unmeasured(untouched: str, done: int, drawn: int, most: int) -> str:
    if not drawn:
        return untouched or NONE_THERE
    if done == drawn:
        return ""
    if most == 0:
        return SWITCHED_OFF
    why = f"proof.mutants = {most}" if done == most else NO_TIME
    return f"not in full: {done} of {drawn} mutants were run ({why})" if done else why


async def replay_mutants(
    after: Mapping[str, bytes], runs: Sequence[MutantRun], noticed: MutantDetector
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


async def build_mutant_detector(
    suite: Suite, files: Mapping[str, str], verdict: Verdict, fixed: Collection[str] = ()
) -> MutantDetector:
    """Whether a check that passes on some files fails once they are changed further.

    Tests that the change has mended are asked first, since they run it: where one of them notices, the rest
    need not run. Only those that pass without the others count there.

    Args:
        suite: The task's checks, ready to run.
        files: The change that passes, path -> text over the project's own.
        verdict: The verdict on those files.
        fixed: Ids of the tests that it has mended.

    Raises:
        SandboxError: The wall failed.
    """
    quick, compiled = _impatient(suite, verdict), LANGUAGES[suite.task.language].compiled
    first: frozenset[str] = frozenset()
    if quick.command is not None and quick.command.is_pytest and fixed:
        first = await _passing(quick, files, fixed)

    async def noticed(more: Mapping[str, str]) -> bool:
        changed = {**files, **more}
        if first and not first <= await _passing(quick, changed, first):
            return True
        again = await check_candidate(Candidate(files=changed, origin="repair"), quick)
        lost = verdict.passed - again.passed
        # What the compiler refuses was noticed by no test: none of them ran.
        return bool(lost - _missing(again) if compiled else lost)

    return noticed


def _impatient(suite: Suite, verdict: Verdict) -> Suite:
    """The same suite with less patience, for changes of which many never end."""
    wall_s = max(LEAST_WALL_S, TIMES_AS_LONG * verdict.wall_s)
    limits = {
        "test_wall_s": min(suite.settings.test_wall_s, wall_s),
        "check_wall_s": min(suite.settings.check_wall_s, wall_s),
    }
    settings = suite.settings.model_copy(update=limits)
    command = suite.command.copy_with_settings(settings) if suite.command is not None else None
    smoke = replace(suite.smoke, settings=settings) if suite.smoke is not None else None
    calls = replace(suite.calls, settings=settings) if suite.calls is not None else None
    # What is changed further was let run, perhaps by a person. A refusal here would count as noticed, and a
    # verification, which has no scan, would see another score.
    return replace(suite, settings=settings, command=command, smoke=smoke, calls=calls, vet=None)


def _missing(verdict: Verdict) -> frozenset[str]:
    return frozenset(outcome.check_id for outcome in verdict.outcomes if outcome.status == "missing")


async def _passing(suite: Suite, files: Mapping[str, str], tests: Collection[str]) -> frozenset[str]:
    """Those of some tests that pass where only they run."""
    assert suite.command is not None
    outcomes = await suite.command.run_selected(overlay_candidate(suite.task.files, files), tests)
    return frozenset(outcome.check_id for outcome in outcomes if outcome.passed)
