// Tape: each file has an instance of its own, which is asked what it hears of its tests.
"use strict";
const path = require("node:path");
const { createRequire } = require("node:module");
const { forget, numbered, refuseModules } = require("./runner_worker.cjs");

const STACK = 2000;
// The unchanged code's files, in all: one that waits for the process to end would wait for ever here.
const FILE_MS = 3000;

exports.start = async (common, root) => {
  refuseModules(root, common.files);
  const own = createRequire(path.join(root, "package.json"));
  const tapePath = own.resolve("tape");
  let broke = () => {};
  for (const fault of ["uncaughtException", "unhandledRejection"]) process.on(fault, (error) => broke(error));

  async function run(files, more) {
    forget(root);
    const coverage = more.coverage ? require("./node_coverage.cjs").coverage(common.texts, root) : null;
    const ended = [];
    for (const file of files) {
      const tests = await one(file, coverage);
      ended.push(...tests);
      if (!coverage && !more.whole && tests.some(({ status }) => status === "failed")) break;
    }
    return numbered(ended);
  }

  async function one(file, coverage) {
    delete require.cache[tapePath];
    const before = new Set(process.listeners("exit"));
    const tape = own("tape");
    const known = new Map();
    let last = null;
    const hear = (row) => {
      if (row.type === "test") {
        coverage?.take();
        last = { id: `${file}::${row.name}`, status: row.skip || row.todo ? "skipped" : "passed", stack: "" };
        known.set(row.id, last);
      } else if (row.type === "assert" && !row.ok && !row.todo && known.get(row.test)?.status === "passed") {
        const told = known.get(row.test);
        told.status = "failed";
        told.stack = `${row.name}: ${row.expected} ${row.actual}\n${row.error?.stack ?? ""}`.slice(0, STACK);
      } else if (row.type === "end" && known.has(row.test)) known.get(row.test).lines ??= coverage?.take();
    };
    tape.createStream({ objectMode: true }).on("data", hear);
    const fault = await new Promise((resolve) => {
      const timer = setTimeout(() => resolve(new Error("the file does not end by itself")), FILE_MS);
      const done = (error) => {
        clearTimeout(timer);
        resolve(error);
      };
      broke = done;
      tape.onFinish(() => done(null));
      try {
        own(path.join(root, file));
      } catch (error) {
        done(error);
      }
    });
    for (const listener of process.listeners("exit")) if (!before.has(listener)) process.off("exit", listener);
    if (fault && last) {
      Object.assign(last, { status: "failed", stack: stackOf(fault), lines: last.lines ?? coverage?.take() });
    } else if (fault) known.set(null, { id: file, status: "failed", stack: stackOf(fault), lines: coverage?.take() });
    return [...known.values()];
  }
  return { run, changed: () => {}, whole: true, quick: true };
};

function stackOf(error) {
  return `${error?.stack ?? error}`.slice(0, STACK);
}
