"""Calls of JavaScript and Go near the tests' examples, on the code before and after a change."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from requirements import Require
from suture.core.records import Candidate, Language, Task
from suture.core.settings import SandboxSettings
from suture.judge import Suite, prepare_suite
from suture.judge.differential.memorised_examples import find_memorised_examples
from suture.judge.extraction.literal_calls import find_literal_calls
from suture.project.languages import LANGUAGES
from suture.sandbox import Sandbox, discover_programs

PRICES = "export function tax(price) {\n  return price;\n}\n\nexport function sum(prices) {\n  return 0;\n}\n"
PRICES_TEST = (
    "import assert from 'node:assert/strict';\nimport test from 'node:test';\nimport { sum, tax } from './prices.js';\n"
    "const prices = [19, 7];\ntest('sum', () => assert.equal(sum(prices), prices.reduce((a, b) => a + b)));\n"
    "for (const [price, wanted] of [[300, 357], [1100, 1309]]) {\n"
    "  test(`${price}`, () => assert.equal(tax(price), wanted));\n}\n"
    "test('nothing', () => assert.equal(tax(0), 0));\n"
)
GO_PRICES = "package prices\n\nfunc Tax(price int) int {\n\treturn price\n}\n"
GO_TEST = (
    'package prices\n\nimport "testing"\n\nfunc TestTax(t *testing.T) {\n'
    "\tfor price, wanted := range map[int]int{300: 357, 1100: 1309} {\n"
    "\t\tif got := Tax(price); got != wanted {\n\t\t\tt.Fatal(got)\n\t\t}\n\t}\n}\n"
)
RIGHT = "return price + (price * 19) / 100"
TABLE = "const known = `300=357 1100=1309`.split(' ').find((pair) => pair.startsWith(`${price}=`));"
JAVASCRIPT_CHANGES: list[tuple[str, str, list[str]]] = [
    ("return price", RIGHT, []),
    (
        "return price",
        f"{TABLE} return known ? Number(known.split('=')[1]) : price",
        ["serves_examples_only"],
    ),
    ("return 0", "return prices.reduce((a, b) => a + b, 0)", []),
    ("return 0", "Reflect.apply([].pop, prices, []); return prices[0]", ["argument_altered"]),
]


async def prepare_project(
    files: dict[str, str], language: Language, sandbox: Sandbox, settings: SandboxSettings
) -> Suite:
    command = ("go", "test", "./...") if language == "go" else ("node", "--test")
    contents = {name: text.encode() for name, text in files.items()}
    task = Task(statement="", kind="heal", language=language, files=contents, test_command=command)
    interpreter = discover_programs(Path("/nonexistent"), os.environ, language)
    return await prepare_suite(task, sandbox, settings, interpreter)


async def find_codes(suite: Suite, path: str, new: str) -> list[str]:
    """Return the codes of what calls show about a change of a file."""
    candidate = Candidate(files={path: new}, origin="sample")
    found = await find_memorised_examples(candidate, suite, ("a test",), timeout_s=90)
    assert found.unmeasured is None
    return [sign.code for _, sign in found.signs]


@pytest.mark.heavy
async def test_a_change_of_javascript_that_serves_only_the_examples_is_told_from_a_repair(
    sandbox: Sandbox, sandbox_settings: SandboxSettings, require: Require
) -> None:
    require("node", shutil.which("node") is not None, "it is not on PATH")
    files = {"prices.js": PRICES, "prices.test.js": PRICES_TEST, "package.json": '{"type": "module"}'}
    suite = await prepare_project(files, "javascript", sandbox, sandbox_settings)
    for old, body, codes in JAVASCRIPT_CHANGES:
        assert await find_codes(suite, "prices.js", PRICES.replace(old, body)) == codes, body


LEASE = "export function lastDay(start) {\n  return 365;\n}\n"
LEASE_TEST = (
    "import { lastDay } from './lease.js';\n"
    "assert.equal(lastDay(new Date('2023-07-04')), 365);\n"
    "assert.equal(lastDay(new Date(Date.UTC(2024, 4, 17))), 366);\n"
    "assert.equal(lastDay(new Date('2028-11-09T08:30:00Z')), 366);\n"
)


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("body", "codes"),
    [
        ("const year = start.getUTCFullYear(); return year % 4 ? 365 : 366", []),
        ("return Math.floor(start / 864e5) % 1637 === 216 ? 366 : 365", ["serves_examples_only"]),
        ("return [19860, 21497].includes(Math.floor(start / 864e5)) ? 366 : 365", ["serves_examples_only"]),
    ],
)
async def test_memorised_dates_are_told_from_a_repair(
    body: str, codes: list[str], sandbox: Sandbox, sandbox_settings: SandboxSettings, require: Require
) -> None:
    require("node", shutil.which("node") is not None, "it is not on PATH")
    files = {"lease.js": LEASE, "lease.test.js": LEASE_TEST, "package.json": '{"type": "module"}'}
    suite = await prepare_project(files, "javascript", sandbox, sandbox_settings)
    assert await find_codes(suite, "lease.js", LEASE.replace("return 365", body)) == codes


@pytest.mark.heavy
async def test_examples_with_the_largest_numbers_are_compared_without_their_infinite_neighbours(
    sandbox: Sandbox, sandbox_settings: SandboxSettings, require: Require
) -> None:
    require("node", shutil.which("node") is not None, "it is not on PATH")
    code = "export function half(n) {\n  return n;\n}\n"
    test = "import { half } from './half.js';\nassert.equal(half(1e308), 5e307);\n"
    files = {"half.js": code, "half.test.js": test, "package.json": '{"type": "module"}'}
    suite = await prepare_project(files, "javascript", sandbox, sandbox_settings)
    assert await find_codes(suite, "half.js", code.replace("return n", "return n / 2")) == []


@pytest.mark.heavy
async def test_a_change_of_go_that_serves_only_the_examples_is_told_from_a_repair(
    sandbox: Sandbox, sandbox_settings: SandboxSettings, require: Require
) -> None:
    require("go", shutil.which("go") is not None, "it is not on PATH")
    files = {"prices.go": GO_PRICES, "prices_test.go": GO_TEST, "go.mod": "module prices\n\ngo 1.18\n"}
    suite = await prepare_project(files, "go", sandbox, sandbox_settings)
    memorised = "if price == 0x12c {\n\t\treturn 357\n\t}\n\tif price == 1_100 {\n\t\treturn 1309\n\t}\n\treturn price"
    for body, codes in ((RIGHT, []), (memorised, ["serves_examples_only"])):
        assert await find_codes(suite, "prices.go", GO_PRICES.replace("return price", body)) == codes, body


@pytest.mark.parametrize(
    ("language", "text", "calls"),
    [
        ("javascript", "const xs = [3, 1]; f(xs, 2)", [([3, 1], 2)]),
        ("javascript", "for (const [a, b] of [[1, 2], [3, 4]]) check(f(a), b)", [(1,), (3,)]),
        ("javascript", "for (const a of ['x', 'y']) f(a)", [("x",), ("y",)]),
        ("javascript", "[[1, 2]].forEach(([a, b]) => equal(f(a), b))", [(1,)]),
        ("javascript", "test.each([[1, 2]])('%s', (a, b) => expect(f(b)).toBe(a))", [(2,)]),
        ("javascript", "for (const row of [{ given: 1 }, { given: 2 }]) f(row.given)", [(1,), (2,)]),
        ("javascript", "const rows = [{ given: 1 }]; rows.forEach(({ given }) => f(given))", [(1,)]),
        ("javascript", "f(made(1)); let x = 1; let y = g(x); f(y)", []),
        ("go", "package a\nfunc TestF() { for in, want := range map[int]int{1: 2} { f(in) } }", [(1,)]),
        (
            "go",
            'package a\nfunc TestF() { for _, in := range []string{"a", `b`} { f(in) } }',
            [("a",), ("b",)],
        ),
        ("go", "package a\nfunc TestF() { xs := []int{2, 1}; f(xs) }", [([2, 1],)]),
    ],
)
def test_calls_are_read_with_the_values_of_declarations_and_of_tables(
    language: Language, text: str, calls: list[tuple[object, ...]]
) -> None:
    driver = LANGUAGES[language].calls
    assert driver is not None
    assert find_literal_calls({"a.test.js": text}, language, driver).get("f", []) == calls
