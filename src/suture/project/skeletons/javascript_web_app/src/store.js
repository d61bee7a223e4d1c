"use strict";

const fs = require("node:fs");

/** The entries of all resources, in one JSON file. */
class Store {
  path/*: string */;
  tables/*: Record<string, any> */;

  constructor(path/*: string */) {
    this.path = path;
    this.tables = fs.existsSync(path) ? JSON.parse(fs.readFileSync(path, "utf8")) : {};
  }

  /** Return all entries of a resource, the oldest first. */
  list(name/*: string */)/*: Record<string, any>[] */ {
    return this.table(name).entries;
  }

  /** Return the entry with this id; undefined if there is none. */
  find(name/*: string */, id/*: number */) {
    return this.list(name).find((entry) => entry.id === id);
  }

  /** Add an entry, or replace the one with this id; return it. */
  save(name/*: string */, values/*: Record<string, any> */, id/*: number | undefined */ = undefined) {
    const table = this.table(name);
    const entry = { id: id ?? (table.lastId += 1), ...values };
    const at = table.entries.findIndex((one/*: Record<string, any> */) => one.id === entry.id);
    table.entries.splice(at < 0 ? table.entries.length : at, 1, entry);
    this.write();
    return entry;
  }

  /** Delete an entry. */
  remove(name/*: string */, id/*: number */) {
    const table = this.table(name);
    table.entries = table.entries.filter((entry/*: Record<string, any> */) => entry.id !== id);
    this.write();
  }

  table(name/*: string */) {
    this.tables[name] ??= { lastId: 0, entries: [] };
    return this.tables[name];
  }

  write() {
    fs.writeFileSync(`${this.path}.part`, JSON.stringify(this.tables, null, 2));
    fs.renameSync(`${this.path}.part`, this.path);
  }
}

module.exports = { Store };
