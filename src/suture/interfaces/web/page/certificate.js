// The certificate of a healed result, and its verification.

import { get, post } from "./api.js";
import { button, code, el, fault, fill, note, table } from "./dom.js";
import { diffView } from "./diff.js";
import { drawIfChanged } from "./panel.js";

export async function certificatePanel(body, state) {
  const draw = drawIfChanged(async ({ healed }) => {
    if (!healed) return fill(body, el("h2", {}, "Certificate"), note(state.shown.state === "ended" ? "Only healed results have a certificate." : "There is no certificate yet: the run is still in progress."));
    try {
      return fill(body, el("h2", {}, "Certificate"), ...certificateView(await get(`/v1/runs/${state.run}/certificate`, state.signal), state));
    } catch (error) {
      if (error.status !== 404) throw error;
      return fill(body, el("h2", {}, "Certificate"), note("This run has no certificate."));
    }
  });
  return async () => draw({ healed: state.shown.outcome === "healed" && state.shown.state === "ended" });
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
  }, { class: "main" });
  const { mutation, coverage } = certificate;
  const rows = [
    ["evidence", certificate.evidence],
    ["fixed tests", certificate.fixed?.length ?? 0],
    ["newly failing tests", certificate.newly_failing?.length ?? 0],
    ["changed lines run by the tests", coverage?.unmeasured?.replaceAll("_", " ") || `${lines(coverage?.covered)} of ${lines(coverage?.changed)}`],
    ["mutants killed by the tests", mutation?.unmeasured?.replaceAll("_", " ") || `${mutation?.mutants.filter((one) => one.killed).length} of ${mutation?.selected ?? mutation?.mutants.length}`],
    ["confidence (lower bound)", certificate.confidence ?? written?.confidence ?? ""],
    ["seal", el("code", {}, written?.seal ?? certificate.seal ?? "")],
  ];
  return [
    table("Certified facts", ["", ""], rows.map(([name, value]) => [name, shown(value)])),
    state.caller.role === "viewer" ? note("Verifying requires the role runner.") : el("p", {}, verify), messages,
    certificate.diff ? [el("h3", {}, "Change"), diffView(certificate.diff, "before", "after", state.signal)] : null,
    el("details", {}, el("summary", {}, "Full certificate"), code(JSON.stringify(certificate, null, 1), "Full certificate")),
  ];
}

const lines = (byFile) => Object.values(byFile ?? {}).reduce((sum, one) => sum + one.length, 0);
const shown = (value) => (value === true ? "yes" : value === false ? "no" : value === null ? "" : value instanceof Node ? value : typeof value === "object" ? JSON.stringify(value) : String(value));
