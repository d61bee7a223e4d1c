// One run: its outcome, its change, the evidence and what can be done about it; below it, one tab for each kind of detail.

import { ADVICE, follow, get, post, Problem, text } from "./api.js";
import { age, announce, button, code, download, duration, el, fault, fill, note, outside, projectName } from "./dom.js";
import { candidatesPanel, testsPanel } from "./candidates.js";
import { certificatePanel } from "./certificate.js";
import { costPanel } from "./cost.js";
import { changedLines, diffView, filesOf, isNew, textOf } from "./diff.js";
import { graphPanel } from "./graph.js";
import { LEARNED, learningPanel } from "./learning.js";
import { liveView } from "./live.js";
import { confidenceText, DOUBTS, drawIfChanged, HIGH_CONFIDENCE, modelName } from "./panel.js";
import { questionView, STOP } from "./review.js";
import { forkForm, stepsPanel, timelinePanel } from "./timeline.js";

const has = (...kinds) => ({ events }) => events.some((event) => kinds.includes(event.kind));
// A run of one move and its end has no path to look at.
const hasPath = ({ events, ...state }) => events.filter((event) => event.kind === "moves.decided").length > (["steps", "graph"].includes(state.tab) ? 0 : 2);
// Each tab with its title, its panel, and whether a run has anything to show there.
const TABS = {
  tests: ["Tests", testsPanel, has("candidate.checked")],
  timeline: ["Timeline", timelinePanel, () => true],
  candidates: ["Candidates", candidatesPanel, has("candidate.proposed")],
  cost: ["Cost", costPanel, has("candidate.checked", "model.called")],
  learning: ["Notes", learningPanel, has(...LEARNED)],
  steps: ["Steps", stepsPanel, hasPath],
  graph: ["Graph", graphPanel, hasPath],
  certificate: ["Certificate", certificatePanel, has("certificate.written")],
};
// Several events often arrive together; the page is drawn once, this long after the first. By judgement, not measured.
const SETTLED_MS = 250;
// How often the state is read again while the run is in progress. By judgement, not measured.
const POLL_MS = 1000;
// How long the page waits for the events until now before it is drawn without them. By judgement, not measured.
const MAX_WAIT_MS = 1500;
// Frequent events that do not change the run's state as reported by the service.
const QUIET = new Set(["budget.reserved", "budget.settled", "agent.stepped", "subtask.stepped", "debugger.stepped", "prompt.shrunk"]);
const isActive = ({ state }) => state === "running" || state === "queued";

