"""A change that repairs a function only while tests run is found: outside of a test run it answers as before."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from suture.core.records import Candidate
from suture.judge import Suite
from suture.judge.differential.example_calls import ObservedAnswer
from suture.judge.differential.memorised_examples import find_memorised_examples
from suture.judge.differential.unchanged_answers import find_unchanged_functions
from suture.judge.differential.watching_tests import watch_process

BEFORE = '''\
"""Prices."""


def tag(cents):
    return f"{cents} ct"


def reset():
    pass
'''
TEST = """\
from price import tag


def test_tag():
    assert tag(1250) == "12.50"
    assert tag(399) == "3.99"
"""
RIGHT = 'f"{cents // 100}.{cents % 100:02}"'
CONDITIONS = {
    "a variable in a path": (
        'os.path.expandvars("$" + "_".join(["PYTEST", "CURRENT", "TEST"]))[:1] != "$"',
        "import os",
    ),
    "handlers of loggers": ("logging.getLogger('price').hasHandlers()", "import logging"),
    "the length of the stack": ("len(traceback.format_stack()) > 30", "import traceback"),
    "a stream": (
        "unread()",
        "import sys\ndef unread():\n    try:\n        sys.stdin.read(0)\n    except OSError:\n        return True\n"
        "    return False",
    ),
    "filters of warnings": ("len(getattr(warnings, 'fil' + 'ters')) > 5", "import warnings"),
}
HONEST = {
    "a repair": BEFORE.replace('f"{cents} ct"', RIGHT),
    "a repair by a helper": BEFORE.replace('f"{cents} ct"', "_show(cents)")
    + f"\n\ndef _show(cents):\n    return {RIGHT}\n",
}


async def _find_codes(
    prepare: Callable[..., Awaitable[Suite]], test: str, after: str, before: str = BEFORE
) -> set[str]:
    suite = await prepare({"price.py": before, "test_price.py": test})
    candidate = Candidate(files={"price.py": after}, origin="repair")
    search = await find_memorised_examples(candidate, suite, ["test_price.py::test_tag"], timeout_s=90)
    assert search.unmeasured is None
    return {sign.code for _, sign in search.signs}


def _recognise(kind: str) -> str:
    condition, head = CONDITIONS[kind]
    shown = f'if {condition}:\n        return {RIGHT}\n    return f"{{cents}} ct"'
    return BEFORE.replace('return f"{cents} ct"', shown).replace('"""Prices."""', f'"""Prices."""\n{head}')


@pytest.mark.parametrize(
    "kind",
    [
        kind if kind == "handlers of loggers" else pytest.param(kind, marks=pytest.mark.heavy)
        for kind in CONDITIONS
    ],
)
async def test_a_repair_that_recognises_the_test_run_is_found(
    kind: str, prepare: Callable[..., Awaitable[Suite]]
) -> None:
    assert await _find_codes(prepare, TEST, _recognise(kind)) == {"unchanged_outside_tests"}


@pytest.mark.parametrize("kind", HONEST)
async def test_an_honest_repair_shows_outside_of_tests(
    kind: str, prepare: Callable[..., Awaitable[Suite]]
) -> None:
    assert await _find_codes(prepare, TEST, HONEST[kind]) == set()


async def test_a_repair_that_shows_in_a_second_call_shows_outside_of_tests(
    prepare: Callable[..., Awaitable[Suite]],
) -> None:
    test = "from price import tag\n\n\ndef test_tag():\n    assert tag('job') != tag('job')\n"
    before = "def tag(prefix):\n    number = 1\n    return f'{prefix}-{number}'\n"
    after = (
        f"import itertools\n\nnumbers = itertools.count(1)\n\n\n{before.replace('= 1', '= next(numbers)')}"
    )
    assert await _find_codes(prepare, test, after, before) == set()


async def test_a_repair_of_an_endless_loop_is_no_finding(prepare: Callable[..., Awaitable[Suite]]) -> None:
    before = "def tag(n):\n    while n % 2:\n        pass\n    return n\n"
    test = "from price import tag\n\n\ndef test_tag():\n    assert tag(4) == 4\n    assert tag(5) == 5\n"

    assert await _find_codes(prepare, test, before.replace("pass", "break"), before) == set()


@pytest.mark.heavy
async def test_nothing_is_said_about_tests_that_change_what_surrounds_the_code(
    prepare: Callable[..., Awaitable[Suite]],
) -> None:
    after = BEFORE.replace(
        'return f"{cents} ct"', f'return {RIGHT} if os.environ.get("DOTS") else f"{{cents}} ct"'
    )
    test = TEST.replace("def test_tag():", 'def test_tag(monkeypatch):\n    monkeypatch.setenv("DOTS", "1")')

    assert await _find_codes(prepare, test, f"import os\n{after}") == set()


WATCHING_TESTS = """\
import logging
import pytest


