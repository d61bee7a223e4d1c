"use strict";

const fs = require("node:fs");

/** Return the file in which the data is saved. */
function findPath() {
  return process.env.PROJECT_NAME_FILE || "project_name.json";
}

/** Return the saved data. If nothing is saved yet, return the default, or an empty array. */
function load(byDefault/*: any */ = []) {
  const path = findPath();
  return fs.existsSync(path) ? JSON.parse(fs.readFileSync(path, "utf8")) : byDefault;
}

/** Replace the saved data. */
function save(data/*: unknown */) {
  const path = findPath();
  fs.writeFileSync(`${path}.part`, JSON.stringify(data, null, 2));
  fs.renameSync(`${path}.part`, path);
}

module.exports = { load, save };
