// A run in progress: its phases with a moving clock, the words that a model is writing, the tests, and the candidates.

import { count, el, elapsed, fill, note } from "./dom.js";
import { checksName, passText, startOf } from "./panel.js";

// The phases of a run, in order, with what each of them does.
const PHASES = { prepare: "Run your tests", search: "Try small edits", write: "Ask the model", check: "Test candidates", certify: "Check the result" };
// The kind of an event -> the phase that it begins. A decision begins the phase of its move.
const BEGINS = {
  "run.started": "prepare", "search.started": "search", "agent.briefed": "write",
  "repair.undetermined": "certify", "certificate.written": "certify",
};
const MOVES = { mutate: "search", stop: "certify" };
// Tests that are drawn one by one, candidates and lines of a reply that are shown. By judgement, not measured.
const [MAX_DOTS, MAX_CANDIDATES, MAX_LINES] = [120, 8, 14];

// A candidate is what the search has found or a model has written, and not the user's own code.
const isCandidate = ({ kind, data }) => (kind === "search.finished" ? data.repairs.length > 0 : kind === "candidate.proposed" && data.origin !== "user");
const phaseOfEvent = (event) => (event.kind === "moves.decided" ? MOVES[event.data.moves[0].kind] ?? "write" : isCandidate(event) ? "check" : BEGINS[event.kind]);

// The phase that an event of a run begins, and the name of a phase.
export const phasesOf = ({ kind }) => ({ phaseOf: phaseOfEvent, nameOf: (name) => (name === "prepare" && kind === "write" ? "Read the task" : PHASES[name]) });

// Returns a node with a run's progress, and a function that draws it; the clock moves by itself.
export function liveView(state) {
  const [steps, clock, now, tests, candidates] = Array.from({ length: 5 }, () => el("div", {}));
  const words = el("pre", { class: "words", tabindex: "0", role: "region", "aria-label": "What the model is writing" });
  const node = el("section", { class: "live", "aria-label": "Progress" }, el("div", { class: "row" }, steps, clock), now, tests, candidates, words);
  const opened = Date.now() / 1000;
  let phases = [];
  const tick = () => {
    const time = Date.now() / 1000;
    const start = startOf(state.events) ?? opened;
    const since = phases.length > 1 ? phases.at(-1).since : start;
    fill(clock, el("span", { class: "clock" }, elapsed(time - start)));
    fill(steps, el("ol", { class: "steps" }, Object.entries(PHASES).filter(([name]) => isPossible(name, state, phases)).map(([name]) => {
      const current = (phases.at(-1)?.name ?? (state.shown.state === "running" ? "prepare" : "")) === name;
      const kind = current ? "active" : phases.some((one) => one.name === name) ? "done" : "";
      return el("li", { class: kind, "aria-current": current ? "step" : null }, phasesOf(state.shown).nameOf(name), current ? el("span", { class: "clock" }, ` ${elapsed(time - since)}`) : null);
    })));
  };
  const timer = setInterval(tick, 1000);
  state.signal.addEventListener("abort", () => clearInterval(timer));
  const draw = () => {
    node.hidden = !["running", "queued"].includes(state.shown.state);
    if (node.hidden) return;
    phases = [];
    for (const event of state.events) {
      const name = phaseOfEvent(event);
      if (name && name !== phases.at(-1)?.name) phases.push({ name, since: event.time_s });
    }
    tick();
    const beginning = state.shown.state === "queued" ? "Waiting for a free place on the server." : state.shown.kind === "write" ? "Reading the task ..." : "Reading the project, then running its tests ...";
    const search = state.events.findLast((event) => ["search.started", "search.finished"].includes(event.kind));
    const tried = state.search && search?.kind === "search.started" ? `Tried ${count(state.search.tried)} of at most ${count(search.data.candidates)} edits.${state.search.best ? ` The best one ${state.search.best}.` : ""}` : "";
    fill(now, note(tried || state.story || beginning, "now"));
    const checks = state.events.filter((event) => event.kind === "candidate.checked").map((event) => event.data);
    fill(tests, dots(checks, checksName(state.shown)));
    const names = new Set(state.events.filter((event) => event.kind === "candidate.proposed" && isCandidate(event)).map((event) => event.data.candidate));
    const proposed = checks.filter((check) => check.label && names.has(check.candidate));
    fill(candidates, proposed.length ? el("ul", { class: "chips", "aria-label": "Candidates" }, proposed.slice(-MAX_CANDIDATES).map((one) =>
      el("li", { class: one.failed ? "" : "good" }, `${one.label.replace(/^mutation, /, "").replace(/, T=.*/, "")}: ${one.passed} of ${one.passed + one.failed}`))) : null);
    words.hidden = !state.reply;
    fill(words, state.reply.split("\n").slice(-MAX_LINES).join("\n"));
  };
  return { node, draw };
}

const isPossible = (name, state, phases) => phases.some((one) => one.name === name) || !((name === "search" && state.shown.kind === "write") || (name === "write" && state.shown.model === "none"));

// One square for each test of the best candidate so far.
function dots(checks, noun) {
  const best = checks.reduce((one, other) => (one && one.passed >= other.passed ? one : other), null);
  const total = best ? best.passed + best.failed : 0;
  if (!total) return null;
  const [shown, words] = [Math.min(total, MAX_DOTS), passText(best.passed, total, noun)];
  const green = Math.floor((best.passed / total) * shown);
  return el("p", { class: "dots", role: "img", "aria-label": words }, Array.from({ length: shown }, (_, n) => el("span", { class: n < green ? "dot passed" : "dot" })), el("span", { class: "hint" }, words));
}
