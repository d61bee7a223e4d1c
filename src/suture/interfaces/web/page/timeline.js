// The events as they arrive, each with the phase that it belongs to; and the run's state after each decision, from which it can be forked.

import { get, post } from "./api.js";
import { add, button, choice, code, count, dollars, el, elapsed, fault, field, fill, note, reloadable, seconds } from "./dom.js";
import { phasesOf } from "./live.js";
import { checksName, factView, passText, startOf } from "./panel.js";
import { choices } from "./start.js";

// The newest events that are shown at first, so that a long run is drawn quickly. By judgement, not measured.
const MAX_LINES = 400;
// A kind of event -> whether it is good or bad news.
const TONES = {
  "candidate.checked": ({ passed, failed }) => (failed ? "bad" : passed ? "good" : ""),
  "run.finished": ({ outcome }) => (["healed", "nothing_to_heal"].includes(outcome) ? "good" : "bad"),
  "move.failed": () => "bad",
  "candidate.regressed": () => "bad",
};

export async function timelinePanel(body, state) {
  const list = el("ol", { class: "timeline", "aria-label": "Events, oldest first" });
  const more = el("p", { class: "row" });
  const empty = el("div", {});
  let most = MAX_LINES;
  const { phaseOf, nameOf } = phasesOf(state.shown);
  let phase = ""; // of the last line
  let previous = null; // the last line: its event's kind and text, its element, and how often it was repeated
  // Adds an event to the list; a failure of the model that repeats the line before it is only counted.
  const append = (event) => {
    if (event.kind === "move.failed" && previous?.text === event.text) {
      previous.times += 1;
      return fill(previous.count, ` (${previous.times} times)`);
    }
    const node = line(event);
    previous = { text: event.text, times: 1, count: add(node.querySelector(".text"), el("span", {})).lastChild };
    return list.append(node);
  };
  const line = (event) => {
    const next = phaseOf(event) ?? phase;
    const name = next === phase ? "" : nameOf(next);
    phase = next;
    const tone = TONES[event.kind]?.(event.data) ?? "";
    return el("li", { class: `${event.kind.replace(".", "-")}${name ? " begins" : ""}` },
      el("time", {}, elapsed(event.time_s - (startOf(state.events) ?? event.time_s))), el("strong", {}, name),
      el("span", { class: `text ${tone}` }, event.text));
  };
  const withText = () => state.events.filter((event) => event.text);
  const draw = () => {
    const every = withText();
    phase = "";
    previous = null;
    fill(list);
    every.slice(-most).forEach(append);
    fill(more, every.length > most ? button(`Show ${every.length - most} earlier events`, () => { most = Infinity; draw(); }) : null);
  };
  state.live = (event) => {
    if (!event.text) return;
    append(event);
    fill(empty);
  };
  state.begins = () => { phase = ""; previous = null; fill(list); };
  fill(body, more, empty, list);
  draw();
  return async () => {
    if (list.childElementCount > most) draw();
    const { shown } = state;
    const reason = { queued: "The run is queued.", refused: "The run was refused before it started." }[shown.state];
    fill(empty, list.childElementCount || !reason ? null : note(reason));
  };
}

export async function stepsPanel(body, state) {
  const slot = el("div", {});
  const steps = choice([], "");
  let last = -1;
  const load = reloadable(slot, state.signal, () => stepView(state, Number(steps.value)));
  const isWritten = () => [...slot.querySelectorAll("textarea")].some((control) => control.value);
  steps.addEventListener("change", load);
  const replay = button("Replay from its record", async () => { location.hash = `#/runs/${(await post(`/v1/runs/${state.run}/replay`)).run}`; });
  fill(body, el("p", { class: "hint" }, "A step is one decision and what followed from it. Look at the run at that point, and start a new run from there."),
    el("div", { class: "row" }, field("Step", steps), state.caller.role === "viewer" ? null : replay), slot);
  return async () => {
    const decided = state.events.filter((event) => event.kind === "moves.decided" && event.data.decision).length;
    const ended = state.shown.state === "ended";
    const newest = decided - (ended ? 1 : 0);
    if (decided === 0) { fill(slot, note(state.events.length ? "The run has not completed a step yet." : "Loading ...", "loading")); return; }
    if (newest === last) return;
    const chosen = steps.value || state.item || String(newest);
    // An earlier step no longer changes, and a hint that somebody is writing is never lost.
    const stays = last >= 0 && (Number(chosen) < last || isWritten());
    last = newest;
    fill(steps, Array.from({ length: newest + 1 }, (_, n) => el("option", { value: String(n) }, n === 0 ? "0: before the first decision" : `${n}: after decision ${n}${n === newest ? " (newest)" : ""}`)));
    steps.value = String(Math.min(Number(chosen) || 0, newest));
    if (!stays) await load();
  };
}

async function stepView(state, at) {
  const [step, recipes, models] = await Promise.all([get(`/v1/runs/${state.run}/steps/${at}`, state.signal), get("/v1/recipes", state.signal), get("/v1/models", state.signal)]);
  const total = step.passed + step.failed;
  return [
    el("p", {}, step.best ? `Best candidate at this step: ${step.label || step.best.slice(0, 8)}, ${passText(step.passed, total, checksName(state.shown))}.` : "There was no candidate yet: this is how the run began."),
    el("p", {}, `Spent up to this step: ${count(step.spend.attempts)} candidates by the model, ${count(step.spend.tokens)} tokens, ${dollars(step.spend.money)}, ${seconds(step.spend.seconds)}.`),
    step.next_text ? el("p", {}, `Decision after this step: ${step.next_text.replace(/^next: /, "")}`) : null,
    Object.entries(step.files).map(([path, text]) => [el("h3", {}, path), code(text, path)]),
    step.facts.map((fact) => factView(fact)),
    state.caller.role === "viewer" ? note("Forking requires the role runner.")
      : state.caller.role !== "admin" && state.shown.caller !== state.caller.name ? note("Only the run's owner or an admin can fork it.")
        : forkForm(state, at, recipes, models, `Fork from step ${at}`),
  ];
}

// The form that starts a new run from a step of this one.
export function forkForm(state, at, recipes, models, heading) {
  const hint = el("textarea", { rows: "3" });
  const how = choices(state.caller, recipes, models, state.shown.kind === "write");
  const status = el("div", {});
  const fork = async (event) => {
    event.preventDefault();
    fill(status, note("Starting ...", "loading"));
    try {
      const receipt = await post(`/v1/runs/${state.run}/fork`, { at, hint: hint.value, ...how.read() });
      location.hash = `#/runs/${receipt.run}`;
    } catch (error) {
      fill(status, fault(error));
    }
  };
  return el("form", { class: "panel", onsubmit: fork }, el("h3", {}, heading),
    how.node, field("Hint", hint, "Optional. A hint for the model from there on."),
    el("button", { type: "submit", class: "main" }, at === null ? "Try again" : "Fork"), status);
}
