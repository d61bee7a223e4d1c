// Loaded first in each process of node:test that runs a test file. At its end, `node:assert`, as tests get it then, must
// still detect failures. A process in which it does not has decided nothing, and fails. This also reports which
// functions were replaced, and failed assertions that code under test may have caught.
"use strict";
const { findCalledBackLine } = require("./answers.cjs");
const { reallyExit } = process;
const { apply } = Reflect;
const { defineProperty: define } = Object;
const { stringify } = JSON;
const { writeSync } = require("node:fs");

/** The first check of `node:assert` that accepts what it must refuse; undefined if all refuse. */
function idle(assert) {
  const wrong = [
    [assert, false],
    [assert.ok, false],
    [assert.equal, 1, 2],
    [assert.notEqual, 1, 1],
    [assert.strictEqual, 1, 2],
    [assert.notStrictEqual, 1, 1],
    [assert.deepEqual, [1], [2]],
    [assert.notDeepEqual, [1], [1]],
    [assert.deepStrictEqual, { a: 1 }, { a: 2 }],
    [assert.notDeepStrictEqual, { a: 1 }, { a: 1 }],
    [assert.match, "a", /b/],
    [assert.throws, () => {}],
    [assert.ifError, new Error("is one")],
    [assert.fail, "is one"],
  ];
  return wrong.find(([check, ...given]) => {
    try {
      apply(check, assert, given);
      return true;
    } catch {
      return false;
    }
  });
}

/** Functions of `node:assert` that are others than at the beginning; to make one strict is to make it no weaker. */
function changed(kept, strict) {
  const others = kept.filter(({ owner, key, value }) => owner[key] !== value && owner[key] !== strict[key]);
  return [...new Set(others.map(({ key }) => `assert.${key}`))];
}

/** Failed assertions that are reported, each by its line. */
const MAX_NOTED = 20;
/** Characters of a failed assertion's message by which the reporter recognises it. */
const MAX_MESSAGE = 300;

/** Note failed assertions of the test in functions that code under test called. */
function noteFailures(AssertionError, noted) {
  const [key, testPath] = ["generatedMessage", process.argv[1]];
  // The constructor assigns this property of each error, so that it calls an inherited setter.
  const set = function (value) {
    define(this, key, { value, writable: true, enumerable: true, configurable: true });
    const line = noted.isOpen && noted.length < MAX_NOTED ? findCalledBackLine(testPath) : undefined;
    if (line === undefined) return;
    const item = `${stringify({ line, message: `${this.message}`.slice(0, MAX_MESSAGE) })}`;
    define(noted, noted.length, { value: item, writable: true, enumerable: true, configurable: true });
  };
  define(AssertionError.prototype, key, { get: () => undefined, set, configurable: false });
}

if (process.env.NODE_TEST_CONTEXT) {
  const first = require("node:assert"); // before any project file can load it
  const strict = { ...first.strict };
  const kept = [first, first.strict].flatMap((owner) =>
    Object.keys(owner).map((key) => ({ owner, key, value: owner[key] })),
  );
  const say = writeSync;
  const noted = Object.assign([], { isOpen: true });
  noteFailures(first.AssertionError, noted);
  process.on("exit", () => {
    noted.isOpen = false;
    for (let at = 0; at < noted.length; at += 1) say(2, `suture: an assertion failed ${noted[at]}\n`);
    // The reporter reads this line. The run on the user's own code shows whether it is a fault.
    const names = changed(kept, strict);
    if (names.length) say(2, `suture: the code or its tests changed ${names.join(" ")}\n`);
    const assert = require("node:assert");
    const found = idle(assert) ?? idle(assert.strict);
    if (!found) return;
    say(2, "Error: node:assert was changed so that it finds no fault\n");
    apply(reallyExit, process, [1]);
  });
}
