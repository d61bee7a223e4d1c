"""Trials with Jest and Vitest load the runner once for many candidates."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from project_files import write_files
from repos.runner_trials import install_package, make_proposals, open_trials
from requirements import Require
from suture.judge.trials.drivers.driver_protocol import find_driver
from suture.judge.trials.drivers.whole_runners import parse_start
from suture.mutation import apply_edits
from suture.sandbox import BubblewrapSandbox

pytestmark = pytest.mark.heavy

CODE = """\
EXPORT function merge(ranges) {
  const sorted = [...ranges].sort((a, b) => a[0] - b[0]);
  const out = [];
  for (const range of sorted) {
    const last = out[out.length - 1];
    if (last && range[0] > last[1]) {
      last[1] = Math.max(last[1], range[1]);
    } else {
      out.push([...range]);
    }
  }
  return out;
}
EXPORT const MOST = 9;
"""
TESTS = """\
describe('merge', () => {
  it('joins where end > start', () => expect(merge([[1, 3], [2, 6]])).toEqual([[1, 6]]));
  it('joins what touches', () => expect(merge([[1, 2], [2, 3]])).toEqual([[1, 3]]));
  it('leaves what is apart', () => expect(merge([[5, 6], [1, 2]])).toEqual([[1, 2], [5, 6]]));
});
test('nothing', () => expect(merge([])).toEqual([]));
"""
MOST_TEST = "test('most', () => expect(MOST).toBe(9));\n"
TWICE_TEST = "test('other', () => expect(twice(2)).toBe(4));\n"
JEST = {
    "src/merge.js": CODE.replace("EXPORT ", "") + "module.exports = { merge, MOST };\n",
    "src/twice.js": "exports.twice = (n) => n * 2;\n",
    "test/merge.test.js": "const { merge } = require('../src/merge');\n" + TESTS,
    "test/most.test.js": "const { MOST } = require('../src/merge');\n" + MOST_TEST,
    "test/twice.test.js": "const { twice } = require('../src/twice');\n" + TWICE_TEST,
}
VITEST_HEAD = "import { describe, expect, it, test } from 'vitest';\n"
VITEST = {
    "src/merge.ts": CODE.replace("EXPORT", "export").replace("(ranges)", "(ranges: number[][]): number[][]"),
    "src/twice.ts": "export const twice = (n: number): number => n * 2;\n",
    "test/merge.test.ts": VITEST_HEAD + "import { merge } from '../src/merge';\n" + TESTS,
    "test/most.test.ts": VITEST_HEAD + "import { MOST } from '../src/merge';\n" + MOST_TEST,
    "test/twice.test.ts": VITEST_HEAD + "import { twice } from '../src/twice';\n" + TWICE_TEST,
}


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("program", "package", "command", "files"),
    [("jest", "jest@29", "jest", JEST), ("vitest", "vitest@3", "vitest run", VITEST)],
    ids=["jest", "vitest"],
)
async def test_many_candidates_are_tried_in_one_process(
    program: str,
    package: str,
    command: str,
    files: dict[str, str],
    sandbox: BubblewrapSandbox,
    require: Require,
    tmp_path: Path,
) -> None:
    require("npm", shutil.which("npm") is not None, "it is not on PATH")
    manifest = json.dumps({"name": "ranges", "type": "commonjs", "scripts": {"test": command}})
    write_files(tmp_path, {"package.json": manifest, **files})
    is_installed = install_package(tmp_path, package)
    require("jest", program != "jest" or is_installed, "npm could not fetch it")
    require("vitest", program != "vitest" or is_installed, "npm could not fetch it")
    path = next(name for name in files if name.startswith("src/merge."))
    text = files[path]
    trials, _ = await open_trials(tmp_path, sandbox, path, text)

    spectrum = await trials.run_baseline(60.0)
    assert (spectrum.compared, spectrum.disagreements) == (6, ())
    assert spectrum.traced == (4 if program == "jest" else 5)  # Vitest traces imports as functions
    touching_run = next(run for run in spectrum.tests if run.id.endswith("joins what touches"))
    empty_run = next(run for run in spectrum.tests if run.id.endswith("::nothing"))
    assert {*spectrum.target_tests} >= {touching_run.id}
    # The body of the loop ran in the first test and not in the second one.
    assert {5, 6} <= touching_run.lines[path]
    assert 6 not in empty_run.lines[path]

    wrong, right = "range[0] > last[1]", "range[0] <= last[1]"
    texts = [text.replace(wrong, new) for new in ("range[0] == last[1]", "true", right)]
    texts.insert(2, texts[2].replace("MOST = 9", "MOST = 8"))  # under Jest, no test is traced on that line
    texts.insert(0, text.replace("const out = [];", "const out = []; while (true) out.pop();"))
    reports = await trials.run_batch(make_proposals(path, text, texts), 60.0)
    assert len(reports) == len(texts)
    plausible = [proposal for proposal, trial in reports if trial is not None and trial.is_plausible]
    assert [apply_edits(text, proposal.edits) for proposal in plausible] == [texts[-1]]


@pytest.mark.parametrize(
    ("line", "runner", "arguments"),
    [
        ("jest", "jest", ()),
        ("npx jest --ci --config jest.unit.js test/unit", "jest", ("--config", "jest.unit.js")),
        (
            "node --experimental-vm-modules node_modules/jest/bin/jest.js --env=jsdom",
            "jest",
            ("--env=jsdom",),
        ),
        ("vitest run --coverage.enabled -c x.mts", "vitest", ("-c", "x.mts")),
    ],
)
def test_the_runner_gets_the_arguments_of_the_command_line(
    line: str, runner: str, arguments: Sequence[str]
) -> None:
    start = parse_start([line], runner)
    assert start is not None
    assert start.arguments == arguments
    assert ("--experimental-vm-modules" in start.node_flags) == ("vm-modules" in line)


@pytest.mark.parametrize(
    "script",
    ["tsc && jest", "jest -t adds", "vitest --changed", "cd packages/a && vitest run", "jest $FLAGS"],
)
def test_a_compound_command_has_no_driver(script: str) -> None:
    files = {"package.json": json.dumps({"scripts": {"test": script}}).encode()}
    assert find_driver(("npm", "test"), files, "javascript") is None


def test_the_runner_gets_variables_and_arguments_after_dashes() -> None:
    files = {"package.json": b'{"scripts": {"test": "cross-env TZ=UTC jest"}}'}
    driver = find_driver(("npm", "test", "--", "--env=node"), files, "javascript")
    assert driver is not None
    common = driver.build_common(files, [], ["cross-env TZ=UTC jest --env=node"])
    assert (common["arguments"], common["variables"]["TZ"]) == (("--env=node",), "UTC")
    assert find_driver(("npm", "test", "--", "-t", "adds"), files, "javascript") is None
