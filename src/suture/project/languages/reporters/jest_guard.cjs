// Loaded first in each process of Jest. Everything that decides the outcome of tests must be the same at the end of a
// file as before the project was loaded. This runs outside of the realm of tests and code, and reports differences.
// Code can reach this realm, too. What notes a difference therefore uses no method that code could replace.
"use strict";
const Module = require("node:module");
const { inspect } = require("node:util");
const { containsMatcher, findCallingCode, findTestPlaces, isOwnPromise, watchAssertionErrors } = require("./answers.cjs");
const { append, Baseline } = require("./realm_baseline.cjs");
const { apply, ownKeys } = Reflect;
const { getOwnPropertySymbols: symbolsOf, getPrototypeOf } = Object;
const { getOwnPropertyDescriptors: descriptors, defineProperties, defineProperty } = Object;

const GLOBALS = ["expect", "it", "test", "describe", "fit", "xit", "xtest", "fdescribe", "xdescribe"];
GLOBALS.push("beforeAll", "beforeEach", "afterEach", "afterAll");
const MATCHERS = Symbol.for("$$jest-matchers-object");
const RETRIES = Symbol.for("RETRY_TIMES");
/** Assertions per test before which everything is compared, because code may restore it afterwards. */
const MAX_COMPARED_ASSERTIONS = 20;

/** What decides the outcome of tests in the realm of Jest's tests and code. */
class JestBaseline extends Baseline {
  addGlobals(global) {
    for (const name of GLOBALS) {
      this.addFunction(name, global, name);
      if (typeof global[name] === "function") this.addFunctions(name, global[name]);
    }
    this.add("the retries of tests", global, RETRIES);
    const state = global[MATCHERS];
    if (state?.matchers) {
      this.add("expect()", state, "matchers");
      this.addFunctions("expect()", state.matchers);
    }
    if (state?.customEqualityTesters) this.addList("expect's testers of equality", state, "customEqualityTesters");
    for (const symbol of symbolsOf(global)) {
      if (Array.isArray(global[symbol])) this.addList(symbol.description, global, symbol);
    }
  }
}

/** The watch of the test file that runs. */
let current;
watchAssertionErrors(require("node:assert").AssertionError, () => current?.notePlaces());

/** Watches one test file. */
class Watch {
  names = [];
  failed = new Map();
  functions = new Set();
  hasConcurrentTests = false;
  caught = "";
  /** Where the assertions of tests stand that have failed since the last test that failed or passed. */
  lost = [];
  assertions = 0;

  constructor(environment, testPath) {
    this.global = environment.global;
    this.testPath = testPath;
    this.promises = [this.global.Promise, Promise];
    this.baseline = new JestBaseline();
    this.baseline.addRealm(this.global);
    this.outer = new Baseline();
    this.outer.addRealm(globalThis);
    this.outer.addInspection(inspect);
  }

  note(name) {
    append(this.names, name);
  }

  compare() {
    const note = (name) => this.note(name);
    this.baseline.findChanges(note);
    this.outer.findChanges(note);
  }

  /** Begin with what Jest has defined; nothing of the project is loaded except `setupFiles`. */
  begin() {
    if (this.expect) this.global.expect &&= this.expect;
    append(this.promises, this.global.Promise);
    const matchers = this.global[MATCHERS]?.matchers;
    if (matchers) this.wrapMatchers(matchers);
    this.baseline.addGlobals(this.global);
  }

  /** Have what tests pass to matchers inspected, and failures noted. */
  wrapMatchers(matchers) {
    const watch = this;
    for (const name of Object.keys(matchers)) {
      const matcher = matchers[name];
      const value = function (received) {
        watch.beginAssertion();
        watch.inspect(received, arguments, false);
        const result = apply(matcher, this, arguments);
        if (result?.pass === true) watch.inspect(received, arguments, true);
        if (typeof result?.pass === "boolean" && result.pass === Boolean(this?.isNot)) watch.noteFailure();
        return result;
      };
      defineProperty(matchers, name, { value: defineProperties(value, descriptors(matcher)) });
    }
  }

  beginAssertion() {
    this.assertions += 1;
    if (this.assertions <= MAX_COMPARED_ASSERTIONS) this.compare();
  }

  inspect(received, values, thorough) {
    const found = containsMatcher(received, thorough);
    // Tests have matchers of Jest's own classes in what they expect.
    for (let at = 1; !found && at < values.length; at += 1) {
      if (containsMatcher(values[at], thorough, this.matcherClass)) return this.note("how a value is compared");
    }
    if (found) this.note("how a value is compared");
  }

  /** Return an `expect` that notes promises by which code can keep an assertion from running. */
  wrapExpect(expect) {
    const watch = this;
    this.matcherClass = getPrototypeOf(getPrototypeOf(expect.anything()));
    this.expect = new Proxy(expect, {
      apply(target, self, values) {
        const made = apply(target, self, values);
        if (isOwnPromise(values[0], watch.promises)) {
          for (const name of ["resolves", "rejects"]) watch.noteAccess(made, name);
        }
        return made;
      },
    });
    return this.expect;
  }

