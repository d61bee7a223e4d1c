"""A test whose assert is passed over does not pass: an exception was swallowed, or ended an iteration."""

from __future__ import annotations

import pytest

from judge.conftest import PYTEST, PYTHON
from judge.runners.test_watched_effects import run_tests
from suture.core.records import Candidate, Task
from suture.core.settings import SandboxSettings
from suture.judge import check_candidate, prepare_suite
from suture.judge.runners.pytest_report import LOST_FAILURE
from suture.sandbox import Sandbox

pytestmark = pytest.mark.timeout(180)
BLOCK = (
    "from {0} import open_box\n\ndef test_box():\n    with open_box([1, 2]) as box:\n"
    "        assert box.first() == 1\n        box.close()\n"
)
UNITTEST_BLOCK = (
    "import unittest\nfrom {0} import open_box\n\nclass TestBox(unittest.TestCase):\n    def test_box(self):\n"
    "        for number in (1, 2):\n            with open_box([number]) as box:\n                if number:\n"
    "                    self.assertEqual(box.first(), number)\n"
)
ASYNC_BLOCK = (
    "import asyncio\nfrom {0} import open_box\n\ndef test_box():\n    async def scenario():\n"
    "        async with open_box([1]) as box:\n            assert await box.first() == 1\n"
    "    asyncio.run(scenario())\n"
)
BOX = (
    "class open_box:\n    def __init__(self, rows): self.rows = rows\n    def __enter__(self): return self\n"
)
SWALLOWING = {
    "leaves_early": (
        BLOCK,
        "class _Done(Exception): ...\n\n" + BOX + "    def __exit__(self, kind, error, trace):\n"
        "        return isinstance(error, _Done)\n    def first(self): raise _Done\n",
    ),
    "generates": (
        UNITTEST_BLOCK,
        "from contextlib import contextmanager\n\nclass Box:\n    def first(self): raise LookupError\n\n"
        "@contextmanager\ndef open_box(rows):\n    try:\n        yield Box()\n    except LookupError:\n        pass\n",
    ),
    "stacks": (
        BLOCK,
        "from contextlib import ExitStack, suppress\n\nclass open_box(ExitStack):\n"
        "    def __init__(self, rows):\n        super().__init__()\n        self.enter_context(suppress(EOFError))\n"
        "    def first(self): raise EOFError\n",
    ),
    "cancels": (
        ASYNC_BLOCK,
        "import asyncio\n\nclass open_box:\n    def __init__(self, rows): ...\n"
        "    async def __aenter__(self): return self\n"
        "    async def __aexit__(self, kind, error, trace): return kind is asyncio.CancelledError\n"
        "    async def first(self): raise asyncio.CancelledError\n",
    ),
}
"""Module -> (its test, code whose context manager swallows its own exception)."""
LOOP = (
    "from {0} import clean\n\ndef test_clean():\n    for got, want in zip(map(clean, ['A', 'b']), ['a', 'b']):\n"
    "        assert got == want\n"
)
LAMBDA = (
    "from {0} import clean\n\ndef test_clean():\n"
    "    assert all(map(lambda text: clean(text) == text.lower(), 'aB'))\n"
)
FILTER = "from {0} import clean\n\ndef test_clean():\n    assert not [*filter(lambda text: clean(text) == 'B', 'aB')]\n"
STAR = (
    "import itertools\nfrom {0} import clean\n\ndef check(text, want):\n    assert clean(text) == want\n\n"
    "def test_clean():\n    list(itertools.starmap(check, [('a', 'a'), ('B', 'b')]))\n"
)
STOPPING = {
    "ends_zip": (LOOP, "def clean(text):\n    raise StopIteration\n"),
    "ends_all": (LAMBDA, "def clean(text, known=()):\n    return next(letter for letter in known)\n"),
    "ends_filter": (FILTER, "def clean(text):\n    return next(iter(text[2:]))\n"),
    "ends_star": (STAR, "class clean(str):\n    def __new__(cls, text):\n        return next(iter(()))\n"),
}
"""Module -> (its test, code that ends an iteration of the test)."""
HONEST_CODE = (
    "from contextlib import contextmanager\n\nclass Rollback(Exception): ...\n\n"
    "class Rows:\n    def __init__(self, rows): self.rows = list(rows)\n    def __iter__(self): return self\n"
    "    def __next__(self): return self.take()\n"
    "    def take(self):\n        if not self.rows:\n            raise StopIteration\n"
    "        return self.rows.pop()\n\n"
    "@contextmanager\ndef transaction():\n    rows = []\n    try:\n        yield rows\n    except Rollback:\n"
    "        rows.clear()\n\n"
    "def double(number):\n    return 2 * number\n"
)
HONEST_TEST = (
    "import unittest\nfrom contextlib import suppress\nimport pytest\n"
    "from honest import Rollback, Rows, double, transaction\n\n"
    "def test_rolls_back():\n    with transaction() as rows:\n        rows.append(1)\n        assert rows == [1]\n"
    "        raise Rollback\n    assert rows == []\n\n"
    "def test_is_not_reached():\n    with transaction():\n        raise Rollback\n        assert False\n"
    "    with suppress(Rollback):\n        raise Rollback\n        assert Rows([])\n"
    "    with pytest.raises(Rollback):\n        assert double(1) == 2\n        raise Rollback\n"
    "        assert double(1) == 3\n\n"
    "def leave(rows):\n    for row in rows:\n        with transaction() as kept:\n            if row == 1:\n"
    "                continue\n            if row == 3:\n                return kept\n            assert row == 2\n"
    "            if row == 4:\n                break\n\n"
    "def test_leaves():\n    assert leave([1, 2, 3]) == []\n\n"
    "class TestIt(unittest.TestCase):\n    def test_sub(self):\n        for number in range(2):\n"
    "            with self.subTest(number=number), transaction():\n"
    "                self.assertEqual(double(number), number * 2)\n\n"
    "def test_iterates():\n    assert list(map(lambda rows: next(rows), [Rows('ab')])) == ['b']\n"
    "    assert list(map(next, [Rows('a'), Rows(''), Rows('c')])) == ['a']\n"
    "    assert list(map(lambda rows: next(rows), [Rows('')])) == []\n"
    "    assert list(map(double, filter(None, [0, 1]))) == [2] and list(map(str, [1])) == ['1']\n"
)


