"""The fields of a recipe file. The docstring under each field is its documentation."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from suture.core.records import Strategy
from suture.models import Role

RepairApproach = Strategy | Literal["fresh"]
"""The approach of one of several parallel repairs; `fresh` writes the code again from the start."""


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class RecipeHelpers(_Table):
    """The roles that help the coder; each is off by default."""

    plan: bool = False
    """The planner splits the task into parts before the first reply."""
    spec_tests: bool = False
    """The spec tester writes tests from the task alone, once."""
    property_tests: bool = False
    """The property tester writes tests of properties that hold for every input, once."""
    adversarial_tests: bool = False
    """The adversarial tester tries to break the best candidate of a round."""
    critic: Literal["off", "rounds", "gate"] = "off"
    """The critic reads the best candidate of each round, or only one that passes every trusted check."""
    diagnose: Literal["off", "reply", "tools"] = "off"
    """The debugger says why a candidate fails before it is repaired: in one reply, or with tools."""
    lessons: bool = False
    """The summariser draws at most five lessons from the attempts."""
    optimise: bool = False
    """The optimiser simplifies code that passes; its version is kept only if it is simpler and still passes."""
    memory: tuple[Literal["coder", "debugger", "planner"], ...] = ()
    """Roles whose prompts include lessons of earlier runs, where `memory.use` is `prompts`."""
    advisers: tuple[str, ...] = ()
    """Roles of installed packages that comment on the candidate to repair (docs/extending.md)."""
    check_sources: tuple[str, ...] = ()
    """Installed packages' sources of tests, which have to earn trust as generated ones do."""
    fixers: tuple[str, ...] = ()
    """Moves of installed packages that repair without a model."""

    @property
    def model_roles(self) -> tuple[Role, ...]:
        """Return the roles whose models the helpers use."""
        uses_role: dict[Role, bool] = {
            "planner": self.plan,
            "tester": self.spec_tests or self.property_tests or self.adversarial_tests,
            "critic": self.critic != "off" or bool(self.advisers),
            "debugger": self.diagnose != "off",
            "summariser": self.lessons,
            "optimiser": self.optimise,
        }
        return tuple(role for role, is_used in uses_role.items() if is_used)

    @property
    def writes_tests(self) -> bool:
        """Return whether any helper writes tests."""
        is_tester_used = self.spec_tests or self.property_tests or self.adversarial_tests
        return is_tester_used or bool(self.check_sources)


class Recipe(_Table):
    """Which moves the policy may make, and which roles take part."""

    name: str = Field(min_length=1)
    """The name of the recipe; by default that of its file."""
    summary: str = ""
    """One sentence for people."""
    opening: int = Field(default=1, ge=1)
    """Replies requested in the first round; the first of them is greedy."""
    samples: int = Field(default=4, ge=1)
    """Replies requested in each later fresh start; by default `loop.samples`."""
    fresh: bool = True
    """Whether there are fresh starts; without them a single lineage is repaired until the end."""
    repair_opening: bool = False
    """Whether the first reply is repaired at once; otherwise other samples come before the first repair."""
    repair_width: int = Field(default=2, ge=1)
    """Repairs of the same candidate requested at once."""
    repair_rounds: int = Field(default=2, ge=0)
    """Repairs in one lineage before a fresh start; by default `loop.repair_rounds`."""
    repair_of: Literal["best", "last"] = "best"
    """Which candidate of a lineage is repaired."""
    strategies: tuple[RepairApproach, ...] = Field(default=("minimal", "restructure", "guard"), min_length=1)
    """The approaches of repairs, in this order; parallel repairs each take the next one."""
    tournament: bool = False
    """Whether candidates that trusted checks cannot distinguish are compared on inputs where they differ."""
    max_rounds: int | None = Field(default=None, ge=1)
    """Rounds after which the run ends; by default only the budget limits it."""
    attempt_limit: int | None = Field(default=None, ge=1)
    """Attempts after which the run stops, if that is fewer than the budget's."""
    warn_at: int | None = Field(default=None, ge=1)
    """Attempts after which the ledger warns that the limit is near."""
    patience: int | None = Field(default=None, ge=1)
    """Rounds in a row without a better candidate, after which the run is stuck."""
    detect_stuck: bool = True
    """Whether a run that goes in circles ends as `stuck`; a baseline recipe spends its budget instead."""
    least_confidence: float = Field(default=0.0, ge=0, le=1)
    """A diagnosis with less confidence leads to a fresh start instead of a repair."""
    rejections: int = Field(default=2, ge=0)
    """How often a critic may send back code that passes every trusted check."""
    attacks: int = Field(default=2, ge=1)
    """How often the adversarial tester is asked."""
    lean: bool = False
    """Whether the coder is asked only for what is missing: one function, or the body under its signature."""
    agent: Literal["off", "alone", "auto"] = "off"
    """Whether the model works in conversations: `alone` always; `auto` if it is capable, or at last with tools."""
    agent_turns: int = Field(default=2, ge=1)
    """Conversations with the model: another one begins where the one before has stalled."""
    agent_steps: int = Field(default=30, ge=1, le=500)
    """Replies of the model in one conversation."""
    mutate: bool = False
    """Whether failing code is first searched for a repair without a model."""
    temperature: float = Field(default=0.8, ge=0)
    """Temperature of every reply that is not greedy; by default the coder's setting."""
    helpers: RecipeHelpers = RecipeHelpers()
    """The table `[helpers]`: which roles help the coder."""


def list_recipe_keys() -> tuple[str, ...]:
    """Return every key of a recipe file, in the order of this file."""
    own = (name for name in Recipe.model_fields if name != "helpers")
    return (*own, *(f"helpers.{name}" for name in RecipeHelpers.model_fields))
