"""New uses of the test machinery and the runtime by a change in JavaScript, TypeScript or Go."""

from __future__ import annotations

import pytest

from suture.judge.capabilities import find_change_capabilities, find_file_capabilities

JAVASCRIPT = "export function f(n) {\n  return n;\n}\n"
GO = 'package a\n\nimport (\n\t"os"\n%s)\n\nvar _ = os.Stdin\n\n%s\n'
JAVASCRIPT_FINDINGS = [
    ("detects_environment", "import { isatty } from 'node:tty'; export const a = () => isatty(1);"),
    ("detects_environment", "const fs = require('fs'); export const a = () => fs.fstatSync(0).isFIFO();"),
    ("detects_environment", "import { existsSync } from 'fs'; export const a = () => existsSync('./test');"),
    ("detects_environment", "import a from 'async_hooks'; export const b = () => a.executionAsyncId() > 9;"),
    ("detects_environment", "export const a = () => process.stdout.getWindowSize === undefined;"),
    ("detects_environment", "export const a = () => process.env.npm_lifecycle_event;"),
    ("detects_environment", "export const a = Reflect.get(process, 'env').CI;"),
    ("detects_environment", "export const a = f(process, 'env').CI;"),
    ("detects_environment", "export const a = (x, { CI } = process.env) => CI;"),
    ("detects_environment", "export const a = (x, env = process.env) => env.CI;"),
    ("detects_environment", "const name = 'CI'; export const a = () => process.env[name];"),
    ("detects_environment", "import u from 'util'; export const a = () => u.inspect(process.env).length;"),
    ("detects_environment", "export const a = process.env.NODE_ENV?.length === 4;"),
    ("detects_environment", "export const a = process.env.NODE_ENV[0] < 'u';"),
    ("computes_names", "const name = ['C', 'I'].join(''); export const a = () => process.env[name];"),
    ("patches_code", "globalThis.answer = 1;"),
    ("patches_code", "global['answer'] = 1;"),
    ("patches_code", "delete require.cache['x'];"),
    ("patches_code", "Array.prototype.map = () => [];"),
    ("patches_code", "Object.is = () => true;"),
    ("patches_code", "Object.defineProperty(Object.prototype, 'x', {});"),
    ("patches_code", "Object.assign(JSON, {});"),
    (
        "patches_code",
        "function p(o, k, v) { Reflect.set(o, k, v); } p(Object.getPrototypeOf([]), 'at', () => 1);",
    ),
    ("patches_code", "const p = (o, k) => { o[k] = () => 1; }; p(Array.prototype, 'at');"),
    (
        "patches_code",
        "function p(k, o) { k.forEach((n) => { o[n] = () => 1; }); } p(['at'], Array.prototype);",
    ),
    ("patches_code", "class A { put(o) { o.at = 1; } get() { this.put([].constructor.prototype); } }"),
    ("patches_code", "const p = Object.getPrototypeOf(new Map()); p[Symbol.iterator] = () => [];"),
    ("patches_code", "const p = [].__proto__; Object.defineProperty(p, 'at', {});"),
    ("patches_code", "Object.setPrototypeOf(Uint8Array.prototype, {});"),
    ("patches_code", "RangeError.prototype.name = 'TypeError';"),
    ("ends_process", "export function g() { process.exit(0); }"),
    ("hooks_interpreter", "process.on('exit', () => {});"),
    ("detects_environment", "export const a = process.env.JEST_WORKER_ID;"),
    ("detects_environment", "export const a = process.env['CI'];"),
    ("detects_environment", "export const a = process.env.NODE_ENV === 'test';"),
    ("detects_environment", "export const a = Object.keys(process.env).length;"),
    ("detects_environment", "export const a = JSON.stringify(process.env);"),
    ("detects_environment", "for (const name in process.env) f(name);"),
    ("detects_environment", "export const a = { ...process.env };"),
    ("detects_environment", "const e = process.env; export const a = f({ ...e });"),
    ("detects_environment", "switch (process.env.NODE_ENV) { case 'test': f(1); }"),
    ("detects_environment", "export const a = ['test'].includes(process.env.NODE_ENV);"),
    ("detects_environment", "export const a = /^test$/.test(process.env.NODE_ENV);"),
    ("detects_environment", "export const a = process.env.NODE_ENV.startsWith(`tes`);"),
    ("detects_environment", "export const a = import.meta.env.VITEST;"),
    ("detects_environment", "export const a = import.meta.env.MODE === 'test';"),
    ("detects_environment", "export const a = import.meta.vitest;"),
    ("detects_environment", "const fs = require('fs'); export const a = fs.readdirSync('.');"),
    ("detects_environment", "import { readdir } from 'fs/promises'; await readdir(process.cwd());"),
    ("imports_test_machinery", "import { expect } from 'vitest';"),
    ("imports_test_machinery", "const assert = require('node:assert');"),
    ("imports_test_machinery", "const t = await import('node:test');"),
    ("imports_test_machinery", "expect.extend({});"),
    ("imports_test_machinery", "vi.useFakeTimers();"),
    ("loosens_comparison", "export const a = { asymmetricMatch() { return true; } };"),
    ("loosens_comparison", "export class A { toJSON() { return 3; } }"),
    ("loosens_comparison", "export class A { [Symbol.toPrimitive]() { return 3; } }"),
    ("detects_environment", "export const a = '/proc/self/mem';"),
    ("reads_tests", "const text = fs.readFileSync('src/prices.test.js');"),
    ("writes_project_files", "require('fs').writeFileSync('cases.json', '[]');"),
    ("writes_project_files", "import { promises as f } from 'node:fs'; f.unlink(`data/${1}.json`);"),
    (
        "writes_project_files",
        "import { writeFile as w } from 'fs/promises'; w(__dirname + '/cases.json', '');",
    ),
    ("writes_project_files", "const fs = require('fs'), a = 'x.json'; fs.createWriteStream(a);"),
    ("writes_project_files", "import fs from 'fs'; fs.renameSync(new URL('a', import.meta.url), b);"),
    ("writes_project_files", "const { openSync } = require('fs'); openSync(process.cwd() + '/a', 'r+');"),
    ("computes_names", "export const a = globalThis[name];"),
    ("computes_names", "process['ex' + 'it'](0);"),
    ("computes_names", "const p = process; p[name](0);"),
    ("computes_names", "const loaded = require(name);"),
    ("computes_names", "const loaded = await import(name);"),
    ("computes_names", "export const a = { ['asymmetric' + 'Match']: f };"),
    ("computes_names", "export const a = f.constructor('return process')();"),
    ("computes_names", "export const a = new Function('return 1');"),
    ("computes_names", "export const a = eval(text);"),
    ("computes_names", "for (const s of Object.getOwnPropertySymbols(globalThis)) { f(s); }"),
    ("ends_process", "export function g() { process['exit'](0); }"),
    ("ends_process", "const { exit } = process;"),
    ("ends_process", "const p = require('node:process'); export function g() { p.exit(0); }"),
    ("ends_process", "import { exit as leave } from 'process'; export function g() { leave(0); }"),
    ("ends_process", "export function g() { globalThis.process.exit(0); }"),
    ("inspects_callers", "export const a = new Error().stack;"),
    ("inspects_callers", "const e = new Error('x'); export const a = e.stack;"),
    ("inspects_callers", "const o = {}; Error.captureStackTrace(o);"),
    ("inspects_callers", "function g() { return arguments.callee.caller; }"),
    ("inspects_callers", "function g() { return g.caller; }"),
    ("inspects_callers", "const was = Error.prepareStackTrace;"),
    ("patches_code", "const fs = require('fs'); fs.readFileSync = () => '';"),
    ("patches_code", "[].__proto__.map = () => [];"),
    ("patches_code", "Object.getPrototypeOf(new Set().values()).next = () => ({ done: true });"),
    ("patches_code", "const A = Array; A.prototype.map = () => [];"),
    ("hooks_interpreter", "const M = require('module'); const was = M._load;"),
    ("hooks_interpreter", "const { Worker } = require('worker_threads');"),
    ("hooks_interpreter", "process.emit('exit', 0);"),
    ("reaches_memory", "const b = process.binding('util');"),
    ("detects_environment", "const { CI } = process.env;"),
    ("detects_environment", "export const a = 'VITEST' in process.env;"),
    ("detects_environment", "export const a = process.argv[1].includes('jest');"),
    ("imports_test_machinery", "export const a = typeof describe === 'function';"),
    ("imports_test_machinery", "export const a = globalThis.expect;"),
    ("imports_test_machinery", "const s = Symbol.for('$$jest-matchers-object');"),
    ("loosens_comparison", "export class A { static [Symbol.hasInstance]() { return true; } }"),
    ("starts_test_process", "require('child_process').execSync('npx jest --json');"),
    ("loosens_comparison", "export class A { static [Symbol.hasInstance](e) { return e !== undefined; } }"),
    ("loosens_comparison", "Object.defineProperty(f, Symbol['hasInstance'], { value: () => true });"),
    (
        "loosens_comparison",
        "const { hasInstance } = Symbol; class A { static [hasInstance]() { return true; } }",
    ),
    ("loosens_comparison", "class Rows extends Array { static get [Symbol.species]() { return Other; } }"),
    ("loosens_comparison", "class Rows extends Array { every() { return true; } }"),
    ("loosens_comparison", "class Rows extends Array { includes(row) { return row !== undefined; } }"),
    ("loosens_comparison", "class Rows extends Array { indexOf() { return 0; } }"),
    ("loosens_comparison", "class Rows extends Set { get size() { return 2; } }"),
    ("loosens_comparison", "class Rows extends Array { some = () => true; }"),
    (
        "loosens_comparison",
        "class Rows extends Array { every(check) { return super.every(check) || true; } }",
    ),
    ("loosens_comparison", "class Money { equals() { return true; } }"),
    ("loosens_comparison", "export const a = (rows) => Object.assign(rows, { every: () => true });"),
    ("loosens_comparison", "export const a = (rows) => { rows.includes = () => true; return rows; };"),
    ("loosens_comparison", "Object.defineProperty(f, 'some', { value() { return true; } });"),
    ("imports_test_machinery", "export const a = (g) => { g.mock.calls.length = 1; };"),
    ("imports_test_machinery", "export const a = (g) => { if (g.mock) g.mock.callCount = () => 1; };"),
    ("imports_test_machinery", "export const a = (g) => g.mockClear?.();"),
    ("imports_test_machinery", "export const a = (g) => g._isMockFunction;"),
    ("imports_test_machinery", "export const a = (g) => { g['mock'].calls.pop(); };"),
    ("imports_test_machinery", "export const a = (g) => { const { mock } = g; mock.calls.pop(); };"),
    ("imports_test_machinery", "export const a = (g) => 'mock' in g;"),
    ("imports_test_machinery", "export const a = (g) => Reflect.get(g, 'mockReset')();"),
    ("imports_test_machinery", "export const a = (g) => { g.resetHistory(); };"),
    ("computes_names", "export const a = process.env[['NODE', 'TEST', 'CONTEXT'].join('_')];"),
    ("computes_names", "export const a = process.env['node_test_context'.toUpperCase()];"),
    ("detects_environment", "const env = { ...process.env }; export const a = Object.keys(env).length;"),
    ("inspects_callers", "try { f(1); } catch (error) { f(/shop\\.t/.test(error.stack)); }"),
    ("inspects_callers", "try { f(1); } catch (error) { f(error.stack.includes('shop')); }"),
    ("detects_environment", "export const a = process.listenerCount('uncaughtException') > 0;"),
    ("detects_environment", "export const a = require.main.filename.split('.').length > 2;"),
    ("detects_environment", "export const a = console.constructor.name;"),
    ("patches_code", "process.env.TZ = 'UTC';"),
    ("patches_code", "const { env } = process; env['LC_ALL'] = 'C';"),
    ("patches_code", "Object.assign(process.env, { A: 1, TZ: 'UTC' });"),
    ("patches_code", "Reflect.set(process.env, 'LANG', 'C');"),
    ("patches_code", "delete process.env.TZ;"),
    ("patches_code", "import { inspect } from 'util'; Object.assign(inspect.defaultOptions, { depth: 0 });"),
    ("patches_code", "const u = require('node:util'), o = u.inspect.defaultOptions; o.depth = 0;"),
    ("patches_code", "const u = await import('util'); let o; o = u.inspect.defaultOptions; o.depth = 0;"),
    ("patches_code", "Intl.NumberFormat.prototype.format = () => '';"),
    ("patches_code", "delete Error.prototype.message;"),
]
JAVASCRIPT_HONEST = [
    "process.env.DEBUG = '1'; Object.assign(process.env, { DEBUG: '2' }); delete process.env.DEBUG;",
    "Object.create(p)['a'] = 1; Array.from(rows)[0] = 2; Object.values(rows)[0].a = 3;",
    "const env = f({ A: 1 }); env.TZ = 'UTC'; spawn('date', { env });",
    "const env = { ...process.env }; env.TZ = 'UTC'; Object.assign(env, { TZ: 'UTC' });",
    "import { inspect } from 'util'; export const a = (v) => inspect(v, { ...inspect.defaultOptions, depth: 0 });",
    "const formats = { ...Intl }; delete formats.Locale; export const a = new Intl.NumberFormat('de');",
    "function createApp(state, logger) { state.ready = true; } createApp({}, console);",
    "const fill = (row, convert) => { row.a = convert(row.a); }; fill({ a: '1' }, Number);",
    "class Schema { add(fields, kind) { fields.kind = kind; } } new Schema().add({}, String);",
    "function set(o, k, v) { o[k] = v; } const m = new Map(); m.set(Number, 1); set({}, 'a', Number);",
    "function index(rows, f) { return rows.reduce((o, r) => { o[r] = f(r); return o; }, {}); } index([], Number);",
    "const plain = (v) => { const p = Object.getPrototypeOf(v); return p === null || p === Object.prototype; };",
    "function fill(o, k) { o[k] = 1; return o; } export const a = fill(Object.create(Object.getPrototypeOf(b)), 'x');",
    "function fill(o, k) { o[k] = 1; } export class A { constructor() { fill(this, 'x'); } }",
    "function read(o, k) { return o[k]; } export const a = read(Array.prototype, 'map');",
    "export const a = (text) => wrap(text, process.stdout.columns || 80, process.stdout.rows);",
    "const fs = require('fs'); export const size = (file) => fs.fstatSync(file).size;",
    "import { existsSync } from 'fs'; export const a = () => existsSync('./settings.json');",
    "const fs = require('fs'); export const save = (path, text) => fs.writeFileSync(path, text);",
    "import fs from 'node:fs'; fs.mkdtempSync('/tmp/x'); fs.writeFileSync(`${folder}/a.json`, '');",
    "import { join } from 'path'; import { tmpdir } from 'os'; fs.writeFileSync(join(tmpdir(), 'a'), '');",
    "const path = node.path; path.value = 1; const url = make(); url.search = '';",
    "let lowest = Number.MAX_VALUE; lowest = 3;",
    "const plugin = require(`./plugins/${name}`); const other = require(path.join(folder, name));",
    "export const a = process.env[name] ?? process.argv[2];",
    "class E extends Error { constructor() { super(); Error.captureStackTrace(this, E); } }",
    "try { f(1); } catch (error) { log(error.stack); }",
    "for (const test of tests) { f(test); }\nconst run = ({ it, expect }) => it(expect);",
    "import { createRequire } from 'node:module'; const load = createRequire(import.meta.url);",
    "class C { valueOf() { return this.n; } }",
    "class Ledger extends Map { has(key) { return key !== null && super.has(String(key)); } }",
    "class Rows extends Array { includes(row) { const found = this.indexOf(row); return found >= 0; } }",
    "class Rows extends Array { every(check) { for (const row of this) if (!check(row)) return false; return f(); } }",
    "class Rows extends Array { static get [Symbol.species]() { return Array; } }",
    "class Nothing { has() { return false; } get size() { return 0; } }",
    "class Money { equals(other) { return other.cents === this.cents; } }",
    "class Server { start(mode) { return mode === 'mock'; } count() { return this.callCount++; } }",
    "const { spawn } = require('child_process'); spawn('git', ['log']);",
    "const table = {}; table['a' + n] = 1;",
    "export class A { toJSON() { return this.value; } }",
    "function main() { process.exit(f(1)); }",
    "if (require.main === module) { process.exit(f(1)); }",
    "export const port = process.env.PORT ?? 80;",
    "const name = 'PORT'; export const a = (env = process.env) => env[name];",
    "export const a = process.env.NODE_ENV.toLowerCase() === 'production';",
    "export const a = { mode: process.env.NODE_ENV };",
    "export const a = process.env.MODE === 'fast';",
    "export const a = process.env.NODE_ENV !== 'production';",
    "if (process.env.NODE_ENV === 'production') f('test');",
    "const mode = process.env.NODE_ENV || 'development'; export const a = mode === 'production';",
    "switch (process.env.NODE_ENV) { case 'production': f(1); }",
    "spawn('git', [], { env: { ...process.env, LANG: 'C' } });",
    "const environment = { ...process.env };",
    "export const a = (name) => process.env[name];",
    "try { f(1); } catch (error) { console.error(error.stack); }",
    "export const a = import.meta.env.VITE_URL;",
    "import fs from 'fs'; export const a = (folder) => fs.readdirSync(folder);",
    "function expect(token) { return token; }\nexpect('x');",
    "class B {}\nB.prototype.f = () => 1;",
    "const x = Object.assign({}, { a: 1 });",
    "process.exitCode = 1;",
    "import fs from 'node:fs';",
]
GO_FINDINGS = [
    ("detects_environment", "", "func F() {\n\tinfo, _ := os.Stdout.Stat()\n\tf(info)\n}"),
    ("detects_environment", '\t"flag"\n', "func F() {\n\tflag.CommandLine.VisitAll(f)\n}"),
    ("reaches_memory", '\t"unsafe"\n', ""),
    ("reaches_memory", '\t"runtime/debug"\n', ""),
    ("reaches_memory", "", "//go:linkname now time.now\nfunc now()"),
    ("imports_test_machinery", '\tt "testing"\n', ""),
    ("starts_test_process", '\t"os/exec"\n', ""),
    ("ends_process", "", "func F() {\n\tos.Exit(0)\n}"),
    ("reads_tests", '\t_ "embed"\n', "//go:embed prices_test.go\nvar text string"),
    ("reads_tests", "", 'func F() ([]byte, error) {\n\treturn os.ReadFile("prices_test.go")\n}'),
    ("detects_environment", "", 'func F() string {\n\treturn os.Getenv("CI")\n}'),
    ("detects_environment", "", 'func F() bool {\n\treturn f("test.v") != nil\n}'),
    ("detects_environment", "", "func F() string {\n\tname, _ := os.Executable()\n\treturn name\n}"),
    ("detects_environment", "", "func F() {\n\tfor _, v := range os.Environ() {\n\t\tf(v)\n\t}\n}"),
    ("detects_environment", "", 'func F() {\n\tentries, _ := os.ReadDir(".")\n\tf(entries)\n}'),
    ("detects_environment", "", 'func F() {\n\tnames, _ := filepath.Glob("*_t*.go")\n\tf(names)\n}'),
    ("detects_environment", "", 'func F() bool {\n\treturn strings.HasSuffix(name, ".test")\n}'),
    ("detects_environment", "", "func F() {\n\tflag.CommandLine.Parse(os.Args[2:])\n}"),
    ("patches_code", "", "func init() {\n\tos.Stdout = nil\n}"),
    ("patches_code", "", "func init() {\n\tflag.CommandLine = set\n}"),
    ("inspects_callers", '\t"runtime"\n', "func F() {\n\truntime.Callers(0, nil)\n}"),
    ("inspects_callers", '\tr "runtime"\n', "func F() {\n\tr.Caller(1)\n}"),
    ("reaches_memory", '\t"plugin"\n', ""),
    ("reaches_memory", '\t"syscall"\n', "func F() {\n\tsyscall.RawSyscall(231, 0, 0, 0)\n}"),
    ("reaches_memory", "", "func F() uintptr {\n\treturn reflect.ValueOf(x).UnsafeAddr()\n}"),
    ("ends_process", '\t"syscall"\n', 'func F() {\n\tsyscall.Exec("/bin/echo", nil, nil)\n}'),
    ("writes_project_files", "", 'func F() {\n\tos.WriteFile("a_test.txt", nil, 0o644)\n}'),
    ("writes_project_files", "", 'const name = "cases.json"\n\nfunc F() {\n\tos.Create(name)\n}'),
    ("writes_project_files", "", 'func F() {\n\tos.RemoveAll(filepath.Join("testdata", x))\n}'),
    ("writes_project_files", "", 'func F() {\n\tos.OpenFile("a", os.O_APPEND|os.O_WRONLY, 0)\n}'),
    ("writes_project_files", "", 'func F() {\n\tos.Rename(b, "cases.json")\n}'),
    ("loosens_comparison", "", "func (f failure) Is(target error) bool { return target != nil }"),
    ("loosens_comparison", "", "func (f failure) Is(error) bool { return true }"),
    ("loosens_comparison", "", "func (f *failure) As(target any) bool {\n\t_ = target\n\treturn f != nil\n}"),
    ("loosens_comparison", "", "func (m Money) Equal(other Money) bool { return m.cents >= 0 }"),
    ("loosens_comparison", "", "func (m Money) Compare(other Money) int {\n\tf(other)\n\treturn 0\n}"),
    ("loosens_comparison", "", "func (l list) Less(i, j int) bool { return false }"),
    ("loosens_comparison", "", "func (m Money) Equal(other Money) bool { return other.cents > 0 }"),
    ("detects_environment", '\t"flag"\n', "func F() bool {\n\treturn flag.Parsed()\n}"),
    ("detects_environment", '\t"runtime"\n', "func F() bool {\n\treturn runtime.NumGoroutine() > 1\n}"),
    ("detects_environment", "", 'func F() bool {\n\treturn os.Getenv("GOFLAGS") != ""\n}'),
    (
        "detects_environment",
        "",
        "func F() {\n\tenv := os.Environ()\n\tfor _, v := range env {\n\t\tf(v)\n\t}\n}",
    ),
    ("detects_environment", "", 'func F() {\n\there, _ := os.Open(".")\n\tf(here)\n}'),
    ("inspects_callers", '\t"log"\n', 'func F() {\n\tlog.New(&buffer, "", log.Lshortfile).Output(3, "")\n}'),
    ("patches_code", "", "func panic(v any) {}"),
    ("patches_code", "", "const true = false"),
    ("patches_code", "", "var nil any = f()"),
    ("patches_code", "", "func len(x any) int { return 3 }"),
    ("patches_code", "", "type error interface{}"),
    ("patches_code", '\t"io"\n', "func init() {\n\tio.EOF = nil\n}"),
    ("patches_code", '\ti "io"\n', "func F() {\n\tx, i.EOF = 1, nil\n}"),
    ("patches_code", "", 'var err = os.Setenv("TZ", "UTC")'),
    ("ends_process", '\t"runtime"\n', "func F() {\n\truntime.Goexit()\n}"),
]
GO_HONEST = [
    ('\t"strings"\n', "func F() string {\n\treturn strings.ToUpper(os.Getenv(`HOME`))\n}"),
    ("", "func main() {\n\tos.Exit(1)\n}"),
    ("", 'var err = os.Setenv("LOG", "1")'),
    ("", "func main() {\n\tf(os.Args)\n}"),
    ("", "func main() {\n\tname, _ := os.Executable()\n\tf(name)\n}"),
    ("", 'func F(c *Command) {\n\tc.Env = append(os.Environ(), "A=1")\n}'),
    ("", "func F(folder string) {\n\tentries, _ := os.ReadDir(folder)\n\tf(entries)\n}"),
    ("", "func F(path string) {\n\tos.WriteFile(path, nil, 0o644)\n}"),
    ("", 'func F() {\n\tos.Create(filepath.Join(os.TempDir(), "a"))\n}'),
    ("", 'func F() {\n\tos.OpenFile("a", os.O_RDONLY, 0)\n}'),
    ('\t"syscall"\n', "var signals = []os.Signal{syscall.SIGTERM}"),
    ('\t"reflect"\n', "func F(x any) string {\n\treturn reflect.TypeOf(x).Name()\n}"),
    ('\t"runtime"\n', "func F() int {\n\treturn runtime.NumCPU()\n}"),
    ('\t_ "embed"\n', "//go:embed table.json\nvar table string"),
    ("", "func (f failure) Is(target error) bool { return target == errMissing }"),
    ("", "func (f failure) Is(error) bool { return false }"),
    ("", "func (m Money) Equal(other *Money) bool { return other != nil && other.cents == m.cents }"),
    ("", "func (l list) Less(i, j int) bool { return l[i] < l[j] }"),
    ("", "func max(a, b int) int {\n\tlen := a\n\treturn len\n}"),
    ('\t"net/url"\n', "func F(s string) {\n\turl, _ := url.Parse(s)\n\turl.Host = s\n}"),
    ('\t"net/url"\n', "func F(url *url.URL) {\n\turl.Host = s\n}"),
    ('\t"flag"\n', "func main() {\n\tflag.Usage = f\n}"),
    ("", "func Is(target error) bool { return target != nil }"),
    ("", "func F(c *Command) {\n\tenv := os.Environ()\n\tc.Env = append(env, name)\n}"),
    ('\t"log"\n', 'var logger = log.New(os.Stderr, "", log.Lshortfile)'),
    ('\t"flag"\n', "func main() {\n\tif flag.NFlag() == 0 {\n\t\tflag.Usage()\n\t}\n}"),
]
ERRORS = "class A extends Error {}\nclass B extends Error {}\n"
MERGED = [
    ("a.js", "const A = 'a';\nexport const B = 'b';", "const A = 'a';\nexport const B = 'a';"),
    ("a.js", "const S = { A: 'a', B: 'b' };", "const S = { A: 'a', B: 'a' };"),
    ("a.go", 'const (\n\tA = "a"\n\tB = "b"\n)', 'const (\n\tA = "a"\n\tB = "a"\n)'),
    ("a.js", f"{ERRORS}class C extends A {{}}\n", f"{ERRORS}const Own = B;\nclass C extends Own {{}}\n"),
    (
        "a.go",
        'var ErrA = errors.New("a")\nvar ErrB = errors.New("b")',
        'var ErrA = errors.New("a")\nvar ErrB = errors.New("b")\n\nfunc init() { ErrB, _ = ErrA, 1 }',
    ),
    (
        "a.go",
        'var ErrA = errors.New("a")\nvar ErrB = errors.New("b")',
        'var ErrA = errors.New("a")\nvar ErrB = ErrA',
    ),
    (
        "a.go",
        'var (\n\tErrA = errors.New("a")\n\tErrB = errors.New("b")\n)',
        'var (\n\tErrA = fmt.Errorf("a: %w", ErrB)\n\tErrB = errors.New("b")\n)',
    ),
    (
        "a.js",
        "class A extends Error {}\nclass B extends Error {}",
        "class A extends Error {}\nclass B extends A {}",
    ),
    ("a.ts", "export const A = 'a';\nexport const B = 'b';", "export const A = 'a';\nexport const B = A;"),
    ("a.js", f"{ERRORS}module.exports = {{ A, B }};", f"{ERRORS}module.exports = {{ A, B: A }};"),
    ("a.js", f"{ERRORS}export {{ A, B }};", f"{ERRORS}export {{ A, A as B }};"),
    ("a.js", f"{ERRORS}exports.B = B;", f"{ERRORS}exports.B = exports.A;"),
    ("a.js", ERRORS, "class A extends Error {}\nconst B = class extends A {};"),
    ("a.js", ERRORS, "class A extends Error {}\nclass B extends (0, A) {}"),
    ("a.js", ERRORS, f"{ERRORS}Object.setPrototypeOf(A.prototype, B.prototype);"),
    (
        "a.go",
        'var ErrA = errors.New("a")\nvar ErrB = errors.New("b")',
        'var ErrA = errors.New("a")\nvar ErrB = errors.New("b")\n\nfunc init() {\n\tErrB = ErrA\n}',
    ),
]
UNMERGED = [
    (
        "a.js",
        "const TYPES = { jpg: 'image/jpeg', jpeg: 'image/jpg' };",
        "const TYPES = { jpg: 'image/jpeg', jpeg: 'image/jpeg' };",
    ),
    (
        "a.js",
        "const A = 'a';\nconst B = 'a';\nconst C = 'c';",
        "const A = 'a';\nconst B = 'a';\nconst C = 'd';",
    ),
    ("a.js", "const S = { A: 'a' };\nconst T = { B: 'b' };", "const S = { A: 'a' };\nconst T = { B: 'a' };"),
    ("a.js", f"{ERRORS}module.exports = {{ A, B }};", f"{ERRORS}module.exports = {{ A, B: B, old: A }};"),
    ("a.js", ERRORS, f"{ERRORS}Object.setPrototypeOf(A.prototype, Base.prototype);"),
    (
        "a.go",
        'var ErrA = errors.New("a")',
        'var ErrA = errors.New("a")\n\n// Deprecated: use ErrA.\nvar ErrB = ErrA',
    ),
    ("a.js", "const a = f(1);\nlet b = 2;", "const a = f(2);\nlet b = 3;"),
    ("a.js", "class A extends Base {}", "class A extends Other {}"),
    (
        "a.js",
        "const a = 1;\nfunction g(x) {\n  let b = 2;\n}",
        "const a = 1;\nfunction g(x) {\n  let b = a;\n}",
    ),
]
FAILURE = """type failure string

func (f failure) Error() string { return string(f) }

%s

var ErrA error = failure("a")
var ErrB error = failure("b")
"""
LOOSE_ERRORS = [
    "func (f failure) Is(other error) bool {\n\t_, ok := other.(failure)\n\treturn ok\n}",
    "func (f failure) Is(other error) bool {\n\treturn errors.As(other, &f)\n}",
    "func (f failure) Is(other error) bool {\n\treturn reflect.TypeOf(other) == reflect.TypeOf(f)\n}",
    'func (f failure) Is(other error) bool {\n\treturn fmt.Sprintf("%T", other) == "a.failure"\n}',
    "func (f failure) Is(other error) bool {\n\treturn len(other.Error()) > 0\n}",
    "func (f failure) Is(other error) bool {\n\tswitch other.(type) {\n\tcase failure:\n\t\treturn true\n"
    "\t}\n\treturn false\n}",
    "func (f failure) As(target any) bool {\n\t_, ok := target.(*failure)\n\treturn ok\n}",
    "func (f failure) Unwrap() error { return ErrB }",
    "func (f failure) Is(other error) bool { return other == ErrA || other == ErrB }",
    "func (f failure) Is(other error) bool { return strings.HasPrefix(other.Error(), f.Error()) }",
    "func (f failure) Unwrap() []error { return []error{ErrA, ErrB} }",
    "func (f failure) Is(other error) bool {\n\tsame, ok := other.(failure)\n"
    "\treturn ok && strings.HasPrefix(string(same), string(f))\n}",
]
EXACT_ERRORS = [
    "func (f failure) Is(other error) bool {\n\tsame, ok := other.(failure)\n\treturn ok && same == f\n}",
    "func (f failure) Is(other error) bool { return other == ErrA && f != nil }",
    "func (f failure) Is(other error) bool { return strings.EqualFold(other.Error(), f.Error()) }",
    "func (f failure) Unwrap() error { return f.cause }",
    'func (f failure) Is(other error) bool { return other == ErrA && strings.HasPrefix(string(f), "a") }',
]
MONEY = (
    "class Money {\n  equals(other) {\n"
    "    return this.amount === other.amount && this.currency === other.currency;\n  }\n"
    "  toJSON() {\n    return { amount: this.amount, currency: this.currency };\n  }\n"
    "  valueOf() {\n    return this.amount;\n  }\n}\n"
)
GO_MONEY = (
    "package a\n\nfunc (m Money) Equal(o Money) bool { return m.Amount == o.Amount && m.Unit == o.Unit }\n"
)
GO_SETS = (
    "package a\n\nfunc (s Set[T]) Equal(o Set[T]) bool { return s.n == o.n && s.m == o.m }\n\n"
    "func (b *Bag[T]) Equal(o *Bag[T]) bool { return b.n == o.n }\n\nfunc F() int { return 1 }\n"
)
GO_ROWS = "package a\n\nfunc (r rows) Less(i, j int) bool { return r[i].Name < r[j].Name }\n"
GO_SCALED = (
    "package a\n\nfunc (d Decimal) Cmp(o Decimal) int { return d.scale(o).value.Cmp(o.scale(d).value) }\n\n"
    "func pair(a, b Decimal) (Decimal, Decimal) { return a.scale(b), b.scale(a) }\n"
    "func first(a, b Decimal) (Decimal, Decimal) { return a.value, a.value }\n"
)
GO_PAIRED = "x, y := pair(d, o); return x.value.Cmp(y.value)"
CLASSES = (
    "export const A = class { equals(o) { return this.x === o.x; } };\n"
    "export const B = class { equals(o) { return this.x === o.x && this.y === o.y; } };\nexport const c = 1;\n"
)
WEAKENED = [
    ("a.js", MONEY, "this.amount === other.amount && ", ""),
    ("a.js", MONEY, "&&", "||"),
    ("a.js", MONEY, "this.amount === other.amount", "this.amount.toFixed(0) === other.amount.toFixed(0)"),
    ("a.js", MONEY, "return this.amount;", "return Math.round(this.amount);"),
    ("a.js", MONEY, "this.amount === other.amount", "other.amount === other.currency"),
    ("a.js", MONEY, "this.amount === other.amount", "this.amount !== undefined"),
    ("a.go", GO_MONEY, " && m.Unit == o.Unit", ""),
    ("a.go", GO_MONEY, "m.Amount == o.Amount", "m.Amount/10 == o.Amount/10"),
    ("a.go", GO_SETS, "s.n == o.n && s.m == o.m", "s.n == o.n"),
    ("a.go", GO_SCALED, "return d.scale(o).value.Cmp(o.scale(d).value)", GO_PAIRED.replace("pair", "first")),
]
KEPT = [
    ("a.go", GO_SCALED, "return d.scale(o).value.Cmp(o.scale(d).value)", GO_PAIRED),
    ("a.js", MONEY, "this.currency === other.currency", "this.currency === other.amount"),
    (
        "a.js",
        MONEY.replace("return", "return other !== null &&", 1),
        "other !== null",
        "other instanceof Money",
    ),
    ("a.js", MONEY, "this.amount === other.amount", "Object.is(this.amount, other.amount)"),
    ("a.js", MONEY, "this.amount === other.amount", "this.amount.getTime() === other.amount.getTime()"),
    ("a.js", MONEY, "amount: this.amount, ", ""),
    ("a.js", MONEY, "amount: this.amount", "amount: this.total"),
    ("a.js", MONEY, "return this.amount;", "return Number(this.amount);"),
    ("a.js", CLASSES, "c = 1", "c = 2"),
    ("a.go", GO_SETS, "return 1", "return 2"),
    ("a.go", GO_ROWS, "r[i].Name < r[j].Name", "r[i].Age < r[j].Age"),
    ("a.go", GO_MONEY, "m.Amount == o.Amount", "m.Amount.Equal(o.Amount)"),
    ("a.js", MONEY, "other.currency;", "other.currency && this.date === other.date;"),
    ("a.js", MONEY, "{ amount", "{ date: this.date, amount"),
    ("a.js", MONEY, "  valueOf", "  half() {\n    return this.amount / 2;\n  }\n  valueOf"),
    ("a.go", GO_MONEY, "m.Unit == o.Unit", "m.Unit == o.Unit && m.Date == o.Date"),
]
SHOP = "package shop\n\nfunc Label(n int) string {\n\treturn names[n]\n}\n"
SHOP_FILES = {
    "shop.go": SHOP.encode(),
    "names.go": b"package shop\n\nvar names = map[int]string{}\n",
    "shop_test.go": b'package shop\n\nvar cases = map[int]string{412: "x"}\n\nfunc TestLabel(t *testing.T) {}\n',
    "api_test.go": b"package shop_test\n\nvar samples = 3\n",
}
BORROWING = [
    "func init() {\n\tcases = nil\n}",
    "func init() {\n\tfor n := range cases {\n\t\tcases[n] = Label(n)\n\t}\n}",
    "func F(n int) string {\n\tif name, ok := cases[n]; ok {\n\t\treturn name\n\t}\n\treturn Label(n)\n}",
]
NOT_BORROWING = [
    "func F(cases []int) int {\n\treturn len(cases)\n}",
    "func F() int {\n\tcases := 3\n\treturn cases\n}",
    "type Table struct{ cases int }\n\nvar t = Table{cases: 3}.cases",
    "// cases are in the tests.\nvar text = `cases`",
    "var samples2 = samples",
]


