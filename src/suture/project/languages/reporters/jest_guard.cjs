// Loaded first in each process of Jest. Everything that decides the outcome of tests must be the same at the end of a
// file as before the project was loaded. This runs outside of the realm of tests and code, and reports differences.
"use strict";
const Module = require("node:module");
const { apply, ownKeys } = Reflect;
const { getOwnPropertyDescriptor: own, getOwnPropertySymbols: symbolsOf } = Object;
const { getOwnPropertyDescriptors: descriptors, defineProperties } = Object;

const REALM = ["Object", "Function", "Array", "String", "Number", "Boolean", "Symbol", "BigInt", "RegExp", "Promise"];
REALM.push("Map", "Set", "WeakMap", "WeakSet", "Error", "TypeError", "RangeError", "Reflect", "Proxy", "JSON");
const GLOBALS = ["expect", "it", "test", "describe", "fit", "xit", "xtest", "fdescribe", "xdescribe"];
GLOBALS.push("beforeAll", "beforeEach", "afterEach", "afterAll");
const MATCHERS = Symbol.for("$$jest-matchers-object");

/** What decides, each as it was: [name, owner, key, value]. */
class Kept {
  parts = [];

  keep(name, owner, key) {
    const found = own(owner, key);
    const value = found && ("value" in found ? found.value : (found.get ?? found.set));
    if (typeof value === "function") this.parts.push([name, owner, key, value]);
  }

  keepAll(name, owner) {
    for (const key of ownKeys(owner)) if (key !== "constructor") this.keep(`${name}.${String(key)}`, owner, key);
  }

  keepRealm(global) {
    for (const name of REALM) {
      const one = global[name];
      this.keep(name, global, name);
      if (one) this.keepAll(name, one);
      if (one?.prototype) this.keepAll(`${name}.prototype`, one.prototype);
    }
  }

  keepGlobals(global) {
    for (const name of GLOBALS) {
      this.keep(name, global, name);
      if (typeof global[name] === "function") this.keepAll(name, global[name]);
    }
    const { matchers, customEqualityTesters: testers } = global[MATCHERS] ?? {};
    if (matchers) this.keepAll("expect()", matchers);
    if (testers) this.lists = [["expect's testers of equality", testers, [...testers]]];
    for (const symbol of symbolsOf(global)) {
      const list = global[symbol];
      if (Array.isArray(list)) (this.lists ??= []).push([symbol.description, list, [...list]]);
    }
  }

  changed() {
    const names = [];
    for (const [name, owner, key, value] of this.parts) {
      const found = own(owner, key);
      if (!found || ("value" in found ? found.value : (found.get ?? found.set)) !== value) names.push(name);
    }
    for (const [name, list, was] of this.lists ?? []) {
      if (list.length !== was.length || was.some((one, at) => list[at] !== one)) names.push(name);
    }
    return names;
  }
}

/** Jest's runner of one test file, with a look at everything kept after the file is loaded and after each test. */
function watched(runner) {
  return async function (globalConfig, config, environment, runtime, testPath, ...more) {
    const kept = new Kept();
    const found = new Set();
    const failed = new Map();
    kept.keepRealm(environment.global);
    const outer = new Kept();
    outer.keepRealm(globalThis);
    const look = () => [...kept.changed(), ...outer.changed()].forEach((name) => found.add(name));
    const places = new Set([...(config.setupFilesAfterEnv ?? []), testPath]);
    let begun = false;
    for (const name of ["requireModule", "unstable_importModule"]) {
      const was = runtime[name];
      if (typeof was !== "function") continue;
      runtime[name] = function (path, ...rest) {
        if (!begun && places.has(path)) {
          begun = true;
          kept.keepGlobals(environment.global);
        }
        const made = apply(was, this, [path, ...rest]);
        if (path === testPath) look(); // code may restore what it changed after the outcomes are recorded
        return made;
      };
    }
    const handle = environment.handleTestEvent;
    environment.handleTestEvent = async function (event, state) {
      if (event.name === "test_fn_failure") failed.set(event.test, nameOf(event.test));
      if (event.name === "test_retry") failed.delete(event.test);
      if (event.name === "test_done") look();
      return handle && apply(handle, this, [event, state]);
    };
    const result = await apply(runner, this, [globalConfig, config, environment, runtime, testPath, ...more]);
    look();
    const wrong = result?.testResults?.filter(({ status }) => status === "failed").length ?? 0;
    if (wrong < failed.size) found.add(`the result of ${[...failed.values()][0]}`);
    if (result && begun) result.sutureChanged = [...found];
    return result;
  };
}

function nameOf(test) {
  const names = [];
  for (let one = test; one?.parent; one = one.parent) names.unshift(one.name);
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
