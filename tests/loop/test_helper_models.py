"""Every helper uses the model of a role that the settings know, and a run opens that model."""

from __future__ import annotations

from typing import get_args

import pytest

from suture.agents import packaged_prompt_names
from suture.agents.calling.role_call import MODEL_ROLES
from suture.core.settings.schema import RoleSettings
from suture.loop.recipes.recipe_schema import RecipeHelpers
from suture.models import Role

OWN_SETTINGS = {
    "coder": "coder",
    "agent": "coder",
    "planner": "planner",
    "project_coder": "coder",
    "subtask_coder": "coder",
    "reproducer": "coder",
    "spec_tester": "tester",
    "property_tester": "tester",
    "project_tester": "tester",
    "adversarial_tester": "tester",
    "critic": "critic",
    "reviewer": "reviewer",
    "debugger": "debugger",
    "diagnose": "debugger",
    "summariser": "summariser",
    "optimiser": "optimiser",
}
"""Prompt file -> the role whose settings hold for it."""
WANTED_BY: dict[str, RecipeHelpers] = {
    "planner": RecipeHelpers(plan=True),
    "spec_tester": RecipeHelpers(spec_tests=True),
    "property_tester": RecipeHelpers(property_tests=True),
    "adversarial_tester": RecipeHelpers(adversarial_tests=True),
    "critic": RecipeHelpers(critic="gate"),
    "reviewer": RecipeHelpers(review=True),
    "debugger": RecipeHelpers(diagnose="tools"),
    "diagnose": RecipeHelpers(diagnose="reply"),
    "summariser": RecipeHelpers(lessons=True),
    "optimiser": RecipeHelpers(optimise=True),
}


def test_every_prompt_is_of_somebody_with_a_model() -> None:
    assert set(packaged_prompt_names()) == set(OWN_SETTINGS)
    assert {"coder": "coder", "agent": "coder", "project_coder": "coder", **MODEL_ROLES} == OWN_SETTINGS


@pytest.mark.parametrize("role", get_args(Role))
def test_every_role_has_settings(role: Role) -> None:
    assert {role, f"{role}_temperature", f"{role}_max_tokens"} <= RoleSettings.model_fields.keys()


@pytest.mark.parametrize("helper", WANTED_BY)
def test_the_model_of_a_helper_is_opened_where_a_recipe_has_it(helper: str) -> None:
    assert WANTED_BY[helper].model_roles == (MODEL_ROLES[helper],)
    assert RecipeHelpers().model_roles == ()
