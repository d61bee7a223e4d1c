// Jest, started anew for each run in the process that has it loaded; also the reporter that it is given.
"use strict";
const path = require("node:path");
const { createRequire } = require("node:module");
const { numbered, pattern } = require("./runner_worker.cjs");

const STACK = 2000;
let results = null;
let coverage = null;
let lines = new Map();

module.exports = class {
  onTestCaseStart() {
    coverage?.take();
  }

  onTestCaseResult(test, { fullName }) {
    if (coverage) lines.set(`${test.path}\0${fullName}`, coverage.take());
  }

  onRunComplete(_, all) {
    results = all;
  }
};

module.exports.start = async (common, root) => {
  const jest = createRequire(path.join(root, "package.json"))("jest");

  async function run(files, more) {
    results = null;
    lines = new Map();
    coverage = more.coverage ? require("./node_coverage.cjs").coverage(common.texts, root) : null;
    // With a `bail` or a `forceExit` of the project's configuration, Jest ends the process that has it loaded.
    const stay = ["--bail=0", "--forceExit=false"];
    const own = ["--runInBand", "--silent", "--coverage=false", `--reporters=${__filename}`, ...stay];
    const chosen = more.chosen ? [`--testNamePattern=${pattern(more.chosen)}`] : [];
    const paths = files.map((file) => path.join(root, file));
    await jest.run([...common.words, ...own, ...chosen, "--runTestsByPath", ...paths], root);
    coverage = null;
    return numbered((results?.testResults ?? []).flatMap((file) => ended(file)));
  }

  function ended({ testFilePath, testExecError: fault, failureMessage, testResults }) {
    const file = path.relative(root, testFilePath);
    if (fault || (failureMessage && testResults.length === 0)) {
      return [{ id: file, status: "failed", stack: `${fault?.stack ?? failureMessage}`.slice(0, STACK) }];
    }
    return testResults.map((test) => ({
      id: `${file}::${[...test.ancestorTitles, test.title].join(" > ")}`,
      status: { passed: "passed", failed: "failed" }[test.status] ?? "skipped",
      lines: lines.get(`${testFilePath}\0${test.fullName}`),
      stack: test.failureMessages.join("\n").slice(0, STACK),
    }));
  }
  return { run, changed: () => {} };
};