async def test_an_assert_that_the_code_has_passed_over_is_reported(
    sandbox: Sandbox, sandbox_settings: SandboxSettings
) -> None:
    kinds = {**SWALLOWING, **STOPPING}
    tests = {f"test_{name}.py": test.format(name) for name, (test, _) in kinds.items()}
    code = {f"{name}.py": text for name, (_, text) in kinds.items()}

    report = await run_tests(dict.fromkeys(code, "") | tests, code, sandbox, sandbox_settings)

    assert {what for what, _ in report.reached} == {LOST_FAILURE}
    assert {file for _, file in report.reached} == set(tests)
    assert len(report.phases) == len(tests)


async def test_tests_may_leave_their_own_blocks_and_iterate_over_iterators(
    sandbox: Sandbox, sandbox_settings: SandboxSettings
) -> None:
    own_files = {"honest.py": "", "test_honest.py": HONEST_TEST}

    report = await run_tests(own_files, {"honest.py": HONEST_CODE}, sandbox, sandbox_settings)

    assert not report.reached
    assert {phase["outcome"] for phases in report.phases.values() for phase in phases} == {"passed"}
    assert len(report.phases) == 5


EVENTS_TEST = (
    "import threading, unittest\nimport pytest\nfrom events import Bus, double, start\n\n"
    "def test_callback():\n    def check(number):\n        assert number == 2\n"
    "    bus = Bus()\n    bus.subscribe(check)\n    bus.send(1)\n\n"
    "@pytest.mark.parametrize('number', [1, 2])\ndef test_rows(number):\n    for row in Bus().rows(number):\n"
    "        assert row == 2 * number\n\n"
    "class TestThreads(unittest.TestCase):\n    def test_thread(self):\n        errors = []\n"
    "        def work():\n            try:\n                self.check()\n"
    "            except AssertionError as error:\n                errors.append(error)\n"
    "        thread = threading.Thread(target=work)\n        thread.start()\n        thread.join()\n"
    "        if errors:\n            raise errors[0]\n\n"
    "    def check(self):\n        self.assertEqual(\n            start(1),\n            2,\n        )\n\n"
    "def test_refuses():\n    try:\n        double('x')\n        assert double('x') == 0\n"
    "    except TypeError:\n        pass\n    with pytest.raises(TypeError):\n        double('x')\n\n"
    "def test_fails():\n    if double(1) != 2:\n        assert False, 'wrong'\n"
)
EVENTS = (
    "class Bus:\n    def __init__(self): self.calls = []\n    def subscribe(self, call): self.calls.append(call)\n"
    "    def send(self, number):\n        for call in self.calls: call({0})\n"
    "    def rows(self, number): return {1}\n\n"
    "def double(number): {2}\n\ndef start(number): {3}\n"
)
WRONG_EVENTS = EVENTS.format("number", "[number]", "return number", "return number")
RIGHT_EVENTS = EVENTS.format("2 * number", "[2 * number]", "return 2 * (number + 0)", "return 2 * number")
EMPTY_EVENTS = EVENTS.format("2", "[]", "return 2 * (number + 0)", "raise SystemExit").replace(
    "for call in self.calls: call(2)", "pass"
)


