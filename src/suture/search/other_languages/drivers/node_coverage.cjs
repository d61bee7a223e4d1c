// The lines that ran since the last look, by V8's own count of blocks (what NODE_V8_COVERAGE writes down).
"use strict";
const inspector = require("node:inspector");
const { findSourceMap, SourceMap } = require("node:module");
const path = require("node:path");
const { fileURLToPath } = require("node:url");

const SAMPLES = 200;

// A test runner's own transform writes its map into the text.
function mapOf(source) {
  const found = [...source.matchAll(/\/\/# sourceMappingURL=data:application\/json;[^,]*base64,([\w+/=]+)/g)].at(-1);
  return found ? new SourceMap(JSON.parse(Buffer.from(found[1], "base64").toString("utf8"))) : null;
}

exports.coverage = (texts, root) => {
  const session = new inspector.Session();
  session.connect();
  const ask = (name, given) => {
    let answer = null;
    session.post(name, given, (error, result) => (answer = result));
    return answer ?? {};
  };
  ask("Profiler.enable");
  ask("Debugger.enable");
  ask("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
  const known = new Map();

  function fileOf(url) {
    const own = url.startsWith("file:") ? fileURLToPath(url.split("?")[0]) : url;
    const file = path.relative(root, own);
    return Object.hasOwn(texts, file) ? file : "";
  }

  // Offset -> line of the file: by its own text, or by the map of the text that was compiled from it.
  function reader(script, file) {
    const source = ask("Debugger.getScriptSource", { scriptId: script.scriptId }).scriptSource ?? texts[file];
    const starts = [0];
    for (let at = source.indexOf("\n"); at >= 0; at = source.indexOf("\n", at + 1)) starts.push(at + 1);
    const lineAt = (offset) => {
      let low = 0;
      for (let high = starts.length; high - low > 1; ) {
        const middle = (low + high) >> 1;
        if (starts[middle] <= offset) low = middle;
        else high = middle;
      }
      return low;
    };
    const map = source === texts[file] ? null : mapOf(source) ?? findSourceMap(script.url) ?? findSourceMap(path.join(root, file));
    if (!map) return { line: (offset) => lineAt(offset) + 1, mapped: false };
    const line = (offset) => {
      const at = lineAt(offset);
      return (map.findEntry(at, offset - starts[at]).originalLine ?? 0) + 1;
    };
    return { line, mapped: true };
  }

  // What was compiled onto one line has its lines in no order: the first and the last of them are looked for.
  function span(all, { startOffset, endOffset }) {
    const step = Math.max(1, Math.floor((endOffset - startOffset) / SAMPLES));
    const from = all.line(startOffset);
    let to = all.line(endOffset);
    for (let at = startOffset; all.mapped && at < endOffset; at += step) to = Math.max(to, all.line(at));
    return [from, to];
  }

  function take() {
    const lines = {};
    for (const script of ask("Profiler.takePreciseCoverage").result ?? []) {
      const file = fileOf(script.url);
      if (!file) continue;
      const all = known.get(script.scriptId) ?? { functions: new Map(), ...reader(script, file) };
      known.set(script.scriptId, all);
      for (const one of script.functions) all.functions.set(one.ranges[0].startOffset, one.ranges);
      const ran = new Map();
      const reported = script.functions.map(({ ranges: [whole] }) => whole);
      for (const start of [...all.functions.keys()].sort((a, b) => a - b)) {
        const now = script.functions.find((one) => one.ranges[0].startOffset === start);
        const around = reported.find((whole) => whole.startOffset < start && start < whole.endOffset);
        if (!now && !around) continue;
        const [first, last] = now ? [0, Infinity] : span(all, around);
        const ranges = now ? now.ranges : [{ ...all.functions.get(start)[0], count: 0 }];
        for (const range of ranges) {
          const [from, to] = span(all, range);
          for (let line = Math.max(from, first); line <= Math.min(to, last); line += 1) {
            if (range.count > 0) ran.set(line, true);
            else if (line > from || range.startOffset === start) ran.set(line, false);
          }
        }
      }
      lines[file] = [...ran].filter(([, did]) => did).map(([line]) => line);
    }
    return lines;
  }
  return { take };
};
