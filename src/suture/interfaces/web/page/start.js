// The form for a new run: a project to repair, or a task to write code for. Everything else is an option.

import { get, post, send } from "./api.js";
import { choice, el, fault, field, fill, note, projectName, segments } from "./dom.js";

const AUTONOMY = { full_auto: "Never", review_repairs: "Before each repair", review_all: "Before each step, and about the result" };
const LANGUAGES = [["", "Python (default)"], ["node", "JavaScript"], ["typescript", "TypeScript"], ["go", "Go"]];
const KINDS = [["", "A function or module (default)"], ["cli_tool", "Command-line tool"], ["web_app", "Web application"], ["data_pipeline", "Data pipeline"], ["library", "Library"]];

const modelName = (name) => (name === "none" ? "No model: small edits only" : name.replace(/^local:/, "") + (name.startsWith("local:") ? " (on this machine)" : ""));

// The choices that every request for a run has, with the server's defaults by name; `read` returns them.
export function choices(caller, recipes, models) {
  const recipe = choice([["", `${caller.recipe} (default)`], ...recipes.filter((one) => one.name !== caller.recipe).map((one) => [one.name, one.name])], "");
  const others = models.choices.filter((name) => ![models.default, models.resolved].includes(name));
  const model = choice([["", `${modelName(models.resolved)} (default)`], ...others.map((name) => [name, modelName(name)])], "");
  const autonomy = choice([["", `${AUTONOMY[caller.autonomy]} (default)`], ...Object.entries(AUTONOMY).filter(([key]) => key !== caller.autonomy)], "");
  const limits = Object.entries(caller.budget).map(([name, most]) =>
    [name, el("input", { type: "number", max: most, placeholder: most?.toLocaleString("en") ?? "no limit", ...(name === "money" ? { min: "0.01", step: "any", inputmode: "decimal" } : { min: "1", step: "1", inputmode: "numeric" }) }), most]);
  const bound = (name, most) => (most === null ? "US dollars; default: no limit" : `default and maximum: ${name === "money" ? "$" : ""}${most.toLocaleString("en")}`);
  const summary = el("small", {}, "");
  const showSummary = () => fill(summary, recipes.find((one) => one.name === (recipe.value || caller.recipe))?.summary ?? "");
  recipe.addEventListener("change", showSummary);
  showSummary();
  return {
    node: el("div", {},
      el("div", { class: "row" }, field("Model", model), field("Recipe", recipe), field("When to ask you", autonomy)), summary,
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
  const parts = { heal: healFields(projects), write: writeFields() };
  let kind = projects.roots.length ? "heal" : "write";
  const [first, more, status] = [el("div", {}), el("div", {}), el("div", {})];
  const turn = (chosen) => { kind = chosen; fill(first, parts[kind].first); fill(more, parts[kind].more); };
  const submit = el("button", { type: "submit", class: "main" }, "Start");
  const start = async (event) => {
    event.preventDefault();
    submit.disabled = true;
    fill(status, note("Starting ...", "loading"));
    try {
      const request = { kind, ...(await parts[kind].read()), ...how.read() };
      location.hash = `#/runs/${(await post("/v1/runs", request)).run}`;
    } catch (error) {
      fill(status, fault(error));
    } finally {
      submit.disabled = false;
    }
  };
  turn(kind);
  return fill(view, el("h1", {}, "New run"),
    el("form", { onsubmit: start, class: "panel" },
      segments("Kind of run", [["heal", "Repair a project"], ["write", "Write new code"]], kind, turn), first,
      el("details", {}, el("summary", {}, `Options: ${modelName(models.resolved)}, recipe ${caller.recipe}`), how.node, more),
      el("div", { class: "row" }, submit), status));
}

const line = (attributes = {}) => el("input", { type: "text", spellcheck: "false", autocomplete: "off", ...attributes });

function writeFields() {
  const task = el("textarea", { rows: "6", required: true, maxlength: "200000", placeholder: "Write a function slug(title) that ... For example: slug('Hello World') == 'hello-world'" });
  const asserts = el("textarea", { rows: "4", spellcheck: "false" });
  const [language, project, name] = [choice(LANGUAGES, ""), choice(KINDS, ""), line()];
  const optional = (key, control) => (control.value.trim() ? { [key]: control.value.trim() } : {});
  return {
    first: [field("Task", task, "What the code should do. Examples with their results decide whether it is right."),
      el("div", { class: "row" }, field("What to make", project), field("Language", language))],
    more: [field("Tests", asserts, "Plain asserts, one per line."), field("Name to define", name)],
    read: () => ({ task: task.value, asserts: asserts.value, ask: true, ...optional("entry_point", name), ...optional("language", language), ...optional("project", project) }),
  };
}

// What to repair is a folder that the server knows, another one, an archive, or a git repository.
function healFields(projects) {
  const names = projects.folders.length ? projects.folders : projects.roots;
  const options = el("datalist", { id: "projects" }, [...projects.roots, ...projects.folders].map((path) => el("option", { value: path })));
  const path = line({ list: "projects", placeholder: projects.roots[0] });
  const archive = el("input", { type: "file", accept: ".zip,.tar,.gz,.tgz" });
  const [git, ref, only, protect, since] = [line({ inputmode: "url" }), line(), line(), line(), line()];
  const test = line({ placeholder: "python -m pytest -q" });
  const bugReport = el("textarea", { rows: "3" });
  const sources = {
    other: [options, field("Project folder", path, `Below ${projects.roots.join(" or ")}.`)],
    archive: [field("Archive", archive, "A .zip, .tar or .tar.gz of the project's folder.")],
    git: [field("Git URL", git, `It must start with ${projects.git.join(" or ")}.`), field("Branch or tag", ref, "Default: the default branch.")],
  };
  const picker = choice([...names.map((name) => [name, `${projectName(name)} (${name})`]), projects.roots.length ? ["other", "Another folder ..."] : null,
    ["archive", "Upload an archive ..."], projects.git.length ? ["git", "Clone a git repository ..."] : null].filter(Boolean), names[0] ?? "archive");
  const slot = el("div", {});
  const turn = () => fill(slot, sources[picker.value]);
  picker.addEventListener("change", turn);
  turn();
  const globs = (control) => control.value.split(",").map((one) => one.trim()).filter(Boolean);
  const optional = (name, control) => (control.value.trim() ? { [name]: control.value.trim() } : {});
  const source = async () => {
    if (picker.value === "git") return { ...optional("git", git), ...optional("ref", ref) };
    if (picker.value !== "archive") return { path: picker.value === "other" ? path.value.trim() : picker.value };
    if (!archive.files.length) throw new Error("choose an archive first");
    return { archive: (await send("/v1/archives", archive.files[0])).archive };
  };
  return {
    first: [field("Project", picker), slot, field("What is wrong?", bugReport, "Optional. The failing tests say most; add what you know.")],
    more: [field("Test command", test, "Default: detected from the project's files."),
      field("Files that may change", only, "Globs, separated by commas. Default: everything except tests."),
      field("Files that must not change", protect, "Globs, separated by commas."),
      field("Broken since", since, "The oldest commit that may have broken it.")],
    read: async () => ({ ...(await source()), ...optional("test", test), ...optional("since", since), bug_report: bugReport.value, only: globs(only), protect: globs(protect) }),
  };
}
