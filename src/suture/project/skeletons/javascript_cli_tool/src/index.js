#!/usr/bin/env node
"use strict";

const { parseArgs } = require("node:util");
const commands/*: Record<string, any> */ = require("./commands");

const names = Object.keys(commands);

/** Return the help page. */
function usage() {
  const lines = Object.entries(commands).map(([name, { args = [], help = "" }]) => {
    const words = names.length === 1 ? args : [name, ...args];
    return `  ${["project_name", ...words].join(" ")}\n      ${help}`;
  });
  return ["Usage:", ...lines].join("\n");
}

/** Return the options and the arguments. A negative number is an argument, and so is each word after `--`. */
function parseWords(words/*: string[] */) {
  const end = words.includes("--") ? words.indexOf("--") : words.length;
  const isOption = (word/*: string */) => !/^(-?$|[^-]|-\.?\d)/.test(word);
  const { values } = parseArgs({ args: words.slice(0, end).filter(isOption), strict: false });
  const positionals = words.filter((word, at) => at > end || (at < end && !isOption(word)));
  return { values, positionals };
}

/** Run one command. Return the exit code; `write` and `writeError` receive the output. */
async function main(words/*: string[] */, write/*: (text: string) => void */ = console.log, writeError/*: (text: string) => void */ = console.error) {
  const { values, positionals } = parseWords(words);
  // A single command needs no name.
  const isNamed = names.length !== 1 || positionals[0] === names[0];
  const name = isNamed ? positionals.shift() : names[0];
  if (values.help || name === undefined) {
    write(usage());
    return 0;
  }
  if (!Object.hasOwn(commands, name)) {
    writeError(`error: there is no command ${name}\n${usage()}`);
    return 2;
  }
  const { args = [], run } = commands[name];
  if (positionals.length < args.length) {
    writeError(`error: ${args[positionals.length]} is missing\n${usage()}`);
    return 2;
  }
  try {
    const result = await run(...positionals, { ...values });
    for (const line of Array.isArray(result) ? result : result === undefined ? [] : [result]) {
      write(typeof line === "string" ? line : JSON.stringify(line));
    }
    return 0;
  } catch (error/*: any */) {
    // Only a plain Error is a message for the user; others, such as a TypeError, are faults of the program.
    if (error.constructor !== Error) throw error;
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
