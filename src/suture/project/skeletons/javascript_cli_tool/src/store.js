"use strict";

const fs = require("node:fs");

const path = process.env.PROJECT_NAME_FILE || "project_name.json";

/** Return the saved data. If nothing is saved yet, return the default, or an empty array. */
function load(byDefault = []) {
  return fs.existsSync(path) ? JSON.parse(fs.readFileSync(path, "utf8")) : byDefault;
}

/** Replace the saved data. */
function save(data) {
  fs.writeFileSync(`${path}.part`, JSON.stringify(data, null, 2));
  fs.renameSync(`${path}.part`, path);
}

module.exports = { load, save };
