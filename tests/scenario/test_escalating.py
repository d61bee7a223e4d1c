"""A stronger model takes over a hard case; both models are scripted, everything else is real."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from bare_pytest import BARE_PYTEST
from suture.api import HealOptions, WriteOptions, heal, replay, solve
from suture.core.ledger import Event, find_run, read_ledger, spend_by_group
from suture.core.settings import Settings
from suture.core.settings.schema import (
    BudgetSettings,
    CertificationSettings,
    KeySettings,
    RepairSettings,
    RoleSettings,
)
from suture.judge.certificates.certificate import parse_certificate
from suture.testing import ScriptedModel

TASK = "Write a function add(a, b) that adds two numbers.\n\n>>> add(1, 2)\n3\n>>> add(-1, 1)\n0\n"
RIGHT = "```python\ndef add(a, b):\n    return a + b\n```"
BROKEN = "def add(a, b):\n    return a - b\n"
TESTS = "from add import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n"


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Attempts for the usual model to fail in, and some more; nothing is proved."""
    budget, proof = BudgetSettings(attempts=14, seconds=100), CertificationSettings(seconds=0)
    return settings.model_copy(update={"budget": budget, "certification": proof})


def wrong(number: int) -> str:
    return f"```python\ndef add(a, b):\n    return a - b - {number}\n```"


def with_stronger(settings: Settings, folder: Path, *replies: object) -> Settings:
    script = folder / "strong.json"
    script.write_text(json.dumps(replies), "utf-8")
    return named(settings, f"scripted:{script}")


def named(settings: Settings, model: str) -> Settings:
    return settings.model_copy(update={"models": RoleSettings(escalate=model)})


def events_of(settings: Settings) -> tuple[Event, ...]:
    return tuple(read_ledger(find_run(settings.paths.home, "last").ledger_path).events)


def event_data(settings: Settings, kind: str) -> list[Mapping[str, Any]]:
    return [event.data for event in events_of(settings) if event.kind == kind]


async def test_it_takes_over_when_the_usual_model_goes_in_circles(settings: Settings, tmp_path: Path) -> None:
    strong = with_stronger(settings, tmp_path, RIGHT)
    weak = ScriptedModel([wrong(0)], name="scripted:weak", repeat_last=True)
    result = await solve(TASK, WriteOptions(settings=strong, model=weak))
    assert result.outcome == "healed"
    (escalated,) = event_data(strong, "model.escalated")
    assert (escalated["from"], escalated["to"]) == ("scripted:weak", strong.models.escalate)
    assert event_data(strong, "run.started")[0]["escalation_model"] == strong.models.escalate
    assert escalated["reason"]["code"] == "no_new_code"
    calls = [(call["role"], call["model"]) for call in event_data(strong, "model.called")]
    assert calls == [("coder", "scripted:weak")] * len(weak.calls) + [("escalate", strong.models.escalate)]
    spend = spend_by_group(events_of(strong), "role")
    assert (spend["escalate"].attempts, spend["escalate"].model_calls) == (1, 1)
    assert spend["coder"].attempts + 1 == result.spend.attempts <= settings.budget.attempts


async def test_it_continues_with_it_within_the_same_budget(settings: Settings, tmp_path: Path) -> None:
    strong = with_stronger(settings, tmp_path, *map(wrong, range(100, 120)))
    result = await solve(
        TASK, WriteOptions(settings=strong, model=ScriptedModel([wrong(0)], repeat_last=True))
    )
    assert result.outcome == "budget_exhausted"
    assert result.spend.attempts == settings.budget.attempts
    roles = [call["role"] for call in event_data(strong, "model.called")]
    assert roles == sorted(roles)  # once it has taken over, nobody else is asked
    assert roles.count("escalate") > 1
    assert len(event_data(strong, "model.escalated")) == 1


