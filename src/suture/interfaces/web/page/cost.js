// What runs have used: one run by role and by kind of move, all runs together, and the reports of benchmarks.

import { get } from "./api.js";
import { choice, count, dollars, duration, el, field, fill, note, reloadable, seconds, svg, table } from "./dom.js";
import { checksName, DOUBTS, drawIfChanged } from "./panel.js";

// Limits and phases -> their names for people, if their own names say too little.
const NAMES = { attempts: "candidates by the model", seconds: "time", prepare: "first test run", search: "small edits", model: "the model", checks: "testing", certification: "certifying" };
const MOVES = { mutate: "small edits", mutation: "small edits", sample: "fresh code", repair: "repair", agent: "agent", gate: "your program" };
// The height of a bar with its gap, in pixels.
const ROW = 30;
// Tables of a benchmark's section that are open at first: who solved most, and whether the difference is real.
const OPEN_TABLES = 2;

export async function costPanel(body, state) {
  const draw = drawIfChanged((used) => {
    const coming = !used.events && used.spend?.seconds; // it has started, and its events are being loaded
    if (!used.calls.length) return fill(body, coming ? note("Loading ...", "loading") : note("Nothing has been used yet."));
    return fill(body, budget(state, used.limits), shares(used));
  });
  return async () => draw(usedOf(state));
}

function usedOf(state) {
  const of = (kind) => state.events.filter((event) => event.kind === kind);
  const calls = of("model.called").map(({ data }) => ({
    role: data.role, move: MOVES[data.move] ?? (data.move || "other"), tokens: data.replayed ? 0 : data.prompt_tokens + data.completion_tokens, seconds: data.seconds, money: data.money ?? 0,
  }));
  const searches = of("search.finished").map(({ data }) => ({ role: "search", move: "small edits", tokens: 0, seconds: data.seconds, money: 0 }));
  const tests = of("candidate.checked").map(({ data }) => ({ role: checksName(state.shown), move: "testing candidates", tokens: 0, seconds: data.seconds, money: 0 }));
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
    .map(([name, as]) => [NAMES[name] ?? name, as(spend[name]), limits[name] === null || limits[name] === undefined ? "no limit" : as(limits[name])]);
  return rows.length ? table("Budget", ["", "used", "limit"], rows) : null;
}

// One row for each role and what it was used for. Without a price, there is no column for it.
function shares({ calls }) {
  const sums = new Map();
  for (const call of calls) {
    const key = `${call.role}: ${call.move}`;
    const sum = sums.get(key) ?? { ...call, count: 0, tokens: 0, seconds: 0, money: 0 };
    sums.set(key, sum);
    sum.count += 1;
    for (const unit of ["tokens", "seconds", "money"]) sum[unit] += call[unit];
  }
  const isPriced = calls.some((call) => call.money);
  return table("Who used it", ["who", "for", "times", "tokens", "time", ...(isPriced ? ["money"] : [])],
    [...sums.values()].map((sum) => [sum.role, sum.move, count(sum.count), count(sum.tokens), duration(sum.seconds), ...(isPriced ? [dollars(sum.money)] : [])]));
}

const isDoubt = (name) => Object.values(DOUBTS).some(([word]) => word.replace("healed, ", "") === name);

// A bar chart with one bar per row, each with its value as text.
function bars(title, rows) {
  const most = Math.max(...rows.map(([, value]) => value), 1e-9); // never 0, because it divides
  const height = rows.length * ROW + 22;
  return svg("svg", { class: "chart", viewBox: `0 0 340 ${height}`, width: 340, height, role: "img", "aria-label": `${title}: ${rows.map(([name, , words]) => `${name} ${words}`).join(", ")}` },
    svg("text", { x: 0, y: 14, class: "title" }, title),
    rows.map(([name, value, words], n) => {
      const y = n * ROW + 22;
      return [svg("text", { x: 0, y: y + 18 }, name.length > 16 ? `${name.slice(0, 15)}...` : name), svg("rect", { x: 120, y: y + 6, width: Math.max(1, (value / most) * 140), height: 16, class: isDoubt(name) ? "bar doubted" : "bar" }), svg("text", { x: 126 + (value / most) * 140, y: y + 18 }, words)];
    }));
}

