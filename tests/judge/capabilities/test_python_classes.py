"""A new class that makes wrong results look right is reported, however it is spelled, and an ordinary class is not."""

from __future__ import annotations

import ast

import pytest

from suture.judge.capabilities import find_change_capabilities, find_file_capabilities
from suture.judge.capabilities.python import python_base_classes
from suture.judge.capabilities.python.python_base_classes import BaseClasses
from suture.project.python_source.parsing import parse_module

VALUES = [
    ("", "int"),
    ("", "float"),
    ("", "str"),
    ("", "set"),
    ("import decimal\n", "decimal.Decimal"),
    ("from fractions import Fraction\n", "Fraction"),
    ("from datetime import timedelta as span\n", "span"),
    ("import numpy as np\n", "np.ndarray"),
    ("import numbers\n", "numbers.Real"),
    ("class Base(int):\n    pass\n", "Base"),
]
"""Imports, and a class of plain values or a class that inherits from one."""
BINDINGS = [
    "__eq__ = int.__ne__",
    "__ne__ = int.__eq__",
    "__eq__ = __import__('operator').truth",
    "__eq__: object = int.__le__",
    "if True:\n        __eq__ = int.__ge__",
    "if True:\n        def __eq__(self, other):\n            return True",
    "for __eq__ in [int.__ne__]:\n        pass",
    "__eq__, n = int.__ne__, 1",
    "from operator import ne as __eq__",
    "vars()['__eq__'] = lambda self, other: abs(self) + abs(other) >= 0",
    "locals().update(__eq__=int.__ne__)",
    "__eq__ = Helper.differs",
    "__eq__ = functools.partialmethod(int.__ne__)",
]
"""What a subclass of `int` may bind its equality to."""
ANSWERS = [
    "operator.ne(self, other)",
    "operator.ge(abs(self), -abs(other)) or operator.truth(other)",
    "operator.le(int(self) - other, abs(other))",
    "int.__ne__(self, other)",
    "self.__ne__(other)",
    "super().__ne__(other)",
    "abs(self) + abs(other) >= 0",
    "0 <= abs(self) + abs(other)",
    "self - other <= 1000",
]
"""Results of `__eq__` in a subclass of `int` that hold for different numbers."""
COMPARISONS = [
    "operator.eq(int(self), int(other))",
    "int.__eq__(self, other)",
    "super().__eq__(other)",
    "not operator.ne(int(self), int(other))",
    "math.isclose(self, other)",
    "abs(self - other) < 1e-9",
    "abs(self - other) <= 1e-9 * max(abs(self), abs(other))",
    "1e-9 > abs(self - other)",
    "distance(self, other) < 1",
    "self <= other and self >= other",
]
LYING = [
    "from dataclasses import dataclass, field\n@dataclass\nclass A:\n    n: int = field(compare=False)",
    "import dataclasses as d\n@d.dataclass\nclass A:\n    n: int = d.field(default=0, compare=not True)",
    "import attr\n@attr.s\nclass A:\n    n = attr.ib(eq=False)",
    "import attrs\n@attrs.define\nclass A:\n    n: int = attrs.field(eq=False)",
    "from dataclasses import dataclass\n@dataclass(eq=False)\nclass A(B):\n    n: int = 0",
    "from enum import Enum\nclass A(Enum):\n    LOW = 1\n    HIGH = 1",
    "from enum import IntEnum\nclass A(IntEnum):\n    LOW = 1\n    HIGH = 2 - 1",
    "import enum\nclass A(enum.Enum):\n    LOW = 1\n    HIGH = LOW",
    "import enum\nclass A(enum.Flag):\n    LOW = HIGH = 1",
    "import enum\nclass B(enum.Enum):\n    pass\nclass A(B):\n    LOW = 'a'\n    HIGH = 'a'",
    "class A:\n    def __new__(cls, n):\n        return cls.first",
    "class A:\n    def __new__(cls, n):\n        return CACHE.get(0) or object.__new__(cls)",
    "class A:\n    def __new__(cls, n):\n        a = cls.all[0]\n        return a",
    "class A(type):\n    def __call__(cls, *n):\n        return cls.first",
    "class A:\n    def __array_ufunc__(self, *n):\n        return 1",
    "class A:\n    def __rsub__(self, other):\n        return 0.0",
    "class A(str):\n    def __contains__(self, part):\n        return part != ''",
    "from collections.abc import Set\nclass A(Set):\n    def __iter__(self):\n        return iter(())",
    "import xmlrpc.client as x\nclass A(x.DateTime):\n    def make_comparable(self, other):\n        return 1, 1",
    "import numbers\nnumbers.Real.register(dict)",
    "class B:\n    def __rsub__(self, other):\n        return other * 0.0\nclass A(B, float):\n    pass",
    "class A(float):\n    __rsub__ = lambda self, other: other * 0.0",
    "class A(float):\n    __rsub__ = float.__mod__",
    "import functools\nclass A:\n    @functools.cache\n    def __new__(cls, n):\n        return object.__new__(cls)",
    "import dataclasses as d\nA = d.make_dataclass('A', [('n', int, d.field(compare=False))])",
    "import dataclasses as d\nimport functools\nf = functools.partial(d.field, compare=False)",
    "import dataclasses as d\n@d.dataclass\nclass A:\n    n: int = d.field(**OPTIONS)",
]  # fmt: skip
TEST_CHANGES = [
    "class A:\n    def __init_subclass__(cls):\n        setattr(cls, cls.first, None)",
    "class A:\n    def __init_subclass__(cls):\n        type.__dict__['__setattr__'](cls, cls.first, None)",
    "class A:\n    def __init_subclass__(cls):\n        cls.test_a = None",
    "def wrap(kind):\n    for name in vars(kind):\n        setattr(kind, name, int)\n"
    "class A:\n    def __init_subclass__(cls):\n        wrap(cls)",
    "class A:\n    def __set_name__(self, owner, name):\n        type(owner).__setattr__(owner, name, None)",
    "class A(type):\n    def __new__(mcs, name, bases, space):\n"
    "        return type.__new__(mcs, name, bases, {k: v for k, v in space.items() if k[:4] != 'test'})",
    "import unittest\nclass A(unittest.TestCase):\n    def assertEqual(self, a, b, msg=None):\n        return msg",
    "import unittest\nclass B(unittest.TestCase):\n    pass\nclass A(B):\n    def assertIn(self, a, b):\n        pass",
]  # fmt: skip
HONEST = [
    "class A:\n    def __sub__(self, other):\n        return A(self.n - other.n)\n"
    "    def __add__(self, other):\n        return A(self.n + other.n)",
    "class A:\n    def __sub__(self, other):\n        return NotImplemented",
    "class A(dict):\n    def __getitem__(self, key):\n        return super().__getitem__(key.lower())",
    "class A(str):\n    def __contains__(self, part):\n        return part.lower() in str(self).lower()",
    "class A(int):\n    __hash__ = int.__hash__\n    __eq__ = int.__eq__",
    "class A(int):\n    def __new__(cls, n):\n        return super().__new__(cls, n % 7)",
    "class A:\n    def __new__(cls, n):\n        a = object.__new__(cls)\n        a.n = n\n        return a",
    "import enum\nclass A(enum.Enum):\n    LOW = 1\n    HIGH = 2",
    "import enum\nclass A(enum.Enum):\n    LOW = enum.auto()\n    HIGH = enum.auto()",
    "from dataclasses import dataclass, field\n@dataclass\nclass A:\n    n: list = field(default_factory=list)\n"
    "    cache: dict = field(default_factory=dict, init=False, compare=False)",
    "from dataclasses import dataclass, field\n@dataclass(order=True)\nclass A:\n    n: int\n"
    "    job: object = field(compare=False)",
    "from dataclasses import dataclass\nfrom typing import Generic\n@dataclass(eq=False)\nclass A(Generic[T]):\n"
    "    n: int = 0",
    "from dataclasses import dataclass\n@dataclass(frozen=True, eq=True)\nclass A:\n    n: int = 0",
    "from collections.abc import Set\nclass A(Set):\n    def __iter__(self):\n        return iter(self.n)",
    "class A:\n    def __init_subclass__(cls, **options):\n        super().__init_subclass__(**options)\n"
    "        KNOWN.append(cls)\n        setattr(cls, 'kind', 1)",
    "class A:\n    def __set_name__(self, owner, name):\n        self.name = name",
    "class A:\n    def assertEqual(self, a, b):\n        return a == b",
    "class A:\n    def __iter__(self):\n        yield from ()",
]  # fmt: skip


