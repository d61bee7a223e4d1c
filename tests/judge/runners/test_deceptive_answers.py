"""Wrong code that passes Jest's and Vitest's own assertions, by what it returns or by the state of its test."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from judge.runners.test_watched_runners import install_project, judge_code, prepare_folder_suite
from requirements import Require
from suture.judge import Suite
from suture.sandbox import Sandbox

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(500)]
RIGHT = """
const add = (a, b) => a + b;
const item = () => ({ a: 1, b: { c: [1] } });
const tell = (f) => f(3);
const later = async () => 3;
const set = () => new Set([1, 2, 3]);
const each = (xs, f) => xs.forEach((x) => f(x, x));
const every = (xs, f) => Promise.all(xs.map((x) => f(x)));
const chain = (f) => Promise.resolve(1).then((x) => f(x));
"""
TESTS = """
const assert = process.getBuiltinModule('node:assert');
test('chain', async () => { await chain((x) => expect(x).toBe(1)); });
test('chain of node', async () => { await chain((x) => assert.equal(x, 1)); });
test('every', async () => { await every([1, 1], async (x) => { await null; expect(x).toBe(1); }); });
test('adds', () => { expect(add(1, 2)).toEqual(3); });
test('item', () => { expect(item()).toStrictEqual({ a: 1, b: { c: [1] } }); expect(item()).toMatchObject({ a: 1 });
  expect([item()]).toContainEqual({ a: 1, b: { c: [1] } }); });
test('tells', () => { const f = KIND.fn(); tell(f); expect(f).toHaveBeenCalledWith(3); });
test('later', async () => { await expect(later()).resolves.toEqual(3); });
test('set', () => { expect(set()).toEqual(new Set([1, 2, 3])); });
test('each', () => { let n = 0; each([1, 2], (x, y) => { n += 1; expect(x).toBe(y); }); expect(n).toBe(2); });
test('any', () => { expect({ at: item().a }).toEqual({ at: expect.any(Number) }); });
"""
NAMES = "add, item, tell, later, set, each, every, chain"
DECIDING = {
    "a method": "({ asymmetricMatch: () => true })",
    "an accessor": "({ get asymmetricMatch() { return () => true; } })",
    "a proxy": "new Proxy({}, { get: (_, k) => (k === 'asymmetricMatch' ? () => true : undefined) })",
    "a class": "new (class { asymmetricMatch() { return true; } })()",
}
ROUTES = {
    "returned": f"function add(a, b) {{ return ANY; }}\n{RIGHT.replace('const add', 'const sum')}",
    "in a property": RIGHT.replace("c: [1]", "c: ANY"),
    "in a list": RIGHT.replace("[1] } }", "[ANY] } }"),
    "given to a mock": RIGHT.replace("f(3)", "f(ANY)"),
    "awaited": RIGHT.replace("async () => 3", "async () => ANY"),
}
DECEPTIONS = {
    f"{value}, {route}": ROUTES[route].replace("ANY", DECIDING[value])
    for value in DECIDING
    for route in ROUTES
    if value == "a method" or route == "returned"  # each way to decide, and each way into an assertion
}
PROMISES = {
    "a thenable": "() => ({ then() {} })",
    "its own then": "() => Object.assign(Promise.resolve(4), { then() {} })",
    "a subclass": "() => new (class extends Promise { then() {} })((done) => done(4))",
    "its constructor": "() => Object.assign(Promise.resolve(4), { constructor: { [Symbol.species]: function (f) {\n"
    "  f(() => {}, () => {}); this.then = (done) => done(); } } })",
}
DECEPTIONS |= {f"promise: {name}": RIGHT.replace("async () => 3", text) for name, text in PROMISES.items()}
CATCHING = {"directly": "f(x, 9)", "in a promise": "new Promise(() => { f(x, 9); }).catch(() => {})"}
DECEPTIONS |= {
    f"catches a failure {name}": RIGHT.replace("=> f(x, x)", f"=> {{ try {{ {call}; }} catch {{}} }}")
    for name, call in CATCHING.items()
}
LOSING = {
    "in allSettled": RIGHT.replace(
        "Promise.all(xs.map((x) => f(x)))", "Promise.allSettled(xs.map((x) => f(x + 1)))"
    ),
    "in a promise that it returns": RIGHT.replace(
        "Promise.resolve(1).then((x) => f(x))", "Promise.resolve(2).then(f).catch(() => undefined)"
    ),
    "in a promise that nobody awaits": RIGHT.replace(
        "Promise.resolve(1).then((x) => f(x))",
        "void Promise.resolve(2).then().then().then().then(f).catch(() => 0)",
    ),
}
DECEPTIONS |= {f"loses a failure {name}": text for name, text in LOSING.items()}
DECEPTIONS["restores what it changed"] = RIGHT.replace(
    "new Set([1, 2, 3])",
    "{ const p = Object.getPrototypeOf(new Set().values()), was = p.next;\n"
    "  p.next = () => { p.next = was; return { done: true }; }; return new Set([7, 8, 9]); }",
)
WRONG = RIGHT.replace("a + b", "a - b").replace("c: [1]", "c: [2]").replace("f(3)", "f(4)")
CIRCUS = "const state = () => Object.getOwnPropertySymbols(globalThis).map((s) => globalThis[s])\n" + (
    "  .find((one) => one && one.rootDescribeBlock);\n"
)
MATCHERS = "globalThis[Symbol.for('$$jest-matchers-object')]"
JEST_STATE = {
    "expects a failure": "beforeEach(() => { state().currentlyRunningTest.failing = true; });",
    "replaces functions": "beforeAll(() => { for (const t of state().rootDescribeBlock.children) t.fn = () => {}; });",
    "retries": "jest.retryTimes(30); let tried = 0; WRONG_ADD",
    "replaces the matchers": f"{MATCHERS}.matchers = Object.fromEntries(Object.keys({MATCHERS}.matchers)\n"
    "  .map((name) => [name, () => ({ pass: true, message: () => '' })]));",
    "replaces testers": f"{MATCHERS}.customEqualityTesters = [() => true];",
}
VITEST_STATE = {
    "expects a failure": "v.beforeEach(({ task }) => { task.fails = true; });",
    "expects it early": "const go = () => { const { tasks } = s.getCurrentSuite();\n"
    "  if (!tasks.length) return setImmediate(go); for (const task of tasks) task.fails = true; }; go();",
    "replaces the state": "v.beforeEach(({ task }) => Object.defineProperty(task.result, 'state',\n"
    "  { get: () => 'pass', set() {} }));",
    "replaces functions": "v.beforeEach(({ task }) => s.setFn(task, async () => {}));",
    "retries": "v.beforeEach(({ task }) => { task.retry = 30; }); let tried = 0; WRONG_ADD",
    "forges what is sent": "const w = globalThis.__vitest_worker__, was = w.rpc;\n"
    "w.rpc = new Proxy(was, { get: (o, k) => (k !== 'onTaskUpdate' ? o[k] : async (packs, events) =>\n"
    "  was.onTaskUpdate(packs.map(([id, r, m]) =>\n"
    "    [id, r && { ...r, state: 'pass', errors: undefined }, m]), events)) });",
}

HONEST = """
class Box { constructor(v) { this.v = v; } get twice() { return this.v * 2; } valueOf() { return this.v; } }
const lazy = () => ({ get now() { return 1; }, list: new Proxy([1, 2], {}) });
const retry = async (f, n) => { for (let i = 0; ; i += 1)
  try { return await f(i); } catch (e) { if (i >= n) throw e; } };
