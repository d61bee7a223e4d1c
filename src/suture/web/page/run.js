// One run: its events as they come, and the panels that show them. What a panel knows it has from the ledger.

import { follow, get, post } from "./api.js";
import { button, count, dollars, el, fault, fill, note, say, seconds } from "./dom.js";
import { codePanel, lineagePanel, testsPanel } from "./candidates.js";
import { graphPanel } from "./graph.js";
import { learningPanel } from "./learning.js";
import { badge } from "./panel.js";
import { performancePanel } from "./performance.js";
import { proofPanel } from "./proof.js";
import { reviewPanel } from "./review.js";
import { stepsPanel, timelinePanel } from "./timeline.js";

const TABS = [
  ["timeline", "Timeline", timelinePanel],
  ["candidates", "Candidates", lineagePanel],
  ["code", "Code", codePanel],
  ["tests", "Tests", testsPanel],
  ["learning", "Learning", learningPanel],
  ["performance", "Performance", performancePanel],
  ["graph", "Graph", graphPanel],
  ["review", "Review", reviewPanel],
  ["proof", "Certificate", proofPanel],
  ["steps", "Steps and fork", stepsPanel],
];
const SETTLED_MS = 250;
const POLL_MS = 1000;
// Of these a run has many, and none changes what the service tells of it beside its events.
const QUIET = new Set(["budget.reserved", "budget.settled", "agent.stepped", "part.stepped", "debugger.stepped", "prompt.shrunk"]);

export async function runPage({ view, signal, caller, parts: [run, tab, item], title }) {
  title(`Run ${run}`);
  const [name, label, panel] = TABS.find(([key]) => key === (tab || "timeline")) ?? TABS[0];
  const head = el("div", {});
  const body = el("section", { "aria-label": label });
  const state = { run, signal, caller, item, events: [], shown: await get(`/v1/runs/${run}`, signal) };
  const panels = el("nav", { class: "tabs", "aria-label": "Of this run" }, TABS.map(([key, text]) =>
    el("a", { href: `#/runs/${run}/${key}`, "aria-current": key === name ? "page" : null }, text)));
  let drawn = null;
  let heading = "";

  const draw = async () => {
    // The head too is drawn anew only where it says something new: who is on one of its buttons stays there.
    const told = JSON.stringify([state.shown, state.broken?.message, state.failed?.message]);
    if (told !== heading) { heading = told; fill(head, ...headOf(state, refresh)); }
    panels.querySelector("a[href$=review]").classList.toggle("asks", state.shown.state === "waiting");
    try {
      drawn ??= await panel(body, state);
      await drawn();
    } catch (error) {
      if (!signal.aborted) fill(body, fault(error), button("Try again", () => { drawn = null; draw(); }));
    }
  };
  let timer = null;
  let running = null;
  const settle = (ms = SETTLED_MS) => { timer ??= setTimeout(async () => { timer = null; await running; running = refresh(); }, ms); };
  const refresh = async () => {
    if (signal.aborted) return;
    const before = state.shown.state;
    try {
      state.shown = await get(`/v1/runs/${run}`, signal);
      state.failed = null;
    } catch (error) {
      state.failed = error;
    }
    if (signal.aborted) return;
    if (before !== state.shown.state) say(`The run is now ${state.shown.state} ${state.shown.outcome ?? ""}`);
    if (!listening && (state.shown.state === "running" || state.shown.state === "queued")) listen();
    await draw();
    // Its last event comes a moment before its process ends, and with that it changes its state.
    if (state.failed || ["running", "queued"].includes(state.shown.state)) settle(POLL_MS);
  };
  let listening = false;
  const listen = async () => {
    listening = true;
    state.events = [];
    state.begins?.();
    try {
      await follow(run, {
        signal,
        onevent: (event) => { state.events.push(event); if (state.live) state.live(event); if (!QUIET.has(event.kind)) settle(); },
        onbreak: (broken) => { if (state.broken !== broken) { state.broken = broken; settle(); } },
      });
      listening = false;
      settle();
    } catch (error) {
      listening = false;
      if (!signal.aborted) { state.broken = error; draw(); }
    }
  };
  fill(view, head, panels, body);
  fill(body, note("Loading ...", "loading"));
  await draw();
  listen();
}

function headOf(state, refresh) {
  const { run, shown, caller } = state;
  const said = el("div", {});
  const may = caller.role !== "viewer";
  const ask = (path, then) => async () => {
    try { const told = await post(`/v1/runs/${run}/${path}`); then ? then(told) : await refresh(); } catch (error) { fill(said, fault(error)); }
  };
  const active = ["running", "queued", "waiting"].includes(shown.state);
  const canGoOn = shown.state === "stopped" || (shown.state === "ended" && ["cancelled", "infra_error"].includes(shown.outcome));
  const spend = shown.spend ?? {};
  const broken = state.broken ?? state.failed;
  return [
    el("h1", {}, `Run ${run}`),
    el("p", { class: "row" }, badge(shown.outcome || shown.state), shown.outcome && shown.state !== "ended" ? el("span", {}, shown.state) : null, shown.reason ? el("span", {}, shown.reason) : null),
    spend.seconds === undefined ? null : el("p", { class: "spend" }, `${count(spend.attempts)} attempts, ${count(spend.tokens)} tokens, ${dollars(spend.money)}, ${seconds(spend.seconds)}`),
    shown.error ? fault({ message: shown.error.detail, remedy: shown.error.remedy }) : null,
    broken ? note(`${broken.message}: trying again.`, "error") : null,
    shown.state === "waiting" ? el("p", { class: "asks" }, "It waits for an answer: ", el("a", { href: `#/runs/${run}/review` }, shown.question?.question ?? "see the question")) : null,
    el("p", { class: "row" },
      may && active && shown.state !== "waiting" ? button("Stop", ask("cancel")) : null,
      may && canGoOn ? button("Go on", ask("resume")) : null,
      may && shown.state === "ended" ? button("Replay", ask("replay", (told) => { location.hash = `#/runs/${told.run}`; })) : null),
    said,
  ];
}
