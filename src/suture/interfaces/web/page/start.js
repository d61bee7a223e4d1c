// The form for a new run: a project to repair, or a task to write code for. Everything else is an option.

import { get, post, send } from "./api.js";
import { choice, el, field, fill, note, projectName, segments, showFault } from "./dom.js";
import { modelName } from "./panel.js";

const AUTONOMY = { full_auto: "Never", review_repairs: "Before each repair", review_all: "Before each step, and about the result" };
const LANGUAGES = [["", "Python (default)"], ["node", "JavaScript"], ["typescript", "TypeScript"], ["go", "Go"]];
const KINDS = [["", "A function or module (default)"], ["cli_tool", "Command-line tool"], ["web_app", "Web application"], ["data_pipeline", "Data pipeline"], ["library", "Library"]];

const modelChoice = (name) => (name === "none" ? "No model: small edits only" : modelName(name));

// The choices that every request for a run has, with the server's defaults by name; `read` returns them.
// New code is written by a model, so `offer` leaves out the choice of none, and says whether a model is left.
export function choices(caller, recipes, models, needsModel = false) {
  const recipe = choice([["", `${projectName(caller.recipe)} (default)`], ...recipes.filter((one) => one.name !== caller.recipe).map((one) => [one.name, one.name])], "");
  const others = models.choices.filter((name) => ![models.default, models.resolved].includes(name));
  const model = el("select", {});
  const offer = (needed) => {
    const offered = [["", `${modelChoice(models.resolved)} (default)`], ...others.map((name) => [name, modelChoice(name)])].filter(([name]) => !needed || (name || models.resolved) !== "none");
    const chosen = model.value;
    fill(model, offered.map(([name, text]) => el("option", { value: name }, text)));
    model.value = offered.some(([name]) => name === chosen) ? chosen : offered[0]?.[0] ?? "";
    return offered.length > 0;
  };
  offer(needsModel);
  const autonomy = choice([["", `${AUTONOMY[caller.autonomy]} (default)`], ...Object.entries(AUTONOMY).filter(([key]) => key !== caller.autonomy)], "");
  const limits = Object.entries(caller.budget).map(([name, most]) =>
    [name, el("input", { type: "number", max: most, placeholder: most?.toLocaleString("en") ?? "no limit", ...(name === "money" ? { min: "0.01", step: "any", inputmode: "decimal" } : { min: "1", step: "1", inputmode: "numeric" }) }), most]);
  const units = { attempts: "candidates by the model; ", money: "US dollars; " };
  const bound = (name, most) => `${units[name] ?? ""}${most === null ? "default: no limit" : `default and maximum: ${most.toLocaleString("en")}`}`;
  const summary = el("small", {}, "");
  const showSummary = () => fill(summary, recipes.find((one) => one.name === (recipe.value || caller.recipe))?.summary ?? "");
  recipe.addEventListener("change", showSummary);
  showSummary();
  return {
    offer,
    text: () => `${modelChoice(model.value || models.resolved)}, recipe ${projectName(recipe.value || caller.recipe)}`,
    controls: { model, recipe, autonomy, ...Object.fromEntries(limits) },
    node: el("div", {},
      field("Model", model), el("div", { class: "row" }, field("Recipe", recipe), field("When to ask you", autonomy)), summary,
      el("div", { class: "row limits" }, limits.map(([name, control, most]) => field(`Max ${name}`, control, bound(name, most))))),
    read: () => ({
      ...(recipe.value && { recipe: recipe.value }),
      ...(model.value && { model: model.value }),
      ...(autonomy.value && { autonomy: autonomy.value }),
      ...Object.fromEntries(limits.filter(([, control]) => control.value).map(([name, control]) => [name, Number(control.value)])),
    }),
  };
}

// With a run in the address, its task is filled in, so that examples can be added to it.
export async function startPage({ view, signal, caller, query }) {
  if (caller.role === "viewer") return fill(view, el("h1", {}, "New run"), note("Starting runs requires the role runner."));
  const [recipes, models, projects] = await Promise.all([get("/v1/recipes", signal), get("/v1/models", signal), get("/v1/projects", signal)]);
  const how = choices(caller, recipes, models);
  const again = /^[0-9a-f-]+$/.test(query.get("run") ?? "") ? await get(`/v1/runs/${query.get("run")}`, signal) : null;
  const parts = { heal: healFields(projects), write: writeFields(again?.task) };
  let kind = !again && projects.roots.length ? "heal" : "write";
  const [first, more, status] = [el("div", {}), el("div", {}), el("div", {})];
  const controls = () => ({ ...how.controls, ...parts[kind].controls });
  const submit = el("button", { type: "submit", class: "main" }, "Start");
  const summary = el("summary", {});
  const name = () => fill(summary, `Options: ${how.text()}`);
  const turn = (chosen) => {
    kind = chosen;
    const isPossible = how.offer(kind === "write") || kind === "heal";
    fill(first, isPossible ? parts[kind].first : note("New code is written by a model, and Suture was started without one. Start it with a model to write code here."));
    fill(more, parts[kind].more);
    fill(status);
    submit.disabled = !isPossible;
    name();
  };
  const start = async (event) => {
    event.preventDefault();
    submit.disabled = true;
    showFault(null, status, controls());
    fill(status, note("Starting ...", "loading"));
    try {
      const request = { kind, ...(await parts[kind].read()), ...how.read() };
      location.hash = `#/runs/${(await post("/v1/runs", request)).run}`;
    } catch (error) {
      showFault(error, status, controls());
    } finally {
      submit.disabled = false;
    }
  };
  turn(kind);
  return fill(view, el("h1", {}, "New run"),
    el("p", { class: "hint" }, "Suture runs the tests in a sandbox, tries repairs or writes code, and shows a change only with what the tests say about it. Your files change only if you apply it."),
    el("form", { onsubmit: start, onchange: name, class: "panel" },
      segments("Kind of run", [["heal", "Repair a project"], ["write", "Write new code"]], kind, turn), first,
      el("details", {}, summary, how.node, more),
      el("div", { class: "row" }, submit), status));
}

