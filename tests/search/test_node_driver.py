"""Trials on our own `node:test`: what a test asks of it, and what one file may not leave to the next."""

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
from suture.search.tree_sitter.driver_protocol import BY_RUNNER, DRIVERS
from suture.search.tree_sitter.drivers.node import uses_es_modules

HEAD = "const test = require('node:test'); const say = require('./say');\n"
SAY = "module.exports = (word) => process.emitWarning(word);\n"
PLANS = (
    "test('kept', (t) => { t.plan(2); t.assert.ok(say); t.assert.strictEqual(1, 1); });\n"
    "test('too few', (t) => { t.plan(2); t.assert.ok(say); });\n"
    "test('waits', (t) => { t.plan(1, { wait: 500 }); setTimeout(() => t.assert.ok(say), 20); });\n"
    "test('of another version', (t) => { t.later(); });\n"
)
HEARS = (
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
SPEAKS = "test('speaks', () => void setImmediate(() => say('second')));\n"


def told(
    folder: Path, jobs: Sequence[dict[str, Any]], *, programs: Mapping[str, str] | None = None, **common: Any
) -> list[dict[str, Any]]:
    """What the driver says of a folder's project; some of its programs may be the test's own."""
    (box := folder / "box").mkdir()
    for name, text in (programs or {}).items():
        (box / name).write_text(text)
    for name in {*BY_RUNNER["node:test"].programs, *BY_RUNNER["tape"].programs}:
        (box / name).write_bytes(resources.files(DRIVERS).joinpath(name).read_bytes())
    (folder / "say.js").write_text(SAY)
    known = {
        "uses_import": False,
        "texts": {"say.js": SAY},
        "ignored_failures": [],
        "targets_alone": False,
        **common,
    }
    waits = {
        "trial_timeout_ms": 20_000,
        "start_timeout_ms": 20_000,
        "linger_ms": 0,
        "max_rivals": 9,
        "seconds": 60,
    }
    (box / "plan.json").write_text(json.dumps({"common": known, "jobs": jobs, **waits}))
    subprocess.run(["node", box / "node_trials.cjs"], check=True, timeout=100, cwd=folder)
    return [json.loads(line) for line in (box / "trials").read_text().splitlines()]


def test_a_plan_is_kept_and_what_is_not_known_says_nothing_of_the_code(
    tmp_path: Path, require: Require
) -> None:
    require("node", shutil.which("node") is not None, "it is not on PATH")
    (tmp_path / "plan.test.js").write_text(HEAD + PLANS)
    look, _ = told(tmp_path, [{"test_files": ["plan.test.js"]}])
    ended = {test["id"].partition("::")[2]: test["status"] for test in look["tests"] if test["id"]}
    assert ended == {
        "kept": "passed",
        "too few": "failed",
        "waits": "passed",
        "of another version": "unknown",
    }


def test_a_file_hears_nothing_of_the_one_before(tmp_path: Path, require: Require) -> None:
    """Node gives each a process of its own; a listener that stays would fail all candidates behind it."""
    require("node", shutil.which("node") is not None, "it is not on PATH")
    (tmp_path / "a.test.js").write_text(HEAD + SPEAKS)
    (tmp_path / "b.test.js").write_text(HEAD + HEARS)
    both = ["a.test.js::speaks", "b.test.js::hears"]
    texts = [
        "module.exports = (word) => { if (word === 'first') throw word; };\n",
        *(f"{SAY}// {n}\n" for n in "12"),
    ]
    jobs = [{"path": "say.js", "text": text} for text in texts]
    *trials, _ = told(
        tmp_path, jobs, test_files=["a.test.js", "b.test.js"], target_tests=both[1:], expected_passes=both
    )
    assert [trial["passes"] for trial in trials] == [False, True, True]


def test_of_each_test_that_failed_it_is_told_whether_it_passes(tmp_path: Path, require: Require) -> None:
    """Whichever stands first; and a candidate that mends none of many is given up."""
    require("node", shutil.which("node") is not None, "it is not on PATH")
    asks = (f"test('{n}', () => {{ if (say({n}) !== {n}) throw {n}; }});\n" for n in range(20))
    (tmp_path / "a.test.js").write_text(f"{HEAD}{''.join(asks)}")
    texts = ("module.exports = (n) => n - n % 2;\n", "module.exports = () => 99;\n")
    jobs = [{"path": "say.js", "text": text} for text in texts]
    names = [f"a.test.js::{n}" for n in range(3, 20)]
    known: dict[str, Any] = {
        "target_tests": names,
        "expected_passes": names,
        "targets_alone": True,
        "failed_targets_ms": 60_000,
    }
    some, none, _ = told(tmp_path, jobs, test_files=["a.test.js"], **known)
    assert (some["passes"], some["failed_test"]) == (False, names[0])
    assert some["passed_tests"] == [f"a.test.js::{n}" for n in range(4, 18, 2)]
    assert none["passed_tests"] == []


LEAVES = """\
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


def test_what_a_failing_test_leaves_does_not_meet_the_next_candidate(
    tmp_path: Path, require: Require
) -> None:
    """Stubs, a clock that stands still, variables, files: the user's own run of each begins without them."""
    require("node", shutil.which("node") is not None, "it is not on PATH")
    (tmp_path / "a.test.js").write_text(HEAD + LEAVES)
    (tmp_path / "notes.txt").write_text("one")
    texts = [f"module.exports = (n) => n * {n};\n" for n in (3, 5, 2, 2)]
    jobs: list[dict[str, Any]] = [
        {"test_files": ["a.test.js"]},
        *({"path": "say.js", "text": f"{text}// {n}"} for n, text in enumerate(texts)),
    ]
    name = "a.test.js::twice"
    look, *trials, _ = told(
        tmp_path, jobs, test_files=["a.test.js"], target_tests=[name], expected_passes=[name]
    )
    assert "argument must be of type string" in look["tests"][0]["stack"]
    assert [trial["passes"] for trial in trials] == [False, False, True, True]
    assert (tmp_path / "notes.txt").read_text() == "one"
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("own", ["say.mjs", "say.js"])
def test_what_import_loads_from_a_file_that_was_required_is_loaded_anew(
    own: str, tmp_path: Path, require: Require
) -> None:
    """It stays in a process once it is loaded: every candidate behind the first was judged by the first."""
    require("node", shutil.which("node") is not None, "it is not on PATH")
    asks = f"if ((await import('./{own}')).default(1) !== 2) throw new Error();"
    load = f"test('one', async () => {{ {asks} }});\n"
    (tmp_path / "a.test.cjs").write_text(f"{HEAD}{load}")
    begin = "export default" if own == "say.mjs" else "module.exports ="
    texts = {n: f"{begin} (n) => n + {n};\n" for n in (3, 1, 4)}
    (tmp_path / own).write_text(texts[3])
    jobs: list[dict[str, Any]] = [{"path": own, "text": text} for text in texts.values()]
    name = "a.test.cjs::one"
    common: dict[str, Any] = {
        "texts": {own: texts[3]},
        "uses_import": uses_es_modules({"a.test.cjs": load.encode()}),
    }
    *trials, _ = told(
        tmp_path, jobs, test_files=["a.test.cjs"], target_tests=[name], expected_passes=[name], **common
    )
    assert [trial["passes"] for trial in trials] == [False, True, False]


def test_a_project_that_says_it_is_ready_is_not_the_driver(tmp_path: Path, require: Require) -> None:
    """`process.send({ready: true})` is what servers say to what has started them."""
    require("node", shutil.which("node") is not None, "it is not on PATH")
    forged = "[0, 1, 2].forEach((number) => process.send({ event: 'trial', number, passes: true }));"
    says = f"if (process.send) {{ process.send({{ ready: true }}); {forged} }}\n"
    (tmp_path / "a.test.js").write_text(
        HEAD + "test('one', () => { if (say(1) !== 2) throw new Error(); });\n"
    )
    jobs = [{"path": "say.js", "text": f"{says}module.exports = (n) => n + {n};\n"} for n in (3, 2, 1)]
    name = "a.test.js::one"
    *trials, _ = told(tmp_path, jobs, test_files=["a.test.js"], target_tests=[name], expected_passes=[name])
    assert [(trial["number"], trial["passes"]) for trial in trials] == [(0, False), (1, False), (2, True)]


ENGINE = """\
const path = require('node:path');
const { forget } = require('./runner_worker.cjs');
exports.start = async (common, root) => ({
  quick: true,
  whole: true,
  changed: () => {},
  run: async (files) => {
    forget(root);
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
ASSERTS = """\
Object.defineProperty(Object.prototype, 'must', {
  configurable: true,
  get() { return (n) => { if (this != n) throw new Error('wrong'); }; },
});
"""
STUBS = """\
let stubbed = false;
exports.stub = (of, name) => {
  if (stubbed) throw new Error('stubbed twice');
  stubbed = true;
  of[name] = () => {};
};
"""


def test_a_package_is_loaded_anew_where_what_it_did_was_put_back(tmp_path: Path, require: Require) -> None:
    """One adds a property to all objects once, as should.js; one remembers what it has stubbed, as sinon."""
    require("node", shutil.which("node") is not None, "it is not on PATH")
    for name, text in {"asserts": ASSERTS, "stubs": STUBS}.items():
        (tmp_path / "node_modules" / name).mkdir(parents=True)
        (tmp_path / "node_modules" / name / "index.js").write_text(text)
    (tmp_path / "a.test.js").write_text(
        "require('asserts'); require('stubs').stub(console, 'log'); require('./say')(2).must(4);\n"
    )
    jobs = [{"path": "say.js", "text": f"module.exports = (n) => n * {n};\n"} for n in (3, 5, 2)]
    name = "a.test.js::runs"
    known = {
        "test_files": ["a.test.js"],
        "target_tests": [name],
        "expected_passes": [name],
        "covering_files": {},
    }
    *trials, _ = told(tmp_path, jobs, engine="own_engine", programs={"own_engine.cjs": ENGINE}, **known)
    assert [trial["passes"] for trial in trials] == [False, False, True]
