// Reports the tests of Vitest after all files have run. The processes of the tests add their own reports.
import { fileURLToPath } from "node:url";
import signing from "./signing.cjs";

const HERE = fileURLToPath(new URL("./", import.meta.url));
const GUARD = `${HERE}vitest_guard.mjs`;
const report = signing.openReport();

/** Leave these files out of what the project's coverage is measured by. */
function uncover(provider) {
  const was = provider?.generateCoverage;
  if (typeof was !== "function") return;
  provider.generateCoverage = async function (...given) {
    const map = await was.apply(this, given);
    map?.filter?.((file) => !file.startsWith(HERE));
    return map;
  };
}

function visit(task, file, names) {
  const own = [...names, task.name];
  if (task.type === "suite") {
    for (const inner of task.tasks) visit(inner, file, own);
    if (!task.result?.errors?.length) return;
  }
  write(task, file, own);
}

function write(task, file, names) {
  const state = task.result?.state;
  const error = task.result?.errors?.[0];
  const asserted = error?.name === "AssertionError" && error.actual !== undefined;
  report.write({
    event: "test",
    file,
    names,
    status: state === "pass" ? "passed" : state === "fail" || state === "run" ? "failed" : "skipped",
    message: error ? `${error.name ?? "Error"}: ${error.message}` : "",
    stack: error?.stack ?? error?.stackStr,
    expected: asserted ? String(error.expected) : "",
    got: asserted ? String(error.actual) : "",
    line: task.location?.line,
  });
}

export default class {
  onInit(vitest) {
    report.write({ event: "begin" });
    const tested = report.delegate("vitest");
    for (const project of vitest?.projects ?? []) {
      const { config } = project;
      if (config.mode === "benchmark" || config.browser?.enabled) continue;
      config.runner ??= GUARD;
      if (tested) project.provide?.("suture", { path: report.path, name: tested.name, key: tested.key.toString("hex") });
    }
    uncover(vitest?.coverageProvider);
  }

  onFinished(files = []) {
    this.write(files);
  }

  onTestRunEnd(modules = []) {
    this.write(modules.map((module) => module.task).filter(Boolean));
  }

  write(files) {
    if (this.written) return;
    this.written = true;
    for (const file of files) {
      if (file.result?.errors?.length) write(file, file.filepath, []);
      for (const task of file.tasks) visit(task, file.filepath, []);
    }
    report.write({ event: "end" });
  }
}
