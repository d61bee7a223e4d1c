"""A small shop in a git repository, whose cart forgets the quantity."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

CART = '''"""Amounts are in cents."""

SHIPPING = 490


def cart_total(lines):
    """Return what the customer pays for (name, price, quantity) lines."""
    if not lines:
        return 0
    goods = 0
    for name, price, quantity in lines:
        goods += price
    return goods + SHIPPING


def label(name):
    return name.strip().title()
'''
TESTS = """import pytest
from cart import cart_total, label


def test_nothing_costs_nothing():
    assert cart_total([]) == 0


def test_three_mugs_cost_three_times_as_much():
    assert cart_total([("mug", 1200, 3)]) == 4090


@pytest.mark.parametrize("given, wanted", [(" mug ", "Mug"), ("tea pot", "Tea Pot")])
def test_a_label_is_a_title(given, wanted):
    assert label(given) == wanted
"""
RIGHT = CART.replace("goods += price", "goods += price * quantity")


def run_git(root: Path, *arguments: str) -> None:
    author = ("-c", "user.name=Test", "-c", "user.email=test@example.org")
    subprocess.run(["git", *author, *arguments], cwd=root, check=True, capture_output=True)


@pytest.fixture(autouse=True)
def no_recorded_runs(monkeypatch: pytest.MonkeyPatch, active_bare_python: None) -> None:
    """Keep results of a base out of the user's cache, and out of other tests."""
    monkeypatch.setenv("SUTURE_JUDGE_REUSE_BASE", "false")


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """The shop, committed."""
    root = tmp_path / "shop"
    root.mkdir()
    (root / "cart.py").write_text(CART)
    (root / "test_cart.py").write_text(TESTS)
    run_git(root, "init", "-q", "-b", "main")
    run_git(root, "add", "-A")
    run_git(root, "commit", "-q", "-m", "The shop")
    return root


@pytest.fixture
def write(shop: Path) -> Callable[[Mapping[str, str | None]], Path]:
    """Write files into the shop; `None` removes one."""

    def write_files(files: Mapping[str, str | None]) -> Path:
        for name, text in files.items():
            path = shop / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink() if text is None else path.write_text(text)
        return shop

    return write_files
