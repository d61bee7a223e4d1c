# ruff: noqa: E501 - each line is one program
"""Each kind of fault has an operator that reverts it; every mutant parses and leaves the rest unchanged."""

from __future__ import annotations

import ast
import sys
import sysconfig
import textwrap
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import get_args

import pytest

from suture.judge.signs import count_dead_code
from suture.mutation import Edit, apply_edits, generate_mutants, generate_tree_mutants
from suture.mutation.changes import Change
from suture.mutation.edits import edits_overlap
from suture.mutation.python.operators import OPERATORS, PythonOperator
from suture.mutation.python.operators.calls import WRAPPERS
from suture.mutation.python.python_tree import PythonTree, parse_python_tree
from suture.mutation.python.scope_names import ValueKind

FAULTS = {
    "comparison": ("def f(a, b):\n    return a < b\n", "return a <= b"),
    "is and ==": ("def f(a):\n    return a is 'x'\n", "return a == 'x'"),
    "boolean": ("def f(a, b):\n    return a and b\n", "return a or b"),
    "one operator of three": ("def f(a, b, c):\n    return a or b or c\n", "return a or b and c"),
    "one operator next to another": ("def f(a, b, c):\n    return a or b and c\n", "return a or b or c"),
    "negative number": ("def f(n):\n    return n != -1\n", "return n != 0"),
    "not instead of minus": ("def f(n):\n    return not n\n", "return -n"),
    "not in an assignment": ("def f(n):\n    first = n\n    return first\n", "first = not n"),
    "is instead of an order": ("def f(a, b):\n    return a > b\n", "return a is b"),
    "negation": ("def f(a):\n    if a:\n        return 1\n    return 2\n", "if not a:"),
    "additional condition": ("def f(n):\n    while n.next.value:\n        n = n.next\n    return n\n", "n.next is None or"),
    "endless loop": ("def f(q):\n    while True:\n        q.pop()\n", "while q:"),
    "operator between types": ("def f(n: int / None):\n    return n\n", "n: int | None"),
    "bitwise operator": ("def f(n):\n    n ^= n - 1\n    return n\n", "n &= n - 1"),
    "off by one": ("def f(n):\n    return list(range(n))\n", "range(n + 1)"),
    "slice": ("def f(s):\n    return g(s)\n\ndef g(s):\n    return s[1:]\n", "g(s[1:])"),
    "constant": ("def f(n):\n    total = 0\n    return total * n\n", "total = 1"),
    "variable": ("def f(left, right):\n    return left + left\n", "return left + right"),
    "swapped arguments": ("def f(a, b):\n    return g(a, b)\n", "return g(b, a)"),
    "missing argument": ("def g(a, b):\n    return a\n\ndef f(a, b):\n    return g(a)\n", "return g(a, b)"),
    "missing return": ("def f(a):\n    sorted(a)\n", "return sorted(a)"),
    "missing return of an expression": ("def f(a):\n    not a[0]\n", "return not a[0]"),
    "await": ("async def f(a):\n    return g(a)\n", "return (await g(a))"),
    "yield": ("def f(a):\n    yield f(a)\n", "yield a"),
    "base case": ("def f(n):\n    return n * f(n - 1)\n", "if n <= 1:\n        return 1\n"),
    "initial value": ("def f(n):\n    found = []\n    return found\n", "found = [[]]"),
    "missing call": ("def f(a):\n    return a\n", "return sorted(a)"),
    "copy": ("def f(a):\n    b = a\n    return b\n", "b = a.copy()"),
    "shared default": ("def f(a=[]):\n    return a\n", "def f(a=None):\n    if a is None:\n        a = []\n"),
    "guard": ("def f(items):\n    return items[0]\n", "if not items:\n        return None\n"),
    "attribute": ("def f(n):\n    return n.incoming, n.outgoing\n", "return n.outgoing, n.outgoing"),
    "method": ("def f(s):\n    return s.startswith('a')\n", "s.endswith('a')"),
    "function": ("def f(a):\n    return any(a)\n", "return all(a)"),
    "key": ("def f(d):\n    return d['a'] + d['b']\n", "d['a'] + d['a']"),
    "deleted statement": ("def f(a):\n    a = 1\n    return a\n", "def f(a):\n    return a\n"),
    "moved statement": ("def f(a, b):\n    a = b\n    b = a\n    return b\n", "    b = a\n    a = b\n"),
    "missing assignment": (
        "def f(node):\n    last = None\n    while node:\n        node = node.next\n    return last\n",
        "last = node\n        node = node.next",
    ),
    "missing insertion": (
        "def f(n):\n    seen = set()\n    def g(m):\n        return m in seen\n    return g(n)\n",
        "seen.add(m)\n        return",
    ),
    "exception": ("def f(d):\n    try:\n        return d[1]\n    except KeyError:\n        return 0\n", "except IndexError:"),
    "accumulation": ("def f(a):\n    best = 0\n    for x in a:\n        best = x\n    return best\n", "best = max(best, x)"),
    "missing term": ("def f(k, n):\n    return g(k)\n", "g(k - n)"),
    "any operator": ("def f(a, b):\n    return a + b\n", "return a >> b"),
    "missing operator of an assignment": ("def f(a):\n    n = 0\n    for x in a:\n        n = x\n    return n\n", "n += x"),
    "operator after equals": ("def f(n):\n    n =+ 1\n    return n\n", "n += 1"),
    "comparison as a statement": ("def f(self, n):\n    self.n == n\n", "self.n = n"),
    "reversed assignment": ("def f(a, b):\n    a.n = b\n", "b = a.n"),
    "is with None": ("def f(a):\n    return a < None\n", "return a is None"),
    "text with markers": ("def f(d):\n    return d['XXnameXX']\n", "d['name']"),
    "text in another case": ("A = 'Content-Type'\n\ndef f(d):\n    return d['content-type']\n", "d['Content-Type']"),
    "empty text": ("def f(a=''):\n    return a\n", "def f(a=None):"),
    "return in a loop": ("def f(a):\n    for x in a:\n        return\n    g(a)\n", "        break\n"),
    "undefined name": ("def f(length):\n    return lenght + 1\n", "return length + 1"),
    "name of a module": ("LIMIT = 3\n\ndef f(n):\n    return n < LIMTI\n", "n < LIMIT"),
    "missing self": ("class A:\n    def g(self):\n        return 1\n\n    def f(self):\n        return g()\n", "return self.g()"),
    "constant of another language": ("def f(a):\n    return null\n", "return None"),
    "method of another language": ("def f(a):\n    return a.length\n", "return len(a)"),
    "unknown method": ("def f(d):\n    return d.get_values()\n", "list(d.values())"),
    "misspelt method": ("def f(s):\n    return s.spilt()\n", "s.split()"),
    "import of a name": ("from collections import Countre\n\ndef f(a):\n    return Counter(a)\n", "import Counter\n"),
    "import of a module": ("import mth\n\ndef f(a):\n    return a\n", "import math\n"),
    "value of another method": ("class A:\n    def a(self):\n        self.n = 3\n\n    def b(self):\n        self.n = None\n", "def b(self):\n        self.n = 3"),
    "argument of another call": ("def f(a, b):\n    g(a, key=b)\n    return g(a)\n", "return g(a, key=b)"),
    "keyword argument": ("def g(a, depth=0):\n    return a\n\ndef f(a, depth):\n    return g(a)\n", "g(a, depth=depth)"),
    "decorator": ("class A:\n    def f(cls, n):\n        return n\n", "    @classmethod\n    def f"),
    "decorator of the file": ("@cache\ndef g(n):\n    return n\n\ndef f(n):\n    return n\n", "@cache\ndef f"),
    "empty loop": ("def f(items):\n    for n, x in []:\n        g(x)\n", "in enumerate(items):"),
    "unknown exception": ("def f(a):\n    try:\n        g(a)\n    except UnknownProblem:\n        pass\n", "except OSError:"),
    "one of several exceptions": ("def f(a):\n    try:\n        g(a)\n    except (KeyError, OSError):\n        pass\n", "except (ValueError, OSError):"),
    "unknown exception for two": ("def f(a):\n    try:\n        g(a)\n    except UnknownProblem:\n        pass\n", "except (KeyError, IndexError):"),
    "setter": ("class A:\n    @property\n    def x(self):\n        return 1\n\n    def x(self, n):\n        self.n = n\n", "    @x.setter\n    def x(self, n)"),
    "context manager": ("import contextlib\n\ndef f(a):\n    yield a\n", "@contextlib.contextmanager\ndef f"),
    "wraps": ("from functools import wraps\n\ndef f(g):\n    def inner():\n        return g()\n    return inner\n", "    @wraps(g)\n    def inner"),
    "total ordering": ("from functools import total_ordering\n\nclass A:\n    def __lt__(self, o):\n        return True\n", "@total_ordering\nclass A"),
    "dataclass": ("from dataclasses import dataclass\n\nclass A:\n    n: int\n", "@dataclass\nclass A"),
    "empty loop over keyword arguments": ("def f(**given):\n    for n, x in []:\n        g(x)\n", "in given.items():"),
    "empty loop over an attribute": ("class A:\n    def g(self):\n        return self.parts\n\n    def f(self):\n        for n in []:\n            h(n)\n", "for n in self.parts:"),
    "minus": ("def f(n):\n    less = n\n    return less\n", "less = -n"),
    "loop over a number": ("def f(s):\n    for i in len(s):\n        g(s[i])\n", "in range(len(s)):"),
    "missing enumerate": ("def f(s):\n    for i, x in s:\n        g(i, x)\n", "in enumerate(s):"),
    "return without a value": ("def f(s):\n    found = s[0]\n    return\n", "    return found\n"),
    "missing return at the end": ("def f(s):\n    for i in s:\n        if i:\n            return i\n", "            return i\n    return len(s)\n"),
    "missing initial value": ("def f(s):\n    for x in s:\n        total += x\n    return total\n", "def f(s):\n    total = 0\n"),
    "missing initial list": ("def f(s):\n    for x in s:\n        found.append(x)\n    return found\n", "def f(s):\n    found = []\n"),
    "infinity of another language": ("def f(a):\n    return Infinity\n", "return float('inf')"),
    "truth instead of None": ("def f(a):\n    if a:\n        return 1\n", "if a is not None:"),
    "None instead of truth": ("def f(a):\n    if a is None:\n        return 1\n", "if not a:"),
    "default instead of None": ("def f(a):\n    return a or 3\n", "return a if a is not None else 3"),
    "exact type": ("def f(a):\n    return type(a) != str\n", "return not isinstance(a, str)"),
    "first character of a text": ("def f(a):\n    return a[0] == 'x'\n", "return a.startswith('x')"),
    "condition of another statement": ("def f(a, b):\n    if g(b) and b:\n        return 1\n    if a:\n        return 2\n", "if a and g(b):"),
    "condition that does not hold": ("def f(a, b):\n    return a == 1 or a == 2\n", "return (a == 1 or a == 2) and not b"),
    "length before an index": ("def f(a):\n    return a[0] == a[1]\n", "return len(a) >= 2 and (a[0] == a[1])"),
    "function that the file uses": ("def f(a):\n    return g(clean(a))\n\ndef h(b):\n    return [b]\n", "return [clean(b)]"),
    "method that the file uses": ("def f(a):\n    return g(a.casefold())\n\ndef h(b):\n    return b.split()\n", "return b.casefold().split()"),
    "default of a value": ("def f(a):\n    return g(a.b)\n", "return g(a.b or '')"),
    "truth of a condition": ("def f(a, b):\n    return a.b or b\n", "return bool(a.b or b)"),
    "forgotten keyword": ("def f(a):\n    return open(a, mode='r')\n", "open(a, mode='r', encoding='utf-8')"),
    "forgotten default": ("def f(a, k):\n    a.pop(k)\n", "a.pop(k, None)"),
    "variable instead of a constant": ("def f(a):\n    return g(1, b=True)\n", "return g(1, b=a)"),
    "one more exception": ("def f(a):\n    try:\n        g(a)\n    except (KeyError, OSError):\n        pass\n", "except (KeyError, OSError, ValueError):"),
    "exception of another module": ("def f(a):\n    try:\n        g(a)\n    except pickle.PickleError:\n        pass\n", "except Exception:"),
    "part of a slice": ("def f(a, n):\n    return a[:n]\n", "return a[:-n]"),
    "greedy pattern": ("def f(a):\n    return re.match(r'(.+)x', a)\n", "r'(.+?)x'"),
    "open end of a pattern": ("def f(a):\n    return re.match('a\\\\.b+', a)\n", "'a\\\\.b+\\\\Z'"),
    "dot of a pattern": ("def f(a):\n    return re.match(r'\\d.py', a)\n", "r'\\d\\.py'"),
    "similar function": ("def read(a):\n    return a\n\ndef read_all(a):\n    return [a]\n\ndef f(a, b):\n    return read(a, b)\n", "return read_all(a, b)"),
    "similar method of self": ("class A:\n    def f(self):\n        return self.generic_visit(1)\n\n    def g(self):\n        self.visit(2)\n", "return self.visit(1)"),
    "variable instead of an attribute": ("def f(self, content):\n    return g(self.content)\n", "return g(content)"),
    "variable with the name of a path": ("def f(regex):\n    regex_parts = []\n    regex.parts.append(1)\n", "regex_parts.append(1)"),
    "superfluous keyword": ("def f(a):\n    return g(a, encode=True, b=1)\n", "g(a, b=1)"),
    "only keyword": ("def f(a):\n    a.sort(key=len)\n", "a.sort()"),
    "first of two keywords": ("def f(a):\n    g(\n        k=a, m=1,\n    )\n", "g(m=1,\n    )"),
    "keyword after parentheses": ("def f(a):\n    g((a), k=1)\n", "g((a))"),
    "argument in parentheses": ("def f(a, b):\n    g((a), (b))\n", "g((b))"),
    "attribute of an element": ("def f(a):\n    n = 0\n    for x in a:\n        n += x\n    return n, x.n\n", "n += x.n"),
    "attribute of an argument": ("def f(a, x):\n    a.append(x)\n    g(x.n)\n", "a.append(x.n)"),
    "attribute instead of its owner": ("def f(node):\n    return g(node.value)\n", "return g(node)"),
    "number of a text": ("def f(a):\n    return g(a.b)\n", "g(float(a.b))"),
    "upper case": ("def f(a):\n    return a\n", "return a.upper()"),
    "end of a text": ("def f(a):\n    return a\n", "return a.rstrip()"),
    "start of a text": ("def f(a):\n    return a\n", "return a.lstrip()"),
    "unhandled exception at the end of the file": ("def f(a):\n    return g(a)", "        return g(a)\n    except ValueError:\n"),
    "superfluous last condition in parentheses": ("def f(a):\n    if a:\n        b()\n    elif (a or 2):\n        c()\n", "    else:\n        c()"),
    "superfluous last condition": ("def f(a, b):\n    if a:\n        return 1\n    elif b:\n        return 2\n", "    else:\n        return 2"),
    "swapped variables of a loop": ("def f(a):\n    for i, x in g(a):\n        h(i, x)\n", "for x, i in g(a):"),
    "unhandled exception": ("class Refused(KeyError):\n    pass\n\ndef f(d, k):\n    del d[k]\n", "    try:\n        del d[k]\n    except Refused:\n        pass\n"),
    "one more class": ("def f(a, b):\n    if isinstance(a, Table):\n        return isinstance(b, (Array, Row))\n", "isinstance(a, (Table, Array))"),
    "another class": ("def f(a, b):\n    return isinstance(a, dict) or isinstance(b, Mapping)\n", "isinstance(a, Mapping)"),
    "statement indented too far": (
        "def f(a):\n    for x in a:\n        g(x)\n        return a\n",
        "        g(x)\n    return a\n",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_each_kind_of_fault_has_an_operator(name: str) -> None:
    source, expected = FAULTS[name]
    texts = [apply_edits(source, mutant.edits) for mutant in generate_mutants(source)]
    assert any(expected in text for text in texts)


@pytest.mark.parametrize("name", FAULTS)
def test_every_mutant_is_python_and_differs(name: str) -> None:
    source, _ = FAULTS[name]
    for mutant in generate_mutants(source):
        text = apply_edits(source, mutant.edits)
        ast.parse(text)
        assert text != source
        assert 0 < mutant.prior <= 1
        assert mutant.line >= 1


@pytest.mark.parametrize(
    ("code", "swapped", "matters"),
    [
        ("if a and b: pass", "if b and a: pass", False),
        ("if not (a or b): pass", "if not (b or a): pass", False),
        ("return a > 1 and b == 2", "return b == 2 and a > 1", False),
        ("return 0 < a and a < -b", "return a < -b and 0 < a", False),
        ("return a and b", "return b and a", True),  # one of the operands is returned
        ("if a is not None and a > 3: pass", "if a > 3 and a is not None: pass", True),  # a guard
        ("if a and a > 3: pass", "if a > 3 and a: pass", True),
        ("if a and g(b): pass", "if g(b) and a: pass", True),
    ],
)
def test_operands_are_only_swapped_where_their_order_may_matter(
    code: str, swapped: str, matters: bool
) -> None:
    source = f"def f(a, b):\n    {code}\n"
    texts = [apply_edits(source, m.edits) for m in generate_mutants(source, operators=["boolean_operator"])]
    assert texts
    assert (source.replace(code, swapped) in texts) is matters


def test_a_mutant_keeps_the_formatting() -> None:
    source = "def f( a,b ):   # ä\n\tx = ( a\n\t\t  <  b )  # why\n\treturn  x\n"
    texts = [apply_edits(source, mutant.edits) for mutant in generate_mutants(source)]
    assert source.replace("<  b", "<=  b") in texts


def test_only_the_given_lines_are_mutated() -> None:
    source = textwrap.dedent("""
        def f(a, b):
            a = a + b
            return a - b
    """)
    assert {mutant.line for mutant in generate_mutants(source, [4])} <= {4, 5}
    assert not list(generate_mutants(source, []))


def test_an_edit_of_two_operators_is_ranked_by_the_likelier_one() -> None:
    source = "def f(n):\n    if n:\n        return g(n - 2) + n\n    return g(n - 1) + n\n"
    mutants = [
        m
        for m in generate_mutants(source, [3])
        if apply_edits(source, m.edits) == source.replace("- 2", "- 1")
    ]

    assert {m.operator for m in mutants} == {"sibling_expression", "constant"}
    assert max(mutants, key=lambda mutant: mutant.prior).operator == "constant"


def test_an_empty_loop_prefers_the_collection_named_like_its_variable() -> None:
    text = "class A:\n    def f(self, text):\n        g(self.rest, self.words)\n        for word in []:\n            h(word)\n"
    loop_mutants = [mutant for mutant in generate_mutants(text, {4}) if mutant.operator == "empty_iteration"]
    likeliest = max(loop_mutants, key=lambda mutant: mutant.prior)
    assert "for word in self.words:" in apply_edits(text, likeliest.edits)


@pytest.mark.parametrize(("check", "other"), [("is None", "is not None"), ("== None", "is None")])
def test_a_wrong_boundary_is_likelier_than_another_check_for_none(check: str, other: str) -> None:
    source = f"def f(a):\n    return a < 3 or a {check}\n"
    prior = {
        apply_edits(source, m.edits): m.prior for m in generate_mutants(source, operators=["comparison"])
    }
    assert prior[source.replace("<", "<=")] > prior[source.replace(check, other)]


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("shop.py", "def f(lines):\n    total = 0\n    for price, count in lines:\n        total += price\n    return total\n"),
        ("shop.js", "function f(lines) {\n  let total = 0\n  for (const [price, count] of lines)\n    total += price\n  return total\n}\n"),
    ],
)  # fmt: skip
def test_a_change_that_reads_a_variable_which_nothing_reads_is_likelier(path: str, source: str) -> None:
    def prior_of(text: str) -> float:
        line = {source[: source.index("total +=")].count("\n") + 1}
        mutants = (
            generate_mutants(text, line)
            if path == "shop.py"
            else generate_tree_mutants(text, path, "javascript", line)
        )
        repaired = text.replace("+= price", "+= price * count")
        return max(mutant.prior for mutant in mutants if apply_edits(text, mutant.edits) == repaired)

    assert prior_of(source) > 2 * prior_of(source.replace("return total", "return total - count"))


