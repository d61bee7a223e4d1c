"""A run uses only the model of its row, whatever models the user's settings name for roles."""

from __future__ import annotations

from typing import get_args

from suture.bench.grading.hidden_checks import Grade
from suture.bench.problem import Problem
from suture.bench.running.evaluation import EvaluationJob, make_arm_settings
from suture.core.settings import Settings
from suture.core.settings.schema import RoleSettings
from suture.models import Role, open_role_models
from suture.testing import ScriptedModel

JOB = EvaluationJob(
    problem=Problem(
        id="made/1",
        dataset="made",
        kind="write",
        statement="Write f.",
        entry_point="f",
        hidden="assert f(1) == 2\n",
        reference="def f(x):\n    return x + 1\n",
        licence="none",
        source="here",
    ),
    arm="adaptive",
    model="scripted:it",
    seed=0,
    cap=1000,
    regime="visible",
    reference=Grade(status="right"),
)


def test_the_model_of_the_job_is_used_for_every_role() -> None:
    role_settings = RoleSettings.model_validate(
        {**dict.fromkeys(get_args(Role), "openai:another"), "coder_temperature": 0.25}
    )
    settings = make_arm_settings(Settings(models=role_settings), JOB)
    model = ScriptedModel([], name=JOB.model)
    roles = [role for role in get_args(Role) if role != "escalate"]

    models = open_role_models(settings, model, in_use=roles)

    assert {models.for_role(role).chain for role in roles} == {(model,)}
    assert models.escalation is None
    assert models.for_role("coder").temperature == 0.25
