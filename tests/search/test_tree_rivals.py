"""Rivals of a repair in tree-sitter languages: their locations, the blocks they guard, their outcomes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from failing_projects import make_failing_project
from requirements import Require
from suture.api import HealOptions, heal
from suture.core.ledger import find_run, read_ledger, select_events
from suture.core.ledger.kinds import SearchFinished
from suture.core.records import Language
from suture.core.settings import CertificationSettings, PathSettings, SandboxSettings, Settings
from suture.judge import prepare_suite
from suture.judge.split.call_values import to_call_value, to_python_data
from suture.judge.trials.command_trials import CandidateRunner, TrialReport
from suture.judge.trials.trial_records import Proposal, Trial
from suture.loop.intake.heal_task import build_heal_task
from suture.mutation import Edit, apply_edits
from suture.mutation.tree_sitter.tree_locations import (
    find_tree_block_stops,
    find_tree_location,
    literals_near_edit,
)
from suture.sandbox import BubblewrapSandbox, discover_programs
from suture.search import SearchResult, rank_repairs
from suture.search.languages.tree_adapter import get_adapter
from suture.search.ranking.rivals import count_idle_blocks

CODE = """\
/* Whether somebody of that age pays the whole price.
   >>> pays(65)
   false
   >>> pays(18)
   true
*/
function pays(age) {
  if (age > 18 && age < 65)
    return true;
  return false;
}

