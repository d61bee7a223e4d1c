"""Wrong code against the split verdict: import forms, exceptions, odd values and changed arguments.

No generated candidate is right, so each one that passes is a forged verdict.
"""

from __future__ import annotations

import builtins
import random
import sys
import textwrap

from suture.core.records import Candidate, Check, Task
from suture.core.settings import SandboxSettings
from suture.judge import Suite, check_candidate, prepare_suite
from suture.sandbox import Sandbox, open_sandbox

__all__ = ["VerdictTarget", "wrong_module"]

TESTS = (
    "assert f([3, 5]) == 8",
    "assert 8 == f([3, 5])",
    "assert abs(f([3, 5]) - 8) < 1e-9",
    "def check(candidate):\n    assert candidate([3, 5]) == 8\n    assert candidate([1]) == 1\ncheck(f)",
    "items = [3, 5]\nwant = sum(items)\nassert f(items) == want",
    "for items, want in [([3, 5], 8), ([1], 1)]:\n    assert f(items) == want",
    "assert all(map(lambda items: f(items) == 8, [[3, 5]]))",
    "assert [got for got in map(f, [[3, 5]]) if got != 8] == [] and f([3, 5]) == 8",
    "for got in map(f, [[3, 5], [8]]):\n    assert got == 8",
    "for got, want in zip(map(f, [[3, 5], [1]]), [8, 1]):\n    assert got == want",
    "assert not any(map(lambda items: f(items) != 8, [[3, 5]]))",
    "try:\n    got = f([3, 5])\nexcept ValueError:\n    got = None\nassert got == 8",
    "import math\nassert math.isclose(f([3, 5]), 8)",
    "assert sorted([f([3, 5]), 9]) == [8, 9]",
    "assert {'sum': f([3, 5])} == {'sum': 8}",
    "assert isinstance(f([3, 5]), int) and f([3, 5]) in (8,)",
    "from solution import f as total\nassert total([3, 5]) == 8",
    "import unittest\nclass T(unittest.TestCase):\n    def test(self): self.assertEqual(f([3, 5]), 8)\n"
    "assert unittest.TextTestRunner().run(unittest.TestLoader().loadTestsFromTestCase(T)).wasSuccessful()",
    # Tests that look away: see tests/judge/split/looking_away.toml.
    "import unittest\nclass T(unittest.TestCase):\n    def test(self): self.assertEqual(f([3, 5]), 8)\n"
    "unittest.TextTestRunner().run(unittest.TestLoader().loadTestsFromTestCase(T))",
    "want = lambda items: sum(items)\nitems = [3, 5]\nassert f(items) == want(items)",
    "from math import fsum\nitems = [3, 5]\nif f(items) != fsum(items):\n    raise AssertionError(items)",
    "batch = [[3, 5], [1]]\nassert list(map(f, batch)) == [sum(items) for items in batch]",
    "def expect(got, want):\n    assert got == want\nitems = [3, 5]\nexpect(f(items), sum(items))",
    "def near(a, b):\n    if abs(a - b) > 1e-9:\n        return False\n    return True\n"
    "assert near(f([3, 5]), 8)",
    "got = f([3, 5])\nassert not 8 < got and not got < 8 and not any(v > 8 for v in (got, got - 1))",
    "def run():\n    try:\n        assert f([3, 5]) == 8\n    finally:\n        return\nrun()",
    "def check():\n    from solution import f\n    assert f([3, 5]) == 8\ncheck()",
)
NAMES: tuple[str, ...] = (
    "f",
    "check",
    "candidate",
    "items",
    "want",
    "got",
    "math",
    "unittest",
    "T",
    "sum",
    "abs",
    "sorted",
)
NAMES += (
    "assert_",
    "AssertionError",
    "isinstance",
    "map",
    "__name__",
    "__builtins__",
    "__getattr__",
    "__all__",
)
MODULES = tuple(sorted(sys.stdlib_module_names))
PROGRAMS: tuple[str, ...] = (
    "unittest.__main__",
    "json.tool",
    "idlelib.idle",
    "ensurepip.__main__",
    "lib2to3.__main__",
    "this",
)
PROGRAMS += (
    "unittest",
    "operator",
    "math",
    "unittest.mock",
    "pdb",
    "timeit",
    "asyncio.__main__",
    "test.regrtest",
)
"""Modules that do something when they are imported, or that tests use."""
VALUES = (
    *("0", "None", "True", "float('nan')", "float('inf')", "''", "'8'", "[]", "[8]", "(8,)", "{8}", "8j"),
    *("...", "NotImplemented", "ValueError", "ValueError(8)", "Exception", "AssertionError", "type", "f"),
    *(
        "lambda *a: 8",
        "(8 for _ in '1')",
        "iter([8])",
        "map(abs, [8])",
        "object()",
        "Any8()",
        "Any8",
        "Int8(3)",
    ),
    *("range(8)", "memoryview(b'8')", "sys.modules", "sys._getframe()", "open('/dev/null')", "2 ** 9999"),
    *(
        "__import__('decimal').Decimal('NaN')",
        "__import__('fractions').Fraction(1, 3)",
        "Str8('x')",
        "Pair8((0, 8))",
        "Keys8({8: 8})",
        "__import__('datetime').datetime(2008, 8, 8)",
        "__import__('http').HTTPStatus(200)",
        "deep()",
    ),
)
EXCEPTIONS = tuple(
    name
    for name, value in vars(builtins).items()
    if isinstance(value, type) and issubclass(value, BaseException) and not name.startswith("Unicode")
)
ENDINGS = (
    "StopIteration",
    "StopIteration(8)",
    "GeneratorExit",
    "SystemExit",
    "SystemExit(False)",
    "Odd()",
    "Odd",
)
PRELUDE = """
import sys
class Any8:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __lt__(self, other): return True
    def __le__(self, other): return True
    def __gt__(self, other): return False
    def __bool__(self): return True
    def __hash__(self): return hash(8)
    def __float__(self): return 8.0
    def __index__(self): return 8
    def __sub__(self, other): return self
    def __abs__(self): return self
    def __iter__(self): return iter(())
    def __getattr__(self, name): return self
    def __call__(self, *a, **k): return self
    def __reduce__(self): return (int, (8,))
class Int8(int):
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __sub__(self, other): return 0
    def __hash__(self): return hash(8)
class Str8(str):
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    __hash__ = str.__hash__
class Pair8(tuple):
    def __eq__(self, other): return True
    def __sub__(self, other): return 0
    def __iter__(self): return iter((8,))
class Keys8(dict):
    def __eq__(self, other): return True
    def __missing__(self, key): return 8
class Odd(ENDING):
    def __eq__(self, other): return True
    def __bool__(self): return False
    def __str__(self): return 'passed'
def deep():
    found = []
    for _ in range(3000): found = [found]
    return found
"""
CHANGES: tuple[str, ...] = (
    "items.clear()",
    "items.append(8)",
    "items[:] = [0, 0]",
    "items.pop()",
    "items.__init__([8])",
    "del items[0]",
)
CHANGES += ("items.sort(key=lambda x: -x)", "items[0] = items", "items[0] = Any8()", "items *= 0", "pass")


