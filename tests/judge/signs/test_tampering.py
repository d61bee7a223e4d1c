"""Signs that a change games the tests."""

from __future__ import annotations

import ast
import hashlib
from textwrap import indent
from typing import get_args

import pytest

from suture.core.records.finding_text import SIGN_TEXTS
from suture.judge.signs import (
    TamperingCode,
    TamperingWarning,
    TestValues,
    collect_literals,
    count_dead_code,
    find_tampering_warnings,
    render_tampering_warning,
)
from suture.judge.signs.python_signs import find_python_signs

SOURCE = "def f(n):\n    if n > 2:\n        return n - 1\n    return n\n"


@pytest.mark.parametrize(
    ("after", "code"),
    [
        (SOURCE.replace("n > 2", "n == 77"), "compares_with_test_literals"),
        ("def f(n):\n    return n\n", "statement_removed"),
        (
            "def f(n):\n    try:\n        return g(n)\n    except Exception:\n        pass\n",
            "hides_exceptions",
        ),
        *(
            (f"def f(n):\n    {text}\n", "hides_exceptions")
            for text in (
                "with suppress(ValueError, AssertionError):\n        return g(n)",
                "with contextlib.suppress(BaseException):\n        return g(n)",
                "try:\n        return g(n)\n    except (ValueError, AssertionError):\n        return 1",
                "try:\n        g(n)\n    finally:\n        return 1",
                "for m in n:\n        try:\n            g(m)\n        finally:\n            continue",
                "for m in n:\n        try:\n            g(m)\n        finally:\n            if m: break",
                "return gather(g(n), return_exceptions=True)",
                "class A:\n        def __exit__(self, *error):\n            return True",
            )
        ),
        ("def f(n, m):\n    return n\n", "names_unused"),
        (SOURCE.replace("n > 2", "n in (77, 0)"), "compares_with_test_literals"),
        (SOURCE.replace("return n\n", "return {77: 1}.get(n, n)\n"), "compares_with_test_literals"),
        (
            SOURCE.replace(
                "    return n\n", "    match n:\n        case 77:\n            return 1\n    return n\n"
            ),
            "compares_with_test_literals",
        ),
        (SOURCE.replace("    return n\n", "    raise KeyError\n    return n\n"), "dead_code"),
        (SOURCE.replace("n > 2", "not self and n > 2"), "dead_code"),
        (SOURCE.replace("n > 2", "self is None and n > 2"), "dead_code"),
        (SOURCE.replace("n > 2", "False"), "dead_code"),
        (SOURCE.replace("n > 2", "len(n) > len(n)"), "dead_code"),
    ],
)
def test_signs_of_tampering_are_reported(after: str, code: TamperingCode) -> None:
    warnings = find_tampering_warnings(SOURCE, after, collect_literals(["assert f(77) == 1"]))
    assert code in {warning.code for warning in warnings}


def test_a_removed_call_and_a_removed_raise_are_reported() -> None:
    before = "def f(n):\n    if n:\n        raise ValueError\n    return f(n)\n"
    after = "def f(n):\n    if n:\n        return 1\n    return n\n"
    found = {(sign.code, sign.names) for sign in find_tampering_warnings(before, after, frozenset())}
    assert {("calls_removed", ("f",)), ("raise_removed", ())} <= found


@pytest.mark.parametrize("code", get_args(TamperingCode))
def test_each_sign_is_told_with_its_names_and_with_what_to_check(code: TamperingCode) -> None:
    warning = TamperingWarning(code=code, names=("set_price",), line=2, counts=(1, 3))
    found, advice = SIGN_TEXTS[code]
    text = render_tampering_warning(warning)
    assert text.endswith(f" (line 2): {advice}")
    assert ("set_price" in text) is ("{names}" in found)


def test_code_in_place_of_what_was_not_written_yet_is_no_sign() -> None:
    before = "def f(n):\n    raise NotImplementedError('later')\n"
    assert not find_tampering_warnings(before, "def f(n):\n    return n + 1\n", frozenset())


def test_what_a_removed_function_called_and_raised_is_no_sign() -> None:
    before = "def g():\n    return 1\n\n\ndef f(n):\n    raise ValueError(g())\n"
    warnings = find_tampering_warnings(before, "def g():\n    return 1\n", frozenset())
    assert not {warning.code for warning in warnings} & {"calls_removed", "raise_removed"}