def test_a_variable_of_another_kind_than_the_tests_showed_is_unlikely() -> None:
    source = "@cached\ndef f(lines):\n    total = 0\n    for name, price, count in lines:\n        total += price\n"
    line = {source[: source.index("total +=")].count("\n") + 1}

    def prior_of(term: str, **kinds: ValueKind) -> float:
        repaired = source.replace("+= price", f"+= price * {term}")
        mutants = generate_mutants(source, line, kinds={1: kinds})
        return max(mutant.prior for mutant in mutants if apply_edits(source, mutant.edits) == repaired)

    assert prior_of("name", name="text", count="number") < 0.5 * prior_of(
        "count", name="text", count="number"
    )
    assert prior_of("name", name="text") < prior_of("name")


@pytest.mark.parametrize(
    "source",
    [
        "def f(self, n):\n    for i in range(n):\n        g(n)\n",
        "def f(lines):\n    for _price, _ in lines:\n        g(lines)\n",
        "def f(a):\n    def g():\n        return a\n    return g\n",
    ],
)
def test_some_variables_need_no_reading(source: str) -> None:
    tree = parse_python_tree(source)
    assert tree is not None
    assert not tree.weigh_unread(tree.functions_in_order[0].body[0])


def test_mutants_are_deterministic() -> None:
    source = "def f(a, b):\n    if a < b:\n        return a\n    return b\n"
    assert list(generate_mutants(source)) == list(generate_mutants(source))


