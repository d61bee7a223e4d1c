"""The prompt describes failing calls and the code around suspicious functions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from bare_pytest import BARE_PYTEST
from suture.agents import RepairBrief, Suspect, draft_coder_prompt, fit_prompt, packaged_prompt
from suture.agents.context.suspects import find_related_functions
from suture.api import HealOptions, heal
from suture.core.ledger.kinds import PartialRepair
from suture.core.records import Counterexample
from suture.core.settings import BudgetSettings, CertificationSettings, PathSettings, RepairSettings, Settings
from suture.models import Message, prompt_token_upper_bound
from suture.sandbox import BubblewrapSandbox
from suture.testing import ScriptedModel

SHOP = (
    "def total(prices):\n    result = 0\n    for price in prices:\n        result -= price\n"
    "    return result\n\n\ndef roman(number):\n    return str(number)\n"
)
BILLS = (
    "from shop import total\n\n\nclass Bill:\n    def due(self, prices):\n        return total(prices)\n\n\n"
    "def weigh(items):\n    return len(items)\n\n\n"
    "def total_weight(prices, grams):\n    return sum(prices)\n\n\n"
    "def long(prices):\n    total(prices)\n" + "    prices = list(prices)  # and on and on\n" * 40
)
TESTS = (
    "from shop import roman, total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n\n\n"
    "def test_roman():\n    assert roman(4) == 'IV'\n"
)
REPAIRED = SHOP.replace("-=", "+=").replace("str(number)", "{4: 'IV'}[number]")
SUSPECTS = (Suspect(path="shop.py", function="total"),)


def test_callers_come_before_similar_functions() -> None:
    texts = {"shop.py": SHOP, "bills.py": BILLS}
    related = find_related_functions(SUSPECTS, texts, [SHOP])

    assert [(function.name, function.why) for function in related] == [
        ("Bill.due", "calls total"),
        ("total_weight", "is like total"),
    ]
    assert related[0].source == "def due(self, prices):\n    return total(prices)"
    assert find_related_functions(SUSPECTS, texts, [SHOP, BILLS]) == ()
    assert find_related_functions((), texts, []) == ()
    assert (
        find_related_functions(SUSPECTS, {"shop.py": SHOP, "odd.py": "def odd(:\n", "none.py": ""}, [SHOP])
        == ()
    )


def test_files_that_are_not_text_are_omitted() -> None:
    non_text = "def bill(prices):\n    return total(prices), '\udcff'\n"
    assert find_related_functions(SUSPECTS, {"shop.py": SHOP, "bills.py": non_text}, [SHOP]) == ()


async def test_related_functions_are_the_first_to_be_omitted() -> None:
    async def count_bytes(messages: Sequence[Message]) -> int:
        return prompt_token_upper_bound(messages)

    related = find_related_functions(SUSPECTS, {"shop.py": SHOP, "bills.py": BILLS}, [SHOP])
    brief = RepairBrief(
        statement="",
        files={"shop.py": SHOP},
        facts=[Counterexample(check_id="a", call="total([1])", actual="-1", expected="1")],
        divergences={"a": "it parts here", "b": "never shown"},
        related_functions=related,
        hints=[PartialRepair(path="shop.py", label="line 4: -= becomes +=", passing=1, failing=1)],
    )
    draft = draft_coder_prompt(brief, packaged_prompt("coder"))
    full = prompt_token_upper_bound((await fit_prompt(draft, None, count_bytes)).messages)

    fitted = await fit_prompt(draft, full - 10, count_bytes)

    assert fitted.removed_counts == {"siblings": 1}
    text = fitted.messages[1].content
    assert "Bill.due" in text
    assert "- and 1 more" in text
    assert "- `total([1])` gave -1, but should give 1; it parts here\n" in text
    assert "never shown" not in text


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    (root / "shop.py").write_text(SHOP + "\n\nLONG = '''" + "x" * 12_000 + "'''\n")
    (root / "bills.py").write_text(BILLS)
    (root / "test_shop.py").write_text(TESTS)
    return root


async def test_the_prompt_shows_divergences_and_related_functions(
    project: Path, tmp_path: Path, sandbox: BubblewrapSandbox
) -> None:
    settings = Settings(
        paths=PathSettings(home=tmp_path / "home"),
        budget=BudgetSettings(attempts=2, seconds=600),
        certification=CertificationSettings(seconds=0),
        repair=RepairSettings(candidates=60, seconds=100),
    )
    model = ScriptedModel([f"### shop.py\n```python\n{REPAIRED}```"], repeat_last=True)

    result = await heal(
        project, HealOptions(test=BARE_PYTEST, settings=settings, model=model, sandbox=sandbox)
    )

    assert result.outcome == "healed", result.reason
    prompt = model.calls[0].messages[-1].content
    fact = next(line for line in prompt.splitlines() if line.startswith("- `total([1, 2])`"))
    assert fact.endswith("; `result` in total is -1 at line 4 of shop.py, and 1 in the run that passes")
    assert "IV" in prompt
    assert prompt.count("in the run that passes") == 1  # the other call has no passing run
    assert "- `Bill.due` in bills.py calls total:\n    def due(self, prices):\n        return total" in prompt