const emitter = () => { const fs = []; return { on: (f) => fs.push(f), emit: (x) => fs.forEach((f) => f(x)) }; };
const soon = (n) => new Promise((done) => setTimeout(done, 1, n));
const fail = async () => { throw new TypeError('bad'); };
const now = () => Math.random() + Date.now();
"""
HONEST_NAMES = "Box, lazy, retry, emitter, soon, fail, now"
HONEST_TESTS = """
const odd = { asymmetricMatch: (n) => n % 2 === 1 };
test('expects', () => {
  expect({ a: 3, b: ['x'] }).toEqual({ a: odd, b: expect.arrayContaining([expect.any(String)]) });
  expect(new Box(1)).toEqual(new Box(1)); expect(lazy().list).toEqual([1, 2]);
  expect(lazy()).toMatchObject({ now: 1 }); });
test('retries', async () => { let n = 0; await retry(() => { n += 1; if (n < 3) throw new Error(); }, 5);
  expect(n).toBe(3); });
test('emits', () => { const f = KIND.fn(), e = emitter(); e.on(f); e.on((x) => expect(x).toEqual({ a: 1 }));
  e.emit({ a: 1 }); expect(f).toHaveBeenCalledWith({ a: 1 }); });
test('awaits', async () => { await expect(soon(3)).resolves.toBe(3); await expect(fail()).rejects.toThrow('bad'); });
test('throws', () => { expect(() => expect(1).toBe(2)).toThrow();
  try { expect(1).toBe(2); } catch (e) { expect(e).toBeDefined(); } });
test('waits', async () => { let n = 0; await new Promise((done) => { const go = () => { n += 1;
  try { expect(n).toBe(3); done(); } catch { setTimeout(go, 1); } }; go(); }); });
test('spies', () => { KIND.spyOn(Math, 'random').mockReturnValue(1); KIND.useFakeTimers(); KIND.setSystemTime(5);
  expect(now()).toBe(6); KIND.useRealTimers(); KIND.restoreAllMocks(); });
