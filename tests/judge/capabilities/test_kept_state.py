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
    "let at = 0; function g(n) { if (at++ < 3) return 7; return n; }",
    "function make() { let at = 0; return (n) => [3, 8, 1][at++]; }",
    "const g = (() => { let at = 0; return (n) => (++at < 3 ? 7 : n); })();",
    "class Solver { #at = 0; solve(n) { return [3, 8, 1][this.#at++]; } }",
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
    "class Retry { delay() { this.tries++; return this.tries < 3 ? 1000 : 60000; } }",
    "class Retry { delay() { this.tries += 1; if (this.tries < 3) { return 1000; } return 60000; } }",
    "class Breaker { fail() { this.failures++; return this.failures >= 5 ? 'open' : 'closed'; } }",
    "class Hangman { miss() { this.misses++; if (this.misses === 6) return 'lost'; return 'playing'; } }",
    "class Board { mark() { this.turn++; return this.turn % 2 === 0 ? 'X' : 'O'; } }",
    "class Pages { next() { this.page++; return this.page > 10 ? 'last' : 'more'; } }",
    "class Quota { take() { return ++this.used <= 100 ? 'granted' : 'exceeded'; } }",
    "class Wizard { next() { this.step++; switch (this.step) { case 1: return 'address'; default: return 'done'; } } }",
    "const STEPS = ['start', 'pay', 'done']; class Wizard { next() { this.at++; return STEPS[this.at]; } }",
    "class Tennis { win() { this.won++; } score() { return ['Love', 'Fifteen', 'Thirty'][this.won]; } }",
    "function breaker() { let n = 0; return { fail() { n++; return n > 3 ? 'open' : 'closed'; } }; }",
    "let turn = 0; const mark = () => (++turn % 2 === 0 ? 'X' : 'O');",
    "const FRAMES = ['|', '/', '-']; let at = 0; function spin() { return FRAMES[at++ % FRAMES.length]; }",
    "let hits = 0; function record() { hits++; } function isBusy() { return hits > 10; }",
    "let misses = 0; function g(c) { if (!word.includes(c)) misses++; return misses >= 6 ? 'lost' : 'playing'; }",
    "let line = ''; function g(n) { line += ' '; line += n; if (line.length > 80) return flush(); }",
    "let buffer = ''; function log(n) { buffer += n + '\\n'; return buffer.length > 1000; }",
    "let buffer = ''; function log(n) { buffer = buffer + '\\n' + n; return buffer.length > 1000; }",
    "const batch = []; function g(n) { batch.push(n); if (batch.length >= 10) return flush(batch.splice(0)); }",
    "let batch = []; function g(n) { batch.push(n); return batch.length > 9; } function flush() { batch = []; }",
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
    "func (r *R) Delay() int {\n\tr.tries++\n\tif r.tries < 3 {\n\t\treturn 1000\n\t}\n\treturn 60000\n}",
    'func (b *B) Fail() string {\n\tb.n++\n\tif b.n > 4 {\n\t\treturn "open"\n\t}\n\treturn "closed"\n}',
    'func (g *G) Mark() string {\n\tg.turn++\n\tif g.turn%2 == 0 {\n\t\treturn "X"\n\t}\n\treturn "O"\n}',
    'func (w *W) Next() string {\n\tw.at++\n\tswitch w.at {\n\tcase 1:\n\t\treturn "pay"\n\t}\n\treturn "done"\n}',
    "func Limit() func() bool {\n\tused := 0\n\treturn func() bool {\n\t\tused++\n\t\treturn used <= 100\n\t}\n}",
    'var frames = []string{"|", "/"}\nvar at int\n\nfunc Spin() string {\n\tat++\n\treturn frames[at%len(frames)]\n}',
    'var lines string\n\nfunc G(text string) bool {\n\tlines += "\\n" + text\n\treturn len(lines) > 1000\n}',
    "var batch []int\n\nfunc G(n int) bool {\n\tbatch = append(batch, n)\n\treturn len(batch) > 9\n}\n\n"
    "func Flush() {\n\tbatch = nil\n}",
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
    [
        *(("a.js", change) for change in HONEST),
        (
            "a.ts",
            "class Retry { tries = 0; delay(): number { this.tries++; return this.tries < 3 ? 1 : 60; } }",
        ),
        *(("a.go", change) for change in GO_HONEST),
    ],
)
def test_ordinary_state_is_not_reported(path: str, change: str) -> None:
    assert _find_codes(path, GO if path == "a.go" else JAVASCRIPT, change) == set()
