// The certificate of a healed result, and its verification.

import { get, post } from "./api.js";
import { button, code, el, fault, fill, note, table } from "./dom.js";
import { checksName, confidenceText, drawIfChanged } from "./panel.js";

export async function certificatePanel(body, state) {
  const draw = drawIfChanged(async () => fill(body, ...certificateView(await get(`/v1/runs/${state.run}/certificate`, state.signal), state)));
  return async () => draw(state.shown.state);
}

function certificateView(certificate, state) {
  const messages = el("div", { "aria-live": "polite" });
  const verify = button("Verify again", async () => {
    verify.disabled = true;
    fill(messages, note("Verifying without a model ...", "loading"));
    try {
      const check = await post(`/v1/runs/${state.run}/verify`);
      fill(messages, el("p", { class: check.ok ? "good" : "bad" }, check.ok ? "The certificate is valid." : "The certificate is not valid."),
        table("Findings", Object.keys(check.findings[0] ?? { finding: "" }), check.findings.map((one) => Object.values(one).map(shown))));
    } catch (error) {
      fill(messages, fault(error));
    }
    verify.disabled = false;
  });
  const { mutation, coverage } = certificate;
  const { shown: { confidence, unmeasured } } = state;
  const checks = checksName(state.shown);
  const missing = (name) => `Not measured: ${unmeasured[name]}.`;
  const mutants = mutation?.mutants ?? [];
  const rows = [
    [`${checks} that pass now and failed before`, "They show that the change does what was asked.", certificate.fixed?.length ?? 0],
    [`${checks} that fail now and passed before`, "The change must break nothing.", certificate.newly_failing?.length ?? 0],
    [`changed lines that the ${checks} run`, "A line that they do not run may do anything.", unmeasured.coverage ? missing("coverage") : `${lines(coverage?.covered)} of ${lines(coverage?.changed)}`],
    [`deliberate mistakes that the ${checks} notice`, "Suture puts mistakes into the changed lines. If everything still passes with one, a real mistake there would go unnoticed too.",
      unmeasured.mutation && !mutants.length ? missing("mutation") : `${mutants.filter((one) => one.killed).length} of ${mutation?.selected ?? mutants.length}`],
    ["confidence", "How likely it is that the change is right, given all of this.", confidence === null ? "" : confidenceText(confidence)],
  ];
  return [
    el("p", { class: "hint" }, "The certificate is a sealed record of what was verified. Anybody who has the project can verify it again, without a model."),
    table("What was verified", ["what", "result"], rows.map(([name, why, value]) => [[name, el("small", {}, why)], shown(value)])),
    state.caller.role === "viewer" ? note("Verifying requires the role runner.") : el("p", {}, verify), messages,
    el("details", {}, el("summary", {}, "Full certificate"), code(JSON.stringify(certificate, null, 1), "Full certificate")),
  ];
}

const lines = (byFile) => Object.values(byFile ?? {}).reduce((sum, one) => sum + one.length, 0);
const shown = (value) => (value === true ? "yes" : value === false ? "no" : value === null ? "" : value instanceof Node ? value : typeof value === "object" ? JSON.stringify(value) : String(value));
