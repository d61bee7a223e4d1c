"""A snippet replaces its part of a file, and the rest of the file stays unchanged."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import suture
from suture.agents import RepairBrief, files_from_reply
from suture.errors import MalformedReply
from suture.models import Reply
from suture.project.python_source.splicing import splice

FILE = '''"""Rates."""

import os

RATE = 2


# Takes one off.
def price(x):
    return x - 1


def untested(x):
    return x * RATE


class Cart:
    """A cart."""

    limit: int = 3

    def __init__(self):
        self.items = []

    @property
    def size(self):
        return 0

    @size.setter
    def size(self, value):
        self.items = [0] * value

    def total(self):
        return 0


if __name__ == "__main__":
    print(price(1))
'''


def splice_into(code: str, original: str = FILE) -> str:
    brief = RepairBrief(statement="", files={"calc.py": original})
    files = files_from_reply(Reply(text=f"```python\n{code}```"), brief)
    ast.parse(files["calc.py"])
    return files["calc.py"]


def run_code(code: str) -> dict[str, object]:
    names: dict[str, object] = {"__name__": "calc"}
    exec(compile(code, "calc.py", "exec"), names)
    return names


def test_a_new_helper_is_added() -> None:
    text = splice_into("def _inc(x):\n    return x + 1\n\ndef price(x):\n    return _inc(x)\n")
    expected = FILE.replace(
        "# Takes one off.\ndef price(x):\n    return x - 1\n",
        "def _inc(x):\n    return x + 1\n\n\n# Takes one off.\ndef price(x):\n    return _inc(x)\n",
    )
    assert text == expected


def test_a_changed_constant_is_replaced() -> None:
    text = splice_into("RATE = 3\ndef price(x):\n    return x + 1\n")
    assert text == FILE.replace("RATE = 2", "RATE = 3").replace("x - 1", "x + 1")


def test_a_used_constant_is_added_but_example_code_is_not() -> None:
    text = splice_into("STEP = 1\ndef price(x):\n    return x + STEP\n\nresult = price(2)\nprint(result)\n")
    assert "STEP = 1\n" in text
    assert "result" not in text
    assert run_code(text)["STEP"] == 1


def test_a_class_with_one_method_keeps_its_other_members() -> None:
    text = splice_into("class Cart:\n    def total(self):\n        return sum(self.items)\n")
    assert text == FILE.replace(
        "def total(self):\n        return 0", "def total(self):\n        return sum(self.items)"
    )


def test_a_class_gains_a_method_and_a_field() -> None:
    text = splice_into(
        "class Cart:\n    rate: int = 5\n\n    def double(self):\n        return 2 * self.rate\n"
    )

    assert "    limit: int = 3\n    rate: int = 5\n" in text
    cart = run_code(text)["Cart"]
    assert isinstance(cart, type)
    assert cart().double() == 10
    assert cart().total() == 0


def test_a_property_keeps_its_setter() -> None:
    text = splice_into("class Cart:\n    @property\n    def size(self):\n        return len(self.items)\n")
    assert text == FILE.replace(
        "def size(self):\n        return 0", "def size(self):\n        return len(self.items)"
    )


def test_a_property_without_its_class_keeps_its_setter() -> None:
    text = splice_into("@property\ndef size(self):\n    return len(self.items)\n")
    assert text == FILE.replace(
        "def size(self):\n        return 0", "def size(self):\n        return len(self.items)"
    )


def test_a_property_gains_a_setter() -> None:
    original = (
        "class C:\n    @property\n    def v(self):\n        return 0\n\n    def k(self):\n        return 1\n"
    )
    text = splice_into("class C:\n    @v.setter\n    def v(self, x):\n        self.x = x\n", original)
    cls = run_code(text)["C"]

    assert isinstance(cls, type)
    cls().v = 1
    assert cls().k() == 1


def test_overloads_are_replaced_together() -> None:
    original = (
        "from typing import overload\n"
        "@overload\ndef f(x: int) -> int: ...\n@overload\ndef f(x: str) -> str: ...\n"
        "def f(x):\n    return None\n\ndef g(): pass\n"
    )
    text = splice_into("@overload\ndef f(x: float) -> float: ...\ndef f(x):\n    return x\n", original)

    assert text.count("@overload") == 1
    assert "def g()" in text


def test_a_function_with_an_omitted_body_stays_unchanged() -> None:
    reply = FILE.replace("x - 1", "x + 1").replace("return x * RATE", "...  # unchanged")
    assert splice_into(reply) == FILE.replace("x - 1", "x + 1")


def test_an_indented_method_is_placed_in_its_class() -> None:
    text = splice_into("    def total(self):\n        return 9\n")
    assert text == FILE.replace("def total(self):\n        return 0", "def total(self):\n        return 9")


def test_the_content_of_a_string_is_not_indented() -> None:
    text = splice_into('def total(self):\n    return f"""\nA\n  {1}\n"""\n')
    assert '        return f"""\nA\n  {1}\n"""\n' in text


def test_a_function_inside_a_condition_is_replaced_in_place() -> None:
    original = "import os\n\nif os.name:\n    def f():\n        return 0\n\nX = 1\n"
    assert splice_into("def f():\n    return 1\n", original) == original.replace("return 0", "return 1")


def test_a_whole_file_may_remove_a_wrong_import() -> None:
    original = "from math import squareroot\n\n\ndef f(x):\n    return squareroot(x)\n"
    new = "from math import sqrt\n\n\ndef f(x):\n    return sqrt(x)\n"
    assert splice_into(new, original) == new


def test_a_wrong_import_of_the_same_name_is_replaced() -> None:
    original = (
        "from collections import Mapping\n\n\ndef f(x):\n    return x\n\n\ndef g():\n    return Mapping\n"
    )
    text = splice_into("from collections.abc import Mapping\n\ndef f(x):\n    return x\n", original)
    assert text == original.replace("collections import", "collections.abc import")


@pytest.mark.parametrize(
    "code",
    [
        "x = 1; RATE = 3\ndef price(x):\n    return 1\n",
        "def total(self):\n    return 1\n\nclass Cart(:\n",
        "return x + 1\n",
        "class price:\n    pass\n",
    ],
    ids=["shared line", "does not parse", "a body", "a class for a function"],
)
def test_code_without_a_matching_definition_is_malformed(code: str) -> None:
    with pytest.raises(MalformedReply):
        splice_into(code)


def test_a_method_of_two_classes_is_ambiguous() -> None:
    original = (
        "class A:\n    def f(self):\n        return 0\n\n\nclass B:\n    def f(self):\n        return 0\n"
    )
    with pytest.raises(MalformedReply, match="leaves out A, B"):
        splice_into("def f(self):\n    return 1\n", original)


def test_a_part_of_a_file_with_a_syntax_error_keeps_the_rest() -> None:
    rest = "class C:\n    def k(self):\n        return 1\n"
    original = f"RATE = 1\n\n\n@staticmethod\ndef f(:\n    return 0\n\n\n{rest}"

    assert splice_into("def f():\n    return 2\n", original) == (
        f"RATE = 1\n\n\ndef f():\n    return 2\n\n\n{rest}"
    )

    with pytest.raises(MalformedReply):
        splice_into("class C:\n    def other(self):\n        return 1\n", original)


def test_too_deeply_nested_source_is_not_spliced() -> None:
    deep = "x = " + "+".join(["1"] * 20000) + "\n"
    assert splice(deep, "x = 1\n") in (None, "x = 1\n")
    assert splice("x = 1\n", "x = " + "-" * 60000 + "1\n") is None


def test_a_replaced_class_keeps_its_bases_decorators_and_docstring() -> None:
    original = '@final\nclass A(Base):\n    """Doc."""\n\n    def f(self):\n        return 0\n\n\nX = 1\n'
    text = splice_into("class A:\n    def f(self):\n        return 1\n", original)
    assert text == original.replace("return 0", "return 1")
    assert splice_into(original.replace("return 0", "return 1"), original) == text


def test_a_function_with_an_optional_fast_version_is_replaced() -> None:
    original = (
        "def f():\n    return 0\n\n\ntry:\n    from _fast import f\nexcept ImportError:\n    pass\n\nX = 1\n"
    )
    assert splice_into("def f():\n    return 1\n", original) == original.replace("return 0", "return 1")


def test_a_static_method_is_placed_in_its_class() -> None:
    original = (
        "class A:\n    @staticmethod\n    def f(x):\n        return 0\n\n    def g(self):\n        return 1\n"
    )
    assert splice_into("@staticmethod\ndef f(x):\n    return 2\n", original) == original.replace(
        "return 0", "return 2"
    )


OWN_SOURCE = sorted(Path(suture.__file__).parent.joinpath("agents", "roles").glob("*.py"))


@pytest.mark.parametrize("path", OWN_SOURCE, ids=lambda path: path.name)
def test_splicing_a_definition_into_its_own_file_changes_nothing(path: Path) -> None:
    text = path.read_text("utf-8")
    lines = text.splitlines(keepends=True)
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            start = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            assert splice(text, "".join(lines[start - 1 : node.end_lineno])) == text
