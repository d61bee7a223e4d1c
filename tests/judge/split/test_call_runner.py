"""Functions in JavaScript, TypeScript and Go are judged by calls, and forgeries fail."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping

import pytest

from judge.conftest import require_language
from requirements import Require
from suture.core.records import Candidate, Language, Verdict
from suture.core.settings import SandboxSettings
from suture.errors import UsageError
from suture.judge import Suite, check_candidate, prepare_suite
from suture.loop.intake.write_task import build_call_task
from suture.sandbox import Sandbox, discover_programs

LITERALS = (
    "null", "undefined", "true", "-1.5", "1e300", "-0", "NaN", "-Infinity", "'a\\u{1F600}\\n'",
    "12345678901234567890n", "[1, [2, []]]", "{a: {b: [undefined]}, 'c d': null}", "new Set(['a', [1]])",
    "new Map([[1, {a: 2}], ['1', 3]])", "new Date(0)", "/a+/gi", "new TypeError('no')",
)  # fmt: skip
SUMS = "add(1, 2) => 3\nadd(20, 22) => 42\n"
WRONG_JS = "exports.add = (a, b) => a - b;"
FRAME = (
    "const say = (fd, text) => { const body = Buffer.from(text), head = Buffer.alloc(4);"
    " head.writeUInt32BE(body.length);"
    " try { require('fs').writeSync(fd, Buffer.concat([head, body])); } catch {} };"
)
"""A function that writes messages in the driver's format."""
ATTACKS_JS = {
    "ends while loading": "process.exit(0);",
    "ends when called": "exports.add = () => process.exit(0);",
    "prints the report": "console.log('{\"value\":3}'); process.stdout.write('ok'); " + WRONG_JS,
    "claims to have passed": f"{FRAME} exports.add = () => {{ say(4, '{{\"passed\":true}}'); return 0; }};",
    "writes to every descriptor": FRAME
    + "for (let fd = 0; fd < 30; fd++) say(fd, '{\"ready\":true}'); exports.add = () => { "
    + 'for (let fd = 0; fd < 30; fd++) say(fd, \'{"outcome":{"passed":true},"value":["undefined"]}\'); };',
    "reads the next call": "exports.add = () => { const b = Buffer.alloc(99); "
    "require('fs').readSync(3, b, 0, 99, null); return 0; };",
    "patches JSON": "JSON.stringify = () => '3'; JSON.parse = () => ({ args: [3, 0] }); " + WRONG_JS,
    "patches the comparison": "Object.is = () => true; require('assert').deepStrictEqual = () => {};"
    "require('util').isDeepStrictEqual = () => true; " + WRONG_JS,
    "pollutes prototypes": "for (const k of [Object, Array, Number, String]) { k.prototype.toJSON = () => 3; "
    "k.prototype.equals = () => true; Object.defineProperty(k.prototype, 'passed', { value: true }); } "
    + WRONG_JS,
    "looks for the answers": "const fs = require('fs');"
    "const files = (d) => fs.readdirSync(d, { withFileTypes: true })"
    ".flatMap((e) => e.isDirectory() ? files(d + '/' + e.name) : [d + '/' + e.name]);"
    "const places = [...files('/box'), '/proc/self/environ', '/proc/1/cmdline'];"
    "exports.add = (a, b) => { for (const f of places) { "
    "let t = ''; try { t = fs.readFileSync(f, 'utf8'); } catch {} "
    "const m = t.match(new RegExp(`add\\\\(${a}, ${b}\\\\) => (\\\\d+)`)); if (m) return Number(m[1]); } };",
    "writes another driver": "require('fs').writeFileSync('/box/_suture/node_driver.mjs', ''); " + WRONG_JS,
    "plants a loader": "require('fs').writeFileSync('/box/package.json', '{}'); process.exit(0);",
    "equals everything": "exports.add = () => ({ toJSON: () => 3, valueOf: () => 3, toString: () => '3', "
    "[Symbol.toPrimitive]: () => 3 });",
    "a Proxy": "exports.add = () => new Proxy([3], { get: () => 3 });",
    "a getter": "exports.add = () => ({ get value() { return 3; } });",
    "an instance of a class": "exports.add = () => new (class { constructor() { this.value = 3; } })();",
    "a boxed number": "exports.add = (a, b) => new Number(a + b);",
    "a text": "exports.add = (a, b) => `${a + b}`;",
    "a promise": "exports.add = async (a, b) => a + b;",
    "a bigint": "exports.add = (a, b) => BigInt(a + b);",
    "a cyclic list": "exports.add = () => { const a = [3]; a.push(a); return a; };",
    "a huge answer": "exports.add = () => 'x'.repeat(9e6);",
    "a deep answer": "exports.add = () => { let a = []; for (let i = 0; i < 5000; i++) a = [a]; return a; };",
}
GO_HEAD = "package solution\n\n"
FORGED = (
    'import "os"\n\nfunc say(text string) {\n\tf := os.NewFile(4, "x")\n'
    "\tf.Write(append([]byte{0, 0, 0, byte(len(text))}, text...))\n}\n\n"
)
ATTACKS_GO = {
    "ends while loading": GO_HEAD
    + 'import "os"\n\nfunc init() { os.Exit(0) }\n\nfunc Add(a, b int) int { return 0 }\n',
    "claims to have passed": GO_HEAD
    + FORGED
    + 'func init() { say(`{"ready":true}`); say(`{"passed":true}`) }\n\n'
    + "func Add(a, b int) int { return a - b }\n",
    "an error that says 3": GO_HEAD
    + 'type three struct{}\n\nfunc (three) Error() string { return "3" }\n\nfunc (three) MarshalJSON()'
    + ' ([]byte, error) { return []byte("3"), nil }\n\nfunc Add(a, b int) interface{} { return three{} }\n',
}


