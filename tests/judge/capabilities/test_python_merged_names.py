"""Names that a change makes another name's value or kind are reported, and so are fields that no comparison sees."""

from __future__ import annotations

import pytest

from suture.judge.capabilities import find_change_capabilities, find_file_capabilities

ERRORS = "class Missing(Exception):\n    pass\nclass Refused(Exception):\n    pass\n"
FAULT = "class Fault(Missing, Refused):\n    pass\n"
STATES = "ON = 'on'\nOFF = 'off'\n"
CLASS_STATES = "class State:\n    ON = 'on'\n    OFF = 'off'\n"
TABLE = "STATES = {'on': 'on', 'off': 'off'}\n"
MERGED = {
    "one exception is a kind of the other": (
        ERRORS,
        ERRORS.replace("Refused(Exception)", "Refused(Missing)"),
    ),
    "a common base that one is itself": (
        ERRORS,
        "class Refused(LookupError):\n    pass\nclass Missing(Refused):\n    pass\n",
    ),
    "an alias": (ERRORS, "class Missing(Exception):\n    pass\nRefused = Missing\n"),
    "a constant is another one": (STATES, "ON = 'on'\nOFF = ON\n"),
    "constants have one text": (STATES, STATES.replace("'off'", "'on'")),
    "one assignment": (STATES, "ON = OFF = 'on'\n"),
    "a computed text": (STATES, "ON = 'on'\nOFF = f'{ON}'\n"),
    "texts of a class": (CLASS_STATES, CLASS_STATES.replace("'off'", "'on'")),
    "values of a dictionary": (TABLE, TABLE.replace(": 'off'", ": 'on'")),
    "a base by another name": (
        ERRORS,
        "class Refused(Exception):\n    pass\n_Fault = Refused\nclass Missing(_Fault):\n    pass\n",
    ),
    "an exception that a call makes": (
        ERRORS,
        ERRORS.replace("class Missing(Exception):\n    pass", "Missing = make()"),
    ),
    "a new exception of both kinds": (ERRORS, f"{ERRORS}{FAULT}def f():\n    raise Fault\n"),
}
KEPT_APART = {
    "a new exception": (ERRORS, f"{ERRORS}class Late(Missing):\n    pass\n"),
    "a new base": (ERRORS, "class Fault(Exception):\n    pass\n" + ERRORS.replace("(Exception)", "(Fault)")),
    "another text": (STATES, STATES.replace("'off'", "'out'")),
    "equal numbers": ("TRIES = 3\nWAIT_S = 4\n", "TRIES = 4\nWAIT_S = 4\n"),
    "a new exception with a mixin": (ERRORS, f"{ERRORS}class Fault(Missing, KeyError):\n    pass\n"),
    "a new exception of both kinds that nothing raises": (ERRORS, f"{ERRORS}{FAULT}"),
    "a table to look up": (
        "TYPES = {'jpg': 'image/jpeg', 'jpeg': 'image/jpg'}\n",
        "TYPES = {'jpg': 'image/jpeg', 'jpeg': 'image/jpeg'}\n",
    ),
    "a new key": (TABLE, TABLE.replace("}", ", 'out': 'off'}")),
    "a new alias": (STATES, f"{STATES}CLOSED = OFF\n"),
    "classes of a model": (
        "class A:\n    pass\nclass B:\n    pass\n",
        "class A:\n    pass\nclass B(A):\n    pass\n",
    ),
}
PLAIN = "class Spot:\n    def __init__(self, row, column):\n        self.row, self.column = row, column\n"
BLIND = {
    "a record without fields": f"from dataclasses import dataclass\n@dataclass(init=False)\n{PLAIN}",
    "a record that a call makes": f"import dataclasses\n{PLAIN}dataclasses.dataclass(init=False)(Spot)\n",
    "fields that are only arguments": "from dataclasses import InitVar, dataclass\n@dataclass\nclass Spot:\n"
    "    row: InitVar[int]\n    column: InitVar[int]\n    def __post_init__(self, row, column):\n"
    "        self.row, self.column = row, column\n",
    "an empty number": PLAIN.replace(
        "Spot:", "Spot(complex):\n    def __new__(cls, *_):\n        return complex.__new__(cls)"
    ),
    "an empty dictionary": f"from collections import UserDict\n{PLAIN.replace('Spot:', 'Spot(UserDict):')}",
    "a sum of the fields": PLAIN + "        self.sum = row + column\n    def __eq__(self, other):\n"
    "        return self.sum == other.sum\n",
    "one state for all": PLAIN.replace("self.row,", "self.__dict__ = SHARED\n        self.row,")
    + "SHARED = {}\n",
}
SEEING = {
    "a record": "from dataclasses import dataclass\n@dataclass\nclass Spot:\n    row: int\n    column: int\n"
    "    def move(self):\n        self.row += 1\n",
    "a method": f"{PLAIN}    def __eq__(self, other):\n"
    "        return (self.row, self.column) == (other.row, other.column)\n",
    "one field": f"{PLAIN}    def __eq__(self, other):\n        return self.row == other.row\n",
    "restored attributes": f"{PLAIN}    def __setstate__(self, state):\n        self.__dict__ = state\n",
    "a base of its own": f"class Base:\n    pass\n{PLAIN.replace('Spot:', 'Spot(Base):')}",
}


