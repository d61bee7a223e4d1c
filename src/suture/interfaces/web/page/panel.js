// What several panels of a run show alike.

import { add, choice, el, fill, note } from "./dom.js";

export const badge = (outcome) => el("span", { class: `badge ${/^[a-z_]+$/.test(outcome ?? "") ? outcome : ""}` }, (outcome || "unknown").replaceAll("_", " "));

// A counterexample: the smallest call that goes wrong.
export function factView(fact) {
  const place = fact.file ? `${fact.file}${fact.line ? `, line ${fact.line}` : ""}` : "";
  const parts = [["call", fact.call], ["expected", fact.expected], ["got", fact.got], ["raised", fact.exception], ["at", place]];
  return el("dl", { class: "fact" }, parts.filter(([, value]) => value).map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, el("code", {}, value)))));
}

// What a panel keeps while it is looked at: a chosen candidate, drawn only where the data has changed.
export function unlessSame(draw) {
  let before;
  return async (data) => {
    const now = JSON.stringify(data);
    if (now === before) return;
    before = now;
    await draw(data);
  };
}

export function candidateChoice(candidates, value, given = false) {
  const options = candidates.map((one, n) => [one.candidate, `${n + 1}. ${one.label || one.candidate.slice(0, 8)}${one.best ? " (best)" : ""}`]);
  return choice(given ? [["given", "the task's own files"], ...options] : options, value);
}

export const hasRun = (state) => !["queued", "refused"].includes(state.shown.state) && state.events.length + (state.shown.spend?.seconds ? 1 : 0) > 0;
export const nothingYet = (body, state, what) => add(fill(body), note(state.shown.state === "queued" ? "It waits for its turn." : `${what} yet.`));