def test_unparsable_source_has_no_mutants() -> None:
    assert not list(generate_mutants("def f(:\n"))


def test_code_outside_functions_is_marked() -> None:
    source = "LIMIT = 3\n\ndef f(a=1):\n    return a\n"
    in_function = {
        apply_edits(source, m.edits): m.in_function_body
        for m in generate_mutants(source, operators={"constant"})
    }

    assert in_function["LIMIT = 4\n\ndef f(a=1):\n    return a\n"] is False
    assert in_function["LIMIT = 3\n\ndef f(a=2):\n    return a\n"] is False


def test_touching_edits_overlap() -> None:
    edits = [Edit(start=2, end=5, text="x")]
    assert edits_overlap(edits, [Edit(start=5, end=5, text="y")])
    assert not edits_overlap(edits, [Edit(start=6, end=8, text="y")])


TWO_FUNCTIONS = """\
def load(path):
    with open(path) as file:
        return file.read() / 2

def save(path, text):
    with open(path, "w") as file:
        file.write(text / 2)
"""


@pytest.mark.parametrize(
    ("repeated", "count"), [("encoding='utf-8')", 2), ("// 2", 2), ("str(path)", 2), ("+ 1", 0)]
)
def test_a_change_is_also_made_at_all_places_of_a_file_at_once(repeated: str, count: int) -> None:
    mutants = [mutant for mutant in generate_mutants(TWO_FUNCTIONS) if len(mutant.edits) == 2]
    texts = {apply_edits(TWO_FUNCTIONS, m.edits): m.in_function_body for m in mutants}
    repetitions = [is_in_body for text, is_in_body in texts.items() if text.count(repeated) == 2]

    # Code of two functions cannot be patched into a running process.
    assert repetitions == [False] * bool(count)


