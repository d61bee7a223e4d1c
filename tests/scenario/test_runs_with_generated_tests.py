"""Generated tests in whole runs: only trusted ones decide and are in the certificate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from run_events import read_events
from scenario.scripted_roles import ScriptedRoles
from scenario.test_recipes import HELPFUL
from suture.api import WriteOptions, solve, verify
from suture.core.records import Result
from suture.core.settings import BudgetSettings, CertificationSettings, LoopSettings, PathSettings, Settings
from suture.models import Message, Reply, Sampling

TASK = "Write a function largest(items) that gives the largest item of a list.\n\n>>> largest([1, 3, 2])\n3\n"
RIGHT = [
    "```python\ndef largest(items):\n    return max(items)\n```",
    "```python\ndef largest(items):\n    return sorted(items)[-1]\n```",
    "```python\ndef largest(items):\n    return sorted(items, reverse=True)[0]\n```",
]
OVERFITTED = "```python\ndef largest(items):\n    return max([0, *items])\n```"
CASES = [(f"[-{n}, -{n + 3}]", f"-{n}") for n in range(1, 7)]


def fence_code(lines: list[str]) -> str:
    return "```python\n" + "\n".join(lines) + "\n```"


GOOD_TESTS = fence_code([f"assert largest({argument}) == {expected}" for argument, expected in CASES])
WRONG_TESTS = fence_code([f"assert largest({argument}) == {expected} - 7" for argument, expected in CASES])


def make_settings(home: Path) -> Settings:
    return Settings(
        paths=PathSettings(home=home),
        loop=LoopSettings(recipe="dual_oracle"),
        budget=BudgetSettings(attempts=8, seconds=60),
        certification=CertificationSettings(mutants=0),
    )


async def run_with_tests(coder: list[str], tests: str, home: Path) -> tuple[Result, Settings, list[float]]:
    """Run the task, and return the result, the settings and the final trust of each generated test."""
    settings = make_settings(home)
    model = ScriptedRoles({**HELPFUL, "coder": coder, "spec_tester": [tests], "adversarial_tester": [tests]})
    result = await solve(TASK, WriteOptions(settings=settings, model=model))
    events = read_events(home, result.run_id)
    assessed = [event.data["tests"] for event in events if event.kind == "tests.assessed"]
    return result, settings, [float(test["trust"]) for test in assessed[-1]]


async def test_trusted_tests_decide_between_candidates_that_pass(tmp_path: Path) -> None:
    result, settings, trusts = await run_with_tests([OVERFITTED, *RIGHT], GOOD_TESTS, tmp_path)

    assert result.outcome == "healed"
    assert result.candidate is not None
    assert "[0, *items]" not in result.candidate.files["solution.py"]
    assert max(trusts) >= settings.loop.trust_threshold
    assert result.verdict is not None
    assert {outcome.provenance for outcome in result.verdict.outcomes} == {"visible", "spec"}
    assert all([finding.ok async for finding in verify("last", settings=settings)])


class UnsureModel(ScriptedRoles):
    """Report the same log probability for each character of a reply, as an embedded model does for tokens."""

    name = "local:cast"

    def __init__(self, replies: Mapping[str, Sequence[str]], logprob: float) -> None:
        super().__init__(replies)
        self._logprob = logprob
        self.asked_roles: set[str] = set()

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Reply:
        reply = await super().complete(messages, sampling)
        if not sampling.logprobs:
            return reply
        self.asked_roles.add(self.calls[-1])
        logprobs = (self._logprob,) * len(reply.text)
        return replace(reply, tokens=tuple(reply.text), logprobs=logprobs)


@pytest.mark.heavy
async def test_tests_of_an_unsure_embedded_model_are_trusted_less(tmp_path: Path) -> None:
    trusts: list[float] = []
    for logprob in (-0.01, -2.0):
        home = tmp_path / str(logprob)
        model = UnsureModel({**HELPFUL, "coder": RIGHT, "spec_tester": [GOOD_TESTS]}, logprob)
        await solve(TASK, WriteOptions(settings=make_settings(home), model=model))
        assert model.asked_roles == {"spec_tester", "adversarial_tester"}
        events = read_events(home)
        assessed = next(event.data["tests"] for event in events if event.kind == "tests.assessed")
        reason = "the model was not sure of it"
        assert {reason in test["reasons"] for test in assessed} == {logprob == -2.0}
        trusts.append(max(test["trust"] for test in assessed))
    assert trusts[0] > trusts[1]


async def test_wrong_tests_do_not_reject_correct_code(tmp_path: Path) -> None:
    result, settings, trusts = await run_with_tests(RIGHT, WRONG_TESTS, tmp_path)
    assert (result.outcome, result.spend.attempts) == ("healed", 3)
    assert max(trusts) < settings.loop.trust_threshold
    assert result.verdict is not None
    assert {outcome.provenance for outcome in result.verdict.outcomes} == {"visible"}