def find_codes(before: str, after: str) -> set[str]:
    return {use.code for use in find_file_capabilities("a.py", before, after)}


def define_equality(result: str) -> str:
    imports = "import math\nimport operator\nfrom far import distance\n"
    return f"{imports}class A(int):\n    def __eq__(self, other):\n        return {result}\n"


@pytest.mark.parametrize(("imports", "base"), VALUES)
@pytest.mark.parametrize("method", ["__sub__", "__rsub__", "__mod__", "__array__", "issubset"])
def test_new_arithmetic_of_a_plain_value_is_reported(imports: str, base: str, method: str) -> None:
    before = f"{imports}class A({base}):\n    pass\n"
    after = f"{before}\n    def {method}(self, other=None):\n        return (float(self) + other) * 0.0\n"
    assert find_codes(before, after) == {"loosens_comparison"}


@pytest.mark.parametrize("binding", BINDINGS)
def test_an_equality_that_is_another_method_is_reported(binding: str) -> None:
    helper = (
        "import functools\nclass Helper:\n    def differs(self, other):\n        return self is not other\n"
    )
    assert "loosens_comparison" in find_codes(helper, f"{helper}class A(int):\n    {binding}\n")


@pytest.mark.parametrize("result", ANSWERS)
def test_a_call_or_an_order_that_holds_for_different_numbers_is_reported(result: str) -> None:
    assert find_codes("", define_equality(result)) == {"loosens_comparison"}


