"""Generated tests are adopted for every verdict or for none."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from suture.core.ledger import Budget, Ledger, Limits, new_run
from suture.core.records import Candidate, Check, Task, Verdict, encode_record
from suture.core.settings import Settings
from suture.errors import BudgetExceeded
from suture.judge import Suite
from suture.judge.trust.assessment import AssessedCheck, TrustAssessment, TrustSignals
from suture.loop.context import RunContext
from suture.loop.policy.attempts import Attempt
from suture.loop.recipes.recipe_files import load_recipe
from suture.loop.roles import generated_tests
from suture.loop.run_spec import RunSpec
from suture.loop.state import LoopState, RoleContributions, initial_state
from suture.models import RoleModel, RoleModels
from suture.models.pricing import PriceTable
from suture.testing import FakeClock, ScriptedModel

USER_CHECK = Check(id="own", provenance="user", source="assert f(1) == 1\n")
TRUSTED_CHECK = Check(id="new", provenance="spec", source="assert f(2) == 2\n", trust=0.99)


async def trust_check(*_: object, **__: object) -> TrustAssessment:
    assessed = (AssessedCheck(check=TRUSTED_CHECK, reasons=(), signals=TrustSignals()),)
    return TrustAssessment(kept=assessed, removed=(), candidates=2, behaviours=1)


async def run_out_of_time(entry: Attempt, suite: Suite, context: RunContext) -> Attempt:
    assert TRUSTED_CHECK in suite.task.checks
    raise BudgetExceeded("seconds", 60, 60)


async def test_a_test_not_run_on_every_candidate_does_not_decide(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generated_tests, "assess_checks", trust_check)
    monkeypatch.setattr(generated_tests, "judge_again", run_out_of_time)
    settings, folder = Settings(), new_run(tmp_path)
    role_model = RoleModel(chain=(ScriptedModel([]),), temperature=0.8, max_tokens=200)
    with Ledger(folder.ledger_path, FakeClock()) as ledger:
        models = RoleModels({"coder": role_model}, PriceTable({}))
        context = RunContext(
            spec=RunSpec(
                task=Task(statement="anything", checks=(USER_CHECK,)),
                settings=settings,
                project=Path(),
                models=models,
            ),
            folder=folder,
            ledger=ledger,
            budget=Budget(ledger, Limits(), FakeClock()),
            models=models,
            sandbox=cast(Any, None),
            recipe=load_recipe(settings.loop, 0.8),
        )
        candidate = Candidate(files={"solution.py": "def f(x):\n    return x\n"}, origin="sample")
        verdict = Verdict(candidate=candidate.hash, outcomes=(), evidence="split")
        entry = Attempt(
            candidate=candidate.hash,
            origin="sample",
            round=0,
            start=0,
            blob=context.candidates.save(candidate),
            verdict=context.candidates.save(verdict),
        )
        contributions = RoleContributions(
            generated=folder.save_json({"checks": [encode_record(TRUSTED_CHECK)]})
        )
        state: LoopState = {**initial_state(folder.id), "judged": [encode_record(entry)]}
        with pytest.raises(BudgetExceeded):
            await generated_tests.adopt_generated_tests(state, contributions, context)
        assert context.task.checks == (await context.suites.load()).task.checks == (USER_CHECK,)
