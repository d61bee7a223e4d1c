// The form that judges a change of a project, whoever made it, and the verdict.

import { get, post } from "./api.js";
import { choice, el, elapsed, fault, field, fill, note, projectName, segments } from "./dom.js";

const VERDICTS = { accepted: ["good", "Accepted"], accepted_with_remarks: ["warn", "Accepted with remarks"], rejected: ["bad", "Rejected"], not_comparable: ["warn", "Not comparable"] };
const SEVERITY = { reject: "bad", remark: "warn", note: "" };

export async function judgePage({ view, signal, caller }) {
  const heading = [el("h1", {}, "Judge a change"), el("p", { class: "hint" }, "Suture runs the tests with and without the change, and looks for signs that it games them. No model is used.")];
  if (caller.role === "viewer") return fill(view, heading, note("Judging requires the role runner."));
  const projects = await get("/v1/projects", signal);
  const names = [...projects.roots, ...projects.folders];
  if (!names.length) return fill(view, heading, note("This server allows no project folders. Start it with the folders of your projects: suture ui FOLDER."));
  const project = choice(names.map((name) => [name, `${projectName(name)} (${name})`]), projects.folders[0] ?? names[0]);
  const patch = el("textarea", { rows: "10", spellcheck: "false", class: "code", placeholder: "diff --git a/shop.py b/shop.py" });
  const base = el("input", { type: "text", spellcheck: "false", placeholder: "main" });
  const test = el("input", { type: "text", spellcheck: "false", placeholder: "python -m pytest -q" });
  const parts = {
    tree: { node: field("Compare with", base, "A commit or branch. Default: where this branch left the default branch."), read: () => (base.value.trim() ? { base: base.value.trim() } : {}) },
    patch: { node: field("Patch", patch, "A unified diff against the files as they are."), read: () => ({ patch: patch.value }) },
    staged: { node: note("What is staged for the next commit is compared with the last commit.", "hint"), read: () => ({ staged: true }) },
  };
  let source = "tree";
  const [slot, result] = [el("div", {}), el("div", { "aria-live": "polite" })];
  const turn = (chosen) => { source = chosen; fill(slot, parts[source].node); };
  const submit = el("button", { type: "submit", class: "main" }, "Judge");
  const judge = async (event) => {
    event.preventDefault();
    submit.disabled = true;
    const begun = Date.now();
    const clock = el("span", { class: "clock" }, "0:00");
    const timer = setInterval(() => fill(clock, elapsed((Date.now() - begun) / 1000)), 1000);
    fill(result, el("p", { class: "now" }, "Running the tests with and without the change ... ", clock));
    try {
      fill(result, verdictView(await post("/v1/judgements", { path: project.value, ...parts[source].read(), ...(test.value.trim() && { test: test.value.trim() }) })));
    } catch (error) {
      fill(result, fault(error));
    } finally {
      clearInterval(timer);
      result.scrollIntoView({ block: "nearest" });
      submit.disabled = false;
    }
  };
  turn(source);
  return fill(view, heading,
    el("form", { onsubmit: judge, class: "panel" }, field("Project", project),
      segments("What to judge", [["tree", "The working tree"], ["patch", "A patch"], ["staged", "What is staged"]], source, turn), slot,
      el("details", {}, el("summary", {}, "Options"), field("Test command", test, "Default: detected from the project's files.")),
      el("div", { class: "row" }, submit)),
    result);
}

function verdictView(report) {
  const findings = report.judgement.findings.map((one) => el("li", { class: SEVERITY[one.severity] },
    one.path ? el("code", {}, `${one.path}${one.line ? `:${one.line}` : ""}`) : null, el("span", {}, one.sentence)));
  const [kind, verdict] = VERDICTS[report.outcome];
  // The headline has the gravest finding, which the list names with its place.
  return el("section", { class: "verdict", "aria-label": "Verdict" },
    el("h2", { class: kind }, findings.length ? verdict : report.headline),
    findings.length ? el("ul", { class: "findings" }, findings) : null,
    el("dl", { class: "facts" }, Object.entries(report.facts).map(([name, text]) => el("div", {}, el("dt", {}, name), el("dd", {}, text)))));
}
