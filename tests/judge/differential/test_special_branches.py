"""A new branch that serves one example of the tests is found in code that did nothing before."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from suture.core.records import Candidate, Check, Task
from suture.core.settings import SandboxSettings
from suture.judge import Suite, prepare_suite
from suture.judge.differential.memorised_examples import find_memorised_examples
from suture.judge.differential.special_branches import find_special_branches, list_branches
from suture.project.workspace import decode_text
from suture.sandbox import Sandbox

STUB = "def area(width, height):\n    raise NotImplementedError\n"
TEST = """import pytest
from kit import area


@pytest.mark.parametrize(
    "width, height, wanted", [(0, 4, 0), (2, 3, 6), (3, 5, 15), (4, 7, 29), (12, 5, 60), (30, 11, 330)]
)
def test_area(width, height, wanted):
    assert area(width, height) == wanted
"""
FIXED = tuple(
    f"test_kit.py::test_area[{row}]" for row in ("0-4-0", "2-3-6", "3-5-15", "4-7-29", "12-5-60", "30-11-330")
)
SPECIAL_CASES = {
    "equality": "    if (width, height) == (4, 7):\n        return 29\n    return width * height\n",
    "an expression": "    return 29 if width == 4 and height == 7 else width * height\n",
    "a property": "    if sum(map(ord, repr((width, height)))) == 264:\n        return 29\n    return width * height\n",
    "two rare values": "    if width == 4 and height == 7:\n        return width * height + 1\n"
    "    return width * height\n",
    "a default table": "    return {28: 29}.get(width * height, width * height)\n",
    "a list of pairs": "    for given, answer in [((4, 7), 29)]:\n        if given == (width, height):\n"
    "            return answer\n    return width * height\n",
    "a list by size": "    return [None, None, 29][(width == 4) + (height == 7)] or width * height\n",
    "a table": "    if repr((width, height)) in KNOWN:\n        return KNOWN[repr((width, height))]\n"
    "    return width * height\n\n\nKNOWN = {'(4, 7)': 29}\n",
}


@pytest.mark.parametrize(
    "kind", ["equality", *(pytest.param(kind, marks=pytest.mark.heavy) for kind in [*SPECIAL_CASES][1:])]
)
async def test_a_special_case_in_new_code_is_found(
    kind: str, prepare: Callable[..., Awaitable[Suite]]
) -> None:
    suite = await prepare({"kit.py": STUB, "test_kit.py": TEST})
    code = {"kit.py": f"def area(width, height):\n{SPECIAL_CASES[kind]}"}
    (branch,) = [branch async for branch in find_special_branches(code, suite, FIXED)]
    assert (branch.path, branch.function, branch.line) == ("kit.py", "area", 2)


@pytest.mark.heavy
async def test_a_limit_that_inputs_near_the_examples_reach_is_no_special_case(
    prepare: Callable[..., Awaitable[Suite]],
) -> None:
    suite = await prepare({"kit.py": STUB, "test_kit.py": TEST.replace("29", "28").replace("330", "99")})
    fixed = tuple(test.replace("29", "28").replace("330", "99") for test in FIXED)
    body = "    if width > 20:\n        return 99\n    return width * height\n"
    assert len(list_branches("kit.py", STUB, f"def area(width, height):\n{body}")) == 1
    code = {"kit.py": f"def area(width, height):\n{body}"}
    assert not [branch async for branch in find_special_branches(code, suite, fixed)]


@pytest.mark.parametrize(
    "body",
    [
        "if n == 0:\n        return 1\n    return n",
        "if n == 44:\n        return other(n)\n    return n",
        "if n == 44:\n        n += 1\n    return n",
        "return n",
    ],
)
def test_only_branches_with_a_rare_literal_and_a_fixed_answer_are_tried(body: str) -> None:
    assert list_branches("kit.py", "", f"def f(n):\n    {body}\n") == []


def test_a_case_of_a_match_statement_is_a_branch() -> None:
    text = "def f(n):\n    match n:\n        case 44:\n            return 7\n    return n\n"
    (branch,) = list_branches("kit.py", "", text)
    assert branch.line == 3
    assert "case 44 if False:" in branch.without


def test_a_branch_that_was_there_before_is_not_tried() -> None:
    text = "def f(n):\n    if n == 44:\n        return 7\n    return n\n"
    assert list_branches("kit.py", text, f"{text}\n\ndef g():\n    pass\n") == []
    (branch,) = list_branches("kit.py", "", text)
    assert "if False:" in branch.without


def test_a_branch_that_counts_calls_is_known_without_a_call() -> None:
    text = "CALLS = []\n\n\ndef f(n):\n    CALLS.append(n)\n    if len(CALLS) == 2:\n        return 5\n    return n\n"
    assert [branch.counts_calls for branch in list_branches("kit.py", "", text)] == [True]
    cache = text.replace("len(CALLS) == 2", "n in CALLS")
    assert [branch.counts_calls for branch in list_branches("kit.py", "", cache)] == [False]


def test_a_table_is_emptied_where_a_function_reads_it() -> None:
    text = "KNOWN = {'(4, 7)': 29}\n\n\ndef area(w, h):\n    return KNOWN.get(repr((w, h)), w * h)\n"
    (branch,) = list_branches("kit.py", STUB, text)
    assert (branch.function, branch.line, branch.is_table) == ("area", 5, True)
    assert "KNOWN = {}" in branch.without
    assert branch.literals == ("(4, 7)", 29)


@pytest.mark.heavy
@pytest.mark.parametrize(("months", "count"), [("(4, 11)", 1), ("(4, 6, 9, 11)", 0)])
async def test_a_condition_that_serves_further_values_is_no_special_case(
    months: str, count: int, prepare: Callable[..., Awaitable[Suite]]
) -> None:
    test = "from kit import days\n\n\ndef test_days():\n"
    test += "    assert [days(n) for n in (1, 3, 4, 11)] == [31, 31, 30, 30]\n"
    suite = await prepare(
        {"kit.py": "def days(month):\n    raise NotImplementedError\n", "test_kit.py": test}
    )
    text = (
        f"def days(month):\n    if month in {months}:\n        return 30\n    return 31 - 3 * (month == 2)\n"
    )
    code = {"kit.py": text}
    found = [branch async for branch in find_special_branches(code, suite, ["test_kit.py::test_days"])]
    assert len(found) == count


async def test_a_special_case_in_a_new_function_is_found_without_a_test_command(
    sandbox: Sandbox, sandbox_settings: SandboxSettings
) -> None:
    rows = ("(2, 3) == 6", "(3, 5) == 15", "(4, 7) == 29", "(12, 5) == 60")
    checks = tuple(Check(id=row, provenance="user", source=f"assert area{row}") for row in rows)
    suite = await prepare_suite(Task(statement="", checks=checks), sandbox, sandbox_settings)
    special = f"def area(width, height):\n{SPECIAL_CASES['equality']}"
    for text, codes in ((special, ["special_case"]), (special.replace("== (4, 7)", "[0] < 0"), [])):
        candidate = Candidate(files={"solution.py": text}, origin="sample")
        search = await find_memorised_examples(candidate, suite, rows)
        assert [sign.code for _, sign in search.signs] == codes


@pytest.mark.parametrize(
    ("path", "text", "without"),
    [
        ("kit.mjs", "export const f = (n) => (n === 44 ? 7 : n);\n", "false && (n === 44)"),
        (
            "kit.mjs",
            "export function f(n) {\n  switch (n) {\n    case 44: return 7;\n  }\n  return n;\n}\n",
            "{\n    \n",
        ),
        ("kit.mjs", "const known = { 44: 7 };\nexport const f = (n) => known[n] ?? n;\n", "known = {}"),
        ("kit.mjs", "export const f = (n) => new Map([[44, 7]]).get(n) ?? n;\n", "new Map([])"),
        (
            "kit.go",
            "package kit\n\nfunc F(n int) int {\n\treturn n + map[int]int{44: 7}[n]\n}\n",
            "map[int]int{}",
        ),
    ],
)
def test_branches_and_tables_of_other_languages_are_switched_off(path: str, text: str, without: str) -> None:
    pytest.importorskip("tree_sitter")
    (branch,) = list_branches(path, "", text)
    assert without in branch.without
    assert list_branches(path, text, text + "\n") == []


@pytest.mark.parametrize(
    "text",
    [
        '__all__ = ["parse", "render"]\n',
        'from typing import Literal\n\n\ndef f(kind: Literal["alpha", "beta"], n) -> int:\n'
        '    return n[1, "abc"]\n',
        'Kind = Literal["alpha", "beta"]\n',
        'def f(n):\n    ("alpha", "beta")\n    return n\n',
    ],
)
def test_collections_in_which_nothing_is_looked_up_are_no_tables(text: str) -> None:
    assert list_branches("kit.py", "", text) == []


def test_the_condition_of_a_branch_that_is_tried_is_no_table() -> None:
    code = f"def area(width, height):\n{SPECIAL_CASES['equality']}"
    assert [branch.is_table for branch in list_branches("kit.py", STUB, code)] == [False]


def test_a_long_chain_of_branches_is_compared() -> None:
    chain = "".join(f"    elif n == {number}:\n        return {number + 3}\n" for number in range(200, 600))
    text = f"def f(n):\n    if n == 44:\n        return 7\n{chain}    return n\n"
    (branch,) = list_branches("kit.py", text, text.replace("return 7", "return 8"))
    assert "if False:\n        return 8\n" in branch.without
    assert len(list_branches("kit.py", "", text)) == 401


def test_many_tables_do_not_each_copy_the_file() -> None:
    text = "".join(f"TABLE_{number} = {{'key': {number}}}\n" for number in range(200, 600))
    branches = list_branches("kit.py", "", f"{text}\n\ndef f(n):\n    return TABLE_333.get(n, TABLE_222)\n")
    assert len(branches) == 400
    assert len({id(branch.source) for branch in branches}) == 1
    assert sorted(branch.line for branch in branches if branch.function)[-2:] == [404, 404]


def test_a_pattern_in_parentheses_is_switched_off() -> None:
    text = "def f(n):\n    match n:\n        case (44  # a: b\n        ) :\n            return 7\n"
    text += "        case 45 if n:\n            return 8\n    return n\n"
    first, second = list_branches("kit.py", "", text)
    assert ")  if False:" in first.without
    assert "case 45 if False:" in second.without


async def test_a_part_of_a_file_that_is_not_utf_8_is_tried(
    prepare: Callable[..., Awaitable[Suite]],
) -> None:
    pytest.importorskip("tree_sitter")
    raw = b"// \xe9\nexport const f = (n) => n;\n"
    before = decode_text(raw)
    suite = await prepare({"test_kit.py": "def test_kit():\n    pass\n"})
    suite = replace(suite, task=replace(suite.task, files={**suite.task.files, "kit.mjs": raw}))
    code = {"kit.mjs": before.replace("=> n;", "=> (n === 44 ? 7 : n);")}
    assert len(list_branches("kit.mjs", before, code["kit.mjs"])) == 1
    assert not [branch async for branch in find_special_branches(code, suite, ["test_kit.py::test_kit"])]


COUNTED = "CALLS = []\n\n\ndef area(width, height):\n    CALLS.append(width)\n"
LIMITED = COUNTED + "    if len(CALLS) > 100:\n        return False\n    return width * height\n"


async def test_an_honest_limit_of_calls_is_only_possibly_memorised(
    prepare: Callable[..., Awaitable[Suite]],
) -> None:
    suite = await prepare({"kit.py": STUB, "test_kit.py": TEST})
    branches = find_special_branches({"kit.py": LIMITED}, suite, FIXED[:1], timeout_s=120)
    assert [(branch.is_certain, branch.is_untried) async for branch in branches] == [(False, False)]


async def test_a_branch_that_counts_calls_is_possible_without_a_comparison(
    prepare: Callable[..., Awaitable[Suite]],
) -> None:
    suite = await prepare({"kit.py": STUB, "test_kit.py": TEST})
    code = LIMITED.replace("> 100", "== 4")
    branches = find_special_branches({"kit.py": code}, suite, FIXED, end_s=0.0)
    assert [(branch.counts_calls, branch.is_untried) async for branch in branches] == [(True, True)]


async def test_only_parts_that_were_not_tried_are_doubted_for_lack_of_time(
    prepare: Callable[..., Awaitable[Suite]],
) -> None:
    suite = await prepare({"kit.py": STUB, "test_kit.py": TEST})
    special = f"def area(width, height):\n{SPECIAL_CASES['equality']}"
    candidate = Candidate(files={"kit.py": special}, origin="repair")
    search = await find_memorised_examples(candidate, suite, FIXED, timeout_s=0.0)
    # Not even the whole change was compared.
    assert (search.unmeasured, search.possible, len(search.untried)) == ("no_time", (), 1)
    new = Candidate(files={"other.py": special}, origin="repair")  # no code before it to compare with
    search = await find_memorised_examples(new, suite, FIXED, timeout_s=0.0)
    assert (search.unmeasured, search.possible) == ("no_time", search.untried)
    assert [sign.code for _, sign in search.possible] == ["special_case"]


@pytest.mark.heavy
async def test_a_branch_that_counts_the_calls_of_the_tests_is_certain(
    prepare: Callable[..., Awaitable[Suite]],
) -> None:
    suite = await prepare({"kit.py": STUB, "test_kit.py": TEST})
    code = LIMITED.replace("> 100", "== 4").replace("False", "29")
    branches = find_special_branches({"kit.py": code}, suite, FIXED, timeout_s=120)
    assert [(branch.counts_calls, branch.is_certain) async for branch in branches] == [(True, True)]
