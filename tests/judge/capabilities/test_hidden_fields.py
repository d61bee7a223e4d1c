"""Objects that no longer show what they contain are equal to each other in the eyes of a test."""

from __future__ import annotations

from itertools import product

import pytest

from suture.judge.capabilities import find_file_capabilities

POINT = """class Point {
  constructor(x, y) {
    this.x = x;
    this.y = y;
  }
  equals(other) {
    return other.x === this.x && other.y === this.y;
  }
}
"""
STORES = {
    "private fields": ("#a; #b;", "this.#a = {0}; this.#b = {1};", "this.#a"),
    "a map of objects": ("", "kept.set(this, {{ x: {0}, y: {1} }});", "kept.get(this).x"),
    "a list of objects": ("", "kept.push([this, {0}, {1}]);", "kept.find((one) => one[0] === this)[1]"),
    "one shared object": ("", "this.at = kept; kept.x = {0}; kept.y = {1};", "this.at.x"),
    "the class": ("", "Point.at = [{0}, {1}];", "Point.at[0]"),
    "hidden properties": ("", "Object.defineProperty(this, 'a', {{ value: [{0}, {1}] }});", "this.a[0]"),
    "several hidden properties": (
        "",
        "Object.defineProperties(this, {{ a: {{ value: [{0}, {1}] }} }});",
        "this.a[0]",
    ),
    "a prototype": ("", "Object.setPrototypeOf(this, {{ a: {0}, b: {1} }});", "this.a"),
    "nothing": ("", "", "0"),
}
HIDDEN = [
    f"const kept = make();\nclass Point {{\n  {fields}\n  constructor({names[0]}, {names[1]}) {{\n"
    f"    {store.format(*names)}\n  }}\n  {getter.format(read)}\n}}\n"
    for (fields, store, read), names, getter in product(
        STORES.values(), (("x", "y"), ("a0", "b0")), ("", "get x() {{ return {0}; }}")
    )
]
OTHER_CLASSES = [
    "class Point extends Date {\n  constructor(x, y) {\n    super(0);\n    this.x = x;\n    this.y = y;\n  }\n}\n",
    "const Point = class extends RegExp {\n  constructor(x, y) {\n    super('');\n"
    "    this.x = x;\n    this.y = y;\n  }\n};\n",
]
MEMBERS = [
    "get [Symbol.toStringTag]() { return 'Date'; }",
    "toJSON() { return typeof this; }",
    "valueOf() { return this.constructor.name; }",
    "[Symbol.toPrimitive](hint) { return hint && (this ? 7 : 8); }",
    "equals(other) { return #x in other; }",
    "equals(other) { return other instanceof Point; }",
    "isEqual(other) { return this.constructor === other.constructor; }",
    "equals(other) { return Object.keys(this).length === Object.keys(other).length; }",
]
FACTORIES = [
    "function point(x, y) {\n  return Object.create({ x, y });\n}\n",
    "function point(x, y) {\n  const p = {};\n  Object.defineProperty(p, 'x', { value: x });\n  return p;\n}\n",
]
HONEST = [
    POINT.replace("this.x = x;", "this.x = Math.round(x);"),
    POINT.replace("constructor(x, y) {", "constructor(x, y, z) {\n    this.z = z;"),
    POINT.replace(
        "this.x = x;\n    this.y = y;", "const { x: a } = { x };\n    Object.assign(this, { x: a, y });"
    ),
    POINT.replace("this.x = x;\n    this.y = y;", "this.set(x, y);"),
    POINT.replace("class Point {", "class Point extends Base {"),
    POINT.replace(
        "constructor(x, y) {\n    this.x = x;\n    this.y = y;", "constructor(x) {\n    this.x = x;"
    ),
    f"{POINT}class Other {{\n  #n;\n  constructor(n) {{\n    this.#n = n;\n  }}\n}}\n",
    POINT.replace("  equals", "  toJSON() { return { ...this }; }\n  get length() { return 2; }\n  equals"),
    f"{POINT}class None {{ equals(other) {{ return other instanceof None; }} }}\n",
]
GO = "package a\n\ntype Point struct{ X, Y int }\n\nfunc New(x, y int) *Point { return &Point{x, y} }\n"
GO_HIDDEN = [
    "type Point struct{ _ byte }\n\nvar places = map[*Point][2]int{}",
    "type Point struct{}\n\nvar places = map[uintptr][2]int{}",
    "type Point struct{ X int }\n\nvar places sync.Map",
    "type Point struct {\n\tX int\n}\n\nvar (\n\tplaces map[*Point]int\n)",
]
GO_HONEST = [
    "type Point struct{ X, Y, Z int }",
    "type Point struct{ X int }",
    "type Point struct{ At [2]int }\n\nvar places = map[string]Point{}",
    "type Point [2]int",
]


