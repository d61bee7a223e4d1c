// Tries candidates on tests of node:test: a process of its own runs one after the other, this one looks at the
// clock. It is given a plan, and writes what it saw line by line.
"use strict";
const fs = require("node:fs");
const path = require("node:path");
const { fork } = require("node:child_process");
const { folder: kept } = require("./node_kept.cjs");

// Processes that end before they are ready, such as where the runner cannot be loaded.
const MOST_STILLBORN = 3;
const folder = __dirname;
const root = path.dirname(folder);
const plan = JSON.parse(fs.readFileSync(path.join(folder, "plan.json"), "utf8"));

if (process.argv[2] === "worker") {
  const program = plan.common.engine ? "./runner_worker.cjs" : "./node_worker.cjs";
  const send = process.send.bind(process);
  require(program).serve(plan.common, root, () => send({ ready: true }));
} else watch();

function watch() {
  const began = Date.now();
  let next = 0;
  let first = 0;
  let restarts = 0;
  let stillborn = 0;
  let worker = null;
  let spare = null;
  let timer = null;
  const tell = (line) => fs.appendFileSync(path.join(folder, "trials"), `${JSON.stringify(line)}\n`);
  const tidy = kept(root, folder);
  const left = () => plan.seconds * 1000 - (Date.now() - began);

  function isOver() {
    if (stillborn >= MOST_STILLBORN) return true;
    if (next >= plan.jobs.length || left() <= 0) return true;
    return first > 0 && next - first >= plan.rivals && Date.now() - began > plan.linger_ms;
  }

  function step() {
    clearTimeout(timer);
    if (isOver()) {
      tell({ event: "end" });
      for (const one of [worker, spare]) if (one) one.kill("SIGKILL");
      process.exit(0);
    }
    if (!worker) start();
    worker.current = next++;
    if (worker.ready) give();
    else timer = setTimeout(() => lost(worker.current, false), Math.max(1, Math.min(plan.start_ms, left())));
  }

  // The clock of a candidate runs from when its process has all that it needs.
  function give() {
    clearTimeout(timer);
    const number = worker.current;
    timer = setTimeout(() => lost(number, true), Math.min(plan.wall_ms, Math.max(1, left())));
    worker.send({ number, ...plan.jobs[number] });
  }

  // The next process starts while this one works: after an endless loop it is there at once.
  function start() {
    const isThere = spare && spare.exitCode === null && spare.signalCode === null;
    const mine = isThere ? spare : made();
    worker = mine;
    spare = restarts++ ? made() : null;
  }

  function made() {
    const { flags = [], variables = {} } = plan.common;
    const env = { ...process.env, ...variables };
    const execArgv = [...process.execArgv, ...flags];
    const mine = fork(__filename, ["worker"], { stdio: ["ignore", "ignore", "ignore", "ipc"], env, execArgv });
    mine.ready = false;
    mine.on("message", (line) => {
      if (line?.ready && !mine.ready) {
        mine.ready = true;
        if (mine === worker && mine.current !== undefined) give();
        return;
      }
      if (mine !== worker || line?.number !== mine.current) return;
      tell(line);
      tidy();
      if (line.ok && !first) first = next;
      step();
    });
    mine.on("error", () => mine === worker && lost(mine.current, false));
    mine.on("exit", () => mine === worker && lost(mine.current, false));
    return mine;
  }

  function lost(number, late) {
    const old = worker;
    worker = null;
    if (!old.ready) stillborn += 1;
    old.kill("SIGKILL");
    const job = plan.jobs[number];
    if (job.path) fs.writeFileSync(path.join(root, job.path), plan.common.texts[job.path]);
    tidy();
    tell({ event: "trial", number, ok: false, late, lost: !late });
    step();
  }

  step();
}
