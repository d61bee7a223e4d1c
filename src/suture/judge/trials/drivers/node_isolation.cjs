// Isolates candidates from each other. All of them run in our process and in one folder, so what one candidate
// leaves (stubs, environment variables, files) must be undone before the next one runs.
"use strict";
const fs = require("node:fs");
const Module = require("node:module");
const path = require("node:path");
const { pathToFileURL } = require("node:url");

const { ownKeys, defineProperty, deleteProperty, getOwnPropertyDescriptor } = Reflect;
const CLASSES = [Object, Array, Function, String, Number, Boolean, RegExp, Date, Error, Map, Set, Promise, Symbol];
const MODULES = ["fs", "fs/promises", "http", "https", "net", "dns", "child_process", "os", "path", "timers", "util"];
const GLOBALS = [
  "setTimeout",
  "clearTimeout",
  "setInterval",
  "clearInterval",
  "setImmediate",
  "clearImmediate",
  "queueMicrotask",
  "Date",
  "Math",
  "JSON",
  "console",
  "performance",
  "fetch",
  "process",
];
const PROCESS_KEYS = ["exit", "cwd", "chdir", "kill", "abort", "hrtime", "uptime", "nextTick", "emitWarning", "env", "argv"];
const IPC_KEYS = ["send", "disconnect", "connected"];
// Files of the project's folder that are restored, and their bytes. Chosen by judgement; not measured.
const MAX_FILES = 2000;
const MAX_BYTES = 1 << 25;

// Registers the loader hooks that reimport the project's modules. Returns a function that starts a new
// generation of modules and returns its number.
exports.registerReloading = (replacesNodeTest) => {
  const counter = new Int32Array(new SharedArrayBuffer(4));
  const hooks = pathToFileURL(path.join(__dirname, "node_hooks.mjs")).href;
  Module.register(hooks, { data: { counter, replacesNodeTest } });
  return () => Atomics.add(counter, 0, 1) + 1;
};

// Runs jobs from the parent process, one after the other. The IPC channel is hidden from the code under test:
// code may check whether it was forked, and in the user's own run there is no channel.
exports.serveJobs = (runJob) => {
  const descriptors = IPC_KEYS.map((key) => [key, getOwnPropertyDescriptor(process, key)]);
  const send = (line) => {
    for (const [key, descriptor] of descriptors) defineProperty(process, key, descriptor);
    try {
      process.send(line);
    } finally {
      for (const key of IPC_KEYS) deleteProperty(process, key);
    }
  };
  let queue = Promise.resolve();
  process.on("message", (job) => {
    if (!Number.isInteger(job?.number)) return;
    queue = queue.then(async () => send({ ...(await runJob(job)), number: job.number }));
  });
  for (const key of IPC_KEYS) deleteProperty(process, key);
};

// Remembers the built-in objects of the language and, with `includesNode`, those of Node. Returns a function that
// restores them and returns whether anything had to be restored: a package may have changed them when it was loaded,
// and must be loaded again then.
exports.snapshotGlobals = (includesNode) => {
  const objects = [...CLASSES, ...CLASSES.map((constructor) => constructor.prototype), JSON, Math];
  if (includesNode) objects.push(console, ...MODULES.map((name) => require(`node:${name}`)));
  const tracked = objects.map((object) => [object, ownKeys(object), true]);
  if (includesNode) tracked.push([globalThis, GLOBALS, false], [process, PROCESS_KEYS, false]);
  const saved = tracked.map(([object, keys, removesNew]) => [
    object,
    removesNew,
    keys.map((key) => [key, getOwnPropertyDescriptor(object, key)]),
  ]);
  const env = { ...process.env };
  const folder = process.cwd();
  return () => {
    let changed = false;
    for (const [object, removesNew, properties] of saved) {
      const keys = new Set(properties.map(([key]) => key));
      for (const key of removesNew ? ownKeys(object) : []) {
        if (!keys.has(key)) changed = deleteProperty(object, key) || changed;
      }
      for (const [key, descriptor] of properties) {
        if (descriptor && !isSameProperty(descriptor, getOwnPropertyDescriptor(object, key))) {
          changed = defineProperty(object, key, descriptor) || changed;
        }
      }
    }
    if (!includesNode) return changed;
    for (const name of Object.keys(process.env)) if (!(name in env)) changed = delete process.env[name];
    for (const name of Object.keys(env).filter((key) => process.env[key] !== env[key])) {
      process.env[name] = env[name];
      changed = true;
    }
    if (process.cwd() !== folder) process.chdir(folder);
    process.exitCode = undefined;
    return changed;
  };
};

function isSameProperty(saved, current) {
  return Boolean(current) && ["value", "get", "set"].every((part) => Object.is(saved[part], current[part]));
}

// Remembers the files of the project's folder. Returns a function that restores them. Installed packages and
// names that begin with a dot, such as caches, stay as they are.
exports.snapshotFolder = (root, driverFolder) => {
  const files = new Map();
  const folders = new Map();
  let bytes = 0;
  const isExcluded = (folder) => folder === driverFolder || ["node_modules", ".git"].includes(path.basename(folder));
  const visit = (folder) => {
    const entries = fs.readdirSync(folder, { withFileTypes: true });
    folders.set(folder, new Set(entries.map(({ name }) => name)));
    for (const entry of entries) {
      const file = path.join(folder, entry.name);
      if (entry.isDirectory() && !isExcluded(file)) visit(file);
      if (!entry.isFile() || files.size >= MAX_FILES) continue;
      const { size, mtimeMs } = fs.statSync(file);
      bytes += size;
      if (bytes <= MAX_BYTES) files.set(file, { size, mtimeMs, content: fs.readFileSync(file) });
    }
  };
  visit(root);
  const restoreFolder = (folder, names) => {
    if (!fs.lstatSync(folder, { throwIfNoEntry: false })?.isDirectory()) {
      fs.rmSync(folder, { force: true });
      fs.mkdirSync(folder, { recursive: true });
    }
    for (const name of fs.readdirSync(folder).filter((entry) => !names.has(entry) && !entry.startsWith("."))) {
      fs.rmSync(path.join(folder, name), { recursive: true, force: true });
    }
  };
  const restoreFile = (file, saved) => {
    const current = fs.lstatSync(file, { throwIfNoEntry: false });
    if (current?.isFile() && current.size === saved.size && current.mtimeMs === saved.mtimeMs) return;
    if (current && !current.isFile()) fs.rmSync(file, { recursive: true, force: true });
    fs.writeFileSync(file, saved.content);
    saved.mtimeMs = fs.statSync(file).mtimeMs;
  };
  return () => {
    for (const [folder, names] of folders) ignoreErrors(() => restoreFolder(folder, names));
    for (const [file, saved] of files) ignoreErrors(() => restoreFile(file, saved));
  };
};

// What cannot be restored stays as it is: a trial may then differ, but the verdict comes from another run.
function ignoreErrors(action) {
  try {
    action();
  } catch {}
}
