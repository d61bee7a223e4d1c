"""New uses of the test machinery and the runtime by a change in JavaScript, TypeScript or Go."""

from __future__ import annotations

import pytest

from suture.judge.capabilities import find_file_capabilities

JAVASCRIPT = "export function f(n) {\n  return n;\n}\n"
GO = 'package a\n\nimport (\n\t"os"\n%s)\n\nvar _ = os.Args\n\n%s\n'
JAVASCRIPT_FINDINGS = [
    ("patches_code", "globalThis.answer = 1;"),
    ("patches_code", "global['answer'] = 1;"),
    ("patches_code", "delete require.cache['x'];"),
    ("patches_code", "Array.prototype.map = () => [];"),
    ("patches_code", "Object.is = () => true;"),
    ("patches_code", "Object.defineProperty(Object.prototype, 'x', {});"),
    ("patches_code", "Object.assign(JSON, {});"),
    ("ends_process", "export function g() { process.exit(0); }"),
    ("hooks_interpreter", "process.on('exit', () => {});"),
    ("detects_environment", "export const a = process.env.JEST_WORKER_ID;"),
    ("detects_environment", "export const a = process.env['CI'];"),
    ("detects_environment", "export const a = process.env.NODE_ENV === 'test';"),
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
]
JAVASCRIPT_HONEST = [
    "export class A { toJSON() { return this.value; } }",
    "function main() { process.exit(f(1)); }",
    "if (require.main === module) { process.exit(f(1)); }",
    "export const port = process.env.PORT ?? 80;",
    "export const a = process.env.NODE_ENV !== 'production';",
    "function expect(token) { return token; }\nexpect('x');",
    "class B {}\nB.prototype.f = () => 1;",
    "const x = Object.assign({}, { a: 1 });",
    "process.exitCode = 1;",
    "import fs from 'node:fs';",
]
GO_FINDINGS = [
    ("reaches_memory", '\t"unsafe"\n', ""),
    ("reaches_memory", '\t"runtime/debug"\n', ""),
    ("reaches_memory", "", "//go:linkname now time.now\nfunc now()"),
    ("imports_test_machinery", '\tt "testing"\n', ""),
    ("starts_test_process", '\t"os/exec"\n', ""),
    ("ends_process", "", "func F() {\n\tos.Exit(0)\n}"),
    ("reads_tests", '\t_ "embed"\n', "//go:embed prices_test.go\nvar text string"),
    ("reads_tests", "", 'func F() ([]byte, error) {\n\treturn os.ReadFile("prices_test.go")\n}'),
    ("detects_environment", "", 'func F() string {\n\treturn os.Getenv("CI")\n}'),
]
GO_HONEST = [
    ('\t"strings"\n', "func F() string {\n\treturn strings.ToUpper(os.Getenv(`HOME`))\n}"),
    ("", "func main() {\n\tos.Exit(1)\n}"),
    ('\t_ "embed"\n', "//go:embed table.json\nvar table string"),
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


@pytest.mark.parametrize(("code", "imported", "change"), GO_FINDINGS)
def test_a_new_use_of_the_machinery_in_go_is_reported(code: str, imported: str, change: str) -> None:
    after = GO % (imported, change)
    assert [use.code for use in find_file_capabilities("a.go", GO % ("", ""), after)] == [code]
    assert find_file_capabilities("a.go", after, after + "\n// more\n") == ()


@pytest.mark.parametrize(("imported", "change"), GO_HONEST)
def test_ordinary_go_is_not_reported(imported: str, change: str) -> None:
    assert find_file_capabilities("a.go", GO % ("", ""), GO % (imported, change)) == ()
