// Stryker's own instrumenter, asked for the mutants of files. A job comes on stdin, an answer goes to stdout.
import fs from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(`${process.argv[2]}/`);
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const { createInstrumenter } = await load("@stryker-mutator/instrumenter");
const { createInjector } = await load("typed-inject");
const { commonTokens } = await load("@stryker-mutator/api/plugin");
const quiet = () => {};
const log = { isDebugEnabled: () => false, debug: quiet, info: quiet, warn: quiet, error: quiet };
const instrumenter = createInjector().provideValue(commonTokens.logger, log).injectFunction(createInstrumenter);
const options = { plugins: null, excludedMutations: [], ignorers: [], mutationRange: [] };
const mutantsOf = async (file, more) => (await instrumenter.instrument([file], { ...options, ...more })).mutants;

const found = [];
for (const file of JSON.parse(fs.readFileSync(0, "utf8"))) {
  const content = fs.readFileSync(file, "utf8");
  const starts = [0];
  for (let at = content.indexOf("\n"); at >= 0; at = content.indexOf("\n", at + 1)) starts.push(at + 1);
  const offset = ({ line, column }) => starts[line] + column;
  const whole = { name: file, content, mutate: true };
  // It cannot place mutants of a method's name that is a string.
  const mutants = await mutantsOf(whole, {}).catch(() => mutantsOf(whole, { excludedMutations: ["StringLiteral"] }));
  const seen = new Map();
  for (const { mutatorName: operator, location, replacement } of mutants) {
    const occurrence = seen.get(operator) ?? 0;
    seen.set(operator, occurrence + 1);
    const text = content.slice(0, offset(location.start)) + replacement + content.slice(offset(location.end));
    found.push({ file, operator, occurrence, line: location.start.line + 1, text });
  }
}
process.stdout.write(JSON.stringify(found));
