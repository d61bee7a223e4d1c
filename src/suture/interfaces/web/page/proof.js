// The certificate of a healed result: what was proved, what is only said, and the proof done once more.

import { get, post } from "./api.js";
import { button, code, el, fault, fill, note, table } from "./dom.js";
import { diffView } from "./diff.js";
import { unlessSame } from "./panel.js";

export async function proofPanel(body, state) {
  const draw = unlessSame(async ({ healed }) => {
    if (!healed) return fill(body, el("h2", {}, "Certificate"), note(state.shown.state === "ended" ? "Only a healed result gets a certificate." : "There is none yet: the run goes on."));
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
  const said = el("div", { "aria-live": "polite" });
  const verify = button("Verify it now", async () => {
    verify.disabled = true;
    fill(said, note("Proving it anew, without a model ...", "loading"));
    try {
      const told = await post(`/v1/runs/${state.run}/verify`);
      fill(said, el("p", { class: told.ok ? "good" : "bad" }, told.ok ? "It holds." : "It does not hold."),
        table("What was looked at", Object.keys(told.findings[0] ?? { finding: "" }), told.findings.map((one) => Object.values(one).map(shown))));
    } catch (error) {
      fill(said, fault(error));
    }
    verify.disabled = false;
  }, { class: "main" });
  const { mutation, coverage } = certificate;
  const rows = [
    ["evidence", certificate.evidence],
    ["tests fixed", certificate.fixed?.length ?? 0],
    ["newly failing", certificate.newly_failing?.length ?? 0],
    ["changed lines the tests run", coverage?.unmeasured || `${lines(coverage?.covered)} of ${lines(coverage?.changed)}`],
    ["mutants the tests notice", mutation?.unmeasured || `${mutation?.mutants.filter((one) => one.killed).length} of ${mutation?.drawn ?? mutation?.mutants.length}`],
    ["confidence, at least", certificate.confidence ?? written?.confidence ?? ""],
    ["seal", el("code", {}, written?.seal ?? certificate.seal ?? "")],
  ];
  return [
    table("What was proved", ["", ""], rows.map(([name, value]) => [name, shown(value)])),
    state.caller.role === "viewer" ? note("To verify takes the role runner.") : el("p", {}, verify), said,
    certificate.diff ? [el("h3", {}, "The change"), diffView(certificate.diff, "before", "after", state.signal)] : null,
    el("details", {}, el("summary", {}, "The whole certificate"), code(JSON.stringify(certificate, null, 1), "The whole certificate")),
  ];
}

const lines = (byFile) => Object.values(byFile ?? {}).reduce((sum, one) => sum + one.length, 0);
const shown = (value) => (value === true ? "yes" : value === false ? "no" : value === null ? "" : value instanceof Node ? value : typeof value === "object" ? JSON.stringify(value) : String(value));
