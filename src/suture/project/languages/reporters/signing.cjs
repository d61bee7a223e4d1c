// Writes reports whose lines are signed: "SIGNATURE NUMBER JSON". Code under test may share this process, and may even
// find the module. Keys are therefore only in closures, and nothing is used that code can replace.
"use strict";
const { createHmac, Hmac } = require("node:crypto");
const { openSync, readFileSync, writeSync } = require("node:fs");
const { inspect } = require("node:util");

const { update, digest } = Hmac.prototype;
const { apply, ownKeys } = Reflect;
const { freeze, getOwnPropertySymbols, getPrototypeOf } = Object;
const { isArray } = Array;
const { stringify } = JSON;
const toBytes = Buffer.from;
// A replaced method of the native object would be given each key.
for (const symbol of getOwnPropertySymbols(createHmac("sha256", "")).slice(0, 1)) {
  freeze(getPrototypeOf(createHmac("sha256", "")[symbol]));
}

function hmac(key, text, encoding) {
  return apply(digest, apply(update, createHmac("sha256", key), [text]), encoding ? [encoding] : []);
}

/** A value in JSON. `JSON.stringify` alone calls each `toJSON` that an object inherits. */
function encode(value) {
  if (typeof value !== "object" || value === null) return stringify(value) ?? "null";
  let text = "";
  const keys = isArray(value) ? undefined : ownKeys(value);
  const { length } = keys ?? value;
  for (let at = 0; at < length; at += 1) {
    if (at) text += ",";
    text += keys ? `${stringify(keys[at])}:${encode(value[keys[at]])}` : encode(value[at]);
  }
  return keys ? `{${text}}` : `[${text}]`;
}

/** Take a module out of what code that shares this process can look up. */
exports.hide = (own) => {
  delete require.cache[own.filename];
  for (const other of [own.parent, ...Object.values(require.cache), require.main]) {
    const at = other?.children?.indexOf(own) ?? -1;
    if (at >= 0) other.children.splice(at, 1);
  }
};
exports.hide(module);

/**
 * Return a writer of signed lines. Each line has its own key, so that nobody who finds the key can change the lines
 * before. The number in a line shows whether lines are missing, repeated or in another order.
 *
 * `key` signs the first line, and is not kept. `name` is that of the process, empty for the main process.
 */
exports.createWriter = (path, key, name) => {
  const file = openSync(path, "a");
  const prefix = name ? `${name} ` : "";
  let number = 0;
  return {
    write(event) {
      const text = `${number} ${encode(event)}`;
      writeSync(file, `${prefix}${hmac(key, text, "hex")} ${text}\n`);
      key = hmac(key, "next");
      number += 1;
    },
    /** Return the name and the first key of another process, which may write into the same report. */
    delegate(label) {
      return { name: `${name ? `${name}.` : ""}${label}.${number}`, key: hmac(key, label) };
    },
  };
};

/** Return the name and the first key of a process that one without lines of its own has started. */
exports.delegate = ({ name, key }, label) => {
  // A label has at most 20 digits.
  const digits = `${BigInt(`0x${hmac(key, label, "hex").slice(0, 15)}`)}`;
  return { name: `${name}.${digits}.0`, key: hmac(key, digits) };
};

/** Return the writer of the run's main process, and the path of the report. The first call in a run gets the key. */
exports.openReport = () => {
  let given;
  try {
    // A process that node:test starts for a single file has this reporter in its options, too, but gets no key.
    if (!process.env.NODE_TEST_CONTEXT) given = JSON.parse(readFileSync(0, "utf8"));
  } catch {
    // Another test runner of the same command has read the key, so this one cannot report.
  }
  if (!given) return { write() {}, delegate: () => undefined };
  return { ...exports.createWriter(given.report, toBytes(given.key, "hex"), ""), path: given.report };
};

/** A value as text for people; empty if there is none. */
exports.shown = (value) => {
  if (value === undefined) return "";
  try {
    return typeof value === "string" ? stringify(value) : inspect(value, { depth: 4 });
  } catch {
    return "";
  }
};