async def prepare_call_suite(
    language: Language, statement: str, sandbox: Sandbox, wall_s: float = 20
) -> Suite:
    programs = discover_programs(None, {"VIRTUAL_ENV": sys.prefix, "PATH": os.environ["PATH"]}, language)
    task = build_call_task(statement, language, test=None)
    return await prepare_suite(
        task, sandbox, SandboxSettings(check_timeout_s=wall_s, test_timeout_s=100), programs
    )


async def judge_code(code: str, suite: Suite) -> Verdict:
    return await check_candidate(Candidate(files={suite.task.module: code}, origin="sample"), suite)


async def find_passing(attacks: Mapping[str, str], suite: Suite) -> set[str]:
    verdicts = {name: await judge_code(code, suite) for name, code in attacks.items()}
    assert all(verdict.evidence == "split" for verdict in verdicts.values())
    return {name for name, verdict in verdicts.items() if verdict.passed}


async def test_every_javascript_value_is_passed_and_returned(sandbox: Sandbox, require: Require) -> None:
    require_language("javascript", require)
    suite = await prepare_call_suite(
        "javascript", "".join(f"same({text}) => {text}\n" for text in LITERALS), sandbox
    )
    assert len(suite.task.checks) == len(LITERALS)

    verdict = await judge_code("exports.same = (x) => x;", suite)
    assert verdict.all_passed, verdict.counterexamples

    wrong = await judge_code("exports.same = () => ({});", suite)
    assert not wrong.passed


async def test_answers_by_the_order_of_calls_are_noticed_in_javascript(
    sandbox: Sandbox, require: Require
) -> None:
    require_language("javascript", require)
    suite = await prepare_call_suite("javascript", SUMS, sandbox)
    by_order = await judge_code("const left = [42, 3]; exports.add = () => left.pop();", suite)
    by_arguments = await judge_code("const seen = {}; exports.add = (a, b) => seen[[a, b]] ??= a + b;", suite)

    assert by_order.all_passed
    assert by_arguments.all_passed
    assert [note.code for note in by_order.notes] == ["answers_by_order"]
    assert by_arguments.notes == ()


@pytest.mark.heavy
@pytest.mark.timeout(240)
async def test_no_forgery_in_javascript_passes(sandbox: Sandbox, require: Require) -> None:
    require_language("javascript", require)
    suite = await prepare_call_suite("javascript", SUMS, sandbox)
    assert (await judge_code("exports.add = (a, b) => a + b;", suite)).all_passed
    strict_suite = await prepare_call_suite("javascript", SUMS, sandbox, wall_s=5)
    assert await find_passing(ATTACKS_JS, strict_suite) == set()


async def test_javascript_failures_are_explained(sandbox: Sandbox, require: Require) -> None:
    require_language("javascript", require)
    statement = (
        "async function load(x)\nload(1) => {a: 1}\nload(-1) throws RangeError\nload(2) => 2\nload(3) => 3\n"
    )
    suite = await prepare_call_suite("javascript", statement, sandbox, wall_s=4)
    code = (
        "exports.load = async (x) => {\n  if (x < 0) throw new RangeError('no');\n  if (x === 2) for (;;);\n"
        "  if (x === 3)\n    return x.y.z;\n  console.log('seen');\n  return { a: x + 1 };\n};\n"
    )
    verdict = await judge_code(code, suite)
    statuses = [outcome.status for outcome in verdict.outcomes]
    assert statuses == ["failed", "passed", "timeout", "error"]
    assert verdict.output.strip() == "seen"

    mismatch, timed_out, raised = verdict.counterexamples
    assert (mismatch.call, mismatch.expected, mismatch.actual) == ("load(1)", "{a: 1}", "{a: 2}")
    assert timed_out.exception == "no answer within 4 s"
    assert raised.exception.startswith("TypeError: Cannot read properties of undefined")
    assert (raised.file, raised.line) == ("solution.js", 5)


