// Tries candidates on tests of node:test: a process of its own runs one after the other, this one looks at the
// clock. It is given a plan, and writes what it saw line by line.
"use strict";
const fs = require("node:fs");
const path = require("node:path");
const { fork } = require("node:child_process");

const folder = __dirname;
const root = path.dirname(folder);
const plan = JSON.parse(fs.readFileSync(path.join(folder, "plan.json"), "utf8"));

if (process.argv[2] === "worker") require("./node_worker.cjs").serve(plan.common, root);
else watch();

function watch() {
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
      for (const one of [worker, spare]) if (one) one.kill("SIGKILL");
      process.exit(0);
    }
    if (!worker) start();
    const number = next++;
    const most = Math.min(plan.wall_ms, Math.max(1, left()));
    timer = setTimeout(() => lost(number, true), most + (worker.fresh ? plan.start_ms : 0));
    worker.fresh = false;
    worker.current = number;
    worker.send({ number, ...plan.jobs[number] });
  }

  // The next process starts while this one works: after an endless loop it is there at once.
  function start() {
    const mine = spare ?? made();
    worker = mine;
    spare = restarts++ ? made() : null;
  }

  function made() {
    const mine = fork(__filename, ["worker"], { stdio: ["ignore", "ignore", "ignore", "ipc"] });
    mine.fresh = true;
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
    if (old) old.kill("SIGKILL");
    const job = plan.jobs[number];
    if (job.path) fs.writeFileSync(path.join(root, job.path), plan.common.texts[job.path]);
    tell({ event: "trial", number, ok: false, late, lost: !late });
    step();
  }

  step();
}
