"""Asserts of a test program become checks."""

from __future__ import annotations

import ast

import pytest

from suture.errors import UsageError
from suture.judge import extract_asserts, extract_examples
from suture.judge.extraction.program_plans import TaskNames, plan_program
from suture.project.python_source.parsing import parse_module


def test_each_assert_becomes_a_check_with_its_setup() -> None:
    first, second = extract_asserts("import math\nassert f(1) == 2\nx = 3\nassert f(x) == math.pi\n")
    assert first.source == "import math\nassert f(1) == 2\n"
    assert second.source == "import math\nx = 3\nassert f(x) == math.pi\n"
    assert (first.id, first.provenance, first.trust) == ("assert f(1) == 2", "user", 1.0)


def test_ids_are_stable_short_and_distinct() -> None:
    text = f"x = 1\nassert f(x)\nx = 2\nassert f(x)\nassert f(x)\nassert f({'1' * 200})"
    ids = [check.id for check in extract_asserts(text)]
    assert ids == [check.id for check in extract_asserts(text)]
    assert len(ids) == len(set(ids)) == 3
    assert ids[0] == "assert f(x)"
    assert all(len(name) < 130 for name in ids)


def test_invalid_python_is_refused_with_its_line() -> None:
    with pytest.raises(UsageError, match="line 2"):
        extract_asserts("x = 1\nassert f(")


def test_code_without_asserts_has_no_checks() -> None:
    assert extract_asserts("x = 1") == ()


LOOP = "assert f(1) == 2\nfor i in range(4):\n    assert f(i) == 2 * i\n"


def test_statements_after_the_last_assert_become_a_check() -> None:
    first, rest = extract_asserts(LOOP)
    assert first.source == "assert f(1) == 2\n"
    assert (rest.source, rest.id) == (LOOP, "for i in range(4): assert f(i) == 2 * i")

    (called,) = extract_asserts("def check(c):\n    assert c(1) == 2\nx = 3\ncheck(f)\ny = 4\n")
    assert called.id == "check(f)"
    assert called.source.endswith("x = 3\ncheck(f)\ny = 4\n")

    only = extract_asserts("assert f(1)\nx = 1\ndef g(): ...\n'words'\n")
    assert [check.id for check in only] == ["assert f(1)"]


def test_a_loop_before_an_assert_belongs_to_its_check() -> None:
    (check,) = extract_asserts("for i in range(4):\n    assert f(i) == 2 * i\nassert f(9) == 18\n")
    assert "range(4)" in check.source


def test_a_definition_keeps_its_decorators() -> None:
    (check,) = extract_asserts("import functools\n@functools.cache\ndef g(): return 1\nassert f(1) == g()\n")
    assert "@functools.cache\ndef g" in check.source


@pytest.mark.parametrize("text", [f"x = {'-' * 60000}1", f"x = {'+'.join(['1'] * 50000)}", "x = 1\0"])
def test_unreadable_source_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError, match="not Python"):
        extract_asserts(text)


def test_unreadable_prose_and_code_have_no_examples() -> None:
    deep = f"{'-' * 60000}1"
    assert extract_examples(f">>> f({deep})\n{deep}\n\nf(1) == {deep}\n", "f") == ()
    assert plan_program(f"assert f({deep})", TaskNames(files=("s.py",), module="s.py")).names == {}
    assert parse_module(deep) is None


def test_an_assert_continues_with_the_state_of_the_previous_one() -> None:
    text = "c = Cart()\nassert c.add(1) == 1, 'one'\nassert c.total() == 1\nassert f(2) == 3\n"
    _, total, other = extract_asserts(text)
    assert total.source == "c = Cart()\nc.add(1) == 1\nassert c.total() == 1\n"
    assert other.source.endswith("assert f(2) == 3\n")

    (_, check) = extract_asserts("data = [2, 1]\nassert ordered(data) == [1, 2]\nassert data == [2, 1]\n")
    assert "ordered(data)" in check.source

    (_, named) = extract_asserts("assert (n := f(1)) == 2\nassert n + 1 == 3\n")
    assert "(n := f(1)) == 2\n" in named.source


def test_parsing_is_retried_after_a_spurious_recursion_error(monkeypatch: pytest.MonkeyPatch) -> None:
    parse, faults = ast.parse, [SystemError("AST constructor recursion depth mismatch")]

    def fail_once(source: str) -> ast.Module:
        if faults:
            raise faults.pop()
        return parse(source)

    monkeypatch.setattr(ast, "parse", fail_once)

    tree = parse_module("a = 1\n")

    assert tree is not None
    assert ast.unparse(tree) == "a = 1"
