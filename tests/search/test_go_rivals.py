"""Repairs in Go make the same calls: equal outcomes are grouped, different ones are reported."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from failing_projects import make_failing_project
from requirements import Require
from suture.api import HealOptions, heal
from suture.core.ledger import find_run, read_ledger, select_events
from suture.core.ledger.kinds import DistinguishingInput, SearchFinished
from suture.core.settings import CertificationSettings, PathSettings, SandboxSettings, Settings
from suture.judge import Suite, prepare_suite
from suture.judge.split.call_values import to_call_value, to_python_data
from suture.judge.trials.trial_records import Proposal
from suture.loop.intake.heal_task import build_heal_task
from suture.mutation import Edit
from suture.project.languages import LANGUAGES, CallSite
from suture.sandbox import BubblewrapSandbox, discover_programs
from suture.search import FailingProject, Repair, SearchResult, rank_repairs

PATH = "stats/stats.go"
CODE = """\
package stats

type Series struct{ values []int }

func sum(values []int) int {
	total := 0
	for i := 1; i < len(values); i++ {
		total += values[i]
	}
	return total
}

func count(words map[string]int) []string {
	found := []string{}
	for word, times := range words {
		if times > 1 {
			found = append(found, word)
		}
	}
	return found
}

func (s Series) Sum() int { return sum(s.values) }

func (s Series) Next() int { return s.Sum() + 1 }
"""
TESTS = """\
package stats

import "testing"

func TestSum(t *testing.T) {
	if got := sum([]int{1, 2, 3}); got != 6 {
		t.Fatalf("got %d", got)
	}
}

func TestCount(t *testing.T) {
	if got := count(map[string]int{"a": 3, "b": 1, "c": 2}); len(got) != 2 {
		t.Fatalf("got %v", got)
	}
}

