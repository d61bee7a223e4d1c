// Candidates: their lineage, the difference between any two of them, and their test results.

import { get, sentence, text } from "./api.js";
import { code, el, field, fill, note, reloadable, svg, table } from "./dom.js";
import { diffView } from "./diff.js";
import { candidateChoice, candidateName, checksName, factView, hasRun, nothingYet, passText, drawIfChanged } from "./panel.js";

// A candidate's size, and the distance from one candidate to the next, in pixels.
const BOX = { width: 216, height: 58, across: 256, down: 74 };
// The characters of a label that fit into its box.
const MAX_LABEL = 27;
const ORIGINS = { user: "you", edit: "you", mutation: "search", fix: "linter", sample: "model", repair: "model" };
const STATUS = { passed: "passes", failed: "fails", error: "error", timeout: "timed out", missing: "missing", skipped: "skipped" };

const scoreText = (one) => (one.passed === null ? "not checked yet" : passText(one.passed, one.passed + one.failed));
const kindOf = (one) => (one.passed === null ? "open" : one.failed === 0 ? "good" : one.passed ? "half" : "bad");

async function candidatesOf(state) {
  return hasRun(state) ? get(`/v1/runs/${state.run}/candidates`, state.signal) : [];
}

export async function candidatesPanel(body, state) {
  const draw = drawIfChanged(([candidates, unused]) => {
    if (!candidates.length) return nothingYet(body, state, "No candidates");
    const rows = candidates.map((one, n) => [
      candidateName(one, n), ORIGINS[one.origin] ?? one.origin, parentName(one, candidates), scoreText(one),
      [one.best ? "best" : "", one.regressed ? "breaks a passing test" : "", one.unconfirmed ? "passed only once" : "", ...one.warnings].filter(Boolean).join("; "),
    ]);
    return fill(body, lineage(candidates, state), unused ? el("p", { class: "hint" }, `${unused} more ${unused === 1 ? "reply" : "replies"} brought no new code.`) : null, comparison(candidates, state), el("details", {}, el("summary", {}, "All candidates as a table"), table("All candidates", ["candidate", "made by", "made from", checksName(state.shown), "remarks"], rows)));
  });
  return async () => draw([await candidatesOf(state), state.shown.replies_without_code]);
}

// The code of two candidates, side by side; by default of the chosen or best one and the one that it was made from.
function comparison(candidates, state) {
  const known = (name) => candidates.some((one) => one.candidate === name);
  const after = known(state.item) ? state.item : (candidates.find((one) => one.best) ?? candidates.at(-1)).candidate;
  const parent = candidates.find((one) => one.candidate === after)?.parent;
  const slot = el("div", {});
  const [from, to] = [candidateChoice(candidates, known(parent) ? parent : "original", true), candidateChoice(candidates, after, true)];
  const name = (control) => control.selectedOptions[0].textContent;
  const load = reloadable(slot, state.signal, async () => {
    const diff = await text(`/v1/runs/${state.run}/diff?from=${from.value}&to=${to.value}`, state.signal);
    return diff ? diffView(diff, name(from), name(to), state.signal) : note("There are no differences.");
  });
  from.addEventListener("change", load);
  to.addEventListener("change", load);
  load();
  return [el("div", { class: "row" }, field("Compare", from), field("With", to)), slot];
}

function parentName(one, candidates) {
  const at = candidates.findIndex((other) => other.candidate === one.parent);
  return at < 0 ? "" : candidateName(candidates[at], at);
}

