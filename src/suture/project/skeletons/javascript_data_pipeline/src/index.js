#!/usr/bin/env node
"use strict";

const { parseArgs } = require("node:util");
const pipeline/*: Record<string, any> */ = require("./pipeline");
const { readRows, writeResult } = require("./tables");

const USAGE = `Usage: project_name INPUT OUTPUT
  INPUT   a table: .csv, .json or .jsonl
  OUTPUT  the file for the result: .csv, or else JSON`;

/** Read a table, process its rows, and write the result. Return the exit code. */
async function main(words/*: string[] */, write/*: (text: string) => void */ = console.log, writeError/*: (text: string) => void */ = console.error) {
  const { values, positionals } = parseArgs({ args: words, strict: false, allowPositionals: true });
  if (values.help || positionals.length !== 2) {
    (values.help ? write : writeError)(USAGE);
    return values.help ? 0 : 2;
  }
  const [input, output] = positionals;
  try {
    const rows = readRows(input);
    if (!rows.length) throw new Error(`${input} has no rows`);
    writeResult(await pipeline.processRows(rows), output);
    return 0;
  } catch (error/*: any */) {
    // Only these are messages for the user; others, such as a TypeError, are faults of the program.
    if (error.constructor !== Error && !(error instanceof SyntaxError)) throw error;
    writeError(`error: ${error.message}`);
    return 1;
  }
}

module.exports = { main };

if (require.main === module) {
  main(process.argv.slice(2)).then((code) => {
    process.exitCode = code;
  });
}
