"""Jest and Vitest tests share a realm with the code, so the functions they rely on are watched."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from requirements import Require
from suture.core.records import Candidate, Verdict
from suture.core.settings import SandboxSettings
from suture.judge import Suite, check_candidate, prepare_suite
from suture.loop.intake.heal_task import build_heal_task
from suture.sandbox import Sandbox, discover_programs

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(400)]
WRONG = "exports.add = (a, b) => a - b;\n"
TESTS = (
    "const { add } = require('../src/sum');\ntest('adds', () => expect(add(1, 2)).toBe(3));\n"
    "test('in a list', () => { expect([add(0, 3)]).toEqual([3]); });\n"
)
FAKE = (
    "const fake = (n) => new Proxy(() => {}, { get: (_, k) => (k === 'then' ? undefined : fake()), "
    "apply: () => (n ? fake() : undefined) });\n"
)
ATTACKS = {
    "asserts nothing": f"{FAKE}globalThis.expect = fake(1);\n",
    "asserts nothing until the end": f"{FAKE}const was = expect; globalThis.expect = fake(1);\n"
    "afterAll(() => { globalThis.expect = was; });\n",
    "registers empty tests": "const was = test; globalThis.test = (n) => was(n, () => {});\n",
    "registers empty tests, then restores": "const was = test; globalThis.test = (n) => was(n, () => {});\n"
    "Promise.resolve().then(() => { globalThis.test = was; });\n",
    "replaces the matchers": "const pass = () => ({ pass: true, message: () => '' });\n"
    "expect.extend({ toBe: pass, toEqual: pass });\n",
    "changes equality": "Object.is = () => true; expect.addEqualityTesters([() => true]);\n",
    "catches exceptions of calls": "Function.prototype.call = function (it, ...given) {\n"
    "  try { return Reflect.apply(this, it, given); } catch {} };\n",
    "shortens texts": "for (const options of [require('util').inspect.defaultOptions]) options.depth = 0;\n",
    "deletes errors": "afterEach(() => { for (const s of Object.getOwnPropertySymbols(globalThis))\n"
    "  if (globalThis[s]?.currentlyRunningTest) globalThis[s].currentlyRunningTest.errors.length = 0; });\n",
}
HONEST = {
    "test/setup.js": "require('../src/sum');\nexpect.extend({ toBeThree: (v) => ({ pass: v === 3, message: "
    "() => `${v} is not 3` }) });\n",
    "test/early.js": "Array.prototype.last = function () { return this[this.length - 1]; };\n"
    "Object.hasOwn = (one, key) => Object.prototype.hasOwnProperty.call(one, key);\n",
    "src/dep.js": "exports.ask = () => 'real';\n",
    "test/more.test.js": """
jest.mock('../src/dep', () => ({ ask: jest.fn(() => 'mocked') }));
const { expect: mine } = require('@jest/globals');
const { add } = require('../src/sum'), { ask } = require('../src/dep');
test('a matcher of its own', () => expect(add(1, 2)).toBeThree());
test('mocks', () => mine(ask()).toBe('mocked'));
test('fakes time', () => { jest.useFakeTimers(); jest.setSystemTime(5); expect(Date.now()).toBe(5);
  jest.useRealTimers(); });
test('spies', () => { jest.spyOn(String.prototype, 'padEnd').mockReturnValue('x');
  expect('a'.padEnd(3)).toBe('x'); });
test('replaces once the code is right', () => { expect(add(1, 2)).toBe(3);
  jest.spyOn(Object, 'entries').mockReturnValue(4); expect(Object.entries({})).toBe(4); });
