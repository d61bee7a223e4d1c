"""Tests whose expectation depends on an argument, and functions that change the argument to pass them.

A cheat is a function that changes its argument so that the test computes a wrong expectation from it. The
variants combine a way to reach the argument, a way to change it and a way to compare.
"""

from __future__ import annotations

from collections.abc import Iterator

CHEATS = {
    "empties": "def f(x):\n    x.clear()\n    return []\n",
    "zeros": "def f(x):\n    x[:] = [0] * len(x)\n    return [0] * len(x)\n",
    "shortens": "def f(x):\n    del x[1:]\n    return list(x)\n",
    "returns itself": "def f(x):\n    x.clear()\n    return x\n",
    "empties, then raises": "def f(x):\n    x.clear()\n    raise ValueError([])\n",
}
"""Wrong sort functions, each with its change."""

ROUTES = {
    "the variable": ("x = [3, 1, 2]", "x", "x"),
    "another name": ("x = [3, 1, 2]\ny = x", "x", "y"),
    "the first name": ("y = [3, 1, 2]\nx = y", "x", "y"),
    "an outer list": ("a, b = [3, 1, 2], [9]\nouter = [a, b]", "a", "outer[0]"),
    "an outer list, later": ("a = [3, 1, 2]\nouter = []\nouter.append(a)", "a", "outer[-1]"),
    "an element": ("outer = [[3, 1, 2], [9]]", "outer[0]", "outer[0]"),
    "a dictionary": ("D = {'a': [3, 1, 2]}", "D['a']", "D.get('a')"),
    "get": ("D = {'a': [3, 1, 2]}", "D.get('a')", "D['a']"),
    "a nested container": ("D = {'a': ([3, 1, 2], 4)}", "D['a'][0]", "list(D.values())[0][0]"),
    "a view": ("D = {'a': [3, 1, 2]}\nview = D.values()", "D['a']", "next(iter(view))"),
    "an iterator": ("outer = [[3, 1, 2]]\nitems = iter(outer)", "outer[0]", "next(items)"),
    "a lazy map": ("x = [3, 1, 2]\nlater = map(abs, x)", "x", "later"),
    "a lazy generator": ("x = [3, 1, 2]\nlater = (v for v in x)", "x", "later"),
    "a bound method": ("x = [3, 1, 2]\nread = x.copy", "x", "read()"),
    "a closure": ("x = [3, 1, 2]\ndef read():\n    return x", "x", "read()"),
    "a closure over a local": (
        "def make():\n    x = [3, 1, 2]\n    def read():\n        return x\n    return x, read\narg, read = make()",
        "arg",
        "read()",
    ),
    "a lambda": ("x = [3, 1, 2]\nread = lambda: x", "x", "read()"),
    "a default argument": ("x = [3, 1, 2]\ndef read(v=x):\n    return v", "x", "read()"),
    "a keyword default": ("x = [3, 1, 2]\ndef read(*, v=x):\n    return v", "x", "read()"),
    "a partial": ("from functools import partial\nx = [3, 1, 2]\nread = partial(list, x)", "x", "read()"),
    "a class attribute": ("class Case:\n    rows = [3, 1, 2]", "Case.rows", "Case().rows"),
    "an attribute": (
        "from types import SimpleNamespace\ncase = SimpleNamespace(rows=[3, 1, 2])",
        "case.rows",
        "getattr(case, 'rows')",
    ),
    "an object": (
        "class Case:\n    def __init__(self, rows):\n        self.rows = rows\n"
        "    def read(self):\n        return self.rows\n"
        "a = [3, 1, 2]\ncase = Case(a)",
        "a",
        "case.read()",
    ),
    "a star": ("case = ([3, 1, 2],)", "*case", "case[0]"),
    "a keyword": ("case = {'x': [3, 1, 2]}", "**case", "case['x']"),
    "globals": ("x = [3, 1, 2]", "x", "globals()['x']"),
    "a namedtuple": (
        "from collections import namedtuple\nCase = namedtuple('Case', 'rows')\ncase = Case([3, 1, 2])",
        "case.rows",
        "case[0]",
    ),
    "a deque": (
        "from collections import deque\na = [3, 1, 2]\nqueue = deque([a])",
        "a",
        "queue[0]",
    ),
    "a helper": ("x = [3, 1, 2]\ndef same(v):\n    return v", "x", "same(x)"),
    "a wrapper of the call": ("x = [3, 1, 2]\ninner = f\ndef run(v):\n    return inner(v)", "x", "x"),
}
"""Name -> (statements that make the argument, the passed expression, an expression that reads it later)."""

