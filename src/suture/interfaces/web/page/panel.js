// Elements that several panels of a run share.

import { add, choice, el, fill, note } from "./dom.js";

export const badge = (outcome) => el("span", { class: `badge ${/^[a-z_]+$/.test(outcome ?? "") ? outcome : ""}` }, (outcome || "unknown").replaceAll("_", " "));

// When a run was requested, in seconds since the epoch: every clock of it starts there. `undefined` before its first event.
export const startOf = (events) => (events.length ? events[0].time_s - (events[0].data.preparation_s ?? 0) : undefined);

// A counterexample: the smallest call that fails, named by its test unless that stands beside it.
export function factView(fact, test = fact.check_id) {
  const place = fact.file ? `${fact.file}${fact.line ? `, line ${fact.line}` : ""}` : "";
  const parts = [["test", test], ["call", test.includes(fact.call) ? "" : fact.call], ["expected", fact.expected], ["got", fact.actual], ["raised", fact.exception], ["at", place]];
  return el("dl", { class: "fact" }, parts.filter(([, value]) => value).map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, el("code", {}, value)))));
}

// Calls `draw` only if the data has changed, so that the user's selections in the panel are kept.
export function drawIfChanged(draw) {
  let before;
  return async (data) => {
    const now = JSON.stringify(data);
    if (now === before) return;
    before = now;
    try { await draw(data); } catch (error) { before = undefined; throw error; }
  };
}

export function candidateChoice(candidates, value, withOriginal = false) {
  const options = candidates.map((one, n) => [one.candidate, `${n + 1}. ${one.label || (one.origin === "user" ? "your code" : one.candidate.slice(0, 8))}${one.best ? " (best)" : ""}`]);
  return choice(withOriginal ? [["original", "the original files"], ...options] : options, value);
}

export const hasRun = (state) => !["queued", "refused"].includes(state.shown.state) && state.events.length + (state.shown.spend?.seconds ? 1 : 0) > 0;
export const nothingYet = (body, state, what) => add(fill(body), note(state.shown.state === "queued" ? "The run is queued." : `${what} yet.`));