  noteAccess(owner, key) {
    const value = owner[key];
    const get = () => (this.note("what a promise gives"), value);
    defineProperty(owner, key, { get, enumerable: true, configurable: true });
  }

  /** Note that an assertion failed. If code called it, the code may catch that. */
  noteFailure() {
    if (!this.hasConcurrentTests) this.caught = findCallingCode(this.testPath) ?? this.caught;
    this.notePlaces();
  }

  notePlaces() {
    const places = findTestPlaces(this.testPath);
    if (places) append(this.lost, places);
  }

  /** Report failed assertions that no test shows. Only the end tells which of the concurrent tests one belongs to. */
  reportLost() {
    for (let at = 0; at < this.lost.length; at += 1) this.note(`the failed assertion at ${this.lost[at]}`);
    this.lost = [];
  }

  /** Learn from an event of jest-circus; see its types for their fields. */
  handle({ name, test, hook, fn, concurrent }) {
    if (name === "add_test" || name === "add_hook") this.functions.add(fn);
    if (name === "add_test" && concurrent) this.hasConcurrentTests = true;
    const one = name === "test_fn_start" ? test : name === "hook_start" ? hook : undefined;
    // Jest wraps the functions of concurrent tests.
    if (one && !this.hasConcurrentTests && !this.functions.has(one.fn)) this.note(`the function of ${nameOf(one)}`);
    if (name === "test_fn_start") {
      this.caught = "";
      this.assertions = 0;
    }
    if (name === "test_fn_success" && this.caught) this.note(`the failed assertion in ${nameOf(test)}`);
    if (name === "test_fn_failure") this.failed.set(test, nameOf(test));
    if (name === "test_fn_failure" || name === "hook_failure" || test?.failing) this.lost = [];
    if (name === "test_done" && !this.hasConcurrentTests) this.reportLost();
    if (name === "test_retry") this.failed.delete(test);
    if (name === "test_done") {
      if (test.failing) this.note(`the expected failure of ${nameOf(test)}`);
      this.compare();
    }
  }

  /** Return the names of what was changed, each once. */
  finish(result) {
    this.compare();
    const failures = result?.testResults?.filter(({ status }) => status === "failed").length ?? 0;
    if (!failures) this.reportLost();
    if (failures < this.failed.size) this.note(`the result of ${[...this.failed.values()][0]}`);
    const unique = Object.create(null);
    for (let at = 0; at < this.names.length; at += 1) unique[this.names[at]] = true;
    return ownKeys(unique);
  }
}

/** Jest's runner of one test file, watched. */
function watched(runner) {
  return async function (globalConfig, config, environment, runtime, testPath, ...more) {
    const watch = new Watch(environment, testPath);
    current = watch;
    const places = new Set([...(config.setupFilesAfterEnv ?? []), testPath]);
    const setGlobals = runtime.setGlobalsForRuntime;
    if (typeof setGlobals === "function") {
      runtime.setGlobalsForRuntime = function (globals) {
        const expect = globals.expect && watch.wrapExpect(globals.expect);
        return apply(setGlobals, this, [expect ? { ...globals, expect } : globals]);
      };
    }
    let hasBegun = false;
    for (const name of ["requireModule", "unstable_importModule"]) {
      const was = runtime[name];
      if (typeof was !== "function") continue;
      runtime[name] = function (path, ...rest) {
        if (!hasBegun && places.has(path)) {
          hasBegun = true;
          watch.begin();
        }
        const made = apply(was, this, [path, ...rest]);
        if (path === testPath) watch.compare(); // code may restore what it changed after the outcomes are recorded
        return made;
      };
    }
    const handle = environment.handleTestEvent;
    environment.handleTestEvent = async function (event, state) {
      watch.handle(event);
      return handle && apply(handle, this, [event, state]);
    };
    const result = await apply(runner, this, [globalConfig, config, environment, runtime, testPath, ...more]);
    const changed = watch.finish(result);
    if (result && hasBegun) result.sutureChanged = changed;
    return result;
  };
}

/** The name of a test with those of its groups. */
function nameOf(test) {
  const names = [];
  for (let one = test; one?.parent; one = one.parent) names.unshift(one.name ?? one.type);
  return names.join(" ");
}

const load = Module._load;
Module._load = function (request, ...more) {
  const made = apply(load, this, [request, ...more]);
  if (!/[\\/]jest-circus[\\/](?:build[\\/])?runner\.js$/.test(request)) return made;
  if (typeof made === "function") return watched(made);
  // Properties that Jest reads (`__esModule`) are not enumerable.
  return defineProperties({}, { ...descriptors(made), default: { value: watched(made.default), enumerable: true } });
};
