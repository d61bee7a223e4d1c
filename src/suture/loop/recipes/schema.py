"""What a recipe may say; the docstring under each field is its documentation."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from suture.core.records import Strategy
from suture.models import Role

Way = Strategy | Literal["fresh"]
"""How one of several parallel repairs goes about it; `fresh` writes the code anew instead."""


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class Helpers(_Table):
    """The roles that help the coder; each is off where the file does not say."""

    plan: bool = False
    """The planner cuts the task into parts before the first reply."""
    spec_tests: bool = False
    """The spec tester writes tests from the task alone, once."""
    property_tests: bool = False
    """The property tester writes tests of what must hold for every input, once."""
    adversarial_tests: bool = False
    """The adversarial tester tries to break the best candidate of a round."""
    critic: Literal["off", "rounds", "gate"] = "off"
    """The critic reads the best candidate each round, or only one that passes every trusted check."""
    diagnose: Literal["off", "reply", "tools"] = "off"
    """The debugger says why a candidate fails before it is repaired: in one reply, or with tools."""
    lessons: bool = False
    """The summariser draws at most five lessons from what was tried."""
    optimise: bool = False
    """The optimiser makes code that passes simpler; kept only where it is, and all still passes."""
    review: bool = False
    """The reviewer looks for security and quality problems of code that passes; it decides nothing."""
    memory: tuple[Literal["coder", "debugger", "planner"], ...] = ()
    """Roles whose prompts tell what earlier runs teach, where `memory.use` is `prompts` or `on`."""
    advisers: tuple[str, ...] = ()
    """Roles of installed packages that say something of what is mended next (docs/extending.md)."""
    check_sources: tuple[str, ...] = ()
    """Installed packages' sources of tests, which have to earn trust as generated ones do."""
    menders: tuple[str, ...] = ()
    """Moves of installed packages that mend without a model."""

    @property
    def seats(self) -> tuple[Role, ...]:
        """Whose models they speak with."""
        wanted: dict[Role, bool] = {
            "planner": self.plan,
            "tester": self.spec_tests or self.property_tests or self.adversarial_tests,
            "critic": self.critic != "off" or bool(self.advisers),
            "reviewer": self.review,
            "debugger": self.diagnose != "off",
            "summariser": self.lessons,
            "optimiser": self.optimise,
        }
        return tuple(seat for seat, asked in wanted.items() if asked)

    @property
    def tests(self) -> bool:
        """Whether any of them writes tests."""
        own = self.spec_tests or self.property_tests or self.adversarial_tests
        return own or bool(self.check_sources)


class Recipe(_Table):
    """What the policy may do; the docstring under each field is its documentation."""

    name: str = Field(min_length=1)
    """What it is called; its file's name."""
    summary: str = ""
    """One sentence for people."""
    opening: int = Field(default=1, ge=1)
    """Replies asked for in the first round; the first of them is greedy."""
    samples: int = Field(default=4, ge=1)
    """Replies asked for in each fresh start after that; `loop.samples` where the file does not say."""
    fresh: bool = True
    """Whether there are fresh starts at all; without them the one lineage is repaired until the end."""
    repair_opening: bool = False
    """Whether the first reply is repaired at once; else a second draw comes before the first repair."""
    repair_width: int = Field(default=2, ge=1)
    """Repairs of the same candidate asked for at once."""
    repair_rounds: int = Field(default=2, ge=0)
    """Repairs in one lineage before a fresh start; `loop.repair_rounds` where the file does not say."""
    repair_of: Literal["best", "last"] = "best"
    """Which candidate of a lineage is repaired."""
    strategies: tuple[Way, ...] = Field(default=("minimal", "restructure", "guard"), min_length=1)
    """How repairs go about it, in this order; parallel ones each take the next."""
    tournament: bool = False
    """Whether candidates that trusted checks cannot tell apart are compared on inputs where they differ."""
    second_opinions: int = Field(default=0, ge=0)
    """Further replies asked for, once, where a written program passes; a tournament prefers what most do."""
    max_rounds: int | None = Field(default=None, ge=1)
    """Rounds before the run gives up; the budget alone ends it where the file does not say."""
    attempt_limit: int | None = Field(default=None, ge=1)
    """Attempts after which the run stops, where that is fewer than the budget's."""
    warn_at: int | None = Field(default=None, ge=1)
    """Attempts after which the ledger warns that the limit is near."""
    patience: int | None = Field(default=None, ge=1)
    """Rounds in a row without a better candidate, after which the run is stuck."""
    detect_stuck: bool = True
    """Whether a run that goes in circles ends as `stuck`; a baseline spends its budget instead."""
    least_confidence: float = Field(default=0.0, ge=0, le=1)
    """A diagnosis with less confidence leads to a fresh start in place of a repair."""
    rejections: int = Field(default=2, ge=0)
    """How often a critic may send code back that passes every trusted check."""
    attacks: int = Field(default=2, ge=1)
    """How often the adversarial tester is asked."""
    lean: bool = False
    """Whether the coder is asked for what is missing only: the body under a given signature, one function."""
    agent: Literal["off", "alone", "last"] = "off"
    """Whether the model works on a copy with tools: `alone`, for repairs, or `last`, where these fail."""
    agent_turns: int = Field(default=2, ge=1)
    """How often it may, each time with what the tests said of its last change."""
    agent_steps: int = Field(default=30, ge=1, le=500)
    """Replies of the model in one such turn, each with one tool."""
    mutate: bool = False
    """Whether code that fails is first searched for a repair without a model."""
    temperature: float = Field(default=0.8, ge=0)
    """Of every reply that is not greedy; the coder's setting where the file does not say."""
    helpers: Helpers = Helpers()
    """The table `[helpers]`: which roles help the coder."""


def recipe_fields() -> dict[str, str]:
    """Every key of a recipe file and what it means, in the order of this file."""
    own = {name: field.description or "" for name, field in Recipe.model_fields.items() if name != "helpers"}
    helping = {f"helpers.{name}": field.description or "" for name, field in Helpers.model_fields.items()}
    return own | helping
