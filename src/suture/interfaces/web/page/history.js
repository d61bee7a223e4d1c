// The list of runs, and the comparison of two runs.

import { get } from "./api.js";
import { age, button, choice, count, dollars, duration, el, fill, note, projectName, reloadable, table } from "./dom.js";
import { diffView } from "./diff.js";
import { badge, modelName } from "./panel.js";

// Runs that are listed at once, the pause in typing after which the list is searched, and how often it is read again while a run is in progress.
// By judgement, not measured.
const [PAGE, TYPED_MS, POLL_MS] = [25, 300, 2000];
const OUTCOMES = ["healed", "nothing_to_heal", "not_healed", "stuck", "not_a_code_fault", "budget_exhausted", "waiting", "infra_error", "cancelled", "running"];

// The kind that stands for the list of judgements, which are no runs.
const JUDGED = "judged";

const origin = (run) => (run.fork_of ? `fork of ${run.fork_of}, step ${run.fork_at}` : run.replay_of ? `replay of ${run.replay_of}` : null);
const facts = (run) => [run.delivery, run.recipe && projectName(run.recipe), run.model && modelName(run.model),
  run.spend.tokens ? `${count(run.spend.tokens)} tokens` : null, duration(run.spend.seconds), origin(run), el("span", { class: "id" }, run.run)].filter(Boolean);

const isActive = ({ outcome }) => outcome === "running";
const statesOf = ({ queued, runs }) => JSON.stringify([queued, runs.map(({ run, outcome }) => [run, outcome])]);

// The filters are part of the address, so that they are the same after a look at a run.
export async function historyPage({ view, signal, query, title }) {
  const search = el("input", { type: "search", placeholder: "Search tasks and errors", value: query.get("search") ?? "" });
  const outcome = choice([["", "Any outcome"], ...OUTCOMES.map((name) => [name, name.replaceAll("_", " ")])], query.get("outcome") ?? "");
  const kind = choice([["", "Any run"], ["heal", "Repairs"], ["write", "New code"], [JUDGED, "Judged changes"]], query.get("kind") ?? "");
  const filters = { search, outcome, kind };
  const [heading, list] = [el("h1", {}, "Runs"), el("div", {})];
  const chosen = new Set();
  const compare = button("Compare two runs", () => { const [one, two] = [...chosen].sort(); location.hash = `#/compare/${one}/${two}`; });
  compare.hidden = true;
  let offset = Number(query.get("offset")) || 0;

  const pick = ({ run, title }) => el("input", {
    type: "checkbox", "aria-label": `Select ${title}, ${run}, for comparison`, checked: chosen.has(run),
    onchange: (event) => { chosen[event.target.checked ? "add" : "delete"](run); compare.hidden = chosen.size !== 2; },
  });
  const beginning = ({ run, state, title, requested_s }) => el("li", {}, el("span", {}), badge(state),
    el("div", {}, el("a", { href: `#/runs/${run}` }, title || run), el("p", { class: "meta" }, el("span", { class: "id" }, run))), age(requested_s));
  const row = (run, isAmbiguous) => el("li", {}, pick(run), badge(run.outcome, run.doubt, run.kind),
    el("div", {}, el("a", { href: `#/runs/${run.run}` }, run.title || (isActive(run) ? "Starting ..." : run.run)), el("p", { class: "meta" }, [isAmbiguous ? run.project : null, ...facts(run)].filter(Boolean).map((one) => el("span", {}, one)))),
    el("span", { class: "end" }, run.outcome === "waiting" ? el("a", { href: `#/runs/${run.run}`, class: "button", "aria-label": `Answer: ${run.title}` }, "Answer") : null, age(run.started_s)));
  const shown = (found) => {
    // Copies of one project have the same title, and are told apart by their folders.
    const foldersOf = (title) => new Set(found.runs.filter((run) => run.title === title).map((run) => run.project));
    const isFiltered = search.value || outcome.value || kind.value;
    const empty = isFiltered ? note("No run matches.") : el("div", { class: "empty" }, el("p", {}, "No runs yet. A run repairs a project whose tests fail, or writes new code."), el("p", {}, el("a", { href: "#/new", class: "button main" }, "Start the first run")));
    const more = pages(found.total);
    // The list has no line of a run yet that is queued or has just begun.
    const begun = isFiltered || offset ? [] : found.queued.filter(({ run }) => !found.runs.some((one) => one.run === run)).reverse();
    return [
      begun.length || found.runs.length ? el("ul", { class: "runs", "aria-label": "Runs, newest first" }, begun.map(beginning), found.runs.map((run) => row(run, foldersOf(run.title).size > 1))) : empty,
      found.unindexed ? note(`${count(found.unindexed)} older runs may be missing: they are being read.`) : null,
      more ?? (found.runs.length > 1 ? el("p", { class: "hint" }, "Select two runs to compare them.") : null),
    ];
  };
  const judgements = ({ total, judgements: found }) => [
    found.length ? el("ul", { class: "runs judgements", "aria-label": "Judged changes, newest first" }, found.map((one) => el("li", {}, badge(one.outcome),
      el("div", {}, el("a", { href: `#/judge/${one.id}` }, [projectName(one.path), one.change].filter(Boolean).join(": ")), el("p", { class: "meta" }, [one.headline.includes(": ") ? one.headline.replace(/^.*?: /, "") : null, one.path].filter(Boolean).map((text) => el("span", {}, text)), el("span", { class: "id" }, one.id))), age(one.requested_s))))
      : el("p", { class: "empty" }, "No change has been judged here yet. ", el("a", { href: "#/judge" }, "Judge one"), "."),
    pages(total),
    el("p", { class: "hint" }, "These are the changes that were judged on this page, or by a request to this server."),
  ];
  const pages = (total) => (total <= PAGE ? null : el("p", { class: "row" },
    button("Newer", () => { offset = Math.max(0, offset - PAGE); load(); }, { disabled: offset === 0 }),
    button("Older", () => { offset += PAGE; load(); }, { disabled: offset + PAGE >= total }),
    el("span", {}, `${offset + 1} to ${Math.min(offset + PAGE, total)} of ${total}`)));
  // Draws the list again when a run in it begins or ends, and not before, so that keyboard focus is kept.
  let newest = null; // stands for the newest request: only its list is watched
  const watch = (request, path, before) => setTimeout(async () => {
    if (signal.aborted || request !== newest) return;
    const now = await get(path, signal).catch(() => null);
    if (request !== newest) return;
    if (now && statesOf(now) !== before) load();
    else watch(request, path, before);
  }, POLL_MS);
  const load = reloadable(list, signal, async () => {
    const request = newest = {};
    const given = Object.entries({ ...Object.fromEntries(Object.entries(filters).map(([name, control]) => [name, control.value])), offset }).filter(([, value]) => value);
    const address = `#/${given.length ? `?${new URLSearchParams(given)}` : ""}`;
    if (!signal.aborted && (location.hash || "#/") !== address) history.replaceState(null, "", address);
    const isJudged = kind.value === JUDGED;
    search.hidden = outcome.hidden = isJudged;
    fill(heading, isJudged ? "Judged changes" : "Runs");
    title(heading.textContent);
    if (isJudged) return judgements(await get(`/v1/judgements?${new URLSearchParams({ limit: PAGE, offset })}`, signal));
    const path = `/v1/runs?${new URLSearchParams([["limit", PAGE], ...given])}`;
    const found = await get(path, signal);
    if (found.queued.length || found.runs.some(isActive)) watch(request, path, statesOf(found));
    // Runs that wait for an answer come first, also those of later pages.
    const isWaiting = (run) => run.outcome === "waiting";
    if (!offset && !search.value && !outcome.value && !kind.value) {
      const waiting = found.total > PAGE ? (await get(`/v1/runs?outcome=waiting&limit=${PAGE}`, signal)).runs : found.runs.filter(isWaiting);
      found.runs = [...waiting, ...found.runs.filter((run) => !isWaiting(run))];
    }
    return shown(found);
  });
  let typed = null;
  const again = (event) => { event.preventDefault(); clearTimeout(typed); offset = 0; load(); };
  search.addEventListener("input", (event) => { clearTimeout(typed); typed = setTimeout(() => again(event), TYPED_MS); });
  await load();
  const named = (label, control) => { control.setAttribute("aria-label", label); return control; };
  return fill(view, heading,
    el("form", { class: "row filters", role: "search", onsubmit: again, onchange: again }, named("Search", search), named("Outcome", outcome), named("Kind", kind), compare),
    list);
}

