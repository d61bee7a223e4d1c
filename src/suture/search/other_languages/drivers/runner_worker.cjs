// Runs a project's tests again and again by the project's own runner, which stays loaded: each time with new
// code in one file.
"use strict";
const fs = require("node:fs");
const path = require("node:path");
const { anew, answer, kept } = require("./node_kept.cjs");

let spoiled = false;

exports.serve = async (common, root, ready) => {
  const next = common.esm ? anew(false) : () => {};
  const runner = await require(`./${common.engine}.cjs`).start(common, root);
  const putBack = kept(runner.quick);
  const restore = () => {
    spoiled = putBack() || spoiled;
  };

  // All tests of some files, as they are: how each ended, and the lines that it ran.
  async function look(job) {
    const began = performance.now();
    const files = runner.files ?? job.files;
    const tests = await runner.run(files, { coverage: true });
    // The first run also fills the runner's caches, as every process does once; a quick one is seen without.
    let ms = (performance.now() - began) / 2;
    if (runner.quick) {
      const again = performance.now();
      await runner.run(files, { whole: true });
      ms = performance.now() - again;
    }
    restore();
    return { event: "look", tests: [...tests, { id: "", ms }] };
  }

  // Whether a candidate passes: the tests that failed, by themselves; then those whose files ran what it changes,
  // then all others: what a file runs when it is loaded was not seen.
  async function attempt(job) {
    const own = path.join(root, job.path);
    fs.writeFileSync(own, job.text);
    try {
      runner.changed(own);
      const covering = common.covering[job.path] ?? common.files;
      const failing = common.files.filter((file) => common.guiding.some((id) => ownerOf(id) === file));
      const near = [...new Set([...failing, ...covering])];
      const rounds = [[near, null], [common.files.filter((file) => !near.includes(file)), null]];
      if (common.alone && !runner.whole) rounds.unshift([failing, common.guiding]);
      // Most candidates mend nothing: the file with the fewest failing tests tells as much, and sooner.
      if (common.alone && failing.length > 1) {
        const of = (file) => common.guiding.filter((id) => ownerOf(id) === file);
        const fewest = failing.reduce((best, file) => (of(file).length < of(best).length ? file : best));
        rounds.unshift([[fewest], of(fewest)]);
      }
      for (const [files, chosen] of rounds.filter(([files]) => files.length > 0)) {
        next();
        const tests = await runner.run(files, { chosen: chosen?.map(nameOf) });
        const passed = new Set(tests.filter(({ status }) => status === "passed").map(({ id }) => id));
        const wrong = tests.find(({ id, status }) => status === "failed" && !common.ignored.includes(id));
        if (wrong) return { ok: false, failed: wrong.id, passed: common.guiding.filter((id) => passed.has(id)) };
        const wanted = (chosen ?? common.wanted).filter((id) => files.includes(ownerOf(id)));
        const missing = wanted.find((id) => id.includes("::") && !passed.has(id));
        const none = passed.size === 0 && files.some((file) => near.includes(file));
        if (missing || none) return { ok: false, failed: missing ?? "", passed: [] };
      }
      return { ok: true };
    } finally {
      fs.writeFileSync(own, common.texts[job.path]);
      runner.changed(own);
      restore();
    }
  }

  ready();
  answer(async (job) => (job.files ? look(job) : { event: "trial", ...(await attempt(job)) }));
};

function ownerOf(id) {
  return id.split("::")[0];
}

function nameOf(id) {
  return id.slice(id.indexOf("::") + 2).replace(/ #\d+$/, "");
}

// What both match against a test's names with blanks between them; what parts names in an id may stand in one,
// and so may a number at the end. Some versions of Vitest begin with a blank.
exports.pattern = (chosen) => {
  const names = chosen.map((name) => name.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&").split(" > ").join("(?: >)? "));
  return `^ ?(?:${names.join("|")})(?: #\\d+)?$`;
};

// Tests of one name in one file are numbered, as in the report.
exports.numbered = (tests) => {
  const seen = new Map();
  return tests.map((test) => {
    const count = (seen.get(test.id) ?? 0) + 1;
    seen.set(test.id, count);
    return count > 1 ? { ...test, id: `${test.id} #${count}` } : test;
  });
};

// The project's modules are read anew, and its packages where something was put back that one of them may have
// changed when it was loaded. What is ours stays, and so do a runner's folder and what is no JavaScript.
exports.forget = (root, runner = "") => {
  for (const name of Object.keys(require.cache)) {
    const isPackage = name.includes("/node_modules/");
    const stays = name.startsWith(`${__dirname}/`) || (runner && name.startsWith(`${runner}/`)) || name.endsWith(".node");
    if (!stays && (isPackage ? spoiled : name.startsWith(`${root}/`))) delete require.cache[name];
  }
  spoiled = false;
};

// What `import` has loaded stays as it is: the next candidate would never run.
exports.refuseModules = (root, files) => {
  const manifest = path.join(root, "package.json");
  const type = fs.existsSync(manifest) ? JSON.parse(fs.readFileSync(manifest, "utf8")).type : "";
  if (type === "module" || files.some((name) => /\.m[jt]s$/.test(name))) {
    throw new Error("modules that import loads cannot be loaded anew");
  }
};
