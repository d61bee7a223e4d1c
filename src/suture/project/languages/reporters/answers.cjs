// Inspects the values that tests compare. Code under test can return a value that decides by itself what it equals,
// and can catch the failure of an assertion that runs in a callback. This file shares a realm with such code in
// Vitest, so it uses nothing that code could change.
"use strict";
const { isProxy } = require("node:util").types;
const { apply, get, getPrototypeOf, ownKeys } = Reflect;
const { getOwnPropertyDescriptor: own, defineProperty: define } = Object;
const { has, add } = Set.prototype;
const { forEach: eachInSet } = Set.prototype;
const { forEach: eachInMap } = Map.prototype;
const { exec } = RegExp.prototype;
const [NewError, NewSet] = [Error, Set];

/** Objects that are inspected per assertion. An equality that takes longer than this many would be slow itself. */
const MAX_OBJECTS = 20000;
/** Frames of the stack that are searched for code between an assertion and its test. */
const MAX_FRAMES = 50;
const FRAME = /[\s(](?:file:\/\/)?(\/[^\s():]+):(\d+):\d+\)?$/; // not the end of `node:internal/timers:581:17`
const LIBRARY = /\/(?:node_modules|_suture)\//;
const NOT_CODE = /\/(?:node_modules|_suture|__tests__|__mocks__|tests?|specs?)\/|[._-](?:test|spec|setup|config)\.\w+$/;

/** A function of `node:assert` that expects what the functions inside throw. */
const EXPECTS_ERROR = /\b(?:throws|rejects) \(node:assert/;

function isObject(value) {
  return (typeof value === "object" && value !== null) || typeof value === "function";
}

/** Whether an object has a method that assertions call instead of comparing it. */
function isMatcher(object) {
  for (let at = object; isObject(at) && !isProxy(at); at = getPrototypeOf(at)) {
    const found = own(at, "asymmetricMatch");
    // An accessor could give a method to the assertion only.
    if (found) return "get" in found ? found.get !== undefined : typeof found.value === "function";
  }
  return typeof get(object, "asymmetricMatch") === "function";
}

/**
 * Whether a value is or contains a matcher, except for those whose prototypes include `known`. Accessors are called
 * only if `thorough`, because tests may count their calls.
 */
exports.containsMatcher = (value, thorough, known) => {
  const queue = isObject(value) ? [value] : [];
  const seen = new NewSet();
  const visit = (one) => {
    if (!isObject(one) || apply(has, seen, [one]) || queue.length >= MAX_OBJECTS) return;
    apply(add, seen, [one]);
    queue[queue.length] = one;
  };
  try {
    for (let at = 0; at < queue.length; at += 1) {
      if (known && inherits(queue[at], known)) continue;
      if (isMatcher(queue[at])) return true;
      visitParts(queue[at], visit, thorough);
    }
  } catch {
    // The value throws when it is read, and so it does for the assertion.
  }
  return false;
};

function inherits(object, prototype) {
  for (let at = object; at !== null; at = getPrototypeOf(at)) if (at === prototype) return true;
  return false;
}

function visitParts(object, visit, thorough) {
  if (typeof object === "function" && !object._isMockFunction) return;
  // The calls of a mock are what `toHaveBeenCalledWith` compares.
  if (typeof object === "function") visit(get(object.mock, "calls"));
  const keys = ownKeys(object);
  for (let at = 0; at < keys.length; at += 1) {
    const found = own(object, keys[at]);
    if (!found?.enumerable) continue;
    if ("value" in found) visit(found.value);
    else if (thorough) visit(get(object, keys[at]));
  }
  try {
    apply(eachInSet, object, [visit]);
  } catch {
    // It is no set.
  }
  try {
    apply(eachInMap, object, [(value, key) => (visit(value), visit(key))]);
  } catch {
    // It is no map.
  }
}

/** Whether a promise decides by itself what happens to it: the assertion that awaits it may never run. */
exports.isOwnPromise = (value, classes) => {
  if (!isObject(value) || typeof get(value, "then") !== "function") return false;
  for (let at = 0; at < classes.length; at += 1) {
    const { then } = classes[at].prototype;
    if (get(value, "then") === then && get(value, "constructor") === classes[at]) return false;
  }
  return true;
};

/** Test frames that are named for a failed assertion. */
const MAX_PLACES = 8;

/** The lines of the current stack. */
function readStack() {
  const { stackTraceLimit } = NewError;
  NewError.stackTraceLimit = MAX_FRAMES;
  const lines = `${new NewError().stack}`.split("\n");
  NewError.stackTraceLimit = stackTraceLimit;
  return lines;
}

/** The file of code under test that called the current function; undefined if only tests and libraries did. */
exports.findCallingCode = (testPath) => {
  const lines = readStack();
  for (let at = 1; at < lines.length; at += 1) {
    const path = apply(exec, FRAME, [lines[at]])?.[1];
    if (path && path !== testPath && !apply(exec, NOT_CODE, [path])) return path;
  }
  return undefined;
};

/**
 * Where tests stand that made the current assertion, as `path:line`, the innermost first; undefined if code under test
 * made it, or if `node:assert` expects it to fail. Line 0 stands for any line: a promise may have left no frame.
 */
exports.findTestPlaces = (testPath) => {
  const lines = readStack();
  let places = "";
  let count = 0;
  for (let at = 1; at < lines.length && count < MAX_PLACES; at += 1) {
    if (apply(exec, EXPECTS_ERROR, [lines[at]])) return undefined;
    const frame = apply(exec, FRAME, [lines[at]]);
    const path = frame?.[1];
    if (!path || apply(exec, LIBRARY, [path])) continue;
    const isTest = path === testPath || apply(exec, NOT_CODE, [path]) !== null;
    if (!isTest && count === 0) return undefined;
    if (!isTest) continue;
    places += `${count ? " " : ""}${path}:${frame[2]}`;
    count += 1;
  }
  return places || `${testPath}:0`;
};

/** Call a function whenever `node:assert` makes an error, which gets the error. */
exports.watchAssertionErrors = (AssertionError, note) => {
  const key = "generatedMessage";
  // The constructor assigns this property of each error, so that it calls an inherited setter.
  const set = function (value) {
    define(this, key, { value, writable: true, enumerable: true, configurable: true });
    note(this);
  };
  define(AssertionError.prototype, key, { get: () => undefined, set, configurable: false });
};

/**
 * The line of a test that called the current function, if code under test called that part of the test and could catch
 * what it throws; otherwise undefined. Assertions of the code itself belong to it.
 */
exports.findCalledBackLine = (testPath) => {
  const lines = readStack();
  let place;
  let isCalledBack = false;
  for (let at = 1; at < lines.length; at += 1) {
    if (apply(exec, EXPECTS_ERROR, [lines[at]])) return undefined;
    const frame = apply(exec, FRAME, [lines[at]]);
    const path = frame?.[1];
    if (!path || apply(exec, LIBRARY, [path])) continue;
    const isTest = path === testPath || apply(exec, NOT_CODE, [path]) !== null;
    if (place === undefined && !isTest) return undefined;
    place ??= +frame[2];
    isCalledBack ||= !isTest;
  }
  return isCalledBack ? place : undefined;
};
