// Mocha, with a new run for each candidate in the process that has it loaded.
"use strict";
const path = require("node:path");
const { createRequire } = require("node:module");
const { forget, numbered, pattern, refuseModules } = require("./runner_worker.cjs");

const STACK = 2000;

exports.start = async (common, root) => {
  const own = createRequire(path.join(root, "package.json"));
  const Mocha = own("mocha");
  const folder = path.dirname(own.resolve("mocha/package.json"));
  const { loadOptions } = own("mocha/lib/cli/options");
  const told = loadOptions([...common.words]);
  const spec = told._.length ? told._ : ["./test"];
  const { rootHooks } = await own("mocha/lib/cli/run-helpers").handleRequires(told.require ?? []);
  const paths = { ignore: [], file: [], recursive: false, sort: false, ...told, spec };
  const found = own("mocha/lib/cli/collect-files")(paths);
  const all = (found.files ?? found).map((file) => path.relative(root, file));
  refuseModules(root, all);
  process.removeAllListeners("unhandledRejection");

  async function run(files, more) {
    forget(root, folder);
    const coverage = more.coverage ? require("./node_coverage.cjs").coverage(common.texts, root) : null;
    const quiet = { parallel: false, watch: false, reporter: function silent() {}, reporterOption: {} };
    const mocha = new Mocha({ ...told, ...quiet, bail: !coverage && !more.chosen && !more.whole, rootHooks });
    if (more.chosen) mocha.grep(new RegExp(pattern(more.chosen)));
    const ended = [];
    for (const file of all.filter((one) => files.includes(one))) {
      try {
        mocha.files = [path.join(root, file)];
        mocha.loadFiles();
      } catch (error) {
        ended.push({ id: file, status: "failed", stack: stackOf(error) });
      }
    }
    // Those that do not load end the command, whatever the others say.
    if (ended.length && !coverage) return ended;
    const tell = (test, status, error) => {
      const file = path.relative(root, test.file ?? root);
      const id = `${file}::${test.titlePath().join(" > ")}`;
      ended.push({ id, status, lines: coverage?.take(), stack: stackOf(error) });
    };
    await new Promise((resolve) => {
      const runner = mocha.run(resolve);
      runner.on("test", () => void coverage?.take());
      runner.on("pass", (test) => tell(test, "passed"));
      runner.on("pending", (test) => tell(test, "skipped"));
      runner.on("fail", (test, error) => tell(test, "failed", error));
    });
    return numbered(ended);
  }
  return { run, files: all, changed: () => {}, quick: true };
};

function stackOf(error) {
  return error ? `${error.stack ?? error}`.slice(0, STACK) : "";
}
