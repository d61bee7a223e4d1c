"""Failed assertions of node:test that no failed test shows are reported, unless the test's text catches them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from requirements import Require
from suture.judge.runners.caught_assertions import LOST_ASSERTION, CaughtAssertions

REPORTERS = Path(str(resources.files("suture.project.languages.reporters").joinpath("")))
CODE = """
const assert = require('node:assert');
exports.tell = (listener, value) => { try { listener(value); } catch (error) { console.error('failed'); } };
exports.pass = (listener, value) => listener(value);
exports.settle = (listener, value) => new Promise((done) => done(listener(value))).catch(() => undefined);
exports.all = (items, check) => Promise.allSettled(items.map(check));
exports.quiet = (promise) => promise.catch(() => undefined);
exports.later = (check) => { setTimeout(() => Promise.resolve(1).then(check).catch(() => 0), 1); };
exports.positive = (n) => { assert.ok(n > 0); return n; };
"""
HEAD = "const test = require('node:test'), assert = require('node:assert'), a = require('../src/code');\n"
LOST = [
    "a.tell((n) => assert.strictEqual(n, 2), 1);",
    "a.tell((n) => assert(n === 2), 1);",
    "a.tell((n) => { assert.deepStrictEqual([n], [2]); }, 1);",
    "await a.settle((n) => assert.equal(n, 2), 1);",
    "await a.all([1], async (n) => { await null; assert.equal(n, 2); });",
    "await a.quiet(Promise.resolve(1).then((n) => assert.equal(n, 2)));",
    "await a.quiet((async () => { await 1; assert.fail('late'); })());",
    "a.later((n) => assert.equal(n, 2)); await new Promise((done) => setTimeout(done, 9));",
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
    "await Promise.allSettled([Promise.resolve(1).then((n) => assert.equal(n, 2))]);",
    "await assert.rejects(Promise.resolve(1).then((n) => assert.equal(n, 2)));",
    "const check = async (n) => { await 1; assert.equal(n, 2); };\n await assert.rejects(check(1));",
    "await Promise.resolve(1).then((n) => assert.equal(n, 2)).then(() => 0, () => 1);",
    "const until = async (f) => { for (;;) { try { return f(); } catch { await 1; } } };\n"
    " let n = 0; await until(() => { n += 1; assert.equal(n, 3); });",
    "let m = 0; const waitUntil = async (f) => { while (true) try { return f(); } catch { await 1; } };\n"
    " await waitUntil(() => { m += 1; assert.equal(m, 3); });",
]
SURFACED = ["a.pass((n) => assert.strictEqual(n, 2), 1);"]

PATCHES = """
const put = (owner, key, value) => Reflect.set(owner, key, value);
const { iterator } = Symbol, { prototype: list } = Array;
put(Object.getPrototypeOf([]), iterator, ((was) => function () { return was.call(this); })(list[iterator]));
Object.assign(Map.prototype, { get: ((was) => function (key) { return was.call(this, key); })(Map.prototype.get) });
Object.defineProperty(RangeError, Symbol.hasInstance, { value: () => true });
Object.defineProperty(Array, Symbol.species, { get: () => Array });
Object.getPrototypeOf(Uint8Array.prototype).at = () => 1;
Object.getPrototypeOf(new Set().values()).next = ((was) => function () { return was.call(this); })(
  Object.getPrototypeOf(new Set().values()).next);
Object.getPrototypeOf(function* () {}).prototype.return = (value) => ({ value, done: true });
Object.setPrototypeOf(EvalError.prototype, null);
Date.prototype[Symbol.toStringTag] = 'Date';
Object.prototype.toJSON = undefined;
Error.prepareStackTrace = (error) => `${error}`;
for (const options of [require('node:util').inspect.defaultOptions]) options.depth = 0;
put(Object.getPrototypeOf(new Intl.NumberFormat()), 'formatToParts', () => []);
"""
PATCHED = {
    "Array.prototype[Symbol.iterator]", "Map.prototype.get", "RangeError[Symbol.hasInstance]", "Array[Symbol.species]",
    "TypedArray.prototype.at", "the iterator of Set.next", "what a generator returns.return",
    "the prototype of EvalError.prototype", "Date.prototype[Symbol.toStringTag]", "Error.prepareStackTrace",
    "util.inspect.defaultOptions.depth", "Intl.NumberFormat.prototype.formatToParts",
}  # fmt: skip


def run_tests(body: list[str], folder: Path, require: Require, code: str = CODE) -> list[dict[str, Any]]:
    """Return what the reporter says of the test file, whose test N is in line N + 1."""
    node = shutil.which("node")
    require("node", node is not None, "it is not on PATH")
    shutil.copytree(REPORTERS, folder / "_suture", ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    tests = "".join(f"test('{at}', async () => {{ {text} }});\n" for at, text in enumerate(body))
    for path, text in (("src/code.js", code), ("test/a.test.js", HEAD + tests)):
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


@pytest.mark.parametrize("bodies", [LOST, HONEST, SURFACED], ids=["lost", "honest", "failed"])
def test_a_failed_assertion_that_no_test_shows_is_reported(
    bodies: list[str], tmp_path: Path, require: Require
) -> None:
    events = run_tests(bodies, tmp_path, require)
    (watched,) = [event for event in events if event["event"] == "watched"]
    outcomes = [event["status"] for event in events if event["event"] == "test" and event["names"]]
    assert outcomes == ["failed" if bodies is SURFACED else "passed"] * len(bodies)
    caught = CaughtAssertions({"test/a.test.js": (tmp_path / "test/a.test.js").read_text()})
    names = [str(name).replace(f"{tmp_path}/", "") for name in watched["changed"]]
    lost = [name for name in names if not (name.startswith(LOST_ASSERTION) and caught.contain(name))]
    found = {int(re.split(r"[ :]", name)[-1]) for name in lost}
    assert found == ({*range(2, 2 + len(LOST))} if bodies is LOST else set())


def test_changed_classes_of_the_language_are_reported(tmp_path: Path, require: Require) -> None:
    events = run_tests(["assert.ok(a);"], tmp_path, require, f"{CODE}{PATCHES}")
    (watched,) = [event for event in events if event["event"] == "watched"]
    assert set(watched["changed"]) == PATCHED
