// What a run asks: the run's question, the facts needed to answer it, and the possible answers.

import { post } from "./api.js";
import { button, el, fault, field, fill, note, table } from "./dom.js";
import { changedLines, diffView } from "./diff.js";
import { factView } from "./panel.js";

// The answer counts at once: the question disappears, and comes back only if the server refuses the answer.
export function questionView(question, state, answered) {
  const status = el("div", { "aria-live": "polite" });
  const asked = el("div", {});
  const answer = async (given, label) => {
    asked.hidden = true;
    fill(status, note(`${label}: the run continues ...`, "now"));
    try {
      await post(`/v1/runs/${state.run}/review`, { ...given, key: question.key });
      await answered();
    } catch (error) {
      asked.hidden = false;
      fill(status, fault(error));
    }
  };
  const press = (label, give, kind = "") => button(label, () => answer(give(), label), { class: kind });
  const may = ["reviewer", "admin"].includes(state.caller.role);
  const answers = !may ? note("Answering requires the role reviewer.") : question.difference ? chosen(question, press) : question.stage === "examples" ? (question.examples.length ? confirmed(question, press) : completed(question, press)) : decided(question, press);
  fill(asked,
    el("h2", {}, question.question),
    question.moves.length ? el("p", { class: "hint" }, [...new Set(question.moves.map((move) => move.reason).filter(Boolean))].join("; ")) : null,
    question.diagnosis ? el("p", {}, `Diagnosis: ${question.diagnosis.root_cause}`) : null,
    el("div", { class: "charts" }, question.facts.map((fact) => factView(fact))),
    question.diff ? diffView(question.diff, "original", "candidate", state.signal) : null,
    answers);
  return el("section", { class: "asked", "aria-label": "Question" }, asked, status);
}

// Two repairs with their results. A label is shown for a repair whose diff is not recorded.
function chosen({ difference, changes }, press) {
  const [first, second] = Object.entries(difference.answers);
  return el("div", {}, el("p", {}, "Two repairs pass all tests but behave differently."),
    table("The two repairs", ["", "change", "result"], [first, second].map(([label, answer], number) => [number ? "second" : "first", el("pre", {}, changedLines(changes[number]?.diff ?? "") || label), el("code", {}, answer)]), { class: "untitled" }),
    el("div", { class: "row" },
      press(`First: ${first?.[1] ?? ""}`, () => ({ choice: "first" }), "main"), press(`Second: ${second?.[1] ?? ""}`, () => ({ choice: "second" }), "main"),
      press("Neither", () => ({ choice: "neither" })), press("I don't know", () => ({ choice: "unsure" }))));
}

// Calls of new code with their results. They are edited as asserts, in the one text that the question has.
function confirmed(question, press) {
  const [[path, text]] = Object.entries(question.texts);
  const asserts = el("textarea", { rows: "10", spellcheck: "false", class: "code", value: text });
  const shown = ({ call, answers }) => el("li", {}, el("code", {}, answers.length > 1 ? `${call}: ${answers.join(" or ")}` : `${call} == ${answers[0]}`), answers.length > 1 ? " (the versions differ)" : "");
  const raising = ({ call, exception }) => el("li", {}, el("code", {}, call), ` raises ${exception} (not checked)`);
  return el("div", {}, el("ul", {}, question.examples.map(shown), question.raising_calls.map(raising)),
    el("div", { class: "row" }, press("These are right", () => ({ choice: "approve" }), "main"), press("They are not right", () => ({ choice: "reject" })), press("Stop the run", () => ({ choice: "abort" }), "danger")),
    el("details", {}, el("summary", {}, "Edit the results"), field("Results", asserts), press("Use my results", () => ({ choice: "edit", files: { [path]: asserts.value } }))));
}

// New code of which no guessed call returned a value: the person writes a call with its result.
function completed(question, press) {
  const [path] = Object.keys(question.texts);
  const asserts = el("textarea", { rows: "3", spellcheck: "false", class: "code", placeholder: "assert f(2) == 4" });
  return el("div", {}, el("p", {}, "No test or example says what is right, and no call that Suture guessed returned a value."),
    field("Calls with their results", asserts, "One assert on each line. They decide whether the code is right."),
    el("div", { class: "row" }, press("Check the code with these", () => ({ choice: "edit", files: { [path]: asserts.value } }), "main"), press("I know none", () => ({ choice: "reject" })), press("Stop the run", () => ({ choice: "abort" }), "danger")));
}

function decided(question, press) {
  const hint = el("textarea", { rows: "3" });
  const edited = Object.entries(question.texts ?? {}).map(([path, text]) => [path, text, el("textarea", { rows: "12", spellcheck: "false", class: "code", value: text })]);
  const changed = () => Object.fromEntries(edited.filter(([, text, control]) => control.value !== text).map(([path, , control]) => [path, control.value]));
  return el("div", {},
    el("div", { class: "row" }, press("Approve", () => ({ choice: "approve" }), "main"), press("Reject", () => ({ choice: "reject" })), press("Abort the run", () => ({ choice: "abort" }), "danger")),
    el("details", {}, el("summary", {}, "Reject with a hint"), field("Hint", hint, "A hint for the model from now on."), press("Send hint", () => ({ choice: "redirect", hint: hint.value }))),
    edited.length ? el("details", {}, el("summary", {}, "Edit the code"), edited.map(([path, , control]) => field(path, control)), press("Use my edits", () => ({ choice: "edit", files: changed() }))) : null);
}
