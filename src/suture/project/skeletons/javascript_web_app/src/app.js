"use strict";

const http = require("node:http");
const resources/*: Record<string, any> */ = require("./resources");
const { Store } = require("./store");

const MAX_BODY_CHARS = 1_000_000;

/** An answer other than 200, with a message for the client. */
class HttpError extends Error {
  status/*: number */;

  constructor(status/*: number */, message/*: string */) {
    super(message);
    this.status = status;
  }
}

/** Return the type and the default of a field: `String` and `{ type: String, default: "" }` are both allowed. */
function describeField(field/*: any */) {
  const { type, ...rest } = typeof field === "function" ? { type: field } : field;
  return { type, isRequired: rest.required ?? !("default" in rest), byDefault: rest.default ?? null };
}

/** Return the values of an entry from the JSON of a request, of which `previous` has the others. */
function readValues(resource/*: Record<string, any> */, given/*: any */, previous/*: Record<string, any> */ = {}) {
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    throw new HttpError(400, "the request must hold a JSON object");
  }
  const all/*: Record<string, any> */ = { ...previous, ...given };
  delete all.id;
  const unknown = Object.keys(all).find((name) => !Object.hasOwn(resource.fields, name));
  if (unknown !== undefined) throw new HttpError(400, `there is no field "${unknown}"`);
  const values/*: Record<string, any> */ = {};
  for (const [name, field] of Object.entries(resource.fields)) {
    const { type, isRequired, byDefault } = describeField(field);
    if (isRequired && all[name] === undefined) throw new HttpError(400, `the field "${name}" is missing`);
    values[name] = all[name] === undefined ? byDefault : all[name];
    // The default, such as null, may be of another type.
    const isChecked = Object.hasOwn(given, name) && type !== undefined && (isRequired || given[name] !== byDefault);
    if (isChecked && Object(given[name]).constructor !== type) {
      throw new HttpError(400, `"${name}" must be of the type ${type.name}`);
    }
  }
  try {
    resource.check?.(values);
  } catch (error/*: any */) {
    // Only a plain Error is a message for the client; others, such as a TypeError, are faults of the program.
    throw error.constructor === Error ? new HttpError(400, error.message) : error;
  }
  return values;
}

/** Return [status, content] for a request; the content is undefined if there is none. */
function answer(store/*: Store */, method/*: string */, url/*: string */, body/*: string */)/*: [number, unknown] */ {
  const { pathname, searchParams } = new URL(url, "http://localhost");
  const [name, id, ...rest] = pathname.split("/").filter(Boolean);
  if (name === undefined) return [200, { resources: Object.keys(resources).map((one) => `/${one}`) }];
  if (!Object.hasOwn(resources, name) || rest.length) throw new HttpError(404, `there is no ${pathname}`);
  const resource = resources[name];
  if (id === undefined) {
    if (method === "POST") return [201, store.save(name, readValues(resource, parse(body)))];
    if (method !== "GET") throw new HttpError(405, `${method} is not allowed here`);
    const wanted = [...searchParams].filter(([key]) => Object.hasOwn(resource.fields, key));
    return [200, store.list(name).filter((entry) => wanted.every(([key, value]) => `${entry[key]}` === value))];
  }
  const entry = /^\d{1,15}$/.test(id) ? store.find(name, Number(id)) : undefined;
  if (!entry) throw new HttpError(404, `there is no entry ${id}`);
  if (method === "GET") return [200, entry];
  if (method === "DELETE") {
    store.remove(name, entry.id);
    return [204, undefined];
  }
  if (method !== "PUT" && method !== "PATCH") throw new HttpError(405, `${method} is not allowed here`);
  const values = readValues(resource, parse(body), method === "PATCH" ? entry : {});
  return [200, store.save(name, values, entry.id)];
}

function parse(body/*: string */) {
  try {
    return JSON.parse(body);
  } catch {
    throw new HttpError(400, "the request must hold a JSON object");
  }
}

/** Return the server, with its data in the given JSON file. */
function createServer(database/*: string */) {
  const store = new Store(database);
  return http.createServer(async (request, response) => {
    let status/*: number */, content/*: unknown */;
    try {
      let body = "";
      for await (const chunk of request.setEncoding("utf8")) {
        body += chunk;
        if (body.length > MAX_BODY_CHARS) throw new HttpError(413, "the request is too large");
      }
      [status, content] = answer(store, request.method ?? "GET", request.url ?? "/", body);
    } catch (error/*: any */) {
      if (!(error instanceof HttpError)) console.error(error);
      status = error.status ?? 500;
      content = { error: error.status ? error.message : "the server has a fault" };
    }
    response.writeHead(status, { "Content-Type": "application/json" });
    response.end(content === undefined ? undefined : JSON.stringify(content));
  });
}

module.exports = { answer, createServer, describeField };
