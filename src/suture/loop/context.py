"""The context of a run: its specification, its record and its services. Nodes get it together with the state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from suture.agents.calling.budgeted_call import CallContext
from suture.agents.prompting.prompt_files import PromptBook
from suture.core.ledger import Budget, Ledger, RunFolder
from suture.core.records import Check, Task, decode_record
from suture.core.settings import Settings
from suture.judge import Suite
from suture.judge.mutation_testing.mutant_runs import MutationResult
from suture.loop.recipes.recipe_files import RecipeExtensions
from suture.loop.recipes.recipe_schema import Recipe
from suture.loop.run_spec import RunSpec
from suture.loop.services.candidate_store import CandidateStore
from suture.loop.services.safety_gate import SafetyGate
from suture.loop.services.suite_provider import SearchPrefetch, SuiteProvider, add_checks
from suture.loop.state import LoopState, RoleContributions
from suture.models import NO_MODEL, Role, RoleModels
from suture.models.profiles import find_profile
from suture.project.languages import Interpreter
from suture.sandbox import Sandbox


@dataclass(frozen=True, kw_only=True, eq=False)
class RunContext:
    """Everything that the nodes of one run work with.

    Attributes:
        spec: What the user requested.
        models: The model of each role; every reply is stored in the run folder.
        recipe: Which moves and roles take part.
        interpreter: What `python` means in the test command; `None` if there is no such command.
        prompts: The prompt files; by default those that ship with Suture.
        extensions: The extensions of installed packages that the recipe names.
        prefetch: What was started ahead of a search.
        mutation_results: Hash of a candidate -> its complete mutation result.
        record_substitution: Writes an event if a sandbox other than the preferred one was used before the run's first
            event.
    """

    spec: RunSpec
    folder: RunFolder
    ledger: Ledger
    budget: Budget
    models: RoleModels
    sandbox: Sandbox
    recipe: Recipe
    interpreter: Interpreter | None = None
    prompts: PromptBook = field(default_factory=PromptBook)
    extensions: RecipeExtensions = field(default_factory=RecipeExtensions)
    prefetch: SearchPrefetch = field(default_factory=SearchPrefetch)
    mutation_results: dict[str, MutationResult] = field(default_factory=dict)
    record_substitution: Callable[[], None] = lambda: None

    @cached_property
    def suites(self) -> SuiteProvider:
        """Prepares the suite that judges candidates."""
        return SuiteProvider(
            user_task=self.spec.task,
            settings=self.settings,
            sandbox=self.sandbox,
            interpreter=self.interpreter,
            ledger=self.ledger,
            budget=self.budget,
            vet=lambda candidate: self.safety.vet(candidate),
        )

    @cached_property
    def safety(self) -> SafetyGate:
        """Scans candidates before they run."""
        return SafetyGate(self.settings.safety, self.suites, self.folder, self.ledger)

    @cached_property
    def candidates(self) -> CandidateStore:
        """Stores candidates and verdicts."""
        return CandidateStore(self.folder, self.ledger)

    @cached_property
    def calls(self) -> CallContext:
        """Makes the paid model calls."""
        return CallContext(
            settings=self.settings,
            folder=self.folder,
            ledger=self.ledger,
            budget=self.budget,
            models=self.models,
            prompts=self.prompts,
            replayed_run=self.spec.replays,
            replayed_events=self.spec.budget_events,
        )

    @property
    def task(self) -> Task:
        """Return the task, including the test that a person has accepted, if any."""
        return self.suites.task

    @property
    def settings(self) -> Settings:
        """Return the settings of the run."""
        return self.spec.settings

    @property
    def trust_threshold(self) -> float:
        """Return the trust below which a check does not decide."""
        return self.settings.loop.trust_threshold

    @property
    def has_model(self) -> bool:
        """Return whether there is a model that writes code."""
        return self.models.for_role("coder").model.name != NO_MODEL

    @property
    def has_capable_model(self) -> bool:
        """Return whether the model that writes code holds a conversation over a whole project (see its profile)."""
        name = self.models.for_role("coder").model.name
        return self.has_model and find_profile(name, self.settings).is_capable


def coder_role(state: LoopState, context: RunContext) -> Role:
    """Return the role that writes the code now: the coder, or the stronger model once a run has escalated.

    A fork of an escalated run may have no stronger model any more.
    """
    return "escalate" if state.get("escalated") and context.models.escalation else "coder"


async def load_deciding_suite(contributions: RoleContributions, context: RunContext) -> Suite:
    """Return the suite that judges candidates now, with the generated tests that have earned trust."""
    return add_checks(await context.suites.load(), load_checks(contributions.deciding, context.folder))


def load_checks(blob: str, folder: RunFolder) -> tuple[Check, ...]:
    """Return the checks that a blob of the run folder holds; none for an empty hash."""
    if not blob:
        return ()
    return tuple(decode_record(Check, encoded) for encoded in folder.load_json(blob)["checks"])
