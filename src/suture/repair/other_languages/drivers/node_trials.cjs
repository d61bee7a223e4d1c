// Tries candidates on tests of node:test in one process after the other: a worker runs them, this one looks
// at the clock. It is given a plan, and writes what it saw line by line.
"use strict";
const fs = require("node:fs");
const path = require("node:path");
const { Worker, isMainThread, parentPort, workerData } = require("node:worker_threads");

const folder = __dirname;
const root = path.dirname(folder);

if (isMainThread) watch();
else require("./node_worker.cjs").serve(parentPort, workerData, root);

function watch() {
  const plan = JSON.parse(fs.readFileSync(path.join(folder, "plan.json"), "utf8"));
  const began = Date.now();
  let next = 0;
  let first = 0;
  let restarts = 0;
  let worker = null;
  let spare = null;
  let timer = null;
  const tell = (line) => fs.appendFileSync(path.join(folder, "trials"), `${JSON.stringify(line)}\n`);
  const left = () => plan.seconds * 1000 - (Date.now() - began);

  function isOver() {
    if (next >= plan.jobs.length || left() <= 0) return true;
    return first > 0 && next - first >= plan.rivals && Date.now() - began > plan.linger_ms;
  }

  function step() {
    clearTimeout(timer);
    if (isOver()) {
      tell({ event: "end" });
      process.exit(0);
    }
    if (!worker) start();
    const number = next++;
    const most = Math.min(plan.wall_ms, Math.max(1, left()));
    timer = setTimeout(() => lost(number, true), most + (worker.fresh ? plan.start_ms : 0));
    worker.fresh = false;
    worker.current = number;
    worker.postMessage({ number, ...plan.jobs[number] });
  }

  // The next worker starts while this one works: after an endless loop it is there at once.
  function start() {
    const mine = spare ?? made();
    worker = mine;
    spare = restarts++ ? made() : null;
  }

  function made() {
    const mine = new Worker(__filename, { workerData: plan.common, stdout: true, stderr: true });
    mine.fresh = true;
    mine.stdout.resume();
    mine.stderr.resume();
    mine.on("message", (line) => {
      if (mine !== worker || line.number !== mine.current) return;
      tell(line);
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
    if (old) old.terminate();
    const job = plan.jobs[number];
    if (job.path) fs.writeFileSync(path.join(root, job.path), plan.common.texts[job.path]);
    tell({ event: "trial", number, ok: false, late, lost: !late });
    step();
  }

  step();
}
