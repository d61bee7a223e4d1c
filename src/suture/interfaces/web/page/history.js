// The list of runs, and the comparison of two runs.

import { get } from "./api.js";
import { button, choice, count, dollars, el, field, fill, note, reloadable, seconds, table, when } from "./dom.js";
import { diffView } from "./diff.js";
import { badge } from "./panel.js";

// Runs that are listed at once. By judgement, not measured.
const PAGE = 20;
const OUTCOMES = ["healed", "nothing_to_heal", "not_healed", "stuck", "not_a_code_fault", "budget_exhausted", "waiting", "infra_error", "cancelled", "running"];

const origin = (run) => (run.fork_of ? `fork of ${run.fork_of}, step ${run.fork_at}` : run.replay_of ? `replay of ${run.replay_of}` : "");

export async function historyPage({ view, signal }) {
  const search = el("input", { type: "search", placeholder: "words in the task or its errors" });
  const outcome = choice([["", "any"], ...OUTCOMES.map((name) => [name, name.replaceAll("_", " ")])], "");
  const kind = choice([["", "any"], ["write", "write"], ["heal", "heal"]], "");
  const list = el("div", {});
  const chosen = new Set();
  const compare = button("Compare two runs", () => { const [one, two] = [...chosen].sort(); location.hash = `#/compare/${one}/${two}`; }, { disabled: true });
  let offset = 0;

  const pick = (run) => el("input", {
    type: "checkbox", "aria-label": `Select ${run} for comparison`, checked: chosen.has(run),
    onchange: (event) => { chosen[event.target.checked ? "add" : "delete"](run); compare.disabled = chosen.size !== 2; },
  });
  const shown = (found) => {
    const rows = found.runs.map((run) => [
      el("a", { href: `#/runs/${run.run}` }, run.run), badge(run.outcome), el("span", { class: "clip" }, run.task || `${run.kind} a project`),
      run.recipe, el("span", { class: "any" }, run.model), count(run.spend.tokens), seconds(run.spend.seconds), origin(run), when(run.started_s), pick(run.run),
    ]);
    const isFiltered = search.value || outcome.value || kind.value;
    const empty = isFiltered ? note("No run matches.") : el("p", { class: "empty" }, "No runs yet. ", el("a", { href: "#/new" }, "Start one"), ".");
    const more = el("p", { class: "row" },
      button("Newer", () => { offset = Math.max(0, offset - PAGE); load(); }, { disabled: offset === 0 }),
      button("Older", () => { offset += PAGE; load(); }, { disabled: offset + PAGE >= found.total }),
      el("span", {}, found.total ? `${offset + 1} to ${offset + found.runs.length} of ${found.total}` : ""));
    return [
      found.queued.length ? el("p", {}, "Queued: ", found.queued.map((one) => [el("a", { href: `#/runs/${one.run}` }, one.run), " "])) : null,
      rows.length ? table("Runs, newest first", ["run", "outcome", "task", "recipe", "model", "tokens", "time", "from", "started", "compare"], rows) : empty,
      more,
    ];
  };
  const load = reloadable(list, signal, async () => {
    const query = new URLSearchParams({ limit: PAGE, offset, search: search.value, outcome: outcome.value, kind: kind.value });
    return shown(await get(`/v1/runs?${query}`, signal));
  });
  const again = (event) => { event?.preventDefault(); offset = 0; load(); };
  await load();
  return fill(view, el("h1", {}, "Runs"),
    el("form", { class: "row", role: "search", onsubmit: again },
      field("Search", search), field("Outcome", outcome), field("Kind", kind), el("button", { type: "submit" }, "Find"), compare),
    list);
}

export async function comparePage({ view, signal, parts: [one, two], title }) {
  title("Two runs");
  const [first, second, comparison] = await Promise.all([get(`/v1/runs/${one}`, signal), get(`/v1/runs/${two}`, signal), get(`/v1/runs/${one}/compare/${two}`, signal)]);
  const [begun, other] = await Promise.all([one, two].map(async (run) => (await get(`/v1/runs/${run}?events=true`, signal)).events?.find((event) => event.kind === "run.started")?.data ?? {}));
  const rows = [
    ["outcome", badge(first.outcome || first.state), badge(second.outcome || second.state)],
    ["reason", first.reason ?? "", second.reason ?? ""],
    ["recipe", begun.recipe, other.recipe],
    ["model", el("span", { class: "any" }, begun.model), el("span", { class: "any" }, other.model)],
    ["attempts", count(first.spend.attempts), count(second.spend.attempts)],
    ["tokens", count(first.spend.tokens), count(second.spend.tokens)],
    ["money", dollars(first.spend.money), dollars(second.spend.money)],
    ["time", seconds(first.spend.seconds), seconds(second.spend.seconds)],
  ];
  const link = (run) => el("a", { href: `#/runs/${run}` }, run);
  const { difference } = comparison;
  return fill(view, el("h1", {}, "Two runs"),
    table("Side by side", ["", "first", "second"], [["run", link(one), link(two)], ...rows]),
    el("h2", {}, "First difference"),
    difference ? el("p", {}, `Event ${difference.position}, ${difference.kind}${difference.field ? `, ${difference.field}` : ""}: `, el("code", {}, difference.first || "nothing"), " and ", el("code", {}, difference.second || "nothing"))
      : note("Both runs took the same steps."),
    el("h2", {}, "Difference of the results"),
    comparison.diff ? diffView(comparison.diff, "first", "second", signal) : note("The results are identical."));
}
