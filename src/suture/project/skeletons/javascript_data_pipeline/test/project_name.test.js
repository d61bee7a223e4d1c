"use strict";

const assert = require("node:assert");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const { test } = require("node:test");

const { main } = require("../src/index");
const pipeline/*: Record<string, any> */ = require("../src/pipeline");
const { readRows } = require("../src/tables");

const SAMPLE = path.join(__dirname, "..", "sample_path");
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "project_name-"));

/** Process a copy of the rows, and say which error stops the pipeline. */
async function processCopy(rows/*: Record<string, any>[] */) {
  assert.strictEqual(typeof pipeline.processRows, "function", "src/pipeline.js exports no function `processRows`.");
  try {
    return await pipeline.processRows(structuredClone(rows));
  } catch (error) {
    return assert.fail(`processRows(${JSON.stringify(rows.slice(0, 1))} ...) crashes with ${error}`);
  }
}

/** Return another value of the same type. */
function change(cell/*: unknown */) {
  if (typeof cell === "number") return cell * 2 + 1;
  return cell && `${cell} changed`;
}

test("the sample has a result", async () => {
  const result = await processCopy(readRows(SAMPLE));
  assert.ok(result && Object.keys(result).length > 0, "The result for the sample data is empty.");
  assert.strictEqual(typeof result, "object", "`processRows` returns a string. Return an object or an array of objects; the caller writes it.");
});

test("the result depends on the data", async () => {
  const rows = readRows(SAMPLE);
  const changed = rows.map((row) => Object.fromEntries(Object.entries(row).map(([name, cell]) => [name, change(cell)])));
  const results/*: string[] */ = [];
  for (const given of [rows, changed, rows.slice(0, 1)]) results.push(JSON.stringify(await processCopy(given)));
  assert.ok(new Set(results).size > 1, "The result does not depend on the data: other data have the same result.");
});

test("the same data have the same result", async () => {
  const rows = readRows(SAMPLE);
  assert.deepStrictEqual(await processCopy(rows), await processCopy(rows));
});

test("a table without rows is refused", async () => {
  const empty = path.join(folder, "empty.csv");
  fs.writeFileSync(empty, "name,amount\n");
  const errors/*: string[] */ = [];
  const code = await main([empty, path.join(folder, "result.json")], assert.fail, (text) => errors.push(text));
  assert.strictEqual(code, 1);
  assert.match(errors.join("\n"), /has no rows/);
});

test("each column may be empty", async () => {
  const rows = readRows(SAMPLE);
  for (const column of Object.keys(rows[0])) await processCopy(rows.map((row) => ({ ...row, [column]: null })));
});

test("the result is written", async () => {
  const output = path.join(folder, "result.json");
  const errors/*: string[] */ = [];
  const code = await main([SAMPLE, output], assert.fail, (text) => errors.push(text));
  assert.strictEqual(code, 0, errors.join("\n"));
  assert.ok(JSON.parse(fs.readFileSync(output, "utf8")));
});