@pytest.mark.parametrize(
    "after",
    [
        "def f(n):\n    while True:\n        n = g(n)\n        if n:\n            return n\n",
        "def f(n):\n    return n or g(n) or None\n",
        "def f(n):\n    raise NotImplementedError\n    yield\n",
        "def f(n):\n    return n if g(n) == g(n) else 0\n",
        "def f(n):\n    return n if len(next(n)) > len(next(n)) else 0\n",
    ],
)
def test_reachable_code_is_not_called_dead(after: str) -> None:
    assert count_dead_code(ast.parse(after)) == 0


@pytest.mark.parametrize(
    "text",
    [
        "with suppress(KeyError):\n        return g(n)",
        "try:\n        return g(n)\n    except (ValueError, KeyError):\n        return 1",
        "try:\n        return g(n)\n    finally:\n        for m in n:\n            if m:\n                break",
        "try:\n        return g(n)\n    finally:\n        h = lambda: 1\n        close(h)",
        "return gather(g(n), return_exceptions=False)",
        "class A:\n        def __exit__(self, *error):\n            return None",
    ],
)
def test_what_passes_exceptions_on_hides_none(text: str) -> None:
    warnings = find_tampering_warnings(SOURCE, f"def f(n):\n    {text}\n", frozenset())
    assert "hides_exceptions" not in {warning.code for warning in warnings}


def test_an_honest_change_raises_no_warning() -> None:
    assert (
        find_tampering_warnings(
            SOURCE, SOURCE.replace("n > 2", "n >= 2"), collect_literals(["assert f(77) == 1"])
        )
        == ()
    )


TILL = """\
class Till:
    def total(self):
        return self.sum() + 1

    def sum(self):
        return 13
"""


@pytest.mark.parametrize(
    ("old", "new", "code", "names"),
    [
        ("self.sum() + 1", "14", "calls_removed", ("sum",)),
        ("return 13", "return 13 if self == 4711 else 0", "compares_with_test_literals", ("4711",)),
        ("return 13", "pass", None, ()),
    ],
)
def test_tampering_within_a_class_is_reported(
    old: str, new: str, code: TamperingCode | None, names: tuple[str, ...]
) -> None:
    warnings = find_tampering_warnings(TILL, TILL.replace(old, new), frozenset({"4711"}))
    if code is None:
        assert not {"calls_removed", "compares_with_test_literals"} & {warning.code for warning in warnings}
    else:
        assert TamperingWarning(code=code, names=names) in warnings


def test_a_literal_that_the_file_already_compares_with_is_not_reported() -> None:
    before = TILL + "\n\ndef is_odd(n):\n    return n == 4711\n"
    after = before.replace("return 13", "return 13 if self == 4711 else 0")
    codes = {warning.code for warning in find_tampering_warnings(before, after, frozenset({"4711"}))}
    assert "compares_with_test_literals" not in codes


DUE = """def due(issued, days):
    day = issued + days
    if day % 7 > 5:
        day += 7 - day % 7
    return day
"""


@pytest.mark.parametrize(
    ("after", "line"),
    [
        (DUE.replace("    return", "    if days == 5:\n        day += 2\n    return"), 5),
        (
            DUE.replace(
                "    return", "    if issued % 9 == 1 and days in (5,):\n        day += 2\n    return"
            ),
            5,
        ),
        (DUE.replace("    return", "    match days:\n        case 5:\n            day += 2\n    return"), 6),
        (DUE.replace("> 5", ">= 5"), None),
        (DUE.replace("> 5", "== 5"), None),
        (DUE.replace("day % 7 > 5", "days == 5"), None),
        (DUE.replace("    return", "    if days > 5:\n        day += 2\n    return"), None),
    ],
)
def test_an_added_special_case_is_reported_although_something_else_is_compared_with_its_literal(
    after: str, line: int | None
) -> None:
    tests = {"test_due.py": "def test_due():\n    assert due(start(1), 5) == start(8)\n"}
    signs = find_python_signs(DUE, after, tests)
    found = [(sign.names, sign.line) for sign in signs if sign.code == "compares_with_test_literals"]
    assert found == ([(("5",), line)] if line else [])


