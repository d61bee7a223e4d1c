// Runs Vitest repeatedly with one server. Its workers are threads, so that they end with this process.
"use strict";
const fs = require("node:fs");
const path = require("node:path");
const { createRequire } = require("node:module");
const { pathToFileURL } = require("node:url");
const { numberDuplicates, selectionPattern } = require("./runner_worker.cjs");

const MAX_STACK = 2000;
const SETUP_FILE = path.join(__dirname, "vitest_setup.mjs");
const LINES_FILE = path.join(__dirname, "lines");

exports.start = async (common, root) => {
  const modulePath = createRequire(path.join(root, "package.json")).resolve("vitest/node");
  const { createVitest, parseCLI } = await import(pathToFileURL(modulePath).href);
  const { options } = parseCLI(["vitest", "run", ...common.arguments], { allowUnknownOptions: true });
  // An empty reporter prints nothing.
  const own = { watch: false, run: true, pool: "threads", coverage: { enabled: false }, bail: 0, reporters: [{}] };
  const vitest = await createVitest("test", { ...options, ...own, fileParallelism: false });
  // These methods were renamed between the versions of Vitest.
  const findSpecifications = (files) => (vitest.globTestSpecifications ?? vitest.globTestSpecs).call(vitest, files);
  const specifications = await findSpecifications([]);
  const fileOf = (specification) => path.relative(root, specification.moduleId ?? specification[1]);
  process.env.SUTURE_LINES = LINES_FILE;
  process.env.SUTURE_ROOT = root;

  async function run(files, request) {
    const chosen = specifications.filter((specification) => files.includes(fileOf(specification)));
    const pattern = request.selected ? new RegExp(selectionPattern(request.selected)) : undefined;
    const setupFiles = vitest.projects.map((project) => project.config.setupFiles);
    if (pattern) vitest.setGlobalTestNamePattern(pattern);
    else vitest.resetGlobalTestNamePattern();
    if (request.coverage) {
      for (const project of vitest.projects) project.config.setupFiles = [...project.config.setupFiles, SETUP_FILE];
    }
    try {
      await (vitest.runTestSpecifications ?? vitest.runFiles).call(vitest, chosen, false);
    } finally {
      vitest.projects.forEach((project, index) => (project.config.setupFiles = setupFiles[index]));
    }
    const covered = request.coverage ? readCoveredLines() : new Map();
    const paths = new Set(files.map((file) => path.join(root, file)));
    const ran = vitest.state.getFiles().filter((file) => paths.has(file.filepath));
    return numberDuplicates(ran.flatMap((file) => testsOf(file, covered)));
  }

  function testsOf(file, covered) {
    const tests = [];
    const relative = path.relative(root, file.filepath);
    const addTask = (task, names) => {
      const state = task.result?.state;
      const error = task.result?.errors?.[0];
      const id = [relative, names.join(" > ")].filter(Boolean).join("::");
      const status = state === "pass" ? "passed" : state === "fail" || state === "run" ? "failed" : "skipped";
      const stack = String(error?.stack ?? error?.message ?? "").slice(0, MAX_STACK);
      tests.push({ id, status, lines: covered.get(`${file.filepath}\0${names.join(" > ")}`), stack });
    };
    const visit = (task, outerNames) => {
      const names = [...outerNames, task.name];
      for (const inner of task.tasks ?? []) visit(inner, names);
      if (task.type !== "suite" || task.result?.errors?.length) addTask(task, names);
    };
    if (file.result?.errors?.length) addTask(file, []);
    for (const task of file.tasks) visit(task, []);
    return tests;
  }

  function fileChanged(file) {
    vitest.invalidateFile(file);
  }
  return { run, fileChanged };
};

// Returns what `vitest_setup.mjs` has written: file and test names -> path -> lines.
function readCoveredLines() {
  if (!fs.existsSync(LINES_FILE)) return new Map();
  const rows = fs.readFileSync(LINES_FILE, "utf8").trim().split("\n").filter(Boolean).map((row) => JSON.parse(row));
  return new Map(rows.map(({ file, names, lines }) => [`${file}\0${names.join(" > ")}`, lines]));
}
