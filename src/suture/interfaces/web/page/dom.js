// The one place where elements are made. Every text, whoever wrote it, becomes a text node and nothing else.

const SVG = "http://www.w3.org/2000/svg";
const MOST_CHARS = 200_000;
// Characters that a reader does not see, or that turn the order of what they do see.
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;

// A text as it may be shown: cut where it is endless, and with its invisible characters written out.
export function plain(value) {
  const text = String(value ?? "");
  const cut = text.length > MOST_CHARS ? `${text.slice(0, MOST_CHARS)}\n... (${text.length - MOST_CHARS} more characters)` : text;
  return cut.replace(/\r\n/g, "\n").replace(UNSEEN, (char) => `\\u{${char.codePointAt(0).toString(16)}}`);
}

function made(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked" || name === "disabled") node[name] = value;
    else if (name === "href" && !String(value).startsWith("#")) throw new Error("links lead into this page alone");
    else if (name === "style" || name === "srcdoc" || name === "src") throw new Error(`nobody sets ${name}`);
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

export const el = (name, attributes, ...children) => made(document.createElement(name), attributes, children);
export const svg = (name, attributes, ...children) => made(document.createElementNS(SVG, name), attributes, children);

export function fill(node, ...children) {
  node.replaceChildren();
  return add(node, ...children);
}

// A table that scrolls by itself where the page is narrow; `rows` hold nodes or texts, the first cell names the row.
export function table(caption, head, rows, attributes = {}) {
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    el("table", attributes,
      el("caption", {}, caption),
      head.some(Boolean) ? el("thead", {}, el("tr", {}, head.map((name) => (name ? el("th", { scope: "col" }, name) : el("td", {}))))) : null,
      el("tbody", {}, rows.map(([first, ...cells]) =>
        el("tr", {}, el("th", { scope: "row" }, first), cells.map((cell) => el("td", {}, cell)))))));
}

let number = 0;
// A labelled field: the control, with its name before it and, where there is one, a hint after it.
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

export const button = (label, onclick, attributes = {}) => el("button", { type: "button", onclick, ...attributes }, label);
export const note = (text, kind = "empty") => el("p", { class: kind, role: kind === "error" ? "alert" : null }, text);
export const code = (text, label) => el("pre", { tabindex: "0", role: "region", "aria-label": label }, el("code", {}, text));

// Something that has failed, in the server's own words.
export function fault(error) {
  return el("div", { class: "error", role: "alert" },
    el("strong", {}, error.message || "something failed"), error.remedy ? el("p", {}, error.remedy) : null);
}

// Fills `node` with what `ask` brings, and again whenever it is called. Answers may come in another order than they
// were asked for: only the newest question's is shown.
export function renewed(node, signal, ask) {
  let newest = 0;
  const load = async () => {
    const question = ++newest;
    let shown;
    if (!node.hasChildNodes()) fill(node, note("Loading ...", "loading"));
    try { shown = await ask(); } catch (error) { shown = [fault(error), button("Try again", load)]; }
    if (question === newest && !signal.aborted) fill(node, shown);
  };
  return load;
}

// Said aloud by screen readers, and shown nowhere.
export function say(text) {
  document.getElementById("said").textContent = plain(text);
}

export const count = (value) => (value ?? 0).toLocaleString("en");
export const seconds = (value) => `${(value ?? 0).toLocaleString("en", { maximumFractionDigits: 1 })} s`;
export const dollars = (value) => `$${(value ?? 0).toLocaleString("en", { maximumFractionDigits: 4 })}`;
export const when = (value) => (value ? new Date(value * 1000).toLocaleString() : "");
