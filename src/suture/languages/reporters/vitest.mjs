// What Vitest reports, once all files are through.
import signing from "./signing.cjs";

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
  onInit() {
    signing.write({ event: "begin" });
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
    signing.write({ event: "end" });
  }
}
