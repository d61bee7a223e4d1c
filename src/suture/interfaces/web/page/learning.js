// What a run has learned: lessons, recalled memories, and what the roles besides the coder reported.

import { el, fill, note, table } from "./dom.js";
import { drawIfChanged } from "./panel.js";

export const LEARNED = ["lessons.drawn", "memory.recalled", "memory.stored", "plan.made", "diagnosis.made", "candidate.criticised", "advice.given", "tests.written", "tests.assessed", "role.degraded"];

export async function learningPanel(body, state) {
  const draw = drawIfChanged((events) => {
    const of = (kind) => events.filter((event) => event.kind === kind).map((event) => event.data);
    const parts = [lessons(of("lessons.drawn").at(-1)), recalled(of("memory.recalled")), kept(of("memory.stored").at(-1)), plan(of("plan.made").at(-1)),
      optionalTable(of("diagnosis.made"), "Diagnoses", ["kind", "cause", "strategy", "confidence"], ({ diagnosis }) => [diagnosis.category, diagnosis.root_cause, diagnosis.strategy, diagnosis.confidence]),
      optionalTable(of("candidate.criticised"), "Critiques", ["score", "approved", "issues"], ({ critique }) => [critique.score, critique.approved ? "yes" : "no", (critique.issues ?? []).join("; ")]),
      optionalTable(of("advice.given"), "Advice", ["role", "advice"], ({ role, advice }) => [role, advice.join("; ")]),
      optionalTable(of("tests.assessed").flatMap(({ tests }) => tests), "Generated tests and their trust", ["trust", "test", "reason"], (one) => [one.trust, el("code", {}, one.test), one.reasons.join("; ")]),
      optionalTable(of("role.degraded"), "Failed roles", ["role", "reason"], (one) => [one.role, one.message])].filter(Boolean);
    return fill(body, parts.length ? parts : note("Nothing has been learned or recalled yet, and no other role has recorded anything."));
  });
  return async () => draw(state.events.filter((event) => LEARNED.includes(event.kind)));
}

const optionalTable = (found, caption, head, row) => (found.length ? table(caption, head, found.map(row)) : null);

function lessons(drawn) {
  return drawn?.lessons.length ? [el("h3", {}, "Lessons from this run"), el("ul", {}, drawn.lessons.map((lesson) => el("li", {}, lesson)))] : null;
}

function recalled(every) {
  const found = every.flatMap((one) => one.found ?? []);
  const fault = every.find((one) => one.fault)?.fault;
  if (!every.length) return null;
  return [el("h3", {}, "Recalled from earlier runs"), fault ? note(fault, "error") : null,
    found.length ? table("Memories, best match first", ["content", "kind", "score"], found.map((one) => [one.text || one.key, one.table, one.score]))
      : note("No similar memories.")];
}

function kept(one) {
  if (!one) return null;
  const words = ["failures", "patterns", "lessons"].map((name) => `${one[name] ?? 0} ${name}`).join(", ");
  return [el("h3", {}, "Stored from this run"), el("p", {}, one.fault ? `Not stored: ${one.fault}` : words)];
}

function plan(one) {
  return one ? [el("h3", {}, "Plan"), el("ol", {}, one.plan.subtasks.map((part) => el("li", {}, part.goal)))] : null;
}