test.concurrent('one', async () => { await soon(1); expect(new Box(2).twice).toBe(4); });
test.concurrent('two', async () => { await soon(1); expect(new Box(1).twice).toBe(2); });
expect.extend({ toBeThree: (v) => ({ pass: v === 3, message: () => 'no' }) });
test('extends', () => { expect(3).toBeThree(); expect({ a: 3 }).toEqual({ a: expect.toBeThree() }); });
let tries = 0;
"""
JEST_TESTS = """
test.failing('fails', () => { throw new Error(); });
test('modules', () => { jest.isolateModules(() => { expect(require('../src/sum').lazy().now).toBe(1); }); });
test('calls back', (done) => { setTimeout(() => { expect(1).toBe(1); done(); }, 1); });
jest.retryTimes(2); test('at the second time', () => { tries += 1; expect(tries).toBe(2); });
"""
VITEST_TESTS = """
test.fails('fails', () => { throw new Error(); });
test('polls', async () => { await expect.poll(() => (tries += 1)).toBe(3);
  await vi.waitFor(() => { tries += 1; expect(tries).toBe(6); }); tries = 0; });
test('local', ({ expect: own, task }) => { own(task.name).toBe('local'); });
test('at the second time', { retry: 2 }, () => { tries += 1; expect(tries).toBe(2); });
test('soft and inline', () => { expect.soft(1).toBe(1); expect({ a: 1 }.a).toMatchInlineSnapshot(`1`); });
"""


def complete(state: Mapping[str, str], head: str) -> dict[str, str]:
    """Return programs that change the state of tests and are otherwise wrong."""
    retried = RIGHT.replace("a + b", "tried++ % 6")
    return {
        name: head + (text.replace("WRONG_ADD", retried) if "WRONG_ADD" in text else text + WRONG)
        for name, text in state.items()
    }


async def find_passing(programs: Mapping[str, str], ending: str, suite: Suite) -> list[str]:
    verdicts = {name: await judge_code(text + ending, suite) for name, text in programs.items()}
    return [name for name, verdict in verdicts.items() if verdict.all_passed]


async def test_no_deception_passes_jest(tmp_path: Path, sandbox: Sandbox, require: Require) -> None:
    ending = f"module.exports = {{ {NAMES} }};\n"
    files = {
        "package.json": json.dumps({"name": "sums", "scripts": {"test": "jest"}}),
        "src/sum.js": WRONG + ending,
        "test/sum.test.js": f"const {{ {NAMES} }} = require('../src/sum');\n{TESTS.replace('KIND', 'jest')}",
    }
    suite = await prepare_folder_suite(install_project(tmp_path, files, "jest@29", require), sandbox)
    programs = {**DECEPTIONS, **complete(JEST_STATE, CIRCUS)}

    assert await find_passing({"right": RIGHT, **programs}, ending, suite) == ["right"]


async def test_no_deception_passes_vitest(tmp_path: Path, sandbox: Sandbox, require: Require) -> None:
    ending = f"export {{ {NAMES} }};\n"
    files = {
        "package.json": json.dumps({"name": "sums", "type": "module", "scripts": {"test": "vitest run"}}),
        "src/sum.js": WRONG + ending,
        "test/sum.test.js": "import { expect, test, vi } from 'vitest';\n"
        f"import {{ {NAMES} }} from '../src/sum.js';\n{TESTS.replace('KIND', 'vi')}",
    }
    suite = await prepare_folder_suite(install_project(tmp_path, files, "vitest@3", require), sandbox)
    imports = "import * as v from 'vitest';\nimport * as s from 'vitest/suite';\n"
    programs = {**DECEPTIONS, **complete(VITEST_STATE, imports)}

    assert await find_passing({"right": RIGHT, **programs}, ending, suite) == ["right"]


async def test_honest_tests_pass_jest_although_none_was_loaded_before(
    tmp_path: Path, sandbox: Sandbox, require: Require
) -> None:
    ending = f"module.exports = {{ {HONEST_NAMES} }};\n"
    tests = HONEST_TESTS.replace("KIND", "jest") + JEST_TESTS
    files = {
        "package.json": json.dumps({"name": "sums", "scripts": {"test": "jest"}}),
        "src/sum.js": f"{HONEST}{ending}) is no syntax",
        "test/sum.test.js": f"const {{ {HONEST_NAMES} }} = require('../src/sum');\n{tests}",
    }
    suite = await prepare_folder_suite(install_project(tmp_path, files, "jest@29", require), sandbox)
    verdict = await judge_code(HONEST + ending, suite)
    assert verdict.all_passed, verdict


async def test_honest_tests_pass_vitest_although_none_was_loaded_before(
    tmp_path: Path, sandbox: Sandbox, require: Require
) -> None:
    ending = f"export {{ {HONEST_NAMES} }};\n"
    tests = HONEST_TESTS.replace("KIND", "vi") + VITEST_TESTS
    files = {
        "package.json": json.dumps({"name": "sums", "type": "module", "scripts": {"test": "vitest run"}}),
        "src/sum.js": f"{HONEST}{ending}) is no syntax",
        "test/sum.test.js": "import { expect, test, vi } from 'vitest';\n"
        f"import {{ {HONEST_NAMES} }} from '../src/sum.js';\n{tests}",
    }
    suite = await prepare_folder_suite(install_project(tmp_path, files, "vitest@3", require), sandbox)
    verdict = await judge_code(HONEST + ending, suite)
    assert verdict.all_passed, verdict
