// Vite copies a configuration that is a module into `node_modules/.vite-temp` before it loads it; on EACCES, it uses
// the folder of the configuration. In the sandbox, `node_modules` is read-only, and node reports ENOENT or lets Vite
// fail later. So this raises the EACCES that Vite expects, except in the processes that run tests.
"use strict";
const fs = require("node:fs");
const { isMainThread } = require("node:worker_threads");

if (isMainThread && !process.env.VITEST) {
  const { mkdir } = fs.promises;
  fs.promises.mkdir = async function (path, ...more) {
    const place = /^(.*node_modules)[\\/]\.vite-temp[\\/]?$/.exec(String(path))?.[1];
    if (place) await fs.promises.access(place, fs.constants.W_OK).catch(() => deny(path));
    return mkdir.call(this, path, ...more);
  };
}

function deny(path) {
  throw Object.assign(new Error(`EACCES: read-only, mkdir '${path}'`), { code: "EACCES", syscall: "mkdir", path });
}