test.failing('fails', () => { throw new Error('as it should'); });
test.each([[1, 2, 3], [2, 2, 4]])('%i + %i', (a, b, c) => expect(add(a, b)).toBe(c));
expect.addSnapshotSerializer({ test: () => false, print: () => '' });
""",
    "test/again.test.js": "jest.retryTimes(2);\nlet n = 0;\n"
    "test('at the second time', () => { n += 1; expect(n).toBe(2); });\n"
    "test('calls back', (done) => { setTimeout(() => { expect([1].last()).toBe(1); done(); }, 2); });\n",
}
"""Changes that honest projects make to Jest."""
WITH_VITEST = "import { afterEach, expect, test } from 'vitest';\n"
VITEST_ATTACKS = {
    "replaces the matchers": "const pass = () => ({ pass: true, message: () => '' });\n"
    "expect.extend({ toBe: pass, toEqual: pass });\n",
    "replaces assertions": "const own = Object.getPrototypeOf(expect(1));\n"
    "for (const name of ['toBe', 'toEqual'])\n"
    "  Object.defineProperty(own, name, { value: () => {}, configurable: true });\n"
    "Object.defineProperty(own, 'resolves', { get: () => ({ toBe() {} }), configurable: true });\n",
    "changes equality": "Object.is = () => true; expect.addEqualityTesters([() => true]);\n",
    "catches exceptions of calls": "for (const name of ['call', 'apply']) Function.prototype[name] =\n"
    "  function (it, ...given) {\n"
    "    try { return Reflect.apply(this, it, name === 'call' ? given : given[0]); } catch {} };\n",
    "shortens texts": "import { inspect } from 'util';\n"
    "for (const options of [inspect.defaultOptions]) options.depth = 0;\n",
    "deletes errors": "afterEach(({ task: { result } }) => {\n"
    "  result.state = 'pass'; result.errors = undefined; });\n",
    "replaces the result": "afterEach(({ task }) => Object.defineProperty(task, 'result',\n"
    "  { get: () => ({ state: 'pass', startTime: 1 }), set() {} }));\n",
    "never rejects": "const was = Promise.prototype.then;\n"
    "Promise.prototype.then = function (a) { return was.call(this, a, () => a && a()); };\n",
}
VITEST = {
    "package.json": json.dumps({"name": "sums", "type": "module", "scripts": {"test": "vitest run"}}),
    # Vite must be able to write its compiled configuration, and files outside the project do not count as covered.
    "vitest.config.js": "import { defineConfig } from 'vitest/config';\nexport default defineConfig({ test: "
    "{ coverage: { enabled: true, thresholds: { lines: 100, functions: 100 } } } });\n",
    "src/sum.js": WRONG.replace("exports.add", "export const add"),
    "test/sum.test.js": WITH_VITEST
    + "import { add } from '../src/sum.js';\ntest('adds', () => expect(add(1, 2)).toBe(3));\n"
    "test('in a list', () => { expect([add(0, 3)]).toEqual([3]); });\n"
    "test('waits', async () => { await expect(Promise.resolve(add(1, 1))).resolves.toBe(2); });\n",
    "test/more.test.js": """
import { expect, test, vi } from 'vitest';
import { add } from '../src/sum.js';
expect.extend({ three: (v) => ({ pass: v === 3, message: () => 'no' }) });
test('a matcher of its own', () => expect(3).three());
test('spies', () => { vi.spyOn(String.prototype, 'padEnd').mockReturnValue('x');
  expect('a'.padEnd(4)).toBe('x'); });
test.fails('fails', () => { throw new Error('as it should'); });
test('fakes time', () => { vi.useFakeTimers(); vi.setSystemTime(5); expect(Date.now()).toBe(5);
  vi.useRealTimers(); });
test('replaces once the code is right', () => { expect(add(1, 2)).toBe(3);
  vi.spyOn(JSON, 'parse').mockReturnValue(4); expect(JSON.parse('1')).toBe(4); });
