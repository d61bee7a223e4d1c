// Line coverage between two calls of `take`, from V8's block counts (the data of NODE_V8_COVERAGE).
"use strict";
const inspector = require("node:inspector");
const { findSourceMap, SourceMap } = require("node:module");
const path = require("node:path");
const { fileURLToPath } = require("node:url");

// Positions of one range of compiled code that are looked up. Chosen by judgement; not measured.
const MAX_SAMPLES = 200;
const INLINE_MAP = /\/\/# sourceMappingURL=data:application\/json;[^,]*base64,([\w+/=]+)/g;

// Returns the source map that a test runner's own transform has appended to a text.
function inlineSourceMap(source) {
  const found = [...source.matchAll(INLINE_MAP)].at(-1);
  return found ? new SourceMap(JSON.parse(Buffer.from(found[1], "base64").toString("utf8"))) : null;
}

exports.startCoverage = (texts, root) => {
  const session = new inspector.Session();
  session.connect();
  const request = (method, parameters) => {
    let answer = null;
    session.post(method, parameters, (error, result) => (answer = result));
    return answer ?? {};
  };
  request("Profiler.enable");
  request("Debugger.enable");
  request("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
  const scripts = new Map();

  function projectFile(url) {
    const absolute = url.startsWith("file:") ? fileURLToPath(url.split("?")[0]) : url;
    const file = path.relative(root, absolute);
    return Object.hasOwn(texts, file) ? file : "";
  }

  // Returns a function from offsets of a script to lines of the file, by the source map if the script was compiled.
  function createLineReader(script, file) {
    const answer = request("Debugger.getScriptSource", { scriptId: script.scriptId });
    const source = answer.scriptSource ?? texts[file];
    const starts = [0];
    for (let at = source.indexOf("\n"); at >= 0; at = source.indexOf("\n", at + 1)) starts.push(at + 1);
    const rowAt = (offset) => {
      let low = 0;
      for (let high = starts.length; high - low > 1; ) {
        const middle = (low + high) >> 1;
        if (starts[middle] <= offset) low = middle;
        else high = middle;
      }
      return low;
    };
    const isOriginal = source === texts[file];
    const map = isOriginal
      ? null
      : inlineSourceMap(source) ?? findSourceMap(script.url) ?? findSourceMap(path.join(root, file));
    if (!map) return { line: (offset) => rowAt(offset) + 1, isMapped: false };
    const line = (offset) => {
      const row = rowAt(offset);
      return (map.findEntry(row, offset - starts[row]).originalLine ?? 0) + 1;
    };
    return { line, isMapped: true };
  }

  // Code that was compiled onto one line has its original lines in no order, so that the range is sampled.
  function lineSpan(reader, { startOffset, endOffset }) {
    const step = Math.max(1, Math.floor((endOffset - startOffset) / MAX_SAMPLES));
    const from = reader.line(startOffset);
    let to = reader.line(endOffset);
    for (let at = startOffset; reader.isMapped && at < endOffset; at += step) to = Math.max(to, reader.line(at));
    return [from, to];
  }

  // V8 reports a function only when its counts changed since the last call. An unreported function inside a
  // reported one did not run, and its lines are taken away from those of the outer function.
  function take() {
    const lines = {};
    for (const script of request("Profiler.takePreciseCoverage").result ?? []) {
      const file = projectFile(script.url);
      if (!file) continue;
      const reader = scripts.get(script.scriptId) ?? { functions: new Map(), ...createLineReader(script, file) };
      scripts.set(script.scriptId, reader);
      for (const entry of script.functions) reader.functions.set(entry.ranges[0].startOffset, entry.ranges);
      const didRun = new Map();
      const reported = script.functions.map(({ ranges: [whole] }) => whole);
      for (const start of [...reader.functions.keys()].sort((a, b) => a - b)) {
        const current = script.functions.find((entry) => entry.ranges[0].startOffset === start);
        const outer = reported.find((whole) => whole.startOffset < start && start < whole.endOffset);
        if (!current && !outer) continue;
        const [first, last] = current ? [0, Infinity] : lineSpan(reader, outer);
        const ranges = current ? current.ranges : [{ ...reader.functions.get(start)[0], count: 0 }];
        for (const range of ranges) {
          const [from, to] = lineSpan(reader, range);
          for (let line = Math.max(from, first); line <= Math.min(to, last); line += 1) {
            if (range.count > 0) didRun.set(line, true);
            else if (line > from || range.startOffset === start) didRun.set(line, false);
          }
        }
      }
      lines[file] = [...didRun].filter(([, ran]) => ran).map(([line]) => line);
    }
    return lines;
  }
  return { take };
};
