// Tries candidates on the tests of a JavaScript project. A worker process runs one candidate after the other, and
// this process enforces the time limits. It reads `plan.json` and appends one JSON line per result to `trials`.
"use strict";
const fs = require("node:fs");
const path = require("node:path");
const { fork } = require("node:child_process");
const { snapshotFolder } = require("./node_isolation.cjs");

// Workers that may end before they are ready, such as when the test runner cannot be loaded.
const MAX_FAILED_STARTS = 3;
const folder = __dirname;
const root = path.dirname(folder);
const plan = JSON.parse(fs.readFileSync(path.join(folder, "plan.json"), "utf8"));

if (process.argv[2] === "worker") {
  const program = plan.common.engine ? "./runner_worker.cjs" : "./node_worker.cjs";
  const send = process.send.bind(process);
  require(program).serve(plan.common, root, () => send({ ready: true }));
} else supervise();

function supervise() {
  const startedAt = Date.now();
  let next = 0;
  let firstPassing = 0;
  let restarts = 0;
  let failedStarts = 0;
  let worker = null;
  let spare = null;
  let timer = null;
  const report = (line) => fs.appendFileSync(path.join(folder, "trials"), `${JSON.stringify(line)}\n`);
  const restoreFolder = snapshotFolder(root, folder);
  const remainingMs = () => plan.seconds * 1000 - (Date.now() - startedAt);

  function isFinished() {
    if (failedStarts >= MAX_FAILED_STARTS) return true;
    if (next >= plan.jobs.length || remainingMs() <= 0) return true;
    return firstPassing > 0 && next - firstPassing >= plan.max_rivals && Date.now() - startedAt > plan.linger_ms;
  }

  function runNext() {
    clearTimeout(timer);
    if (isFinished()) {
      report({ event: "end" });
      for (const child of [worker, spare]) if (child) child.kill("SIGKILL");
      process.exit(0);
    }
    if (!worker) useNextWorker();
    worker.current = next++;
    if (worker.ready) sendJob();
    else {
      const number = worker.current;
      timer = setTimeout(() => abandon(number, false), Math.max(1, Math.min(plan.start_timeout_ms, remainingMs())));
    }
  }

  // The time limit of a candidate starts when its worker has loaded everything that it needs.
  function sendJob() {
    clearTimeout(timer);
    const number = worker.current;
    timer = setTimeout(() => abandon(number, true), Math.min(plan.trial_timeout_ms, Math.max(1, remainingMs())));
    worker.send({ number, ...plan.jobs[number] });
  }

  // After the first restart a spare worker starts in advance, so that it is ready when an endless loop has to be
  // killed.
  function useNextWorker() {
    const isSpareAlive = spare && spare.exitCode === null && spare.signalCode === null;
    worker = isSpareAlive ? spare : startWorker();
    spare = restarts++ ? startWorker() : null;
  }

  function startWorker() {
    const { node_flags: flags = [], variables = {} } = plan.common;
    const env = { ...process.env, ...variables };
    const execArgv = [...process.execArgv, ...flags];
    const child = fork(__filename, ["worker"], { stdio: ["ignore", "ignore", "ignore", "ipc"], env, execArgv });
    child.ready = false;
    child.on("message", (line) => {
      if (line?.ready && !child.ready) {
        child.ready = true;
        if (child === worker && child.current !== undefined) sendJob();
        return;
      }
      if (child !== worker || line?.number !== child.current) return;
      report(line);
      restoreFolder();
      if (line.passes && !firstPassing) firstPassing = next;
      runNext();
    });
    child.on("error", () => child === worker && abandon(child.current, false));
    child.on("exit", () => child === worker && abandon(child.current, false));
    return child;
  }

  function abandon(number, timedOut) {
    const child = worker;
    worker = null;
    if (!child.ready) failedStarts += 1;
    child.kill("SIGKILL");
    const job = plan.jobs[number];
    if (job.path) fs.writeFileSync(path.join(root, job.path), plan.common.texts[job.path]);
    restoreFolder();
    report({ event: "trial", number, passes: false, timed_out: timedOut, process_lost: !timedOut });
    runNext();
  }

  runNext();
}
