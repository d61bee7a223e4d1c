// Loader hooks that reimport the project's modules for each candidate. The test file is imported with a mark such
// as `?suture=3`, which all modules that it imports inherit. What `import()` loads from a file without a mark, such
// as one that was required, gets the mark of the current generation.
let counter = null;
let replacesNodeTest = false;

export function initialize(data) {
  ({ counter, replacesNodeTest } = data);
}

export async function resolve(specifier, context, next) {
  if (specifier === "node:test" && replacesNodeTest) {
    const names = ["test", "it", "describe", "suite", "before", "after", "beforeEach", "afterEach", "mock"];
    const exported = names.map((name) => `export const ${name} = globalThis.sutureTests.${name};`).join("");
    const text = `${exported} export default globalThis.sutureTests;`;
    return { url: `data:text/javascript,${encodeURIComponent(text)}`, shortCircuit: true };
  }
  const found = await next(specifier, context);
  const mark = /\?suture=\d+/.exec(context.parentURL ?? "")?.[0] ?? `?suture=${Atomics.load(counter, 0)}`;
  const isProject = found.url.startsWith("file:") && !found.url.includes("/node_modules/") && !found.url.includes("?");
  return isProject ? { ...found, url: `${found.url}${mark}` } : found;
}
