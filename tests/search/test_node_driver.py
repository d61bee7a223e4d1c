"""The Node driver: its stand-in for `node:test`, and the isolation of candidates from each other."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from requirements import Require
from suture.judge.trials.drivers.driver_protocol import DRIVERS, DRIVERS_BY_RUNNER
from suture.judge.trials.drivers.node import uses_es_modules

HEAD = "const test = require('node:test'); const say = require('./say');\n"
SAY = "module.exports = (word) => process.emitWarning(word);\n"
PLAN_TESTS = (
    "test('kept', (t) => { t.plan(2); t.assert.ok(say); t.assert.strictEqual(1, 1); });\n"
    "test('too few', (t) => { t.plan(2); t.assert.ok(say); });\n"
    "test('waits', (t) => { t.plan(1, { wait: 500 }); setTimeout(() => t.assert.ok(say), 20); });\n"
    "test('of another version', (t) => { t.later(); });\n"
)
LISTENING_TEST = (
    "test('hears', () => {\n"
    "  const heard = [];\n"
    "  process.on('warning', ({ message }) => {\n"
    "    if (message !== 'first') throw new Error(message);\n"
    "    heard.push(1);\n"
    "  });\n"
    "  say('first');\n"
    "  return new Promise((done) => setImmediate(done)).then(() => heard[0].toFixed());\n"
    "});\n"
)
WARNING_TEST = "test('speaks', () => void setImmediate(() => say('second')));\n"


def run_node_driver(
    folder: Path, jobs: Sequence[dict[str, Any]], *, programs: Mapping[str, str] | None = None, **common: Any
) -> list[dict[str, Any]]:
    """Return what the driver reports for the project in a folder.

    Args:
        folder: The folder of the project.
        jobs: The jobs of the plan.
        programs: Programs of the test's own, by file name, to put beside the driver's.
        **common: Keys to set in the common part of the plan.
    """
    program_folder = folder / "box"
    program_folder.mkdir()
    for name, text in (programs or {}).items():
        (program_folder / name).write_text(text)
    for name in {*DRIVERS_BY_RUNNER["node:test"].programs, *DRIVERS_BY_RUNNER["tape"].programs}:
        (program_folder / name).write_bytes(resources.files(DRIVERS).joinpath(name).read_bytes())
    (folder / "say.js").write_text(SAY)
    all_common = {
        "uses_import": False,
        "texts": {"say.js": SAY},
        "ignored_failures": [],
        "targets_alone": False,
        **common,
    }
    timeouts = {
        "trial_timeout_ms": 20_000,
        "start_timeout_ms": 20_000,
        "linger_ms": 0,
        "max_rivals": 9,
        "seconds": 60,
    }
    (program_folder / "plan.json").write_text(json.dumps({"common": all_common, "jobs": jobs, **timeouts}))
    subprocess.run(["node", program_folder / "node_trials.cjs"], check=True, timeout=100, cwd=folder)
    return [json.loads(line) for line in (program_folder / "trials").read_text().splitlines()]


def test_plans_are_checked_and_unknown_methods_give_no_verdict(tmp_path: Path, require: Require) -> None:
    require("node", shutil.which("node") is not None, "it is not on PATH")
    (tmp_path / "plan.test.js").write_text(HEAD + PLAN_TESTS)
    baseline, _ = run_node_driver(tmp_path, [{"test_files": ["plan.test.js"]}])

    statuses = {test["id"].partition("::")[2]: test["status"] for test in baseline["tests"] if test["id"]}

    assert statuses == {
        "kept": "passed",
        "too few": "failed",
        "waits": "passed",
        "of another version": "unknown",
    }


def test_a_test_file_gets_no_events_of_the_previous_file(tmp_path: Path, require: Require) -> None:
    """Node runs each file in its own process; a remaining listener would fail all later candidates."""
    require("node", shutil.which("node") is not None, "it is not on PATH")
    (tmp_path / "a.test.js").write_text(HEAD + WARNING_TEST)
    (tmp_path / "b.test.js").write_text(HEAD + LISTENING_TEST)
    names = ["a.test.js::speaks", "b.test.js::hears"]
    texts = [
        "module.exports = (word) => { if (word === 'first') throw word; };\n",
        *(f"{SAY}// {n}\n" for n in "12"),
    ]
    jobs = [{"path": "say.js", "text": text} for text in texts]

    *trials, _ = run_node_driver(
        tmp_path, jobs, test_files=["a.test.js", "b.test.js"], target_tests=names[1:], expected_passes=names
    )

    assert [trial["passes"] for trial in trials] == [False, True, True]


def test_each_target_test_is_reported(tmp_path: Path, require: Require) -> None:
    """The order does not matter. A candidate that fixes none of many targets is abandoned."""
    require("node", shutil.which("node") is not None, "it is not on PATH")
    test_texts = (f"test('{n}', () => {{ if (say({n}) !== {n}) throw {n}; }});\n" for n in range(20))
    (tmp_path / "a.test.js").write_text(f"{HEAD}{''.join(test_texts)}")
    texts = ("module.exports = (n) => n - n % 2;\n", "module.exports = () => 99;\n")
    jobs = [{"path": "say.js", "text": text} for text in texts]
    names = [f"a.test.js::{n}" for n in range(3, 20)]
    common: dict[str, Any] = {
        "target_tests": names,
        "expected_passes": names,
        "targets_alone": True,
        "failed_targets_ms": 60_000,
    }

    some, none, _ = run_node_driver(tmp_path, jobs, test_files=["a.test.js"], **common)

    assert (some["passes"], some["failed_test"]) == (False, names[0])
    assert some["passed_tests"] == [f"a.test.js::{n}" for n in range(4, 18, 2)]
    assert none["passed_tests"] == []


POLLUTING_TEST = """\
const fs = require('node:fs');
test('twice', () => {
  if (process.send || process.connected) throw new Error('forked');
  if (process.env.MODE || Date.now() === 7 || fs.readFileSync(__filename).length < 9) throw new Error('left');
  fs.mkdirSync('made');
  fs.appendFileSync('notes.txt', 'more');
  if (fs.readFileSync('notes.txt', 'utf8') !== 'onemore') throw new Error('written to');
  Date.now = () => 7;
  globalThis.setTimeout = () => { throw new Error('no clock'); };
  fs.readFileSync = () => '';
  process.env.MODE = 'x';
  console.log = null;
  process.chdir('made');
  if (say(2) !== 4) throw new Error('wrong');
});
"""


def test_side_effects_of_a_failing_test_do_not_reach_the_next_candidate(
    tmp_path: Path, require: Require
) -> None:
    """A user's own run starts without stubs, a frozen clock, environment variables and files of other runs."""
    require("node", shutil.which("node") is not None, "it is not on PATH")
    (tmp_path / "a.test.js").write_text(HEAD + POLLUTING_TEST)
    (tmp_path / "notes.txt").write_text("one")
    texts = [f"module.exports = (n) => n * {n};\n" for n in (3, 5, 2, 2)]
    jobs: list[dict[str, Any]] = [
        {"test_files": ["a.test.js"]},
        *({"path": "say.js", "text": f"{text}// {n}"} for n, text in enumerate(texts)),
    ]
    name = "a.test.js::twice"

    baseline, *trials, _ = run_node_driver(
        tmp_path, jobs, test_files=["a.test.js"], target_tests=[name], expected_passes=[name]
    )

    assert "argument must be of type string" in baseline["tests"][0]["stack"]
    assert [trial["passes"] for trial in trials] == [False, False, True, True]
    assert (tmp_path / "notes.txt").read_text() == "one"
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("module_file", ["say.mjs", "say.js"])
def test_modules_loaded_by_import_are_loaded_again(
    module_file: str, tmp_path: Path, require: Require
) -> None:
    """A process keeps an imported module, so all candidates would be judged by the first one."""
    require("node", shutil.which("node") is not None, "it is not on PATH")
    assertion = f"if ((await import('./{module_file}')).default(1) !== 2) throw new Error();"
    test_text = f"test('one', async () => {{ {assertion} }});\n"
    (tmp_path / "a.test.cjs").write_text(f"{HEAD}{test_text}")
    exports = "export default" if module_file == "say.mjs" else "module.exports ="
    texts = {n: f"{exports} (n) => n + {n};\n" for n in (3, 1, 4)}
    (tmp_path / module_file).write_text(texts[3])
    jobs: list[dict[str, Any]] = [{"path": module_file, "text": text} for text in texts.values()]
    name = "a.test.cjs::one"
    common: dict[str, Any] = {
        "texts": {module_file: texts[3]},
        "uses_import": uses_es_modules({"a.test.cjs": test_text.encode()}),
    }

    *trials, _ = run_node_driver(
        tmp_path, jobs, test_files=["a.test.cjs"], target_tests=[name], expected_passes=[name], **common
    )

    assert [trial["passes"] for trial in trials] == [False, True, False]