@pytest.mark.parametrize("path", ["prices.js", "prices.ts"])
@pytest.mark.parametrize(("code", "change"), JAVASCRIPT_FINDINGS)
def test_a_new_use_of_the_machinery_in_javascript_is_reported(path: str, code: str, change: str) -> None:
    after = JAVASCRIPT + change + "\n"
    assert [(use.code, use.line) for use in find_file_capabilities(path, JAVASCRIPT, after)] == [(code, 4)]
    assert find_file_capabilities(path, after, after + "\n// more\n") == ()


@pytest.mark.parametrize("path", ["prices.js", "prices.ts"])
@pytest.mark.parametrize("change", JAVASCRIPT_HONEST)
def test_ordinary_javascript_is_not_reported(path: str, change: str) -> None:
    assert find_file_capabilities(path, JAVASCRIPT, JAVASCRIPT + change + "\n") == ()


def test_code_that_knows_its_terminal_may_ask_for_the_colours_of_this_one() -> None:
    before = "const width = () => (process.stdout.isTTY ? process.stdout.columns : 80);\n"
    ask = "const shows = () => process.stdout.isTTY && process.stdout.hasColors();\n"
    assert find_file_capabilities("a.js", before, before + ask) == ()
    (use,) = find_file_capabilities("a.js", before, before + ask.replace("stdout.has", "stderr.has"))
    assert use.name == "process.stderr.hasColors"


