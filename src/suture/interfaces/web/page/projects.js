// The choice of a project among those that the server has found below its folders, or of any other folder there.

import { choice, el, field, fill, projectName } from "./dom.js";

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
    read: () => (sources[picker.value]?.read ?? (() => ({ path: picker.value })))(),
  };
}

// A folder by its path below the root that it is in, or by its name if it is the root.
function shortName(path, roots) {
  const root = roots.find((one) => path.startsWith(`${one.replace(/\/$/, "")}/`));
  const short = root ? path.slice(root.replace(/\/$/, "").length + 1) : projectName(path);
  return roots.length > 1 ? `${short} (${path})` : short;
}