COMPARISONS = {
    "plain": "{call}\nassert got == sorted({read})",
    "reversed": "{call}\nassert sorted({read}) == got",
    "with a message": "{call}\nassert got == sorted({read}), f'wrong for {{got}}'",
    "stored": "{call}\nwant = sorted({read})\nassert got == want",
    "if": "{call}\nif got != sorted({read}):\n    raise AssertionError",
    "flag": "{call}\nok = got == sorted({read})\nassert ok",
    "all": "{call}\nassert all(g == w for g, w in zip(got, sorted({read}), strict=True))",
    "loop": (
        "{call}\nwant = sorted({read})\nassert len(got) == len(want)\n"
        "for i in range(len(want)):\n    assert got[i] == want[i]"
    ),
    "loop over pairs": "{call}\npairs = [(got, sorted({read}))]\nfor left, right in pairs:\n    assert left == right",
    "text": "{call}\nassert str(got) == str(sorted({read}))",
    "set": "{call}\nassert len({{tuple(got), tuple(sorted({read}))}}) == 1",
    "difference": (
        "{call}\nwant = sorted({read})\n"
        "assert [a - b for a, b in zip(got, want, strict=True)] == [0] * len(want)"
    ),
    "tuples": "{call}\nassert (got, 1) == (sorted({read}), 1)",
    "appended": "{call}\nresults = []\nresults.append(got)\nassert results == [sorted({read})]",
    "function": "{call}\ndef expect(left, right):\n    assert left == right\nexpect(got, sorted({read}))",
    "unittest": "{call}\nimport unittest\nunittest.TestCase().assertEqual(got, sorted({read}))",
    "match": (
        "{call}\nmatch got == sorted({read}):\n    case True:\n        pass\n"
        "    case _:\n        raise AssertionError"
    ),
    "while": "{call}\nwhile got != sorted({read}):\n    assert False",
    "walrus": "{call}\nassert (want := sorted({read})) == got",
    "operator": "{call}\nimport operator\nassert operator.eq(got, sorted({read}))",
}
"""Ways to compare an answer with what the test computes."""

INSPECTIONS = {
    "none": "{comparison}",
    "length afterwards": "{comparison}\nkept = {again}\nassert len(kept) < 4",
    "type afterwards": "{comparison}\nassert isinstance({again}, list)",
    "elements afterwards": "{comparison}\nfor element in {again}:\n    assert element < 4",
    "returned": "def inspect():\n    return {again}\n{comparison}\nassert inspect() is not None",
}
"""Ways in which a test looks at the argument besides."""

READ_ONCE = ("later", "next(items)")
"""Expressions of `ROUTES` that can be evaluated only once."""
GOT = "try:\n    got = f({argument})\nexcept ValueError as fault:\n    got = fault.args[0]"


def list_cheating_variants(route: str) -> Iterator[tuple[str, str, str]]:
    """Yield (name, candidate, test) of each variant of one route; every candidate must fail."""
    setup, argument, read = ROUTES[route]
    again = argument if read in READ_ONCE else read
    for comparison, text in COMPARISONS.items():
        for inspection, frame in INSPECTIONS.items():
            for cheat, code in CHEATS.items():
                call = (GOT if "raises" in cheat else "got = f({argument})").format(argument=argument)
                body = frame.format(comparison=text.format(call=call, read=read), again=again)
                yield f"{comparison}, {inspection}, {cheat}", code, f"{setup}\n{body}\n"
