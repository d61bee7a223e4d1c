// Vitest's own test runner, with a check of everything that decides the outcome of tests: during each test, it must be
// the same as before the project was loaded. It signs what it finds, and the outcome of each test. It shares a realm
// with the code, so it uses nothing that code could change.
import assert from "node:assert";
import { inspect as renderObject } from "node:util";
import * as vitest from "vitest";
import { VitestTestRunner } from "vitest/runners";
import { getFn } from "vitest/suite";
import answers from "./answers.cjs";
import realm from "./realm_baseline.cjs";
import signing from "./signing.cjs";

const { containsMatcher, findCallingCode, findTestPlaces, isOwnPromise, watchAssertionErrors } = answers;
const { append, Baseline, valueOf } = realm;
const { createWriter, delegate } = signing;
const { apply, ownKeys } = Reflect;
const { getOwnPropertyDescriptor: own, defineProperty: define, getPrototypeOf } = Object;
const WORDS = ["expect", "assert", "it", "test", "describe", "suite", "beforeAll", "beforeEach", "afterEach", "afterAll"];
/** Assertions per test before which everything is compared, because code may restore it afterwards. */
const MAX_COMPARED_ASSERTIONS = 20;
const shared = globalThis[Symbol.for("$$jest-matchers-object")];
const Assertion = getPrototypeOf(vitest.expect(0));
const flag = vitest.chai?.util.flag;
const matcherClass = getPrototypeOf(getPrototypeOf(vitest.expect.anything()));
const promises = [Promise];
const baseline = new Baseline();
let names = [];
let writer;
/** The test that runs; several may run at once. */
let current;
let running = 0;
/** Where the assertions of tests stand that have failed since the last test that failed or passed. */
let lost = [];

function note(name) {
  append(names, name);
}

/** Note what has changed since the beginning. */
function compare() {
  baseline.findChanges(note);
}

function noteFailedAssertion() {
  const places = current && findTestPlaces(current.test.file?.filepath);
  if (places) append(lost, places);
}

/** Note failed assertions that no test shows. Tests that run at once are one here. */
function reportLost() {
  for (let at = 0; at < lost.length; at += 1) note(`the failed assertion at ${lost[at]}`);
  lost = [];
}

function beginAssertion() {
  if (!current) return;
  current.assertions += 1;
  if (current.assertions <= MAX_COMPARED_ASSERTIONS) compare();
}

function inspect(received, values, thorough) {
  let found = containsMatcher(received, thorough);
  // Tests have matchers of Vitest's own classes in what they expect.
  for (let at = 0; !found && at < values.length; at += 1) found = containsMatcher(values[at], thorough, matcherClass);
  if (found) note("how a value is compared");
}

/** Have what tests pass to a matcher inspected, and failures noted. */
function wrapMatcher(name) {
  const matcher = own(Assertion, name)?.value;
  // Vitest counts the frames of the stack above an inline snapshot.
  if (typeof matcher !== "function" || /Snapshot/.test(name)) return;
  const value = function () {
    beginAssertion();
    const received = flag(this, "object");
    inspect(received, arguments, false);
    try {
      const made = apply(matcher, this, arguments);
      inspect(received, arguments, true);
      if (current?.test.result?.state === "fail") current.hasFailed = true; // `expect.soft` throws nothing
      return made;
    } catch (error) {
      // Code that called the assertion may catch this.
      if (current && running === 1) current.catcher = findCallingCode(current.test.file?.filepath) ?? current.catcher;
      noteFailedAssertion();
      throw error;
    }
  };
  define(Assertion, name, { value, writable: true, enumerable: true, configurable: true });
}

/** Have failures of chai's own assertions noted. */
function wrapAssert() {
  const was = own(Assertion, "assert")?.value;
  if (typeof was !== "function") return;
  const value = function () {
    try {
      return apply(was, this, arguments);
    } catch (error) {
      noteFailedAssertion();
      throw error;
    }
  };
  define(Assertion, "assert", { value, writable: true, enumerable: true, configurable: true });
}

/** Note promises by which code can keep an assertion from running. */
function wrapPromise(name) {
  const was = own(Assertion, name);
  const get = function () {
    if (isOwnPromise(flag(this, "object"), promises)) note("what a promise gives");
    return apply(was.get, this, []);
  };
  if (was?.get) define(Assertion, name, { ...was, get });
}

