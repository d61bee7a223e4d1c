"""Every helper role uses the model of a role in the settings, and a run opens that model."""

from __future__ import annotations

from typing import get_args

import pytest

from suture.agents import packaged_prompt_names
from suture.agents.calling.role_call import MODEL_ROLES
from suture.core.settings.schema import RoleSettings
from suture.loop.recipes.recipe_schema import RecipeHelpers
from suture.models import Role

MODEL_ROLE_BY_PROMPT = {
    "coder": "coder",
    "agent": "coder",
    "planner": "planner",
    "project_coder": "coder",
    "subtask_coder": "coder",
    "example_reader": "coder",
    "repair_chooser": "coder",
    "reproducer": "coder",
    "spec_tester": "tester",
    "property_tester": "tester",
    "project_tester": "tester",
    "adversarial_tester": "tester",
    "critic": "critic",
    "debugger": "debugger",
    "diagnose": "debugger",
    "summariser": "summariser",
    "optimiser": "optimiser",
}
"""The model role of each prompt, by the name of the prompt file."""
HELPERS_BY_PROMPT: dict[str, RecipeHelpers] = {
    "planner": RecipeHelpers(plan=True),
    "spec_tester": RecipeHelpers(spec_tests=True),
    "property_tester": RecipeHelpers(property_tests=True),
    "adversarial_tester": RecipeHelpers(adversarial_tests=True),
    "critic": RecipeHelpers(critic="gate"),
    "debugger": RecipeHelpers(diagnose="tools"),
    "diagnose": RecipeHelpers(diagnose="reply"),
    "summariser": RecipeHelpers(lessons=True),
    "optimiser": RecipeHelpers(optimise=True),
}


def test_every_prompt_has_a_model_role() -> None:
    assert set(packaged_prompt_names()) == set(MODEL_ROLE_BY_PROMPT)
    assert {
        "coder": "coder",
        "agent": "coder",
        "project_coder": "coder",
        **MODEL_ROLES,
    } == MODEL_ROLE_BY_PROMPT


@pytest.mark.parametrize("role", get_args(Role))
def test_every_role_has_settings(role: Role) -> None:
    assert {role, f"{role}_temperature", f"{role}_max_tokens"} <= RoleSettings.model_fields.keys()


@pytest.mark.parametrize("helper", HELPERS_BY_PROMPT)
def test_a_recipe_needs_the_models_of_its_helpers(helper: str) -> None:
    assert HELPERS_BY_PROMPT[helper].model_roles == (MODEL_ROLES[helper],)
    assert RecipeHelpers().model_roles == ()
