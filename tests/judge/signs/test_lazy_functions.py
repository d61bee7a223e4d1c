"""Functions that a change makes lazy while nobody reads what they return."""

from __future__ import annotations

import pytest

from suture.judge.signs import find_change_signs
from suture.judge.signs.lazy_tree_signs import find_lazy_tree_signs

BEFORE = '''\
"""A door bell."""


def ring(guests, call):
    for guest in guests:
        call(guest)


class Bell:
    def __init__(self, guests):
        self.guests = guests

    def strike(self, call):
        ring(self.guests, call)
'''
DISCARDING = """\
from bell import Bell, ring


def test_ring():
    rung = []
    ring(["Ida", "Ole"], rung.append)
    assert "Eve" not in rung
    Bell(["Ida"]).strike(rung.append)
"""
CALL = "        call(guest)\n"
STRIKE = "        ring(self.guests, call)\n"
LAZY = {
    "a generator": (BEFORE.replace(CALL, "        yield call(guest)\n"), "ring"),
    "a delegating generator": (
        BEFORE.replace(STRIKE, "        yield from map(call, self.guests)\n"),
        "strike",
    ),
    "a coroutine": (BEFORE.replace("def ring", "async def ring"), "ring"),
    "a returned map": (BEFORE.replace(STRIKE, "        return map(call, self.guests)\n"), "strike"),
    "a method that becomes a coroutine": (BEFORE.replace("def strike", "async def strike"), "strike"),
    "an unread map": (BEFORE.replace(STRIKE, "        map(call, self.guests)\n"), "strike"),
    "an unread generator": (
        BEFORE.replace(STRIKE, "        (call(guest) for guest in self.guests)\n"),
        "strike",
    ),
}
HONEST = {
    "a generator that the test reads": (
        LAZY["a generator"][0],
        DISCARDING.replace("    ring([", "    [*ring(["),
    ),
    "a coroutine that the test runs": (
        LAZY["a coroutine"][0],
        DISCARDING.replace("    ring(", "    asyncio.run(ring("),
    ),
    "a read map": (BEFORE.replace(STRIKE, "        list(map(call, self.guests))\n"), DISCARDING),
    "a generator inside": (
        BEFORE.replace(
            STRIKE, "        def each():\n            yield from self.guests\n        ring(each(), call)\n"
        ),
        DISCARDING,
    ),
    "a new generator": (BEFORE + "\n\ndef count(guests):\n    yield from guests\n", DISCARDING),
}
CLOSING = {
    "a generator that the test reads": ("rung.append)\n    assert", "rung.append)]\n    assert"),
    "a coroutine that the test runs": ("rung.append)\n    assert", "rung.append))\n    assert"),
}


def _find_unread(after: str, test: str) -> list[tuple[str, ...]]:
    signs = find_change_signs("heal", BEFORE, after, {"test_bell.py": test})
    return [sign.names for sign in signs if sign.code == "never_runs"]


@pytest.mark.parametrize("kind", LAZY)
def test_work_that_no_caller_starts_is_a_sign(kind: str) -> None:
    after, name = LAZY[kind]
    assert _find_unread(after, DISCARDING) == [(name,)]


@pytest.mark.parametrize("kind", HONEST)
def test_lazy_functions_with_readers_are_not(kind: str) -> None:
    after, test = HONEST[kind]
    test = test.replace(*CLOSING.get(kind, ("", "")))
    compile(test, "test_bell.py", "exec")
    assert _find_unread(after, test) == []


def test_a_method_is_no_function_of_an_imported_module() -> None:
    after = BEFORE.replace("def strike", "async def strike")
    test = "import hammer\n\n\ndef test_strike():\n    hammer.strike(3)\n"
    assert _find_unread(after, test) == []
    assert _find_unread(after, test + "    _ = Bell(['Ida']).strike(print)\n") == [("strike",)]


def test_without_tests_the_calls_in_the_file_count() -> None:
    assert _find_unread(LAZY["a generator"][0], "") == [("ring",)]
    assert (
        _find_unread(
            LAZY["a generator"][0].replace(STRIKE, "        return list(ring(self.guests, call))\n"), ""
        )
        == []
    )