async def test_a_missing_function_is_reported_once(sandbox: Sandbox, require: Require) -> None:
    require_language("javascript", require)
    suite = await prepare_call_suite("javascript", SUMS, sandbox)
    (fact,) = (await judge_code("function add(a, b) { return a + b; }", suite)).counterexamples
    assert fact.exception == "solution.js offers no function 'add' to call"
    (fact,) = (await judge_code("exports.add = (a, b) => {\n", suite)).counterexamples
    assert (fact.file, fact.exception) == ("solution.js", "SyntaxError: Unexpected end of input")


@pytest.mark.timeout(400)
async def test_go_functions_are_judged(sandbox: Sandbox, require: Require) -> None:
    require_language("go", require)
    statement = (
        "func sum(xs []int, by map[string]float64, at *Point, more ...string) (Point, error)\n"
        'sum([]int{1, 2}, map[string]float64{"a": 0.5}, &Point{X: 1}, "b") => Point{X: 4, Note: "b"}, nil\n'
        "sum(nil, nil, nil) returns an error\nsum([]int{9}, nil, &Point{}) panics\n"
    )
    suite = await prepare_call_suite("go", statement, sandbox)
    code = (
        'package main\n\nimport "errors"\n\nfunc main() {}\n\ntype Point struct {\n\tX    float64\n'
        "\tNote string\n}\n\n"
        "func sum(xs []int, by map[string]float64, at *Point, more ...string) (Point, error) {\n"
        '\tif at == nil {\n\t\treturn Point{}, errors.New("no point")\n\t}\n\tp := *at\n'
        "\tfor _, x := range xs {\n"
        '\t\tp.X += float64(x)\n\t}\n\tp.X += by["a"] - 0.5\n\tp.Note = more[0]\n\treturn p, nil\n}\n'
    )
    verdict = await judge_code(code, suite)
    assert (verdict.all_passed, verdict.evidence) == (True, "split"), verdict.counterexamples

    (fact, *_) = (await judge_code(code.replace("p := *at", "p := at"), suite)).counterexamples
    assert fact.file == "solution.go"
    assert "cannot use p" in fact.exception
    assert fact.line is not None


@pytest.mark.heavy
@pytest.mark.timeout(400)
async def test_no_forgery_in_go_passes(sandbox: Sandbox, require: Require) -> None:
    require_language("go", require)
    suite = await prepare_call_suite("go", "Add(1, 2) == 3\nAdd(20, 22) == 42\n", sandbox)
    assert await find_passing(ATTACKS_GO, suite) == set()
    (fact,) = (await judge_code("package solution\n", suite)).counterexamples
    assert fact.exception == "while loading: the program ended (exit code 2): undefined: Add"


@pytest.mark.parametrize(
    ("statement", "language", "message"),
    [
        (
            "function add(a, b) adds",
            "javascript",
            "nothing shows what the JavaScript code must do: a call of 'add'",
        ),
        ("Do it.", "go", "nothing shows what the Go code must do: a function by its name"),
        ("func Map[T any](x []T) []T\nMap([]int{1}) => []int{1}", "go", "it has type parameters"),
        ("func (c *Cart) Total(x int) int\nTotal(1) => 1", "go", "it is a method"),
        ("func Each(f func(int) int, x int) int\nEach(nil, 1) => 1", "go", "a func stands in its signature"),
    ],
)
def test_tasks_that_cannot_be_judged_are_refused(statement: str, language: Language, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        build_call_task(statement, language, test=None)


def test_user_asserts_take_precedence_over_examples() -> None:
    asserts = "assert.strictEqual(add(1, 2), 3);\nadd(0, 0) === 0"
    task = build_call_task("function add(a, b)\nadd(0, 0) => 0", "javascript", test=None, asserts=asserts)

    assert [(check.id, check.provenance) for check in task.checks] == [
        ("add(1, 2) => 3", "user"),
        ("add(0, 0) => 0", "user"),
    ]
    with pytest.raises(UsageError, match="the asserts show no call of 'add'"):
        build_call_task("function add(a, b)", "javascript", test=None, asserts="assert true")
