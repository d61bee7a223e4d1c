// Reports the tests of node's own test runner.
import signing from "./signing.cjs";

const { write } = signing.openReport();

export default async function* report(source) {
  const names = [];
  const complaints = new Map();
  const failures = new Map();
  const files = new Set();
  write({ event: "begin" });
  for await (const { type, data } of source) {
    if (type === "test:start") names.splice(data.nesting, Infinity, data.name);
    if (type === "test:stderr") complaints.set(data.file, (complaints.get(data.file) ?? "") + data.message);
    if (type !== "test:pass" && type !== "test:fail") continue;
    names.splice(data.nesting, Infinity, data.name);
    const error = data.details?.error;
    const cause = error?.cause instanceof Error ? error.cause : error;
    const file = data.file ?? process.argv[1] ?? "";
    // node:test reports a file as a test that has its name. If it fails, its stderr says why.
    const whole = data.nesting === 0 && (data.name === file || file.endsWith(`/${data.name}`));
    files.add(file);
    const complaint = whole ? complaints.get(data.file) : undefined;
    const fault = complaint?.split("\n").find((line) => /^\w*Error\b.*:/.test(line));
    const asserted = cause?.code === "ERR_ASSERTION" && cause.operator !== undefined;
    if (cause) failures.set(file, [...(failures.get(file) ?? []), `${cause.message ?? cause}`]);
    const skipped = data.skip !== undefined || data.todo !== undefined;
    write({
      event: "test",
      file,
      names: whole ? [] : [...names],
      status: skipped ? "skipped" : type === "test:pass" ? "passed" : "failed",
      message: whole ? fault : cause ? `${cause.name ?? "Error"}: ${cause.message ?? cause}` : "",
      stack: complaint ?? cause?.stack,
      expected: asserted ? signing.shown(cause.expected) : "",
      got: asserted ? signing.shown(cause.actual) : "",
      line: data.line,
    });
  }
  for (const file of files) {
    const complaint = complaints.get(file);
    write({ event: "watched", file, changed: [...changed(complaint), ...lost(complaint, failures.get(file))] });
  }
  write({ event: "end" });
}

/** What `node_guard.cjs` said in a file's process. */
function changed(complaint = "") {
  const lines = complaint.matchAll(/^suture: the code or its tests changed (.+)$/gm);
  return [...new Set(Array.from(lines, ([, name]) => name))];
}

/** Failed assertions of a file that no failed test shows: they got lost. */
function lost(complaint = "", shown = []) {
  const lines = [...complaint.matchAll(/^suture: an assertion failed (.+)$/gm)];
  const failed = lines.map(([, text]) => JSON.parse(text));
  const unseen = failed.filter(({ message }) => !shown.some((text) => text.includes(message)));
  // What the test's own function made counts only if nothing failed: a loop may have failed several times.
  const counted = unseen.filter(({ line }) => line !== undefined || !shown.length);
  return [...new Set(counted.map(describe))];
}

function describe({ line, places }) {
  return line === undefined ? `the failed assertion at ${places}` : `the failed assertion in line ${line}`;
}