module.exports = { pays };
"""
TESTS = """\
const test = require('node:test'), assert = require('node:assert');
const { pays } = require('./pays');
test('young', () => assert.strictEqual(pays(18), true));
test('grown', () => assert.strictEqual(pays(40), true));
test('child', () => assert.strictEqual(pays(9), false));
"""
GO = "package a\n\nfunc f(a int) int {\n\tif a > 1 {\n\t\treturn 2\n\t}\n\treturn 3\n}\n"


def make_proposal(old: str, new: str, score: float) -> Proposal:
    start = CODE.index(old)
    edit = Edit(start=start, end=start + len(old), text=new)
    return Proposal(path="pays.js", edits=(edit,), label=new, score=score, operators=())


def location_text(text: str, at: str, language: Language = "javascript") -> str:
    start = text.index(at)
    path = "a.go" if language == "go" else "a.js"
    place = find_tree_location(language, path, text, [Edit(start=start, end=start + len(at), text="x")])
    assert place is not None
    return text[place.start : place.end]


@pytest.mark.parametrize(
    ("at", "place"),
    [("18 &&", "if (age > 18 && age < 65)\n    "), ("return true", "return true;"), ("= { pays", "module")],
)
def test_a_location_is_a_statement_without_its_blocks(at: str, place: str) -> None:
    assert location_text(CODE, at).startswith(place)
    assert "return false" not in location_text(CODE, at)


def test_a_change_of_two_statements_has_no_location() -> None:
    edits = [*make_proposal("18 &&", "17 &&", 1).edits, *make_proposal("false;", "true;", 1).edits]
    assert find_tree_location("javascript", "a.js", CODE, edits) is None


def test_guarded_blocks_and_the_code_after_them_can_be_stopped() -> None:
    inner, following = find_tree_block_stops("javascript", "a.js", CODE, CODE.index("if (age"))
    assert "{ throw 0; return true; }" in apply_edits(CODE, inner)
    assert "throw 0; return false;" in apply_edits(CODE, following)

    inner, following = find_tree_block_stops("go", "a.go", GO, GO.index("if a"))
    assert "{ panic(0);" in apply_edits(GO, inner)
    assert "panic(0); return 3" in apply_edits(GO, following)

    nested = "if (a) { b(); } else if (c) { d(); } else { e(); }"
    assert len(find_tree_block_stops("javascript", "a.js", nested, 0)) == 1


def test_literals_near_an_edit_are_collected() -> None:
    assert literals_near_edit("javascript", "a.js", CODE, make_proposal("18 &&", "17 &&", 1).edits) == [
        "18",
        "65",
        "17",
    ]


def test_plain_data_survives_the_conversion() -> None:
    value = [1, -2.5, "a", None, True, {"k": [1]}, datetime(2024, 2, 29, 23, 59, 59, 250_000, tzinfo=UTC)]
    assert to_python_data(to_call_value(value)) == value
    assert to_call_value(float("inf")) == ["number", "Infinity"]
    with pytest.raises(ValueError, match="undefined"):
        to_python_data(["undefined"])
    for date in (["number", "NaN"], 10**18):
        with pytest.raises(ValueError, match="date"):
            to_python_data(["date", date])


class ReachedBlocks(CandidateRunner):
    """A runner of a suite in which everybody is over 18, so that no test reaches `return false`."""

    max_rivals = 2

    async def run_batch(
        self, proposals: Sequence[Proposal], timeout_s: float, extra_cpu_s: float = 0.0
    ) -> list[TrialReport]:
        texts = [apply_edits(CODE, proposal.edits) for proposal in proposals]
        passes = ["throw 0; return false" in text and "> 18" in text for text in texts]
        return [
            (proposal, Trial(passing=1, failing=0, broken=0, is_plausible=passed, timed_out=False))
            for proposal, passed in zip(proposals, passes, strict=True)
        ]


async def test_a_repair_whose_guarded_block_no_test_runs_is_less_likely() -> None:
    repairs = [make_proposal("> 18", ">= 18", 1.0), make_proposal("age < 65", "age", 0.5)]
    adapter = get_adapter("javascript")

    counts = await count_idle_blocks(repairs, {"pays.js": CODE}, ReachedBlocks(), adapter, 60.0)

    assert [counts[proposal.path, proposal.edits] for proposal in repairs] == [0, 1]


async def rank_for_labels(
    folder: Path, sandbox: BubblewrapSandbox, *proposals: Proposal
) -> tuple[list[tuple[str, tuple[str, ...], tuple[str, ...]]], str]:
    (folder / "pays.js").write_text(CODE)
    (folder / "pays.test.js").write_text(TESTS)
    task, _ = build_heal_task(folder, test="node --test")
    suite = await prepare_suite(
        task, sandbox, SandboxSettings(), discover_programs(None, os.environ, "javascript")
    )
    assert suite.command is not None
    result = SearchResult(texts={"pays.js": CODE}, plausible=list(proposals))
    project = make_failing_project(suite.command, suite.task.files, result.texts)
    ranked = await rank_repairs(result, project, seconds=60)
    summaries = [(repair.proposal.label, repair.equivalents, repair.rivals) for repair in ranked.repairs]
    return summaries, ranked.difference.call if ranked.difference is not None else ""


async def test_the_repair_that_keeps_a_comments_examples_is_preferred(
    tmp_path: Path, sandbox: BubblewrapSandbox, require: Require
) -> None:
    """`age < 65` becoming `age` passes too, and returns true at 65."""
    require("node", shutil.which("node") is not None, "it is not on PATH")
    wrong, right = (
        make_proposal("age > 18 && age < 65", "age >= 18", 1.0),
        make_proposal("> 18", ">= 18", 0.5),
    )

    summaries, call = await rank_for_labels(tmp_path, sandbox, wrong, right)

    assert [label for label, _, _ in summaries] == [">= 18", "age >= 18"]
    assert summaries[0][2] == ("age >= 18",)
    assert call.startswith("pays(")


async def test_repairs_with_equal_observable_outcomes_are_grouped(
    tmp_path: Path, sandbox: BubblewrapSandbox, require: Require
) -> None:
    require("node", shutil.which("node") is not None, "it is not on PATH")
    one, other = make_proposal("> 18", ">= 18", 1.0), make_proposal("age > 18", "!(age < 18)", 0.5)
    summaries, call = await rank_for_labels(tmp_path, sandbox, one, other)
    assert summaries == [(">= 18", ("!(age < 18)",), ())]
    assert call == ""


async def test_a_run_reports_the_distinguishing_input(
    tmp_path: Path, sandbox: BubblewrapSandbox, require: Require
) -> None:
    require("node", shutil.which("node") is not None, "it is not on PATH")
    project = tmp_path / "project"
    project.mkdir()
    (project / "pays.js").write_text(CODE)
    (project / "pays.test.js").write_text(TESTS)
    settings = Settings.model_validate({"model": {"name": "none"}}).model_copy(
        update={
            "paths": PathSettings(home=tmp_path / "home", cache=tmp_path / "no-weights"),
            "certification": CertificationSettings(seconds=20, mutants=2),
        }
    )
    result = await heal(project, HealOptions(test="node --test", settings=settings, sandbox=sandbox))
    assert result.outcome == "healed"

    assert result.candidate is not None
    events = read_ledger(find_run(settings.paths.home, result.run_id).ledger_path).events
    (finished,) = [event for _, event in select_events(events, SearchFinished)]
    assert finished.plausible_count > 1
    assert finished.distinguishing_input is not None
    assert finished.distinguishing_input.call.startswith("pays(")