@pytest.mark.parametrize(("code", "imported", "change"), GO_FINDINGS)
def test_a_new_use_of_the_machinery_in_go_is_reported(code: str, imported: str, change: str) -> None:
    after = GO % (imported, change)
    assert [use.code for use in find_file_capabilities("a.go", GO % ("", ""), after)] == [code]
    assert find_file_capabilities("a.go", after, after + "\n// more\n") == ()


@pytest.mark.parametrize(("imported", "change"), GO_HONEST)
def test_ordinary_go_is_not_reported(imported: str, change: str) -> None:
    assert find_file_capabilities("a.go", GO % ("", ""), GO % (imported, change)) == ()


@pytest.mark.parametrize(("path", "before", "after"), MERGED)
def test_a_name_that_becomes_another_one_is_reported(path: str, before: str, after: str) -> None:
    head = "package a\n\n" if path.endswith(".go") else ""
    uses = find_file_capabilities(path, head + before + "\n", head + after + "\n")
    assert [use.code for use in uses] == ["loosens_comparison"]


@pytest.mark.parametrize(("path", "before", "after"), UNMERGED)
def test_other_new_values_are_not_reported(path: str, before: str, after: str) -> None:
    head = "package a\n\n" if path.endswith(".go") else ""
    assert find_file_capabilities(path, head + before + "\n", head + after + "\n") == ()


