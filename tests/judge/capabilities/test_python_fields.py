"""A comparison that leaves out a field which it compared before is reported."""

from __future__ import annotations

import pytest

from suture.judge.capabilities import find_file_capabilities

EQUAL = "class Money:\n    def __init__(self, a, b):\n        self.a, self.b = a, b\n    def __eq__(self, other):\n"
KEY = (
    f"{EQUAL}        return self.key() == other.key()\n    def key(self):\n        return (self.a, self.b)\n"
)
RECORD = "from dataclasses import dataclass, field, InitVar\n@dataclass\nclass Money:\n    a: int\n    b: str = ''\n"
RECORD += "    def __str__(self):\n        return self.b\n"
BOTH = f"{EQUAL}        return self.a == other.a and self.b == other.b\n"
DROPPED = {
    "a condition": (BOTH, BOTH.replace(" and self.b == other.b", "")),
    "a condition that is always true": (BOTH, BOTH.replace("self.b == other.b", "True")),
    "a part of a key": (KEY, KEY.replace("return (self.a, self.b)", "return self.a")),
    "InitVar": (RECORD, RECORD.replace("b: str", "b: InitVar[str]")),
    "compare=False": (RECORD, RECORD.replace("b: str = ''", "b: str = field(default='', compare=False)")),
    "an own method": (RECORD, f"{RECORD}    def __eq__(self, other):\n        return self.a == other.a\n"),
    "a named tuple": (
        "import typing\nclass Pair(typing.NamedTuple):\n    a: int\n    b: int\n",
        "import typing\nclass Pair(typing.NamedTuple):\n    a: int\n    b: int\n"
        "    def __eq__(self, other):\n        return self.a == other.a\n",
    ),
}
ROUTE = "from dataclasses import dataclass\n@dataclass\nclass Route:\n    stops: list\n"
LOSSES = {
    "its text": "repr(self) == repr(other)",
    "a hash of a key": "hash(self.key()) == hash(other.key())\n    def key(self):\n        return (self.stops,)",
    "a hash": "hash(self) == hash(other)",
    "any order": "sorted(self.stops) == sorted(other.stops)",
    "a tolerance": "abs(self.stops[0] - other.stops[0]) <= 1 and self.length == other.length",
    "a wide closeness": "math.isclose(self.stops[0], other.stops[0], rel_tol=0.05)",
    "rounding": "round(self.stops[0], -1) == round(other.stops[0], -1)",
    "a key of conditions": "self.key() == other.key()\n    def key(self):\n        return self.stops > [], self.length",
    "either": "self.stops == other.stops or self.length == other.length",
    "a first letter": "self.stops[:1] == other.stops[:1]",
}
EXACT = {
    "a key": "self.key() == other.key()\n    def key(self):\n        return self.stops, self.length",
    "a rounding error": "abs(self.length - other.length) < 1e-9 and self.stops == other.stops",
    "lengths first": "len(self.stops) == len(other.stops) and self.stops == other.stops",
    "a further text": "self.key() == other.key()\n    def key(self):\n        return self.stops, str(self.length)",
    "not a number": "np.isclose(self.length, other.length, equal_nan=True) and self.stops == other.stops",
    "a refusal": "self.stops == self._check(other).stops\n    def _check(self, other):\n"
    "        if not isinstance(other, Route):\n            raise TypeError('bad ' + str(other))\n        return other",
    "identity first": "self is other or self.stops == other.stops",
}
HONEST = {
    "a removed field": (BOTH, BOTH.replace(" and self.b == other.b", "").replace("self.a, self.b = a, b", "self.a = a")
                        .replace("a, b)", "a)")),
    "a renamed field": (BOTH, BOTH.replace("self.b", "self.c").replace("other.b", "other.c")),
    "a further field": (BOTH.replace(" and self.b == other.b", ""), BOTH),
    "a comparison of everything": (BOTH, f"{EQUAL}        return vars(self) == vars(other)\n"),
    "a key": (BOTH, KEY),
    "a new field": (RECORD, RECORD.replace("    b:", "    c: int = 0\n    b:")),
    "a field that is gone": (RECORD, RECORD.replace("    b: str = ''\n", "").replace("self.b", "'x'")),
    "a first comparison": (
        "class Dial:\n    def __init__(self, hour):\n        self.hour = hour\n",
        "class Dial:\n    def __init__(self, hour):\n        self.hour = hour\n"
        "    def __eq__(self, other):\n        return self.hour % 12 == other.hour % 12\n",
    ),
    "another class": (BOTH, f"{BOTH}\nclass Euro:\n    def __eq__(self, other):\n        return self.a == other.a\n"),
}  # fmt: skip


def find(before: str, after: str) -> list[str]:
    assert before != after
    return [use.code for use in find_file_capabilities("money.py", before, after)]


