// Vitest's own test runner, with a check of everything that decides the outcome of tests: at the end of each test, it
// must be the same as before the project was loaded. It shares a realm with the code, so it uses nothing that code
// could change.
import * as vitest from "vitest";
import { VitestTestRunner } from "vitest/runners";

const { apply, ownKeys } = Reflect;
const { getOwnPropertyDescriptor: own, defineProperty: define, getPrototypeOf, assign } = Object;
const REALM = ["Object", "Function", "Array", "String", "Number", "Boolean", "Symbol", "BigInt", "RegExp", "Promise"];
REALM.push("Map", "Set", "WeakMap", "WeakSet", "Error", "TypeError", "RangeError", "Reflect", "Proxy", "JSON");
const WORDS = ["expect", "assert", "it", "test", "describe", "suite", "beforeAll", "beforeEach", "afterEach", "afterAll"];
const shared = globalThis[Symbol.for("$$jest-matchers-object")];
const kept = [];
let changed = "";
let failed = "";
let meta = {};

/** The value of a property, or its getter or setter, by its descriptor. */
function valueOf(found) {
  return found && ("value" in found ? found.value : (found.get ?? found.set));
}

function keep(name, owner, key) {
  const value = valueOf(own(owner, key));
  if (typeof value === "function") kept[kept.length] = [name, owner, key, value];
}

function keepAll(name, owner) {
  for (const key of ownKeys(owner)) if (key !== "constructor") keep(`${name}.${String(key)}`, owner, key);
}

for (const name of REALM) {
  keep(name, globalThis, name);
  keepAll(name, globalThis[name]);
  if (globalThis[name].prototype) keepAll(`${name}.prototype`, globalThis[name].prototype);
}
for (const name of WORDS) {
  keep(name, globalThis, name);
  if (typeof vitest[name] === "function") keepAll(name, vitest[name]);
}
if (shared?.matchers) keepAll("expect()", shared.matchers);
keepAll("chai.Assertion", getPrototypeOf(vitest.expect(0)));
if (vitest.chai) keepAll("chai.util", vitest.chai.util);
const testers = shared?.customEqualityTesters;
const known = testers?.length;

/** Note what has changed since the beginning. */
function look() {
  for (let at = 0; at < kept.length; at += 1) {
    const part = kept[at];
    if (valueOf(own(part[1], part[2])) !== part[3]) changed += `${part[0]}\n`;
  }
  if (testers && testers.length !== known) changed += "expect's testers of equality\n";
}

/** Store the changes where the reporter reads them: in the data that Vitest sends about a file. */
function tell() {
  look();
  define(meta, "sutureChanged", { value: changed, enumerable: true, configurable: true });
}

/** Have one of the runner's methods called with a look before or after it. */
function watch(runner, name, before, after) {
  const was = runner[name];
  const value = async (...given) => {
    before?.(given[0]);
    const made = was && (await apply(was, runner, given));
    after?.(given[0]);
    return made;
  };
  define(runner, name, { value, writable: true, configurable: true });
}

export default class extends VitestTestRunner {
  constructor(config) {
    super(config);
    watch(this, "importFile", undefined, look);
    watch(this, "onTaskFinished", (test) => {
      failed = test.result?.state === "fail" ? test.id : "";
    });
    watch(this, "onAfterRunTask", (test) => {
      const wanted = test.fails ? "pass" : "fail";
      if (failed === test.id && test.result?.state !== wanted) changed += `the result of ${test.name}\n`;
      tell();
    });
    watch(this, "onBeforeRunSuite", (suite) => {
      if (!suite.filepath) return;
      define(suite, "meta", { value: (meta = assign({}, suite.meta)), writable: true });
      tell();
    });
  }
}
