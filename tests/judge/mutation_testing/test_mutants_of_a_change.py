"""Mutants are drawn by a rule, without keeping anybody waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

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
"""A reply of a thousand lines that say nothing special."""
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
ELSEWHERE: list[tuple[Language, str, str]] = [
    ("javascript", "lib/shop.js", JAVASCRIPT),
    ("typescript", "src/shop.ts", JAVASCRIPT.replace("exports.total = function (", "export function total(")),
    ("go", "shop.go", GO),
]


async def never(files: Mapping[str, str]) -> bool:
    return False


async def always(files: Mapping[str, str]) -> bool:
    return True


async def test_a_long_reply_does_not_keep_the_event_loop_from_turning() -> None:
    after = {"m.py": ORDINARY.encode()}
    statements = find_touched_by_file({}, after)
    assert len(ORDINARY.split("\n")) > 1_000
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(others())
    draw = await select_mutants(after, statements, "python")
    beside.cancel()
    assert turns > 20
    assert SELECTED_MUTANTS == len(draw.mutants) < draw.generated <= MAX_GENERATED_MUTANTS


async def test_the_time_limit_holds_while_mutants_are_made() -> None:
    after = {"m.py": ORDINARY.encode()}
    found = await measure_mutation_score(
        after,
        find_touched_by_file({}, after),
        always,
        max_mutants=SELECTED_MUTANTS,
        timeout_s=0.01,
        language="python",
    )
    assert (found.selected, found.mutants, found.min_score) == (None, (), 0.0)
    assert found.unmeasured == "no_time"


async def test_the_same_change_has_the_same_mutants_and_each_is_one_small_change() -> None:
    after = {"m.py": ORDINARY.encode(), "n.py": SMALL.encode()}
    one, two = [await select_mutants(after, find_touched_by_file({}, after), "python") for _ in range(2)]
    assert one == two
    assert len({mutant.diff for mutant in one.mutants}) == SELECTED_MUTANTS
    for mutant in one.mutants:
        assert 1 <= sum(line.startswith("+") for line in mutant.diff.split("\n")[4:]) <= 2


async def test_what_was_not_run_counts_as_not_noticed() -> None:
    after = {"m.py": ORDINARY.encode()}
    spots = find_touched_by_file({}, after)
    found = await measure_mutation_score(after, spots, always, max_mutants=3, timeout_s=60, language="python")
    assert (len(found.mutants), found.selected, found.min_score) == (
        3,
        SELECTED_MUTANTS,
        3 / SELECTED_MUTANTS,
    )
    assert found.unmeasured == "mutant_limit"
    whole = await measure_mutation_score(
        after, spots, always, max_mutants=1_000, timeout_s=60, language="python"
    )
    assert (len(whole.mutants), whole.min_score, whole.unmeasured) == (SELECTED_MUTANTS, 1.0, None)
    none = await measure_mutation_score(after, spots, never, max_mutants=0, timeout_s=60, language="python")
    assert (none.selected, none.mutants, none.min_score) == (SELECTED_MUTANTS, (), 0.0)


async def test_where_there_is_nothing_to_change_nothing_is_held_against_it() -> None:
    after = {"README.md": b"x\n"}
    found = await measure_mutation_score(
        after,
        find_touched_by_file({}, after),
        never,
        max_mutants=SELECTED_MUTANTS,
        timeout_s=60,
        language="python",
    )
    assert (found.selected, found.min_score) == (0, None)
    assert found.unmeasured


async def test_a_huge_file_is_not_looked_at() -> None:
    after = {"m.py": b"x = [\n" + b"    1,\n" * 200_000 + b"]\n"}
    assert find_touched_by_file({}, after) == {}


@pytest.mark.parametrize(("language", "path", "text"), ELSEWHERE)
async def test_other_languages_have_mutants_of_their_changed_lines_by_the_same_rule(
    language: Language, path: str, text: str
) -> None:
    before = {path: text.replace("sum >= 100", "sum > 100").encode()}
    after = {path: text.encode(), "notes.md": b"sum >= 100\n"}
    spots = find_mutable_lines(before, after, language)
    line = next(n for n, own in enumerate(text.split("\n"), 1) if "sum >= 100" in own)
    assert spots == {path: (range(line, line + 1),)}
    one, two = [await select_mutants(after, spots, language) for _ in range(2)]
    assert one == two
    assert min(SELECTED_MUTANTS, one.generated) == len(one.mutants) > 4
    assert {mutant.line for mutant in one.mutants} == {line}
    for mutant in one.mutants:
        changed = apply_diff({path: after[path]}, mutant.diff)[path]
        assert changed != after[path]
        assert is_parsable_mutant(path, changed.decode(), language)


@pytest.mark.parametrize(("language", "path", "text"), ELSEWHERE)
async def test_what_cannot_be_read_has_no_mutants_and_says_so(
    language: Language, path: str, text: str
) -> None:
    after = {path: text.replace("(prices", "((prices").encode()}
    found = await measure_mutation_score(
        after,
        find_mutable_lines({}, after, language),
        never,
        max_mutants=SELECTED_MUTANTS,
        timeout_s=60,
        language=language,
    )
    assert (found.selected, found.min_score) == (0, None)
    assert found.unmeasured in ("no_changed_code", "unsupported_language")


def test_a_compiler_is_not_asked_for_what_it_refuses() -> None:
    lines = range(1, GO.count("\n") + 1)
    made = list(generate_file_mutants("shop.go", GO, lines, "go"))
    assert {mutant.operator for mutant in made} <= {*COMPILABLE_OPERATORS}
    assert any(mutant.operator == "delete_statement" for mutant in made)
    assert all("\n\treturn" in apply_edits(GO, mutant.edits) for mutant in made)
    freely = list(generate_file_mutants("shop.js", JAVASCRIPT, lines, "javascript"))
    assert any("return" not in apply_edits(JAVASCRIPT, mutant.edits) for mutant in freely)
