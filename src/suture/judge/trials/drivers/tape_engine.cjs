// Runs tape repeatedly: each test file gets its own tape instance, whose result stream is read here.
"use strict";
const path = require("node:path");
const { createRequire } = require("node:module");
const { clearRequireCache, numberDuplicates, refuseModules } = require("./runner_worker.cjs");

const MAX_STACK = 2000;
// Time limit of one file: a file that waits for its process to end would wait for ever here.
const FILE_TIMEOUT_MS = 3000;

exports.start = async (common, root) => {
  refuseModules(root, common.test_files);
  const projectRequire = createRequire(path.join(root, "package.json"));
  const tapePath = projectRequire.resolve("tape");
  let onAsyncFault = () => {};
  for (const event of ["uncaughtException", "unhandledRejection"]) process.on(event, (error) => onAsyncFault(error));

  async function run(files, request) {
    clearRequireCache(root);
    const coverage = request.coverage ? require("./node_coverage.cjs").startCoverage(common.texts, root) : null;
    const tests = [];
    for (const file of files) {
      const results = await runFile(file, coverage);
      tests.push(...results);
      if (!coverage && !request.runsAll && results.some(({ status }) => status === "failed")) break;
    }
    return numberDuplicates(tests);
  }

  async function runFile(file, coverage) {
    delete require.cache[tapePath];
    const exitListeners = new Set(process.listeners("exit"));
    const tape = projectRequire("tape");
    const tests = new Map();
    let current = null;
    const readRow = (row) => {
      if (row.type === "test") {
        coverage?.take();
        current = { id: `${file}::${row.name}`, status: row.skip || row.todo ? "skipped" : "passed", stack: "" };
        tests.set(row.id, current);
      } else if (row.type === "assert" && !row.ok && !row.todo && tests.get(row.test)?.status === "passed") {
        const test = tests.get(row.test);
        test.status = "failed";
        test.stack = `${row.name}: ${row.expected} ${row.actual}\n${row.error?.stack ?? ""}`.slice(0, MAX_STACK);
      } else if (row.type === "end" && tests.has(row.test)) tests.get(row.test).lines ??= coverage?.take();
    };
    tape.createStream({ objectMode: true }).on("data", readRow);
    const fault = await new Promise((resolve) => {
      const timer = setTimeout(() => resolve(new Error("the file does not end by itself")), FILE_TIMEOUT_MS);
      const finish = (error) => {
        clearTimeout(timer);
        resolve(error);
      };
      onAsyncFault = finish;
      tape.onFinish(() => finish(null));
      try {
        projectRequire(path.join(root, file));
      } catch (error) {
        finish(error);
      }
    });
    for (const listener of process.listeners("exit")) {
      if (!exitListeners.has(listener)) process.off("exit", listener);
    }
    if (fault && current) {
      Object.assign(current, { status: "failed", stack: stackOf(fault), lines: current.lines ?? coverage?.take() });
    } else if (fault) tests.set(null, { id: file, status: "failed", stack: stackOf(fault), lines: coverage?.take() });
    return [...tests.values()];
  }
  return { run, fileChanged: () => {}, runsWholeFiles: true, isQuick: true };
};

function stackOf(error) {
  return `${error?.stack ?? error}`.slice(0, MAX_STACK);
}
