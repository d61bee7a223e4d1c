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
// What ends a run at once is called so everywhere.
export const STOP = "Stop the run";
const UNVERIFIED = "End without checking the code";
const STOPS = "The run ends now and keeps its best candidate.";
// The answers by which a run ends without results of new code.
const endings = (press) => [press(UNVERIFIED, () => ({ choice: "reject" })), press(STOP, () => ({ choice: "abort" }), "danger")];
const ENDINGS = [[UNVERIFIED, "The run ends, and the code stays unverified."], [STOP, STOPS]];

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

// Calls of new code with the results that its versions give. What a person chooses or writes becomes checks, as asserts in the one text of the question.
function confirmed(question, press) {
  const [[path, text]] = Object.entries(question.texts);
  const rows = question.examples.map((example) => exampleRow(example, () => { use.disabled = !rows.some(({ read }) => read()); }));
  const use = press("Use the chosen results", () => ({ choice: "edit", files: { [path]: rows.map(({ read }) => read()).filter(Boolean).join("\n") } }), "main");
  use.disabled = true;
  const agreed = question.examples.every(({ answers }) => answers.length === 1);
  const asserts = el("textarea", { rows: "10", spellcheck: "false", class: "code", value: text });
  return el("div", {}, el("p", { class: "hint" }, "Choose the right result of each call that you are sure of. The code must give it; calls without a choice decide nothing."),
    raisingLines(question, true), rows.map(({ node }) => node), raisingLines(question, false),
    el("div", { class: "row" }, use, agreed ? press("All of them are right", () => ({ choice: "approve" })) : null, endings(press)),
    effects(...ENDINGS),
    el("details", {}, el("summary", {}, "Edit as text"), field("Results", asserts, "One assert on each line. Those that you keep become checks, which the code must pass."), press("Use this text", () => ({ choice: "edit", files: { [path]: asserts.value } }))));
}

// Calls that raise an exception: those with an input that the task shows, or the others.
const raisingLines = (question, isShown) => question.raising_calls.filter((one) => Boolean(one.is_shown) === isShown).map(({ call, exception }) =>
  el("p", { class: isShown ? "warn" : null }, el("code", {}, call), ` raises ${exception}${isShown ? ", although the task names this input" : " (not checked)"}`));

// One call: a radio button for each result that a version gives, and one for another value. `read` returns the assert that was chosen.
function exampleRow({ call, answers }, changed) {
  const other = el("input", { type: "text", spellcheck: "false", autocomplete: "off", "aria-label": `Another result of ${call}`, oninput: () => { others.checked = true; changed(); } });
  const name = `call-${call}`;
  const choices = answers.map((answer) => el("input", { type: "radio", name, onchange: changed }));
  const others = el("input", { type: "radio", name, onchange: () => { other.focus(); changed(); } });
  const chosen = () => (others.checked ? other.value.trim() : answers[choices.findIndex((one) => one.checked)]);
  return {
    node: el("fieldset", { class: "example" }, el("legend", {}, el("code", {}, call), el("small", {}, answers.length > 1 ? " the versions differ" : " all versions agree")),
      answers.map((answer, n) => el("label", {}, choices[n], el("code", {}, answer))), el("span", {}, el("label", {}, others, "another value"), other)),
    read: () => (chosen() ? `assert ${call} == ${chosen()}` : ""),
  };
}

// New code of which no guessed call returned a value: the person writes a call with its result.
function completed(question, press) {
  const [path] = Object.keys(question.texts);
  const asserts = el("textarea", { rows: "3", spellcheck: "false", class: "code", placeholder: "assert f(2) == 4" });
  return el("div", {}, el("p", {}, "No test or example says what is right, and no call that Suture guessed returned a value."),
    field("Calls with their results", asserts, "One assert on each line. They decide whether the code is right."),
    el("div", { class: "row" }, press("Check the code with these", () => ({ choice: "edit", files: { [path]: asserts.value } }), "main"), endings(press)),
    effects(...ENDINGS));
}

function decided(question, press) {
  const hint = el("textarea", { rows: "3" });
  const edited = Object.entries(question.texts ?? {}).map(([path, text]) => [path, text, el("textarea", { rows: "12", spellcheck: "false", class: "code", value: text })]);
  const [approved, rejected] = EFFECTS[question.stage];
  const changed = () => Object.fromEntries(edited.filter(([, text, control]) => control.value !== text).map(([path, , control]) => [path, control.value]));
  return el("div", {},
    el("div", { class: "row" }, press("Approve", () => ({ choice: "approve" }), "main"), press("Reject", () => ({ choice: "reject" })), press(STOP, () => ({ choice: "abort" }), "danger")),
    effects(["Approve", approved], ["Reject", rejected], [STOP, STOPS]),
    el("details", {}, el("summary", {}, "Reject with a hint"), field("Hint", hint, "A hint for the model from now on."), press("Send hint", () => ({ choice: "redirect", hint: hint.value }))),
    edited.length ? el("details", {}, el("summary", {}, "Edit the code"), edited.map(([path, , control]) => field(path, control)), press("Use my edits", () => ({ choice: "edit", files: changed() }))) : null);
}
