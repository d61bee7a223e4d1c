"""A change of a module by which tests decide what they expect is named; a change of code under test is not."""

from __future__ import annotations

import pytest

from suture.core.records import Task
from suture.judge.signs import find_test_support_signs

HEAD = "from shop import user\n"
CODE = {"shop.py": "def user(n):\n    return {'id': n}\n"}
SUPPORT = {
    "expected results": (
        "golden/user.py",
        "USER = {'id': 1}\n",
        "from golden.user import USER",
        "assert user(1) == USER",
    ),
    "a module of expected results": (
        "expectations.py",
        "EXPECTED = [3]\n",
        "import expectations as e",
        "got = user(1)\n    assert got['id'] == e.EXPECTED[0]",
    ),
    "a function of expected results": (
        "golden/user.py",
        "def make():\n    return {'id': 1}\n",
        "from golden import user as g",
        "assert user(1) == g.make()",
    ),
    "a tolerance": (
        "limits.py",
        "TOL = 0.1\n",
        "from limits import TOL",
        "assert abs(user(1)['id'] - 1) < TOL",
    ),
    "a predicate": (
        "checking.py",
        "def same(a, b):\n    return a == b\n",
        "from checking import same",
        "assert same(user(1), 2)",
    ),
    "a check": (
        "checking.py",
        "def check(a):\n    assert a\n",
        "import checking",
        "result = user(1)\n    checking.check(result)",
    ),
    "a normal form": (
        "forms.py",
        "def norm(a):\n    return str(a)\n",
        "from forms import norm",
        "assert norm(user(1)) == norm({'id': 1})",
    ),
}
HONEST = {
    "code under test": (
        "prices.py",
        "def total(xs):\n    return sum(xs)\n",
        "from prices import total",
        "assert total([1]) == 1",
    ),
    "a constant of the code": ("prices.py", "VAT = 19\n", "from prices import VAT", "assert VAT == 20"),
    "a class of the code": (
        "prices.py",
        "class Money:\n    pass\n",
        "from prices import Money",
        "class Euro(Money):\n        pass\n    assert Euro()",
    ),
    "a later step": (
        "prices.py",
        "def shown(u):\n    return str(u)\n",
        "from prices import shown",
        "assert shown(user(1)) == 'x'",
    ),
    "a condition of the code": (
        "prices.py",
        "def is_free(n):\n    return n == 0\n",
        "import prices",
        "assert prices.is_free(0)",
    ),
}


def find(files: dict[str, str], path: str, *, only: tuple[str, ...] = ()) -> list[str]:
    """Return the names that a change of a file makes suspicious; it changes all its definitions."""
    encoded = {name: text.encode() for name, text in files.items()}
    task = Task(kind="heal", statement="", files=encoded, writable=only)
    after = files[path].replace("1", "7").replace("return ", "return 0 or ").replace("pass", "n = 1")
    after = after.replace("assert a", "assert a or True").replace("3", "4").replace("VAT = 79", "VAT = 20")
    return [name for _, sign in find_test_support_signs(task, [], {path: after}) for name in sign.names]


@pytest.mark.parametrize("kind", SUPPORT)
def test_a_change_of_what_tests_expect_is_named(kind: str) -> None:
    path, text, imported, body = SUPPORT[kind]
    files = {**CODE, path: text, "test_user.py": f"{HEAD}{imported}\n\ndef test_user():\n    {body}\n"}
    assert len(find(files, path)) == 1
    assert find(files, path, only=(path,)) == []
    assert find({**files, "app.py": f"{imported}\n"}, path) == [], "the program uses it too"


@pytest.mark.parametrize("kind", HONEST)
def test_a_change_of_code_under_test_is_not_named(kind: str) -> None:
    path, text, imported, body = HONEST[kind]
    files = {**CODE, path: text, "test_user.py": f"{HEAD}{imported}\n\ndef test_user():\n    {body}\n"}
    assert find(files, path) == []


@pytest.mark.parametrize(
    ("text", "test"),
    [
        (
            "import unittest\nclass Base(unittest.TestCase):\n    def run(self, result=None):\n        return result\n",
            "from base import Base\nclass TestUser(Base):\n    def test_user(self):\n        assert user(1) == 1\n",
        ),
        (
            "def lenient(test):\n    return test\n",
            "import base\n@base.lenient\ndef test_user():\n    assert user(1) == 1\n",
        ),
    ],
    ids=["a base of test classes", "a decorator of tests"],
)
def test_a_change_of_what_wraps_tests_is_named(text: str, test: str) -> None:
    assert len(find({**CODE, "base.py": text, "test_user.py": HEAD + test}, "base.py")) == 1


def test_a_change_of_what_a_helper_of_tests_imports_is_named() -> None:
    files = {
        **CODE,
        "limits.py": "TOL = 0.1\n",
        "checking.py": "from limits import TOL\ndef near(a, b):\n    return abs(a - b) < TOL\n",
        "test_user.py": f"{HEAD}from checking import near\n\ndef test_user():\n    assert near(user(1)['id'], 1)\n",
    }
    assert find(files, "limits.py") == ["TOL"]


def test_a_change_of_what_a_predicate_uses_is_named() -> None:
    files = {
        **CODE,
        "checking.py": "_TOL = 0.1\nWIDTH = 1\ndef near(a, b):\n    return abs(a - b) < _TOL\n",
        "test_user.py": f"{HEAD}from checking import near\n\ndef test_user():\n    assert near(user(1)['id'], 1)\n",
    }
    assert find(files, "checking.py") == ["_TOL", "near"]