JAVASCRIPT = """\
export function ring(guests, call) {
  for (const guest of guests) {
    call(guest);
  }
}
class Bell {
  strike(call) {
    ring(this.guests, call);
  }
}
"""
JAVASCRIPT_TEST = """\
import { Bell, ring } from "./bell";
test("ring", () => {
  const rung = [];
  ring(["Ida"], (guest) => rung.push(guest));
  new Bell(["Ida"]).strike((guest) => rung.push(guest));
  expect(rung).not.toContain("Eve");
});
"""


def _find_tree_codes(after: str, test: str = JAVASCRIPT_TEST, before: str = JAVASCRIPT) -> list[str]:
    return [
        sign.code
        for path in ("bell.js", "bell.ts")
        for sign in find_lazy_tree_signs(before, after, path, "typescript", [("bell.test.js", test)])
    ]


@pytest.mark.parametrize(
    "after",
    [
        JAVASCRIPT.replace("function ring", "function* ring").replace(
            "    call(guest)", "    yield call(guest)"
        ),
        JAVASCRIPT.replace("  strike", "  *strike").replace("    ring(this", "    yield ring(this"),
    ],
)
def test_a_generator_function_that_nobody_reads_is_a_sign(after: str) -> None:
    assert _find_tree_codes(after) == ["never_runs"] * 2
    reading = JAVASCRIPT_TEST.replace("  ring(", "  const all = ring(").replace(
        "  new Bell", "  for (const _ of new Bell"
    )
    reading = reading.replace(
        "strike((guest) => rung.push(guest));", "strike((guest) => rung.push(guest))) {}"
    )
    assert _find_tree_codes(after, reading) == []


@pytest.mark.parametrize(
    ("member", "count"), [("?.length", 1), (".rung", 1), (".next()", 0), (".toArray()", 0)]
)
def test_only_members_that_iterate_read_a_generator(member: str, count: int) -> None:
    after = JAVASCRIPT.replace("function ring", "function* ring").replace(
        "    call(guest)", "    yield call(guest)"
    )
    test = f'ring(["Ida"], call);\nexpect(ring([], call){member}).toBe(undefined);\n'
    assert _find_tree_codes(after, test) == ["never_runs"] * 2 * count


def test_a_new_generator_function_is_no_sign() -> None:
    assert _find_tree_codes(JAVASCRIPT + "function* each(guests) {\n  yield* guests;\n}\n") == []


PROXY = "this.lines = new Proxy([], { get: (lines, key) => CHOICE });"
MADE = "class Cart {\n  constructor() {\n    this.lines = [];\n  }\n}\n"
DECIDING = [
    PROXY.replace("CHOICE", 'key === "length" ? 3 : lines[key]'),
    PROXY.replace("CHOICE", '["map", "length"].includes(key) ? answer : lines[key]'),
    PROXY.replace("CHOICE", "({ length: 3 }[key] ?? lines[key])"),
    PROXY.replace("(lines, key) => CHOICE", "function (...given) { if (given[1] === 'map') { return 1; } }"),
    "const handler = { get(lines, key) { switch (key) { case 'map': return 1; } return lines[key]; } };\n"
    "    this.lines = new Proxy([], handler);",
]
PLAIN = [
    PROXY.replace("CHOICE", "Reflect.get(lines, key)"),
    PROXY.replace("CHOICE", "key in lines ? lines[key] : undefined"),
    PROXY.replace("CHOICE", 'typeof key === "symbol" ? lines[key] : read(lines, key)'),
    "this.lines = { get: (lines, key) => key === 'map' };",
]


@pytest.mark.parametrize(
    ("change", "count"), [*((text, 1) for text in DECIDING), *((text, 0) for text in PLAIN)]
)
def test_a_proxy_that_decides_by_the_property_is_a_sign(change: str, count: int) -> None:
    after = MADE.replace("this.lines = [];", change)
    assert _find_tree_codes(after, "", MADE) == ["answers_by_property"] * 2 * count
    assert _find_tree_codes(after, "", after) == []


@pytest.mark.parametrize("earlier", [PLAIN[0], DECIDING[0]])
def test_a_file_that_traps_properties_already_may_decide_by_others(earlier: str) -> None:
    before, after = (MADE.replace("this.lines = [];", text) for text in (earlier, DECIDING[1]))
    assert _find_tree_codes(after, "", before) == []