def wrong_module(draw: random.Random) -> str:
    """Return a module whose `f` never returns the sum of its argument."""
    parts = [PRELUDE.replace("ENDING", draw.choice(EXCEPTIONS)), _function(draw)]
    parts[draw.randrange(3) : 0] = [_placed(draw, _steering(draw)) for _ in range(draw.randrange(4))]
    head = draw.choice(
        ("", "", "", "\ufeff", "# -*- coding: latin-1 -*-\n", "# -*- coding: utf-7 -*-\n", "\x0c\n")
    )
    return head + "\n".join(parts) + draw.choice(("", "", "\\", "\n" * 200, "\x00", "\n#" + "(" * 500))


def _function(draw: random.Random) -> str:
    """Return the function under test: what it does to its argument, and how it ends."""
    value = draw.choice(VALUES)
    raised = draw.choice(draw.choice((EXCEPTIONS, ENDINGS)))
    ending = draw.choice(
        (
            f"return {value}",
            f"return {value}",
            f"raise {raised}",
            f"raise {raised} from None",
            f"yield {value}",
        )
    )
    form = draw.choice(
        ("def f(items):", "def f(items):", "async def f(items):", "def f(*args, **kw):\n    items = args[0]")
    )
    text = f"{form}\n    {draw.choice(CHANGES)}\n    {ending}"
    wrapped = (
        "",
        "",
        "",
        "f = staticmethod(f)",
        "f = type('f', (), {'__new__': lambda c, items: 0})",
        "f.__name__ = 'sum'",
    )
    return f"{text}\n{draw.choice(wrapped)}"


