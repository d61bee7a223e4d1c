"""Repair by a model after a search that found only part of the repair: prompts and accepted replies."""

from __future__ import annotations

from pathlib import Path

import pytest

from bare_pytest import BARE_PYTEST
from run_events import read_events
from suture.api import HealOptions, heal
from suture.core.settings import RepairSettings, Settings
from suture.testing import ScriptedModel

pytestmark = pytest.mark.timeout(300)  # the search is slow on a busy machine
FILLER = "\n\n".join(f"def unused_{n}(value):\n    return [value] * {n}  # {'x' * 40}\n" for n in range(90))
SHOP = (
    '"""A shop."""\n\nimport math\n\n\n'
    "def total(prices):\n    result = 0\n    for price in prices:\n        result -= price\n"
    "    return result\n\n\n"
    "def roman(number):\n    return str(number)\n\n\n" + FILLER
)
TESTS = (
    "from shop import roman, total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n\n\n"
    "def test_roman():\n    assert roman(4) == 'IV'\n"
)
ROMAN = """\
def roman(number):
    signs = ""
    for value, sign in ((5, "V"), (4, "IV"), (1, "I")):
        signs += sign * (number // value)
        number %= value
    return signs
"""
EDITS = f"""\
### shop.py
<<<<<<< SEARCH
        result -= price
=======
        result += price
>>>>>>> REPLACE
<<<<<<< SEARCH
def roman(number):
    return str(number)
=======
{ROMAN.rstrip()}
>>>>>>> REPLACE
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    (root / "shop.py").write_text(SHOP)
    (root / "test_shop.py").write_text(TESTS)
    return root


def enable_search(settings: Settings) -> Settings:
    return settings.model_copy(update={"repair": RepairSettings(candidates=60)})


@pytest.mark.heavy
async def test_the_prompt_shows_the_partial_repair_and_the_suspect_functions(
    project: Path, settings: Settings
) -> None:
    model = ScriptedModel([EDITS])

    result = await heal(project, HealOptions(test=BARE_PYTEST, settings=enable_search(settings), model=model))

    assert result.outcome == "healed", result.reason
    assert result.candidate is not None
    assert result.candidate.files["shop.py"].endswith(FILLER)
    prompt = model.calls[0].messages[-1].content
    assert "shop.py, line 9: -= becomes +=: 1 of 2 failing tests then pass" in prompt
    assert "point here:\n- `total` in shop.py\n- `roman` in shop.py\n" in prompt
    assert "import math\n# ... 2 lines are not shown here\ndef total(prices):" in prompt
    assert "unused_" not in prompt
    assert "<<<<<<< SEARCH" in prompt


@pytest.mark.heavy
async def test_the_next_prompt_reports_an_edit_that_did_not_apply(project: Path, settings: Settings) -> None:
    inapplicable = EDITS.replace("return str(number)", "return number")
    model = ScriptedModel([inapplicable, EDITS], repeat_last=True)

    result = await heal(project, HealOptions(test=BARE_PYTEST, settings=settings, model=model))

    assert result.outcome == "healed", result.reason
    assert result.spend.attempts >= 2
    first, second = (call.messages[-1].content for call in model.calls[:2])
    assert "Earlier replies" not in first
    assert "Earlier replies could not be used:\n- Edit 2 (shop.py), from " in second
    events = read_events(settings.paths.home, result.run_id)
    assert [event.data["error_type"] for event in events if event.kind == "move.failed"] == [
        "EditDoesNotApply"
    ]


async def test_a_reply_may_create_a_file_but_not_a_protected_one(tmp_path: Path, settings: Settings) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "__init__.py").write_text("")
    cart = "def total(prices):\n    from shop.rates import RATE\n\n    return sum(prices) * RATE\n"
    (tmp_path / "shop" / "cart.py").write_text(cart)
    (tmp_path / "test_cart.py").write_text(
        "from shop.cart import total\n\n\ndef test_total():\n    assert total([1, 2]) == 6\n"
    )
    reply = "### shop/rates.py\n```python\nRATE = 2\n```\n### test_more.py\n```python\nMORE = 1\n```\n"

    result = await heal(
        tmp_path, HealOptions(test=BARE_PYTEST, settings=settings, model=ScriptedModel([reply]))
    )

    assert result.outcome == "healed", result.reason
    assert result.candidate is not None
    assert dict(result.candidate.files) == {"shop/rates.py": "RATE = 2\n"}
    assert "+++ b/shop/rates.py" in result.diff


CART = (
    '"""A cart."""\n\n\n' + FILLER + "\n\nclass Cart:\n    def __init__(self):\n        self.prices = []\n\n"
    "    def add(self, price):\n        self.prices.append(price)\n\n"
    "    def mean(self):\n        return sum(self.price) / len(self.prices)\n"
)
METHOD = (
    "### cart.py\n```python\n    def mean(self):\n        return sum(self.prices) / len(self.prices)\n```\n"
)


async def test_without_a_search_the_prompt_shows_the_function_that_raised(
    tmp_path: Path, settings: Settings
) -> None:
    (tmp_path / "cart.py").write_text(CART)
    body = "    cart = Cart()\n    cart.add(2)\n    assert cart.mean() == 2\n"
    test = "from cart import Cart\n\n\ndef test_mean():\n" + body
    (tmp_path / "test_cart.py").write_text(test)
    model = ScriptedModel([METHOD])
    search_disabled = settings.model_copy(update={"repair": RepairSettings(enabled=False)})

    result = await heal(tmp_path, HealOptions(test=BARE_PYTEST, settings=search_disabled, model=model))

    assert result.outcome == "healed", result.reason
    assert result.candidate is not None
    assert result.candidate.files["cart.py"] == CART.replace("self.price)", "self.prices)")
    prompt = model.calls[0].messages[-1].content
    assert "return sum(self.price)" in prompt
    assert "unused_" not in prompt
    assert "def add" not in prompt
