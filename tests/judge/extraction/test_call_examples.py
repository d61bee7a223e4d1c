"""Calls in a JavaScript or Go statement that become checks, and the values of their literals."""

from __future__ import annotations

import pytest

from suture.core.records import Language
from suture.judge import extract_calls, find_unread_calls
from suture.judge.extraction.call_examples import parse_call
from suture.judge.split.call_values import is_call_value, render_value, values_match
from suture.project.languages import LANGUAGES, JsonPlus

DRIVERS = {language: facts.calls for language, facts in LANGUAGES.items()}
JAVASCRIPT = """
/**
 * f([2, 7], 9) // => [0, 1]
 * f([1], 2); // undefined
 * console.log(f([3, 4], 7)); // [0, 1]
 * `f([1,5], 6)` returns `{a: 1, 'b': [NaN, -0]}`. And f([], 3) should throw a RangeError.
 */
function f(nums, target) {}
> f([0,0],0)
new Map([[1, 2]])
assert.deepStrictEqual(await f([9], 1), new Set([1n]), 'message');
assert.throws(() => f(null, 1), TypeError);
assert.throws(() => { f(null, 2); });
expect(f([8], 1)).toEqual('a(b');
expect(() => f([8], 5)).toThrow(TypeError)
- f([1], 8) => 4, f([1], 9) => 5
console.assert(f(
  [1],
  7) === 2)
"""
NONE_OF_JAVASCRIPT = """
if (!f([1], 4)) // true
2 * f([1], 4) === 8
f([1], 4) // a remark
f(n, 4) === 2
g.f([1], 4) === 2
assert.notStrictEqual(f([1], 4), 2)
f([1], 4) !== 2
console.log(f([1], 4) === 2) // false
f([1], 4) === 2  // this is false
if (f([1], 4) === 2) throw new Error()
"""
GO = """
// f(6, 3) == 2, nil
// f(1, 0) returns an error.
func f(a, b int) (int, error)
f([]int{1,2}, map[string]int{"a": 1}) => []string{"x"}
f(&P{X: 1}, 'a') => P{1, 2}
f(9, 9) panics
fmt.Println(f(1, 2)) // Output: 0
if got := f(1, 1); got != 3 {
"""


def extract_sources(text: str, language: Language) -> list[str]:
    driver = DRIVERS[language]
    assert driver is not None
    return [check.source.strip() for check in extract_calls(text, "f", driver)]


def test_javascript_examples_become_checks() -> None:
    assert extract_sources(JAVASCRIPT, "javascript") == [
        "f([2, 7], 9) => [0, 1]",
        "f([1], 2) => undefined",
        "f([3, 4], 7) => [0, 1]",
        "f([1,5], 6) => {a: 1, 'b': [NaN, -0]}",
        "f([], 3) => throws RangeError",
        "f([0,0],0) => new Map([[1, 2]])",
        "await f([9], 1) => new Set([1n])",
        "f(null, 1) => throws TypeError",
        "f(null, 2) => throws",
        "f([8], 1) => 'a(b'",
        "f([8], 5) => throws TypeError",
        "f([1], 8) => 4",
        "f([1], 9) => 5",
        "f( [1], 7) => 2",
    ]


def test_go_examples_become_checks() -> None:
    assert extract_sources(GO, "go") == [
        "f(6, 3) => 2, nil",
        "f(1, 0) => error",
        'f([]int{1,2}, map[string]int{"a": 1}) => []string{"x"}',
        "f(&P{X: 1}, 'a') => P{1, 2}",
        "f(9, 9) => panics",
        "f(1, 2) => 0",
    ]


def test_other_text_becomes_no_check() -> None:
    assert extract_sources(NONE_OF_JAVASCRIPT, "javascript") == []


@pytest.mark.parametrize(("language", "text"), [("javascript", JAVASCRIPT), ("go", GO)])
def test_a_check_can_be_parsed_again(language: Language, text: str) -> None:
    driver = DRIVERS[language]
    assert driver is not None
    for source in extract_sources(text, language):
        call = parse_call(source, "f", driver)
        assert call is not None
        assert call.source == source


def test_an_unreadable_example_is_reported() -> None:
    driver = DRIVERS["javascript"]
    assert driver is not None
    assert find_unread_calls("f([1], 2) === g(3)\nf(1) => 2", "f", driver) == ("f([1], 2) === g(3)",)
    assert find_unread_calls("f(1) === 2 // false", "f", driver) == ("f(1) === 2 // false",)


def test_a_comment_after_a_false_result_does_not_negate_it() -> None:
    text = "false // false, since 1 is odd"
    assert extract_sources(f"f(1) === {text}\n", "javascript") == [f"f(1) => {text}"]


@pytest.mark.parametrize(
    ("language", "text", "value"),
    [
        ("javascript", "0x10", 16),
        ("javascript", "1_000.5", 1000.5),
        ("javascript", "-0", ["number", "-0"]),
        ("javascript", "-12n", ["bigint", "-12"]),
        ("javascript", r"'\x41\u{1F600}\n\'\ud83d\ude00'", "A\U0001f600\n'\U0001f600"),
        (
            "javascript",
            "{1: undefined, 'b c': [null]}",
            ["object", [["1", ["undefined"]], ["b c", ["list", [None]]]]],
        ),
        ("javascript", "/a,b/g", ["regexp", "/a,b/g"]),
        ("javascript", "new RangeError('x')", ["error", "RangeError", "x"]),
        ("javascript", "new Date('1970-01-02')", ["date", 86_400_000]),
        ("javascript", "new Date('1970-01-01T02:00:00.250+01:00')", ["date", 3_600_250]),
        ("javascript", "new Date(Date.UTC(1970, 1))", ["date", 31 * 86_400_000]),
        ("javascript", "new Date(Date.UTC(1970, 0, 2, 0, 0, 1))", ["date", 86_401_000]),
        ("go", "0b101", 5),
        ("go", "017", 15),
        ("go", "'é'", 233),
        ("go", '[]byte("hi")', ["list", [104, 105]]),
        ("go", "[][]int{{1}, {}}", ["list", [["list", [1]], ["list", []]]]),
        ("go", "math.Inf(-1)", ["number", "-Infinity"]),
        ("go", 'errors.New("x")', ["error", None, "x"]),
    ],
)
def test_literals_are_read(language: Language, text: str, value: JsonPlus) -> None:
    driver = DRIVERS[language]
    assert driver is not None
    assert driver.read_literals(text) == (value,)
    assert is_call_value(value) or value[0] == "error"


