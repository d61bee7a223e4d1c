// Remembers what decides the outcome of tests (the built-in classes and functions of a realm, and what a test runner
// defines), and finds what is different later. Code under test may share the realm, so nothing is used that it could
// replace.
"use strict";
const { ownKeys } = Reflect;
const { freeze, getOwnPropertyDescriptor: own, getPrototypeOf, defineProperty: define } = Object;

const CLASSES = ["Object", "Function", "Array", "String", "Number", "Boolean", "Symbol", "BigInt", "RegExp", "Promise"];
CLASSES.push("Map", "Set", "WeakMap", "WeakSet", "WeakRef", "Error", "TypeError", "RangeError", "SyntaxError");
CLASSES.push("ReferenceError", "EvalError", "URIError", "AggregateError", "Reflect", "Proxy", "JSON", "Math", "Atomics");
CLASSES.push("ArrayBuffer", "SharedArrayBuffer", "DataView", "Iterator", "Uint8Array", "Uint8ClampedArray");
CLASSES.push("Uint16Array", "Uint32Array", "Int8Array", "Int16Array", "Int32Array", "Float32Array", "Float64Array");
CLASSES.push("BigInt64Array", "BigUint64Array");
/** Classes whose instances have an iterator of their own kind. */
const ITERABLE = ["Array", "Set", "Map", "String"];
/** Members that built-in classes or their prototypes mostly lack, and that change how values are compared if added. */
const CLASS_SLOTS = [Symbol.hasInstance, Symbol.species];
const PROTOTYPE_SLOTS = [Symbol.iterator, Symbol.toPrimitive, Symbol.toStringTag, Symbol.isConcatSpreadable];
PROTOTYPE_SLOTS.push("toJSON", "then", "asymmetricMatch", "valueOf", "toString", "name", "message");
/** Stands for the prototype among the keys of an object. */
const PROTOTYPE = Symbol("prototype");

/** The value of a property, or its getter or setter. */
function valueOf(owner, key) {
  if (key === PROTOTYPE) return getPrototypeOf(owner);
  const found = own(owner, key);
  return found && ("value" in found ? found.value : (found.get ?? found.set));
}

/** Add an item to a list without a method that code could replace. */
function append(list, item) {
  define(list, list.length, { value: item, enumerable: true, configurable: true, writable: true });
}

/** What decides the outcome of tests, as it was: [name, owner, key, value]. */
class Baseline {
  parts = [];

  add(name, owner, key) {
    append(this.parts, [name, owner, key, valueOf(owner, key)]);
  }

  addFunction(name, owner, key) {
    if (typeof valueOf(owner, key) === "function") this.add(name, owner, key);
  }

  addFunctions(name, owner) {
    for (const key of ownKeys(owner)) {
      // Jest itself replaces `prepareStackTrace` for moments.
      if (key !== "constructor" && key !== "prepareStackTrace") this.addFunction(nameMember(name, key), owner, key);
    }
  }

  /** Add the functions of a built-in object, the members that it lacks, and its prototype. */
  addBuiltIn(name, owner, slots) {
    this.addFunctions(name, owner);
    for (const key of slots) if (typeof valueOf(owner, key) !== "function") this.add(nameMember(name, key), owner, key);
    this.add(`the prototype of ${name}`, owner, PROTOTYPE);
  }

  addRealm(global) {
    for (const name of CLASSES) {
      const one = global[name];
      if (!one) continue;
      this.addFunction(name, global, name);
      this.addBuiltIn(name, one, CLASS_SLOTS);
      if (one.prototype) this.addBuiltIn(`${name}.prototype`, one.prototype, PROTOTYPE_SLOTS);
    }
    // Fake timers replace `Date` by one with the same prototype.
    if (global.Date) this.addBuiltIn("Date.prototype", global.Date.prototype, PROTOTYPE_SLOTS);
    if (global.Uint8Array) {
      const typed = getPrototypeOf(global.Uint8Array);
      this.addBuiltIn("TypedArray", typed, CLASS_SLOTS);
      this.addBuiltIn("TypedArray.prototype", typed.prototype, PROTOTYPE_SLOTS);
    }
    for (const name of ITERABLE) {
      const iterator = global[name] && getPrototypeOf(new global[name]()[Symbol.iterator]());
      if (iterator) this.addBuiltIn(`the iterator of ${name}`, iterator, PROTOTYPE_SLOTS);
    }
    this.addFormats(global.Intl);
    this.addNameless(global);
  }

  /** Add what makes texts of dates and numbers. Fake timers replace `Intl` as a whole. */
  addFormats(intl) {
    if (!intl) return;
    this.addFunctions("Intl", intl);
    for (const key of ownKeys(intl)) {
      const prototype = intl[key]?.prototype;
      if (prototype) this.addBuiltIn(`${nameMember("Intl", key)}.prototype`, prototype, PROTOTYPE_SLOTS);
    }
  }

  /** Add how `node:util` makes texts of objects, by which tests may compare them. */
  addInspection(inspect) {
    const options = inspect.defaultOptions;
    for (const key of ownKeys(options)) this.add(`util.inspect.defaultOptions.${key}`, options, key);
  }

  /** Add the prototypes that have no name: of iterators, generators and asynchronous functions. */
  addNameless(global) {
    const iterator = getPrototypeOf(getPrototypeOf(new global.Array()[Symbol.iterator]()));
    this.addFunctions("the prototype of iterators", iterator);
    const texts = { "a generator": "function* () {}", "an asynchronous generator": "async function* () {}" };
    texts["an asynchronous function"] = "async function () {}";
    for (const name of ownKeys(texts)) {
      const prototype = getPrototypeOf(new global.Function(`return ${texts[name]}`)());
      this.addFunctions(`the prototype of ${name}`, prototype);
      if (prototype.prototype) this.addFunctions(`what ${name} returns`, prototype.prototype);
    }
  }

  addList(name, owner, key) {
    const list = owner[key];
    this.add(name, owner, key);
    this.add(name, list, "length");
    for (let at = 0; at < list.length; at += 1) this.add(name, list, at);
  }

  /** Call a function with the name of each part that is different now. */
  findChanges(note) {
    for (let at = 0; at < this.parts.length; at += 1) {
      const part = this.parts[at];
      if (valueOf(part[1], part[2]) !== part[3]) note(part[0]);
    }
  }
}

/** The name of a member in the way that a test's text would write it: `Array.prototype[Symbol.iterator]`. */
function nameMember(name, key) {
  return typeof key === "symbol" ? `${name}[${key.description}]` : `${name}.${key}`;
}

// Code that finds this module must not change what the guards call.
freeze(Baseline.prototype);
module.exports = freeze({ append, Baseline: freeze(Baseline), valueOf });