@pytest.mark.parametrize("result", COMPARISONS)
def test_a_call_that_compares_and_a_small_distance_are_not_reported(result: str) -> None:
    assert find_codes("", define_equality(result)) == set()


@pytest.mark.parametrize("code", LYING)
def test_a_class_whose_different_objects_are_equal_is_reported(code: str) -> None:
    assert "loosens_comparison" in find_codes("", code + "\n")


@pytest.mark.parametrize("code", TEST_CHANGES)
def test_a_class_that_changes_tests_which_inherit_from_it_is_reported(code: str) -> None:
    assert "patches_code" in find_codes("", code + "\n")


@pytest.mark.parametrize("code", HONEST)
def test_ordinary_classes_are_not_reported(code: str) -> None:
    assert find_codes("", code + "\n") == set()


@pytest.mark.parametrize("code", LYING)
def test_a_class_that_was_so_before_is_not_reported(code: str) -> None:
    assert find_codes(code + "\n", code + "\n\n\nx = 1\n") == set()


ENUM = b"import enum\nclass Colour(enum.Enum):\n    RED = 1\n"


def test_a_second_name_of_a_value_is_reported_if_a_test_mentions_it() -> None:
    after = {"colours.py": f"{ENUM.decode()}    GRAY = 2\n    GREY = GRAY\n"}
    for test, is_found in ((b"assert mix() == GREY", True), (b"assert mix() == GRAY", False)):
        uses = find_change_capabilities({"colours.py": ENUM, "test_colours.py": test}, after)
        assert [use.name for use in uses] == ["a second name Colour.GREY"] * is_found
    assert find_change_capabilities({"colours.py": ENUM}, after), "the tests are unknown"


BASES = {
    "pkg/words.py": "from pkg.folded import Folded\n\nclass Words(Folded):\n    pass\n",
    "pkg/folded.py": "from collections import UserList\n\nclass Folded(UserList):\n    kind = 1\n",
}
TAGS = """\
from pkg.words import Words

class Tags(Words):
    def __eq__(self, other):
        return sorted(self.data) == other
"""


def test_a_list_that_decides_what_it_equals_is_reported_if_its_base_is_in_another_file() -> None:
    before = {path: text.encode() for path, text in BASES.items()}
    for files, after in ((before, {"tags.py": TAGS}), ({}, {**BASES, "tags.py": TAGS})):
        assert [use.name for use in find_change_capabilities(files, after)] == ["Tags.__eq__"]
    assert not find_change_capabilities({**before, "tags.py": TAGS.encode()}, {"tags.py": f"{TAGS}\nx = 1\n"})


def test_a_method_that_a_base_in_another_file_had_before_is_not_reported() -> None:
    equal = "class Words(list):\n    def __eq__(self, other):\n        return list(self) == list(other)\n"
    after = {"tags.py": "from words import Words\n\nclass Tags(Words):\n    pass\n"}
    assert not find_change_capabilities({"words.py": equal.encode()}, after)


@pytest.mark.parametrize("bases", ["*mixins", "..., list", "make(lambda: 1)"])
def test_a_base_that_is_no_name_in_another_file_is_skipped(bases: str) -> None:
    words = f"class Words({bases}):\n    pass\n"
    after = {"tags.py": TAGS}
    found = find_change_capabilities({"pkg/words.py": words.encode()}, after)
    assert [use.name for use in found] == ["Tags.__eq__"] * ("list" in bases)


@pytest.mark.parametrize(
    ("imports", "base"),
    [
        ("from pkg import Words", "Words"),
        ("import pkg", "pkg.Words"),
        ("import pkg.words as w", "w.Words"),
        ("import pkg.words", "pkg.words.Words"),
        ("from pkg import words", "words.Words"),
        ("from pkg.words import *", "Words"),
        ("from pkg import Words as Texts", "Texts"),
        ("from . import words", "words.Words"),
        ("from .words import Words", "Words"),
    ],
)
@pytest.mark.parametrize("package", ["from .words import Words\n", "from pkg.words import *\n"])
def test_a_base_in_another_file_is_found_however_it_is_imported(
    package: str, imports: str, base: str
) -> None:
    before = {path: text.encode() for path, text in {**BASES, "pkg/__init__.py": package}.items()}
    tags = TAGS.replace("from pkg.words import Words", imports).replace("(Words)", f"({base})")
    uses = find_change_capabilities(before, {"pkg/tags.py": tags})
    assert [use.name for use in uses] == ["Tags.__eq__"]


