// The only place that creates elements. All text becomes text nodes and can never become markup.

const SVG = "http://www.w3.org/2000/svg";
// The length of one text, so that a long one is drawn quickly. By judgement, not measured.
const MAX_CHARS = 200_000;
// Invisible characters, and characters that change the direction of text.
const INVISIBLE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;

// Returns text that is safe to show: cut if very long, with invisible characters escaped.
export function plain(value) {
  const text = String(value ?? "");
  const cut = text.length > MAX_CHARS ? `${text.slice(0, MAX_CHARS)}\n... (${text.length - MAX_CHARS} more characters)` : text;
  return cut.replace(/\r\n/g, "\n").replace(INVISIBLE, (char) => `\\u{${char.codePointAt(0).toString(16)}}`);
}

function build(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked" || name === "disabled") node[name] = value;
    else if (name === "href" && !String(value).startsWith("#")) throw new Error("links must stay inside this page");
    else if (name === "style" || name === "srcdoc" || name === "src") throw new Error(`the attribute ${name} must not be set`);
    else node.setAttribute(name, value === true ? "" : plain(value));
  }
  add(node, children);
  return node;
}

export function add(node, ...children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(plain(child)));
  }
  return node;
}

export const el = (name, attributes, ...children) => build(document.createElement(name), attributes, children);
export const svg = (name, attributes, ...children) => build(document.createElementNS(SVG, name), attributes, children);

export function fill(node, ...children) {
  node.replaceChildren();
  return add(node, ...children);
}

// A table that scrolls on narrow pages; `rows` contain nodes or texts, and the first cell is the row's header.
export function table(caption, head, rows, attributes = {}) {
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    el("table", { ...attributes, class: [attributes.class, head.some(Boolean) ? "" : "keys"].filter(Boolean).join(" ") || null },
      el("caption", {}, caption),
      head.some(Boolean) ? el("thead", {}, el("tr", {}, head.map((name) => (name ? el("th", { scope: "col" }, name) : el("td", {}))))) : null,
      el("tbody", {}, rows.map(([first, ...cells]) =>
        el("tr", {}, el("th", { scope: "row" }, first), cells.map((cell) => el("td", {}, cell)))))));
}

let number = 0;
// A control with its label and an optional hint.
export function field(label, control, hint = "") {
  control.id ||= `f${++number}`;
  const note = hint ? el("small", { id: `${control.id}-hint` }, hint) : null;
  if (note) control.setAttribute("aria-describedby", note.id);
  return el("div", { class: "field" }, el("label", { for: control.id }, label), control, note);
}

export function choice(options, value, attributes = {}) {
  const control = el("select", attributes, options.map(([key, name]) => el("option", { value: key }, name)));
  control.value = value;
  return control;
}

// A link to another site, in a tab of its own that does not learn where it was opened.
export function outside(label, address, attributes = {}) {
  const link = el("a", { target: "_blank", rel: "noopener noreferrer", ...attributes }, label);
  if (/^https?:/.test(address)) link.href = address;
  return link;
}

export const button = (label, onclick, attributes = {}) => el("button", { type: "button", onclick, ...attributes }, label);
export const note = (text, kind = "empty") => el("p", { class: kind, role: kind === "error" ? "alert" : null }, text);
export const code = (text, label) => el("pre", { tabindex: "0", role: "region", "aria-label": label }, el("code", {}, text));

// An error with the server's message, and what can be done about it here.
export function fault(error) {
  return el("div", { class: "error", role: "alert" },
    el("strong", {}, error.message || "An unknown error occurred."), error.advice ? el("p", {}, error.advice) : null);
}

// Shows why a form was refused: at the control that is wrong, if the error names one of `controls`, and else in `status`.
// Without an error, it removes what was shown before.
export function showFault(error, status, controls) {
  fill(status);
  for (const control of Object.values(controls).filter((one) => one.hasAttribute("aria-invalid"))) {
    control.removeAttribute("aria-invalid");
    control.parentNode.querySelector(".error")?.remove();
  }
  const wrong = controls[error?.field];
  if (!wrong?.isConnected) return error && add(status, fault(error));
  const label = wrong.parentNode.querySelector("label").textContent;
  // The server names a field as programs send it.
  const message = error.message.replace(/^body\.[\w.]+: /i, "").replaceAll(`\`${error.field}\``, `\u201c${label}\u201d`);
  wrong.setAttribute("aria-invalid", "true");
  wrong.after(fault({ message, advice: error.advice }));
  wrong.closest("details")?.setAttribute("open", "");
  return wrong.focus();
}

// Returns a function that fills `node` with the result of `load`. Responses can arrive out of order: only the newest
// request's is shown.
export function reloadable(node, signal, load) {
  let newest = 0;
  const reload = async () => {
    const request = ++newest;
    let shown;
    if (!node.hasChildNodes()) fill(node, note("Loading ...", "loading"));
    try { shown = await load(); } catch (error) { shown = [fault(error), button("Try again", reload)]; }
    if (request === newest && !signal.aborted) fill(node, shown);
  };
  return reload;
}

// Announces text to screen readers without showing it.
export function announce(text) {
  document.getElementById("announcement").textContent = plain(text);
}

export const count = (value) => (value ?? 0).toLocaleString("en");
export const seconds = (value) => `${(value ?? 0).toLocaleString("en", { maximumFractionDigits: 1 })} s`;
export const dollars = (value) => `$${(value ?? 0).toLocaleString("en", { maximumFractionDigits: 4 })}`;
// How long something took: the same on every page.
export const duration = (value) => ((value ?? 0) < 60 ? seconds(value) : `${elapsed(value)} min`);
export const elapsed = (value) => `${Math.floor(Math.max(0, value) / 60)}:${String(Math.floor(Math.max(0, value) % 60)).padStart(2, "0")}`;

const AGES = [["year", 31_536_000], ["month", 2_592_000], ["day", 86_400], ["hour", 3600], ["minute", 60]];
// How long ago something was, with the exact time as a tooltip.
export function age(time_s) {
  if (!time_s) return null;
  const passed = Date.now() / 1000 - time_s;
  const [unit, length] = AGES.find(([, size]) => passed >= size) ?? ["second", 1];
  const words = passed < 60 ? "just now" : new Intl.RelativeTimeFormat("en").format(-Math.floor(passed / length), unit);
  return el("time", { datetime: new Date(time_s * 1000).toISOString(), title: new Date(time_s * 1000).toLocaleString() }, words);
}

export const projectName = (path) => path.split("/").filter(Boolean).at(-1) ?? path;

// One of a few choices, as a row of radio buttons; `onchange` is called with the chosen key.
export function segments(legend, options, value, onchange) {
  const name = `s${++number}`;
  return el("fieldset", { class: "segments" }, el("legend", { class: "hidden" }, legend), options.map(([key, text]) =>
    el("label", {}, el("input", { type: "radio", name, value: key, checked: key === value, onchange: () => onchange(key) }), el("span", {}, text))));
}

export function download(name, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
