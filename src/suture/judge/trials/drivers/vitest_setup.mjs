// Records which lines each test runs. Coverage must be read in the thread that runs the test.
import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { afterEach, beforeEach } from "vitest";

const folder = path.join(process.env.SUTURE_LINES, "..");
const require = createRequire(path.join(folder, "vitest_setup.mjs"));
const { texts } = JSON.parse(fs.readFileSync(path.join(folder, "plan.json"), "utf8")).common;
const coverage = require("./node_coverage.cjs").startCoverage(texts, process.env.SUTURE_ROOT);

function namesOf(task) {
  const outer = task.suite && task.suite.name ? namesOf(task.suite) : [];
  return [...outer, task.name];
}

beforeEach(() => void coverage.take());
afterEach(({ task }) => {
  const row = { file: task.file.filepath, names: namesOf(task), lines: coverage.take() };
  fs.appendFileSync(process.env.SUTURE_LINES, `${JSON.stringify(row)}\n`);
});