// A value of an event as JSON, with the hashes of candidates cut.
const brief = (value) => (value ? el("code", {}, value.replaceAll(/[0-9a-f]{64}/g, (hash) => hash.slice(0, 8))) : "nothing");

export async function comparePage({ view, signal, parts: [one, two], title }) {
  const [first, second, comparison] = await Promise.all([get(`/v1/runs/${one}`, signal), get(`/v1/runs/${two}`, signal), get(`/v1/runs/${one}/compare/${two}`, signal)]);
  const differs = (name) => first[name] !== second[name];
  const names = [first, second].map((run) => (differs("title") ? run.title : differs("project") ? run.project : `${run.title} (${new Date(run.started_s * 1000).toLocaleString()})`));
  title(`${names[0]} and ${names[1]}`);
  const rows = [
    ["outcome", (run) => badge(run.outcome || run.state, run.doubt, run.kind)], ["result", (run) => run.headline], ["evidence", (run) => run.evidence], ["recipe", (run) => run.recipe], ["model", (run) => el("span", { class: "any" }, run.model && modelName(run.model))],
    ["candidates by the model", (run) => count(run.spend.attempts)], ["tokens", (run) => count(run.spend.tokens)], ["money", (run) => dollars(run.spend.money)], ["time", (run) => duration(run.spend.seconds)],
    ["started", (run) => age(run.started_s)], ["run", (run) => el("a", { href: `#/runs/${run.run}` }, run.run)],
  ];
  const { difference } = comparison;
  // Copies of a project in which the same tests fail are one task, wherever they are.
  const isSameTask = !differs("kind") && (first.kind === "heal" ? !differs("title") : !differs("task"));
  return fill(view, el("h1", {}, "Two runs compared"),
    isSameTask ? null : note("The two runs have different tasks. Only their figures are compared."),
    isSameTask && !comparison.diff && !difference ? el("p", {}, "Both runs took the same steps and have the same result.") : null,
    !isSameTask || !(comparison.diff || difference) ? null : [el("h2", {}, "Difference of the results"),
    comparison.diff ? diffView(comparison.diff, names[0], names[1], signal) : note("The results are identical."),
    el("h2", {}, "First difference"),
    difference ? el("p", {}, `The runs are alike up to line ${difference.position} of their timelines. There, ${(difference.field || "what happens").replaceAll("_", " ")} differs: `, brief(difference.first), " and ", brief(difference.second), ".")
      : note("Both runs took the same steps.")],
    el("h2", {}, "Side by side"),
    table("Side by side", ["", ...names], rows.map(([name, of]) => [name, of(first), of(second)]).filter(([, ...cells]) => cells.some(Boolean)), { class: "pair untitled" }));
}
