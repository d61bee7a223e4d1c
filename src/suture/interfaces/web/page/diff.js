// A unified diff shown side by side, or stacked if the page is narrow. A new file is shown as plain code.

import { el, fill, note } from "./dom.js";

// Rows of a file that are shown, so that a long diff is drawn quickly. By judgement, not measured.
const MAX_ROWS = 3000;
// The indentation that the rest of a long line keeps, in characters: on a phone, few more would be left.
const MAX_INDENT = 12;
const NO_END = "\u0000"; // marks a last line without a line end; no diff contains this character
const NARROW = "(max-width: 1099px)";

// Returns the lines that a unified diff removes and adds, as text.
export function changedLines(diff) {
  return diff.split("\n").filter((line) => /^[-+](?![-+])/.test(line)).join("\n");
}

// Returns the files of a unified diff, each with rows of [old number, old text, new number, new text].
export function filesOf(diff) {
  const files = [];
  let file = null;
  let [left, right] = [0, 0];
  let [gone, come] = [[], []];
  let sides = []; // the cells of the previous line
  const flush = () => {
    for (let n = 0; n < Math.max(gone.length, come.length); n += 1) {
      file.rows.push([gone[n]?.[0] ?? null, gone[n]?.[1] ?? null, come[n]?.[0] ?? null, come[n]?.[1] ?? null]);
    }
    [gone, come] = [[], []];
  };
  for (const line of diff.split("\n")) {
    if (line.startsWith("diff --git ")) {
      if (file) flush();
      // The diff of an empty file has no other line with its path, which both names share.
      const path = /^"?a\/(.*?)"? "?b\/\1"?$/.exec(line.slice(11));
      file = { name: path ? path[1] : line.slice(11), rows: [], inside: false };
      files.push(file);
    } else if (!file) continue;
    else if (line.startsWith("@@ ")) {
      flush();
      const at = /^@@ -(\d+)(?:,\d+)? \+(\d+)/.exec(line);
      [left, right] = at ? [Number(at[1]), Number(at[2])] : [1, 1];
      file.inside = true;
      file.rows.push([line]);
    } else if (!file.inside) {
      if (line.startsWith("+++ ") && !line.startsWith("+++ /dev/null")) file.name = line.slice(4).replace(/^"?b\//, "").replace(/[\t"]+$/, "");
      else if (line.startsWith("--- ") && !line.startsWith("--- /dev/null")) file.name = line.slice(4).replace(/^"?a\//, "").replace(/[\t"]+$/, "");
    } else if (line.startsWith("-")) {
      gone.push([left++, line.slice(1)]);
      sides = [[gone.at(-1), 1]];
    } else if (line.startsWith("+")) {
      come.push([right++, line.slice(1)]);
      sides = [[come.at(-1), 1]];
    } else if (line.startsWith(" ")) {
      flush();
      file.rows.push([left++, line.slice(1), right++, line.slice(1)]);
      sides = [[file.rows.at(-1), 1], [file.rows.at(-1), 3]];
    } else if (line.startsWith("\\")) {
      for (const [row, at] of sides) row[at] += NO_END;
      sides = [];
    }
  }
  if (file) flush();
  return files;
}

// A file that is new as a whole, whose text is what the diff adds.
export const isNew = (file) => file.rows.every((row) => row.length === 1 || row[0] === null);
export const textOf = (file) => file.rows.filter((row) => row.length > 1).map((row) => (row[3].endsWith(NO_END) ? row[3].slice(0, -1) : `${row[3]}\n`)).join("");

// `first` are the files that come first, such as those that a model has written. The others, such as those of a skeleton, are folded.
export function diffView(diff, before, after, signal, first = []) {
  const view = el("div", { class: "diffs" });
  const files = filesOf(diff);
  const isFirst = ({ name }) => first.includes(name) || !files.some((file) => first.includes(file.name));
  const others = files.filter((file) => !isFirst(file));
  const narrow = window.matchMedia(NARROW);
  const views = (shown) => shown.map((file) => fileView(file, before, after, narrow.matches));
  const draw = () => fill(view, views(files.filter(isFirst)), others.length ? el("details", {}, el("summary", {}, `${others.length} more files, which Suture added for the project`), views(others)) : null);
  narrow.addEventListener("change", draw, { signal });
  draw();
  return files.length ? view : note("There are no differences.");
}

