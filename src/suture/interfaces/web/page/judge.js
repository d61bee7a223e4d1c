// The form that judges a change of a project, whoever made it, and the verdict.

import { get, postJudgement, sentence, text, withFullStop } from "./api.js";
import { add, el, elapsed, field, fill, note, segments, showFault } from "./dom.js";
import { projectChooser } from "./start.js";

const KINDS = { accepted: "good", accepted_with_remarks: "warn", rejected: "bad", not_comparable: "warn" };
// A fact about a change -> what it says, because its name alone says too little.
const FACTS = {
  Change: "what was compared with what", Tests: "how they end with the change", Proof: "tests that fail without the change and pass with it",
  Guard: "whether the tests would notice a mistake in the change", Next: "what to do now",
};
// The severity of a finding -> its colour, and the word that says the same.
const SEVERITY = { reject: ["bad", "Rejects"], remark: ["warn", "Remark"], note: ["", "Note"] };

// With a run in the address, its change is judged at once: as a patch, or as the working tree if it is applied there.
export async function judgePage({ view, signal, caller, parts: [judgement], query }) {
  const heading = [el("h1", {}, "Judge a change"), el("p", { class: "hint" }, "Suture runs the tests with and without the change, and looks for signs that it games them. No model is used. ", el("a", { href: "#/?kind=judged" }, "Earlier judgements"))];
  const result = el("div", { "aria-live": "polite" });
  const run = !judgement && /^[0-9a-f-]+$/.test(query.get("run") ?? "") ? await get(`/v1/runs/${query.get("run")}`, signal) : null;
  const form = el("details", { open: !judgement && !run }, el("summary", { hidden: !judgement }, "Judge another change"));
  const finish = (report) => {
    fill(result, verdictView(report));
    form.open = false;
    form.querySelector("summary").hidden = false;
  };
  const shown = judgement ? await get(`/v1/judgements/${judgement}`, signal) : null;
  if (shown) finish(shown);
  if (caller.role === "viewer") return fill(view, heading, judgement ? result : note("Judging requires the role runner."));
  const projects = await get("/v1/projects", signal);
  if (!projects.roots.length) return fill(view, heading, note("This server allows no project folders. Start it with the folders of your projects: suture ui FOLDER."), result);
  const project = projectChooser(projects, {}, run?.project ?? "");
  const patch = el("textarea", { rows: "10", spellcheck: "false", class: "code", placeholder: "diff --git a/shop.py b/shop.py" });
  const base = el("input", { type: "text", spellcheck: "false", placeholder: "Such as main, v1.2 or HEAD~1" });
  const test = el("input", { type: "text", spellcheck: "false", placeholder: "python -m pytest -q" });
  const kinds = {
    tree: { node: field("Compare with", base, "Optional: the commit, tag or branch before the change. By default, where your branch left the default branch."), read: () => (base.value.trim() ? { base: base.value.trim() } : {}) },
    patch: { node: field("Patch", patch, "A unified diff against the files as they are."), read: () => ({ patch: patch.value }) },
    staged: { node: note("What is staged for the next commit is compared with the last commit.", "hint"), read: () => ({ staged: true }) },
  };
  let source = "tree";
  if (run?.has_diff && !run.applied.length) {
    source = "patch";
    patch.value = await text(`/v1/runs/${run.run}/diff`, signal);
  }
  const slot = el("div", {});
  const turn = (chosen) => { source = chosen; fill(slot, kinds[source].node); };
  const submit = el("button", { type: "submit", class: "main" }, "Judge");
  const judge = async (event) => {
    event?.preventDefault();
    submit.disabled = true;
    const controls = { base, patch, test, ...project.controls };
    showFault(null, result, controls);
    const progress = progressView(signal);
    fill(result, progress.node);
    try {
      const report = await postJudgement({ ...project.read(), ...kinds[source].read(), ...(test.value.trim() && { test: test.value.trim() }) }, { signal, onstep: progress.show });
      finish(report);
      history.replaceState(null, "", `#/judge/${report.id}`); // so that the verdict can be read again
    } catch (error) {
      form.open = true;
      if (!signal.aborted) showFault(error, result, controls);
    } finally {
      progress.stop();
      if (result.hasChildNodes()) result.scrollIntoView({ block: "nearest" });
      submit.disabled = false;
    }
  };
  turn(source);
  add(form, el("form", { onsubmit: judge, class: "panel" }, project.fields,
      segments("What to judge", [["tree", "Working tree"], ["patch", "A patch"], ["staged", "Staged"]], source, turn), slot,
      el("details", {}, el("summary", {}, "Options"), field("Test command", test, "Default: detected from the project's files.")),
      el("div", { class: "row" }, submit)));
  if (shown) finish(shown);
  if (run) judge();
  return fill(view, heading, result, form);
}

// The steps of a judgement that have begun, with a moving clock for all of it and for the current one.
function progressView(signal) {
  const steps = [{ text: "Read the project and its history", since: Date.now() }];
  const [clock, list] = [el("span", { class: "clock" }), el("ol", { class: "steps" })];
  const time = (since) => elapsed((Date.now() - since) / 1000);
  const tick = () => {
    fill(clock, time(steps[0].since));
    fill(list, steps.map(({ text, since }, n) => {
      const current = n === steps.length - 1;
      return el("li", { class: current ? "active" : "done", "aria-current": current ? "step" : null }, text, current ? el("span", { class: "clock" }, ` ${time(since)}`) : null);
    }));
  };
  const timer = setInterval(tick, 1000);
  const stop = () => clearInterval(timer);
  signal.addEventListener("abort", stop);
  tick();
  return {
    node: el("section", { class: "live", "aria-label": "Progress" }, el("div", { class: "row" }, list, clock)),
    show: ({ text }) => { steps.push({ text: sentence(text).slice(0, -1), since: Date.now() }); tick(); },
    stop,
  };
}

function verdictView(report) {
  const findings = report.judgement.findings.map((one) => el("li", { class: SEVERITY[one.severity][0] },
    el("strong", {}, SEVERITY[one.severity][1]), one.path ? el("code", {}, `${one.path}${one.line ? `:${one.line}` : ""}`) : null, el("span", {}, withFullStop(one.sentence))));
  const isUnchanged = report.judgement.reason === "no_change";
  const verdict = isUnchanged ? "Nothing to judge" : report.judgement.verdict;
  // The headline has the gravest finding, which the list names with its place.
  const isMore = !findings.length && report.headline.replace(/\.$/, "") !== verdict;
  const more = isUnchanged ? "Nothing has changed." : report.headline;
  return el("section", { class: "verdict", "aria-label": "Verdict" },
    el("h2", { class: isUnchanged ? "" : KINDS[report.outcome] }, verdict), el("p", { class: "hint" }, report.path),
    isMore ? el("p", {}, more) : null,
    findings.length ? el("ul", { class: "findings" }, findings) : null,
    el("dl", { class: "facts" }, Object.entries(report.facts).map(([name, text]) => el("div", {}, el("dt", {}, name, el("small", {}, FACTS[name] ?? "")), el("dd", {}, sentence(text))))));
}
