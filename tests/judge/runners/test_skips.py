"""A candidate cannot keep a test from deciding by skipping it or by rewriting its example."""

from __future__ import annotations

import pytest

from judge.conftest import PYTEST, Prepare
from suture.core.records import Candidate, Verdict, VerdictNote
from suture.judge import check_candidate, find_protected_files

WRONG = "def add(a, b):\n    return a - b\n"
RIGHT = "def add(a, b):\n    return a + b\n"
TESTS = """
import pytest, sys
from calc import add

def test_zero():
    assert add(0, 0) == 0

def test_two():
    assert add(2, 2) == 4

@pytest.mark.skipif(sys.version_info > (3,), reason="old")
def test_old():
    assert add(1, 1) == 3

@pytest.mark.xfail
def test_not_yet():
    assert add(3, 3) == 7

def test_here():
    pytest.skip("not here")
"""
SKIPPING_PROGRAMS = {
    "pytest.skip": "import pytest\ndef add(a, b):\n    if a == 2: pytest.skip('later')\n    return a + b\n",
    "pytest.xfail": "import pytest\ndef add(a, b):\n    if a == 2: pytest.xfail('later')\n    return a + b\n",
    "SkipTest": "import unittest\ndef add(a, b):\n"
    "    if a == 2: raise unittest.SkipTest('later')\n    return a + b\n",
}


def make_candidate(code: str, **files: str) -> Candidate:
    return Candidate(files={"calc.py": code, **files}, origin="sample")


def get_statuses(verdict: Verdict) -> dict[str, str]:
    return {o.check_id.rpartition("::")[2]: o.status for o in verdict.outcomes}


@pytest.mark.parametrize("base", [WRONG, "def add(a, b:\n"], ids=["wrong", "unparsable"])
async def test_a_test_that_the_code_skips_fails(prepare: Prepare, base: str) -> None:
    suite = await prepare({"calc.py": base, "test_calc.py": TESTS})
    skipped_tests = {"test_old": "skipped", "test_not_yet": "skipped", "test_here": "skipped"}
    for code in SKIPPING_PROGRAMS.values():
        verdict = await check_candidate(make_candidate(code), suite)
        assert get_statuses(verdict) == {"test_zero": "passed", "test_two": "failed", **skipped_tests}
        (fact,) = verdict.counterexamples
        assert fact.exception == "skipped by the code under test: later"
        assert fact.file == "calc.py"

    verdict = await check_candidate(make_candidate(RIGHT), suite)

    assert verdict.all_passed
    assert get_statuses(verdict) == {"test_zero": "passed", "test_two": "passed", **skipped_tests}


async def test_a_skip_caused_by_a_wrong_answer_fails(prepare: Prepare) -> None:
    tests = "import pytest, calc\ndef test_two():\n    if calc.add(2, 2) is None: pytest.skip('no add')\n"
    suite = await prepare({"calc.py": WRONG, "test_calc.py": f"{tests}    assert calc.add(2, 2) == 4\n"})
    assert get_statuses(await check_candidate(make_candidate("def add(a, b): pass"), suite)) == {
        "test_two": "failed"
    }


@pytest.mark.parametrize(
    "cases",
    [
        "CASES = []\n",
        "import pytest\nCASES = [pytest.param(1, 1, 2, marks=pytest.mark.skip)]\n",
        "import pytest\nCASES = [pytest.param(1, 1, 2, marks=pytest.mark.xfail)]\n",
    ],
)
@pytest.mark.parametrize(
    "base", ["CASES = [(1, 1, 2)]\n", "CASES = [(1, 1, 2\n"], ids=["wrong", "unparsable"]
)
async def test_parameters_from_the_code_cannot_empty_a_test(prepare: Prepare, base: str, cases: str) -> None:
    tests = "import pytest\nfrom calc import CASES, add\n@pytest.mark.parametrize('a,b,c', CASES)\n"
    suite = await prepare(
        {"calc.py": base + WRONG, "test_c.py": f"{tests}def test_a(a, b, c): assert add(a, b) == c"}
    )

    verdict = await check_candidate(make_candidate(cases + WRONG), suite)

    assert not verdict.all_passed
    assert "failed" in get_statuses(verdict).values() or "missing" in get_statuses(verdict).values()
    assert (await check_candidate(make_candidate("CASES = [(1, 1, 2)]\n" + RIGHT), suite)).all_passed


