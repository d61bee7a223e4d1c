// What has happened, as it happens; and the run as it stood after each of its decisions, to fork it from there.

import { get, post } from "./api.js";
import { button, choice, code, count, dollars, el, fault, field, fill, note, renewed, seconds } from "./dom.js";
import { factView } from "./panel.js";
import { choices } from "./start.js";

const MOST_LINES = 400;

export async function timelinePanel(body, state) {
  const list = el("ol", { class: "timeline", "aria-label": "Events, oldest first" });
  const more = el("p", { class: "row" });
  const empty = el("div", {});
  let most = MOST_LINES;
  const line = (event) => el("li", { class: event.kind.replace(".", "-") },
    el("time", {}, seconds(event.time_s - (state.events[0]?.time_s ?? event.time_s))), el("span", { class: "kind" }, event.kind), el("span", { class: "told" }, event.told));
  const told = () => state.events.filter((event) => event.told);
  const draw = () => {
    const every = told();
    fill(list, every.slice(-most).map(line));
    fill(more, every.length > most ? button(`Show ${every.length - most} earlier`, () => { most = Infinity; draw(); }) : null);
  };
  state.live = (event) => {
    if (!event.told) return;
    list.append(line(event));
    fill(empty);
  };
  state.begins = () => fill(list);
  fill(body, el("h2", {}, "Timeline"), more, empty, list);
  draw();
  return async () => {
    if (list.childElementCount > most) draw();
    const { shown } = state;
    const reason = { queued: "It waits for its turn.", refused: "It was refused before it began." }[shown.state] ?? "Nothing has happened yet.";
    fill(empty, list.childElementCount ? null : note(reason));
  };
}

export async function stepsPanel(body, state) {
  const slot = el("div", {});
  const steps = choice([], "");
  let last = -1;
  const load = renewed(slot, state.signal, () => stepView(state, Number(steps.value)));
  const isWritten = () => [...slot.querySelectorAll("textarea")].some((control) => control.value);
  steps.addEventListener("change", load);
  fill(body, el("h2", {}, "Steps"), el("p", { class: "hint" }, "A step is a decision that was carried out. Look at the run as it stood then, and start another one from there."),
    field("Step", steps), slot);
  return async () => {
    const decided = state.events.filter((event) => event.kind === "decided" && event.data.decision).length;
    const ended = state.shown.state === "ended";
    const newest = decided - (ended ? 1 : 0);
    if (decided === 0) { fill(slot, note(state.events.length ? "It has taken no step yet." : "Loading ...", "loading")); return; }
    if (newest === last) return;
    const chosen = steps.value || state.item || "0";
    // A step that was left behind does not change any more, and a hint is never taken from under somebody's hands.
    const stays = last >= 0 && (Number(chosen) < last || isWritten());
    last = newest;
    fill(steps, Array.from({ length: newest + 1 }, (_, n) => el("option", { value: String(n) }, n === 0 ? "0: before the first decision" : `after decision ${n}`)));
    steps.value = Number(chosen) <= newest ? chosen : "0";
    if (!stays) await load();
  };
}

async function stepView(state, at) {
  const [step, recipes, models] = await Promise.all([get(`/v1/runs/${state.run}/steps/${at}`, state.signal), get("/v1/recipes", state.signal), get("/v1/models", state.signal)]);
  const next = (step.decided_next?.moves ?? []).map((move) => `${move.kind}${move.reason ? `: ${move.reason}` : ""}`).join("; ");
  const total = step.passed + step.failed;
  return [
    el("p", {}, step.best ? `Best then: ${step.label || step.best.slice(0, 8)}, ${step.passed} of ${total} checks pass.` : "There was no candidate yet."),
    el("p", {}, `Spent by then: ${count(step.spend.attempts)} attempts, ${count(step.spend.tokens)} tokens, ${dollars(step.spend.money)}, ${seconds(step.spend.seconds)}.`),
    next ? el("p", {}, `Decided next: ${next}`) : null,
    Object.entries(step.files).map(([path, text]) => [el("h3", {}, path), code(text, path)]),
    step.facts.map((fact) => factView(fact)),
    state.caller.role === "viewer" ? note("A viewer forks no runs: it takes the role runner.") : forkForm(state, at, recipes, models),
  ];
}

function forkForm(state, at, recipes, models) {
  const hint = el("textarea", { rows: "3" });
  const how = choices(state.caller, recipes, models);
  const said = el("div", {});
  const fork = async (event) => {
    event.preventDefault();
    fill(said, note("Starting ...", "loading"));
    try {
      const told = await post(`/v1/runs/${state.run}/fork`, { at, hint: hint.value, ...how.read() });
      location.hash = `#/runs/${told.run}`;
    } catch (error) {
      fill(said, fault(error));
    }
  };
  return el("form", { class: "panel", onsubmit: fork }, el("h3", {}, `Fork from step ${at}`),
    field("Hint", hint, "What the model is told from there on. May be left empty."), how.node,
    el("button", { type: "submit", class: "main" }, "Fork"), said);
}
