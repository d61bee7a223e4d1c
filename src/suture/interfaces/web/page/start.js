// The form for a new run: write code from a task, or repair a project in a folder, an archive or a git repository.

import { get, post, send } from "./api.js";
import { choice, el, fault, field, fill, note } from "./dom.js";

export const AUTONOMY = [
  ["full_auto", "Never ask"],
  ["review_repairs", "Ask before each repair"],
  ["review_all", "Ask before each step and about the result"],
];

// The choices that every request for a run has; `read` returns them.
export function choices(caller, recipes, models, chosen = {}) {
  const recipe = choice([["", `Server default (${caller.recipe})`], ...recipes.map((one) => [one.name, one.name])], chosen.recipe ?? "");
  const model = choice([["", `Server default (${models.default})`], ...models.choices.map((name) => [name, name === "none" ? "none (small edits without a model)" : name])], "");
  const autonomy = choice([["", `Server default (${caller.autonomy})`], ...AUTONOMY], "");
  const limits = Object.entries(caller.budget).map(([name, most]) =>
    [name, el("input", { type: "number", max: most, placeholder: most, ...(name === "money" ? { min: "0.01", step: "any", inputmode: "decimal" } : { min: "1", step: "1", inputmode: "numeric" }) }), most]);
  const bound = (name, most) => (most === null ? "US dollars; needs known prices" : `at most ${name === "money" ? "$" : ""}${most.toLocaleString("en")}`);
  const summary = el("small", {}, "");
  const showSummary = () => fill(summary, recipes.find((one) => one.name === (recipe.value || caller.recipe))?.summary ?? "");
  recipe.addEventListener("change", showSummary);
  showSummary();
  return {
    node: el("fieldset", {}, el("legend", {}, "Options"),
      field("Recipe", recipe), summary, field("Model", model), field("When to ask you", autonomy),
      el("div", { class: "row" }, limits.map(([name, control, most]) => field(`Max ${name}`, control, bound(name, most))))),
    read: () => ({
      ...(recipe.value && { recipe: recipe.value }),
      ...(model.value && { model: model.value }),
      ...(autonomy.value && { autonomy: autonomy.value }),
      ...Object.fromEntries(limits.filter(([, control]) => control.value).map(([name, control]) => [name, Number(control.value)])),
    }),
  };
}

export async function startPage({ view, signal, caller }) {
  if (caller.role === "viewer") return fill(view, el("h1", {}, "New run"), note("Starting runs requires the role runner."));
  const [recipes, models, projects] = await Promise.all([get("/v1/recipes", signal), get("/v1/models", signal), get("/v1/projects", signal)]);
  const how = choices(caller, recipes, models);
  const kind = choice([["write", "Write new code from a task"], ["heal", "Repair a project"]], projects.roots.length ? "heal" : "write");
  const parts = { write: writeFields(), heal: healFields(projects) };
  const slot = el("div", {});
  const status = el("div", {});
  const submit = el("button", { type: "submit", class: "main" }, "Start");
  const turn = () => fill(slot, parts[kind.value].node);
  kind.addEventListener("change", turn);
  turn();
  const start = async (event) => {
    event.preventDefault();
    submit.disabled = true;
    fill(status, note("Starting ...", "loading"));
    try {
      const request = { kind: kind.value, ...(await parts[kind.value].read()), ...how.read() };
      location.hash = `#/runs/${(await post("/v1/runs", request)).run}`;
    } catch (error) {
      fill(status, fault(error));
    } finally {
      submit.disabled = false;
    }
  };
  return fill(view, el("h1", {}, "New run"),
    el("form", { onsubmit: start, class: "panel" }, field("Kind of run", kind), slot, how.node, submit, status));
}

function writeFields() {
  const task = el("textarea", { rows: "6", required: true, maxlength: "200000" });
  const asserts = el("textarea", { rows: "4", spellcheck: "false" });
  const name = el("input", { type: "text", spellcheck: "false" });
  return {
    node: el("div", {},
      field("Task", task, "What the code should do, with examples such as double(4) == 8."),
      field("Tests", asserts, "Optional. Plain asserts, one per line."),
      field("Name to define", name, "Optional.")),
    read: () => ({ task: task.value, asserts: asserts.value, ...(name.value.trim() && { entry_point: name.value.trim() }) }),
  };
}

function healFields(projects) {
  const options = el("datalist", { id: "projects" }, [...projects.roots, ...projects.folders].map((path) => el("option", { value: path })));
  const path = el("input", { type: "text", list: "projects", value: projects.roots.length === 1 ? projects.roots[0] : "", spellcheck: "false", autocomplete: "off" });
  const archive = el("input", { type: "file", accept: ".zip,.tar,.gz,.tgz" });
  const line = (attributes = {}) => el("input", { type: "text", spellcheck: "false", autocomplete: "off", ...attributes });
  const [git, ref, only, protect, since] = [line({ inputmode: "url" }), line(), line(), line(), line()];
  const test = line({ placeholder: "python -m pytest -q" });
  const bugReport = el("textarea", { rows: "3" });
  const where = projects.roots.length ? `Below ${projects.roots.join(" or ")}.` : "This server allows no project folders (--root): upload an archive.";
  const globs = (control) => control.value.split(",").map((one) => one.trim()).filter(Boolean);
  return {
    node: el("div", {}, options,
      field("Project folder", path, where),
      field("Or an archive", archive, "A .zip, .tar or .tar.gz of the project's folder."),
      projects.git.length ? [field("Or a git URL", git, `It must start with ${projects.git.join(" or ")}.`), field("Branch or tag", ref, "Optional; default: the default branch.")] : null,
      field("Test command", test, "Optional; default: detected from the project's files."),
      field("Bug report", bugReport, "Optional. What is known about the problem; for the model."),
      field("Files that may change", only, "Optional globs, separated by commas; default: everything except tests."),
      field("Files that must not change", protect, "Optional globs, separated by commas."),
      field("Broken since", since, "Optional. The oldest commit that may have broken it.")),
    read: async () => {
      const optional = (name, control) => (control.value.trim() ? { [name]: control.value.trim() } : {});
      const rest = { ...optional("test", test), ...optional("since", since), bug_report: bugReport.value, only: globs(only), protect: globs(protect) };
      if (git.value.trim()) return { ...optional("git", git), ...optional("ref", ref), ...rest };
      if (archive.files.length) return { archive: (await send("/v1/archives", archive.files[0])).archive, ...rest };
      return { path: path.value.trim(), ...rest };
    },
  };
}