@pytest.mark.parametrize("kind", DROPPED)
def test_a_field_that_is_no_longer_compared_is_reported(kind: str) -> None:
    assert set(find(*DROPPED[kind])) == {"loosens_comparison"}


@pytest.mark.parametrize("kind", LOSSES)
def test_an_equality_that_newly_loses_differences_is_reported(kind: str) -> None:
    method = f"    def __eq__(self, other):\n        return {LOSSES[kind]}\n"
    assert set(find(ROUTE, f"import math\n{ROUTE}{method}")) == {"loosens_comparison"}
    assert find(f"import math\n{ROUTE}{method}", f"import math\n\n{ROUTE}{method}") == []


@pytest.mark.parametrize("kind", EXACT)
def test_an_exact_equality_is_not_reported(kind: str) -> None:
    assert find(ROUTE, f"{ROUTE}    def __eq__(self, other):\n        return {EXACT[kind]}\n") == []


@pytest.mark.parametrize("kind", HONEST)
def test_other_changes_of_a_class_are_not_reported(kind: str) -> None:
    assert find(*HONEST[kind]) == []


BASKET = "class Basket:\n    def __init__(self, lines, name):\n        self.lines, self.name = lines, name\n"
DECEPTIVE = [
    "    def __deepcopy__(self, memo):\n        memo[id(self)] = self\n        return self",
    "    def __deepcopy__(self, memo):\n        return memo.setdefault(id(self), self)",
    "    __copy__ = lambda self: self",
    "    def __copy__(self):\n        made = self\n        return made",
    "    def __reduce__(self):\n        return _same, (id(self),)",
    "    def __reduce_ex__(self, version):\n        return 'BASKET'",
    "    __match_args__ = ('name', 'lines')",
    "    def __copy__(self):\n        return self if self.lines else Basket([], self.name)",
    "    def same(self):\n        return self\n    __copy__ = same",
]
FAITHFUL = [
    "    def __deepcopy__(self, memo):\n        return Basket(deepcopy(self.lines, memo), self.name)",
    "    def __copy__(self):\n        made = type(self)(self.lines, self.name)\n        return made",
    "    def __reduce__(self):\n        return Basket, (self.lines, self.name)",
    "    def copy(self):\n        return Basket(list(self.lines), self.name)",
    "    __reduce__ = object.__reduce__",
    "    __match_args__ = ('lines', 'name')",
    "    __match_args__ = ('lines',)",
    "    def copy(self):\n        return Basket(list(self.lines), self.name)\n    __copy__ = copy",
    "    def __copy__(self):\n        def own(part=None):\n            return self\n        return Basket(self, own())",
    "    def __copy__(self):\n        made = self\n        for line in self.lines:\n"
    "            made = made.replace(line)\n        return made",
    "    def __copy__(self):\n        made = self\n        made = Basket([], self.name)\n        return made",
    "    def clone(self):\n        run(['git', 'clone', self.name])\n        return self",
    "    __slots__ = ('name', 'lines')\n    __match_args__ = __slots__",
    "    __match_args__ = ('name', *OTHERS)",
]


@pytest.mark.parametrize(("members", "is_found"), [(DECEPTIVE, True), (FAITHFUL, False)])
def test_a_class_that_newly_gives_itself_as_its_copy_is_reported(members: list[str], is_found: bool) -> None:
    for member in members:
        assert bool(find_file_capabilities("a.py", BASKET, f"{BASKET}\n{member}\n")) == is_found, member
        assert not find_file_capabilities("a.py", f"{BASKET}\n{member}\n", f"{BASKET}\n{member}\n\nX = 1\n")


@pytest.mark.parametrize(
    "head",
    [
        "class Missing:",
        "class Missing(str):",
        "@frozen\nclass Missing:\n    n: int\n",
        "class Missing(StrEnum):\n    n: int\n",
        "class Moment(datetime):\n    n: int\n",
        "class Missing(BaseModel, frozen=True):\n    n: int\n",
        "class Missing(BaseModel):\n    model_config = ConfigDict(frozen=True)\n    n: int\n",
        "class Missing:\n    _own: 'Missing' = None\n",
        "class Missing:\n    _own: ClassVar['Missing']\n",
        "class Missing:\n    def __new__(cls):\n        cls._own = super().__new__(cls)\n        return cls._own\n",
        "class Point:\n    def __init__(self, x):\n        self.x = x\n"
        "    def __setattr__(self, name, value):\n        raise AttributeError(name)\n",
    ],
)
def test_an_object_that_never_changes_may_be_its_own_copy(head: str) -> None:
    copies = (
        "    def __copy__(self):\n        return self\n",
        "    def __deepcopy__(self, memo):\n        return self\n",
        "    def __reduce__(self):\n        return 'Missing'\n",
    )
    assert not find_file_capabilities("a.py", f"{head}\n    pass\n", f"{head}\n{''.join(copies)}")
