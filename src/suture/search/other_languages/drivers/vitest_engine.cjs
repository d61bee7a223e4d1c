// Vitest, whose server stays up from run to run. Its workers are threads: they end with this process.
"use strict";
const fs = require("node:fs");
const path = require("node:path");
const { createRequire } = require("node:module");
const { pathToFileURL } = require("node:url");
const { numbered, pattern } = require("./runner_worker.cjs");

const STACK = 2000;
const SETUP = path.join(__dirname, "vitest_setup.mjs");
const LINES = path.join(__dirname, "lines");

exports.start = async (common, root) => {
  const where = createRequire(path.join(root, "package.json")).resolve("vitest/node");
  const { createVitest, parseCLI } = await import(pathToFileURL(where).href);
  const { options } = parseCLI(["vitest", "run", ...common.words], { allowUnknownOptions: true });
  const own = { watch: false, run: true, pool: "threads", coverage: { enabled: false }, bail: 0, reporters: [{}] };
  const vitest = await createVitest("test", { ...options, ...own, fileParallelism: false });
  const glob = (files) => (vitest.globTestSpecifications ?? vitest.globTestSpecs).call(vitest, files);
  const specs = await glob([]);
  const fileOf = (spec) => path.relative(root, spec.moduleId ?? spec[1]);
  process.env.SUTURE_LINES = LINES;
  process.env.SUTURE_ROOT = root;

  async function run(files, more) {
    const chosen = specs.filter((spec) => files.includes(fileOf(spec)));
    const names = more.chosen ? new RegExp(pattern(more.chosen)) : undefined;
    const was = vitest.projects.map((one) => one.config.setupFiles);
    if (names) vitest.setGlobalTestNamePattern(names);
    else vitest.resetGlobalTestNamePattern();
    if (more.coverage) for (const one of vitest.projects) one.config.setupFiles = [...one.config.setupFiles, SETUP];
    try {
      await (vitest.runTestSpecifications ?? vitest.runFiles).call(vitest, chosen, false);
    } finally {
      vitest.projects.forEach((one, at) => (one.config.setupFiles = was[at]));
    }
    const ran = more.coverage ? seen() : new Map();
    const paths = new Set(files.map((file) => path.join(root, file)));
    const tests = vitest.state.getFiles().filter((file) => paths.has(file.filepath));
    return numbered(tests.flatMap((file) => ended(file, ran)));
  }

  function ended(file, ran) {
    const found = [];
    const own = path.relative(root, file.filepath);
    const add = (task, names) => {
      const state = task.result?.state;
      const error = task.result?.errors?.[0];
      const id = [own, names.join(" > ")].filter(Boolean).join("::");
      const status = state === "pass" ? "passed" : state === "fail" || state === "run" ? "failed" : "skipped";
      const stack = String(error?.stack ?? error?.message ?? "").slice(0, STACK);
      found.push({ id, status, lines: ran.get(`${file.filepath}\0${names.join(" > ")}`), stack });
    };
    const visit = (task, names) => {
      const inner = [...names, task.name];
      for (const one of task.tasks ?? []) visit(one, inner);
      if (task.type !== "suite" || task.result?.errors?.length) add(task, inner);
    };
    if (file.result?.errors?.length) add(file, []);
    for (const task of file.tasks) visit(task, []);
    return found;
  }

  function changed(file) {
    vitest.invalidateFile(file);
  }
  return { run, changed };
};

function seen() {
  if (!fs.existsSync(LINES)) return new Map();
  const told = fs.readFileSync(LINES, "utf8").trim().split("\n").filter(Boolean);
  return new Map(told.map((line) => JSON.parse(line)).map(({ file, names, lines }) => [`${file}\0${names.join(" > ")}`, lines]));
}
