"use strict";

const assert = require("node:assert");
const { spawnSync } = require("node:child_process");
const { test } = require("node:test");

const library = require("../src/index");

test("it offers a function or class", () => {
  const offered = Object.values(library).filter((value) => typeof value === "function");
  assert.ok(offered.length > 0, "src/index.js exports no function and no class.");
});

test("it prints nothing and starts nothing when it is loaded", () => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [...process.execArgv, require.resolve("../src/index")], { timeout: 20000 });
  assert.strictEqual(`${stdout}${stderr}`, "");
  assert.strictEqual(status, 0);
});
