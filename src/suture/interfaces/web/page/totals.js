// Totals over all runs, and the reports of benchmarks.

import { get } from "./api.js";
import { choice, count, dollars, duration, el, field, fill, note, reloadable, table } from "./dom.js";
import { bars, MOVES } from "./performance.js";

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
  const rows = [
    ["runs", count(sum.runs)], ["healed (of decided runs)", sum.decided ? `${Math.round(100 * sum.pass_rate)} % of ${count(sum.decided)}` : "no decided runs"],
    ["tokens", count(sum.tokens)], ["money", dollars(sum.money)],
    ["time per run", `median ${duration(sum.run_seconds.median)}, 95th percentile ${duration(sum.run_seconds.p95)}`],
  ];
  const chart = (title, values, as) => {
    const shown = Object.entries(values ?? {}).filter(([, value]) => value > 0);
    return shown.length ? bars(title, shown.map(([name, value]) => [MOVES[name] ?? name.replaceAll("_", " "), value, as(value)])) : null;
  };
  return [table("All runs", ["", ""], rows), el("div", { class: "charts" },
    chart("Outcomes", sum.outcomes, count), chart("Tokens by role", sum.tokens_by_role, count), chart("Tokens by use", sum.tokens_by_move, count),
    chart("Time by phase", sum.seconds_by_phase, duration), chart("Why candidates failed", sum.errors, count), chart("Candidates", sum.candidates, count))];
}

export async function benchmarksPage({ view, signal }) {
  const names = await get("/v1/benchmarks", signal);
  return fill(view, el("h1", {}, "Benchmarks"),
    names.length ? el("ul", {}, names.map((name) => el("li", {}, el("a", { href: `#/benchmarks/${name}` }, name))))
      : note("No benchmark results yet. Run one: suture bench run."));
}

export async function benchmarkPage({ view, signal, parts: [name], title }) {
  title(`Benchmark ${name}`);
  const report = await get(`/v1/benchmarks/${name}`, signal);
  return fill(view, el("h1", {}, `Benchmark ${name}`), report.warnings.map((text) => note(text, "hint")),
    report.sections.map((section) => [
      el("h2", {}, section.title), section.warnings.map((text) => note(text, "hint")), el("p", {}, section.resolution),
      section.tables.filter((one) => one.rows.length).map((one) => [table(one.caption, one.head, one.rows), one.note ? el("p", { class: "hint" }, one.note) : null]),
    ]),
    report.circumstances.map((line) => el("p", { class: "hint" }, line)));
}
