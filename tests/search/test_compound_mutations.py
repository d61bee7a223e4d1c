"""Two changes that need each other, in tree-sitter languages."""

from __future__ import annotations

import shutil
from pathlib import Path

from requirements import Require
from suture.api import HealOptions, heal
from suture.core.settings import CertificationSettings, PathSettings, Settings
from suture.judge.trials.trial_records import Proposal, Spectrum, TestLines, TestRun, Trial
from suture.mutation import Edit, apply_edits
from suture.mutation.edits import compose_edits
from suture.search.languages.tree_adapter import get_adapter
from suture.search.ordering.compound_changes import (
    CompoundMutations,
    CompoundQueue,
    combine_pairs,
    shift_scores,
)

CODE = """\
function f(a, b) {
  if (a < b) {
    return a - b;
  }
  return a * b;
}
"""
TWO_FAULTS = """\
function price(age, tickets) {
  let each = 10;
  if (age <= 18) {
    each = 6;
  }
  return each + tickets;
}

module.exports = { price };
"""
TESTS = """\
const test = require('node:test'), assert = require('node:assert');
const { price } = require('./price');
test('of age', () => assert.strictEqual(price(18, 4), 40));
test('grown', () => assert.strictEqual(price(30, 3), 30));
test('one', () => assert.strictEqual(price(40, 1), 10));
test('child', () => assert.strictEqual(price(9, 2), 12));
"""
ONE_TEST = """\
const test = require('node:test'), assert = require('node:assert');
const { price } = require('./price');
test('all', () => {
  assert.strictEqual(price(18, 4), 24);
  assert.strictEqual(price(9, 2), 12);
  assert.strictEqual(price(30, 3), 30);
  assert.strictEqual(price(40, 1), 10);
});
"""


def make_change(old: str, new: str, score: float = 1.0) -> Proposal:
    start = CODE.index(old)
    edit = Edit(start=start, end=start + len(old), text=new)
    return Proposal(path="a.js", edits=(edit,), label=new, score=score, operators=("sign",))


def make_mutations(left_s: float = 60.0) -> CompoundMutations:
    scores = {"a.js": {1: 0.1, 2: 0.9, 3: 0.5, 5: 1.0}}
    return CompoundMutations(
        {"a.js": CODE}, scores, get_adapter("javascript").generate_mutants, 0, lambda: left_s
    )


async def heal_price(tmp_path: Path, code: str, tests: str) -> str:
    """Return the repaired text of `price.js`."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "price.js").write_text(code)
    (project / "price.test.js").write_text(tests)
    settings = Settings.model_validate({"model": {"name": "none"}}).model_copy(
        update={
            "paths": PathSettings(home=tmp_path / "home", cache=tmp_path / "no-weights"),
            "certification": CertificationSettings(seconds=20, mutants=2),
        }
    )
    result = await heal(project, HealOptions(test="node --test", settings=settings))
    assert result.outcome == "healed"

    assert result.candidate is not None
    return result.candidate.files["price.js"]


async def trace_no_lines(proposal: Proposal) -> TestLines:
    return {}


def make_failed_run(name: str, *lines: int) -> TestRun:
    return TestRun(id=name, outcome="failed", seconds=0.0, lines={"a.js": frozenset(lines)})


PARTIAL_TRIAL = Trial(
    passing=1, failing=1, broken=0, is_plausible=False, timed_out=False, now_passing=frozenset({"t::a"})
)
SPECTRUM = Spectrum(
    tests=(make_failed_run("t::a", 2, 3), make_failed_run("t::b", 2, 5)), target_tests=("t::a", "t::b")
)


def test_two_successive_changes_compose_into_one() -> None:
    first = make_change("a < b", "g(ä)").edits
    half = apply_edits(CODE, first)
    at = half.encode().index("ä".encode())
    inner = Edit(start=at, end=at + 2, text="ä, b")
    following = Edit(start=half.encode().index(b"a * b"), end=half.encode().index(b"a * b") + 1, text="b")
    composed = compose_edits(first, (inner, following), CODE)
    assert apply_edits(CODE, composed) == apply_edits(half, (inner, following))
    assert len(composed) == 2

    reverted = Edit(start=CODE.index("a < b"), end=CODE.index("a < b") + 5, text="a < b")
    assert compose_edits(first, (reverted,), CODE) == ()


def test_scores_move_with_their_lines() -> None:
    scores = {2: 0.2, 3: 0.3, 5: 0.5}
    inserted = make_change("    return a - b;\n", "    a += 1;\n    return a - b;\n").edits
    assert shift_scores(scores, inserted, CODE) == {2: 0.2, 3: 0.3, 4: 0.3, 5: 0.3, 6: 0.5}
    deleted = make_change("  if (a < b) {\n    return a - b;\n  }\n", "").edits
    assert shift_scores(scores, deleted, CODE) == {2: 0.5}


async def test_a_second_change_is_sought_where_tests_still_fail() -> None:
    queue, mutations = CompoundQueue(), make_mutations()
    queue.record(make_change("a - b", "a + b"), PARTIAL_TRIAL, {}, 1)
    await queue.extend(SPECTRUM, mutations.texts, trace_no_lines, mutations.extend_start, limit=200)
    proposals = [*iter(queue.pop, None)]
    assert proposals

    texts = [apply_edits(CODE, proposal.edits) for proposal in proposals]
    assert all("a + b" in text or "return a - b" not in text for text in texts)
    assert CODE.replace("a - b", "a + b").replace("a * b", "a / b") in texts

    changed = [[line not in text for line in ("return a + b;", "return a * b;")] for text in texts[:20]]
    fixed_count, failing_count = (sum(column) for column in zip(*changed, strict=True))
    assert fixed_count < failing_count / 4  # lines that only the other test runs are suspected more
    assert CODE not in texts  # because one change may revert the other


def test_pairs_of_likely_changes_come_in_the_order_of_their_scores() -> None:
    singles = [
        make_change("a * b", "a + b", 0.9),
        make_change("a < b", "a <= b", 0.3),
        make_change("a - b", "a", 0.2),
        make_change("a -", "b -", 0.1),  # overlaps the one before it
    ]
    pairs = [(pair.label, apply_edits(CODE, pair.edits)) for pair in combine_pairs(singles)]
    assert [label for label, _ in pairs] == [
        "a + b; a <= b",
        "a + b; a",
        "a + b; b -",
        "a <= b; a",
        "a <= b; b -",
    ]
    assert pairs[0][1] == CODE.replace("a * b", "a + b").replace("a < b", "a <= b")


async def test_two_faults_that_only_one_test_shows_are_repaired(tmp_path: Path, require: Require) -> None:
    """No single change helps the only test, so that no partial repair is extended."""
    require("node", shutil.which("node") is not None, "it is not on PATH")
    text = await heal_price(tmp_path, TWO_FAULTS.replace("each = 6", "each = 5"), ONE_TEST)
    assert "each * tickets" in text
    assert "each = 6" in text


async def test_two_faults_are_repaired_one_after_the_other(tmp_path: Path, require: Require) -> None:
    """The first test fails until both are repaired; the other tests show which change to extend."""
    require("node", shutil.which("node") is not None, "it is not on PATH")
    text = await heal_price(tmp_path, TWO_FAULTS, TESTS)
    assert "each * tickets" in text
    assert "age <= 18" not in text