ACCOUNT = """\
class Account:
    def audit(self, amount):
        self.log.append(amount)

    def pay(self, amount):
        if amount > self.balance:
            raise ValueError
        self.audit(amount)
        return amount
"""


def test_no_statement_is_moved_into_dead_code() -> None:
    mutants = list(generate_mutants(ACCOUNT, operators={"move_statement", "change_block"}))
    assert mutants
    for mutant in mutants:
        assert count_dead_code(ast.parse(apply_edits(ACCOUNT, mutant.edits))) == 0


def test_a_callable_variable_may_be_used_as_a_value() -> None:
    source = "def call(func, x):\n    result = func(x)\n    last = func\n    return result + 1\n"
    assert "return result - 1" in "".join(
        apply_edits(source, mutant.edits) for mutant in generate_mutants(source)
    )


def test_every_value_kind_has_wrappers() -> None:
    assert set(WRAPPERS) == set(get_args(ValueKind))


def test_annotations_have_the_lowest_priors() -> None:
    source = "def f(n: int | None, *, m: 'list' = '', k: Annotated[int | None, 3 + 4] = 5) -> Kind[1]:\n    return n | 6\n"
    priors: dict[str, float] = {}

    for mutant in generate_mutants(source, operators=("arithmetic_operator", "constant")):
        start = mutant.edits[0].start
        priors.setdefault(source[start : start + 4], mutant.prior)

    assert [place for place in priors if place.startswith("|")] == ["| 6\n"]
    assert priors.keys() > {"3 + ", "+ 4]", "4] =", "5) -", "6\n"}
    assert max(priors["'lis"], priors["1]:\n"]) < min(priors["'', "], priors["3 + "], priors["5) -"]) / 2