def test_messages_of_the_project_are_not_mistaken_for_reports(tmp_path: Path, require: Require) -> None:
    """`process.send({ready: true})` is what servers send to their parent process."""
    require("node", shutil.which("node") is not None, "it is not on PATH")
    forged = "[0, 1, 2].forEach((number) => process.send({ event: 'trial', number, passes: true }));"
    send_messages = f"if (process.send) {{ process.send({{ ready: true }}); {forged} }}\n"
    (tmp_path / "a.test.js").write_text(
        HEAD + "test('one', () => { if (say(1) !== 2) throw new Error(); });\n"
    )
    jobs = [
        {"path": "say.js", "text": f"{send_messages}module.exports = (n) => n + {n};\n"} for n in (3, 2, 1)
    ]
    name = "a.test.js::one"

    *trials, _ = run_node_driver(
        tmp_path, jobs, test_files=["a.test.js"], target_tests=[name], expected_passes=[name]
    )

    assert [(trial["number"], trial["passes"]) for trial in trials] == [(0, False), (1, False), (2, True)]


ENGINE = """\
const path = require('node:path');
const { clearRequireCache } = require('./runner_worker.cjs');
exports.start = async (common, root) => ({
  isQuick: true,
  runsWholeFiles: true,
  fileChanged: () => {},
  run: async (files) => {
    clearRequireCache(root);
    return files.map((file) => {
      try {
        require(path.join(root, file));
        return { id: `${file}::runs`, status: 'passed' };
      } catch (error) {
        return { id: `${file}::runs`, status: 'failed', stack: String(error) };
      }
    });
  },
});
"""
ASSERTION_PACKAGE = """\
Object.defineProperty(Object.prototype, 'must', {
  configurable: true,
  get() { return (n) => { if (this != n) throw new Error('wrong'); }; },
});
"""
STUB_PACKAGE = """\
let stubbed = false;
exports.stub = (of, name) => {
  if (stubbed) throw new Error('stubbed twice');
  stubbed = true;
  of[name] = () => {};
};
"""


def test_packages_are_loaded_again_after_their_effects_were_reverted(
    tmp_path: Path, require: Require
) -> None:
    """should.js adds a property to all objects once; sinon remembers what it has stubbed."""
    require("node", shutil.which("node") is not None, "it is not on PATH")
    for name, text in {"asserts": ASSERTION_PACKAGE, "stubs": STUB_PACKAGE}.items():
        (tmp_path / "node_modules" / name).mkdir(parents=True)
        (tmp_path / "node_modules" / name / "index.js").write_text(text)
    (tmp_path / "a.test.js").write_text(
        "require('asserts'); require('stubs').stub(console, 'log'); require('./say')(2).must(4);\n"
    )
    jobs = [{"path": "say.js", "text": f"module.exports = (n) => n * {n};\n"} for n in (3, 5, 2)]
    name = "a.test.js::runs"
    common: dict[str, Any] = {
        "test_files": ["a.test.js"],
        "target_tests": [name],
        "expected_passes": [name],
        "covering_files": {},
    }

    *trials, _ = run_node_driver(
        tmp_path, jobs, engine="own_engine", programs={"own_engine.cjs": ENGINE}, **common
    )

    assert [trial["passes"] for trial in trials] == [False, False, True]
