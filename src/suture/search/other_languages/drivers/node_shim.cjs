// node:test as far as tests ask for it, made to run many times over in one process.
"use strict";
const assert = require("node:assert");
const real = require("node:test");

const PLAN_MS = 1000;

// What `require("node:test")` answers: functions that register with the harness of the moment.
exports.shim = (state) => {
  const test = (...given) => state.harness.add("test", given);
  const suite = (...given) => state.harness.add("suite", given);
  for (const one of [test, suite]) {
    const kind = one === test ? "test" : "suite";
    one.skip = (...given) => state.harness.add(kind, given, { skip: true });
    one.todo = (...given) => state.harness.add(kind, given, { todo: true });
    one.only = one;
  }
  const hooks = {};
  for (const name of ["before", "after", "beforeEach", "afterEach"]) {
    hooks[name] = (run) => state.harness.hook(name, run);
  }
  const all = { ...hooks, test, it: test, describe: suite, suite, mock: real.mock, run: real.run };
  return Object.assign(test, all, { default: test });
};

// One run of one file. `onEnd` is told of each test, and of a suite that fails by itself; where it answers
// true, no further test is begun. `onBegin` is told before the first test.
exports.harness = (chosen, onEnd, onBegin = () => {}) => {
  let stopped = false;
  let running = null;
  let begun = false;
  const top = { names: [], before: [], after: [], beforeEach: [], afterEach: [], chain: Promise.resolve(), up: null };
  let place = top;

  function add(kind, given, more = {}) {
    const [name, options, run] = read(given);
    const own = { ...options, ...more };
    return queue(place, () => (kind === "suite" ? group(place, name, own, run) : one(place, name, own, run)));
  }

  // A suite registers what it holds at once, as node does; what it holds runs in its turn.
  function queue(owner, make) {
    const begun = make();
    const ended = owner.chain.then(begun);
    owner.chain = ended;
    return ended;
  }

  function child(owner, name) {
    return { ...empty(), names: [...owner.names, name], up: owner };
  }

  function group(owner, name, options, run) {
    const own = child(owner, name);
    own.skipped = Boolean(options.skip || options.todo || owner.skipped);
    const outer = place;
    place = own;
    let fault = null;
    let waits = null;
    try {
      waits = run?.(context(own));
    } catch (error) {
      fault = error;
    } finally {
      place = outer;
    }
    return async () => {
      try {
        await waits;
        if (fault) throw fault;
        await settled(own);
        if (!own.skipped) for (const hook of own.begun ? own.after : []) await called(hook, context(own));
      } catch (error) {
        stopped = onEnd({ names: own.names, status: "failed", error }) || stopped;
      }
    };
  }

  function one(owner, name, options, run) {
    return async () => {
      const own = child(owner, name);
      const id = own.names.join(" > ");
      if (stopped) return;
      if (options.skip || options.todo || owner.skipped) {
        onEnd({ names: own.names, status: "skipped" });
        return;
      }
      if (chosen && ![...chosen].some((wanted) => within(wanted, id))) return;
      const above = chain(owner);
      let fault = null;
      running = own;
      if (!begun) onBegin();
      begun = true;
      const t = context(own);
      try {
        for (const upper of above) await begin(upper);
        for (const upper of above) for (const hook of upper.beforeEach) await called(hook, t);
        if (run) await called(run, t, own);
        await settled(own);
        await planned(own);
      } catch (error) {
        fault = { error };
      }
      try {
        for (const upper of above.reverse()) for (const hook of upper.afterEach) await called(hook, t);
        for (const hook of own.after) await called(hook, t);
      } catch (error) {
        fault ??= { error };
      }
      real.mock.restoreAll();
      fault ??= own.fault ?? (own.inner ? { error: new Error("1 subtest failed") } : null);
      if (fault && owner.up) owner.inner = true;
      // What is asked for and not there says nothing of the code: no trial is made of such a test.
      const status = own.skip ? "skipped" : own.lacks ? "unknown" : fault ? "failed" : "passed";
      running = null;
      stopped = onEnd({ names: own.names, status, error: fault?.error }) || stopped;
    };
  }

  function context(own) {
    const hooks = {};
    for (const name of ["before", "after", "beforeEach", "afterEach"]) hooks[name] = (run) => own[name].push(run);
    const all = {
      ...hooks,
      name: own.names.at(-1),
      fullName: own.names.join(" > "),
      assert: counting(own),
      plan(count, { wait = 0 } = {}) {
        own.plan = { count, wait };
      },
      runOnly() {},
      mock: real.mock,
      signal: new AbortController().signal,
      diagnostic() {},
      skip() {
        own.skip = true;
      },
      todo() {
        own.skip = true;
      },
      test(...given) {
        const [name, options, run] = read(given);
        own.asserted = (own.asserted ?? 0) + 1;
        return queue(own, () => one(own, name, options, run));
      },
    };
    return new Proxy(all, {
      get(from, name) {
        if (typeof name === "string" && !(name in from) && name !== "then") own.lacks = true;
        return from[name];
      },
    });
  }

  // Of `t.assert`, which counts towards a plan.
  function counting(own) {
    const counted = {};
    for (const name of Object.keys(assert)) {
      if (typeof assert[name] !== "function" || /^[A-Z]/.test(name)) continue;
      counted[name] = (...given) => {
        own.asserted = (own.asserted ?? 0) + 1;
        return assert[name](...given);
      };
    }
    return counted;
  }

  async function planned(own) {
    if (!own.plan) return;
    const { count, wait } = own.plan;
    const until = Date.now() + (wait === true ? PLAN_MS : wait);
    while ((own.asserted ?? 0) < count && Date.now() < until) await new Promise((resolve) => setTimeout(resolve, 5));
    if ((own.asserted ?? 0) !== count) throw new Error(`plan expected ${count} and got ${own.asserted ?? 0}`);
  }

  async function begin(owner) {
    if (owner.begun) return;
    owner.begun = true;
    for (const hook of owner.before) await called(hook, context(owner));
  }

  async function settled(owner) {
    for (let last = null; last !== owner.chain; ) {
      last = owner.chain;
      await last;
    }
  }

  return {
    add,
    hook: (name, run) => void place[name].push(run),
    broke(error) {
      if (running) running.fault ??= { error };
    },
    async done() {
      await settled(top);
      for (const hook of top.after) await called(hook, context(top));
    },
  };
};

function empty() {
  return { before: [], after: [], beforeEach: [], afterEach: [], chain: Promise.resolve() };
}

function chain(owner) {
  const above = [];
  for (let at = owner; at; at = at.up) above.unshift(at);
  return above;
}

function within(wanted, id) {
  const inner = wanted.slice(wanted.indexOf("::") + 2);
  return !wanted.includes("::") || inner === id || inner.startsWith(`${id} > `) || id.startsWith(`${inner} > `) || inner.startsWith(`${id} #`);
}

function read(given) {
  const run = given.find((one) => typeof one === "function");
  const options = given.find((one) => one !== null && typeof one === "object") ?? {};
  const name = typeof given[0] === "string" ? given[0] : (run?.name || "<anonymous>");
  return [name, options, run];
}

// A function that takes a second argument is told of its end by calling it.
function called(run, t) {
  if (run.length < 2) return run.call(t, t);
  return new Promise((resolve, reject) => run.call(t, t, (error) => (error ? reject(error) : resolve())));
}