func TestSeries(t *testing.T) {
	if got := (Series{values: []int{1, 2, 3}}).Sum(); got != 6 {
		t.Fatalf("got %d", got)
	}
}
"""


@pytest.fixture(autouse=True)
def require_go(require: Require) -> None:
    require("go", shutil.which("go") is not None, "it is not on PATH")


def write_project(folder: Path, code: str = CODE, tests: str = TESTS) -> Path:
    (folder / "stats").mkdir(parents=True)
    (folder / "go.mod").write_text("module example.org/numbers\n\ngo 1.16\n")
    (folder / PATH).write_text(code)
    (folder / "stats/stats_test.go").write_text(tests)
    return folder


def make_proposal(old: str, new: str, score: float) -> Proposal:
    start = CODE.index(old)
    edit = Edit(start=start, end=start + len(old), text=new)
    return Proposal(path=PATH, edits=(edit,), label=new, score=score, operators=())


def make_go_project(suite: Suite) -> FailingProject:
    assert suite.command is not None
    argv = ("go", "test", "./...")
    return make_failing_project(suite.command, suite.task.files, {PATH: CODE}, argv=argv, language="go")


async def rank_in_go(
    folder: Path, sandbox: BubblewrapSandbox, *proposals: Proposal
) -> tuple[tuple[Repair, ...], DistinguishingInput | None]:
    task, _ = build_heal_task(write_project(folder), test="go test ./...")
    suite = await prepare_suite(task, sandbox, SandboxSettings(), discover_programs(None, os.environ, "go"))
    assert suite.command is not None
    result = SearchResult(texts={PATH: CODE}, plausible=list(proposals))
    ranked = await rank_repairs(result, make_go_project(suite), seconds=60)
    return ranked.repairs, ranked.difference


async def test_repairs_with_different_outcomes_are_rivals(tmp_path: Path, sandbox: BubblewrapSandbox) -> None:
    """Six is twice the length too; an unlikely repair that is known to differ is a rival as well."""
    right, wrong = (
        make_proposal("i := 1", "i := 0", 1.0),
        make_proposal("return total", "return 2*len(values)", 0.01),
    )
    repairs, difference = await rank_in_go(tmp_path / "p", sandbox, right, wrong)

    assert [repair.rivals for repair in repairs] == [("return 2*len(values)",), ("i := 0",)]
    assert difference is not None
    assert difference.call.startswith("sum({")
    assert difference.answer_pair[0] != difference.answer_pair[1]


async def test_repairs_with_equal_outcomes_on_all_calls_are_grouped(
    tmp_path: Path, sandbox: BubblewrapSandbox
) -> None:
    one, other = (
        make_proposal("i := 1", "i := 0", 1.0),
        make_proposal("i := 1", "i := len(values) - len(values)", 0.9),
    )
    (repair,), difference = await rank_in_go(tmp_path / "p", sandbox, one, other)
    assert (repair.equivalents, repair.rivals, difference) == ((other.label,), (), None)


async def test_methods_and_unstable_outcomes_are_not_compared(
    tmp_path: Path, sandbox: BubblewrapSandbox
) -> None:
    """A loop over a map has another order each time, so equal repairs would seem to differ."""
    one, other = make_proposal("times > 1", "times > 0", 1.0), make_proposal("times > 1", "times >= 1", 0.9)
    repairs, difference = await rank_in_go(tmp_path / "map", sandbox, one, other)
    assert [repair.rivals for repair in repairs] == [("times >= 1",), ("times > 0",)]
    assert difference is None

    one, other = (
        make_proposal("s.Sum() + 1", "s.Sum()", 1.0),
        make_proposal("s.Sum() + 1", "2*len(s.values)", 0.1),
    )
    repairs, difference = await rank_in_go(tmp_path / "method", sandbox, one, other)
    assert [repair.rivals for repair in repairs] == [(), ("s.Sum()",)]
    assert difference is None


@pytest.mark.heavy  # each behaviour is compiled on its own
async def test_a_run_in_go_reports_the_distinguishing_input(
    tmp_path: Path, sandbox: BubblewrapSandbox
) -> None:
    project = write_project(tmp_path / "project")
    settings = Settings.model_validate({"model": {"name": "none"}}).model_copy(
        update={
            "paths": PathSettings(home=tmp_path / "home", cache=tmp_path / "no-weights"),
            "certification": CertificationSettings(seconds=20, mutants=2),
        }
    )
    result = await heal(project, HealOptions(test="go test ./...", settings=settings, sandbox=sandbox))
    assert result.outcome == "healed"
    assert result.rivals

    events = read_ledger(find_run(settings.paths.home, result.run_id).ledger_path).events
    (finished,) = [event for _, event in select_events(events, SearchFinished)]
    assert finished.distinguishing_input is not None
    assert finished.distinguishing_input.call.startswith("sum({")


def test_a_map_is_plain_data_for_typed_parameters() -> None:
    value = ["map", [["a", 1], ["b", ["list", [2]]]]]
    assert to_python_data(value, statically_typed=True) == {"a": 1, "b": [2]}
    assert to_call_value({1: "a"}) == ["map", [[1, "a"]]]
    with pytest.raises(ValueError, match="map"):
        to_python_data(value)
    with pytest.raises(ValueError, match="map"):
        to_python_data(["map", [[["list", []], 1]]], statically_typed=True)


async def test_test_files_are_found_though_the_runner_reports_only_packages(
    tmp_path: Path, sandbox: BubblewrapSandbox
) -> None:
    task, _ = build_heal_task(write_project(tmp_path / "p"), test="go test ./...")
    suite = await prepare_suite(task, sandbox, SandboxSettings(), discover_programs(None, os.environ, "go"))
    assert suite.command is not None
    assert make_go_project(suite).test_texts() == {"stats/stats_test.go": TESTS}


def test_a_module_is_compiled_in_its_own_folder() -> None:
    files = {"a b/go.mod": b"module example.org/m\n", "a b/stats/stats.go": CODE.encode()}
    site = CallSite(module="a b/stats/stats.go", name="sum", folder="ours", files=files)
    driver = LANGUAGES["go"].calls
    assert driver is not None
    assert driver.argv(site)[2].startswith("cd './a b/' && go test -c -o /tmp/calls ./stats ")

    written = driver.files(site)
    assert {*written} == {"a b/ours/calls/calls.go", "a b/stats/suture_test.go"}
    assert b'"example.org/m/ours/calls"' in written["a b/stats/suture_test.go"]
