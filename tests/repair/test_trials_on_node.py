"""Trials on our own `node:test`: what a test asks of it, and what one file may not leave to the next."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from requirements import Require
from suture.repair.other_languages.driver import BY_RUNNER, DRIVERS

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


def told(folder: Path, jobs: Sequence[dict[str, Any]], **common: Any) -> list[dict[str, Any]]:
    """What the driver says of a folder's project."""
    (box := folder / "box").mkdir()
    for name in BY_RUNNER["node:test"].programs:
        (box / name).write_bytes(resources.files(DRIVERS).joinpath(name).read_bytes())
    (folder / "say.js").write_text(SAY)
    known = {"esm": False, "texts": {"say.js": SAY}, "ignored": [], "alone": False, **common}
    waits = {"wall_ms": 20_000, "start_ms": 20_000, "linger_ms": 0, "rivals": 9, "seconds": 60}
    (box / "plan.json").write_text(json.dumps({"common": known, "jobs": jobs, **waits}))
    subprocess.run(["node", box / "node_trials.cjs"], check=True, timeout=100)
    return [json.loads(line) for line in (box / "trials").read_text().splitlines()]


def test_a_plan_is_kept_and_what_is_not_known_says_nothing_of_the_code(
    tmp_path: Path, require: Require
) -> None:
    require("node", shutil.which("node") is not None, "it is not on PATH")
    (tmp_path / "plan.test.js").write_text(HEAD + PLANS)
    look, _ = told(tmp_path, [{"files": ["plan.test.js"]}])
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
    *trials, _ = told(tmp_path, jobs, files=["a.test.js", "b.test.js"], guiding=both[1:], wanted=both)
    assert [trial["ok"] for trial in trials] == [False, True, True]
