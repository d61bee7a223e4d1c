"use strict";

const assert = require("node:assert");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const { test } = require("node:test");

const { answer, createServer, describeField } = require("../src/app");
const resources/*: Record<string, any> */ = require("../src/resources");
const { Store } = require("../src/store");

const PAIRS/*: [unknown, unknown][] */ = [
  [String, "sample"],
  [Number, 1],
  [Boolean, true],
];
const SAMPLES = new Map(PAIRS);
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "project_name-"));
let databases = 0;

function createStore() {
  databases += 1;
  return new Store(path.join(folder, `${databases}.json`));
}

/** Return the answer to a request. A fault of the program ends the test with its stack. */
function send(store/*: Store */, method/*: string */, url/*: string */, content/*: unknown */ = undefined)/*: { status: number, content: any } */ {
  try {
    const [status, given] = answer(store, method, url, JSON.stringify(content) ?? "");
    return { status, content: given };
  } catch (error/*: any */) {
    if (!error.status) throw error;
    return { status: error.status, content: { error: error.message } };
  }
}

/** Return valid values of a resource. */
function makeSample({ fields, example }/*: Record<string, any> */) {
  const values = Object.entries(fields).map(([name, field]) => [name, SAMPLES.get(describeField(field).type)]);
  return { ...Object.fromEntries(values), ...example };
}

/** Create an entry and return it. */
function create(store/*: Store */, name/*: string */) {
  const values = makeSample(resources[name]);
  const { status, content } = send(store, "POST", `/${name}`, values);
  const help = `If these values are not allowed, give \`${name}\` an \`example\` of values that are.`;
  const shown = `POST /${name} with ${JSON.stringify(values)} is answered with ${status}: ${JSON.stringify(content)}`;
  assert.strictEqual(status, 201, `${shown} ${help}`);
  return content;
}

test("each resource has fields of known types", () => {
  assert.ok(Object.keys(resources).length > 0, "src/resources.js exports no resource.");
  for (const [name, { fields }] of Object.entries(resources)) {
    assert.ok(fields && Object.keys(fields).length > 0, `The resource "${name}" has no fields.`);
    for (const [key, field] of Object.entries(fields)) {
      const isKnown = SAMPLES.has(describeField(field).type);
      assert.ok(isKnown, `The type of "${key}" in "${name}" is not String, Number or Boolean.`);
    }
  }
});

test("a created entry can be read, and outlives the server", () => {
  for (const name of Object.keys(resources)) {
    const store = createStore();
    const entry = create(store, name);
    assert.deepStrictEqual(entry, { id: 1, ...makeSample(resources[name]) });
    for (const one of [store, new Store(store.path)]) {
      assert.deepStrictEqual(send(one, "GET", `/${name}/1`).content, entry);
      assert.deepStrictEqual(send(one, "GET", `/${name}`).content, [entry]);
    }
  }
});

test("an entry can be changed and deleted", () => {
  for (const name of Object.keys(resources)) {
    const store = createStore();
    const entry = create(store, name);
    for (const method of ["PUT", "PATCH"]) {
      assert.deepStrictEqual(send(store, method, `/${name}/1`, makeSample(resources[name])).content, entry);
    }
    assert.strictEqual(send(store, "DELETE", `/${name}/1`).status, 204);
    assert.strictEqual(send(store, "GET", `/${name}/1`).status, 404);
    assert.deepStrictEqual(send(store, "GET", `/${name}`).content, []);
  }
});

test("an entry of only the required fields can be changed", () => {
  for (const [name, resource] of Object.entries(resources)) {
    const store = createStore();
    const isRequired = ([key]/*: [string, unknown] */) => describeField(resource.fields[key] ?? {}).isRequired;
    const values = Object.fromEntries(Object.entries(makeSample(resource)).filter(isRequired));
    const { status, content } = send(store, "POST", `/${name}`, values);
    // `check` may refuse an entry without the others.
    if (status === 201) assert.deepStrictEqual(send(store, "PATCH", `/${name}/1`, values).content, content);
  }
});

test("wrong requests are refused", () => {
  for (const [name, resource] of Object.entries(resources)) {
    const store = createStore();
    const sample = makeSample(resource);
    assert.strictEqual(send(store, "POST", `/${name}`).status, 400);
    for (const [key, field] of Object.entries(resource.fields)) {
      const { [key]: _, ...others } = sample;
      const { isRequired } = describeField(field);
      if (isRequired) assert.strictEqual(send(store, "POST", `/${name}`, others).status, 400);
      const wrong = { ...sample, [key]: { not: "a plain value" } };
      assert.strictEqual(send(store, "POST", `/${name}`, wrong).status, 400);
    }
    for (const method of ["GET", "DELETE"]) assert.strictEqual(send(store, method, `/${name}/999`).status, 404);
  }
});

test("the server answers", async () => {
  const server = createServer(path.join(folder, "server.json")).listen(0, "127.0.0.1");
  await new Promise((done) => void server.once("listening", done));
  const { port }/*: any */ = server.address();
  const response = await fetch(`http://127.0.0.1:${port}/`);
  assert.deepStrictEqual(await response.json(), { resources: Object.keys(resources).map((name) => `/${name}`) });
  server.closeAllConnections();
  await new Promise((done) => server.close(done));
});