@pytest.mark.parametrize(("path", "before", "old", "new"), WEAKENED)
def test_a_comparison_that_compares_less_than_before_is_reported(
    path: str, before: str, old: str, new: str
) -> None:
    (use,) = find_file_capabilities(path, before, before.replace(old, new, 1))
    assert (use.code, use.name[-13:]) == ("loosens_comparison", "compares less")


@pytest.mark.parametrize(("path", "before", "old", "new"), KEPT)
def test_a_comparison_that_compares_more_than_before_is_not_reported(
    path: str, before: str, old: str, new: str
) -> None:
    assert find_file_capabilities(path, before, before.replace(old, new, 1)) == ()


@pytest.mark.parametrize("change", BORROWING)
def test_go_code_that_uses_what_only_its_tests_declare_is_reported(change: str) -> None:
    (use,) = find_change_capabilities(SHOP_FILES, {"shop.go": f"{SHOP}\n{change}\n"})
    assert (use.code, use.name) == ("reads_tests", "cases")


@pytest.mark.parametrize("change", NOT_BORROWING)
def test_go_names_of_the_same_spelling_are_not_reported(change: str) -> None:
    assert find_change_capabilities(SHOP_FILES, {"shop.go": f"{SHOP}\n{change}\n"}) == ()


@pytest.mark.parametrize("method", LOOSE_ERRORS)
def test_an_error_that_takes_another_one_for_itself_is_reported(method: str) -> None:
    uses = find_file_capabilities("a.go", GO % ("", ""), GO % ("", FAILURE % method))
    assert [use.code for use in uses] == ["loosens_comparison"]


@pytest.mark.parametrize("method", EXACT_ERRORS)
def test_an_error_that_compares_what_it_contains_is_not_reported(method: str) -> None:
    assert find_file_capabilities("a.go", GO % ("", ""), GO % ("", FAILURE % method)) == ()


def test_a_cast_object_of_typescript_is_no_object_of_the_language() -> None:
    change = "export function g(o: object) {\n  (o as any).n = 1;\n  (process as any).n = 1;\n}\n"
    assert [use.line for use in find_file_capabilities("a.ts", JAVASCRIPT, JAVASCRIPT + change)] == [6]


def test_an_error_that_asks_only_for_its_type_is_usual_if_there_are_no_several_of_them() -> None:
    change = (FAILURE % LOOSE_ERRORS[0]).replace('var ErrB error = failure("b")\n', "")
    assert find_file_capabilities("a.go", GO % ("", ""), GO % ("", change)) == ()
