"""A new comparison method that may call different objects equal is reported, and an ordinary one is not."""

from __future__ import annotations

import textwrap

import pytest

from suture.judge.capabilities import find_file_capabilities

STATE = "class A:\n    def __init__(self, n):\n        self.n = n\n"
LOOSE = [
    "return isinstance(other, object)",
    "return other is not None",
    "return bool(other) or True",
    "return hash(other) is not None",
    "try:\n    return self.n == other.n\nfinally:\n    return True",
    "return not (self.n != self.n) or other",
    "self.__dict__.update(other.__dict__)\nreturn self.__dict__ == other.__dict__",
    "self.__dict__.update(other.__dict__)\nreturn True",
    "self.n = other\nreturn self.n == other",
    "return [self, other] == [self, other]",
    "return self is not other",
    "return self.n == other or self.n != other",
    "if other is None:\n    return False\nreturn True",
    "for _ in range(3):\n    if isinstance(other, int):\n        return True\nreturn False",
    "return len(str(other)) >= 0",
    "r = self.n == other.n\nr = True\nreturn r",
    "other = self\nreturn self.n == other.n",
    "return isinstance(other, A)",
    "return type(self) == type(other)",
    "return 1 == 1 and other is not self",
    "return (self.n == other.n) | True",
    "return NotImplemented if other is None else True",
    "return other == other",
    "return len([self, other]) == 2",
    "return any([self, other])",
    "return self.n is not other",
    "if self.n == other.n or other:\n    return True\nreturn False",
    "return self.n == self.n",
    "return {self: other}",
    "return self.n and other",
    "yield True",
    "vars(self).update(vars(other))\nreturn vars(self) == vars(other)",
    "return (lambda a: True)(other) if self else True",
    "match other:\n    case _:\n        return True",
    "return __import__('operator').truth(other)",
    "return str(self) + str(other)",
    "return max(self.n, other)",
    "return self.n == other.n if hasattr(other, 'n') else True",
    "return not isinstance(other, str)",
]
"""Bodies of `__eq__` in a class with data."""
HONEST = [
    "return self.n == other.n",
    "return isinstance(other, A) and self.n == other.n",
    "return NotImplemented if not isinstance(other, A) else self.n == other.n",
    "if not isinstance(other, A):\n    return NotImplemented\nreturn (self.n,) == (other.n,)",
    "return self.__dict__ == other.__dict__",
    "return self._key() == other._key()",
    "return hash(self) == hash(other)",
    "return super().__eq__(other) and self.n == other.n",
    "return self is other",
    "if self is other:\n    return True\nreturn False",
    "if self.n != other.n:\n    return False\nreturn True",
    "for k in ('n',):\n    if getattr(self, k) != getattr(other, k):\n        return False\nreturn True",
    "return all(getattr(self, k) == getattr(other, k) for k in ('n',))",
    "return abs(self.n - other.n) < 1e-9",
    "try:\n    return self.n == other.n\nexcept AttributeError:\n    return False",
    "return not self != other",
    "return not (self < other or other < self)",
    "if isinstance(other, str):\n    return str(self) == other\nreturn self.n == other.n",
    "same = self.n == other.n\nreturn same",
    "if isinstance(other, int):\n    other = A(other)\nreturn self.n == other.n",
    "return repr(self) == repr(other)",
    "a, b = self.n, other.n\nreturn a == b",
    "return str(self) == str(other)",
    "if len(self.n) != len(other.n):\n    return False\n"
    "for a, b in zip(self.n, other.n):\n    if a != b:\n        return False\nreturn True",
    "return self.n is other.n",
    "result = True\nfor a, b in zip(self.n, other.n):\n    if a != b:\n        result = False\nreturn result",
    "return math.isclose(self.n, other.n)",
    "return other in self.n",
    "return self.n.__eq__(other.n)",
    "return self.n == other",
    "return (type(self) is type(other)) and vars(self) == vars(other)",
    "return tuple(self) == tuple(other)",
    "return set(self.n) <= set(other.n) and set(other.n) <= set(self.n)",
    "return self.n == getattr(other, 'n', None)",
    "eq = self.n == other.n\neq = eq and self.m == other.m\nreturn eq",
    "with lock:\n    return self.n == other.n",
    "return not bool(self.n ^ other.n)",
    "return self.n - other.n == 0",
    "return self.cmp(other) == 0",
    "match other:\n    case A(n=n):\n        return self.n == n\nreturn False",
    "return False",
    "raise TypeError",
    "return not self.__ne__(other)",
    "if type(other) is not type(self):\n    return False\nelse:\n    return self.n == other.n",
    "return operator.eq(self.n, other.n)",
    "if self.n == other.n:\n    return True",
    "return 0 == self.cmp(other)",
    "other = A.coerce(other)\nreturn self.n == other.n",
    "return self.n.lower() == other.lower()",
]
LOOSE_MODULES = [
    "class A:\n    def __init__(self):\n        self.n = 1\n"
    "    def __eq__(self, other):\n        return self.same(other)\n"
    "    def same(self, other):\n        return other is not None",
    "def always(a, b):\n    return True\n\nclass A:\n    __eq__ = always",
    "class A:\n    def __eq__(self, other):\n        return type(self) is type(other)\n\n"
    "class B(A):\n    def __init__(self, n):\n        self.n = n",
    "def same(a, b):\n    return b is not a\n\n"
    "class A:\n    def __eq__(self, other):\n        return same(self, other)",
    "def make():\n    def always(a, b):\n        return True\n    return always\n\nclass A:\n    __eq__ = make()",
    "import functools\nclass A:\n    __eq__ = functools.wraps(len)(lambda a, b: True)",
    "class A:\n    def __ne__(self, other):\n        return False",
    "class A:\n    def __ne__(self, other):\n        return self.n != self.n",
    "class A:\n    def __lt__(self, other):\n        return other is not None",
    "class A:\n    def __contains__(self, item):\n        return True",
    "class A:\n    def __eq__(*both):\n        return len(both) == 2",
    "class A:\n    def __eq__(self, other):\n        return isinstance(other, object)",
    "class A:\n    __class__ = int",
    "class A:\n    __eq__ = property(lambda self: lambda other: True)",
    "class A:\n    @property\n    def __eq__(self):\n        return lambda other: True",
    "class A:\n    @property\n    def __class__(self):\n        return int",
    "A = type('A', (), {'__eq__': lambda a, b: True})",
    "A = type('A', (), dict(__eq__=lambda a, b: bool(b) or True))",
    "class A(int):\n    def __eq__(self, other):\n        return int(self) == int(other) or True",
]
HONEST_MODULES = [
    "class A:\n    def __eq__(self, other):\n        return isinstance(other, A)",
    "class A:\n    def __eq__(self, other):\n        return type(self) is type(other)",
    "class A:\n    def __init__(self):\n        self.n = 1\n"
    "    def __eq__(self, other):\n        return self.same(other)\n"
    "    def same(self, other):\n        return self.n == other.n",
    "class A:\n    __eq__ = object.__eq__",
    "def same(a, b):\n    return a.n == b.n\n\n"
    "class A:\n    def __eq__(self, other):\n        return same(self, other)",
    "import operator\n\ndef compare(operation):\n    def method(self, other):\n"
    "        return operation(self.n, other.n)\n    return method\n\n"
    "class A:\n    __lt__ = compare(operator.lt)",
    "class A:\n    def __ne__(self, other):\n        if self.n == other.n:\n            return False\n"
    "        return True",
    "class A:\n    def __lt__(self, other):\n        if isinstance(other, str):\n            return True\n"
    "        return self.n < other.n",
    "class A:\n    def __contains__(self, item):\n        return item in self.items",
    "class A(str):\n    def __eq__(self, other):\n        return self.lower() == other.lower()",
    "class A:\n    def __eq__(self, other):\n        return self._compare(other, 'eq')\n"
    "    def _compare(self, other, name):\n        return NotImplemented",
]