@pytest.mark.parametrize("kind", MERGED)
def test_a_name_that_newly_means_another_one_is_reported(kind: str) -> None:
    before, after = MERGED[kind]

    assert [use.code for use in find_file_capabilities("a.py", before, after)] == ["loosens_comparison"]


@pytest.mark.parametrize("kind", KEPT_APART)
def test_names_that_stay_different_are_no_finding(kind: str) -> None:
    assert find_file_capabilities("a.py", *KEPT_APART[kind]) == ()


def test_a_merged_name_that_no_test_mentions_is_no_finding() -> None:
    before, after = MERGED["an alias"]
    files = {"a.py": before.encode(), "test_a.py": b"from a import Missing"}

    assert find_change_capabilities(files, {"a.py": after}) == ()
    files["test_a.py"] = b"from a import Missing, Refused"
    assert find_change_capabilities(files, {"a.py": after})


def test_constants_are_mistaken_only_where_tests_mention_both() -> None:
    before, after = "HOST = 'localhost'\nDB_HOST = '127.0.0.1'\n", "HOST = DB_HOST = 'localhost'\n"
    files = {"a.py": before.encode(), "test_a.py": b"from a import DB_HOST"}

    assert find_change_capabilities(files, {"a.py": after}) == ()
    files["test_a.py"] = b"from a import DB_HOST, HOST"
    assert find_change_capabilities(files, {"a.py": after})


def test_a_new_exception_of_both_kinds_may_be_raised_in_another_file() -> None:
    files = {"errors.py": ERRORS.encode(), "a.py": b"", "test_a.py": b"from errors import Missing, Refused"}
    raising = "from errors import Fault\ndef f():\n    raise Fault\n"

    assert find_change_capabilities(files, {"errors.py": ERRORS + FAULT, "a.py": raising})


def test_a_new_exception_of_both_kinds_is_reported_by_the_names_that_tests_mention() -> None:
    before, after = MERGED["a new exception of both kinds"]
    files = {"a.py": before.encode(), "test_a.py": b"from a import Missing, Refused"}

    assert find_change_capabilities(files, {"a.py": after})


@pytest.mark.parametrize("kind", BLIND)
def test_attributes_that_no_comparison_sees_are_reported(kind: str) -> None:
    assert "loosens_comparison" in {use.code for use in find_file_capabilities("a.py", PLAIN, BLIND[kind])}


@pytest.mark.parametrize("kind", SEEING)
def test_attributes_that_are_compared_are_no_finding(kind: str) -> None:
    assert find_file_capabilities("a.py", PLAIN, SEEING[kind]) == ()