async def test_it_draws_with_a_temperature_of_its_own(settings: Settings, tmp_path: Path) -> None:
    strong = with_stronger(settings, tmp_path, *map(wrong, range(100, 120)))
    own = strong.models.model_copy(update={"escalate_temperature": 0.3})
    strong = strong.model_copy(update={"models": own})
    await solve(TASK, WriteOptions(settings=strong, model=ScriptedModel([wrong(0)], repeat_last=True)))
    (escalated,) = event_data(strong, "model.escalated")
    drawn: dict[bool, set[float]] = {False: set(), True: set()}
    for decided in event_data(strong, "moves.decided"):
        moves = [move for move in decided["moves"] if move["kind"] != "stop"]
        drawn[decided["round"] >= escalated["round"]] |= {move["temperature"] for move in moves}
    assert drawn == {False: {0.0, 0.8}, True: {0.0, 0.3}}


async def test_without_the_setting_the_run_is_stuck(settings: Settings) -> None:
    result = await solve(
        TASK, WriteOptions(settings=settings, model=ScriptedModel([wrong(0)], repeat_last=True))
    )
    assert result.outcome == "stuck"
    assert event_data(settings, "model.escalated") == []


async def test_it_is_not_asked_where_the_usual_model_is_enough(settings: Settings, tmp_path: Path) -> None:
    strong = with_stronger(settings, tmp_path, {"raise": "ModelError", "message": "asked"})
    result = await solve(TASK, WriteOptions(settings=strong, model=ScriptedModel([wrong(0), *[RIGHT] * 4])))
    assert result.outcome == "healed"
    assert {call["role"] for call in event_data(strong, "model.called")} == {"coder"}


async def test_an_escalated_run_replays_alike(settings: Settings, tmp_path: Path) -> None:
    strong = with_stronger(settings, tmp_path, wrong(7), RIGHT)
    weak = ScriptedModel([wrong(0)], name="scripted:weak", repeat_last=True)
    result = await solve(TASK, WriteOptions(settings=strong, model=weak))
    again = await replay(result.run_id, settings=strong)
    assert again.same, again.difference
    assert again.result.outcome == "healed"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "add.py").write_text(BROKEN)
    (folder / "test_add.py").write_text(TESTS)
    return folder


async def test_a_certificate_names_who_wrote_the_code(settings: Settings, tmp_path: Path) -> None:
    proof = CertificationSettings(seconds=20, mutants=0)
    strong = with_stronger(settings.model_copy(update={"certification": proof}), tmp_path, RIGHT)
    weak = ScriptedModel([wrong(0)], name="scripted:weak", repeat_last=True)
    result = await solve(TASK, WriteOptions(settings=strong, model=weak))
    text = (find_run(strong.paths.home, result.run_id).path / "certificate.json").read_bytes()
    assert parse_certificate(text).claims.model == f"scripted:weak, {strong.models.escalate}"


async def test_code_is_repaired_by_it_too(settings: Settings, tmp_path: Path, project: Path) -> None:
    strong = with_stronger(settings, tmp_path, RIGHT)
    weak = ScriptedModel([wrong(0)], repeat_last=True)
    result = await heal(project, HealOptions(test=BARE_PYTEST, settings=strong, model=weak))
    assert result.outcome == "healed"
    assert len(event_data(strong, "model.escalated")) == 1


async def test_a_stronger_model_that_is_missing_ends_the_run_and_says_why(
    settings: Settings, project: Path
) -> None:
    keyless = named(settings, "openai:big").model_copy(
        update={"keys": KeySettings(), "repair": RepairSettings(candidates=0)}
    )
    weak = ScriptedModel([wrong(0)], repeat_last=True)
    result = await heal(project, HealOptions(test=BARE_PYTEST, settings=keyless, model=weak))
    assert result.outcome == "infra_error"
    assert "OPENAI_API_KEY" in result.reason.detail
    assert result.spend.attempts == len(weak.calls)


async def test_a_budget_of_money_needs_its_price(settings: Settings) -> None:
    priced = named(settings, "openai:nobody-knows").model_copy(
        update={
            "keys": KeySettings(openai=SecretStr("k")),
            "budget": settings.budget.model_copy(update={"money": 1.0}),
        }
    )
    with pytest.raises(Exception, match=r"the price of 'openai:nobody-knows' is unknown"):
        await solve(TASK, WriteOptions(settings=priced, model=ScriptedModel([RIGHT], name="local:x")))
