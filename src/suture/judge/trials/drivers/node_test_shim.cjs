// A replacement for `node:test`, as far as tests use it, that can run many times in one process.
"use strict";
const assert = require("node:assert");
const real = require("node:test");

// How long a test waits for the assertions of its plan if it sets no limit, and how often it counts them. Chosen by
// judgement; not measured.
const PLAN_WAIT_MS = 1000;
const PLAN_POLL_MS = 5;
const HOOK_NAMES = ["before", "after", "beforeEach", "afterEach"];

// Returns the replacement for `require("node:test")`. Its functions register with the current harness.
exports.createShim = (state) => {
  const test = (...args) => state.harness.add("test", args);
  const suite = (...args) => state.harness.add("suite", args);
  for (const register of [test, suite]) {
    const kind = register === test ? "test" : "suite";
    register.skip = (...args) => state.harness.add(kind, args, { skip: true });
    register.todo = (...args) => state.harness.add(kind, args, { todo: true });
    register.only = register;
  }
  const hooks = {};
  for (const name of HOOK_NAMES) hooks[name] = (callback) => state.harness.hook(name, callback);
  const all = { ...hooks, test, it: test, describe: suite, suite, mock: real.mock, run: real.run };
  return Object.assign(test, all, { default: test });
};

// Creates a harness for one run of one file. `onEnd` receives the result of each test, and of a suite that fails by
// itself. When it returns true, no further test is started. `onFirstTest` is called before the first test.
exports.createHarness = (selected, onEnd, onFirstTest = () => {}) => {
  let isStopped = false;
  let running = null;
  let hasStarted = false;
  const top = { ...emptyScope(), names: [], parent: null };
  let currentSuite = top;

  function add(kind, args, more = {}) {
    const [name, ownOptions, callback] = parseArguments(args);
    const options = { ...ownOptions, ...more };
    const owner = currentSuite;
    const define = kind === "suite" ? defineSuite : defineTest;
    return enqueue(owner, () => define(owner, name, options, callback));
  }

  // A suite registers its contents immediately, as Node does; they run when it is their turn.
  function enqueue(owner, define) {
    const start = define();
    const finished = owner.queue.then(start);
    owner.queue = finished;
    return finished;
  }

  function createChild(owner, name) {
    return { ...emptyScope(), names: [...owner.names, name], parent: owner };
  }

  function defineSuite(owner, name, options, callback) {
    const suite = createChild(owner, name);
    suite.isSkipped = Boolean(options.skip || options.todo || owner.isSkipped);
    const outer = currentSuite;
    currentSuite = suite;
    let fault = null;
    let pending = null;
    try {
      pending = callback?.(createContext(suite));
    } catch (error) {
      fault = error;
    } finally {
      currentSuite = outer;
    }
    return async () => {
      try {
        await pending;
        if (fault) throw fault;
        await drain(suite);
        if (!suite.isSkipped) {
          for (const hook of suite.hasBegun ? suite.after : []) await invoke(hook, createContext(suite));
        }
      } catch (error) {
        isStopped = onEnd({ names: suite.names, status: "failed", error }) || isStopped;
      }
    };
  }

  function defineTest(owner, name, options, callback) {
    return async () => {
      const test = createChild(owner, name);
      const id = test.names.join(" > ");
      if (isStopped) return;
      if (options.skip || options.todo || owner.isSkipped) {
        onEnd({ names: test.names, status: "skipped" });
        return;
      }
      if (selected && ![...selected].some((wanted) => isWithin(wanted, id))) return;
      const scopes = scopeChain(owner);
      let fault = null;
      running = test;
      if (!hasStarted) onFirstTest();
      hasStarted = true;
      const context = createContext(test);
      try {
        for (const scope of scopes) await begin(scope);
        for (const scope of scopes) for (const hook of scope.beforeEach) await invoke(hook, context);
        if (callback) await invoke(callback, context);
        await drain(test);
        await checkPlan(test);
      } catch (error) {
        fault = { error };
      }
      try {
        for (const scope of scopes.reverse()) for (const hook of scope.afterEach) await invoke(hook, context);
        for (const hook of test.after) await invoke(hook, context);
      } catch (error) {
        fault ??= { error };
      }
      real.mock.restoreAll();
      fault ??= test.fault ?? (test.hasFailedSubtest ? { error: new Error("1 subtest failed") } : null);
      if (fault && owner.parent) owner.hasFailedSubtest = true;
      // A test that needs a feature which this shim lacks proves nothing about the code and is not used in trials.
      const status = test.skippedItself ? "skipped" : test.usesUnknown ? "unknown" : fault ? "failed" : "passed";
      running = null;
      isStopped = onEnd({ names: test.names, status, error: fault?.error }) || isStopped;
    };
  }

  function createContext(scope) {
    const hooks = {};
    for (const name of HOOK_NAMES) hooks[name] = (callback) => scope[name].push(callback);
    const context = {
      ...hooks,
      name: scope.names.at(-1),
      fullName: scope.names.join(" > "),
      assert: createCountingAssert(scope),
      plan(count, { wait = 0 } = {}) {
        scope.plan = { count, wait };
      },
      runOnly() {},
      mock: real.mock,
      signal: new AbortController().signal,
      diagnostic() {},
      skip() {
        scope.skippedItself = true;
      },
      todo() {
        scope.skippedItself = true;
      },
      test(...args) {
        const [name, options, callback] = parseArguments(args);
        scope.assertions = (scope.assertions ?? 0) + 1;
        return enqueue(scope, () => defineTest(scope, name, options, callback));
      },
    };
    return new Proxy(context, {
      get(target, name) {
        if (typeof name === "string" && !(name in target) && name !== "then") scope.usesUnknown = true;
        return target[name];
      },
    });
  }

  // `t.assert`, whose calls count towards the plan of a test.
  function createCountingAssert(scope) {
    const counting = {};
    for (const name of Object.keys(assert)) {
      if (typeof assert[name] !== "function" || /^[A-Z]/.test(name)) continue;
      counting[name] = (...args) => {
        scope.assertions = (scope.assertions ?? 0) + 1;
        return assert[name](...args);
      };
    }
    return counting;
  }

  async function checkPlan(scope) {
    if (!scope.plan) return;
    const { count, wait } = scope.plan;
    const deadline = Date.now() + (wait === true ? PLAN_WAIT_MS : wait);
    const current = () => scope.assertions ?? 0;
    while (current() < count && Date.now() < deadline) {
      await new Promise((resolve) => setTimeout(resolve, PLAN_POLL_MS));
    }
    if (current() !== count) throw new Error(`plan expected ${count} and got ${current()}`);
  }

  async function begin(scope) {
    if (scope.hasBegun) return;
    scope.hasBegun = true;
    for (const hook of scope.before) await invoke(hook, createContext(scope));
  }

  // Waits until the queue of a scope is empty; what runs may add more to it.
  async function drain(scope) {
    for (let last = null; last !== scope.queue; ) {
      last = scope.queue;
      await last;
    }
  }

  return {
    add,
    hook: (name, callback) => void currentSuite[name].push(callback),
    failRunningTest(error) {
      if (running) running.fault ??= { error };
    },
    async done() {
      await drain(top);
      for (const hook of top.after) await invoke(hook, createContext(top));
    },
  };
};

function emptyScope() {
  return { before: [], after: [], beforeEach: [], afterEach: [], queue: Promise.resolve() };
}

function scopeChain(owner) {
  const scopes = [];
  for (let scope = owner; scope; scope = scope.parent) scopes.unshift(scope);
  return scopes;
}

// Returns whether a test is the selected one, a part of it, or a test that holds it.
function isWithin(selectedId, name) {
  if (!selectedId.includes("::")) return true;
  const wanted = selectedId.slice(selectedId.indexOf("::") + 2);
  const isSame = wanted === name || wanted.startsWith(`${name} #`);
  return isSame || wanted.startsWith(`${name} > `) || name.startsWith(`${wanted} > `);
}

function parseArguments(args) {
  const callback = args.find((arg) => typeof arg === "function");
  const options = args.find((arg) => arg !== null && typeof arg === "object") ?? {};
  const name = typeof args[0] === "string" ? args[0] : callback?.name || "<anonymous>";
  return [name, options, callback];
}

// A callback with two parameters reports its end by calling the second one.
function invoke(callback, context) {
  if (callback.length < 2) return callback.call(context, context);
  return new Promise((resolve, reject) => {
    callback.call(context, context, (error) => (error ? reject(error) : resolve()));
  });
}
