"""Repairs in other languages, the likeliest first: Python's signs, read from another syntax tree."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from suture.checks.command.test_command import TestCommand
from suture.languages import LANGUAGES
from suture.records import Language
from suture.repair.other_languages.comparing.asking import ask, shown_answer
from suture.repair.other_languages.gaming import tree_literals, tree_warnings
from suture.repair.ranking import COMPARE_S, MOST_COMPARED, Difference, difference_of, told_apart
from suture.repair.scoring import Reading, Repair, score_repairs
from suture.repair.search_result import Findings

COMPILED_S = 30.0
"""As `COMPARE_S`, where each repair is compiled first."""


async def rank_elsewhere(
    found: Findings,
    command: TestCommand,
    files: Mapping[str, bytes],
    tests: Mapping[str, str],
    language: Language,
    *,
    seed: int = 0,
    seconds: float = COMPILED_S,
) -> tuple[tuple[Repair, ...], Difference | None]:
    """As `rank_repairs`.

    Args:
        found: What a search found.
        command: The command that it was found with.
        files: The project.
        tests: Path -> text of the tests.
        language: What the project is written in.
        seed: Of the inputs that are tried.
        seconds: Wall-clock seconds that running them may take; never more than a few.

    Raises:
        SandboxError: The wall failed.
    """
    proposals = found.plausible[:MOST_COMPARED]
    if not proposals:
        return (), None
    driver = LANGUAGES[language].calls
    most_s = COMPILED_S if driver is not None and driver.compiles else COMPARE_S
    asked = await ask(
        *(proposals, found, files, tests, command, language), seed=seed, seconds=min(seconds, most_s)
    )
    literals = tree_literals(tests.items(), language)
    reading = Reading(
        warnings=lambda path, before, after: tree_warnings(before, after, path, language, literals),
        distance=lambda path, before, edits, after: 1.0,
    )
    distinct = told_apart(await score_repairs(found, proposals, asked, reading), {})
    difference = difference_of(distinct, asked.calls, partial(shown_answer, language))
    return tuple(repair for repair, _ in distinct), difference
