// The review panel: the run's question, the facts needed to answer it, and the possible answers.

import { post } from "./api.js";
import { button, el, fault, field, fill, note } from "./dom.js";
import { diffView } from "./diff.js";
import { factView, drawIfChanged } from "./panel.js";

export async function reviewPanel(body, state) {
  const before = () => state.events.filter((event) => ["review.asked", "review.answered", "user.answered"].includes(event.kind) && event.text);
  const past = el("div", {});
  const slot = el("div", {});
  fill(body, el("h2", {}, "Review"), slot, past);
  // Redrawn only for a new question, so that text that somebody is writing is never lost.
  const draw = drawIfChanged(({ question }) => fill(slot, question ? questionView(question, state) : note(noQuestionText(state))));
  const drawHistory = drawIfChanged((events) => fill(past, events.length ? [el("h3", {}, "Earlier questions and answers"), el("ol", { class: "timeline" }, events.map((event) => el("li", {}, event.text)))] : null));
  return async () => {
    const question = state.shown.state === "waiting" ? state.shown.question : null;
    await draw({ question, state: state.shown.state });
    await drawHistory(before());
  };
}

function noQuestionText(state) {
  return { ended: "The run has ended without an open question.", running: "The run has no open question." }[state.shown.state] ?? "The run has no open question.";
}

function questionView(question, state) {
  const status = el("div", {});
  const buttons = [];
  const answer = async (answered) => {
    fill(status, note("Sending the answer ...", "loading"));
    for (const one of buttons) one.disabled = true;
    try {
      await post(`/v1/runs/${state.run}/review`, { ...answered, key: question.key });
      fill(status, note("Answered. The run continues.", "hint"));
    } catch (error) {
      fill(status, fault(error));
      for (const one of buttons) one.disabled = false;
    }
  };
  const press = (label, give, kind = "") => {
    const made = button(label, () => answer(give()), { class: kind });
    buttons.push(made);
    return made;
  };
  const may = ["reviewer", "admin"].includes(state.caller.role);
  const answers = !may ? note("Answering requires the role reviewer.") : question.difference ? chosen(question.difference, press) : decided(question, press);
  return [
    el("p", { class: "asks" }, el("strong", {}, question.question)),
    question.moves.length ? el("ul", {}, question.moves.map((move) => el("li", {}, `${move.kind}${move.reason ? `: ${move.reason}` : ""}`))) : null,
    question.diagnosis ? el("p", {}, `Diagnosis: ${question.diagnosis.root_cause}`) : null,
    question.facts.map(factView),
    question.diff ? diffView(question.diff, "original", "candidate", state.signal) : null,
    answers, status,
  ];
}

function chosen(difference, press) {
  const [first, second] = Object.entries(difference.answers);
  return el("div", { class: "panel" }, el("p", {}, "Two repairs pass all tests but behave differently. Which result is right for ", el("code", {}, difference.call), "?"),
    el("div", { class: "row" },
      press(`First: ${first?.[1] ?? ""}`, () => ({ choice: "first" }), "main"), press(`Second: ${second?.[1] ?? ""}`, () => ({ choice: "second" }), "main"),
      press("Neither", () => ({ choice: "neither" })), press("I don't know", () => ({ choice: "unsure" }))));
}

function decided(question, press) {
  const hint = el("textarea", { rows: "3" });
  const edited = Object.entries(question.texts ?? {}).map(([path, text]) => [path, text, el("textarea", { rows: "12", spellcheck: "false", class: "code", value: text })]);
  const changed = () => Object.fromEntries(edited.filter(([, text, control]) => control.value !== text).map(([path, , control]) => [path, control.value]));
  return el("div", { class: "panel" },
    el("div", { class: "row" }, press("Approve", () => ({ choice: "approve" }), "main"), press("Reject", () => ({ choice: "reject" })), press("Abort the run", () => ({ choice: "abort" }), "danger")),
    el("details", {}, el("summary", {}, "Reject with a hint"), field("Hint", hint, "A hint for the model from now on."), press("Send hint", () => ({ choice: "redirect", hint: hint.value }))),
    edited.length ? el("details", {}, el("summary", {}, "Edit the code"), edited.map(([path, , control]) => field(path, control)), press("Use my edits", () => ({ choice: "edit", files: changed() }))) : null);
}
