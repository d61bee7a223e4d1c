// Loads one candidate and answers calls of its function in JSON-plus (call_driver.py). It runs inside the sandbox, does
// not know the expected results and decides nothing: whatever a candidate does here, it can only answer wrongly.
import { readSync, writeSync, existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { types } from 'node:util';

// Descriptors of the conversation with Suture; the candidate's own stdin and stdout lead elsewhere.
const IN = 3;
const OUT = 4;
// Nested values, size of an answer, length of a stack trace. Chosen by judgement; not measured.
const MAX_DEPTH = 60;
const MAX_ANSWER_BYTES = 4 << 20;
const MAX_STACK_CHARS = 4000;
// From here on, not every integer is exact. Such numbers are written with an exponent, so that Python reads a float.
const MAX_EXACT_INTEGER = 2 ** 53;

// Functions that are used after the candidate is loaded, saved before: a legitimate polyfill must not change an answer.
const { apply, getPrototypeOf, getOwnPropertyDescriptor } = Reflect;
const { keys, is, prototype: plain } = Object;
const { isArray, prototype: arrays } = Array;
const quote = JSON.stringify;
const { parse } = JSON;
const eachOfMap = Map.prototype.forEach;
const eachOfSet = Set.prototype.forEach;
const timeOf = Date.prototype.getTime;
const kindOfTyped = Object.getOwnPropertyDescriptor(getPrototypeOf(Uint8Array.prototype), Symbol.toStringTag).get;
const { isProxy, isMap, isSet, isDate, isRegExp, isNativeError, isTypedArray, isPromise } = types;
const { from, alloc, concat } = Buffer;
const end = process.exit.bind(process);

/** Read so many bytes. The process ends if Suture is gone. */
function readExactly(size) {
  const bytes = alloc(size);
  for (let at = 0; at < size; ) {
    const got = readSync(IN, bytes, at, size - at, null);
    if (!got) end(0);
    at += got;
  }
  return bytes;
}

/** Read a message: its length in four bytes, and JSON. */
function readMessage() {
  return parse(readExactly(readExactly(4).readUInt32BE(0)).toString('utf8'));
}

function writeMessage(text) {
  let body = from(text, 'utf8');
  if (body.length > MAX_ANSWER_BYTES) body = from('{"died":"the answer is too large"}', 'utf8');
  const head = alloc(4);
  head.writeUInt32BE(body.length, 0);
  const frame = concat([head, body]);
  for (let at = 0; at < frame.length; ) at += writeSync(OUT, frame, at);
}

/** JSON-plus for a value that is no data. */
const foreign = (what) => `["foreign",${quote(what)}]`;

function number(value) {
  if (value !== value || value === Infinity || value === -Infinity || is(value, -0)) {
    return `["number",${quote(is(value, -0) ? '-0' : `${value}`)}]`;
  }
  return value >= MAX_EXACT_INTEGER || value <= -MAX_EXACT_INTEGER ? value.toExponential() : `${value}`;
}

/** The name of an object's class. No getter of the candidate runs. */
function nameOf(thing) {
  const maker = getOwnPropertyDescriptor(getPrototypeOf(thing) ?? {}, 'constructor');
  return typeof maker?.value === 'function' ? `${maker.value.name}` : 'object';
}

/** The properties of an object as text, each made by `write`; null if one has a getter, which must not run. */
function parts(thing, names, write) {
  let text = '';
  for (let at = 0; at < names.length; at += 1) {
    const own = getOwnPropertyDescriptor(thing, names[at]);
    if (own !== undefined && !('value' in own)) return null;
    text += (at ? ',' : '') + write(names[at], own?.value);
  }
  return text;
}

/** A value as JSON-plus; `around` are the objects that hold it. */
function encode(value, depth, around) {
  if (value === null) return 'null';
  if (value === undefined) return '["undefined"]';
  if (typeof value === 'boolean') return value ? 'true' : 'false';
  if (typeof value === 'string') return quote(value);
  if (typeof value === 'number') return number(value);
  if (typeof value === 'bigint') return `["bigint","${value}"]`;
  if (typeof value !== 'object') return foreign(`a ${typeof value}`);
  if (isProxy(value)) return foreign('a Proxy');
  if (depth > MAX_DEPTH || around.includes(value)) return foreign('something too deep, or that holds itself');
  return structure(value, depth + 1, [...around, value]);
}

function structure(value, depth, around) {
  const inner = (part) => encode(part, depth, around);
  const kin = getPrototypeOf(value);
  if (isArray(value) && kin === arrays) {
    const text = parts(value, Array.from({ length: value.length }, (_, at) => `${at}`), (_, part) => inner(part));
    return text === null ? foreign('a getter') : `["list",[${text}]]`;
  }
  if (isMap(value)) {
    const pairs = [];
    apply(eachOfMap, value, [(part, key) => pairs.push(`[${inner(key)},${inner(part)}]`)]);
    return `["map",[${pairs.join(',')}]]`;
  }
  if (isSet(value)) {
    const items = [];
    apply(eachOfSet, value, [(part) => items.push(inner(part))]);
    return `["set",[${items.join(',')}]]`;
  }
  if (isDate(value)) return `["date",${number(apply(timeOf, value, []))}]`;
  if (isRegExp(value)) return `["regexp",${quote(`${value}`)}]`;
  if (isNativeError(value)) return fault(value);
  if (isTypedArray(value)) {
    const numbers = Array.from(value, (part) => encode(part, depth, around));
    return `["typed",${quote(apply(kindOfTyped, value, []))},[${numbers.join(',')}]]`;
  }
  if (isPromise(value)) return foreign('a Promise');
  if (kin !== plain && kin !== null) return foreign(`an object of ${nameOf(value)}`);
  const text = parts(value, keys(value), (name, part) => `[${quote(name)},${inner(part)}]`);
  return text === null ? foreign('a getter') : `["object",[${text}]]`;
}

function fault(error) {
  try {
    return `["error",${quote(`${error.name}`)},${quote(`${error.message}`)}]`;
  } catch {
    return '["error","Error","it cannot be shown"]';
  }
}

/** The answer for a call that has thrown a value. */
function raised(error) {
  let stack = '';
  let told = '["error","","something that is no Error"]';
  try {
    if (isNativeError(error)) {
      told = fault(error);
      stack = `${error.stack}`.slice(0, MAX_STACK_CHARS);
    } else told = `["error","",${quote(`${error}`)}]`;
  } catch {
    // the thrown value cannot be inspected
  }
  return `{"raised":${told},"stack":${quote(stack)}}`;
}

/** The value of JSON-plus. */
function decode(value) {
  if (!isArray(value)) return value;
  const [tag, first, second] = value;
  switch (tag) {
    case 'list':
      return first.map(decode);
    case 'object': {
      const made = {};
      for (const [name, part] of first) {
        const own = { value: decode(part), writable: true, enumerable: true, configurable: true };
        Object.defineProperty(made, name, own);
      }
      return made;
    }
    case 'map':
      return new Map(first.map(([key, part]) => [decode(key), decode(part)]));
    case 'set':
      return new Set(first.map(decode));
    case 'number':
      return Number(first);
    case 'bigint':
      return BigInt(first);
    case 'date':
      return new Date(first);
    case 'regexp':
      return new RegExp(first.slice(1, first.lastIndexOf('/')), first.slice(first.lastIndexOf('/') + 1));
    case 'error': {
      const made = new (globalThis[first] ?? Error)(second);
      return made;
    }
    default:
      return undefined;
  }
}

/** Prepare to load TypeScript: by node's own option, or by tsx of the project or of this machine. */
async function understandTypes() {
  if (process.execArgv.some((option) => option.startsWith('--experimental-strip-types'))) return true;
  const bin = dirname(process.execPath);
  const folders = [process.cwd(), join(bin, '../lib/x'), '/usr/local/lib/x', '/usr/share/nodejs/x'];
  for (const folder of folders) {
    try {
      const near = folder.endsWith('/x') ? join(dirname(folder), 'node_modules/tsx/package.json') : '';
      if (near && !existsSync(near)) continue;
      const file = createRequire(near || join(folder, 'x.js')).resolve('tsx');
      await import(pathToFileURL(file).href);
      return true;
    } catch {
      // the module does not exist
    }
  }
  return false;
}

/** The candidate's function: exported by its name, a member of the default export, or the default export itself. */
async function functionOf({ module, name }) {
  const loaded = await import(pathToFileURL(join(process.cwd(), module)).href);
  const whole = loaded.default;
  for (const place of [loaded, whole, whole?.default]) {
    const found = place === null || place === undefined ? undefined : place[name];
    if (typeof found === 'function') return found;
  }
  return typeof whole === 'function' && whole.name === name ? whole : undefined;
}

async function answer(called, { args, awaits }) {
  try {
    const given = args.map(decode);
    const shown = given.map((part) => encode(part, 0, []));
    let result = apply(called, undefined, given);
    if (awaits) result = await result;
    const altered = shown.flatMap((text, at) => (encode(given[at], 0, []) === text ? [] : [at]));
    return `{"value":${encode(result, 0, [])},"altered":[${altered.join(',')}]}`;
  } catch (error) {
    return raised(error);
  }
}

async function main() {
  let wanted = readMessage();
  if (wanted.able) {
    const able = await understandTypes();
    writeMessage(able ? '{"ready":true}' : '{"unable":true}');
    if (!able) return;
    wanted = readMessage();
  }
  let called;
  try {
    called = await functionOf(wanted);
  } catch (error) {
    writeMessage(raised(error));
    return;
  }
  writeMessage(called === undefined ? '{"absent":true}' : '{"ready":true}');
  while (called !== undefined) writeMessage(await answer(called, readMessage()));
}

await main();
end(0);