watchAssertionErrors(assert.AssertionError, noteFailedAssertion);
if (flag) {
  if (shared?.matchers) for (const name of ownKeys(shared.matchers)) wrapMatcher(name);
  wrapAssert();
  wrapPromise("resolves");
  wrapPromise("rejects");
}
baseline.addRealm(globalThis);
baseline.addInspection(renderObject);
baseline.addFunction("Error.prepareStackTrace", Error, "prepareStackTrace");
for (const name of WORDS) {
  baseline.addFunction(name, globalThis, name);
  if (typeof vitest[name] === "function") baseline.addFunctions(name, vitest[name]);
}
if (shared?.matchers) {
  baseline.add("expect()", shared, "matchers");
  baseline.addFunctions("expect()", shared.matchers);
}
// Each `expect` of a test's own context defines some methods again.
const defined = { __proto__: null };
for (const name of ownKeys(Assertion)) defined[name] = valueOf(Assertion, name);
vitest.createExpect?.();
for (const name of ownKeys(Assertion)) {
  const isStable = name !== "constructor" && defined[name] === valueOf(Assertion, name);
  if (isStable) baseline.addFunction(`chai.Assertion.${String(name)}`, Assertion, name);
}
if (vitest.chai) baseline.addFunctions("chai.util", vitest.chai.util);
const testers = shared?.customEqualityTesters;
if (testers) {
  baseline.add("expect's testers of equality", shared, "customEqualityTesters");
  baseline.add("expect's testers of equality", testers, "length");
}

/** Take the key of this process, before the project is loaded, out of where the project could read it. */
function takeKey() {
  const state = globalThis.__vitest_worker__;
  const contexts = [state?.providedContext, state?.ctx?.providedContext];
  const given = contexts[0]?.suture ?? contexts[1]?.suture;
  for (const context of contexts) if (context) delete context.suture;
  return given && { path: given.path, name: given.name, key: Buffer.from(given.key, "hex") };
}

/** The names of a test and of its groups. */
function namesOf(test) {
  let path = [];
  for (let one = test; one && !one.filepath; one = one.suite) path = [one.name, ...path];
  return path;
}

/** What is known of a test independently of its `result`, which code can change. */
class TestRecord {
  assertions = 0;
  catcher = "";
  hasFailed = false;

  constructor(test) {
    this.test = test;
    this.run = getFn(test);
    this.names = namesOf(test);
  }

  /** Report the outcome. */
  finish({ retry }) {
    const { test } = this;
    const title = test.name;
    const state = test.result?.state;
    if (test.fails) note(`the expected failure of ${title}`);
    if ((test.retry ?? 0) !== (retry ?? 0) || test.repeats) note(`the retries of ${title}`);
    if (this.catcher && !this.hasFailed) note(`the failed assertion in ${title}`);
    const passed = state === "pass" && this.hasFailed === Boolean(test.fails);
    if (!passed || test.fails) lost = [];
    else if (running === 0) reportLost();
    if (state === "pass" && !passed) note(`the result of ${title}`);
    if (state === "pass" || state === "fail") {
      writer?.write({ event: "outcome", file: test.file.filepath, names: this.names, status: passed ? "passed" : "failed" });
    }
  }
}

/** Run the function that a test had when it was collected. */
async function runRecorded(test, record) {
  running += 1;
  try {
    await (record?.run ?? getFn(test))();
  } catch (error) {
    if (record) record.hasFailed = true;
    throw error;
  } finally {
    running -= 1;
  }
}

/** Report what was changed since the last such report, and if nothing was, only for a whole file. */
function reportChanges(file, isFile) {
  compare();
  if (!isFile && !names.length) return;
  const unique = { __proto__: null };
  for (let at = 0; at < names.length; at += 1) unique[names[at]] = true;
  names = [];
  writer?.write({ event: "watched", file, changed: ownKeys(unique) });
}

/** Have one of the runner's methods called with something else before or after it. */
function watch(runner, name, before, after) {
  const was = runner[name];
  const value = async (...given) => {
    before?.(...given);
    const made = was && (await apply(was, runner, given));
    after?.(...given);
    return made;
  };
  define(runner, name, { value, writable: true, configurable: true });
}

export default class extends VitestTestRunner {
  constructor(config) {
    super(config);
    const given = takeKey();
    const { retry, name } = config;
    const records = { __proto__: null };
    const addTasks = (tasks) => {
      for (let at = 0; at < tasks.length; at += 1) {
        if (tasks[at].tasks) addTasks(tasks[at].tasks);
        else records[tasks[at].id] = new TestRecord(tasks[at]);
      }
    };
    watch(this, "importFile", undefined, compare);
    watch(this, "onCollected", addTasks);
    watch(this, "onBeforeRunSuite", ({ filepath }) => {
      if (!filepath) return;
      const own = given && delegate(given, `${name ?? ""} ${filepath}`);
      writer = own && createWriter(given.path, own.key, own.name);
      reportChanges(filepath, true);
    });
    watch(this, "onBeforeTryTask", (test, tried) => {
      current = records[test.id];
      if (!current) return;
      current.assertions = 0;
      if (tried?.retry) {
        current.hasFailed = false;
        lost = [];
      }
      current.catcher = "";
    });
    watch(this, "onAfterRunTask", (test) => {
      records[test.id]?.finish({ retry });
      current = undefined;
      reportChanges(test.file.filepath);
    });
    watch(this, "onAfterRunSuite", ({ filepath, result }) => {
      if (!filepath || result?.state === "fail") return;
      reportLost();
      reportChanges(filepath);
    });
    define(this, "runTask", { value: (test) => runRecorded(test, records[test.id]) });
  }
}