// One column per generation; later candidates are placed below earlier ones.
function lineage(candidates, { run }) {
  const place = new Map();
  const filled = [];
  for (const one of candidates) {
    const parent = place.get(one.parent);
    // A change that the search made has no recorded parent: it was made to the given code, which is the first candidate.
    const column = parent ? parent.column + 1 : one.origin === "mutation" && candidates[0].origin === "user" ? 1 : 0;
    const row = Math.max(filled[column] ?? 0, parent ? parent.row : 0);
    filled[column] = row + 1;
    place.set(one.candidate, { column, row });
  }
  const width = filled.length * BOX.across;
  const height = Math.max(...filled.map((rows) => rows ?? 0)) * BOX.down;
  const lines = candidates.map((one) => {
    const from = place.get(one.parent) ?? (place.get(one.candidate).column ? place.get(candidates[0].candidate) : null);
    const to = place.get(one.candidate);
    if (!from || from === to) return null;
    const [x1, y1, x2, y2] = [from.column * BOX.across + BOX.width, from.row * BOX.down + 33, to.column * BOX.across + 4, to.row * BOX.down + 33];
    return svg("path", { class: "edge", d: `M${x1} ${y1} C${x1 + 24} ${y1} ${x2 - 24} ${y2} ${x2} ${y2}` });
  });
  const boxes = candidates.map((one, n) => {
    const { column, row } = place.get(one.candidate);
    const label = candidateName(one, n);
    const short = label.length > MAX_LABEL ? `${label.slice(0, MAX_LABEL - 2)}...` : label;
    return svg("a", { href: `#/runs/${run}/candidates/${one.candidate}`, "aria-label": `${label}: ${scoreText(one)}${one.best ? ", the best" : ""}` },
      svg("g", { transform: `translate(${column * BOX.across + 4} ${row * BOX.down + 4})`, class: `box ${kindOf(one)}${one.best ? " best" : ""}` },
        svg("rect", { width: BOX.width - 4, height: BOX.height, rx: 6 }),
        svg("text", { x: 10, y: 24 }, short), svg("text", { x: 10, y: 44, class: "small" }, `${scoreText(one)}${one.best ? ", best" : ""}`)));
  });
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Lineage" },
    svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "Candidates, each linked to its parent" }, lines, boxes));
}

export async function testsPanel(body, state) {
  let chosen = state.item ?? "";
  const draw = drawIfChanged(async (candidates) => {
    const judged = candidates.filter((one) => one.passed !== null);
    if (!judged.length) return nothingYet(body, state, "No results");
    if (!judged.some((one) => one.candidate === chosen)) chosen = (judged.find((one) => one.best) ?? judged.at(-1)).candidate;
    const slot = el("div", {});
    const control = candidateChoice(judged, chosen);
    const load = reloadable(slot, state.signal, async () => {
      chosen = control.value;
      return verdictView((await get(`/v1/runs/${state.run}/candidates/${chosen}`, state.signal)).verdict, checksName(state.shown));
    });
    control.addEventListener("change", load);
    fill(body, judged.length > 1 ? el("div", { class: "filters row" }, field("Candidate", control)) : null, slot);
    return load();
  });
  return async () => draw(await candidatesOf(state));
}

function verdictView(verdict, noun) {
  if (!verdict?.outcomes.length) return [note("No test or example checked this candidate.")];
  const order = [...verdict.outcomes].sort((one, other) => (one.status === "passed") - (other.status === "passed"));
  const isMixed = new Set(verdict.outcomes.map((one) => one.provenance)).size > 1; // only then it says something
  const rows = order.map((one) => [
    [el("code", {}, one.check_id), one.counterexample ? factView(one.counterexample, "") : null], el("span", { class: `status ${one.status}` }, STATUS[one.status] ?? one.status), ...(isMixed ? [`${one.provenance}, trust ${one.trust}`] : []),
  ]);
  return [
    table(`All ${noun}, failing ones first`, [noun.slice(0, -1), "outcome", ...(isMixed ? ["origin"] : [])], rows),
    el("p", { class: "hint" }, `Decided by ${verdict.evidence_text}.`),
    verdict.notes.map((remark) => note(sentence(remark), "hint")),
    verdict.output ? el("details", {}, el("summary", {}, "Test output"), code(verdict.output, "Test output")) : null,
  ];
}
