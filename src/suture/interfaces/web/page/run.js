// One run: its events as they arrive, and the panels that show them. Panels only show data from the ledger.

import { follow, get, post } from "./api.js";
import { button, count, dollars, el, fault, fill, note, announce, seconds, table } from "./dom.js";
import { codePanel, lineagePanel, testsPanel } from "./candidates.js";
import { graphPanel } from "./graph.js";
import { learningPanel } from "./learning.js";
import { badge, drawIfChanged, factView } from "./panel.js";
import { performancePanel } from "./performance.js";
import { certificatePanel } from "./certificate.js";
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
  ["certificate", "Certificate", certificatePanel],
  ["steps", "Steps and fork", stepsPanel],
];
// Several events often arrive together; the page is drawn once, this long after the first. By judgement, not measured.
const SETTLED_MS = 250;
// How often the state is read again while the run is in progress. By judgement, not measured.
const POLL_MS = 1000;
// Frequent events that do not change the run's state as reported by the service.
const QUIET = new Set(["budget.reserved", "budget.settled", "agent.stepped", "subtask.stepped", "debugger.stepped", "prompt.shrunk"]);

export async function runPage({ view, signal, caller, parts: [run, tab, item], title }) {
  title(`Run ${run}`);
  const [name, label, panel] = TABS.find(([key]) => key === (tab || "timeline")) ?? TABS[0];
  const body = el("section", { "aria-label": label });
  const state = { run, signal, caller, item, events: [], shown: await get(`/v1/runs/${run}`, signal) };
  const panels = el("nav", { class: "tabs", "aria-label": "Panels of this run" }, TABS.map(([key, text]) =>
    el("a", { href: `#/runs/${run}/${key}`, "aria-current": key === name ? "page" : null }, text)));
  let drawn = null;

  const draw = async () => {
    head.draw();
    panels.querySelector("a[href$=review]").classList.toggle("asks", state.shown.state === "waiting");
    try {
      drawn ??= await panel(body, state);
      await drawn();
    } catch (error) {
      drawn = null; // rebuilt from the start next time
      if (!signal.aborted) fill(body, fault(error), button("Try again", draw));
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
    if (before !== state.shown.state) announce(`The run is now ${state.shown.state} ${state.shown.outcome ?? ""}`);
    if (!listening && (state.shown.state === "running" || state.shown.state === "queued")) listen();
    await draw();
    // The last event arrives shortly before the process ends, which changes the run's state.
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
  const head = headOf(state, refresh);
  fill(view, head.node, panels, body);
  fill(body, note("Loading ...", "loading"));
  await draw();
  listen();
}

// The run's state and its actions. Each part is redrawn only if its data changes, so that keyboard focus is kept.
function headOf(state, refresh) {
  const { run, caller } = state;
  const [standing, rivals, doubts, spent, failed, acts, messages] = Array.from({ length: 7 }, () => el("div", {}));
  const mayRun = caller.role !== "viewer";
  // The server allows the same: a run belongs to the caller who started it, and to admins.
  const mayChange = caller.role === "admin" || (mayRun && state.shown.caller === caller.name);
  const ask = (path, then) => async () => {
    try { const receipt = await post(`/v1/runs/${run}/${path}`); then ? then(receipt) : await refresh(); } catch (error) { fill(messages, fault(error)); }
  };
  const parts = [
    [standing, ({ shown }) => [shown.state, shown.outcome, shown.reason], ([now, outcome, reason]) =>
      el("p", { class: "row" }, badge(outcome || now), outcome && now !== "ended" ? el("span", {}, now) : null, reason ? el("span", {}, reason) : null)],
    [rivals, ({ events }) => events.findLast((event) => event.kind === "repair.undetermined")?.data ?? null, rivalChanges],
    [doubts, ({ shown, events }) => (shown.outcome === "healed" ? events.findLast((event) => event.kind === "generated_tests.failed")?.data.tests : null) ?? [], failingTests],
    [spent, ({ shown }) => shown.spend ?? {}, (spend) => (spend.seconds === undefined ? null
      : el("p", { class: "spend" }, `${count(spend.attempts)} attempts, ${count(spend.tokens)} tokens, ${dollars(spend.money)}, ${seconds(spend.seconds)}`))],
    [failed, ({ shown, broken, failed: other }) => [shown.error, (broken ?? other)?.message], ([error, broken]) =>
      [error ? fault({ message: error.detail, remedy: error.remedy }) : null, broken ? note(`${broken}: retrying.`, "error") : null]],
    [acts, ({ shown }) => [shown.state, shown.outcome, shown.question?.question], ([now, outcome, question]) => [
      now === "waiting" ? el("p", { class: "asks" }, "Waiting for your answer: ", el("a", { href: `#/runs/${run}/review` }, question ?? "see the question")) : null,
      el("p", { class: "row" },
        mayChange && (now === "running" || now === "queued") ? button("Stop", ask("cancel")) : null,
        mayChange && (now === "stopped" || (now === "ended" && ["cancelled", "infra_error"].includes(outcome))) ? button("Resume", ask("resume")) : null,
        mayRun && now === "ended" ? button("Replay", ask("replay", (receipt) => { location.hash = `#/runs/${receipt.run}`; })) : null)]],
  ].map(([slot, of, draw]) => [of, drawIfChanged((data) => fill(slot, draw(data)))]);
  return { node: el("div", {}, el("h1", {}, `Run ${run}`), standing, rivals, doubts, spent, failed, acts, messages), draw: () => { for (const [of, drawn] of parts) drawn(of(state)); } };
}

// Changes that pass the same tests, side by side: the tests do not decide which of them is right.
function rivalChanges(undetermined) {
  if (!undetermined) return null;
  const { changes, calls, noticed, mistakes } = undetermined;
  if (changes.length < 2) return note(`Your tests do not decide: they notice only ${noticed} of ${mistakes} deliberate mistakes in the changed lines.`, "hint");
  const code = (diff) => diff.split("\n").filter((line) => /^[-+](?![-+])/.test(line)).join("\n");
  return [note(`Your tests do not decide: each of these ${changes.length} changes passes all of them. The first one is the result.`, "hint"),
    table("Changes that pass all tests", ["change", ...calls.map((call) => `${call.call}${call.before ? `, now ${call.before}` : ""}`)],
      changes.map((change, number) => [el("pre", {}, code(change.diff) || change.label), ...calls.map((call) => el("code", {}, call.answers[number]))]))];
}

// Tests by a model that fail on the result. They decided nothing, so the person has to know about them.
function failingTests(tests) {
  if (!tests.length) return null;
  const subject = tests.length === 1 ? "1 test that the model wrote fails" : `${tests.length} tests that the model wrote fail`;
  return [note(`${subject} on this code, with too little trust to decide. Check by hand which is wrong:`, "hint"),
    table("Generated tests that fail on the result", ["test", "trust", "what it saw"], tests.map((one) => [el("code", {}, one.test), one.trust, one.fact ? factView(one.fact) : ""]))];
}
