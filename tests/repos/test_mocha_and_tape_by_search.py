"""Trials with Mocha and tape, whose commands are judged by exit status, load the runner once."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from project_files import write_files
from repos.runner_trials import install_package, make_proposals, open_trials
from requirements import Require
from suture.judge.trials.drivers.driver_protocol import DRIVERS_BY_RUNNER, find_driver
from suture.judge.trials.drivers.whole_runners import find_unreported, matching_files
from suture.mutation import apply_edits
from suture.sandbox import BubblewrapSandbox

CODE = """\
exports.most = (items) => {
  let best = items[0];
  for (const item of items) {
    if (item < best) best = item;
  }
  return best;
};
exports.twice = (n) => n * 2;
"""
MOCHA = """\
const assert = require('assert');
const { most, twice } = require('../src/most');
describe('most', () => {
  it('of three', () => assert.strictEqual(most([1, 3, 2]), 3));
  it('of one', () => assert.strictEqual(most([7]), 7));
});
it('twice', () => assert.strictEqual(twice(2), 4));
"""
TAPE = """\
const test = require('tape');
const { most, twice } = require('../src/most');
test('of three', (t) => { t.equal(most([1, 3, 2]), 3); t.end(); });
test('of one', (t) => { t.plan(1); t.equal(most([7]), 7); });
test('twice', async (t) => { t.equal(twice(2), 4); });
"""


@pytest.mark.heavy
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("program", "package", "tests"),
    [("mocha", "mocha@10.8.2", MOCHA), ("tape", "tape@5.7.5", TAPE)],
    ids=["mocha", "tape"],
)
async def test_trials_see_the_tests_of_an_unreported_command(
    program: str, package: str, tests: str, sandbox: BubblewrapSandbox, require: Require, tmp_path: Path
) -> None:
    require("npm", shutil.which("npm") is not None, "it is not on PATH")
    manifest = json.dumps({"name": "most", "scripts": {"test": f"{program} 'test/*.test.js'"}})
    files = {"package.json": manifest, "src/most.js": CODE, "test/most.test.js": tests}
    write_files(tmp_path, files)
    require(program, install_package(tmp_path, package), "npm could not fetch it")
    trials, outcomes = await open_trials(tmp_path, sandbox, "src/most.js", CODE)
    assert [(outcome.status, outcome.evidence) for outcome in outcomes] == [("failed", "exit_status")]

    spectrum = await trials.run_baseline(60.0)
    assert [name.rpartition(" ")[2] for name in spectrum.target_tests] == ["three"]
    assert spectrum.disagreements == ()
    lines = {
        run.id.rpartition("::")[2].rpartition(" > ")[2]: run.lines["src/most.js"] for run in spectrum.tests
    }
    assert 4 in lines["of three"]
    assert 4 not in lines["twice"]

    repaired = CODE.replace("item < best", "item > best")
    candidates = [
        # This candidate would break the ones after it in the same process.
        CODE.replace("let best", "Array.prototype.at = null; let best"),
        CODE.replace("item < best", "true"),
        repaired.replace("n * 2", "n * 3"),
        CODE.replace("return best", "while (true) best = 0; return best"),
        repaired,
    ]
    reports = await trials.run_batch(make_proposals("src/most.js", CODE, candidates), 60.0)
    assert len(reports) == len(candidates)
    plausible = [proposal for proposal, trial in reports if trial is not None and trial.is_plausible]
    assert [apply_edits(CODE, proposal.edits) for proposal in plausible] == [repaired]


@pytest.mark.parametrize(
    ("line", "runner"),
    [
        ("mocha tests/*.js", "mocha"),
        ("npx tape 'test/**/*.js'", "tape"),
        ("NODE_ENV=x mocha --recursive spec", "mocha"),
        ("mocha --parallel", ""),
        ("tape -r ./setup test.js", ""),
        ("eslint . && mocha", ""),
        ("nyc mocha", ""),
        ("node test.js", ""),
    ],
)
def test_the_runner_of_a_command_line_is_recognised(line: str, runner: str) -> None:
    assert find_unreported([line]) == runner


def test_the_executed_script_determines_the_runner() -> None:
    scripts = {"test": "c8 npm run test:unit", "test:unit": "tape 'test/*.js'"}
    files = {"package.json": json.dumps({"scripts": scripts}).encode()}
    assert find_driver(("npm", "run", "test:unit"), files, "javascript") is DRIVERS_BY_RUNNER["tape"]


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        (["test/**/*.js"], ["test/a.js", "test/in/b.js"]),
        (["./test/*.js"], ["test/a.js"]),
        (["test/?.js", "index.js"], ["index.js", "test/a.js"]),
        (["test/a+js"], []),
    ],
)
def test_a_pattern_matches_files_like_the_runner(patterns: Sequence[str], expected: list[str]) -> None:
    assert matching_files(patterns, ["index.js", "test/a.js", "test/in/b.js", "test/a.ts"]) == expected
