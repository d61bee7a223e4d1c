"""Values that decide what they equal, and promises that decide what is awaited, are recognised by what they do."""

from __future__ import annotations

import json
import shutil
import subprocess
from importlib import resources
from pathlib import Path

import pytest

from requirements import Require

DECIDING = {
    "a method": "{ asymmetricMatch: () => true }",
    "a method of a class": "new (class { asymmetricMatch() { return true; } })()",
    "an accessor": "new (class { get asymmetricMatch() { return () => true; } })()",
    "a late accessor": "{ n: 0, get asymmetricMatch() { return this.n++ ? () => true : undefined; } }",
    "a proxy": "new Proxy({}, { get: (_, name) => (name === 'asymmetricMatch' ? () => true : undefined) })",
    "an inherited method": "Object.create({ asymmetricMatch: () => true })",
    "a function": "Object.assign(() => {}, { asymmetricMatch: () => true })",
    "a hidden method": "Object.defineProperty({}, 'asymmetricMatch', { value: () => true })",
}
PLACES = {
    "itself": "one",
    "in an object": "{ a: { b: one } }",
    "in a list": "[1, [one]]",
    "in a set": "new Set([1, one])",
    "in a map": "new Map([[1, one]])",
    "as a key of a map": "new Map([[one, 1]])",
    "under a symbol": "{ [Symbol('a')]: one }",
    "in a call of a mock": "Object.assign(() => {}, { _isMockFunction: true, mock: { calls: [[one]] } })",
    "behind an accessor": "{ get a() { return one; } }",
    "after a cycle": "((all) => { all.push(all, one); return all; })([])",
}
HONEST = [
    "null", "1", "'asymmetricMatch'", "() => {}", "[1, { a: [] }]", "new Map([[{}, new Set([[]])]])",
    "{ asymmetricMatch: true }", "new Proxy([1], {})", "{ get a() { throw new Error(); } }", "Object.create(null)",
    "Symbol('a')", "new Date()", "new Error('a')", "Promise.resolve()", "globalThis",
]  # fmt: skip
DECIDING_PROMISES = [
    "{ then() {} }",
    "Object.assign(Promise.resolve(1), { then() {} })",
    "Object.assign(Promise.resolve(1), { constructor: {} })",
    "new (class extends Promise { then() {} })(() => {})",
    "new (class extends Promise { static get [Symbol.species]() { return Promise; } })(() => {})",
]
HONEST_PROMISES = ["Promise.resolve(1)", "(async () => {})()", "1", "null", "{ then: 1 }", "() => {}"]


ANSWERS = Path(str(resources.files("suture.project.languages.reporters").joinpath("answers.cjs")))


def evaluate(expressions: list[str], call: str, require: Require, module: Path = ANSWERS) -> list[object]:
    """Return what a function of `answers.cjs` says of each expression."""
    node = shutil.which("node")
    require("node", node is not None, "it is not on PATH")
    values = ",".join(f"() => ({expression})" for expression in expressions)
    program = f"const a = require('{module}');\n" + (
        f"Promise.all([{values}].map(async (f) => {call})).then((all) => console.log(JSON.stringify(all)));"
    )
    process = subprocess.run(
        [str(node), "-e", program], capture_output=True, text=True, check=True, timeout=60
    )
    found: list[object] = json.loads(process.stdout)
    return found


def test_a_value_that_decides_what_it_equals_is_found_at_every_place(require: Require) -> None:
    cases = {
        (value, place): f"((one) => ({PLACES[place]}))({DECIDING[value]})"
        for value in DECIDING
        for place in PLACES
    }
    found = evaluate([*cases.values()], "a.containsMatcher(f(), true)", require)
    assert [case for case, is_found in zip(cases, found, strict=True) if not is_found] == []


def test_ordinary_values_do_not_decide_what_they_equal(require: Require) -> None:
    assert not any(evaluate(HONEST, "a.containsMatcher(f(), true)", require))


def test_accessors_are_not_called_before_the_assertion_calls_them(require: Require) -> None:
    assert evaluate(
        ["{ get a() { return { asymmetricMatch() {} }; } }"], "a.containsMatcher(f())", require
    ) == [False]


def test_the_matchers_of_the_test_framework_may_be_expected(require: Require) -> None:
    call = "((C) => a.containsMatcher([new (class extends C {})()], true, C.prototype))(f())"
    assert evaluate(["class { asymmetricMatch() {} }"], call, require) == [False]


def test_a_promise_that_decides_what_is_awaited_is_found(require: Require) -> None:
    expressions = [*DECIDING_PROMISES, *HONEST_PROMISES]
    found = evaluate(expressions, "a.isOwnPromise(f(), [Promise])", require)
    assert dict(zip(expressions, found, strict=True)) == {
        **dict.fromkeys(DECIDING_PROMISES, True),
        **dict.fromkeys(HONEST_PROMISES, False),
    }


@pytest.mark.parametrize(
    ("caller", "is_found"),
    [
        ("src/code.js", True),
        ("node_modules/library/index.js", False),
        ("test/helper.js", False),
        ("own.test.js", False),
    ],
)
def test_code_that_calls_an_assertion_is_found_unless_it_is_a_test_or_a_library(
    caller: str, is_found: bool, require: Require, tmp_path: Path
) -> None:
    path = tmp_path / caller
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("module.exports = (f) => f();")
    answers = tmp_path / "_suture" / "answers.cjs"
    answers.parent.mkdir()
    answers.write_bytes(ANSWERS.read_bytes())

    # Functions of node are in the stack, too, here those that call back.
    call = "await new Promise((done) => setImmediate(() => done(f()(() => a.findCallingCode('/own.js')))))"
    found = evaluate([f"require('{path}')"], call, require, answers)

    assert found == [str(path) if is_found else None]
