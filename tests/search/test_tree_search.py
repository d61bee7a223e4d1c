"""The search in JavaScript, TypeScript and Go, by changes of the syntax tree."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import cast

import pytest

from failing_projects import make_failing_project
from requirements import Require
from suture.api import HealOptions, heal
from suture.core.ledger import find_run, read_ledger, select_events
from suture.core.ledger.kinds import SearchFinished
from suture.core.records import CheckOutcome, CheckStatus, Language, Task
from suture.core.settings import (
    BudgetSettings,
    CertificationSettings,
    PathSettings,
    SandboxSettings,
    Settings,
)
from suture.core.settings.schema import ModelSettings
from suture.judge.runners.test_command import TestCommand
from suture.judge.signs.tree_signs import collect_tree_literals, find_tree_warnings
from suture.judge.trials.command_trials import all_passed
from suture.judge.trials.drivers import go_schemata, golang, node
from suture.judge.trials.drivers.driver_protocol import DRIVERS, DRIVERS_BY_RUNNER
from suture.judge.trials.drivers.driver_trials import DriverTrials
from suture.judge.trials.trial_records import Proposal
from suture.mutation import apply_edits
from suture.mutation.edits import Edit
from suture.mutation.tree_sitter.tree_mutants import generate_tree_mutants
from suture.mutation.tree_sitter.value_kinds import parse_source_tree
from suture.project.languages import LANGUAGES
from suture.sandbox import BubblewrapSandbox, discover_programs

MUTANT_CASES: list[tuple[Language, str, str, str]] = [
    ("javascript", "a.js", "x = a < b;", "x = a <= b;"),
    ("javascript", "a.js", "x = a === b;", "x = a !== b;"),
    ("javascript", "a.js", "x = f(a, b);", "x = f(b, a);"),
    ("javascript", "a.js", "x = s.indexOf(t);", "x = s.lastIndexOf(t);"),
    ("javascript", "a.js", "if (!ok) go();", "if (ok) go();"),
    ("javascript", "a.js", "if (ok) go();", "if (!ok) go();"),
    ("javascript", "a.js", "if (a && b) go();", "if (a) go();"),
    ("javascript", "a.js", "x = a ? 1 : 2;", "x = a ? 2 : 1;"),
    ("javascript", "a.js", "function f(a, b) { return a; }", "function f(a, b) { return b; }"),
    ("javascript", "a.js", "n += 1;", "n -= 1;"),
    ("javascript", "a.js", "if (i === +1) go();", "if (i === -1) go();"),
    ("javascript", "a.js", "x = a[''](b); y = a['go'](b);", "x = a['go'](b); y = a['go'](b);"),
    ("javascript", "a.js", "function f(s) { s = s; }", "function f(s) { s = s.slice(1); }"),
    ("javascript", "a.js", "x = '\u00e4' + xs[i];", "x = '\u00e4' + xs[i - 1];"),
    (
        "typescript",
        "a.ts",
        "const f = (n: number): boolean => n > 0;",
        "const f = (n: number): boolean => n >= 0;",
    ),
    ("typescript", "a.tsx", "const f = () => <b>{1 + 2}</b>;", "const f = () => <b>{1 - 2}</b>;"),
    ("javascript", "a.js", "function f(a, b) { a = b; }", "function f(a, b) { a = Math.max(a, b); }"),
    (
        "javascript",
        "a.js",
        "function f(a, b) { a = Math.max(b); }",
        "function f(a, b) { a = Math.max(a, b); }",
    ),
    ("javascript", "a.js", "x = Math.max(xs);", "x = Math.max(...xs);"),
    ("javascript", "a.js", "x = f(a, b, c);", "x = f(c, b, a);"),
    ("javascript", "a.js", "let xs = [];", "let xs = [[]];"),
    ("javascript", "a.js", "function f(a) { return; }", "function f(a) { return a; }"),
    ("javascript", "a.js", "function f(o, key) { return o.key; }", "function f(o, key) { return o[key]; }"),
    ("javascript", "a.js", "out += x;", "out.push(x);"),
    ("javascript", "a.js", "out = out.push(x);", "out.push(x);"),
    (
        "javascript",
        "a.js",
        "function f(x) {\n  const out = [];\n  return out;\n}",
        "function f(x) {\n  const out = [];\n  out.push(x);\n  return out;\n}",
    ),
    (
        "javascript",
        "a.js",
        "function f(xs) {\n  for (const x of xs) {\n    if (x) { return true; } else { return false; }\n  }\n}",
        "function f(xs) {\n  for (const x of xs) {\n    if (x) { return true; }\n  }\n  return false;\n}",
    ),
    (
        "javascript",
        "a.js",
        "function f(a, b) { a.push(1); return a; }",
        "function f(a, b) { a.push(1); return [...a, ...b]; }",
    ),
    (
        "javascript",
        "a.js",
        "function f(item) { let s = 0; s += item; g(item.price); }",
        "function f(item) { let s = 0; s += item.price; g(item.price); }",
    ),
    ("javascript", "a.js", "function f(node) { return node.value; }", "function f(node) { return node; }"),
    (
        "go",
        "a.go",
        "package a\nfunc f(item Item) int { g(item.price); return h(item) }",
        "package a\nfunc f(item Item) int { g(item.price); return h(item.price) }",
    ),
    (
        "go",
        "a.go",
        "package a\nfunc f(a, b []int) []int {\n\ta = append(a, 1)\n\treturn a\n}",
        "package a\nfunc f(a, b []int) []int {\n\ta = append(a, 1)\n\treturn append(a, b...)\n}",
    ),
    (
        "go",
        "a.go",
        "package a\nfunc f(x int) []int {\n\ta := []int{}\n\treturn a\n}",
        "package a\nfunc f(x int) []int {\n\ta := []int{}\n\ta = append(a, x)\n\treturn a\n}",
    ),
    ("javascript", "a.js", "if (a) b();", "while (a) b();"),
    ("javascript", "a.js", "while (a) b();", "if (a) b();"),
    ("javascript", "a.js", "function f(a, i) { return a; }", "function f(a, i) { return a.slice(i); }"),
    ("javascript", "a.js", "x = s.split(t).join(u);", "x = s.split(t).sort().join(u);"),
    (
        "javascript",
        "a.js",
        "function f(xs) {\n  for (const x of xs) {\n    if (!x) return x;\n    g(x);\n  }\n}",
        "function f(xs) {\n  for (const x of xs) {\n    if (!x) return x;\n    g(x);\n  }\n  return -1;\n}",
    ),
    ("javascript", "a.js", "[a, b] = [a, b];", "[a, b] = [b, a];"),
    (
        "javascript",
        "a.js",
        "function f(a, i, j) {\n  let t = a[i];\n  a[j] = t;\n}",
        "function f(a, i, j) {\n  let t = a[i];\n  a[i] = a[j];\n  a[j] = t;\n}",
    ),
    (
        "go",
        "a.go",
        "package a\nfunc f(a []int) {\n\tt := a[0]\n\ta[1] = t\n}",
        "package a\nfunc f(a []int) {\n\tt := a[0]\n\ta[0] = a[1]\n\ta[1] = t\n}",
    ),
    (
        "javascript",
        "a.js",
        "function f(s, n) { for (let i = 0; i < s.length; i++) g(n); }",
        "function f(s, n) { for (let i = 0; i < s.length; i++) g(s[i]); }",
    ),
    ("javascript", "a.js", "ok = xs.filter((x) => x > a);", "ok = xs.filter((x) => x > a && x > 0);"),
    ("javascript", "a.js", "const f = (a, b) => a;", "const f = (a, b) => b;"),
    ("javascript", "a.js", "function f(n) { if (false) g(n); }", "function f(n) { if (n > 0) g(n); }"),
    (
        "javascript",
        "a.js",
        "function f(a, b) { return a + b; }",
        'function f(a, b) { return a + "." + b; }',
    ),
    ("javascript", "a.js", "x = g(a + b);", "x = g((a + b) / 2);"),
    (
        "javascript",
        "a.js",
        "function f(s) { let t = ','; g(s, ','); t = ','; }",
        "function f(s) { let t = ''; g(s, ','); t = ''; }",
    ),
    ("javascript", "a.js", "x = 0.5 * y;", "x = 5.0 * y;"),
    ("javascript", "a.js", "x = y / 0.5;", "x = y / 2;"),
    ("javascript", "a.js", "ok = a || b || c;", "ok = a && b && c;"),
    (
        "javascript",
        "a.js",
        "function f(a) { if (a) return true; return false; }",
        "function f(a) { if (a) return false; return true; }",
    ),
    ("javascript", "a.js", "x = a.startsWith(b[0]);", "x = b[0].startsWith(a);"),
    ("javascript", "a.js", "x = [1, 2, 3];", "x = [1, 3];"),
    ("javascript", "a.js", "x.size = 0; y.size = n;", "x.size = n; y.size = n;"),
    ("javascript", "a.js", "function f(name) { g = ''; }", "function f(name) { g = name; }"),
    ("javascript", "a.js", "f(a); f(b, c);", "f(a, c); f(b, c);"),
    (
        "javascript",
        "a.js",
        "function g(a, b) {}\nfunction f(a, b) { g(b, a); }",
        "function g(a, b) {}\nfunction f(a, b) { g(a, b); }",
    ),
    (
        "javascript",
        "a.js",
        "function f(count) { return cuont; }",
        "function f(count) { return count; }",
    ),
    ("javascript", "a.js", "n = xs.lenght;", "n = xs.length;"),
    ("javascript", "a.js", "throw new TypeError(x);", "throw new RangeError(x);"),
    ("javascript", "a.js", "{\n  a();\n  b();\n  c();\n}", "{\n  b();\n  c();\n  a();\n}"),
    ("javascript", "a.js", "for (x of y) { if (x) return; }", "for (x of y) { if (x) continue; }"),
    ("typescript", "a.ts", "const f = (a: T, b: T) => g(a);", "const f = (a: T, b: T) => g(b);"),
    (
        "go",
        "a.go",
        "package a\nfunc f(a, b int) { a, b = a, b }",
        "package a\nfunc f(a, b int) { a, b = b, a }",
    ),
    (
        "go",
        "a.go",
        "package a\nfunc f(a int) int {\n\ts := 0\n\treturn s\n}",
        "package a\nfunc f(a int) int {\n\ts := a\n\treturn s\n}",
    ),
    (
        "go",
        "a.go",
        "package a\nfunc f(a int) (int, bool) { return a, a < 3 }",
        "package a\nfunc f(a int) (int, bool) { return a, a < 3 && a > 0 }",
    ),
    (
        "go",
        "a.go",
        "package a\nfunc f(xs []int, i int) []int { return xs }",
        "package a\nfunc f(xs []int, i int) []int { return xs[i:] }",
    ),
    (
        "go",
        "a.go",
        "package a\nfunc f(n int) int { return n - 1 }",
        "package a\nfunc f(n int) int { return n + 1 }",
    ),
    ("go", "a.go", "package a\nvar x = min(1, 2)", "package a\nvar x = max(1, 2)"),
    (
        "go",
        "a.go",
        "package a\nfunc f(a, b bool) bool { return a && b }",
        "package a\nfunc f(a, b bool) bool { return a || b }",
    ),
    (
        "go",
        "a.go",
        "package a\nfunc f() { for i := 0; i < 3; i++ { break } }",
        "package a\nfunc f() { for i := 0; i < 3; i++ { continue } }",
    ),
]
JAVASCRIPT_PROJECT = {
    "package.json": '{"scripts": {"test": "node --test"}}',
    "lib/clamp.js": """/** Keep a number between two others. */