def test_an_operator_that_raises_loses_only_its_own_mutants(monkeypatch: pytest.MonkeyPatch) -> None:
    def raise_key_error(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
        yield from {"other": iter(())}["callable"]

    broken = PythonOperator(name="generator", nodes=(ast.Return,), changes=raise_key_error)
    monkeypatch.setattr(sys.modules["suture.mutation.mutant_generation"], "OPERATORS", (broken, *OPERATORS))
    source = "def f(a, b):\n    return a < b\n"
    with pytest.raises(KeyError):
        list(generate_mutants(source))

    faults: list[tuple[str, int, str]] = []
    mutants = generate_mutants(
        source, on_fault=lambda operator, line, fault: faults.append((operator, line, repr(fault)))
    )
    assert "def f(a, b):\n    return a <= b\n" in [apply_edits(source, m.edits) for m in mutants]
    assert faults == [("generator", 2, "KeyError('callable')")]


def standard_library() -> list[Path]:
    """Return some files of the standard library, the same ones for each Python version."""
    files = sorted(path for path in Path(sysconfig.get_path("stdlib")).glob("*.py"))
    return files[:: max(1, len(files) // 24)]


@pytest.mark.parametrize("path", standard_library(), ids=lambda path: path.name)
def test_operators_work_on_the_standard_library(path: Path) -> None:
    source = path.read_text("utf-8")
    some_lines = range(1, source.count("\n") + 2, 12)
    for number, mutant in enumerate(islice(generate_mutants(source, some_lines), 4_000)):
        if number % 67 == 0:
            ast.parse(apply_edits(source, mutant.edits))


def test_the_only_class_of_a_tuple_is_replaced_and_not_dropped() -> None:
    source = "def f(a):\n    try:\n        g(a)\n    except (KeyError,):\n        pass\n"
    texts = [apply_edits(source, m.edits) for m in generate_mutants(source, operators=["exception_class"])]
    assert any("except (IndexError,):" in text for text in texts)
    assert not any("(,)" in text for text in texts)