@pytest.mark.parametrize(
    "text",
    [
        *("x", "f()", "`${x}`", "[...x]", "{x}", "{f() {}}", "1; 2", "1] + [2", "'"),
        *("new Date()", "new Date('2024-02-10T00:00')", "new Date('10 Feb 2024')", "new Date(2024, 1, 10)"),
        *(
            "new Date(Date.UTC(2024, 12))",
            "new Date(Date.UTC(2024))",
            "new Date(Date.UTC(n, 1))",
            "Date.UTC(2024, 1)",
        ),
    ],
)
def test_other_expressions_are_no_literals(text: str) -> None:
    driver = DRIVERS["javascript"]
    assert driver is not None
    assert driver.read_literals(text) is None


def literals_match(language: Language, expected: str, got: str) -> bool:
    driver = DRIVERS[language]
    assert driver is not None
    (one,), (other,) = driver.read_literals(expected) or (), driver.read_literals(got) or ()
    assert render_value(other, driver)
    return values_match(one, other, statically_typed=driver.statically_typed)


@pytest.mark.parametrize(
    ("expected", "got"),
    [
        ("NaN", "NaN"),
        ("0", "-0"),
        ("1e21", "1000000000000000000000"),
        ("{a: 1, b: 2}", "{b: 2, a: 1}"),
        ("new Set([1, [2]])", "new Set([[2], 1])"),
        ("new Map([[1, 2], ['1', 3]])", "new Map([['1', 3], [1, 2]])"),
    ],
)
def test_equal_javascript_values_match(expected: str, got: str) -> None:
    assert literals_match("javascript", expected, got)


@pytest.mark.parametrize(
    ("expected", "got"),
    [
        ("1", "true"),
        ("1", "'1'"),
        ("1", "1n"),
        ("1", "[1]"),
        ("-0", "0"),
        ("null", "undefined"),
        ("[]", "null"),
        ("{}", "{a: undefined}"),
        ("{a: undefined}", "{}"),
        ("[1, 2]", "[2, 1]"),
        ("[1]", "new Set([1])"),
        ("{}", "new Map()"),
        ("new Set([1])", "new Set(['1'])"),
        ("new Error('a')", "new Error('b')"),
    ],
)
def test_different_javascript_values_do_not_match(expected: str, got: str) -> None:
    assert not literals_match("javascript", expected, got)


def test_go_values_match_by_the_types_of_the_function() -> None:
    assert literals_match("go", "nil", "[]int{}")
    assert literals_match("go", "2", "2.0")
    assert literals_match("go", "P{X: 1}", "P{X: 1, Y: 0}")
    assert not literals_match("go", "P{X: 1}", "P{X: 1, Y: 2}")
    assert not literals_match("go", '"1"', "1")
    assert not literals_match("go", "1", "true")

    points = 'map[string]P{"a": {X: 1}}'
    assert literals_match("go", points, 'map[string]P{"a": {X: 1, Y: 0}}')
    assert not literals_match("go", points, 'map[string]P{"a": {X: 1, Y: 2}}')
    assert not literals_match("go", points, 'map[string]P{"b": {X: 1}}')
    assert literals_match("go", 'map[string][]int{"a": {}}', 'map[string][]int{"a": nil}')
    assert literals_match("go", "P{}", "P{X: 0, Y: 0}")
    assert not literals_match("go", "P{}", "P{X: 1}")

    results = ["results", [2, None]]
    assert values_match(2, results, statically_typed=True)
    assert not values_match(2, ["results", [2, ["error", "", "no"]]], statically_typed=True)
    assert values_match(
        ["error", None, None], ["results", [0, ["error", "*errors.errorString", "no"]]], statically_typed=True
    )
    assert not values_match(["error", None, None], results, statically_typed=True)


def test_a_deep_answer_is_compared_without_recursion() -> None:
    """A comparison by text doubled with each level and took all memory."""
    deep: JsonPlus = ["map", [["k", 1]]]
    for _ in range(58):
        deep = ["map", [["k", deep]]]
    assert is_call_value(deep)
    assert values_match(deep, deep)
    assert not values_match(["map", [["a", 1]]], deep)


@pytest.mark.parametrize(
    "value",
    [["foreign", "a Proxy"], ["object", [["a", ["foreign", "a getter"]]]], ["list", [["foreign", "x"]]]],
)
def test_foreign_values_match_nothing(value: JsonPlus) -> None:
    assert not values_match(value, value)


@pytest.mark.parametrize(
    "value",
    [
        [],
        ["no"],
        ["list"],
        ["list", 1],
        ["object", [["a"]]],
        ["object", [[["list", []], 1]]],
        ["number", "12"],
        [1],
        {},
        ["list", [{}]],
        ["undefined", 1],
    ],
)
def test_malformed_values_are_rejected(value: object) -> None:
    assert not is_call_value(value)
