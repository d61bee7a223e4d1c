// What a run has used: tokens, seconds and money, by role and by kind of move.

import { count, dollars, el, fill, note, seconds, svg, table } from "./dom.js";
import { drawIfChanged } from "./panel.js";

// What is used -> how it is written.
const UNITS = { tokens: count, seconds, money: dollars };
export const MOVES = { mutate: "small edits", mutation: "small edits", sample: "fresh code", repair: "repair", agent: "agent", gate: "your program" };
// The height of a bar with its gap, in pixels.
const ROW = 30;

export async function costPanel(body, state) {
  const draw = drawIfChanged((used) => {
    const coming = !used.events && used.spend?.seconds; // it has started, and its events are being loaded
    if (!used.calls.length && !used.checks.length) return fill(body, coming ? note("Loading ...", "loading") : note("Nothing has been used yet."));
    return fill(body,
      budget(state, used.limits),
      ["role", "move"].map((what) => shares(used, what)),
      used.checks.length > 1 ? [el("h3", {}, "Passing tests of each candidate, in order"), steps(used.checks)] : null,
      used.tokens.length > 1 ? [el("h3", {}, "Tokens over time"), curve(used.tokens)] : null);
  });
  return async () => draw(usedOf(state));
}

function usedOf(state) {
  const of = (kind) => state.events.filter((event) => event.kind === kind);
  const begun = state.events[0]?.time_s ?? 0;
  let sum = 0;
  const calls = of("model.called").map(({ data }) => ({
    role: data.role, move: MOVES[data.move] ?? (data.move || "other"), tokens: data.replayed ? 0 : data.prompt_tokens + data.completion_tokens, seconds: data.seconds, money: data.money ?? 0,
  }));
  const searches = of("search.finished").map(({ data }) => ({ role: "search", move: "small edits", tokens: 0, seconds: data.seconds, money: 0 }));
  const tests = of("candidate.checked").map(({ data }) => ({ role: "tests", move: "tests", tokens: 0, seconds: data.seconds, money: 0 }));
  return {
    calls: [...calls, ...searches, ...tests],
    checks: of("candidate.checked").map(({ data }) => ({ label: data.label, passed: data.passed, of: data.passed + data.failed })),
    tokens: of("model.called").map((event, n) => { sum += calls[n].tokens; return [event.time_s - begun, sum]; }),
    limits: of("run.started")[0]?.data.limits ?? {},
    spend: state.shown.spend,
    events: state.events.length > 0,
  };
}

function budget(state, limits) {
  const { spend } = state.shown;
  const rows = [["attempts", count], ["tokens", count], ["money", dollars], ["seconds", seconds]].filter(([name]) => spend?.[name] !== undefined)
    .map(([name, as]) => [name, as(spend[name]), limits[name] === null || limits[name] === undefined ? "no limit" : as(limits[name])]);
  return rows.length ? table("Budget", ["", "used", "limit"], rows) : null;
}

function shares({ calls }, what) {
  const sums = new Map();
  for (const call of calls) {
    const sum = sums.get(call[what]) ?? { calls: 0, tokens: 0, seconds: 0, money: 0 };
    sum.calls += 1;
    for (const unit of Object.keys(UNITS)) sum[unit] += call[unit];
    sums.set(call[what], sum);
  }
  const rows = [...sums];
  return [
    table(what === "role" ? "Who used it" : "What it was used for", [what === "role" ? "who" : "use", "count", ...Object.keys(UNITS)], rows.map(([name, sum]) => [name, count(sum.calls), ...Object.entries(UNITS).map(([unit, as]) => as(sum[unit]))])),
    el("div", { class: "charts" }, Object.entries(UNITS).filter(([unit]) => rows.some(([, sum]) => sum[unit] > 0))
      .map(([unit, as]) => bars(`${unit[0].toUpperCase()}${unit.slice(1)} by ${what === "role" ? "role" : "use"}`, rows.map(([name, sum]) => [name, sum[unit], as(sum[unit])])))),
  ];
}

// A bar chart with one bar per row, each with its value as text.
export function bars(title, rows) {
  const most = Math.max(...rows.map(([, value]) => value), 1e-9); // never 0, because it divides
  const height = rows.length * ROW + 22;
  return svg("svg", { class: "chart", viewBox: `0 0 340 ${height}`, width: 340, height, role: "img", "aria-label": `${title}: ${rows.map(([name, , words]) => `${name} ${words}`).join(", ")}` },
    svg("text", { x: 0, y: 14, class: "title" }, title),
    rows.map(([name, value, words], n) => {
      const y = n * ROW + 22;
      return [svg("text", { x: 0, y: y + 18 }, name.length > 16 ? `${name.slice(0, 15)}...` : name), svg("rect", { x: 120, y: y + 6, width: Math.max(1, (value / most) * 140), height: 16, class: "bar" }), svg("text", { x: 126 + (value / most) * 140, y: y + 18 }, words)];
    }));
}

function curve(points) {
  const [width, height] = [340, 150];
  const [last, top] = [Math.max(points.at(-1)[0], 1e-9), Math.max(points.at(-1)[1], 1)];
  const x = (value) => 50 + (value / last) * (width - 60);
  const y = (value) => height - 24 - (value / top) * (height - 44);
  const line = points.map(([at, sum], n) => `${n ? "H" + x(at) + "V" : "M" + x(0) + " " + y(0) + "H" + x(at) + "V"}${y(sum)}`).join("");
  return svg("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": `${count(points.at(-1)[1])} tokens after ${seconds(points.at(-1)[0])}` },
    svg("path", { d: `M50 20V${height - 24}H${width - 10}`, class: "axis" }), svg("path", { d: line, class: "line" }),
    svg("text", { x: 44, y: 26, "text-anchor": "end" }, count(top)), svg("text", { x: 56, y: 14, class: "small" }, "tokens"), svg("text", { x: 44, y: height - 22, "text-anchor": "end" }, "0"),
    svg("text", { x: width - 10, y: height - 6, "text-anchor": "end" }, seconds(last)));
}

function steps(checks) {
  const [height, wide] = [150, Math.max(340, checks.length * 34 + 50)];
  const most = Math.max(...checks.map((one) => one.of), 1);
  const label = checks.map((one, n) => `${n + 1}: ${one.passed} of ${one.of}`).join(", ");
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Passing checks per candidate" },
    svg("svg", { class: "chart", viewBox: `0 0 ${wide} ${height}`, width: wide, height, role: "img", "aria-label": label },
      svg("path", { d: `M40 16V${height - 24}H${wide - 10}`, class: "axis" }), svg("text", { x: 34, y: 24, "text-anchor": "end" }, count(most)), svg("text", { x: 46, y: 12, class: "small" }, "tests"), svg("text", { x: 34, y: height - 22, "text-anchor": "end" }, "0"),
      checks.map((one, n) => {
        const tall = (one.passed / most) * (height - 44);
        return [svg("rect", { x: 50 + n * 34, y: height - 24 - tall, width: 22, height: Math.max(tall, 1), class: one.passed === one.of ? "bar" : "bar part" }), svg("text", { x: 61 + n * 34, y: height - 8, "text-anchor": "middle" }, n + 1)];
      })));
}
