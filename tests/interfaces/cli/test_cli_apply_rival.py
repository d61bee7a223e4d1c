"""`suture apply --rival` verifies and applies another change than the result."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bare_pytest import BARE_PYTEST
from interfaces.cli.conftest import Suture

pytestmark = pytest.mark.usefixtures("sandbox")
SHOP = "def member_price(total):\n    total = total * 9 // 10\n    return total\n"
TEST = "from shop import member_price\n\n\ndef test_cents():\n    assert member_price(5) == 5\n"


@pytest.mark.heavy  # a run with a search, and one that verifies
@pytest.mark.timeout(300)
def test_another_change_is_applied_and_undone(suture: Suture, tmp_path: Path) -> None:
    shop = tmp_path / "shop"
    shop.mkdir()
    (shop / "shop.py").write_text(SHOP)
    (shop / "test_shop.py").write_text(TEST)
    options = ("--set", "repair.enabled=true", "--set", "repair.candidates=200")
    quick = (*options, "--set", "certification.seconds=0", "--test", BARE_PYTEST)
    heal = suture("heal", "--no-model", *quick, cwd=shop)
    assert heal.returncode == 0, heal.stderr
    hint, *_ = (line for line in heal.stderr.splitlines() if "Apply this one: " in line)
    assert (shop / "shop.py").read_text() == SHOP

    apply = suture(*hint.partition(": suture ")[2].split(), cwd=shop)

    assert apply.returncode == 0, apply.stderr
    assert "you chose this one." in apply.stderr
    assert "Applied to shop.py" in apply.stderr
    assert (shop / "shop.py").read_text() != SHOP
    refusal = suture("apply", "--rival", "2", cwd=shop)
    assert (refusal.returncode, "applied already" in refusal.stderr) == (2, True)
    assert suture("undo", cwd=shop).returncode == 0
    assert (shop / "shop.py").read_text() == SHOP
    shown = json.loads(suture("show", "last", "--json").stdout)
    assert shown["outcome"] == "healed"
    claimed = next(line for line in suture("verify", "last").stdout.splitlines() if "  change: " in line)
    assert claimed.endswith(", chosen by a person")


@pytest.mark.parametrize(
    "options", [("--rival", "0"), ("--rival", "two"), ("--rival", "2", "--into", "folder")]
)
def test_a_wrong_number_or_another_folder_is_refused(suture: Suture, options: tuple[str, ...]) -> None:
    refusal = suture("apply", *options)
    assert (refusal.returncode, refusal.stdout, len(refusal.stderr.splitlines())) == (2, "", 2)
