// Writes a report whose lines are signed with the run's secret: "SIGNATURE NUMBER JSON".
"use strict";
const { createHmac, Hmac } = require("node:crypto");
const { appendFileSync, readFileSync } = require("node:fs");

/** Take a module out of what code that shares this process can look up. */
exports.hide = (own) => {
  delete require.cache[own.filename];
  for (const other of [own.parent, ...Object.values(require.cache), require.main]) {
    const at = other?.children?.indexOf(own) ?? -1;
    if (at >= 0) other.children.splice(at, 1);
  }
};
exports.hide(module);

let given = null;
try {
  // A process that node:test starts for a single file has this reporter in its options, too, but gets no key.
  if (!process.env.NODE_TEST_CONTEXT) given = JSON.parse(readFileSync(0, "utf8"));
} catch {
  // Another test runner of the same command has read the key, so this one cannot report.
}
const key = given && Buffer.from(given.key, "hex");
const path = given && given.report;
// Saved before any test is loaded, because code in this process may replace these functions.
const { update, digest } = Hmac.prototype;
const { apply } = Reflect;
const sign = key && ((text) => apply(digest, apply(update, createHmac("sha256", key), [text]), ["hex"]));
given = null;
const append = appendFileSync;
const { stringify } = JSON;
let number = 0;

/** Add an event to the report. The number in a line shows whether lines are missing, repeated or in another order. */
exports.write = (event) => {
  if (!sign) return;
  const text = `${number++} ${stringify(event)}`;
  append(path, `${sign(text)} ${text}\n`);
};

/** A value as text for people; empty if there is none. */
exports.shown = (value) => {
  if (value === undefined) return "";
  try {
    return typeof value === "string" ? stringify(value) : require("node:util").inspect(value, { depth: 4 });
  } catch {
    return "";
  }
};
