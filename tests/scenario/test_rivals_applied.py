"""A person applies another change than the result, where the tests do not decide: it is verified first."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from bare_pytest import BARE_PYTEST
from run_events import read_event_data
from suture.api import HealOptions, apply_rival, heal, undo
from suture.api.delivery.rivals import make_verification_settings
from suture.core.ledger import Ledger, find_run, select_events
from suture.core.ledger.kinds import ComparedChange, RepairUndetermined
from suture.core.records import Result
from suture.core.settings import CertificationSettings, PathSettings, RepairSettings, Settings
from suture.core.settings.setting_changes import override_settings
from suture.errors import UsageError
from suture.judge.certificates import Certificate, load_any_certificate

pytestmark = [pytest.mark.timeout(300), pytest.mark.heavy]  # a whole run with a search, and two that verify
SHOP = "def member_price(total):\n    total = total * 9 // 10\n    return total\n"
SHOP_TESTS = """\
from shop import member_price


def test_nothing_costs_nothing():
    assert member_price(0) == 0


def test_half_a_cent_is_rounded_up():
    assert member_price(5) == 5
"""
DIFF = """\
diff --git a/shop.py b/shop.py
--- a/shop.py
+++ b/shop.py
@@ -1,3 +1,3 @@
 def member_price(total):
-    total = total * 9 // 10
+    total = 77
     return total
"""


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("rivals") / "shop"
    root.mkdir()
    (root / "shop.py").write_text(SHOP)
    (root / "test_shop.py").write_text(SHOP_TESTS)
    return root


@pytest.fixture(scope="module")
def settings(shop: Path) -> Settings:
    settings = Settings(
        paths=PathSettings(home=shop.parent / "home"),
        repair=RepairSettings(candidates=200),
        certification=CertificationSettings(mutants=2),
    )
    return settings.model_copy(update={"model": settings.model.model_copy(update={"name": "none"})})


@pytest.fixture(scope="module")
def undecided(shop: Path, settings: Settings) -> Result:
    """A result beside which other changes pass, too; it is not applied."""
    result = asyncio.run(heal(shop, HealOptions(test=BARE_PYTEST, settings=settings)))
    assert result.outcome == "healed", result.reason
    assert result.is_undetermined
    return result


def find_changes(settings: Settings, result: Result) -> list[dict[str, str]]:
    undetermined, *_ = read_event_data(settings.paths.home, "repair.undetermined", result.run_id)
    return list(undetermined["changes"])


async def test_the_second_change_is_verified_applied_and_undone(
    shop: Path, settings: Settings, undecided: Result
) -> None:
    rival = await apply_rival(undecided.run_id, 2, settings=settings)

    assert rival.run_id != undecided.run_id
    assert (rival.outcome, rival.diff) == ("healed", find_changes(settings, undecided)[1]["diff"])
    assert "person_chose" in rival.reason.notes
    assert not rival.is_undetermined
    assert rival.candidate is not None
    assert (shop / "shop.py").read_text() == rival.candidate.files["shop.py"]
    certificate = load_any_certificate(find_run(settings.paths.home, rival.run_id).path / "certificate.json")
    assert isinstance(certificate, Certificate)
    assert certificate.claims.label.endswith("chosen by a person")
    assert undo(rival.run_id, settings=settings).files == ("shop.py",)
    assert (shop / "shop.py").read_text() == SHOP


def test_a_change_is_verified_without_the_models_of_the_run_that_found_it(settings: Settings) -> None:
    names = {"models.coder": "openai:m", "models.escalate": "openai:m", "model.fallbacks": ["openai:m"]}
    used = make_verification_settings(override_settings(settings, names))
    assert (used.models.coder, used.models.escalate, used.model.fallbacks) == ("none", None, ())


async def test_the_first_change_is_the_result_itself(
    shop: Path, settings: Settings, undecided: Result
) -> None:
    applied = await apply_rival(undecided.run_id, 1, settings=settings)

    assert applied.run_id == undecided.run_id
    with pytest.raises(UsageError, match="is applied already"):
        await apply_rival(undecided.run_id, 2, settings=settings)
    undo(undecided.run_id, settings=settings)
    assert (shop / "shop.py").read_text() == SHOP


async def test_a_change_that_fails_a_test_is_not_applied(
    shop: Path, settings: Settings, undecided: Result
) -> None:
    with Ledger(find_run(settings.paths.home, undecided.run_id).ledger_path) as ledger:
        (listed,) = (event for _, event in select_events(ledger.events, RepairUndetermined))
        ledger.append(replace(listed, changes=(*listed.changes, ComparedChange(label="77", diff=DIFF))))

    result = await apply_rival(undecided.run_id, len(listed.changes) + 1, settings=settings)

    assert (result.outcome, result.is_undetermined) == ("not_healed", False)
    assert (shop / "shop.py").read_text() == SHOP


@pytest.mark.parametrize("number", [0, 9])
async def test_a_change_that_is_not_listed_is_refused(
    settings: Settings, undecided: Result, number: int
) -> None:
    with pytest.raises(UsageError, match=f"has no change {number}"):
        await apply_rival(undecided.run_id, number, settings=settings)


async def test_nothing_is_verified_if_the_user_has_changed_the_file(
    shop: Path, settings: Settings, undecided: Result
) -> None:
    runs = settings.paths.home / "runs"
    before = sorted(runs.iterdir())
    (shop / "shop.py").write_text(f"# mine\n{SHOP}")
    try:
        with pytest.raises(UsageError, match="was changed"):
            await apply_rival(undecided.run_id, 2, settings=settings)
    finally:
        (shop / "shop.py").write_text(SHOP)
    assert sorted(runs.iterdir()) == before


async def test_a_run_whose_change_was_chosen_lists_no_others(
    shop: Path, settings: Settings, undecided: Result
) -> None:
    patch = shop.parent / "chosen.diff"
    chosen = await apply_rival(undecided.run_id, 2, patch=patch, settings=settings)

    assert patch.read_text() == chosen.diff
    with pytest.raises(UsageError, match="no other change"):
        await apply_rival(chosen.run_id, 2, settings=settings)
