// Runs Mocha repeatedly in the process that has it loaded, with a new Mocha instance for each run.
"use strict";
const path = require("node:path");
const { createRequire } = require("node:module");
const { clearRequireCache, numberDuplicates, refuseModules, selectionPattern } = require("./runner_worker.cjs");

const MAX_STACK = 2000;

exports.start = async (common, root) => {
  const projectRequire = createRequire(path.join(root, "package.json"));
  const Mocha = projectRequire("mocha");
  const mochaFolder = path.dirname(projectRequire.resolve("mocha/package.json"));
  const { loadOptions } = projectRequire("mocha/lib/cli/options");
  const options = loadOptions([...common.arguments]);
  const spec = options._.length ? options._ : ["./test"];
  const { rootHooks } = await projectRequire("mocha/lib/cli/run-helpers").handleRequires(options.require ?? []);
  const patterns = { ignore: [], file: [], recursive: false, sort: false, ...options, spec };
  const collected = projectRequire("mocha/lib/cli/collect-files")(patterns);
  const allFiles = (collected.files ?? collected).map((file) => path.relative(root, file));
  refuseModules(root, allFiles);
  process.removeAllListeners("unhandledRejection");

  async function run(files, request) {
    clearRequireCache(root, mochaFolder);
    const coverage = request.coverage ? require("./node_coverage.cjs").startCoverage(common.texts, root) : null;
    const quiet = { parallel: false, watch: false, reporter: function silent() {}, reporterOption: {} };
    const bail = !coverage && !request.selected && !request.runsAll;
    const mocha = new Mocha({ ...options, ...quiet, bail, rootHooks });
    if (request.selected) mocha.grep(new RegExp(selectionPattern(request.selected)));
    const tests = [];
    for (const file of allFiles.filter((name) => files.includes(name))) {
      try {
        mocha.files = [path.join(root, file)];
        mocha.loadFiles();
      } catch (error) {
        tests.push({ id: file, status: "failed", stack: stackOf(error) });
      }
    }
    // A file that cannot be loaded fails the whole command, whatever the other files report.
    if (tests.length && !coverage) return tests;
    const addTest = (test, status, error) => {
      const file = path.relative(root, test.file ?? root);
      const id = `${file}::${test.titlePath().join(" > ")}`;
      tests.push({ id, status, lines: coverage?.take(), stack: stackOf(error) });
    };
    await new Promise((resolve) => {
      const runner = mocha.run(resolve);
      runner.on("test", () => void coverage?.take());
      runner.on("pass", (test) => addTest(test, "passed"));
      runner.on("pending", (test) => addTest(test, "skipped"));
      runner.on("fail", (test, error) => addTest(test, "failed", error));
    });
    return numberDuplicates(tests);
  }
  return { run, files: allFiles, fileChanged: () => {}, isQuick: true };
};

function stackOf(error) {
  return error ? `${error.stack ?? error}`.slice(0, MAX_STACK) : "";
}
