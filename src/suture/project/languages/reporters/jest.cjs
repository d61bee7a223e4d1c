// Reports the tests of Jest, those of each file when it has run. In a run with one worker, code under test shares this
// process: it can find the key then, but cannot change what was reported of earlier files.
"use strict";
const { basename } = require("node:path");
const signing = require("./signing.cjs");
signing.hide(module);
const { write } = signing.openReport();
const { shown } = signing;

/** Report one test. */
function writeTest(file, test) {
  const status = { passed: "passed", failed: "failed" }[test.status] ?? "skipped";
  const stack = test.failureMessages.join("\n");
  const matched = test.failureDetails?.[0]?.matcherResult;
  write({
    event: "test",
    file,
    names: [...test.ancestorTitles, test.title],
    status,
    message: stack.split(/\n\s+at /)[0],
    stack,
    expected: shown(matched?.expected),
    got: shown(matched?.actual),
    line: test.location?.line,
  });
}

module.exports = class {
  constructor({ collectCoverageFrom: wanted } = {}) {
    // Suture's files must not count for the project's coverage.
    if (wanted?.length) wanted.push(`!**/${basename(__dirname)}/**`);
  }

  onRunStart() {
    write({ event: "begin" });
  }

  onTestResult(_, { testFilePath: file, testExecError: fault, failureMessage, testResults, sutureChanged }) {
    if (Array.isArray(sutureChanged)) write({ event: "watched", file, changed: sutureChanged });
    if (fault || (failureMessage && testResults.length === 0)) {
      const text = fault?.message ?? failureMessage;
      const stack = `${fault?.stack ?? ""}\n${failureMessage ?? ""}`;
      write({ event: "test", file, names: [], status: "failed", message: text, stack });
    }
    for (let at = 0; at < testResults.length; at += 1) writeTest(file, testResults[at]);
  }

  onRunComplete() {
    write({ event: "end" });
  }
};