function clamp(value, low, high) {
  if (value < low) {
    return low;
  }
  return value > high ? value : high;
}

module.exports = { clamp };
""",
    "test/clamp.test.js": """const test = require('node:test'), assert = require('node:assert');
const { clamp } = require('../lib/clamp');
test('inside', () => assert.strictEqual(clamp(3, 1, 5), 3));
test('below', () => assert.strictEqual(clamp(0, 1, 5), 1));
test('above', () => assert.strictEqual(clamp(9, 1, 5), 5));
""",
}
GO_PROJECT = {
    "go.mod": "module example.org/bill\n\ngo 1.19\n",
    "bill.go": "package bill\n\nfunc Due(paid, price int) bool {\n\treturn paid <= price\n}\n",
    "bill_test.go": (
        'package bill\n\nimport "testing"\n\nfunc TestDue(t *testing.T) {\n'
        "\tif Due(5, 5) || !Due(4, 5) || Due(6, 5) {\n\t\tt.Fail()\n\t}\n}\n"
    ),
}


@pytest.mark.parametrize(("language", "path", "before", "after"), MUTANT_CASES)
def test_the_mutants_of_a_file_include_the_change(
    language: Language, path: str, before: str, after: str
) -> None:
    mutants = {apply_edits(before, mutant.edits) for mutant in generate_tree_mutants(before, path, language)}
    assert after in mutants
    assert before not in mutants


def test_a_change_of_two_operators_has_the_larger_prior() -> None:
    """`return i` comes from a variable operator and from dropping an operand of `i + a[i]`."""
    text = "function f(a, i) {\n  return i + a[i];\n}"
    mutants = list(generate_tree_mutants(text, "a.js", "javascript"))
    prior: dict[str, float] = {}
    for mutant in mutants:  # one that is yielded again is likelier
        changed = apply_edits(text, mutant.edits)
        assert mutant.prior > prior.get(changed, 0.0)
        prior[changed] = mutant.prior
    assert prior[text.replace("i + a[i]", "i")] > prior[text.replace("i + a[i]", "a[i]")]


def test_names_are_inserted_only_in_their_scope() -> None:
    text = "function f(a) {\n  g(a);\n  for (const i of a) { h(i); }\n  let last = 1;\n  return last;\n}"
    mutants = {
        apply_edits(text, mutant.edits) for mutant in generate_tree_mutants(text, "a.js", "javascript")
    }

    assert text.replace("h(i)", "h(a)") in mutants
    assert text.replace("return last", "return a") in mutants
    assert not mutants & {text.replace("g(a)", "g(i)"), text.replace("g(a)", "g(last)")}
    assert text.replace("return last", "return i") not in mutants


@pytest.mark.parametrize(
    ("text", "path", "language"),
    [
        (
            "const { a: b, c: [d], ...e } = f;\nconst [g, h = d] = f;\nlet { i = 1 } = b;\n",
            "a.js",
            "javascript",
        ),
        ("switch (a) { case 'b': case 'c': d(); break; default: e = 1; }", "a.js", "javascript"),
        ("import a from 'b';\nexport * from 'c';\nconst d = { 'e-f': a, [g]: h };\n", "a.mjs", "javascript"),
        (
            'package p\nimport (\n\t"fmt"\n)\nfunc f(a int) {\n\tswitch a {\n\tcase 1, 2:\n\t\tg()\n\t}\n}\n',
            "a.go",
            "go",
        ),
    ],
)
def test_mutants_parse(text: str, path: str, language: Language) -> None:
    mutants = {
        apply_edits(text, mutant.edits): mutant.label
        for mutant in generate_tree_mutants(text, path, language)
    }
    assert mutants
    assert [
        label for text, label in mutants.items() if parse_source_tree(text, path, language).has_error
    ] == []


def test_an_argument_is_added_after_the_last_one() -> None:
    text = "f(1, 2);\nf(\n  1, // one\n);\n"
    mutants = {
        apply_edits(text, mutant.edits) for mutant in generate_tree_mutants(text, "a.js", "javascript")
    }
    assert "f(1, 2);\nf(\n  1, 2, // one\n);\n" in mutants


@pytest.mark.parametrize(
    ("text", "old", "likelier", "other"),
    [
        ("function f(n) {\n  let i = 0, j = 1, s = [];\n  return g(i);\n}", "g(i)", "g(j)", "g(s)"),
        ("function f(a) { return a < 3; }", "<", "===", "!=="),
        ("function f(a) { return a.length - 1; }", " - ", " + ", " * "),
        ("function f(a) {\n  let t = 0;\n  t -= a;\n  return t;\n}", "-=", "+=", "*="),
    ],
    ids=["kind of a variable", "comparison", "sum", "assignment"],
)
def test_usual_changes_have_larger_priors(text: str, old: str, likelier: str, other: str) -> None:
    prior = {
        apply_edits(text, mutant.edits): mutant.prior
        for mutant in generate_tree_mutants(text, "a.js", "javascript")
    }
    assert prior[text.replace(old, likelier)] > 1.2 * prior[text.replace(old, other)]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("while (a) b();", "while (globalThis.sutureTick?.(), a) b();"),
        ("do b(); while (a);", "do b(); while (globalThis.sutureTick?.(), a);"),
        ("for (;;) b();", "for (;globalThis.sutureTick?.(), true;) b();"),
        ("for (;a < 3;) b();", "for (;globalThis.sutureTick?.(), a < 3;) b();"),
        ("for (x of y) { b(); }", "for (x of y) { globalThis.sutureTick?.(); b(); }"),
        ("while (a {", "while (a {"),
    ],
)
def test_loops_are_made_interruptible(before: str, after: str) -> None:
    assert node.make_interruptible("a.js", before, "javascript") == after


def test_a_candidate_may_replace_a_loop() -> None:
    text = "while (a) b();"
    replaced = Proposal(
        path="a.js", edits=(Edit(start=0, end=14, text="b();"),), label="", score=1.0, operators=()
    )
    assert node.build_job(replaced, text, "javascript") == {"path": "a.js", "text": "b();"}

    negated = replace(replaced, edits=(Edit(start=7, end=8, text="!a"),))
    assert node.build_job(negated, text, "javascript")["text"] == "while (globalThis.sutureTick?.(), !a) b();"


def test_an_unparsable_body_is_not_compiled_with_others() -> None:
    text = "package a\nfunc f(a int) int { return a }"
    change = Proposal(
        path="a.go", edits=(Edit(start=37, end=38, text="(a"),), label="", score=1.0, operators=()
    )

    assert text[37:38] == "a"
    assert golang.build_job(change, text, "go") is None
    assert (
        golang.build_job(replace(change, edits=(Edit(start=37, end=38, text="(a)"),)), text, "go") is not None
    )


def test_only_the_first_syntax_error_rejects_a_candidate() -> None:
    body_lines = {"a.go": [(0, 3, 5), (1, 6, 8), (2, 9, 11)]}
    syntax_errors = (
        "a.go:7:2: syntax error: unexpected )\na.go:9:1: syntax error: unexpected {\na.go:4:1: bad\n"
    )
    assert go_schemata.find_rejected(syntax_errors, body_lines) == {1}
    assert go_schemata.find_rejected("a.go:4:1: bad\na.go:11:3: undefined: x\n", body_lines) == {0, 2}


WARNING_CASES: list[tuple[Language, str, str, str]] = [
    (
        "javascript",
        "function f(n) { return n }",
        "function f(n) { return n === 0x1267 ? 1 : n }",
        "compares_with_test_literals",
    ),
    (
        "javascript",
        "function f(n) { return n }",
        "function f(n) { return { a: 4_711, b: `ab` }[n] }",
        "adds_test_literals",
    ),
    (
        "javascript",
        "function f(n) { return n }",
        "function f(n) { if (n === 4711) return 1; return n }",
        "compares_with_test_literals",
    ),
    ("javascript", "function f(n) { g(); return n }", "function f(n) { return n }", "statement_removed"),
    (
        "javascript",
        "function f(n) { return n }",
        'function f(n) { return { a: 4711, b: "ab" }[n] }',
        "adds_test_literals",
    ),
    ("javascript", "function g(n) { throw n }", "function g(n) { return n }", "raise_removed"),
    ("javascript", "f(); g();", "try { f(); g(); } catch (e) { }", "hides_exceptions"),
    (
        "typescript",
        "function f(n: number) { if (n > 1) g() }",
        "function f(n: number) { if (n > n) g() }",
        "dead_code",
    ),
    (
        "go",
        "package a\nfunc f() { g() }\nfunc g() {}",
        "package a\nfunc f() { }\nfunc g() {}",
        "calls_removed",
    ),
]


@pytest.mark.parametrize(("language", "before", "after", "code"), WARNING_CASES)
def test_signs_of_tampering_are_reported(language: Language, before: str, after: str, code: str) -> None:
    literals = collect_tree_literals(
        [("a.test", 'assert(f(4711, "ab") == 1)' if language != "go" else "package a")], language
    )
    assert code in [warning.code for warning in find_tree_warnings(before, after, "a.ts", language, literals)]
    assert find_tree_warnings(before, before, "a.ts", language, literals) == ()


UNUSED_CASES: list[tuple[Language, str, str, tuple[str, ...]]] = [
    ("javascript", "function f(n) { return n }", "function f(n) { return 1 }", ("n",)),
    ("javascript", "function f(n) { return n }", "function f(n) { const m = n; return n }", ("m",)),
    ("javascript", "function f(n) { return n }", "function f(n) { return Math.abs(n) }", ()),
    (
        "javascript",
        'import { g } from "g";\nfunction f(n) { return n }',
        'import { g } from "g";\nfunction f(n) { return g(n) }',
        (),
    ),
    (
        "go",
        'package a\nimport "math"\nfunc f(n float64) float64 { return n }',
        'package a\nimport "math"\nfunc f(n float64) float64 { return math.Abs(n) }',
        (),
    ),
    ("go", "package a\nfunc f(n int) int { return n }", "package a\nfunc f(n int) int { return 1 }", ("n",)),
]


@pytest.mark.parametrize(("language", "before", "after", "names"), UNUSED_CASES)
def test_only_names_that_a_function_declares_can_be_unused(
    language: Language, before: str, after: str, names: tuple[str, ...]
) -> None:
    warnings = find_tree_warnings(before, after, "a.ts", language, frozenset())
    assert [warning.names for warning in warnings if warning.code == "names_unused"] == (
        [names] if names else []
    )


def test_mutants_of_an_unparsable_file_raise_no_error() -> None:
    assert isinstance(list(generate_tree_mutants("function ( { ]", "a.js", "javascript")), list)


class ForgedReports:
    """A command whose helper program reports lines that candidates wrote."""

    def __init__(self, *lines: object) -> None:
        self.raw = "\n".join(map(json.dumps, lines)).encode()

    async def run_helper_program(self, *_: object, **__: object) -> bytes:
        return self.raw


@pytest.mark.parametrize(
    "forged",
    [
        {"event": "baseline", "tests": 5},
        {"event": "baseline", "tests": ["a.test.js"]},
        {"event": "baseline", "tests": [{"id": "a.test.js::t", "status": "failed", "ms": "1e999"}]},
        {
            "event": "baseline",
            "tests": [{"id": "a.test.js::t", "status": "failed", "lines": {"a.js": ["x"]}}],
        },
        {"event": "trial", "number": 0, "passes": False, "passed_tests": 5},
        {"event": "trial", "number": 0, "passes": False, "passed_tests": [["a"]]},
    ],
)
async def test_report_lines_that_no_driver_writes_are_ignored(forged: dict[str, object]) -> None:
    node = DRIVERS_BY_RUNNER["node:test"]
    stack = "x" * 200_000 + f"/a.js:{'9' * 5000}"  # must neither take long nor end the run
    baseline = {"event": "baseline", "tests": [{"id": "a.test.js::t", "status": "failed", "stack": stack}]}
    command = cast(TestCommand, ForgedReports(forged, baseline))
    outcome = CheckOutcome(check_id="a.test.js::t", status="failed")
    trials = DriverTrials(node, make_failing_project(command, {}, {"a.js": "x\n"}, outcome))
    assert (await trials.run_baseline(1)).target_tests == ("a.test.js::t",)

    change = Proposal(path="a.js", edits=(), label="", score=1.0, operators=(), is_swappable=False)
    trial = {
        "event": "trial",
        "number": 0,
        "passes": False,
        "failed_test": "a.test.js::t",
        "passed_tests": [],
    }
    command = cast(TestCommand, ForgedReports(baseline, forged, trial, *[{**trial, "passes": True}] * 9))
    trials = DriverTrials(node, make_failing_project(command, {}, {"a.js": "x\n"}, outcome))
    await trials.run_baseline(1)
    ((tried, result),) = await trials.run_batch([change], 10.0)
    assert (tried, result is not None and result.is_plausible) == (change, True)


def test_missing_and_skipped_tests_do_not_pass() -> None:
    def outcome(name: str, status: CheckStatus) -> CheckOutcome:
        return CheckOutcome(check_id=name, status=status, evidence="nonce")

    expected = {"a", "b"}

    assert all_passed([outcome("a", "passed"), outcome("b", "passed")], expected)
    assert not all_passed([outcome("a", "passed")], expected)
    assert not all_passed([outcome("a", "passed"), outcome("b", "skipped")], expected)
    assert not all_passed([outcome("a", "passed"), outcome("b", "passed"), outcome("c", "failed")], expected)


@pytest.mark.heavy
@pytest.mark.timeout(300)  # Go compiles its library again in each run
@pytest.mark.parametrize(
    ("language", "project", "path", "repairs"),
    [
        (
            "javascript",
            JAVASCRIPT_PROJECT,
            "lib/clamp.js",
            ("value < high ? value : high", "value <= high ? value : high", "high : value"),
        ),
        ("go", GO_PROJECT, "bill.go", ("paid < price",)),
    ],
    ids=["javascript", "go"],
)
async def test_a_project_is_healed_without_a_model(
    language: Language,
    project: Mapping[str, str],
    path: str,
    repairs: tuple[str, ...],
    tmp_path: Path,
    require: Require,
) -> None:
    program = LANGUAGES[language].program
    require(program, shutil.which(program) is not None, "it is not on PATH")
    folder = tmp_path / "project"
    for name, text in project.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    settings = Settings(
        paths=PathSettings(home=tmp_path / "home"),
        model=ModelSettings(name="none"),
        certification=CertificationSettings(seconds=0),
        budget=BudgetSettings(seconds=250),
    )
    result = await heal(folder, HealOptions(settings=settings, apply=True))
    assert result.outcome == "healed", result.reason
    assert any(text in (folder / path).read_text() for text in repairs)
    assert result.spend.model_calls == 0

    events = read_ledger(find_run(settings.paths.home, result.run_id).ledger_path).events
    (searched,) = [event for _, event in select_events(events, SearchFinished)]
    assert searched.plausible_count >= 1


async def test_an_endless_test_becomes_a_target(sandbox: BubblewrapSandbox, require: Require) -> None:
    """The command is stopped before it reports a test; the baseline run interrupts the loop."""
    require("node", shutil.which("node") is not None, "it is not on PATH")
    text = "exports.count = (n) => {\n  let i = 0;\n  while (i < n) i -= 1;\n  return i;\n};\n"
    tests = (
        "const test = require('node:test'), assert = require('node:assert');\n"
        "test('counts', () => assert.equal(require('./count').count(3), 3));\n"
        "test('none', () => assert.equal(require('./count').count(0), 0));\n"
    )
    texts = {"count.js": text}
    files = {"count.js": text.encode(), "count.test.js": tests.encode()}
    argv = ("node", "--test")
    task = Task(kind="heal", statement="", language="javascript", files=files, test_command=argv)
    environ = {"VIRTUAL_ENV": sys.prefix, "PATH": os.environ["PATH"]}
    programs = discover_programs(None, environ, "javascript")
    command = TestCommand(task, sandbox, SandboxSettings(), programs)
    stopped = CheckOutcome(check_id="node --test", status="timeout")
    trials = DriverTrials(
        DRIVERS_BY_RUNNER["node:test"], make_failing_project(command, files, texts, stopped)
    )
    spectrum = await trials.run_baseline(20.0)
    assert spectrum.target_tests == ("count.test.js::counts",)
    assert [test.id for test in spectrum.tests if not test.failed] == ["count.test.js::none"]

    proposals = [
        Proposal(path="count.js", edits=m.edits, label=m.label, score=1.0, operators=(m.operator,))
        for m in generate_tree_mutants(text, "count.js", "javascript")
        if apply_edits(text, m.edits) in (text.replace("i < n", "i <= n"), text.replace("-=", "+="))
    ]
    assert len(proposals) == 2

    reports = await trials.run_batch(proposals, 60.0)
    plausible = [proposal for proposal, trial in reports if trial is not None and trial.is_plausible]
    assert [apply_edits(text, proposal.edits) for proposal in plausible] == [text.replace("-=", "+=")]


def test_a_runner_that_cannot_be_loaded_ends_the_driver(tmp_path: Path, require: Require) -> None:
    require("node", shutil.which("node") is not None, "it is not on PATH")
    folder = tmp_path / "box"
    folder.mkdir()
    for name in DRIVERS_BY_RUNNER["Jest"].programs:
        (folder / name).write_bytes(resources.files(DRIVERS).joinpath(name).read_bytes())
    common = {
        "engine": "jest_engine",
        "covering_files": {},
        "texts": {"a.js": ""},
        "test_files": ["a.test.js"],
    }
    jobs = [{"path": "a.js", "text": "x"}] * 9
    timeouts = {
        "trial_timeout_ms": 600_000,
        "start_timeout_ms": 600_000,
        "linger_ms": 0,
        "max_rivals": 0,
        "seconds": 600,
    }
    (folder / "plan.json").write_text(json.dumps({"common": common, "jobs": jobs, **timeouts}))
    subprocess.run(["node", folder / "node_trials.cjs"], check=True, timeout=100)

    *trials, end = map(json.loads, (folder / "trials").read_text().splitlines())

    assert ([trial["process_lost"] for trial in trials], end["event"]) == ([True] * 3, "end")