async def test_a_test_that_passes_without_its_failed_assertion_is_named(
    sandbox: Sandbox, sandbox_settings: SandboxSettings
) -> None:
    files = {"events.py": WRONG_EVENTS.encode(), "test_events.py": EVENTS_TEST.encode()}
    task = Task(statement="", kind="heal", files=files, test_command=tuple(PYTEST.split()))
    suite = await prepare_suite(task, sandbox, sandbox_settings, PYTHON, run=True)

    notes = {}
    for name, text in (("right", RIGHT_EVENTS), ("empty", EMPTY_EVENTS)):
        verdict = await check_candidate(Candidate(files={"events.py": text}, origin="sample"), suite)
        assert verdict.all_passed, verdict.counterexamples
        notes[name] = {note.code: note.subjects for note in verdict.notes}

    assert "assert_not_reached" not in notes["right"]
    assert notes["empty"]["assert_not_reached"] == (
        "test_events.py::TestThreads::test_thread",
        "test_events.py::test_callback",
        "test_events.py::test_rows[1]",
        "test_events.py::test_rows[2]",
    )


EXPECTING_CODE = (
    "from contextlib import contextmanager\n\n"
    "@contextmanager\ndef transaction():\n    try:\n        yield\n    except KeyError:\n        pass\n\n"
    "class expecting:\n    def __init__(self, *kinds): self.kinds = kinds\n    def __enter__(self): ...\n"
    "    def __exit__(self, kind, error, trace): return issubclass(kind or int, self.kinds)\n\n"
)
CHECK_NUMBER = "def check(number):\n    if not number:\n        raise ZeroDivisionError\n    return number\n"
EXPECTING_TEST = (
    "import unittest\nfrom contextlib import ExitStack, contextmanager, nullcontext, suppress as passing_over\n"
    "import pytest\nfrom numbers_code import check, expecting, transaction\n\n"
    "@pytest.mark.parametrize('number, expectation', [\n"
    "    (1, nullcontext()), (0, pytest.raises(ZeroDivisionError))])\n"
    "def test_expectation(number, expectation):\n    with expectation:\n        assert check(number) == number\n\n"
    "@contextmanager\ndef fails(kind):\n    with pytest.raises(kind):\n        yield\n\n"
    "class Fails:\n    def __enter__(self): ...\n    def __exit__(self, *error): return True\n\n"
    "def test_own_managers():\n    with fails(ZeroDivisionError):\n        assert check(0)\n"
    "    with transaction(), Fails():\n        assert check(0)\n"
    "    with passing_over(ZeroDivisionError):\n        assert check(0)\n"
    "    with expecting(ZeroDivisionError):\n        assert check(0)\n\n"
    "def test_stack():\n    with ExitStack() as stack:\n"
    "        stack.enter_context(pytest.raises(ZeroDivisionError))\n        assert check(0)\n\n"
    "class TestIt(unittest.TestCase):\n    def test_refuses(self):\n"
    "        refuses = self.assertRaises(ZeroDivisionError)\n"
    "        with refuses:\n            self.assertEqual(check(0), 1)\n"
)


