"""Repairs in other languages, the likeliest first: Python's signs, read from another syntax tree."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from suture.project.languages import LANGUAGES
from suture.search.failing_project import FailingProject
from suture.search.tree_sitter.call_comparison import compare_repairs, render_answer
from suture.search.tree_sitter.tampering_signs import collect_tree_literals, find_tree_warnings
from suture.search.ranking.repair_scoring import COMPARE_S, MOST_COMPARED, Difference, LanguageReading, Repair, rank_compared
from suture.search.search_result import SearchResult

COMPILED_S = 30.0
"""As `COMPARE_S`, where each repair is compiled first."""


async def rank_tree_repairs(
    found: SearchResult,
    project: FailingProject,
    tests: Mapping[str, str],
    *,
    seed: int = 0,
    seconds: float = COMPILED_S,
) -> tuple[tuple[Repair, ...], Difference | None]:
    """As `rank_repairs`.

    Args:
        found: What a search found.
        project: The project; it was found with its command.
        tests: Path -> text of the tests.
        seed: Of the inputs that are tried.
        seconds: Wall-clock seconds that running them may take; never more than a few.

    Raises:
        SandboxError: The wall failed.
    """
    proposals = found.plausible[:MOST_COMPARED]
    if not proposals:
        return (), None
    language = project.language
    driver = LANGUAGES[language].calls
    most_s = COMPILED_S if driver is not None and driver.compiles else COMPARE_S
    asked = await compare_repairs(proposals, found, project, tests, seed=seed, seconds=min(seconds, most_s))
    literals = collect_tree_literals(tests.items(), language)
    reading = LanguageReading(
        warnings=lambda path, before, after: find_tree_warnings(before, after, path, language, literals),
        distance=lambda path, before, edits, after: 1.0,
    )
    return await rank_compared(found, proposals, asked, reading, partial(render_answer, language))