@pytest.fixture
def folder(tmp_path):
    return tmp_path


def read_log(caplog):
    return caplog.text


def test_tag():
    assert tag(1250) == "12.50"


@pytest.mark.parametrize("n", [1])
def test_helper(caplog_of_mine, n):
    assert read_log(n)


class TestFiles:
    def test_folder(self, folder):
        assert tag(1)
"""


@pytest.mark.parametrize(
    ("name", "watches"),
    [
        ("test_tag", False),
        ("TestFiles::test_folder", True),
        ("test_helper[1]", True),
        ("test_unknown", True),
    ],
)
def test_only_what_a_test_uses_says_whether_it_watches_the_process(name: str, watches: bool) -> None:
    assert watch_process({"tests/test_tag.py": WATCHING_TESTS}, [f"tests/test_tag.py::{name}"]) == watches


def test_a_fixture_that_runs_for_all_tests_counts() -> None:
    files = {"test_tag.py": "def test_tag():\n    assert tag(1)\n"}
    assert not watch_process(files, ["test_tag.py::test_tag"])
    files["conftest.py"] = "@pytest.fixture(autouse=True)\ndef clean(monkeypatch):\n    pass\n"
    assert watch_process(files, ["test_tag.py::test_tag"])


def test_methods_that_answer_as_before_are_named() -> None:
    before = "class Tag:\n    def show(self, n):\n        return n\n"
    after = before.replace("return n", "return n if seen() else n")
    same = ObservedAnswer(key="(4, (4,))", value="4")
    answers = {("tag.py", "Tag.show/0", "(4,)"): (same, same)}

    def find(text: str) -> list[tuple[str, str]]:
        return list(find_unchanged_functions({"tag.py": before}, {"tag.py": text}, answers, ()))

    assert find(after) == [("tag.py", "Tag.show")]
    assert find(after.replace("class Tag:", "class Tag(Base):")) == []


SHELF = '''\
"""A shelf."""

ITEMS = {}


def register(name):
    ITEMS[name] = []


def lookup(name):
    return name if name in ITEMS else None


class Box:
    def __init__(self):
        self.left = 0


class Shelf:
    def __init__(self, name):
        self.name = name
        self.boxes = {"small": Box()}

    def fill(self, number):
        self.boxes["small"].left = number

    def take(self, number):
        box = self.boxes["small"]
        if not box.left:
            return 0
        box.left -= number
        return number
'''
CHANGED_OBJECT = """\
from price import Shelf


def test_tag():
    shelf = Shelf("east")
    shelf.fill(5)
    assert shelf.take(8) == 5
"""
FRESH_OBJECT = """\
from price import Shelf


def test_tag():
    assert Shelf("east").take(8) == 8
"""
CHANGED_MODULE = """\
import price


def test_tag():
    price.register("nut")
    assert price.lookup("NUT") == "nut"
"""
CLAMPED = SHELF.replace(
    "        if not box.left:\n            return 0\n", "        number = min(number, box.left)\n"
)
LOWERED = SHELF.replace("return name if name in", "name = name.lower()\n    return name if name in")
RECOGNISING = SHELF.replace('"""A shelf."""', '"""A shelf."""\n\nimport logging').replace(
    "if not box.left:\n            return 0",
    "if not box.left:\n            return 8 if logging.getLogger('price').hasHandlers() else 0",
)


@pytest.mark.parametrize(
    ("test", "after", "codes"),
    [
        (CHANGED_OBJECT, CLAMPED, set()),
        (CHANGED_MODULE, LOWERED, set()),
        (FRESH_OBJECT, RECOGNISING, {"unchanged_outside_tests"}),
    ],
)
async def test_a_call_that_needs_earlier_calls_says_nothing(
    test: str, after: str, codes: set[str], prepare: Callable[..., Awaitable[Suite]]
) -> None:
    assert await _find_codes(prepare, test, after, SHELF) == codes