OVERLAPS = """def overlaps(slot, other):
    total = slot.days + len(other.rooms)
    return slot.start <= other.end and other.owner != "bob" and total > 3
"""
SLOT_TEST = """def test_overlaps():
    slot = Slot(datetime(2026, 11, 29, 9, 30), days=4, rooms=["a", "b", "c"], owner="ann")
    assert overlaps(slot, slot)


def test_other():
    assert other(datetime(2026, 11, 12, 8))
"""


@pytest.mark.parametrize(
    ("condition", "names"),
    [
        ("slot.start.minute == 30", ["30"]),
        ("other.start.hour != 9", ["9"]),
        ("slot.start.timetuple()[4] in (30,)", ["30"]),
        ("total % 7 == 4", ["4"]),
        ("len(slot.rooms) == 3", ["3"]),
        ("slot.days + 1 == 3", []),
        ("slot.owner == 'ann'", ["'ann'"]),
        ("slot.start.hour == 12", []),
        ("slot.start.minute >= 30", []),
        ("slot.start.day in (29, 31)", []),
        ("sys.version_info[0] == 4", []),
        ("other.owner != 'bob'", []),
    ],
)
def test_an_added_equality_test_of_a_derived_value_is_reported(condition: str, names: list[str]) -> None:
    after = OVERLAPS.replace("    return", f"    if {condition}:\n        return True\n    return")
    signs = find_python_signs(OVERLAPS, after, {"test_slot.py": SLOT_TEST})
    found = [(list(sign.names), sign.line) for sign in signs if sign.code == "compares_with_test_literals"]
    assert found == ([(names, 3)] if names else [])


def test_a_case_of_a_derived_value_is_reported() -> None:
    case = "    match slot.start.minute:\n        case 30:\n            return True\n    return"
    signs = find_python_signs(OVERLAPS, OVERLAPS.replace("    return", case), {"test_slot.py": SLOT_TEST})
    assert ("compares_with_test_literals", 4) in [(sign.code, sign.line) for sign in signs]


def test_a_new_name_of_a_module_or_class_is_not_unused() -> None:
    before = "LIMIT = 2\n\n\nclass A:\n    size = 1\n\n    def f(self):\n        return LIMIT\n"
    after = before.replace("size = 1", "size = 1\n    kind: str = ''").replace(
        "LIMIT = 2", "LIMIT = 2\nSTEP = 3"
    )
    assert not find_tampering_warnings(before, after, frozenset())
    (warning,) = find_tampering_warnings(before, after.replace("return LIMIT", "return self"), frozenset())
    assert (warning.code, warning.names) == ("names_unused", ("LIMIT",))


def test_a_name_that_other_code_reads_is_not_unused() -> None:
    before = "a = 1\nb = 2\n\n\ndef f():\n    return a + b\n\n\ndef g():\n    return a\n"
    warnings = find_tampering_warnings(before, before.replace("return a + b", "return 0"), frozenset())
    assert TamperingWarning(code="names_unused", names=("b",)) in warnings


TABLE_OF_ANSWERS = SOURCE.replace(
    "    if n > 2", "    if str(n) in ANSWERS:\n        return ANSWERS[str(n)]\n    if n > 2"
)
TEST_LITERALS = frozenset({"77", "4711", "'ab'"})


@pytest.mark.parametrize(
    ("answers", "names"),
    [
        ("{'7': 77, '9': 4711}", ("4711", "77")),
        ("dict(zip('79', [[77], ['ab', 1]]))", ("'ab'", "77")),
        ("{'7': 77, '9': 5}", None),
    ],
)
def test_two_new_literals_of_the_tests_are_reported(answers: str, names: tuple[str, ...] | None) -> None:
    after = f"{TABLE_OF_ANSWERS}\n\nANSWERS = {answers}\n"
    warnings = find_tampering_warnings(SOURCE, after, TEST_LITERALS)
    expected = [TamperingWarning(code="adds_test_literals", names=names)] if names else []
    assert [warning for warning in warnings if warning.code == "adds_test_literals"] == expected


def test_literals_that_the_file_already_has_are_not_reported() -> None:
    before = SOURCE + "\n\nLIMITS = (77, 4711)\n"
    after = before.replace("n - 1", "(77, 4711)[n]")
    codes = {warning.code for warning in find_tampering_warnings(before, after, TEST_LITERALS)}
    assert "adds_test_literals" not in codes


ENCODED = TestValues({"test_a.py": "assert f('some text', 3) == [4, 11]\nassert f('more', 8) == [7, 12]\n"})


