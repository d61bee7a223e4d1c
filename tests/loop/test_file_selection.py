"""The selection of the files that the coder's prompt shows."""

from __future__ import annotations

import pytest

from suture.agents.context.file_selection import select_suspicious_files
from suture.agents.tuning import MAX_SELECTED_CHARS
from suture.core.records import Counterexample
from suture.errors import UsageError
from suture.project.workspace import is_protected

PROJECT = {
    "shop/__init__.py": b"",
    "shop/cart.py": b"from shop.prices import price\n\n\ndef total(n):\n    return price(n)\n",
    "shop/prices.py": b"def price(n):\n    return n\n",
    "shop/unrelated.py": b"x = 1\n",
    "tests/test_cart.py": b"from shop.cart import total\n\n\ndef test_total():\n    assert total(1) == 2\n",
    "notes.txt": b"hello",
    "latin.py": "# caf\xe9\n".encode("latin-1"),
}


def select_files(*facts: Counterexample, files: dict[str, bytes] = PROJECT) -> list[str]:
    return list(select_suspicious_files(files, facts, {path for path in files if is_protected(path)}))


def test_the_file_that_raised_comes_first() -> None:
    assert select_files(Counterexample(check_id="t", file="shop/prices.py"))[0] == "shop/prices.py"


def test_without_a_traceback_the_imports_of_the_tests_are_followed() -> None:
    assert select_files() == ["shop/cart.py", "shop/prices.py", "shop/unrelated.py"]


def test_tests_are_not_selected() -> None:
    assert select_files(Counterexample(check_id="t", file="tests/test_cart.py"))[0] == "shop/cart.py"


def test_relative_imports_and_a_src_layout_are_understood() -> None:
    files = {
        "src/pkg/__init__.py": b"from .core import f\n",
        "src/pkg/core.py": b"from . import deep\n",
        "src/pkg/deep.py": b"y = 2\n",
        "src/pkg/a_first.py": b"z = 3\n",
        "tests/test_pkg.py": b"from pkg import f\n",
    }
    assert select_files(files=files) == [
        "src/pkg/__init__.py",
        "src/pkg/core.py",
        "src/pkg/deep.py",
        "src/pkg/a_first.py",
    ]


def test_no_file_is_truncated() -> None:
    files = {"a.py": b"a = 1\n" * MAX_SELECTED_CHARS, "b.py": b"b = 1\n"}
    assert select_files(files=files) == ["a.py"]
    assert select_suspicious_files(files, (), ())["a.py"] == "a = 1\n" * MAX_SELECTED_CHARS


def test_a_file_that_does_not_parse_is_selected() -> None:
    files = {"roman.py": b"def f(:\n", "test_roman.py": b"import roman\n"}
    assert select_files(files=files) == ["roman.py"]


def test_an_empty_file_is_selected() -> None:
    assert select_files(files={"calc.py": b"", "test_calc.py": b"from calc import add\n"}) == ["calc.py"]


def test_an_empty_package_is_selected_if_it_is_the_only_code() -> None:
    assert select_files(files={"shop/__init__.py": b"", "test_shop.py": b"from shop import f\n"}) == [
        "shop/__init__.py"
    ]


def test_a_project_without_readable_code_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="declare its encoding"):
        select_files(
            files={"calc.py": "NAME = 'caf\xe9'\n".encode("latin-1"), "test_calc.py": b"import calc\n"}
        )


def test_source_too_deep_for_the_parser_is_selected() -> None:
    deep = ("x = " + "+".join(["1"] * 5000) + "\n").encode()
    deeper = ("x = " + "-" * 60000 + "1\n").encode()
    files = {"big.py": deep, "test_a.py": b"import big\n" + deeper}
    assert select_files(files=files) == ["big.py"]
