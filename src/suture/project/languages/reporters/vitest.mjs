// Reports the tests of Vitest after all files have run.
import { fileURLToPath } from "node:url";
import signing from "./signing.cjs";

const HERE = fileURLToPath(new URL("./", import.meta.url));
const GUARD = `${HERE}vitest_guard.mjs`;

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
  signing.write({
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
    signing.write({ event: "begin" });
    for (const { config } of vitest?.projects ?? []) {
      if (config.mode !== "benchmark" && !config.browser?.enabled) config.runner ??= GUARD;
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
      const changed = file.meta?.sutureChanged;
      if (typeof changed === "string") {
        const names = [...new Set(changed.split("\n").filter(Boolean))];
        signing.write({ event: "watched", file: file.filepath, changed: names });
      }
      if (file.result?.errors?.length) write(file, file.filepath, []);
      for (const task of file.tasks) visit(task, file.filepath, []);
    }
    signing.write({ event: "end" });
  }
}
