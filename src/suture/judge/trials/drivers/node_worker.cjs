// Runs `node:test` files repeatedly in one process, each time with a candidate's text in one file of the project.
"use strict";
const fs = require("node:fs");
const Module = require("node:module");
const path = require("node:path");
const { pathToFileURL } = require("node:url");
const { mock } = require("node:test");
const { registerReloading, serveJobs, snapshotGlobals } = require("./node_isolation.cjs");
const { createHarness, createShim } = require("./node_test_shim.cjs");

// The numbers here are chosen by judgement; not measured.
// Loop iterations between two readings of the CPU clock.
const ITERATIONS_PER_READING = 256;
const ENDLESS_LOOP = "Timeout: a loop takes too long";
// CPU time of a test in the baseline run, and of the tests after one that had to be interrupted.
const BASELINE_TEST_MS = 500;
const LATER_BASELINE_TEST_MS = 250;
// Target tests that a candidate may fail before it is abandoned, and the time for them. The search extends
// candidates that fix some of the target tests, so it is worth knowing which.
const MAX_FAILED_TARGETS = 8;
const FAILED_TARGETS_MS = 200;
const MAX_STACK = 2000;
const MAX_REPORTED_PASSES = 50;

exports.serve = (common, root, ready) => {
  const restoreGlobals = snapshotGlobals(true);
  let packagesAreStale = false;
  let generation = 0;
  let asyncFault = null;
  const state = { harness: null };
  const clock = installLoopClock();
  globalThis.sutureTests = createShim(state);
  const load = Module._load;
  Module._load = function (request, ...rest) {
    return request === "node:test" ? globalThis.sutureTests : load.call(this, request, ...rest);
  };
  const nextGeneration = common.uses_import ? registerReloading(true) : () => generation + 1;
  for (const event of ["uncaughtException", "unhandledRejection"]) {
    process.on(event, (error) => {
      asyncFault ??= error;
      state.harness?.failRunningTest(error);
    });
  }

  async function runFile(file, selected, onEnd, onFirstTest) {
    const finish = (result) => onEnd({ ...result, cpu_ms: clock.restart() });
    clock.restart();
    state.harness = createHarness(selected, finish, onFirstTest);
    const absolute = path.join(root, file);
    const listenersBefore = currentListeners();
    try {
      if (isEsModule(absolute)) await import(`${pathToFileURL(absolute).href}?suture=${generation}`);
      else require(absolute);
      await state.harness.done();
    } catch (error) {
      finish({ names: [], status: "failed", error });
    }
    // Node runs each file in a process of its own. Pending callbacks and the listeners that a failed test left
    // remaining must not reach the next file.
    await new Promise((resolve) => setImmediate(resolve));
    for (const [event, listeners] of currentListeners()) {
      const previous = listenersBefore.get(event) ?? [];
      for (const listener of listeners) if (!previous.includes(listener)) process.removeListener(event, listener);
    }
    mock.reset();
    packagesAreStale = restoreGlobals() || packagesAreStale;
  }

  function isEsModule(file) {
    if (/\.m[jt]s$/.test(file)) return true;
    if (/\.c[jt]s$/.test(file)) return false;
    for (let folder = path.dirname(file); folder.startsWith(root); folder = path.dirname(folder)) {
      const manifest = path.join(folder, "package.json");
      if (fs.existsSync(manifest)) return JSON.parse(fs.readFileSync(manifest, "utf8")).type === "module";
    }
    return false;
  }

  function clearRequireCache() {
    for (const name of Object.keys(require.cache)) {
      const isPackage = name.includes("/node_modules/");
      const stays = name.startsWith(`${__dirname}/`) || name.endsWith(".node");
      if (!stays && (isPackage ? packagesAreStale : name.startsWith(`${root}/`))) delete require.cache[name];
    }
    packagesAreStale = false;
  }

  // Runs all tests of some files on the unchanged code: how each ended, and the lines that it ran.
  async function runBaseline(job) {
    const coverage = require("./node_coverage.cjs").startCoverage(common.texts, root);
    const tests = [];
    for (const [file, text] of Object.entries(job.texts ?? {})) fs.writeFileSync(path.join(root, file), text);
    clock.max_ms = BASELINE_TEST_MS;
    for (const file of job.test_files) {
      const counts = new Map();
      let interruptedMs = 0;
      clearRequireCache();
      coverage.take();
      const startedAt = performance.now();
      const onEnd = ({ names, status, error, cpu_ms }) => {
        const id = numberDuplicate(counts, testId(file, names));
        const stack = String(error?.stack ?? error ?? "").slice(0, MAX_STACK);
        tests.push({ id, status, lines: coverage.take(), stack, cpu_ms });
        if (cpu_ms > clock.max_ms) {
          interruptedMs += cpu_ms;
          clock.max_ms = LATER_BASELINE_TEST_MS;
        }
      };
      await runFile(file, null, onEnd, coverage.take);
      tests.push({ id: "", file, ms: Math.max(0, performance.now() - startedAt - interruptedMs) });
    }
    for (const file of Object.keys(job.texts ?? {})) fs.writeFileSync(path.join(root, file), common.texts[file]);
    return { event: "baseline", tests };
  }

  // Tries a candidate: first the target tests alone, then all tests that are known to pass.
  async function tryCandidate(job) {
    fs.writeFileSync(path.join(root, job.path), job.text);
    clock.max_ms = common.max_cpu_ms ?? Infinity;
    const deadline = performance.now() + (common.failed_targets_ms ?? FAILED_TARGETS_MS);
    const targets = common.target_tests;
    try {
      for (const selected of common.targets_alone ? [new Set(targets), null] : [null]) {
        const passed = new Set();
        let firstFailed = "";
        let failures = 0;
        for (const file of common.test_files) {
          if (selected && !targets.some((id) => id === file || id.startsWith(`${file}::`))) continue;
          const counts = new Map();
          let failedHere = "";
          let isOver = false;
          asyncFault = null;
          clearRequireCache();
          generation = nextGeneration();
          await runFile(file, selected, ({ names, status, error }) => {
            const id = numberDuplicate(counts, testId(file, names));
            if (status === "passed") passed.add(id);
            else if (status === "failed" && !common.ignored_failures.includes(id)) {
              failedHere ||= id;
              failures += 1;
              const isLate = performance.now() > deadline || error?.message === ENDLESS_LOOP;
              isOver = !selected || isLate || failures >= MAX_FAILED_TARGETS || !targets.includes(id);
            }
            return isOver;
          });
          if (asyncFault && !failedHere) failedHere = file;
          firstFailed ||= failedHere;
          if (firstFailed && (isOver || asyncFault || !selected)) break;
        }
        if (firstFailed) {
          return { passes: false, failed_test: firstFailed, passed_tests: targets.filter((id) => passed.has(id)) };
        }
        const expected = selected ? targets : common.expected_passes;
        const missing = expected.find((id) => id.includes("::") && !passed.has(id));
        if (missing || passed.size === 0) {
          const some = [...passed].slice(0, MAX_REPORTED_PASSES);
          return { passes: false, failed_test: missing ?? "", passed_tests: some };
        }
      }
      return { passes: true };
    } finally {
      fs.writeFileSync(path.join(root, job.path), common.texts[job.path]);
    }
  }

  ready();
  serveJobs(async (job) => {
    generation = nextGeneration();
    return job.test_files ? runBaseline(job) : { event: "trial", ...(await tryCandidate(job)) };
  });
};

// Measures CPU time since the last test ended. A loop of the changed file that runs for longer than `max_ms` is
// interrupted: the driver has inserted a call of `sutureTick` into each loop.
function installLoopClock() {
  let iterations = 0;
  let since = process.cpuUsage();
  const clock = { max_ms: Infinity, restart };
  const spentMs = () => {
    const { user, system } = process.cpuUsage(since);
    return (user + system) / 1000;
  };
  function restart() {
    const spent = spentMs();
    since = process.cpuUsage();
    return spent;
  }
  globalThis.sutureTick = () => {
    iterations += 1;
    if (iterations % ITERATIONS_PER_READING === 0 && spentMs() > clock.max_ms) throw new Error(ENDLESS_LOOP);
  };
  return clock;
}

function currentListeners() {
  return new Map(process.eventNames().map((event) => [event, process.listeners(event)]));
}

function testId(file, names) {
  return names.length ? `${file}::${names.join(" > ")}` : file;
}

function numberDuplicate(counts, id) {
  const count = (counts.get(id) ?? 0) + 1;
  counts.set(id, count);
  return count > 1 ? `${id} #${count}` : id;
}
