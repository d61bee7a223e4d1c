// The certificate of a healed result, and its verification.

import { get, post } from "./api.js";
import { button, code, el, fault, fill, note, table } from "./dom.js";
import { drawIfChanged } from "./panel.js";

export async function certificatePanel(body, state) {
  const draw = drawIfChanged(async () => fill(body, ...certificateView(await get(`/v1/runs/${state.run}/certificate`, state.signal), state)));
  return async () => draw(state.shown.state);
}

function certificateView(certificate, state) {
  const written = state.events.find((event) => event.kind === "certificate.written")?.data;
  const messages = el("div", { "aria-live": "polite" });
  const verify = button("Verify", async () => {
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
  const rows = [
    ["tests that pass now and failed before", certificate.fixed?.length ?? 0],
    ["tests that fail now and passed before", certificate.newly_failing?.length ?? 0],
    ["changed lines that the tests run", unmeasured(coverage) ?? `${lines(coverage?.covered)} of ${lines(coverage?.changed)}`],
    ["deliberate mistakes that the tests notice", unmeasured(mutation) ?? `${mutation?.mutants.filter((one) => one.killed).length} of ${mutation?.selected ?? mutation?.mutants.length}`],
    ["confidence, at least", (certificate.confidence ?? written?.confidence)?.toFixed(2) ?? ""],
  ];
  return [
    table("What was verified", ["", ""], rows.map(([name, value]) => [name, shown(value)])),
    state.caller.role === "viewer" ? note("Verifying requires the role runner.") : el("p", {}, verify), messages,
    el("details", {}, el("summary", {}, "Full certificate"), code(JSON.stringify(certificate, null, 1), "Full certificate")),
  ];
}

const unmeasured = (measured) => (measured?.unmeasured ? `not measured (${measured.unmeasured.replaceAll("_", " ")})` : null);
const lines = (byFile) => Object.values(byFile ?? {}).reduce((sum, one) => sum + one.length, 0);
const shown = (value) => (value === true ? "yes" : value === false ? "no" : value === null ? "" : value instanceof Node ? value : typeof value === "object" ? JSON.stringify(value) : String(value));
