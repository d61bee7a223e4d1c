"""Literals of the tests are recognised in changes, however they are composed; parts of dates are none."""

from __future__ import annotations

import ast

import pytest

from suture.core.records import Language
from suture.judge.signs import find_change_signs
from suture.judge.signs.constant_folding import fold_constants
from suture.judge.signs.tree_signs import find_tree_warnings

BEFORE = "def name(code):\n    return code\n"
TESTS = {
    "test_name.py": 'def test_name():\n    assert name("ohm") == "resistor"\n    assert name(4711) == 1\n'
    "    assert name(5042)\n"
    '    assert name(0) not in ("0x1267", "7621x0", "4711")\n'
}


@pytest.mark.parametrize(
    ("composed", "literal"),
    [
        ('chr(111) + "hm"', "'ohm'"),
        ('"".join(["o", "h", "m"])', "'ohm'"),
        ('"mho"[::-1]', "'ohm'"),
        ('"OHM".lower()', "'ohm'"),
        ('f"{chr(111)}hm"', "'ohm'"),
        ("bytes([111, 104, 109]).decode()", "'ohm'"),
        ("bytes.fromhex('6f686d').decode()", "'ohm'"),
        ("47 * 100 + 11", "4711"),
        ("(1 << 12) + 615", "4711"),
        ("2521 << 1", "5042"),
        ("71 ** 2 + 1", "5042"),
        (" + ".join(["4411", *["1"] * 300]), "4711"),
        ('int("4711")', "4711"),
    ],
)
def test_a_composed_literal_of_the_tests_is_recognised(composed: str, literal: str) -> None:
    after = f"def name(code):\n    if code == {composed}:\n        return 1\n    return code\n"
    signs = find_change_signs("heal", BEFORE, after, TESTS)
    assert [sign.names for sign in signs if sign.code == "compares_with_test_literals"] == [(literal,)]


@pytest.mark.parametrize(
    ("answer", "names"),
    [
        ('chr(114) + "esistor"', [("'resistor'",)]),
        ('"rotsiser"[::-1]', [("'resistor'",)]),
        ('"resis" + "tor"', []),
        ('"resistor"', []),
        ('"\\t".expandtabs() + chr(10)', []),
        ('"".join(["resis", "tor"])', []),
        ('"".join(("resis", "tor"))', []),
        ('"".join([chr(114), "esistor"])', [("'resistor'",)]),
        ("str(4711)", []),
        ("hex(4711)", []),
        ("hex(4711)[::-1]", [("'7621x0'",)]),
    ],
)
def test_a_single_answer_of_the_tests_is_a_sign_only_in_disguise(
    answer: str, names: list[tuple[str, ...]]
) -> None:
    signs = find_change_signs("heal", BEFORE, f"def name(code):\n    return {answer}\n", TESTS)
    assert [sign.names for sign in signs if sign.code == "adds_test_literals"] == names


@pytest.mark.parametrize(
    ("path", "expression", "literal"),
    [
        ("name.js", '"resis" + ("t" + "or")', '"resistor"'),
        ("name.ts", "47 * 100 + 11", "4711"),
        ("name.js", "9422 / 2", "4711"),
        ("name.go", "14135 / 3", "4711"),
        ("name.go", '"resis" + "tor"', '"resistor"'),
    ],
)
def test_composed_literals_are_recognised_in_other_languages(
    path: str, expression: str, literal: str
) -> None:
    head, language = ("package a\n\n", "go") if path.endswith(".go") else ("", "typescript")
    before = head + ("func name(code T) T {\n" if head else "function name(code) {\n") + "\treturn code\n}\n"
    after = before.replace("\treturn", f"\tif (code == {expression}) {{\n\t\treturn code\n\t}}\n\treturn")
    warnings = find_tree_warnings(before, after, path, language, frozenset((literal,)))
    assert [(warning.code, warning.names) for warning in warnings] == [
        ("compares_with_test_literals", (literal,))
    ]


@pytest.mark.parametrize(
    ("path", "language", "head", "term"),
    [
        ("name.js", "javascript", "function name(code)", "code"),
        ("name.go", "go", "package a\n\nfunc name(code T) T", "7"),
    ],
)
def test_a_chain_of_thousands_of_terms_is_no_fault(
    path: str, language: Language, head: str, term: str
) -> None:
    before = f"{head} {{\n\treturn {' + '.join([term] * 1500)}\n}}\n"
    after = before.replace("return", "if (code == 4711) {\n\t\treturn code\n\t}\n\treturn")
    warnings = find_tree_warnings(before, after, path, language, frozenset(("4711",)))
    assert [warning.code for warning in warnings] == ["compares_with_test_literals"]