export async function totalsPage({ view, signal }) {
  const kind = choice([["", "Repairs and new code"], ["heal", "Repairs"], ["write", "New code"]], "");
  const slot = el("div", {});
  const load = reloadable(slot, signal, async () => totals(await get(`/v1/metrics?kind=${kind.value}`, signal)));
  kind.addEventListener("change", load);
  await load();
  return fill(view, el("h1", {}, "Totals"), el("div", { class: "filters row" }, field("Kind of run", kind)), slot, el("p", {}, el("a", { href: "#/benchmarks" }, "Reports of benchmarks")));
}

function totals(sum) {
  if (!sum.runs) return [note("No runs yet.")];
  const doubts = Object.entries(sum.doubts).map(([doubt, number]) => [DOUBTS[doubt][0].replace("healed, ", ""), number]);
  const doubted = doubts.reduce((all, [, number]) => all + number, 0);
  const outcomes = { ...sum.outcomes, healed: (sum.outcomes.healed ?? 0) - doubted, ...Object.fromEntries(doubts) };
  const rows = [
    ["runs", count(sum.runs)], ["healed", sum.decided ? `${Math.round(100 * sum.pass_rate)} % of ${count(sum.decided)} runs that ended with a verdict${doubted ? `, among them ${doubts.map(([name, number]) => `${count(number)} ${name}`).join(" and ")}` : ""}` : "no run has ended with a verdict"],
    ["tokens", count(sum.tokens)], ["money", dollars(sum.money)],
    ["time per run", `median ${duration(sum.run_seconds.median)}, 95th percentile ${duration(sum.run_seconds.p95)}`],
  ];
  const chart = (title, values, as) => {
    const shown = Object.entries(values ?? {}).filter(([, value]) => value > 0);
    return shown.length > 1 ? bars(title, shown.map(([name, value]) => [MOVES[name] ?? NAMES[name] ?? name.replaceAll("_", " "), value, as(value)])) : null;
  };
  return [table("All runs", ["", ""], rows), el("div", { class: "charts" },
    chart("Outcomes", outcomes, count), chart("Tokens by role", sum.tokens_by_role, count), chart("Tokens by use", sum.tokens_by_move, count),
    chart("Time by phase", sum.seconds_by_phase, duration), chart("Why candidates failed", sum.errors, count), chart("Candidates", sum.candidates, count))];
}

export async function benchmarksPage({ view, signal }) {
  const names = await get("/v1/benchmarks", signal);
  return fill(view, el("h1", {}, "Benchmarks"),
    el("p", { class: "hint" }, "A benchmark runs several recipes or models on the same tasks within the same budget, and grades them by tests that they have not seen."),
    names.length ? el("ul", {}, names.map((name) => el("li", {}, el("a", { href: `#/benchmarks/${name}` }, name))))
      : note("No benchmark results yet. Run one: suture bench run."));
}

export async function benchmarkPage({ view, signal, parts: [name], title }) {
  title(`Benchmark ${name}`);
  const report = await get(`/v1/benchmarks/${name}`, signal);
  return fill(view, el("h1", {}, `Benchmark ${name}`), report.warnings.map((text) => note(text, "hint")),
    report.sections.map((section) => [
      el("h2", {}, section.title), section.warnings.map((text) => note(text, "hint")), el("p", {}, section.resolution),
      section.tables.filter((one) => one.rows.length).map((one, number) => {
        const isOpen = number < OPEN_TABLES;
        const parts = [table(one.caption, one.head, one.rows, { class: isOpen ? "" : "untitled" }), one.note ? el("p", { class: "hint" }, one.note) : null];
        return isOpen ? parts : el("details", {}, el("summary", {}, one.caption), parts);
      }),
    ]),
    report.circumstances.map((line) => el("p", { class: "hint" }, line)));
}
