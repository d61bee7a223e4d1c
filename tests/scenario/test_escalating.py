"""A stronger model takes over a hard case; both models are scripted, everything else is real."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import SecretStr

from bare_pytest import BARE_PYTEST
from run_events import read_event_data, read_events
from suture.api import HealOptions, WriteOptions, heal, replay, solve
from suture.core.ledger import find_run, spend_by_group
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
    """Enough attempts for both models to fail, and no certification."""
    budget, proof = BudgetSettings(attempts=14, seconds=100), CertificationSettings(seconds=0)
    return settings.model_copy(update={"budget": budget, "certification": proof})


def wrong_reply(number: int) -> str:
    return f"```python\ndef add(a, b):\n    return a - b - {number}\n```"


def add_stronger_model(settings: Settings, folder: Path, *replies: object) -> Settings:
    script = folder / "strong.json"
    script.write_text(json.dumps(replies), "utf-8")
    return set_stronger_model(settings, f"scripted:{script}")


def set_stronger_model(settings: Settings, model: str) -> Settings:
    return settings.model_copy(update={"models": RoleSettings(escalate=model)})


async def test_the_stronger_model_takes_over_when_the_usual_one_repeats_itself(
    settings: Settings, tmp_path: Path
) -> None:
    escalating = add_stronger_model(settings, tmp_path, RIGHT)
    weak = ScriptedModel([wrong_reply(0)], name="scripted:weak", repeat_last=True)

    result = await solve(TASK, WriteOptions(settings=escalating, model=weak))

    assert result.outcome == "healed"
    (escalated,) = read_event_data(escalating.paths.home, "model.escalated")
    assert (escalated["from"], escalated["to"]) == ("scripted:weak", escalating.models.escalate)
    assert (
        read_event_data(escalating.paths.home, "run.started")[0]["escalation_model"]
        == escalating.models.escalate
    )
    assert escalated["reason"]["code"] == "no_new_code"
    calls = [(call["role"], call["model"]) for call in read_event_data(escalating.paths.home, "model.called")]
    assert calls == [("coder", "scripted:weak")] * len(weak.calls) + [
        ("escalate", escalating.models.escalate)
    ]
    spend = spend_by_group(read_events(escalating.paths.home), "role")
    assert (spend["escalate"].attempts, spend["escalate"].model_calls) == (1, 1)
    assert spend["coder"].attempts + 1 == result.spend.attempts <= settings.budget.attempts


async def test_the_stronger_model_continues_within_the_same_budget(
    settings: Settings, tmp_path: Path
) -> None:
    escalating = add_stronger_model(settings, tmp_path, *map(wrong_reply, range(100, 120)))

    result = await solve(
        TASK, WriteOptions(settings=escalating, model=ScriptedModel([wrong_reply(0)], repeat_last=True))
    )

    assert result.outcome == "budget_exhausted"
    assert result.spend.attempts == settings.budget.attempts
    roles = [call["role"] for call in read_event_data(escalating.paths.home, "model.called")]
    assert roles == sorted(roles)  # after it has taken over, no other model is called
    assert roles.count("escalate") > 1
    assert len(read_event_data(escalating.paths.home, "model.escalated")) == 1


async def test_the_stronger_model_has_its_own_temperature(settings: Settings, tmp_path: Path) -> None:
    escalating = add_stronger_model(settings, tmp_path, *map(wrong_reply, range(100, 120)))
    roles = escalating.models.model_copy(update={"escalate_temperature": 0.3})
    escalating = escalating.model_copy(update={"models": roles})

    await solve(
        TASK, WriteOptions(settings=escalating, model=ScriptedModel([wrong_reply(0)], repeat_last=True))
    )

    (escalated,) = read_event_data(escalating.paths.home, "model.escalated")
    temperatures: dict[bool, set[float]] = {False: set(), True: set()}
    for decided in read_event_data(escalating.paths.home, "moves.decided"):
        moves = [move for move in decided["moves"] if move["kind"] != "stop"]
        temperatures[decided["round"] >= escalated["round"]] |= {move["temperature"] for move in moves}
    assert temperatures == {False: {0.0, 0.8}, True: {0.0, 0.3}}


async def test_a_run_is_stuck_without_a_stronger_model(settings: Settings) -> None:
    result = await solve(
        TASK, WriteOptions(settings=settings, model=ScriptedModel([wrong_reply(0)], repeat_last=True))
    )
    assert result.outcome == "stuck"
    assert read_event_data(settings.paths.home, "model.escalated") == []


async def test_the_stronger_model_is_not_called_when_the_usual_one_succeeds(
    settings: Settings, tmp_path: Path
) -> None:
    escalating = add_stronger_model(settings, tmp_path, {"raise": "ModelError", "message": "asked"})
    result = await solve(
        TASK, WriteOptions(settings=escalating, model=ScriptedModel([wrong_reply(0), *[RIGHT] * 4]))
    )
    assert result.outcome == "healed"
    assert {call["role"] for call in read_event_data(escalating.paths.home, "model.called")} == {"coder"}


async def test_an_escalated_run_is_replayable(settings: Settings, tmp_path: Path) -> None:
    escalating = add_stronger_model(settings, tmp_path, wrong_reply(7), RIGHT)
    weak = ScriptedModel([wrong_reply(0)], name="scripted:weak", repeat_last=True)
    result = await solve(TASK, WriteOptions(settings=escalating, model=weak))
    replayed = await replay(result.run_id, settings=escalating)
    assert replayed.same, replayed.difference
    assert replayed.result.outcome == "healed"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "add.py").write_text(BROKEN)
    (folder / "test_add.py").write_text(TESTS)
    return folder


async def test_the_certificate_names_both_models(settings: Settings, tmp_path: Path) -> None:
    certification = CertificationSettings(seconds=20, mutants=0)
    escalating = add_stronger_model(
        settings.model_copy(update={"certification": certification}), tmp_path, RIGHT
    )
    weak = ScriptedModel([wrong_reply(0)], name="scripted:weak", repeat_last=True)
    result = await solve(TASK, WriteOptions(settings=escalating, model=weak))
    certificate = (find_run(escalating.paths.home, result.run_id).path / "certificate.json").read_bytes()
    assert parse_certificate(certificate).claims.model == f"scripted:weak, {escalating.models.escalate}"


async def test_the_stronger_model_repairs_a_project(
    settings: Settings, tmp_path: Path, project: Path
) -> None:
    escalating = add_stronger_model(settings, tmp_path, RIGHT)
    weak = ScriptedModel([wrong_reply(0)], repeat_last=True)
    result = await heal(project, HealOptions(test=BARE_PYTEST, settings=escalating, model=weak))
    assert result.outcome == "healed"
    assert len(read_event_data(escalating.paths.home, "model.escalated")) == 1


async def test_a_missing_key_of_the_stronger_model_ends_the_run(settings: Settings, project: Path) -> None:
    keyless = set_stronger_model(settings, "openai:big").model_copy(
        update={"keys": KeySettings(), "repair": RepairSettings(candidates=0)}
    )
    weak = ScriptedModel([wrong_reply(0)], repeat_last=True)

    result = await heal(project, HealOptions(test=BARE_PYTEST, settings=keyless, model=weak))

    assert result.outcome == "infra_error"
    assert "OPENAI_API_KEY" in result.reason.detail
    assert result.spend.attempts == len(weak.calls)


async def test_a_money_budget_needs_the_price_of_the_stronger_model(settings: Settings) -> None:
    priced = set_stronger_model(settings, "openai:nobody-knows").model_copy(
        update={
            "keys": KeySettings(openai=SecretStr("k")),
            "budget": settings.budget.model_copy(update={"money": 1.0}),
        }
    )
    with pytest.raises(Exception, match=r"the price of 'openai:nobody-knows' is unknown"):
        await solve(TASK, WriteOptions(settings=priced, model=ScriptedModel([RIGHT], name="local:x")))
