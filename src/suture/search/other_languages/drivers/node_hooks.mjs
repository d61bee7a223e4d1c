// Modules of the project are loaded anew for each candidate: what the entry has behind its `?`, all have, and what
// `import()` loads from where nothing has one, such as a file that was required.
let counter = null;
let shimmed = false;

export function initialize(told) {
  ({ counter, shimmed } = told);
}

export async function resolve(specifier, context, next) {
  if (specifier === "node:test" && shimmed) {
    const names = ["test", "it", "describe", "suite", "before", "after", "beforeEach", "afterEach", "mock"];
    const own = names.map((name) => `export const ${name} = globalThis.sutureTests.${name};`).join("");
    const text = `${own} export default globalThis.sutureTests;`;
    return { url: `data:text/javascript,${encodeURIComponent(text)}`, shortCircuit: true };
  }
  const found = await next(specifier, context);
  const mark = /\?suture=\d+/.exec(context.parentURL ?? "")?.[0] ?? `?suture=${Atomics.load(counter, 0)}`;
  const own = found.url.startsWith("file:") && !found.url.includes("/node_modules/") && !found.url.includes("?");
  return own ? { ...found, url: `${found.url}${mark}` } : found;
}