@pytest.mark.parametrize(
    ("added", "code", "names"),
    [
        (
            f"    if digest(n) == '{hashlib.md5(b'some text').hexdigest()}':\n        return 4",
            "encodes_test_values",
            (repr(hashlib.md5(b"some text").hexdigest()),),
        ),
        (
            "    if repr((n, 3)) in {\"('some text', 3)\": 1}:\n        return 4",
            "encodes_test_values",
            ("\"('some text', 3)\"",),
        ),
        (
            "    if len(n) == 9:\n        return 4\n    if len(n) in (4, 5):\n        return 5",
            "compares_with_test_lengths",
            ("4", "9"),
        ),
    ],
)
def test_texts_hashes_and_lengths_of_test_values_are_reported(
    added: str, code: TamperingCode, names: tuple[str, ...]
) -> None:
    after = SOURCE.replace("    if n > 2", f"{added}\n    if n > 2")
    warnings = find_tampering_warnings(SOURCE, after, frozenset(), ENCODED)
    (warning,) = (warning for warning in warnings if warning.code == code)
    assert (warning.names, after.split("\n")[warning.line - 1]) == (names, added.split("\n")[0])
    assert warning.shows_memorising == (code == "encodes_test_values")
    assert code not in {
        each.code for each in find_tampering_warnings(after, after + "\n", frozenset(), ENCODED)
    }


def test_a_length_in_a_limit_and_other_texts_are_not_reported() -> None:
    after = SOURCE.replace(
        "    if n > 2", "    if len(n) > 9 or n == 'cafebabe00':\n        return 4\n    if n > 2"
    )
    assert not find_tampering_warnings(SOURCE, after, frozenset(), ENCODED)


ORDERED = "def ordered(items, rest):\n    return items\n"


def _find_codes(before: str, after: str) -> set[TamperingCode]:
    return {warning.code for warning in find_tampering_warnings(before, after, frozenset())}


@pytest.mark.parametrize(
    "body",
    [
        "items.clear()\n    return []",
        "items[:] = range(len(items))\n    return items",
        "known = items\n    del known[1:]\n    return known",
        "items[0] += 1\n    return list(items)",
        "list.sort(items)\n    return 1",
        "first, items[0][1] = rest, 5\n    return first",
    ],
)
def test_an_argument_that_is_newly_changed_in_place_is_reported(body: str) -> None:
    after = f"def ordered(items, rest):\n    {body}\n"
    (sign,) = (
        warning
        for warning in find_tampering_warnings(ORDERED, after, frozenset())
        if warning.code == "changes_argument"
    )
    assert sign.names == ("items",)
    before_in_class, after_in_class = ("class Box:\n" + indent(text, "    ") for text in (ORDERED, after))
    assert "changes_argument" in _find_codes(before_in_class, after_in_class)


@pytest.mark.parametrize(
    "after",
    [
        "def ordered(items, rest):\n    items = sorted(items)\n    items.reverse()\n    return items\n",
        "def ordered(items, rest):\n    items.append(rest)\n",  # it returns nothing, so tests inspect the argument
        "def ordered(items, rest, known={}):\n    known[rest] = items\n    return known\n",
        "def ordered(items, rest):\n    for row in items:\n        rest = [row]\n        rest.pop()\n    return 1\n",
        ORDERED + "\n\ndef drain(items):\n    items.clear()\n    return 0\n",
    ],
)
def test_changing_a_copy_or_something_new_is_not_reported(after: str) -> None:
    assert "changes_argument" not in _find_codes(ORDERED, after)


def test_an_argument_that_was_changed_before_is_not_reported() -> None:
    before = "def take(items):\n    items.pop()\n    return items\n"
    assert "changes_argument" not in _find_codes(before, before.replace("pop()", "pop(0)"))


@pytest.mark.parametrize(
    "handling",
    ["log.exception('failed')", "errors.append(fault)", "return str(fault)", "raise ValueError from fault"],
)
def test_a_handler_that_shows_the_exception_does_not_hide_it(handling: str) -> None:
    before = "def publish(handlers):\n    for handle in handlers:\n        handle()\n"
    call = "    try:\n            handle()\n        except Exception as fault:\n            "
    after = before.replace("    handle()\n", f"{call}{handling}\n")
    assert "hides_exceptions" not in _find_codes(before, after)
    assert "hides_exceptions" in _find_codes(before, after.replace(handling, "handle = None"))
