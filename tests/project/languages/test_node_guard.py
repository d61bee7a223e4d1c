"""Assertions of node:test that fail where only code under test can notice are reported, others are not."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from importlib import resources
from pathlib import Path

import pytest

from requirements import Require

REPORTERS = Path(str(resources.files("suture.project.languages.reporters").joinpath("")))
CODE = """
const assert = require('node:assert');
exports.tell = (listener, value) => { try { listener(value); } catch (error) { console.error('failed'); } };
exports.pass = (listener, value) => listener(value);
exports.settle = (listener, value) => new Promise((done) => done(listener(value))).catch(() => undefined);
exports.positive = (n) => { assert.ok(n > 0); return n; };
"""
HEAD = "const test = require('node:test'), assert = require('node:assert'), a = require('../src/code');\n"
LOST = [
    "a.tell((n) => assert.strictEqual(n, 2), 1);",
    "a.tell((n) => assert(n === 2), 1);",
    "a.tell((n) => { assert.deepStrictEqual([n], [2]); }, 1);",
    "await a.settle((n) => assert.equal(n, 2), 1);",
    "assert.doesNotThrow(() => a.tell((n) => assert.equal(n, 2), 1));",
]
HONEST = [
    "assert.throws(() => assert.equal(1, 2));",
    "assert.throws(() => a.positive(0));",
    "assert.throws(() => a.pass((n) => assert.equal(n, 2), 1));",
    "await assert.rejects(async () => assert.equal(1, 2));",
    "a.tell(() => { throw new Error('of the listener'); });",
    "a.tell((n) => assert.throws(() => assert.equal(n, 2)), 1);",
    "try { assert.equal(1, 2); } catch { assert.ok(true); }",
    "a.tell((n) => assert.equal(n, 1), 1);",
]
SURFACED = ["a.pass((n) => assert.strictEqual(n, 2), 1);"]


def run_tests(body: list[str], folder: Path, require: Require) -> list[dict[str, object]]:
    """Return what the reporter says of the test file, whose test N is in line N + 1."""
    node = shutil.which("node")
    require("node", node is not None, "it is not on PATH")
    shutil.copytree(REPORTERS, folder / "_suture", ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    tests = "".join(f"test('{at}', async () => {{ {text} }});\n" for at, text in enumerate(body))
    for path, text in (("src/code.js", CODE), ("test/a.test.js", HEAD + tests)):
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(text)
    given = {"report": str(folder / "report"), "key": "00" * 32}
    environ = {key: value for key, value in os.environ.items() if not key.startswith("NODE_")}
    options = f"--require={folder}/_suture/node_guard.cjs --test-reporter={folder}/_suture/node_runner.mjs"
    subprocess.run(
        [str(node), "--test", "test/a.test.js"],
        input=json.dumps(given).encode(),
        env={**environ, "NODE_OPTIONS": f"{options} --test-reporter-destination=stdout"},
        cwd=folder,
        capture_output=True,
        timeout=60,
        check=False,
    )
    lines = (folder / "report").read_text().splitlines()
    return [json.loads(re.sub(r"^\w+ \d+ ", "", line)) for line in lines]


@pytest.mark.parametrize(
    ("bodies", "lines"),
    [(LOST, range(2, 2 + len(LOST))), (HONEST, ()), (SURFACED, ())],
    ids=["lost", "honest", "failed"],
)
def test_a_failed_assertion_that_only_code_under_test_noticed_is_reported(
    bodies: list[str], lines: range, tmp_path: Path, require: Require
) -> None:
    events = run_tests(bodies, tmp_path, require)
    (watched,) = [event for event in events if event["event"] == "watched"]
    outcomes = [event["status"] for event in events if event["event"] == "test" and event["names"]]
    assert watched["changed"] == [f"the failed assertion in line {line}" for line in lines]
    assert outcomes == ["failed" if bodies is SURFACED else "passed"] * len(bodies)
