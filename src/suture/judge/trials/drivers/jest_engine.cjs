// Runs Jest repeatedly in the process that has it loaded. This file is also the reporter that Jest is given.
"use strict";
const path = require("node:path");
const { createRequire } = require("node:module");
const { numberDuplicates, selectionPattern } = require("./runner_worker.cjs");

const MAX_STACK = 2000; // characters, by judgement
let results = null;
let coverage = null;
let coveredLines = new Map();

module.exports = class {
  onTestCaseStart() {
    coverage?.take();
  }

  onTestCaseResult(test, { fullName }) {
    if (coverage) coveredLines.set(`${test.path}\0${fullName}`, coverage.take());
  }

  onRunComplete(_, allResults) {
    results = allResults;
  }
};

module.exports.start = async (common, root) => {
  const jest = createRequire(path.join(root, "package.json"))("jest");

  async function run(files, options) {
    results = null;
    coveredLines = new Map();
    coverage = options.coverage ? require("./node_coverage.cjs").startCoverage(common.texts, root) : null;
    // With `bail` or `forceExit` in the project's configuration, Jest ends the process that has it loaded.
    const stayLoaded = ["--bail=0", "--forceExit=false"];
    const own = ["--runInBand", "--silent", "--coverage=false", `--reporters=${__filename}`, ...stayLoaded];
    const selected = options.selected ? [`--testNamePattern=${selectionPattern(options.selected)}`] : [];
    const paths = files.map((file) => path.join(root, file));
    await jest.run([...common.arguments, ...own, ...selected, "--runTestsByPath", ...paths], root);
    coverage = null;
    return numberDuplicates((results?.testResults ?? []).flatMap((file) => testsOf(file)));
  }

  function testsOf({ testFilePath, testExecError: fault, failureMessage, testResults }) {
    const file = path.relative(root, testFilePath);
    if (fault || (failureMessage && testResults.length === 0)) {
      return [{ id: file, status: "failed", stack: `${fault?.stack ?? failureMessage}`.slice(0, MAX_STACK) }];
    }
    return testResults.map((test) => ({
      id: `${file}::${[...test.ancestorTitles, test.title].join(" > ")}`,
      status: { passed: "passed", failed: "failed" }[test.status] ?? "skipped",
      lines: coveredLines.get(`${testFilePath}\0${test.fullName}`),
      stack: test.failureMessages.join("\n").slice(0, MAX_STACK),
    }));
  }
  return { run, fileChanged: () => {} };
};
