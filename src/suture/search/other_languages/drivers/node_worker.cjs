// Runs test files again and again in one process, each time with new code in one file of the project.
"use strict";
const fs = require("node:fs");
const Module = require("node:module");
const path = require("node:path");
const { pathToFileURL } = require("node:url");
const { mock } = require("node:test");
const { anew, answer, kept } = require("./node_kept.cjs");
const { harness, shim } = require("./node_shim.cjs");

// Rounds of loops between two looks at the clock.
const ROUNDS = 256;
const ENDLESS = "Timeout: a loop takes too long";
// CPU time of a test of the unchanged code, and of those behind one that had to be ended.
const LOOK_MS = 500;
const NEXT_LOOK_MS = 250;
// Of the tests that failed before, those that a candidate may fail until it is given up, and the time for them: which
// of them it mends tells what to go on from.
const MOST_WRONG = 8;
const WRONG_MS = 200;

exports.serve = (common, root, ready) => {
  const putBack = kept(true);
  let spoiled = false;
  let number = 0;
  let failed = null;
  const state = { harness: null };
  const clock = ticking();
  globalThis.sutureTests = shim(state);
  const load = Module._load;
  Module._load = function (request, ...rest) {
    return request === "node:test" ? globalThis.sutureTests : load.call(this, request, ...rest);
  };
  const next = common.esm ? anew(true) : () => number + 1;
  for (const fault of ["uncaughtException", "unhandledRejection"]) {
    process.on(fault, (error) => {
      failed ??= error;
      state.harness?.broke(error);
    });
  }

  async function run(file, chosen, onEnd, onBegin) {
    const ended = (told) => {
      const spent = clock.restart();
      return onEnd({ ...told, spent });
    };
    clock.restart();
    state.harness = harness(chosen, ended, onBegin);
    const own = path.join(root, file);
    const before = listening();
    try {
      if (isModule(own)) await import(`${pathToFileURL(own).href}?suture=${number}`);
      else require(own);
      await state.harness.done();
    } catch (error) {
      ended({ names: [], status: "failed", error });
    }
    // Each file has a process of its own by node: what it set going, and what a test that failed left behind to
    // listen, must not reach the next.
    await new Promise((resolve) => setImmediate(resolve));
    for (const [event, known] of listening()) {
      const old = before.get(event) ?? [];
      for (const one of known) if (!old.includes(one)) process.removeListener(event, one);
    }
    mock.reset();
    spoiled = putBack() || spoiled;
  }

  function isModule(file) {
    if (/\.m[jt]s$/.test(file)) return true;
    if (/\.c[jt]s$/.test(file)) return false;
    for (let at = path.dirname(file); at.startsWith(root); at = path.dirname(at)) {
      const told = path.join(at, "package.json");
      if (fs.existsSync(told)) return JSON.parse(fs.readFileSync(told, "utf8")).type === "module";
    }
    return false;
  }

  function forget() {
    for (const name of Object.keys(require.cache)) {
      const isPackage = name.includes("/node_modules/");
      const stays = name.startsWith(`${__dirname}/`) || name.endsWith(".node");
      if (!stays && (isPackage ? spoiled : name.startsWith(`${root}/`))) delete require.cache[name];
    }
    spoiled = false;
  }

  // All tests of some files, as they are: how each ended, and the lines that it ran.
  async function look(job) {
    const coverage = require("./node_coverage.cjs").coverage(common.texts, root);
    const tests = [];
    for (const [file, text] of Object.entries(job.texts ?? {})) fs.writeFileSync(path.join(root, file), text);
    clock.most_ms = LOOK_MS;
    for (const file of job.files) {
      const seen = new Map();
      let endless_ms = 0;
      forget();
      coverage.take();
      const began = performance.now();
      await run(file, null, ({ names, status, error, spent }) => {
        const id = numbered(seen, named(file, names));
        const stack = String(error?.stack ?? error ?? "").slice(0, 2000);
        tests.push({ id, status, lines: coverage.take(), stack, cpu_ms: spent });
        if (spent > clock.most_ms) {
          endless_ms += spent;
          clock.most_ms = NEXT_LOOK_MS;
        }
      }, coverage.take);
      tests.push({ id: "", file, ms: Math.max(0, performance.now() - began - endless_ms) });
    }
    for (const file of Object.keys(job.texts ?? {})) fs.writeFileSync(path.join(root, file), common.texts[file]);
    return { event: "look", tests };
  }

  // Whether a candidate passes: the tests that failed, by themselves; then all that are known to pass.
  async function attempt(job) {
    fs.writeFileSync(path.join(root, job.path), job.text);
    clock.most_ms = common.most_cpu_ms ?? Infinity;
    const until = performance.now() + (common.wrong_ms ?? WRONG_MS);
    try {
      for (const chosen of common.alone ? [new Set(common.guiding), null] : [null]) {
        const passed = new Set();
        let first = "";
        let wrongs = 0;
        for (const file of common.files) {
          if (chosen && !common.guiding.some((id) => id === file || id.startsWith(`${file}::`))) continue;
          const seen = new Map();
          let wrong = "";
          let over = false;
          failed = null;
          forget();
          number = next();
          await run(file, chosen, ({ names, status, error }) => {
            const id = numbered(seen, named(file, names));
            if (status === "passed") passed.add(id);
            else if (status === "failed" && !common.ignored.includes(id)) {
              wrong ||= id;
              wrongs += 1;
              const late = performance.now() > until || error?.message === ENDLESS;
              over = !chosen || late || wrongs >= MOST_WRONG || !common.guiding.includes(id);
            }
            return over;
          });
          if (failed && !wrong) wrong = file;
          first ||= wrong;
          if (first && (over || failed || !chosen)) break;
        }
        if (first) return { ok: false, failed: first, passed: common.guiding.filter((id) => passed.has(id)) };
        const wanted = chosen ? common.guiding : common.wanted;
        const missing = wanted.find((id) => id.includes("::") && !passed.has(id));
        if (missing || passed.size === 0) return { ok: false, failed: missing ?? "", passed: [...passed].slice(0, 50) };
      }
      return { ok: true };
    } finally {
      fs.writeFileSync(path.join(root, job.path), common.texts[job.path]);
    }
  }

  ready();
  answer(async (job) => {
    number = next();
    return job.files ? look(job) : { event: "trial", ...(await attempt(job)) };
  });
};

// CPU time since the last test ended: a loop of the changed file that goes on for longer is ended.
function ticking() {
  let rounds = 0;
  let since = process.cpuUsage();
  const clock = { most_ms: Infinity, restart };
  const spent = () => {
    const { user, system } = process.cpuUsage(since);
    return (user + system) / 1000;
  };
  function restart() {
    const all = spent();
    since = process.cpuUsage();
    return all;
  }
  globalThis.sutureTick = () => {
    rounds += 1;
    if (rounds % ROUNDS === 0 && spent() > clock.most_ms) throw new Error(ENDLESS);
  };
  return clock;
}

function listening() {
  return new Map(process.eventNames().map((event) => [event, process.listeners(event)]));
}

function named(file, names) {
  return names.length ? `${file}::${names.join(" > ")}` : file;
}

function numbered(seen, id) {
  const count = (seen.get(id) ?? 0) + 1;
  seen.set(id, count);
  return count > 1 ? `${id} #${count}` : id;
}