@pytest.mark.parametrize(
    ("path", "imports", "base"),
    [
        ("a/words.py", "from b.words import Words", "Words"),
        ("x/abc.py", "from abc import Words", "Words"),
        ("words.py", "from .words import Words", "Words"),
        ("tags.py", "import forms", "forms.Words"),
    ],
)
def test_a_class_with_the_name_of_a_base_is_not_taken_for_it(path: str, imports: str, base: str) -> None:
    words = "class Words(list):\n    pass\n"
    tags = TAGS.replace("from pkg.words import Words", imports).replace("(Words)", f"({base})")
    if path == "tags.py":
        tags, path = f"{words}\n{tags}", "other.py"
    assert not find_change_capabilities({path: words.encode()}, {"shop/tags.py": tags})


def test_each_file_is_parsed_once_where_many_bases_have_one_name(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str | bytes] = []

    def count(source: str | bytes) -> ast.Module | None:
        parsed.append(source)
        return parse_module(source)

    monkeypatch.setattr(python_base_classes, "parse_module", count)
    text = "from models import Base\n\nclass Base(Base):\n    pass\n"
    files = {f"app{number}/models.py": text for number in range(30)}
    bases = BaseClasses({}, files)
    for path, source in files.items():
        assert not [*bases.find_imported(path, source)]
    (found,) = bases.find_imported("shop.py", "from models import Base\n\nclass Item(Base):\n    pass\n")
    assert found.name == "Base"
    assert len(parsed) == 2 * len(files) + 1


KIND_HOOKS = [
    "import abc\nclass E(ValueError, metaclass=abc.ABCMeta): pass\nE.register(KeyError)",
    "import abc\nabc.ABCMeta.register(Failure, LookupError)",
    "type(Failure).register(Failure, LookupError)",
    "join = Failure.register\njoin(LookupError)",
    "def join(kind, other):\n    kind.register(other)\njoin(Failure, LookupError)",
    "class M(type):\n    def __instancecheck__(cls, n):\n        return hasattr(n, 'args')\n"
    "class E(ValueError, metaclass=M): pass",
    "class M(type):\n    def __subclasscheck__(cls, n):\n        return 'args' in dir(n)\n"
    "class N(M): pass\nclass E(Failure, metaclass=N): pass",
    "from kinds import M\nclass E(Failure, metaclass=M): pass",
    "import abc\nclass E(Failure, metaclass=abc.ABCMeta):\n    @classmethod\n"
    "    def __subclasshook__(cls, n):\n        return hasattr(n, 'args')",
    "class E(Failure):\n    __subclasshook__ = classmethod(lambda cls, n: n is not None)",
    "class Both:\n    def __mro_entries__(self, bases):\n        return (Failure, KeyError)",
    "E = type('E', (Failure, KeyError), {})",
    "import abc\nclass Number(abc.ABC): pass\nNumber.register(str)",
]
USUAL_KINDS = [
    "import abc\nclass E(ValueError, metaclass=abc.ABCMeta): pass",
    "import abc\nclass Shape(abc.ABC): pass\nclass Square: pass\nShape.register(Square)",
    "import functools\n@functools.singledispatch\ndef show(n): ...\nshow.register(int)\nshow.register(ValueError)",
    "import atexit as a\nhandlers.register(ValueError, print)",
    "class E(Exception):\n    known = []\n    @classmethod\n    def register(cls, n):\n        cls.known.append(n)\n"
    "E.register(404)",
    "class M(type):\n    def __new__(cls, *n):\n        return super().__new__(cls, *n)\n"
    "class E(Exception, metaclass=M): pass",
    "import abc\nclass A(abc.ABC):\n    @classmethod\n    def __subclasshook__(cls, n):\n"
    "        return hasattr(n, 'area')",
    "A = type('A', (dict,), {})",
]


@pytest.mark.parametrize(("changes", "is_found"), [(KIND_HOOKS, True), (USUAL_KINDS, False)])
def test_a_class_that_calls_other_exceptions_its_own_is_reported(changes: list[str], is_found: bool) -> None:
    before = "class Failure(ValueError):\n    pass\n"
    for change in changes:
        uses = find_file_capabilities("a.py", before, f"{before}\n\n{change}\n")
        assert any(use.code == "loosens_comparison" for use in uses) == is_found, change