const line = (attributes = {}) => el("input", { type: "text", spellcheck: "false", autocomplete: "off", ...attributes });

function writeFields(given = "") {
  const task = el("textarea", { rows: "6", value: given, required: true, maxlength: "200000", placeholder: "Write a function slug(title) that ... For example: slug('Hello World') == 'hello-world'" });
  const asserts = el("textarea", { rows: "4", spellcheck: "false" });
  const [language, project, name] = [choice(LANGUAGES, ""), choice(KINDS, ""), line()];
  const optional = (key, control) => (control.value.trim() ? { [key]: control.value.trim() } : {});
  return {
    first: [field("Task", task, "What the code should do. Examples with their results decide whether it is right."),
      el("div", { class: "row" }, field("What to make", project), field("Language", language))],
    more: [field("Tests", asserts, "Plain asserts, one per line."), field("Name to define", name)],
    controls: { task, asserts, entry_point: name, language, project },
    read: () => ({ task: task.value, asserts: asserts.value, ask: true, ...optional("entry_point", name), ...optional("language", language), ...optional("project", project) }),
  };
}

// What to repair is a project that the server has found, another folder, an archive, or a git repository.
function healFields(projects) {
  const archive = el("input", { type: "file", accept: ".zip,.tar,.gz,.tgz" });
  const [git, ref, only, protect, since] = [line({ inputmode: "url" }), line(), line(), line(), line()];
  const test = line({ placeholder: "python -m pytest -q" });
  const bugReport = el("textarea", { rows: "3" });
  const globs = (control) => control.value.split(",").map((one) => one.trim()).filter(Boolean);
  const optional = (name, control) => (control.value.trim() ? { [name]: control.value.trim() } : {});
  const upload = async () => {
    if (!archive.files.length) throw Object.assign(new Error("Choose an archive first."), { field: "archive" });
    try {
      return { archive: (await send("/v1/archives", archive.files[0])).archive };
    } catch (error) {
      throw Object.assign(error, { field: "archive" });
    }
  };
  const project = projectChooser(projects, {
    archive: { name: "Upload an archive ...", fields: field("Archive", archive, "A .zip, .tar or .tar.gz of the project's folder."), read: upload },
    ...(projects.git.length && { git: { name: "Clone a git repository ...", read: () => ({ ...optional("git", git), ...optional("ref", ref) }),
      fields: [field("Git URL", git, `It must start with ${projects.git.join(" or ")}.`), field("Branch or tag", ref, "Default: the default branch.")] } }),
  });
  return {
    first: [project.fields, field("What is wrong?", bugReport, "Optional. The failing tests say most; add what you know.")],
    controls: { ...project.controls, archive, git, ref, only, protect, since, test, bug_report: bugReport },
    more: [field("Test command", test, "Default: detected from the project's files."),
      field("Files that may change", only, "Globs, separated by commas. Default: everything except tests."),
      field("Files that must not change", protect, "Globs, separated by commas."),
      field("Broken since", since, "The oldest commit that may have broken it.")],
    read: async () => ({ ...(await project.read()), ...optional("test", test), ...optional("since", since), bug_report: bugReport.value, only: globs(only), protect: globs(protect) }),
  };
}

// The choice of a project among those that the server has found below its folders, or of any other folder there.
// Returns a control and a function that reads the request's fields. `others` are further sources: key -> its name, its fields and how they are read.
// `chosen` is the folder that is chosen at first.
export function projectChooser(projects, others = {}, chosen = "") {
  const names = projects.folders.length ? projects.folders : projects.roots;
  const path = el("input", { type: "text", spellcheck: "false", autocomplete: "off", list: "projects", placeholder: projects.roots[0] });
  const sources = {
    ...(projects.roots.length && { other: { name: "Another folder ...", read: () => ({ path: path.value.trim() }), fields: [
      el("datalist", { id: "projects" }, [...new Set([...projects.roots, ...projects.folders])].map((name) => el("option", { value: name }))),
      field("Project folder", path, `Its whole path, below ${projects.roots.join(" or ")}.`)] } }),
    ...others,
  };
  const options = [...names.map((name) => [name, shortName(name, projects.roots)]), ...Object.entries(sources).map(([key, source]) => [key, source.name])];
  const isOther = Boolean(chosen) && !names.includes(chosen) && "other" in sources;
  if (isOther) path.value = chosen;
  const picker = choice(options, isOther ? "other" : names.includes(chosen) ? chosen : options[0]?.[0] ?? "");
  const slot = el("div", {});
  const turn = () => fill(slot, sources[picker.value]?.fields ?? el("p", { class: "hint path" }, picker.value));
  picker.addEventListener("change", turn);
  turn();
  return {
    fields: [field("Project", picker), slot],
    controls: { path },
    read: () => (sources[picker.value]?.read ?? (() => ({ path: picker.value })))(),
  };
}

// A folder by its path below the root that it is in, or by its name if it is the root.
function shortName(path, roots) {
  const root = roots.find((one) => path.startsWith(`${one.replace(/\/$/, "")}/`));
  const short = root ? path.slice(root.replace(/\/$/, "").length + 1) : projectName(path);
  return roots.length > 1 ? `${short} (${path})` : short;
}