DOCUMENTED = 'def add(a, b):\n    """\n    >>> add(2, 2)\n    {}\n{}    """\n    return a {} b{}\n'


@pytest.mark.parametrize("extra_bracket", ["", "("])
async def test_a_changed_docstring_example_fails(prepare: Prepare, extra_bracket: str) -> None:
    suite = await prepare(
        {"calc.py": DOCUMENTED.format(4, "", "-", extra_bracket)}, f"{PYTEST} --doctest-modules"
    )
    assert suite.test_files == ()

    second_example = "    >>> add(1, 0)\n    1\n"
    for changed in (
        DOCUMENTED.format(0, "", "-", ""),
        DOCUMENTED.format("4\n\n    Or so:\n    >>> 5", "", "-", ""),
    ):
        assert not (await check_candidate(make_candidate(changed), suite)).all_passed

    rewritten = await check_candidate(make_candidate(DOCUMENTED.format(0, "", "-", "")), suite)
    assert rewritten.counterexamples[0].exception == "the example in the docstring was changed"
    assert not (await check_candidate(make_candidate(WRONG), suite)).all_passed

    (fact,) = (
        await check_candidate(make_candidate(DOCUMENTED.format(4, "", "-", "")), suite)
    ).counterexamples
    assert (fact.call, fact.expected, fact.actual, fact.file) == ("add(2, 2)", "4", "0", "calc.py")

    raising = DOCUMENTED.format(4, "", "/ 0 *", "")
    (fact,) = (await check_candidate(make_candidate(raising), suite)).counterexamples
    assert (fact.exception, fact.line) == ("ZeroDivisionError: division by zero", 6)
    assert (await check_candidate(make_candidate(DOCUMENTED.format(4, "", "+", "")), suite)).all_passed
    assert (
        await check_candidate(make_candidate(DOCUMENTED.format(4, second_example, "+", "")), suite)
    ).all_passed


@pytest.mark.parametrize("base", [WRONG, "def add(a, b:\n"], ids=["wrong", "unparsable"])
async def test_a_named_test_file_is_protected(prepare: Prepare, base: str) -> None:
    tests = "from calc import add\ndef test_two():\n    assert add(2, 2) == 4\n"
    suite = await prepare({"calc.py": base, "tests.py": tests}, f"{PYTEST} tests.py")
    assert suite.test_files == ("tests.py",)

    easy = {"tests.py": "def test_two(): pass\n", "./tests.py": "", "conftest.py": "", "json.py": ""}
    assert set(find_protected_files({"calc.py": WRONG, "new.py": "", **easy}, suite)) == set(easy)

    verdict = await check_candidate(make_candidate(WRONG, **{"tests.py": easy["tests.py"]}), suite)
    assert get_statuses(verdict) == {"test_two": "failed"}
    assert VerdictNote(code="protected_file", subjects=("tests.py",)) in verdict.notes


async def test_unittest_tests_that_the_code_skips_fail(prepare: Prepare) -> None:
    tests = "import unittest\nimport calc\nclass T(unittest.TestCase):\n    def test_a(self):\n"
    tests += "        self.assertEqual(calc.add(2, 2), 4)\n"

    suite = await prepare({"calc.py": WRONG, "test_calc.py": tests}, "python -m unittest")

    for code in (SKIPPING_PROGRAMS["SkipTest"], "import unittest\nraise unittest.SkipTest\n"):
        assert get_statuses(await check_candidate(make_candidate(code), suite)) == {
            "python -m unittest": "failed"
        }
    assert (await check_candidate(make_candidate(RIGHT), suite)).all_passed