export async function runPage({ view, signal, caller, parts: [run, tab, item], title }) {
  const state = { run, signal, caller, tab, item, events: [], story: "", reply: "", shown: await get(`/v1/runs/${run}`, signal) };
  // A run that has just begun has no title yet.
  const name = () => title(state.shown.title || "Run");
  name();
  const panels = el("nav", { class: "tabs", "aria-label": "Details of this run" });
  const body = el("section", {});
  const drawTabs = drawIfChanged(({ current, names }) => fill(panels, names.map((key) =>
    el("a", { href: `#/runs/${run}/${key}`, "aria-current": key === current ? "page" : null }, tabName(key)))));
  const tabName = (key) => (key === "tests" && state.shown.kind === "write" ? "Checks" : TABS[key][0]);
  let opened = null; // the open tab, the element of its panel, and the function that draws it

  const draw = async () => {
    state.tab ??= isActive(state.shown) ? "timeline" : "tests";
    const names = Object.keys(TABS).filter((key) => TABS[key][2](state) || (key === state.tab && !state.complete));
    const current = names.includes(state.tab) ? state.tab : "timeline";
    drawTabs({ current, names });
    try {
      await head.draw();
      if (opened?.tab !== current) {
        // What arrives late for another tab is drawn into the element of that tab, which is no longer on the page.
        opened = { tab: current, node: el("div", {}, note("Loading ...", "loading")), draw: null };
        fill(body, opened.node);
        body.setAttribute("aria-label", tabName(current));
      }
      const panel = opened;
      panel.draw ??= await TABS[current][1](panel.node, state);
      await panel.draw();
    } catch (error) {
      opened = null; // rebuilt from the start next time
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
    name();
    if (before !== state.shown.state) announce(`The run is now ${state.shown.state} ${state.shown.outcome ?? ""}`);
    if (!listening && isActive(state.shown)) listen();
    await draw();
    // The last event arrives shortly before the process ends, which changes the run's state.
    if (state.failed || isActive(state.shown)) settle(POLL_MS);
  };
  let listening = false;
  let showNow;
  const isCurrent = new Promise((resolve) => { showNow = resolve; });
  const listen = async () => {
    listening = true;
    state.events = [];
    state.begins?.();
    try {
      await follow(run, {
        signal,
        onevent: (event) => { state.events.push(event); state.live?.(event); if (!QUIET.has(event.kind)) settle(); },
        oncurrent: showNow,
        onstory: (story) => { state.story = story; },
        onsearch: (search) => { state.search = search; head.live.draw(); },
        onreply: (reply) => { state.reply = reply; head.live.draw(); },
      });
      state.complete = true;
      listening = false;
      settle();
    } catch (error) {
      listening = false;
      if (!signal.aborted) { state.failed = error; draw(); }
    }
  };
  const head = headOf(state, refresh);
  fill(view, head.node, panels, body);
  fill(body, note("Loading ...", "loading"));
  listen();
  // The events say which tabs and actions there are.
  await Promise.race([isCurrent, new Promise((resolve) => { setTimeout(resolve, MAX_WAIT_MS); })]);
  await draw();
  return async ([nextTab, nextItem]) => {
    [state.tab, state.item, opened] = [nextTab, nextItem, null];
    await draw();
  };
}

// What comes first. Each part is redrawn only if its data changes, so that keyboard focus is kept.
function headOf(state, refresh) {
  const { run, caller, signal } = state;
  const [about, outcome, failed, asked, change, rivals, evidence, confidence, acts, again] = Array.from({ length: 10 }, () => el("div", {}));
  const messages = el("div", { "aria-live": "polite" });
  const live = liveView(state);
  const mayRun = caller.role !== "viewer";
  // The server allows the same: a run belongs to the caller who started it, and to admins.
  const mayChange = caller.role === "admin" || (mayRun && state.shown.caller === caller.name);
  const ask = (path, done, doing = "Working ...") => async ({ currentTarget: pressed }) => {
    pressed.disabled = true;
    fill(messages, note(doing, "loading"));
    try {
      await post(`/v1/runs/${run}/${path}`);
      await refresh();
      fill(messages, done ? note(done, "hint") : null);
    } catch (error) {
      fill(messages, fault(error));
      if (error.status === 0) refresh(); // whether it was done is seen when the server is there again
    }
    pressed.disabled = false;
  };
  const apply = ask("apply", "Applied to your project.");
  const applyRival = (number) => async ({ currentTarget: pressed }) => {
    pressed.disabled = true;
    try {
      location.hash = `#/runs/${(await post(`/v1/runs/${run}/rivals/${number}/apply`)).run}`;
    } catch (error) {
      fill(messages, fault(error));
      pressed.disabled = false;
    }
  };
  const parts = [
    [about, ({ shown }) => [shown.title, shown.project, shown.kind, shown.recipe, shown.model, shown.started_s, shown.task], ([title, project, kind, recipe, model, started, task]) => [
      el("a", { href: "#/", class: "back" }, "\u2190 Runs"),
      el("h1", { class: "title", title }, title || "Starting ..."),
      el("p", { class: "meta" }, [kind === "heal" ? el("span", {}, project) : null, recipe ? projectName(recipe) : null, model ? modelName(model) : null, age(started), el("span", { class: "id" }, run)]
        .filter(Boolean).map((one) => el("span", {}, one))),
      kind === "write" && task.length > title.length + 1 ? el("details", {}, el("summary", {}, "The whole task"), code(task, "The whole task")) : null]],
    [outcome, ({ shown }) => [shown.state, shown.outcome, shown.headline, shown.spend?.seconds, shown.doubt], ([now, ended, headline, used, isOpen]) => (isActive(state.shown) ? null : [
      el("p", { class: "outcome" }, mark(now, isStopped(state.shown) ? "cancelled" : ended, isOpen), el("span", { class: isOpen ? "warn" : null }, isStopped(state.shown) ? stopText(state, used) : NO_RESULT[now] || headline,
        used && now === "ended" && !isStopped(state.shown) ? el("span", { class: "hint" }, ` It took ${duration(used)}.`) : null))])],
    [failed, ({ shown, failed: fallen }) => [shown.error, fallen?.message], ([error]) => [error && !isStopped(state.shown) ? fault(new Problem(200, error)) : null, state.failed ? fault(state.failed) : null]],
    [asked, ({ shown }) => (shown.state === "waiting" ? shown.question : null), (question) => (question ? questionView(question, state, refresh) : null)],
    [change, ({ shown }) => [shown.state, shown.has_diff, shown.outcome], async ([now, there, ended]) => {
      if (now !== "ended" || !there) { state.diff = ""; return null; }
      state.diff = await text(`/v1/runs/${run}/diff`, signal);
      return [ended === "healed" ? null : el("h2", {}, "Best candidate so far, not accepted"), diffView(state.diff, "before", "after", signal, state.shown.kind === "write" ? state.shown.written : [])];
    }],
    [rivals, ({ shown, events }) => [events.findLast((event) => event.kind === "repair.undetermined")?.data ?? null, shown.can_apply && caller.role === "admin" && !shown.applied.length, shown.outcome], ([undetermined, mayApply, ended]) => rivalChanges(undetermined, ended, messages, mayApply ? (number) => (number === 1 ? apply : applyRival(number)) : null)],
    [evidence, ({ shown }) => (isActive(shown) ? [] : [shown.evidence, shown.remarks]), ([sentence, remarks]) => [
      sentence ? el("p", { class: "evidence" }, sentence) : null,
      remarks?.length ? el("ul", { class: "remarks" }, remarks.map((one) => el("li", {}, one))) : null]],
    [confidence, ({ shown, events }) => (shown.state === "ended" && shown.outcome === "healed" && shown.confidence ? [shown.confidence, shown.doubt, confidenceReason(shown, events)] : null), (found) =>
      (found ? el("p", { class: found[1] ? "warn" : null }, `Confidence: ${found[1] === "unverified" ? "unverified: check the code yourself before you use it" : confidenceText(found[0])}${found[2] ? `, because ${found[2]}` : ""}.`) : null)],
    [acts, ({ shown, events, diff }) => [shown.state, shown.outcome, [shown.can_apply, shown.why_not_applicable], shown.applied, Boolean(diff), has("moves.decided")({ events }), shown.doubt, shown.pull_request], ([now, ended, [canApply, whyNot], applied, there, decided, isOpen, pull]) => [
      el("p", { class: "row acts" },
        canApply && caller.role === "admin" ? (applied.length ? button("Undo", ask("undo", "Undone: your files are as they were before.")) : button("Apply", apply, { class: isOpen ? null : "main" })) : null,
        mayRun && isOpen === "unverified" ? el("a", { href: `#/new?run=${run}`, class: "button main" }, "Add examples and run again") : null,
        there ? copyAndDownload(state, messages) : null,
        canApply && mayRun ? el("a", { href: `#/judge?run=${run}`, class: "button" }, "Judge this change") : null,
        pull?.state === "opened" ? outside("View pull request", pull.address, { class: "button" }) : null,
        pull?.state === "possible" && caller.role === "admin" ? button("Open pull request", ask("pull-request", "A draft pull request is open.", "Running the tests again before the pull request is opened ...")) : null,
        mayChange && isActive({ state: now }) ? button(STOP, ask("cancel")) : null,
        mayChange && (now === "stopped" || (now === "ended" && ["cancelled", "infra_error"].includes(ended))) ? button("Resume", ask("resume"), { class: "main" }) : null,
        mayRun && now === "refused" ? el("a", { href: "#/new", class: "button main" }, "New run") : null,
        mayChange && now === "ended" && decided ? button("Try again with ...", () => openFork(state, again), { class: ["healed", "cancelled", "infra_error"].includes(ended) ? null : "main" }) : null),
      whyNot || (canApply && caller.role !== "admin") ? el("p", { class: "hint" }, whyNot || "Applying a change requires the role admin.") : null,
      ended === "budget_exhausted" && !decided ? el("p", { class: "hint" }, ADVICE.BudgetExceeded) : null,
      pull?.state === "no_token" && caller.role === "admin" ? el("p", { class: "hint" }, "To open pull requests here, set SUTURE_KEYS_CI to a token of GitHub and start the server again.") : null]],
  ].map(([slot, of, draw]) => [of, drawIfChanged(async (data) => { fill(slot, await draw(data)); })]);
  const node = el("div", { class: "head" }, about, outcome, failed, live.node, asked, change, rivals, evidence, confidence, acts, messages, again);
  return { node, live, draw: async () => { live.draw(); for (const [of, drawn] of parts) await drawn(of(state)); } };
}

// Why the confidence in a result is as it is, in a few words.
export function confidenceReason(shown, events) {
  const checks = shown.kind === "write" ? "the checks" : "your tests";
  if (shown.doubt) return DOUBTS[shown.doubt][1];
  const certificate = events.findLast((event) => event.kind === "certificate.written")?.data;
  if (certificate?.mutants) {
    // A high confidence is explained by what the checks notice, a lower one only by what they miss.
    const [isHigh, mistakes] = [shown.confidence >= HIGH_CONFIDENCE, certificate.selected ?? certificate.mutants];
    return isHigh || certificate.killed < mistakes ? `${checks} notice ${isHigh ? "" : "only "}${certificate.killed} of ${mistakes} deliberate mistakes in it` : "";
  }
  return shown.unmeasured.mutation ? `it was not measured how well ${checks} guard it` : "";
}

// The state of a run without a result -> what a person should know of it.
const NO_RESULT = { waiting: "Suture waits for your answer.", stopped: "The run was interrupted before it had a result.", refused: "The run did not start." };

const isStopped = ({ state, outcome, error }) => outcome === "cancelled" || (["stopped", "refused"].includes(state) && error?.fault === "Cancelled");

// A person's stop is no fault of the run. Without tokens, that person is the reader.
function stopText({ caller }, used) {
  return `${caller.needs_token ? "It was stopped" : "You stopped it"}${used ? ` after ${duration(used)}` : ""}.`;
}

// A sign beside the sentence about the outcome, which says the same in words.
function mark(now, outcome, isOpen) {
  const [kind, sign] = outcome === "cancelled" || now === "stopped" ? ["", "■"] : now === "waiting" ? ["warn", "?"] : isOpen && outcome === "healed" ? ["warn", "≈"] : ["healed", "nothing_to_heal"].includes(outcome) ? ["good", "✓"] : ["bad", "✗"];
  return el("span", { class: `mark ${kind}`, "aria-hidden": "true" }, sign);
}

// The patch; or the code itself, if the run wrote one new file.
function copyAndDownload(state, messages) {
  const files = filesOf(state.diff);
  const single = files.length === 1 && isNew(files[0]);
  const [name, content] = single ? [projectName(files[0].name), textOf(files[0])] : [`${state.run}.diff`, state.diff];
  return [button(single ? "Copy code" : "Copy patch", copy(content, messages)), button("Download", () => download(name, content))];
}

// Returns what a button does that copies some text; where the browser refuses that, the text is shown.
function copy(content, messages) {
  return async () => {
    try { await navigator.clipboard.writeText(content); fill(messages, note("Copied.", "hint")); } catch { fill(messages, code(content, "Copy this text")); }
  };
}

async function openFork(state, slot) {
  if (slot.hasChildNodes()) return fill(slot);
  const [recipes, models] = await Promise.all([get("/v1/recipes", state.signal), get("/v1/models", state.signal)]);
  fill(slot, forkForm(state, null, recipes, models, "Try again with"));
  return slot.querySelector("textarea").focus();
}

// Changes that pass the same tests, side by side: the tests do not decide which of them is right, so a person answers with a button.
// `applying` returns what the button of a change does; null if this caller cannot apply any.
function rivalChanges(undetermined, outcome, messages, applying) {
  if (!undetermined || undetermined.changes.length < 2) return null;
  const { changes, calls } = undetermined;
  const answer = ({ diff }, number) => (applying ? button("Apply this one", applying(number)) : button("Copy this patch", copy(diff, messages)));
  return el("section", { class: "asked", "aria-label": "Question" }, el("h2", {}, "Which change is right?"),
    el("p", {}, `All of them pass your tests. ${calls.length ? "They differ in what the calls on the cards return. " : ""}Choose the one that does what you want, or add a test that only that one passes.`),
    el("ol", { class: "rivals", "aria-label": "Changes that pass all tests" }, changes.map((change, number) => el("li", {},
      el("pre", {}, changedLines(change.diff) || change.label),
      el("dl", { class: "results" }, calls.map((call) => el("div", {}, el("dt", {}, el("code", {}, call.call)), el("dd", {}, el("code", {}, call.answers[number]), call.before ? el("small", {}, ` now ${call.before}`) : null)))),
      el("p", { class: "row" }, answer(change, number + 1), number ? null : el("small", {}, outcome === "healed" ? "shown above as the result" : "shown above"))))),
    applying ? el("p", { class: "hint" }, "Another change than the first one is verified before it is applied.") : null);
}
