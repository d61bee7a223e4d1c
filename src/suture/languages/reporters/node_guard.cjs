// Loaded first in each process of node:test that runs a file of tests: at its end, `node:assert` must still find
// faults, as tests get it then. A process in which it finds none has decided nothing, and ends as failed.
"use strict";
const { reallyExit } = process;
const { apply } = Reflect;
const { writeSync } = require("node:fs");

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

if (process.env.NODE_TEST_CONTEXT) {
  require("node:assert"); // no file may be the first to have it
  process.on("exit", () => {
    const assert = require("node:assert");
    const found = idle(assert) ?? idle(assert.strict);
    if (!found) return;
    writeSync(2, "Error: node:assert was changed so that it finds no fault\n");
    apply(reallyExit, process, [1]);
  });
}