async def test_a_block_may_expect_an_exception_before_its_last_assertion(
    sandbox: Sandbox, sandbox_settings: SandboxSettings
) -> None:
    own_files = {
        "numbers_code.py": EXPECTING_CODE + "def check(number):\n    return number\n",
        "test_numbers.py": EXPECTING_TEST,
    }

    report = await run_tests(
        own_files,
        {"numbers_code.py": f"import math\n\n{EXPECTING_CODE}{CHECK_NUMBER}"},
        sandbox,
        sandbox_settings,
    )

    assert not report.reached
    assert {phase["outcome"] for phases in report.phases.values() for phase in phases} == {"passed"}
    assert len(report.phases) == 5


SUPPRESSING = "from contextlib import suppress\n\ndef check(number):\n    raise ZeroDivisionError\n\n"
MANAGERS = {
    "returned": "def watch():\n    return suppress(ZeroDivisionError)\n",
    "made_before": "class watch:\n    def __enter__(self): ...\n    def __exit__(self, *error): return True\n",
}


@pytest.mark.parametrize("kind", MANAGERS)
async def test_a_manager_that_the_change_rewrites_may_not_swallow(
    kind: str, sandbox: Sandbox, sandbox_settings: SandboxSettings
) -> None:
    test = (
        "import pytest\nfrom watching import check, watch\n\n"
        "@pytest.fixture\ndef watched():\n    return watch()\n\n"
    )
    body = "    with watch():\n" if kind == "returned" else "    with watched, open(__file__):\n"
    test += f"def test_watch(watched):\n{body}        assert check(2) == 2\n"
    before = "class watch:\n    def __enter__(self): ...\n    def __exit__(self, *error): return False\n"
    own_files = {"watching.py": f"def check(number):\n    return 1\n\n{before}", "test_watching.py": test}

    report = await run_tests(
        own_files, {"watching.py": SUPPRESSING + MANAGERS[kind]}, sandbox, sandbox_settings
    )

    assert report.reached == {(LOST_FAILURE, "test_watching.py")}


MAPPING_CODE = (
    "def takewhile(count, rows):\n    return rows[:count] if isinstance(count, int) else count\n\n"
    "def starmap(function, rows):\n    return function\n\n"
    "def double(number):\n    return 2 * number\n\ndef multiply(left, right):\n    return left * right\n"
)
MAPPING_TEST = (
    "import gc, pickle, weakref\nfrom concurrent.futures import ProcessPoolExecutor\n"
    "from contextlib import nullcontext\nfrom multiprocessing import get_context\n"
    "import mapping\nfrom mapping import double, multiply, starmap\n\n"
    "def filter(function, rows):\n    return function\n\n"
    "def test_pools():\n    with get_context('fork').Pool(1) as pool:\n"
    "        assert pool.starmap(multiply, [(2, 3)]) == [6]\n"
    "    with ProcessPoolExecutor(1, get_context('fork')) as pool:\n"
    "        assert pool.submit(list, map(double, [1])).result() == [2]\n\n"
    "def test_own_functions():\n    assert mapping.takewhile(double, []) is double\n"
    "    assert starmap(double, []) is double\n    assert filter(double, []) is double\n\n"
    "def test_pickle():\n    assert list(pickle.loads(pickle.dumps(map(double, [1])))) == [2]\n\n"
    "def test_is_forgotten():\n    manager = nullcontext()\n    seen = weakref.ref(manager)\n"
    "    with manager:\n        assert seen() is manager\n    del manager\n    assert seen() is None\n"
)


async def test_functions_that_other_code_receives_stay_as_they_are(
    sandbox: Sandbox, sandbox_settings: SandboxSettings
) -> None:
    own_files = {"mapping.py": MAPPING_CODE, "test_mapping.py": MAPPING_TEST}

    report = await run_tests(own_files, {"mapping.py": MAPPING_CODE + "\n"}, sandbox, sandbox_settings)

    failures = [
        phase.get("text") for phases in report.phases.values() for phase in phases if phase.get("text")
    ]
    assert not failures
    assert len(report.phases) == 4
    assert not report.reached