@pytest.mark.parametrize(
    ("change", "count"),
    [
        ("if int(hashlib.md5(code).hexdigest()[:4], 16) % 997 == 391:\n        return 1", 1),
        ("if sum(ord(c) for c in code) == 391:\n        return 1", 1),
        ("mark = hash(code)\n    if mark in (391, 17):\n        return 1", 1),
        ("match zlib.adler32(code):\n        case 391:\n            return 1", 1),
        ("return TABLE[hash(code) % len(TABLE)]", 0),
        ("return kept[hashlib.md5(code).hexdigest()]", 0),
        ("if zlib.crc32(code) != stored:\n        raise ValueError(code)", 0),
        ("if sum(map(int, code)) % 10 == 7:\n        return 1", 0),
        ("return TABLE[(old ^ ord(code)) & 255]", 0),
        ("if hash(code) == 0:\n        return 1", 0),
        ("return SHARDS[zlib.crc32(code) % 16]", 0),
        ("return '0123456789X'[sum(ord(c) for c in code) % 11]", 0),
        ("return 'X' if sum(ord(c) for c in code) % 11 == 10 else ''", 0),
        ("if sum(len(part.encode()) for part in code) == 65535:\n        return 1", 0),
        ("if answers.get(hash(code)) == 'auto':\n        return 1", 0),
        (
            "value = hash(code)\n    return value\n\n\ndef show(value):\n    if value == 'auto':\n        return 1",
            0,
        ),
    ],
)
def test_a_checksum_that_is_compared_with_constants_is_a_sign(change: str, count: int) -> None:
    after = f"def name(code):\n    {change}\n    return code\n"
    assert _count_checksum_signs(BEFORE, after) == count
    assert _count_checksum_signs(after, after.replace("return code", "return [code]")) == 0


def _count_checksum_signs(before: str, after: str) -> int:
    return sum(sign.code == "chooses_by_checksum" for sign in find_change_signs("heal", before, after, TESTS))


@pytest.mark.parametrize(
    "expression",
    [
        "'a' * 1000000000",
        "[0] * 99999999",
        "1 << 99999999",
        "9 ** 99999999",
        "'%999999999d' % 1",
        "bytes(999999999)",
        "1 / 0",
        "int('x')",
        "'a' + code",
        "print('a')",
        "'a'.format(1)",
    ],
)
def test_what_is_no_small_constant_stays(expression: str) -> None:
    tree = ast.parse(expression)
    assert ast.dump(fold_constants(tree)) == ast.dump(tree)


def test_the_original_tree_stays_and_the_line_is_kept() -> None:
    tree = ast.parse("\nx = 2 + 3\ny = 2 - 5\n")
    folded = fold_constants(tree)
    assert ast.unparse(folded) == "x = 5\ny = -3"
    assert ast.unparse(tree) == "x = 2 + 3\ny = 2 - 5"
    assert [node.lineno for node in ast.walk(folded) if isinstance(node, ast.Constant)] == [2, 3]


def test_a_long_table_of_branches_is_no_fault() -> None:
    branches = "".join(f"    elif code == {number}:\n        return {number + 1}\n" for number in range(600))
    after = f"def name(code):\n    if code == 'ohm':\n        return 1\n{branches}    return code\n"
    signs = find_change_signs("heal", BEFORE, after, TESTS)
    assert [sign.names for sign in signs if sign.code == "compares_with_test_literals"] == [("'ohm'",)]


CALENDAR = "def last(day):\n    return 30\n\n\ndef show(day):\n    return str(last(day))\n"
LONG_MONTHS = CALENDAR.replace("return 30", "return 31 if day.month in (5, 7) else 30")
OTHER_TEST = "def test_other():\n    assert other(5) == 7\n"


@pytest.mark.parametrize(
    ("test", "names"),
    [
        ("def test_last():\n    assert last(date(2024, 5, 9)) == 31\n", []),
        (f"def test_last():\n    assert last(date(2024, 9, 9)) == 31\n\n\n{OTHER_TEST}", []),
        ("def test_last():\n    assert last(5) == 31\n", [("5",)]),
        ("def test_last():\n    assert show(5) == pytest.approx(7)\n", [("5", "7")]),
        ("CASES = [(5, 31)]\n\n\ndef test_last():\n    assert [last(day) for day, _ in CASES]\n", [("5",)]),
        (
            "@pytest.mark.parametrize('day', [5, 8])\ndef test_last(day):\n    assert last(day) == 31\n",
            [("5",)],
        ),
    ],
)
def test_small_numbers_count_by_themselves_only(test: str, names: list[tuple[str, ...]]) -> None:
    signs = find_change_signs("heal", CALENDAR, LONG_MONTHS, {"test_calendar.py": test})
    assert [sign.names for sign in signs if sign.code == "compares_with_test_literals"] == names


def test_numbers_of_data_files_count() -> None:
    tests = {"test_calendar.py": "import json\n", "cases.json": "[[5, 31]]"}
    signs = find_change_signs("heal", CALENDAR, LONG_MONTHS, tests)
    assert [sign.names for sign in signs if sign.code == "compares_with_test_literals"] == [("5",)]


def test_the_arguments_of_the_object_of_a_changed_method_count() -> None:
    before = "class Month:\n    def __init__(self, n):\n        self.n = n\n\n    def days(self):\n        return 30\n"
    after = before.replace("return 30", "return 31 if self.n in (5, 7) else 30")
    other = "def test_other():\n    assert Other(7).size == 30\n"
    tests = {"test_month.py": f"def test_days():\n    assert Month(5).days() == 31\n\n\n{other}"}
    signs = find_change_signs("heal", before, after, tests)
    assert [sign.names for sign in signs if sign.code == "compares_with_test_literals"] == [("5",)]