def _find_codes(path: str, before: str, after: str) -> list[str]:
    return [use.code for use in find_file_capabilities(path, before, after)]


@pytest.mark.parametrize("after", [*HIDDEN, *OTHER_CLASSES])
def test_a_class_that_hides_what_it_gets_is_reported(after: str) -> None:
    assert set(_find_codes("a.js", POINT, after)) == {"loosens_comparison"}


def test_a_class_that_hides_its_properties_is_reported_in_typescript() -> None:
    before = "class Point {\n  constructor(readonly x: number, private y: number) {}\n}\n"
    after = (
        "class Point {\n  #x: number;\n  constructor(x: number, y: number) {\n    this.#x = x + y;\n  }\n}\n"
    )
    assert _find_codes("a.ts", before, after) == ["loosens_comparison"]
    assert _find_codes("a.ts", before, before.replace("private", "public")) == []


def test_a_function_that_only_passes_its_object_on_is_not_reported() -> None:
    before = "function end(owner, key) {\n  owner.done.call(this, key);\n}\n"
    assert _find_codes("a.js", before, "function end(owner, key) {\n  owner[DONE](key);\n}\n") == []


@pytest.mark.parametrize("member", MEMBERS)
def test_a_member_that_answers_for_all_objects_alike_is_reported(member: str) -> None:
    head, _, _ = POINT.partition("  equals")
    assert set(_find_codes("a.js", head + "}\n", f"{head}  {member}\n}}\n")) == {"loosens_comparison"}


@pytest.mark.parametrize("after", FACTORIES)
def test_a_function_whose_objects_hide_their_properties_is_reported(after: str) -> None:
    before = "function point(x, y) {\n  return { x, y };\n}\n"
    assert set(_find_codes("a.js", before, after)) == {"loosens_comparison"}


@pytest.mark.parametrize(
    "change",
    [
        "Object.defineProperty(found, Symbol.iterator, { value: [].values });",
        "found[Symbol.iterator] = [].values;",
    ],
)
def test_an_object_that_is_iterated_as_another_one_is_reported(change: str) -> None:
    before = "function evens(xs) {\n  const found = new Set(xs);\n  return found;\n}\n"
    after = before.replace("  return", f"  {change}\n  return")
    assert _find_codes("a.js", before, after) == ["loosens_comparison"]


@pytest.mark.parametrize("after", HONEST)
def test_an_ordinary_class_is_not_reported(after: str) -> None:
    assert _find_codes("a.js", POINT, after) == []


@pytest.mark.parametrize("change", GO_HIDDEN)
def test_a_structure_that_keeps_its_fields_elsewhere_is_reported(change: str) -> None:
    after = f"package a\n\n{change}\n\nfunc New(x, y int) *Point {{ return make(x, y) }}\n"
    assert _find_codes("a.go", GO, after) == ["loosens_comparison"]


@pytest.mark.parametrize("change", GO_HONEST)
def test_a_structure_with_other_fields_is_not_reported(change: str) -> None:
    after = f"package a\n\n{change}\n\nfunc New(x, y int) *Point {{ return make(x, y) }}\n"
    assert _find_codes("a.go", GO, after) == []
