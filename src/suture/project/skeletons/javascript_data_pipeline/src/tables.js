"use strict";

const fs = require("node:fs");

// A number as programs write it. Others, such as `01234` or `+49170`, are codes that stay text.
const NUMBER = /^-?(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?$/i;

/** Return the rows of a table. An empty cell is `null`, and a number is a number. */
function readRows(path/*: string */)/*: Record<string, any>[] */ {
  const text = fs.readFileSync(path, "utf8").replace(/^\uFEFF/, "");
  if (!/\.jsonl?$/.test(path)) return readCsv(text);
  const lines = text.split("\n").filter((line) => line.trim());
  const rows = path.endsWith(".json") ? JSON.parse(text) : lines.map((line) => JSON.parse(line));
  const isRow = (row/*: unknown */) => typeof row === "object" && row !== null && !Array.isArray(row);
  if (!Array.isArray(rows) || !rows.every(isRow)) throw new Error(`${path} does not hold a list of objects`);
  return rows;
}

function readCsv(text/*: string */) {
  const header = text.split("\n", 1)[0];
  const delimiter = [",", ";", "\t", "|"].reduce((best, one) =>
    header.split(one).length > header.split(best).length ? one : best,
  );
  const [names, ...rows] = splitCells(text, delimiter).filter((cells) => cells.length > 1 || cells[0] !== "");
  return rows.map((cells) => Object.fromEntries(names.map((name, at) => [name, convert(cells[at] ?? "")])));
}

/** Return the cells of each line. A quoted cell may contain delimiters, line ends and doubled quotes. */
function splitCells(text/*: string */, delimiter/*: string */) {
  const rows = [[""]];
  let isQuoted = false;
  for (let at = 0; at < text.length; at += 1) {
    const row = rows[rows.length - 1];
    const char = text[at];
    if (char === '"') {
      if (isQuoted && text[at + 1] === '"') row[row.length - 1] += text[(at += 1)];
      else isQuoted = !isQuoted;
    } else if (!isQuoted && char === delimiter) row.push("");
    else if (!isQuoted && char === "\n") rows.push([""]);
    else if (isQuoted || char !== "\r") row[row.length - 1] += char;
  }
  return rows;
}

function convert(cell/*: string */) {
  const text = cell.trim();
  if (NUMBER.test(text) && Number.isFinite(Number(text))) return Number(text);
  return text === "" ? null : text;
}

/** Write a result as CSV if the path ends in `.csv`, else as JSON. */
function writeResult(result/*: any */, path/*: string */) {
  const text = path.endsWith(".csv") ? writeCsv(result) : `${JSON.stringify(result, null, 2)}\n`;
  fs.writeFileSync(path, text);
}

function writeCsv(result/*: any */) {
  const rows/*: Record<string, any>[] */ = (Array.isArray(result) ? result : [result]).map((row/*: Record<string, any> */) => flatten(row));
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const quote = (cell/*: unknown */) => (/[",\r\n]/.test(`${cell}`) ? `"${`${cell}`.replaceAll('"', '""')}"` : `${cell ?? ""}`);
  const lines = [names, ...rows.map((row) => names.map((name) => row[name]))];
  return lines.map((cells) => `${cells.map(quote).join(",")}\n`).join("");
}

/** Return nested objects as one row with names such as `amount.mean`. */
function flatten(values/*: Record<string, any> */, prefix = "")/*: Record<string, any> */ {
  return Object.entries(values).reduce((row, [name, value]) => {
    const isNested = typeof value === "object" && value !== null && !Array.isArray(value);
    return { ...row, ...(isNested ? flatten(value, `${prefix}${name}.`) : { [`${prefix}${name}`]: value }) };
  }, {});
}

module.exports = { readRows, writeResult };