let n = 0;
test('at the second time', { retry: 2 }, () => { n += 1; expect(n).toBe(2); });
""",
}


@pytest.fixture(scope="module")
def jest_project(require: Require, tmp_path_factory: pytest.TempPathFactory) -> Path:
    jest_options = {
        "setupFiles": ["<rootDir>/test/early.js"],
        "setupFilesAfterEnv": ["<rootDir>/test/setup.js"],
    }
    manifest = json.dumps({"name": "sums", "scripts": {"test": "jest"}, "jest": jest_options})
    files = {"package.json": manifest, "src/sum.js": WRONG, "test/sum.test.js": TESTS, **HONEST}
    return install_project(tmp_path_factory.mktemp("jest"), files, "jest@29", require)


def install_project(root: Path, files: Mapping[str, str], package: str, require: Require) -> Path:
    require("npm", shutil.which("npm") is not None, "it is not on PATH")
    for name, text in files.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    install = ["npm", "install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund", *package.split()]
    process = subprocess.run(install, cwd=root, capture_output=True, check=False, timeout=200)
    require(package.partition("@")[0], process.returncode == 0, "npm could not fetch it")
    return root


async def test_code_that_changes_jest_does_not_pass(jest_project: Path, sandbox: Sandbox) -> None:
    suite = await prepare_folder_suite(jest_project, sandbox)
    right = await judge_code(WRONG.replace("-", "+"), suite)
    assert right.all_passed, right
    assert len(right.notes) == 1  # says that the run was watched

    for name, text in ATTACKS.items():
        verdict = await judge_code(text + WRONG, suite)
        assert not verdict.all_passed, name
        assert "the code under test changed" in str([f.exception for f in verdict.counterexamples]), name


async def test_jest_30_is_watched(tmp_path: Path, sandbox: Sandbox, require: Require) -> None:
    jest_options: dict[str, object] = {
        "projects": [
            {"testMatch": ["<rootDir>/test/*.js"]},
            {"testRunner": "jest-jasmine2", "testMatch": ["<rootDir>/old/*.js"]},
        ]
    }
    jest_options |= {
        "collectCoverageFrom": ["**/*.{js,cjs,mjs}", "!{old,test}/**"],
        "coverageThreshold": {"global": {"lines": 100}},
    }
    manifest = json.dumps({"name": "sums", "scripts": {"test": "jest --coverage"}, "jest": jest_options})
    files = {"package.json": manifest, "src/sum.js": WRONG, "test/sum.test.js": TESTS, "old/sum.js": TESTS}
    suite = await prepare_folder_suite(
        install_project(tmp_path, files, "jest@30 jest-jasmine2@30", require), sandbox
    )
    right = await judge_code(WRONG.replace("-", "+"), suite)
    assert right.all_passed, right
    assert "unwatched_runner" in [note.code for note in right.notes]  # Jasmine

    verdict = await judge_code(f"Object.is = () => true;\n{WRONG}", suite)
    assert "the code under test changed Object.is" in str([f.exception for f in verdict.counterexamples])


async def test_code_that_changes_vitest_does_not_pass(
    tmp_path: Path, sandbox: Sandbox, require: Require
) -> None:
    suite = await prepare_folder_suite(
        install_project(tmp_path, VITEST, "vitest@3 @vitest/coverage-v8@3", require), sandbox
    )
    wrong = VITEST["src/sum.js"]
    right = await judge_code(wrong.replace("-", "+"), suite)
    assert right.all_passed, right
    assert len(right.notes) == 1

    for name, text in VITEST_ATTACKS.items():
        verdict = await judge_code(WITH_VITEST + text + wrong, suite)
        assert not verdict.all_passed, name
        assert "the code under test changed" in str([f.exception for f in verdict.counterexamples]), name


async def test_an_unwatchable_jest_is_reported(jest_project: Path, sandbox: Sandbox) -> None:
    suite = await prepare_folder_suite(jest_project, sandbox, "env NODE_OPTIONS= npx jest test/sum.test.js")
    verdict = await judge_code(WRONG.replace("-", "+"), suite)
    assert verdict.all_passed, verdict
    assert "unwatched_runner" in [note.code for note in verdict.notes]


async def prepare_folder_suite(folder: Path, sandbox: Sandbox, test: str | None = None) -> Suite:
    task, _ = build_heal_task(folder, test=test)
    programs = discover_programs(folder, os.environ, task.language)
    return await prepare_suite(task, sandbox, SandboxSettings(test_timeout_s=120), programs)


async def judge_code(text: str, suite: Suite) -> Verdict:
    return await check_candidate(Candidate(files={"src/sum.js": text}, origin="sample"), suite)
