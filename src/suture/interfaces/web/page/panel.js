// Elements that several panels of a run share.

import { add, choice, el, fill, note } from "./dom.js";

// A model's name as a person reads it: without the folders of a file.
export const modelName = (name) => (name === "none" ? "no model" : name.replace(/^local:/, "").replace(/^(\w+:).*\//, "$1") + (name.startsWith("local:") ? " (on this machine)" : ""));

// What decides is the user's tests in a repair, and checks made from examples and asserts in new code.
export const checksName = ({ kind }) => (kind === "write" ? "checks" : "tests");

// What a confidence asks of its reader (docs/proof.md): the least value -> a word, and what to do.
export const HIGH_CONFIDENCE = 0.9;
const CONFIDENCES = [[HIGH_CONFIDENCE, "high", "a glance at the change is enough"], [0.7, "medium", "read the change before you use it"], [0, "low", "check the change yourself before you use it"]];
export const confidenceText = (value) => { const [, word, advice] = CONFIDENCES.find(([least]) => value >= least); return `${word} (${value.toFixed(2)} of 1): ${advice}`; };

// Why a result that passes may be wrong -> the word for its outcome, and the reason.
export const DOUBTS = {
  undecided: ["healed, undecided", "the tests do not decide whether the change is right"],
  unverified: ["unverified", "nothing in the task shows what the code must do"],
  unsure: ["healed, low confidence", "the tests leave open whether the change is right"],
};
// New code is done where a repair is healed, as in the terminal.
export const badge = (outcome, doubt = "", kind = "heal") => {
  const word = (doubt ? DOUBTS[doubt][0] : outcome || "unknown").replaceAll("_", " ");
  return el("span", { class: `badge ${doubt ? "doubted" : /^[a-z_]+$/.test(outcome ?? "") ? outcome : ""}` }, kind === "write" ? word.replace(/\bhealed\b/, "done") : word);
};

// When a run was requested, in seconds since the epoch: every clock of it starts there. `undefined` before its first event.
export const startOf = (events) => (events.length ? events[0].time_s - (events[0].data.preparation_s ?? 0) : undefined);

// How many checks pass: "2 of 3 tests pass", or "the only test passes". Without a noun, several stay unnamed.
export const passText = (passed, total, nouns = "") => (total === 1 ? `the only ${nouns.slice(0, -1) || "check"} ${passed ? "passes" : "does not pass"}` : [`${passed} of ${total}`, nouns, passed === 1 ? "passes" : "pass"].filter(Boolean).join(" "));

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

// A candidate's name with its place in the list, unless it has a number of its own.
export function candidateName(one, place) {
  const label = one.label || (one.origin === "user" ? "your code" : one.candidate.slice(0, 8));
  return /^candidate \d/.test(label) ? label : `${place + 1}. ${label}`;
}

export function candidateChoice(candidates, value, withOriginal = false) {
  const options = candidates.map((one, n) => [one.candidate, `${candidateName(one, n)}${one.best ? " (best)" : ""}`]);
  return choice(withOriginal ? [["original", "the original files"], ...options] : options, value);
}

export const hasRun = (state) => !["queued", "refused"].includes(state.shown.state) && state.events.length + (state.shown.spend?.seconds ? 1 : 0) > 0;
export const nothingYet = (body, state, what) => add(fill(body), note(state.shown.state === "queued" ? "The run is queued." : `${what} yet.`));
