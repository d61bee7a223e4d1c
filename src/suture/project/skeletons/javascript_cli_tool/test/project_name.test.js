"use strict";

const assert = require("node:assert");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const { test } = require("node:test");

// The data of the tests are in a folder of their own. The environment may name the user's data.
delete process.env.PROJECT_NAME_FILE;
process.chdir(fs.mkdtempSync(path.join(os.tmpdir(), "project_name-")));
const commands/*: Record<string, any> */ = require("../src/commands");
const { main } = require("../src/index");
const { load } = require("../src/store");

/** Run the program and return its exit code and what it printed. */
async function run(words/*: string[] */) {
  const lines/*: string[] */ = [];
  const write = (text/*: string */) => lines.push(String(text));
  const { log } = console;
  console.log = write;
  try {
    return { code: await main(words, write, write), output: lines.join("\n").trim() };
  } catch (error) {
    return assert.fail(`The command "${words.join(" ")}" crashes with ${error}`);
  } finally {
    console.log = log;
  }
}

test("there is a command", () => {
  assert.ok(Object.keys(commands).length > 0, "src/commands.js exports no command.");
});

test("there is a help page", async () => {
  const { code, output } = await run(["--help"]);
  assert.strictEqual(code, 0);
  assert.ok(output);
});

test("each command has the right form", () => {
  for (const [name, command] of Object.entries(commands)) {
    assert.strictEqual(typeof command.run, "function", `The command "${name}" has no function "run".`);
    assert.ok(command.help, `The command "${name}" has no "help".`);
    assert.ok(Array.isArray(command.args ?? []), `"args" of the command "${name}" is not an array.`);
  }
});

test("each command does something, and one succeeds", async () => {
  const codes/*: number[] */ = [];
  for (const [name, { args = [] }] of Object.entries(commands)) {
    const before = JSON.stringify(load(null));
    const words = [name, ...args.map(() => "1")];
    const { code, output } = await run(words);
    const changed = JSON.stringify(load(null)) !== before;
    assert.ok(output || changed, `The command "${words.join(" ")}" prints and saves nothing.`);
    codes.push(code);
  }
  assert.ok(codes.length === 0 || codes.includes(0), "Each command fails.");
});
