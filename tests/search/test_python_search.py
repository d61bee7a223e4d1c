"""The search inside a real sandbox, and whole runs that it heals without a model."""

from __future__ import annotations

from pathlib import Path

import pytest

from bare_pytest import BARE_PYTEST
from failing_projects import make_python_project, search_python
from prepared_suites import prepare_python_suite
from suture.api import HealOptions, heal
from suture.core.ledger import read_ledger
from suture.core.settings import (
    CertificationSettings,
    PathSettings,
    RepairSettings,
    SandboxSettings,
    Settings,
)
from suture.errors import PrerequisiteError
from suture.loop.evaluation.search_setup import editable_texts
from suture.mutation import apply_edits
from suture.sandbox import BubblewrapSandbox
from suture.search import SearchLimits, rank_repairs

CART = """\
LIMIT = 3


def total(prices):
    result = 0
    for price in prices:
        result -= price  # each one
    return result


class Cart:
    def __init__(self):
        self.prices = []

    def add(self, price):
        self.prices.append(price)
        return len(self.prices) <= LIMIT

    def total(self):
        return total(self.prices)
"""
TESTS = """\
import unittest

import pytest
from shop.cart import Cart


@pytest.mark.parametrize("prices, wanted", [([], 0), ([2, 3], 5), ([4], 4)])
def test_total(prices, wanted):
    cart = Cart()
    for price in prices:
        assert cart.add(price)
    assert cart.total() == wanted


class TestCart(unittest.TestCase):
    def test_empty(self):
        self.assertEqual(Cart().total(), 0)

    def test_one(self):
        cart = Cart()
        cart.add(7)
        self.assertEqual(cart.total(), 7)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Write a small package whose fault is deeper than the functions that the tests call."""
    folder = tmp_path / "project"
    (folder / "shop").mkdir(parents=True)
    (folder / "tests").mkdir()
    (folder / "shop" / "__init__.py").write_text("")
    (folder / "shop" / "cart.py").write_text(CART)
    (folder / "tests" / "test_cart.py").write_text(TESTS)
    return folder


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Return settings without weights and without certification, to be quick."""
    return Settings(
        paths=PathSettings(home=tmp_path / "home", cache=tmp_path / "no-weights"),
        sandbox=SandboxSettings(test_timeout_s=90),
        certification=CertificationSettings(seconds=0),
    )


async def test_repairs_are_kept_when_the_time_is_over(project: Path, sandbox: BubblewrapSandbox) -> None:
    (project / "tests" / "test_slow.py").write_text("import time\n\ndef test_slow():\n    time.sleep(600)\n")
    suite, command = await prepare_python_suite(project, sandbox)
    failing = [f"tests/test_cart.py::test_total[prices{n}]" for n in ("1-5", "2-4")]
    limits = SearchLimits(max_seconds=20)

    result = await search_python(command, editable_texts(suite), failing, limits)
    repaired = [apply_edits(CART, proposal.edits) for proposal in result.plausible]

    assert CART.replace("-=", "+=") in repaired


async def test_a_search_without_repairs_may_use_the_reserved_time(
    project: Path, sandbox: BubblewrapSandbox
) -> None:
    (project / "tests" / "test_never.py").write_text(
        "from shop.cart import total\n\ndef test_never():\n    assert total([1]) == 'never'\n"
    )
    suite, command = await prepare_python_suite(project, sandbox)
    limits = SearchLimits(max_seconds=1.0, reserve_s=0.5)

    result = await search_python(command, editable_texts(suite), ["tests/test_never.py::test_never"], limits)

    assert (result.ending, result.plausible) == ("time_over", [])


async def test_a_package_is_searched_and_its_fault_located(project: Path, sandbox: BubblewrapSandbox) -> None:
    suite, command = await prepare_python_suite(project, sandbox)
    result = await search_python(command, editable_texts(suite), (), SearchLimits(max_seconds=100))
    assert {test.id.partition("::")[2] for test in result.spectrum.failing} == {
        "test_total[prices1-5]",
        "test_total[prices2-4]",
        "TestCart::test_one",
    }
    for test in result.spectrum.failing:  # including the method of a unittest case
        assert test.error.startswith("AssertionError: ")
        assert [path for path, _ in test.traceback] == ["tests/test_cart.py"]

    worst = max(fault.ochiai for fault in result.suspect_lines)
    suspects = {(fault.function, fault.line) for fault in result.suspect_lines if fault.ochiai == worst}
    assert ("total", CART[: CART.index("result -=")].count("\n") + 1) in suspects
    assert not {fault.path for fault in result.suspect_lines} - {"shop/cart.py"}

    repairs = (await rank_repairs(result, make_python_project(command, result.texts, tests=[TESTS]))).repairs
    assert repairs[0].text == CART.replace("result -= price", "result += price")
    assert repairs[0].warnings == ()


@pytest.mark.parametrize("conftest", ["", "import shop.cart\n"])
async def test_code_outside_functions_is_repaired_too(
    project: Path, sandbox: BubblewrapSandbox, conftest: str
) -> None:
    (project / "conftest.py").write_text(conftest)  # it is loaded before the tests are collected
    (project / "tests" / "test_cart.py").write_text(
        "from shop.cart import LIMIT\n\ndef test_limit():\n    assert LIMIT == 4\n"
    )
    suite, command = await prepare_python_suite(project, sandbox)

    result = await search_python(
        command, editable_texts(suite), (), SearchLimits(max_seconds=100, max_candidates=400)
    )

    assert "line 1: 3 becomes 4" in {proposal.label for proposal in result.plausible}
    assert not any(proposal.is_swappable for proposal in result.plausible)


async def test_a_fault_after_an_exception_is_repaired_too(project: Path, sandbox: BubblewrapSandbox) -> None:
    source = (
        "def mean(items):\n    total = 0\n    for item in items:\n        total -= item\n"
        "    return total / len(itemz)\n"
    )
    (project / "shop" / "cart.py").write_text(source)
    tests = "from shop.cart import mean\n\ndef test_mean():\n    assert mean([2, 4]) == 3\n"
    (project / "tests" / "test_cart.py").write_text(tests)
    suite, command = await prepare_python_suite(project, sandbox)

    result = await search_python(command, editable_texts(suite), (), SearchLimits(max_seconds=60))
    texts = {apply_edits(source, proposal.edits) for proposal in result.plausible}

    assert source.replace("-=", "+=").replace("itemz", "items") in texts


@pytest.mark.heavy
async def test_endless_loops_do_not_end_the_search(project: Path, sandbox: BubblewrapSandbox) -> None:
    source = (
        "def count(n):\n    found = 0\n    while n:\n        n //= 1\n        found += 1\n    return found\n"
    )
    (project / "shop" / "cart.py").write_text(source)
    tests = "from shop.cart import count\n\ndef test_count():\n    assert count(9) == 4\n"
    (project / "tests" / "test_cart.py").write_text(tests)
    suite, command = await prepare_python_suite(project, sandbox)

    result = await search_python(command, editable_texts(suite), (), SearchLimits(max_seconds=100))

    assert result.spectrum.tests[0].outcome == "timeout"
    assert any("1 becomes 2" in proposal.label for proposal in result.plausible)


async def test_a_test_after_an_endless_one_keeps_its_outcome(
    project: Path, sandbox: BubblewrapSandbox
) -> None:
    source = "def down(n):\n    while n > 0:\n        n = n\n    return n\n"
    (project / "shop" / "cart.py").write_text(source)
    names = ("on", "off", "over")
    tests = "".join(
        f"def test_{name}():\n    assert down({n}) == 0\n\n" for n, name in zip((1, 0, 2), names, strict=True)
    )
    (project / "tests" / "test_cart.py").write_text(f"from shop.cart import down\n\n{tests}")
    suite, command = await prepare_python_suite(project, sandbox)
    baseline = {f"tests/test_cart.py::test_{name}": "timeout" for name in names}
    baseline["tests/test_cart.py::test_off"] = "passed"
    failing = [test for test, outcome in baseline.items() if outcome == "timeout"]

    result = await search_python(
        command, editable_texts(suite), failing, SearchLimits(max_seconds=100), statuses=baseline
    )

    assert result.spectrum.disagreements == ()
    assert "n = n - 1" in {apply_edits(source, p.edits).splitlines()[2].strip() for p in result.plausible}


async def test_a_run_is_healed_without_any_model(
    project: Path, settings: Settings, sandbox: BubblewrapSandbox
) -> None:
    result = await heal(project, HealOptions(test=BARE_PYTEST, settings=settings, sandbox=sandbox))
    assert result.outcome == "healed"
    assert result.candidate is not None
    assert result.candidate.origin == "mutation"
    assert (result.spend.tokens, result.spend.attempts, result.spend.model_calls) == (0, 0, 0)
    assert "+        result += price  # each one" in result.diff

    (ledger,) = (settings.paths.home / "runs").glob("*/ledger.jsonl")
    kinds = [event.kind for event in read_ledger(ledger).events]
    assert kinds.index("search.started") < kinds.index("search.finished") < kinds.index("candidate.proposed")


async def test_a_missing_model_is_an_error_only_once_it_is_called(
    project: Path, settings: Settings, sandbox: BubblewrapSandbox
) -> None:
    settings = settings.model_copy(update={"repair": RepairSettings(candidates=0)})
    with pytest.raises(PrerequisiteError, match="qwen"):
        await heal(project, HealOptions(test=BARE_PYTEST, settings=settings, sandbox=sandbox))
    (ledger,) = (settings.paths.home / "runs").glob("*/ledger.jsonl")
    assert read_ledger(ledger).events[-1].kind == "run.failed"


async def test_without_the_search_a_missing_model_is_an_error_at_once(
    project: Path, settings: Settings, sandbox: BubblewrapSandbox
) -> None:
    settings = settings.model_copy(update={"repair": RepairSettings(enabled=False)})
    with pytest.raises(PrerequisiteError, match="qwen"):
        await heal(project, HealOptions(test=BARE_PYTEST, settings=settings, sandbox=sandbox))
    assert not (settings.paths.home / "runs").exists()


async def test_a_change_that_lets_an_import_get_further_is_extended(
    project: Path, sandbox: BubblewrapSandbox
) -> None:
    text = "SIZES = [4, 5, 6]\nWIDEST = SIZES[3]\nNARROWEST = SIZES[-4]\n"
    (project / "shop" / "cart.py").write_text(text)
    tests = "from shop.cart import *\n\ndef test_sizes():\n    assert (NARROWEST, WIDEST) == (4, 6)\n"
    (project / "tests" / "test_cart.py").write_text(tests)
    suite, command = await prepare_python_suite(project, sandbox)
    failing = {"tests/test_cart.py::test_sizes"}

    result = await search_python(command, editable_texts(suite), failing, SearchLimits(max_seconds=60))

    assert result.plausible, result.ending
    assert all(len(proposal.edits) == 2 for proposal in result.plausible)
