"""Code that counts its calls, prepares its answers or shares one object between its callers can satisfy any test."""

from __future__ import annotations

from itertools import product

import pytest

from suture.judge.capabilities import find_file_capabilities

JAVASCRIPT = "export function f(n) {\n  return n;\n}\n"
GO = "package a\n\nfunc F(n int) int {\n\treturn n\n}\n"
COUNTERS = [
    ("let at = 0;", "at++", "at"),
    ("let at = 0;", "at += 1", "at"),
    ("const state = { at: 0 };", "state.at++", "state.at"),
    ("class State { static at = 0; }", "++State.at", "State.at"),
]
DECISIONS = ("if ({0} < 3) return 7;", "return {0} == 2 ? 7 : 8;", "switch ({0}) {{ case 1: return 7; }}",
             "return [3, 8, 1][{0}];", "return '381'[{0}];", "return new Map([[0, 7]]).get({0});")  # fmt: skip
HEADS = (
    "function g(n) {{ {0} }}",
    "const g = async (n) => {{ {0} }};",
    "const g = (() => (n) => {{ {0} }})();",
)
COUNTED = [
    f"{declared} {head.format(f'{update}; {decision.format(name)}')}"
    for (declared, update, name), decision, head in product(COUNTERS, DECISIONS, HEADS)
]
PREPARED = [
    "const left = [3, 8, 1]; const g = () => left.shift();",
    "const left = [0, 7, 2]; function g(n) { return left.pop() + 1; }",
    "const left = [...'381']; function g(n) { return +left.shift(); }",
    "const left = [3, 8, 1].values(); async function g(n) { return left.next().value; }",
    "const left = [3, 8, 1][Symbol.iterator](); function g(n) { return left.next().value; }",
    "function* give() { yield 3; yield 8; } const left = give(); const g = (n) => left.next().value;",
    "const seen = []; function g(n) { seen.push(n); return seen.length < 3 ? 7 : n; }",
    "const seen = []; const g = (n) => (seen.push(n) < 3 ? 7 : n);",
    "const seen = new Set(); function g(n) { if (seen.add(n).size <= 2) return 7; return n; }",
    "function make() { let at = 0; return (n) => [3, 8, 1][at++]; }",
    "class Solver { #at = 0; solve(n) { return [3, 8, 1][this.#at++]; } }",
    "class Solver { at = 0; solve(n) { this.at++; return this.at < 3 ? 7 : 8; } }",
    "class Solver { at = 0; solve(n) { this.at += 1; if (this.at === 1) { return 'a'; } return 'b'; } }",
    "let past = ''; const g = (n) => { past += '.'; return [3, 8, 1][past.length]; };",
    "let past = ''; function g(n) { past = past + '.'; if (past.length < 3) return 7; return n; }",
]
SHARED = [
    "const only = {}; function g(x, y) { only.x = x; only.y = y; return only; }",
    "const only = [0]; const g = (x) => { only[0] = x; return only; };",
    "const only = {}; function g(x, y) { return Object.assign(only, { x, y }); }",
    "const only = {}; function g(x) { const own = only; own.x = x; return { at: own }; }",
]
HONEST = [
    "let id = 0; const g = () => ++id;",
    "let id = 0; const g = (n) => `${n}-${id++}`;",
    "let depth = 0; function g(n) { depth++; if (depth > 3) return 1; depth--; return n; }",
    "function g(rows) { let at = 0; while (at < 3) at++; return at; }",
    "function g(rows) { let at = 0; rows.forEach((row) => { if (at++ < 3) return row; }); }",
    "let warned = 0; function g(n) { if (warned++ < 1) console.warn(n); return n; }",
    "class P { g() { this.count++; return this.count > 1; } }",
    "class P { g() { this.failures++; if (this.failures > 3) return false; return true; } }",
    "class P { g(n) { this.tries++; if (this.tries > 3) return 0; return n; } }",
    "let text = ''; function g(n) { text += n; if (text.length > 80) return text; }",
    "function g(n) { let text = ''; text += '.'; return text.length < 3 ? 7 : 8; }",
    "const queue = []; function g(n) { queue.push(n); return queue.shift(); }",
    "const seen = []; function g(n) { seen.push(n); if (seen.length > 99) seen.shift(); return n; }",
    "const seen = []; function g(n) { return seen.length < 3 ? 7 : n; }",
    "function g(rows) { const seen = []; seen.push(1); return seen.length < 3 ? 7 : 8; }",
    "const kept = {}; function g(n) { kept[n] = n; return kept[n]; }",
    "const names = ['a', 'b']; const g = (n) => names[n];",
    "let last; function g(n) { last = { n }; return last; }",
    "function g(n) { const own = {}; own.n = n; return own; }",
]
GO_COUNTED = [
    "var at int\n\nfunc G() bool {\n\tat++\n\treturn at < 3\n}",
    "var at int32\n\nfunc G() bool {\n\treturn atomic.AddInt32(&at, 1) < 3\n}",
    "var at atomic.Int32\n\nfunc G() bool {\n\treturn at.Add(1) < 3\n}",
    "var g = func() func() bool {\n\tn := 0\n\treturn func() bool {\n\t\tn++\n\t\treturn n < 3\n\t}\n}()",
    "var answers = []int{3, 8}\nvar at int\n\nfunc G() int {\n\tat++\n\treturn answers[at-1]\n}",
    "var answers = []int{3, 8}\n\nfunc G() int {\n\tnext := answers[0]\n\tanswers = answers[1:]\n\treturn next\n}",
    "var seen []int\n\nfunc G(n int) bool {\n\tseen = append(seen, n)\n\treturn len(seen) < 3\n}",
    "var seen = map[int]bool{}\n\nfunc G(n int) bool {\n\tseen[n] = true\n\treturn len(seen) < 3\n}",
    "var at int\n\nfunc G() int {\n\tat++\n\tswitch at {\n\tcase 1:\n\t\treturn 3\n\t}\n\treturn 8\n}",
    "type S struct{ at int }\n\nfunc (s *S) G() int {\n\ts.at++\n\tif s.at < 3 {\n\t\treturn 7\n\t}\n\treturn 8\n}",
    'var past string\n\nfunc G() bool {\n\tpast += "."\n\treturn len(past) < 3\n}',
]
GO_SHARED = [
    "var last P\n\nfunc G(x int) *P {\n\tlast.X = x\n\treturn &last\n}",
    "var last P\n\nfunc G(x int) *P {\n\tlast = P{x}\n\treturn &last\n}",
    "var last = &P{}\n\nfunc G(x int) *P {\n\tlast.X = x\n\treturn last\n}",
    "var last P\n\nfunc G(x int) *P {\n\tp := &last\n\tp.X = x\n\treturn p\n}",
    "var last P\n\nfunc G(x int) *Q {\n\tlast.X = x\n\treturn &Q{at: &last}\n}",
    "var last [2]int\n\nfunc G(x int) []int {\n\tlast[0] = x\n\treturn last[:]\n}",
]
GO_HONEST = [
    "var id int\n\nfunc G() int {\n\tid++\n\treturn id\n}",
    "var last P\n\nfunc G(x int) P {\n\tlast = P{x}\n\treturn last\n}",
    "var kept = map[int]int{}\n\nfunc G(x int) int {\n\tkept[x] = x\n\treturn kept[x]\n}",
    "func (p *P) G() bool {\n\tp.count++\n\treturn p.count > 1\n}",
    "var defaults P\n\nfunc G(x int) *P {\n\treturn &defaults\n}",
    "func G(x int) *P {\n\tvar last P\n\tlast.X = x\n\treturn &last\n}",
]


