// Code under test shares a process with us, and a folder; the candidates behind it must not meet what it left.
"use strict";
const fs = require("node:fs");
const Module = require("node:module");
const path = require("node:path");
const { pathToFileURL } = require("node:url");

const { ownKeys, defineProperty, deleteProperty, getOwnPropertyDescriptor } = Reflect;
const CLASSES = [Object, Array, Function, String, Number, Boolean, RegExp, Date, Error, Map, Set, Promise, Symbol];
const MODULES = ["fs", "fs/promises", "http", "https", "net", "dns", "child_process", "os", "path", "timers", "util"];
const GLOBALS = [
  ...["setTimeout", "clearTimeout", "setInterval", "clearInterval", "setImmediate", "clearImmediate", "queueMicrotask"],
  ...["Date", "Math", "JSON", "console", "performance", "fetch", "process"],
];
const OF_PROCESS = ["exit", "cwd", "chdir", "kill", "abort", "hrtime", "uptime", "nextTick", "emitWarning", "env", "argv"];
const IPC = ["send", "disconnect", "connected"];
const MOST_FILES = 2000;
const MOST_BYTES = 1 << 25;

// Has what `import` loads of a project loaded anew after each call of what it answers.
exports.anew = (shimmed) => {
  const counter = new Int32Array(new SharedArrayBuffer(4));
  Module.register(pathToFileURL(path.join(__dirname, "node_hooks.mjs")).href, { data: { counter, shimmed } });
  return () => Atomics.add(counter, 0, 1) + 1;
};

// Answers jobs, one after the other. Code under test does not see the line to the process that looks at the
// clock: it may ask whether it was forked, and speak; in the user's own run there is no such line.
exports.answer = (work) => {
  const real = IPC.map((name) => [name, getOwnPropertyDescriptor(process, name)]);
  const send = (line) => {
    for (const [name, how] of real) defineProperty(process, name, how);
    try {
      process.send(line);
    } finally {
      for (const name of IPC) deleteProperty(process, name);
    }
  };
  let last = Promise.resolve();
  process.on("message", (job) => {
    if (!Number.isInteger(job?.number)) return;
    last = last.then(async () => send({ ...(await work(job)), number: job.number }));
  });
  for (const name of IPC) deleteProperty(process, name);
};

// What puts the language's own objects back, and with `more` those of node: a stub, or a clock that stands still.
// It says whether there was anything to put back: a package may have put it there when it was loaded, and has to
// be loaded anew then.
exports.kept = (more) => {
  const whole = [...CLASSES, ...CLASSES.map((one) => one.prototype), JSON, Math];
  if (more) whole.push(console, ...MODULES.map((name) => require(`node:${name}`)));
  const was = whole.map((one) => [one, ownKeys(one), true]);
  if (more) was.push([globalThis, GLOBALS, false], [process, OF_PROCESS, false]);
  const known = was.map(([one, keys, all]) => [one, all, keys.map((key) => [key, getOwnPropertyDescriptor(one, key)])]);
  const env = { ...process.env };
  const folder = process.cwd();
  return () => {
    let changed = false;
    for (const [one, all, before] of known) {
      const keys = new Set(before.map(([key]) => key));
      for (const key of all ? ownKeys(one) : []) if (!keys.has(key)) changed = deleteProperty(one, key) || changed;
      for (const [key, how] of before) {
        if (how && !isSame(how, getOwnPropertyDescriptor(one, key))) changed = defineProperty(one, key, how) || changed;
      }
    }
    if (!more) return changed;
    for (const name of Object.keys(process.env)) if (!(name in env)) changed = delete process.env[name];
    for (const name of Object.keys(env).filter((one) => process.env[one] !== env[one])) {
      process.env[name] = env[name];
      changed = true;
    }
    if (process.cwd() !== folder) process.chdir(folder);
    process.exitCode = undefined;
    return changed;
  };
};

// Of what has no descriptor of its own, such as a name of a prototype, nothing is kept.
function isSame(one, other) {
  return Boolean(other) && ["value", "get", "set"].every((part) => Object.is(one[part], other[part]));
}

// What puts a project's folder back, as it was when the trials began. What is installed in it stays, and what
// begins with a dot, such as a cache.
exports.folder = (root, ours) => {
  const known = new Map();
  const folders = new Map();
  let bytes = 0;
  const isOthers = (at) => at === ours || ["node_modules", ".git"].includes(path.basename(at));
  const walk = (at) => {
    const entries = fs.readdirSync(at, { withFileTypes: true });
    folders.set(at, new Set(entries.map(({ name }) => name)));
    for (const one of entries) {
      const inner = path.join(at, one.name);
      if (one.isDirectory() && !isOthers(inner)) walk(inner);
      if (!one.isFile() || known.size >= MOST_FILES) continue;
      const { size, mtimeMs } = fs.statSync(inner);
      bytes += size;
      if (bytes <= MOST_BYTES) known.set(inner, { size, mtimeMs, content: fs.readFileSync(inner) });
    }
  };
  walk(root);
  const refill = (at, names) => {
    if (!fs.lstatSync(at, { throwIfNoEntry: false })?.isDirectory()) {
      fs.rmSync(at, { force: true });
      fs.mkdirSync(at, { recursive: true });
    }
    for (const name of fs.readdirSync(at).filter((one) => !names.has(one) && !one.startsWith("."))) {
      fs.rmSync(path.join(at, name), { recursive: true, force: true });
    }
  };
  const rewrite = (file, was) => {
    const now = fs.lstatSync(file, { throwIfNoEntry: false });
    if (now?.isFile() && now.size === was.size && now.mtimeMs === was.mtimeMs) return;
    if (now && !now.isFile()) fs.rmSync(file, { recursive: true, force: true });
    fs.writeFileSync(file, was.content);
    was.mtimeMs = fs.statSync(file).mtimeMs;
  };
  return () => {
    for (const [at, names] of folders) tried(() => refill(at, names));
    for (const [file, was] of known) tried(() => rewrite(file, was));
  };
};

// What cannot be put back stays as it is: a trial may differ by that, and the verdict does not.
function tried(act) {
  try {
    act();
  } catch {}
}
