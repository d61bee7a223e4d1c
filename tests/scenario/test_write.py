"""New code is written end to end, with every possible ending."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from run_events import read_events
from suture.api import WriteOptions, example_task, solve
from suture.core.ledger import find_run
from suture.core.records import Check
from suture.core.settings import BudgetSettings, LoopSettings, Settings
from suture.errors import ModelAuthError, ModelError, ModelTimeout
from suture.testing import ScriptedModel

TASK = "Write a function add(a, b) that adds two numbers.\n\n>>> add(1, 2)\n3\n>>> add(-1, 1)\n0\n"
RIGHT = "```python\ndef add(a, b):\n    return a + b\n```"
WRONG = "```python\ndef add(a, b):\n    return a - b\n```"


def wrong_reply(number: int) -> str:
    return f"```python\ndef add(a, b):\n    return a - b - {number}\n```"


async def test_a_right_first_reply_heals(settings: Settings) -> None:
    model = ScriptedModel([RIGHT])

    result = await solve(TASK, WriteOptions(settings=settings, model=model))

    assert (result.outcome, result.evidence, result.spend.attempts) == ("healed", "split", 1)
    assert result.candidate is not None
    assert "a + b" in result.candidate.files["solution.py"]
    assert (
        result.diff.startswith("diff --git a/solution.py b/solution.py") or "+++ b/solution.py" in result.diff
    )


async def test_a_right_reply_after_a_wrong_one_heals(settings: Settings) -> None:
    result = await solve(TASK, WriteOptions(settings=settings, model=ScriptedModel([WRONG, *[RIGHT] * 4])))
    assert result.outcome == "healed"
    assert result.spend.attempts == 5


async def test_the_repair_prompt_contains_facts_but_no_transcript(settings: Settings) -> None:
    model = ScriptedModel([*map(wrong_reply, range(5)), RIGHT, RIGHT])

    result = await solve(TASK, WriteOptions(settings=settings, model=model))

    assert result.outcome == "healed"
    prompt = model.calls[-1].messages[-1].content
    assert "`add(1, 2)` gave " in prompt
    assert "but should give 3" in prompt
    assert prompt.count("```python\ndef") == 1


async def test_the_example_task_heals(settings: Settings) -> None:
    result = await solve(example_task(), WriteOptions(settings=settings, model="scripted:example"))
    assert result.outcome == "healed"
    assert result.spend.attempts > 1


async def test_the_greedy_recipe_stops_after_one_reply(settings: Settings) -> None:
    greedy = settings.model_copy(update={"loop": LoopSettings(recipe="greedy")})
    result = await solve(TASK, WriteOptions(settings=greedy, model=ScriptedModel([WRONG])))
    assert (result.outcome, result.spend.attempts) == ("not_healed", 1)


async def test_the_best_candidate_is_kept_rather_than_the_last(settings: Settings) -> None:
    half_right = "```python\ndef add(a, b):\n    return 3\n```"
    model = ScriptedModel([half_right, *map(wrong_reply, range(20))])
    result = await solve(TASK, WriteOptions(settings=settings, model=model))
    assert result.outcome != "healed"
    assert result.candidate is not None
    assert "return 3" in result.candidate.files["solution.py"]


async def test_a_run_is_stuck_when_the_model_repeats_itself(settings: Settings) -> None:
    generous = settings.model_copy(update={"budget": BudgetSettings(attempts=100, seconds=100)})
    result = await solve(TASK, WriteOptions(settings=generous, model=ScriptedModel([WRONG] * 100)))
    assert result.outcome == "stuck"
    assert result.spend.attempts < 15


async def test_a_run_ends_when_every_reply_is_malformed(settings: Settings) -> None:
    result = await solve(TASK, WriteOptions(settings=settings, model=ScriptedModel(["I am sorry."] * 100)))
    assert result.outcome in ("stuck", "budget_exhausted")
    assert result.candidate is None


async def test_the_attempt_budget_is_a_hard_limit(settings: Settings) -> None:
    model = ScriptedModel([wrong_reply(number) for number in range(100)])
    result = await solve(TASK, WriteOptions(settings=settings, model=model))
    assert result.outcome == "budget_exhausted"
    assert len(model.calls) == settings.budget.attempts


async def test_the_token_budget_is_a_hard_limit(settings: Settings) -> None:
    tight = settings.model_copy(update={"budget": BudgetSettings(attempts=100, tokens=800, seconds=100)})
    model = ScriptedModel([wrong_reply(number) for number in range(100)])
    result = await solve(TASK, WriteOptions(settings=tight, model=model))
    assert result.outcome == "budget_exhausted"
    assert result.spend.tokens <= 800


async def test_an_unreachable_model_is_an_infrastructure_error(settings: Settings) -> None:
    result = await solve(
        TASK, WriteOptions(settings=settings, model=ScriptedModel([ModelTimeout("no reply")] * 9))
    )
    assert result.outcome == "infra_error"
    assert result.spend.attempts == 0


async def test_one_failing_call_does_not_stop_its_round(settings: Settings) -> None:
    model = ScriptedModel([WRONG, ModelError("gone"), RIGHT, "nothing", wrong_reply(3)])
    result = await solve(TASK, WriteOptions(settings=settings, model=model))
    assert result.outcome == "healed"


async def test_a_refused_key_raises(settings: Settings) -> None:
    with pytest.raises(ModelAuthError):
        await solve(TASK, WriteOptions(settings=settings, model=ScriptedModel([ModelAuthError("refused")])))


async def test_code_is_returned_unverified_without_a_check(settings: Settings) -> None:
    result = await solve(
        "Write a function add(a, b).", WriteOptions(settings=settings, model=ScriptedModel([RIGHT]))
    )
    assert result.outcome == "not_healed"
    assert result.reason.code == "no_trusted_check"
    assert result.candidate is not None


async def test_code_is_handed_over_tidy_and_verified_as_it_is(settings: Settings) -> None:
    untidy = "```python\ndef add( a, b):\n    return a + b\n\n# Example usage\nx = add(1, 2)\nprint(x)\n```"
    result = await solve(
        "Write add(a, b).\n\n>>> add(2, 2)\n4\n",
        WriteOptions(settings=settings, model=ScriptedModel([untidy])),
    )
    assert result.candidate is not None
    assert result.candidate.files == {"solution.py": "def add(a, b):\n    return a + b\n"}
    assert result.verdict is not None
    assert result.verdict.candidate == result.candidate.hash


async def test_an_untrusted_check_does_not_decide(settings: Settings) -> None:
    task = replace(
        example_task(),
        checks=(
            *example_task().checks,
            Check(id="guess", provenance="spec", source="assert merge_intervals([]) == [[0, 0]]", trust=0.5),
        ),
    )

    result = await solve(task, WriteOptions(settings=settings, model="scripted:example"))

    assert result.outcome == "healed"
    assert result.verdict is not None
    assert "guess" in result.verdict.failed


async def test_a_run_refuses_an_oracle_check(settings: Settings) -> None:
    oracle = Check(id="hidden", provenance="oracle", source="assert add(1, 1) == 2")
    task = replace(example_task(), checks=(*example_task().checks, oracle))
    with pytest.raises(ValueError, match="oracle"):
        await solve(task, WriteOptions(settings=settings, model=ScriptedModel([RIGHT])))


async def test_the_users_pytest_file_decides(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "test_adding.py").write_text(
        "from adding import add\n\n\ndef test_add():\n    assert add(2, 2) == 4\n"
    )
    monkeypatch.chdir(tmp_path)
    model = ScriptedModel([WRONG, *[RIGHT] * 4])

    result = await solve(
        "Add two numbers.", WriteOptions(test="test_adding.py", settings=settings, model=model, apply=True)
    )

    assert (result.outcome, result.evidence) == ("healed", "nonce")
    assert "a + b" in (tmp_path / "adding.py").read_text()


async def test_every_step_is_recorded_before_the_next(settings: Settings) -> None:
    reported_kinds: list[str] = []

    result = await solve(
        TASK,
        WriteOptions(
            settings=settings,
            model=ScriptedModel([WRONG, *[RIGHT] * 4]),
            on_event=lambda event: reported_kinds.append(event.kind),
        ),
    )

    events = read_events(settings.paths.home)
    kinds = [event.kind for event in events]
    assert reported_kinds == kinds
    assert kinds[0] == "run.started"
    assert kinds[-1] == "run.finished"
    model_calls = [event for event in events if event.kind == "model.called"]
    replies = find_run(settings.paths.home, result.run_id).replies_path
    assert {event.data["call"] for event in model_calls} == {path.stem for path in replies.iterdir()}
    first_call = kinds.index("model.called")
    assert kinds.index("budget.reserved") < first_call < kinds.index("candidate.proposed")
    assert kinds.index("candidate.proposed") < kinds.index("candidate.checked")
