// Runs a project's tests repeatedly with the project's own runner, which stays loaded, each time with a candidate's
// text in one file.
//
// An engine's `start` returns an object with `run`, which runs files and returns their tests, and with `fileChanged`,
// which is called when a file has another text. It may have `files`, all test files that the runner finds by itself.
// `runsWholeFiles` says that it cannot select tests. `isQuick` says that a run is cheap enough for a second one, and
// that the tests share the globals of this process.
"use strict";
const fs = require("node:fs");
const path = require("node:path");
const { registerReloading, serveJobs, snapshotGlobals } = require("./node_isolation.cjs");

let packagesAreStale = false;

exports.serve = async (common, root, ready) => {
  const nextGeneration = common.uses_import ? registerReloading(false) : () => {};
  const runner = await require(`./${common.engine}.cjs`).start(common, root);
  const restoreGlobals = snapshotGlobals(runner.isQuick);
  const restore = () => {
    packagesAreStale = restoreGlobals() || packagesAreStale;
  };

  // Runs all tests of some files on the unchanged code: how each ended, and the lines that it ran.
  async function runBaseline(job) {
    const startedAt = performance.now();
    const files = runner.files ?? job.test_files;
    const tests = await runner.run(files, { coverage: true });
    // The first run also fills the runner's caches, which every process does once. A quick runner is timed in a
    // second run without coverage.
    let ms = (performance.now() - startedAt) / 2;
    if (runner.isQuick) {
      const restartedAt = performance.now();
      await runner.run(files, { runsAll: true });
      ms = performance.now() - restartedAt;
    }
    restore();
    return { event: "baseline", tests: [...tests, { id: "", ms }] };
  }

  // Tries a candidate in rounds: the target tests alone; then the test files that run the changed file; then all
  // others, since what a file runs while it is loaded is not covered.
  async function tryCandidate(job) {
    const changedFile = path.join(root, job.path);
    const targets = common.target_tests;
    fs.writeFileSync(changedFile, job.text);
    try {
      runner.fileChanged(changedFile);
      const covering = common.covering_files[job.path] ?? common.test_files;
      const failing = common.test_files.filter((file) => targets.some((id) => fileOfTest(id) === file));
      const near = [...new Set([...failing, ...covering])];
      const rounds = [[near, null], [common.test_files.filter((file) => !near.includes(file)), null]];
      if (common.targets_alone && !runner.runsWholeFiles) rounds.unshift([failing, targets]);
      // Most candidates fix nothing, and the file with the fewest failing tests shows that soonest.
      if (common.targets_alone && failing.length > 1) {
        const targetsIn = (file) => targets.filter((id) => fileOfTest(id) === file);
        const fewest = failing.reduce((best, file) => (targetsIn(file).length < targetsIn(best).length ? file : best));
        rounds.unshift([[fewest], targetsIn(fewest)]);
      }
      for (const [files, selected] of rounds.filter(([some]) => some.length > 0)) {
        nextGeneration();
        const tests = await runner.run(files, { selected: selected?.map(nameOfTest) });
        const passed = new Set(tests.filter(({ status }) => status === "passed").map(({ id }) => id));
        const failed = tests.find(({ id, status }) => status === "failed" && !common.ignored_failures.includes(id));
        if (failed) {
          return { passes: false, failed_test: failed.id, passed_tests: targets.filter((id) => passed.has(id)) };
        }
        const expected = (selected ?? common.expected_passes).filter((id) => files.includes(fileOfTest(id)));
        const missing = expected.find((id) => id.includes("::") && !passed.has(id));
        const ranNothing = passed.size === 0 && files.some((file) => near.includes(file));
        if (missing || ranNothing) return { passes: false, failed_test: missing ?? "", passed_tests: [] };
      }
      return { passes: true };
    } finally {
      fs.writeFileSync(changedFile, common.texts[job.path]);
      runner.fileChanged(changedFile);
      restore();
    }
  }

  ready();
  serveJobs(async (job) => (job.test_files ? runBaseline(job) : { event: "trial", ...(await tryCandidate(job)) }));
};

function fileOfTest(id) {
  return id.split("::")[0];
}

function nameOfTest(id) {
  return id.slice(id.indexOf("::") + 2).replace(/ #\d+$/, "");
}

// Returns the pattern by which Jest, Vitest and Mocha select tests. They match it against a test's names joined by
// blanks. Our ids join them by " > ", which may also be part of a name, as may a number at the end. Some versions
// of Vitest put a blank in front.
exports.selectionPattern = (selected) => {
  const names = selected.map((name) => name.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&").split(" > ").join("(?: >)? "));
  return `^ ?(?:${names.join("|")})(?: #\\d+)?$`;
};

// Numbers tests of one file that have the same name, as the report does.
exports.numberDuplicates = (tests) => {
  const counts = new Map();
  return tests.map((test) => {
    const count = (counts.get(test.id) ?? 0) + 1;
    counts.set(test.id, count);
    return count > 1 ? { ...test, id: `${test.id} #${count}` } : test;
  });
};

// Drops the project's modules from the cache of `require`, and its packages when restored globals may have undone
// what they did while they were loaded. Our own files, the runner's folder and native modules stay.
exports.clearRequireCache = (root, runnerFolder = "") => {
  for (const name of Object.keys(require.cache)) {
    const isPackage = name.includes("/node_modules/");
    const isRunner = runnerFolder && name.startsWith(`${runnerFolder}/`);
    const stays = name.startsWith(`${__dirname}/`) || isRunner || name.endsWith(".node");
    if (!stays && (isPackage ? packagesAreStale : name.startsWith(`${root}/`))) delete require.cache[name];
  }
  packagesAreStale = false;
};

// Fails for a project whose test files `import` loads: the module cache would keep the first candidate for ever.
exports.refuseModules = (root, files) => {
  const manifest = path.join(root, "package.json");
  const type = fs.existsSync(manifest) ? JSON.parse(fs.readFileSync(manifest, "utf8")).type : "";
  if (type === "module" || files.some((name) => /\.m[jt]s$/.test(name))) {
    throw new Error("modules that `import` loads cannot be reimported");
  }
};