def find_loose(code: str) -> list[str]:
    return [use.name for use in find_file_capabilities("a.py", "", code) if use.code == "loosens_comparison"]


def define_equality(body: str) -> str:
    return f"{STATE}\n    def __eq__(self, other):\n{textwrap.indent(body, ' ' * 8)}\n"


@pytest.mark.parametrize("body", LOOSE)
def test_an_equality_that_holds_without_a_comparison_is_reported(body: str) -> None:
    assert find_loose(define_equality(body)) == ["A.__eq__"]


@pytest.mark.parametrize("body", HONEST)
def test_an_equality_that_compares_both_objects_is_not_reported(body: str) -> None:
    assert find_loose(define_equality(body)) == []


@pytest.mark.parametrize("code", LOOSE_MODULES)
def test_a_loose_comparison_is_reported_however_the_class_gets_it(code: str) -> None:
    assert find_loose(code)


@pytest.mark.parametrize("code", HONEST_MODULES)
def test_usual_ways_to_define_comparisons_are_not_reported(code: str) -> None:
    assert find_loose(code) == []


def test_a_comparison_that_is_too_long_to_analyse_is_reported() -> None:
    assert find_loose(define_equality("return " + " | ".join(["(self.n == other.n)"] * 30))) == []
    assert find_loose(define_equality("return " + " | ".join(["(self.n == other.n)"] * 900)))
