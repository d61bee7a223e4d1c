"""Mutants of a change are drawn by a fixed rule, within limits of time and number."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import pytest

from suture.core.records import Language
from suture.judge.coverage.coverage_run import find_touched_by_file
from suture.judge.mutation_testing.mutant_runs import (
    COMPILABLE_OPERATORS,
    find_mutable_lines,
    generate_file_mutants,
    is_parsable_mutant,
    measure_mutation_score,
    select_mutants,
)
from suture.judge.tuning import MAX_GENERATED_MUTANTS, SELECTED_MUTANTS
from suture.mutation import apply_edits
from suture.project.workspace import apply_diff

ORDINARY = "\n\n".join(
    f"def total_{n}(prices, discount, limit):\n"
    "    result = 0\n"
    "    for place, price in enumerate(prices):\n"
    f"        if price > limit and place != {n}:\n"
    "            result += price - discount\n"
    "    return result"
    for n in range(170)
)
"""A reply of a thousand ordinary lines."""
SMALL = "def cheapest(prices):\n    return max(prices)\n"


JAVASCRIPT = """\
exports.total = function (prices, discount) {
  let sum = 0;
  for (const price of prices) {
    sum += price;
  }
  return sum >= 100 ? sum - discount : sum;
};
"""
GO = """\
package shop

func Total(prices []int, discount int) int {
\tsum := 0
\tfor _, price := range prices {
\t\tsum += price
\t}
\tif sum >= 100 {
\t\treturn sum - discount
\t}
\treturn sum
}
"""
OTHER_LANGUAGES: list[tuple[Language, str, str]] = [
    ("javascript", "lib/shop.js", JAVASCRIPT),
    ("typescript", "src/shop.ts", JAVASCRIPT.replace("exports.total = function (", "export function total(")),
    ("go", "shop.go", GO),
]


async def notice_none(mutants: Sequence[Mapping[str, str]]) -> list[bool]:
    return [False] * len(mutants)


async def notice_all(mutants: Sequence[Mapping[str, str]]) -> list[bool]:
    return [True] * len(mutants)


async def test_a_long_reply_does_not_block_the_event_loop() -> None:
    after = {"m.py": ORDINARY.encode()}
    statements = find_touched_by_file({}, after)
    assert len(ORDINARY.split("\n")) > 1_000

    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count_turns())
    selection = await select_mutants(after, statements, "python")
    counting.cancel()
    assert turns > 20
    assert SELECTED_MUTANTS == len(selection.mutants) < selection.generated <= MAX_GENERATED_MUTANTS


async def test_the_time_limit_holds_while_mutants_are_generated() -> None:
    after = {"m.py": ORDINARY.encode()}
    score = await measure_mutation_score(
        after,
        find_touched_by_file({}, after),
        notice_all,
        max_mutants=SELECTED_MUTANTS,
        timeout_s=0.01,
        language="python",
    )

    assert (score.selected, score.mutants, score.min_score) == (None, (), 0.0)
    assert score.unmeasured == "no_time"


async def test_mutants_are_reproducible_and_each_is_one_small_change() -> None:
    after = {"m.py": ORDINARY.encode(), "n.py": SMALL.encode()}
    first, second = [await select_mutants(after, find_touched_by_file({}, after), "python") for _ in range(2)]
    assert first == second
    assert len({mutant.diff for mutant in first.mutants}) == SELECTED_MUTANTS
    for mutant in first.mutants:
        assert 1 <= sum(line.startswith("+") for line in mutant.diff.split("\n")[4:]) <= 2


async def test_mutants_that_were_not_run_count_as_survivors() -> None:
    after = {"m.py": ORDINARY.encode()}
    lines_by_file = find_touched_by_file({}, after)
    score = await measure_mutation_score(
        after, lines_by_file, notice_all, max_mutants=3, timeout_s=60, language="python"
    )
    assert (len(score.mutants), score.selected, score.min_score) == (
        3,
        SELECTED_MUTANTS,
        3 / SELECTED_MUTANTS,
    )
    assert score.unmeasured == "mutant_limit"

    full_score = await measure_mutation_score(
        after, lines_by_file, notice_all, max_mutants=1_000, timeout_s=60, language="python"
    )
    assert (len(full_score.mutants), full_score.min_score, full_score.unmeasured) == (
        SELECTED_MUTANTS,
        1.0,
        None,
    )

    empty_score = await measure_mutation_score(
        after, lines_by_file, notice_none, max_mutants=0, timeout_s=60, language="python"
    )
    assert (empty_score.selected, empty_score.mutants, empty_score.min_score) == (SELECTED_MUTANTS, (), 0.0)


async def test_a_change_without_mutants_has_no_score() -> None:
    after = {"README.md": b"x\n"}
    score = await measure_mutation_score(
        after,
        find_touched_by_file({}, after),
        notice_none,
        max_mutants=SELECTED_MUTANTS,
        timeout_s=60,
        language="python",
    )

    assert (score.selected, score.min_score) == (0, None)
    assert score.unmeasured


async def test_a_huge_file_is_skipped() -> None:
    after = {"m.py": b"x = [\n" + b"    1,\n" * 200_000 + b"]\n"}
    assert find_touched_by_file({}, after) == {}


@pytest.mark.parametrize(("language", "path", "text"), OTHER_LANGUAGES)
async def test_other_languages_have_mutants_of_changed_lines_only(
    language: Language, path: str, text: str
) -> None:
    before = {path: text.replace("sum >= 100", "sum > 100").encode()}
    after = {path: text.encode(), "notes.md": b"sum >= 100\n"}
    lines_by_file = find_mutable_lines(before, after, language)
    line = next(n for n, text_line in enumerate(text.split("\n"), 1) if "sum >= 100" in text_line)
    assert lines_by_file == {path: (range(line, line + 1),)}

    first, second = [await select_mutants(after, lines_by_file, language) for _ in range(2)]
    assert first == second
    assert min(SELECTED_MUTANTS, first.generated) == len(first.mutants) > 4
    assert {mutant.line for mutant in first.mutants} == {line}

    for mutant in first.mutants:
        changed = apply_diff({path: after[path]}, mutant.diff)[path]
        assert changed != after[path]
        assert is_parsable_mutant(path, changed.decode(), language)


@pytest.mark.parametrize(("language", "path", "text"), OTHER_LANGUAGES)
async def test_an_unparsable_file_has_no_mutants_and_a_reason(
    language: Language, path: str, text: str
) -> None:
    after = {path: text.replace("(prices", "((prices").encode()}
    score = await measure_mutation_score(
        after,
        find_mutable_lines({}, after, language),
        notice_none,
        max_mutants=SELECTED_MUTANTS,
        timeout_s=60,
        language=language,
    )

    assert (score.selected, score.min_score) == (0, None)
    assert score.unmeasured in ("no_changed_code", "unsupported_language")


def test_go_mutants_are_limited_to_those_that_compile() -> None:
    lines = range(1, GO.count("\n") + 1)
    mutants = list(generate_file_mutants("shop.go", GO, lines, "go"))
    assert {mutant.operator for mutant in mutants} <= {*COMPILABLE_OPERATORS}
    assert any(mutant.operator == "delete_statement" for mutant in mutants)
    assert all("\n\treturn" in apply_edits(GO, mutant.edits) for mutant in mutants)

    javascript_mutants = list(generate_file_mutants("shop.js", JAVASCRIPT, lines, "javascript"))
    assert any("return" not in apply_edits(JAVASCRIPT, mutant.edits) for mutant in javascript_mutants)
