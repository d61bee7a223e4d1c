// What a run has used: tokens, seconds and money, by role and by kind of move.

import { count, dollars, fill, note, seconds, svg, table } from "./dom.js";
import { drawIfChanged } from "./panel.js";

// What is used -> how it is written.
const UNITS = { tokens: count, seconds, money: dollars };
export const MOVES = { mutate: "small edits", mutation: "small edits", sample: "fresh code", repair: "repair", agent: "agent", gate: "your program" };
// The height of a bar with its gap, in pixels.
const ROW = 30;

export async function costPanel(body, state) {
  const draw = drawIfChanged((used) => {
    const coming = !used.events && used.spend?.seconds; // it has started, and its events are being loaded
    if (!used.calls.length) return fill(body, coming ? note("Loading ...", "loading") : note("Nothing has been used yet."));
    return fill(body, budget(state, used.limits), ["role", "move"].map((what) => shares(used, what)));
  });
  return async () => draw(usedOf(state));
}

function usedOf(state) {
  const of = (kind) => state.events.filter((event) => event.kind === kind);
  const calls = of("model.called").map(({ data }) => ({
    role: data.role, move: MOVES[data.move] ?? (data.move || "other"), tokens: data.replayed ? 0 : data.prompt_tokens + data.completion_tokens, seconds: data.seconds, money: data.money ?? 0,
  }));
  const searches = of("search.finished").map(({ data }) => ({ role: "search", move: "small edits", tokens: 0, seconds: data.seconds, money: 0 }));
  const tests = of("candidate.checked").map(({ data }) => ({ role: "tests", move: "tests", tokens: 0, seconds: data.seconds, money: 0 }));
  return {
    calls: [...calls, ...searches, ...tests],
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
  return table(what === "role" ? "Who used it" : "What it was used for", [what === "role" ? "who" : "use", "count", ...Object.keys(UNITS)],
    [...sums].map(([name, sum]) => [name, count(sum.calls), ...Object.entries(UNITS).map(([unit, as]) => as(sum[unit]))]));
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