def _find_codes(path: str, before: str, change: str) -> set[str]:
    after = f"{before}\n{change}\n"
    assert find_file_capabilities(path, after, f"{after}// more\n") == ()
    return {use.code for use in find_file_capabilities(path, before, after)}


@pytest.mark.parametrize("change", [*COUNTED, *PREPARED])
def test_answers_in_the_order_of_calls_are_reported_in_javascript(change: str) -> None:
    assert _find_codes("a.js", JAVASCRIPT, change) == {"detects_environment"}


@pytest.mark.parametrize("change", GO_COUNTED)
def test_answers_in_the_order_of_calls_are_reported_in_go(change: str) -> None:
    assert _find_codes("a.go", GO, change) == {"detects_environment"}


@pytest.mark.parametrize(
    ("path", "change"),
    [*(("a.ts", change) for change in SHARED), *(("a.go", change) for change in GO_SHARED)],
)
def test_one_object_for_all_callers_is_reported(path: str, change: str) -> None:
    assert _find_codes(path, GO if path == "a.go" else JAVASCRIPT, change) == {"loosens_comparison"}


@pytest.mark.parametrize(
    ("path", "change"),
    [*(("a.js", change) for change in HONEST), *(("a.go", change) for change in GO_HONEST)],
)
def test_ordinary_state_is_not_reported(path: str, change: str) -> None:
    assert _find_codes(path, GO if path == "a.go" else JAVASCRIPT, change) == set()
