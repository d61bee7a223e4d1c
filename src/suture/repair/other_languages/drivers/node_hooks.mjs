// Modules of the project are loaded anew for each candidate: what the entry has behind its `?`, all have.
export async function resolve(specifier, context, next) {
  if (specifier === "node:test") {
    const names = ["test", "it", "describe", "suite", "before", "after", "beforeEach", "afterEach", "mock"];
    const own = names.map((name) => `export const ${name} = globalThis.sutureTests.${name};`).join("");
    const text = `${own} export default globalThis.sutureTests;`;
    return { url: `data:text/javascript,${encodeURIComponent(text)}`, shortCircuit: true };
  }
  const found = await next(specifier, context);
  const mark = /\?suture=\d+/.exec(context.parentURL ?? "");
  const own = found.url.startsWith("file:") && !found.url.includes("/node_modules/") && !found.url.includes("?");
  return mark && own ? { ...found, url: `${found.url}${mark[0]}` } : found;
}
