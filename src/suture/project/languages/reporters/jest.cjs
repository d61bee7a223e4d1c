// Reports the tests of Jest after all files have run.
"use strict";
const { basename } = require("node:path");
const signing = require("./signing.cjs");
signing.hide(module);

module.exports = class {
  constructor({ collectCoverageFrom: wanted } = {}) {
    // Suture's files must not count for the project's coverage.
    if (wanted?.length) wanted.push(`!**/${basename(__dirname)}/**`);
  }

  onRunStart() {
    signing.write({ event: "begin" });
  }

  onRunComplete(_, results) {
    for (const { testFilePath: file, testExecError: fault, failureMessage, testResults, ...more } of results.testResults) {
      if (Array.isArray(more.sutureChanged)) signing.write({ event: "watched", file, changed: more.sutureChanged });
      if (fault || (failureMessage && testResults.length === 0)) {
        const text = fault?.message ?? failureMessage;
        const stack = `${fault?.stack ?? ""}\n${failureMessage ?? ""}`;
        signing.write({ event: "test", file, names: [], status: "failed", message: text, stack });
      }
      for (const test of testResults) {
        const status = { passed: "passed", failed: "failed" }[test.status] ?? "skipped";
        const stack = test.failureMessages.join("\n");
        const matched = test.failureDetails?.[0]?.matcherResult;
        signing.write({
          event: "test",
          file,
          names: [...test.ancestorTitles, test.title],
          status,
          message: stack.split(/\n\s+at /)[0],
          stack,
          expected: signing.shown(matched?.expected),
          got: signing.shown(matched?.actual),
          line: test.location?.line,
        });
      }
    }
    signing.write({ event: "end" });
  }
};
