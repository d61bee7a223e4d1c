// Loaded first in each process of node:test that runs a test file. At its end, `node:assert`, as tests get it then, must
// still detect failures. A process in which it does not has decided nothing, and fails. This also reports what was
// changed of `node:assert` and of the language's own classes, and failed assertions that code under test may have caught.
"use strict";
const { findCalledBackLine, findTestPlaces, watchAssertionErrors } = require("./answers.cjs");
const { append, Baseline } = require("./realm_baseline.cjs");
const { reallyExit } = process;
const { apply } = Reflect;
const { stringify } = JSON;
const { writeSync } = require("node:fs");
const { inspect } = require("node:util");

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

/** Note functions of `node:assert` that are others than at the beginning; to make one strict is to make it no weaker. */
function findChangedAsserts(kept, strict, note) {
  for (let at = 0; at < kept.length; at += 1) {
    const { owner, key, value } = kept[at];
    if (owner[key] !== value && owner[key] !== strict[key]) note(`assert.${key}`);
  }
}

/** Failed assertions that are reported; tests that expect failures may have many. */
const MAX_NOTED = 200;
/** Characters of a failed assertion's message by which the reporter recognises it. */
const MAX_MESSAGE = 300;

/** Note failed assertions of the test, and whether code under test called the function that they are in. */
function noteFailures(AssertionError, noted) {
  const testPath = process.argv[1];
  watchAssertionErrors(AssertionError, (error) => {
    if (!noted.isOpen || noted.length >= MAX_NOTED) return;
    const line = findCalledBackLine(testPath);
    const places = findTestPlaces(testPath);
    if (line === undefined && places === undefined) return;
    append(noted, `${stringify({ line, places, message: `${error.message}`.slice(0, MAX_MESSAGE) })}`);
  });
}

if (process.env.NODE_TEST_CONTEXT) {
  const first = require("node:assert"); // before any project file can load it
  const strict = { ...first.strict };
  const kept = [first, first.strict].flatMap((owner) =>
    Object.keys(owner).map((key) => ({ owner, key, value: owner[key] })),
  );
  const say = writeSync;
  const noted = Object.assign([], { isOpen: true });
  const realm = new Baseline();
  realm.addRealm(globalThis);
  realm.addInspection(inspect);
  // What it returns is searched for the places of failed assertions.
  realm.add("Error.prepareStackTrace", Error, "prepareStackTrace");
  noteFailures(first.AssertionError, noted);
  process.on("exit", () => {
    noted.isOpen = false;
    for (let at = 0; at < noted.length; at += 1) say(2, `suture: an assertion failed ${noted[at]}\n`);
    // The reporter reads these lines. The run on the user's own code shows whether a change is a fault.
    const note = (name) => say(2, `suture: the code or its tests changed ${name}\n`);
    findChangedAsserts(kept, strict, note);
    realm.findChanges(note);
    const assert = require("node:assert");
    const found = idle(assert) ?? idle(assert.strict);
    if (!found) return;
    say(2, "Error: node:assert was changed so that it finds no fault\n");
    apply(reallyExit, process, [1]);
  });
}