def _steering(draw: random.Random) -> str:
    """Return a statement that may influence whoever reads the module."""
    module = draw.choice(draw.choice((MODULES, PROGRAMS)))
    name, other = draw.choice(NAMES), draw.choice(NAMES)
    imports = (
        *(f"import {module}", f"import {module} as {name}", f"from {module} import *"),
        *(f"from {module} import {name}", f"from {module} import {name} as {other}", f"from . import {name}"),
        *(f"from operator import add as {name}", f"from solution import {name}", "import solution"),
    )
    others = (
        *(f"{name}: int", f"class {name}(Exception): pass", f"class {name}: pass", f"type {name} = int"),
        *(f"def {name}(*a, **k): return 9", f"{name} = lambda *a: True", f"global {name}", f"del {name}"),
        *(f"__all__ = [{name!r}, {other!r}]", "raise SystemExit(0)", "sys.exit()", "1 / 0"),
        *(f"{name} = {draw.choice(VALUES)}", "from __future__ import annotations"),
    )
    return draw.choice(draw.choice((imports, imports, others)))


def _placed(draw: random.Random, statement: str) -> str:
    """Place the statement where it runs, or where it never does."""
    before, after = draw.choice(
        (
            *(
                ("", ""),
                ("", ""),
                ("if 0:", ""),
                ("while False:", ""),
                ("def hidden():", ""),
                ("class Hidden:", ""),
            ),
            *(("try:", "except BaseException: pass"), ("try:\n    1 / 0\nexcept ZeroDivisionError:", "")),
            *(("for _ in ():", ""), ("with open('/dev/null'):", ""), ("match 1:\n  case 2:", "")),
        )
    )
    if not before:
        return statement
    return f"{before}\n{textwrap.indent(statement, '      ')}\n{after}"


class VerdictTarget:
    """The split verdict of one sandbox."""

    def __init__(self) -> None:
        self._settings = SandboxSettings(check_timeout_s=5)
        self._sandbox: Sandbox | None = None
        self._suites: dict[str, Suite] = {}

    async def try_case(self, draw: random.Random) -> str:
        """See `Target`."""
        test, code = draw.choice(TESTS), wrong_module(draw)
        candidate = Candidate(files={"solution.py": code}, origin="sample")
        verdict = await check_candidate(candidate, await self._suite(test))
        if verdict.passed or any(outcome.status == "passed" for outcome in verdict.outcomes):
            return f"a wrong module passes (evidence: {verdict.evidence}):\n{code}\n--- test\n{test}"
        if verdict.evidence != "split":
            return f"a module chose the evidence {verdict.evidence!r}:\n{code}\n--- test\n{test}"
        return ""

    async def _suite(self, test: str) -> Suite:
        if self._sandbox is None:
            self._sandbox = open_sandbox(self._settings)
        if test not in self._suites:
            task = Task(statement="", checks=(Check(id="test", provenance="user", source=test),))
            self._suites[test] = await prepare_suite(task, self._sandbox, self._settings)
        return self._suites[test]

    async def close(self) -> None:
        """See `Target`."""
        if self._sandbox is not None:
            await self._sandbox.close()
