// What a run asks: the run's question, the facts needed to answer it, and the possible answers.

import { post, sentence } from "./api.js";
import { button, el, fault, field, fill, note, table } from "./dom.js";
import { changedLines, diffView } from "./diff.js";
import { factView } from "./panel.js";

// The stage of a question -> what happens if it is approved, and if it is rejected.
const WRITES = ["The model writes code, which costs tokens, and Suture tests it in the sandbox.", "Suture tries something else. A second rejection in a row ends the run."];
const EFFECTS = {
  search: ["Suture tries small edits in the sandbox until the tests pass. It costs no tokens.", "Suture leaves small edits out and tries something else. A second rejection in a row ends the run."],
  samples: WRITES,
  repairs: WRITES,
  delivery: ["The change becomes the result of the run. Your files change only when you apply it.", "The change is dropped, and Suture tries something else. A second rejection in a row ends the run."],
  test: ["From now on, a repair must pass this test too.", "The run ends without a repair."],
  safety: ["The code runs in the sandbox, like any other candidate.", "The code is not run, and the run goes on without it."],
};
const STOPS = "The run ends now and keeps its best candidate.";

// What each answer of a question does, below its buttons.
const effects = (...rows) => el("dl", { class: "effects" }, rows.map(([name, text]) => el("div", {}, el("dt", {}, name), el("dd", {}, text))));

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
    question.moves.length ? el("p", { class: "hint" }, sentence([...new Set(question.moves.map((move) => move.reason).filter(Boolean))].join("; "))) : null,
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
      press("Neither", () => ({ choice: "neither" })), press("I don't know", () => ({ choice: "unsure" }))),
    effects(["First, Second", "Only repairs with this result are kept."], ["Neither", "Both repairs are dropped, and the run goes on."], ["I don't know", "The run goes on as if you had not been asked: the likelier repair comes first."]));
}

// Calls of new code with their results. They are edited as asserts, in the one text that the question has.
function confirmed(question, press) {
  const [[path, text]] = Object.entries(question.texts);
  const asserts = el("textarea", { rows: "10", spellcheck: "false", class: "code", value: text });
  const shown = ({ call, answers }) => el("li", {}, el("code", {}, answers.length > 1 ? `${call}: ${answers.join(" or ")}` : `${call} == ${answers[0]}`), answers.length > 1 ? " (the versions differ)" : "");
  const raising = ({ call, exception }) => el("li", {}, el("code", {}, call), ` raises ${exception} (not checked)`);
  // There is nothing to approve if the versions agree in no result.
  const agreed = question.examples.some(({ answers }) => answers.length === 1);
  const none = agreed ? "They are not right" : "None is right";
  const own = press("Use my results", () => ({ choice: "edit", files: { [path]: asserts.value } }), agreed ? "" : "main");
  const edited = [field("Results", asserts, "One assert on each line. Those that you keep become checks, which the code must pass."), agreed ? own : null];
  return el("div", {}, el("ul", {}, question.examples.map(shown), question.raising_calls.map(raising)), agreed ? null : edited,
    el("div", { class: "row" }, agreed ? press("These are right", () => ({ choice: "approve" }), "main") : own, press(none, () => ({ choice: "reject" })), press("Stop the run", () => ({ choice: "abort" }), "danger")),
    effects(...(agreed ? [["These are right", "The results that all versions give become checks, which the code must pass."]] : []), [none, "The run ends, and the code stays unverified."], ["Stop the run", STOPS]),
    agreed ? el("details", {}, el("summary", {}, "Edit the results"), edited) : null);
}

// New code of which no guessed call returned a value: the person writes a call with its result.
function completed(question, press) {
  const [path] = Object.keys(question.texts);
  const asserts = el("textarea", { rows: "3", spellcheck: "false", class: "code", placeholder: "assert f(2) == 4" });
  return el("div", {}, el("p", {}, "No test or example says what is right, and no call that Suture guessed returned a value."),
    field("Calls with their results", asserts, "One assert on each line. They decide whether the code is right."),
    el("div", { class: "row" }, press("Check the code with these", () => ({ choice: "edit", files: { [path]: asserts.value } }), "main"), press("I know none", () => ({ choice: "reject" })), press("Stop the run", () => ({ choice: "abort" }), "danger")),
    effects(["I know none", "The run ends, and the code stays unverified."], ["Stop the run", STOPS]));
}

function decided(question, press) {
  const hint = el("textarea", { rows: "3" });
  const edited = Object.entries(question.texts ?? {}).map(([path, text]) => [path, text, el("textarea", { rows: "12", spellcheck: "false", class: "code", value: text })]);
  const [approved, rejected] = EFFECTS[question.stage];
  const changed = () => Object.fromEntries(edited.filter(([, text, control]) => control.value !== text).map(([path, , control]) => [path, control.value]));
  return el("div", {},
    el("div", { class: "row" }, press("Approve", () => ({ choice: "approve" }), "main"), press("Reject", () => ({ choice: "reject" })), press("Abort the run", () => ({ choice: "abort" }), "danger")),
    effects(["Approve", approved], ["Reject", rejected], ["Abort the run", STOPS]),
    el("details", {}, el("summary", {}, "Reject with a hint"), field("Hint", hint, "A hint for the model from now on."), press("Send hint", () => ({ choice: "redirect", hint: hint.value }))),
    edited.length ? el("details", {}, el("summary", {}, "Edit the code"), edited.map(([path, , control]) => field(path, control)), press("Use my edits", () => ({ choice: "edit", files: changed() }))) : null);
}