function fileView(file, before, after, narrow) {
  const rows = file.rows.slice(0, MAX_ROWS);
  const [plain, lines] = [isNew(file), file.rows.filter((row) => row.length > 1)];
  const came = lines.filter((row) => row[3] !== null && row[1] !== row[3]).length;
  const gone = lines.filter((row) => row[1] !== null && row[1] !== row[3]).length;
  const head = plain ? ["line", "code"] : narrow ? ["old", "new", "code"] : ["", before, "", after];
  const label = `${file.name}: ${before} compared with ${after}`;
  const draw = plain ? newLine : narrow ? stacked : sides;
  return el("section", { class: "file" },
    el("h3", {}, el("span", {}, file.name), el("span", { class: "changes" }, plain ? `new file, ${came} lines` : [el("span", { class: "good" }, `+${came}`), " ", el("span", { class: "bad" }, `-${gone}`)])),
    el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label },
      el("table", { class: plain ? "diff plain" : narrow ? "diff narrow" : "diff" },
        el("caption", { class: "hidden" }, label),
        el("colgroup", {}, (plain ? "nw" : narrow ? "nnw" : "nwnw").split("").map((kind) => el("col", { class: kind === "n" ? "no" : "wide" }))),
        el("thead", { class: plain || narrow ? "hidden" : null }, el("tr", {}, head.map((name) => (name ? el("th", { scope: "col" }, name) : el("td", {}))))),
        el("tbody", {}, rows.flatMap((row) => (row.length === 1 ? (plain ? [] : [hunk(row[0], head.length)]) : draw(row))))),
      file.rows.length > MAX_ROWS ? note(`${file.rows.length - MAX_ROWS} more lines are not shown.`) : null));
}

const hunk = (text, width) => el("tr", { class: "hunk" }, el("td", { colspan: width }, text));
const number = (value) => el("td", { class: "no" }, value ?? "");
const newLine = ([, , right, fresh]) => [el("tr", {}, number(right), side(fresh, false))];

// The part of a changed line that differs from its counterpart, as [start, end].
function differing(text, other) {
  let [start, end] = [0, text.length];
  while (start < end && text[start] === other[start]) start += 1;
  while (end > start && other.length - (text.length - end) > start && text[end - 1] === other[other.length - 1 - (text.length - end)]) end -= 1;
  return [start, end];
}

// A sign in addition to the colour, because not everybody can see colours.
function side(text, changed, sign, other = null) {
  if (text === null) return el("td", { class: "void" });
  const mark = changed ? el("span", { class: "sign" }, sign) : el("span", { class: "sign" }, " ");
  const ends = text.endsWith(NO_END) ? el("span", { class: "end" }, " no newline at end of file") : null;
  const line = ends ? text.slice(0, -1) : text;
  const [start, end] = changed && other !== null ? differing(line, other) : [0, 0];
  const parts = end > start && end - start < line.length ? [line.slice(0, start), el("mark", {}, line.slice(start, end)), line.slice(end)] : line;
  const cell = el("td", { class: changed ? (sign === "-" ? "gone" : "come") : "" }, mark, parts, ends);
  // A long line continues below its own indentation.
  const indent = Math.min(MAX_INDENT, /^\s*/.exec(line)[0].replaceAll("\t", "        ").length);
  cell.style.setProperty("--indent", `${indent + 1}ch`);
  return cell;
}

function sides([left, old, right, fresh]) {
  const changed = old !== fresh || left === null || right === null;
  return [el("tr", {}, number(left), side(old, changed, "-", fresh), number(right), side(fresh, changed, "+", old))];
}

function stacked([left, old, right, fresh]) {
  if (old === fresh && left !== null && right !== null) return [el("tr", {}, number(left), number(right), side(old, false))];
  return [
    left === null ? null : el("tr", {}, number(left), number(null), side(old, true, "-", fresh)),
    right === null ? null : el("tr", {}, number(null), number(right), side(fresh, true, "+", old)),
  ];
}
