"""The context of a run: its specification, its record and its services. Nodes get it beside the state."""

from __future__ import annotations

from dataclasses import dataclass, field

from suture.agents.calling.call_context import CallContext
from suture.agents.prompting.prompt_files import PromptBook
from suture.core.ledger import Budget, Ledger, RunFolder
from suture.core.records import Candidate, Check, Task, Verdict, decode_record
from suture.core.settings import Settings
from suture.judge import Suite
from suture.loop.recipes.recipe_files import RecipeExtensions
from suture.loop.recipes.recipe_schema import Recipe
from suture.loop.run_spec import RunSpec
from suture.loop.services.candidate_store import CandidateStore
from suture.loop.services.safety_gate import SafetyGate
from suture.loop.services.search_prefetch import SearchPrefetch
from suture.loop.services.suite_provider import SuiteProvider, add_checks
from suture.loop.state import LoopState, RoleContributions
from suture.models import NO_MODEL, Role, RoleModels
from suture.project.languages import Interpreter
from suture.sandbox import Sandbox


@dataclass(frozen=True, kw_only=True, eq=False)
class RunContext:
    """Everything that the nodes of one run work with; `compose_context` builds it.

    Attributes:
        spec: What the user requested.
        recipe: Which moves and roles take part.
        interpreter: What `python` means in the test command; `None` if there is no such command.
        extensions: The extensions of installed packages that the recipe names.
        calls: Makes the paid model calls.
        suites: Prepares the suite that judges candidates.
        candidates: Stores candidates and verdicts.
        safety: Scans candidates before they run.
        prefetch: What was started ahead of a search.
    """

    spec: RunSpec
    folder: RunFolder
    ledger: Ledger
    budget: Budget
    sandbox: Sandbox
    recipe: Recipe
    interpreter: Interpreter | None
    extensions: RecipeExtensions
    calls: CallContext
    suites: SuiteProvider
    candidates: CandidateStore
    safety: SafetyGate
    prefetch: SearchPrefetch = field(default_factory=SearchPrefetch)

    @property
    def task(self) -> Task:
        """Return the task, including the test that a person has accepted, if any."""
        return self.suites.task

    @property
    def settings(self) -> Settings:
        """Return the settings of the run."""
        return self.spec.settings

    @property
    def models(self) -> RoleModels:
        """Return the model of each role."""
        return self.calls.models

    @property
    def trust_threshold(self) -> float:
        """Return the trust below which a check does not decide."""
        return self.settings.loop.trust_threshold

    @property
    def has_model(self) -> bool:
        """Return whether there is a model that writes code."""
        return self.models.for_role("coder").model.name != NO_MODEL


def compose_context(
    spec: RunSpec,
    folder: RunFolder,
    ledger: Ledger,
    budget: Budget,
    models: RoleModels,
    sandbox: Sandbox,
    recipe: Recipe,
    *,
    interpreter: Interpreter | None = None,
    prompts: PromptBook | None = None,
    extensions: RecipeExtensions | None = None,
) -> RunContext:
    """Build the services of a run, and return its context.

    Args:
        models: The model of each role; every reply is stored in the run folder.
        interpreter: What `python` means in the test command.
        prompts: The prompt files; by default those that ship with Suture.

    Raises:
        UsageError: The settings name a safety rule that does not exist.
    """

    # The suite asks the safety gate, and the gate reads the suite's packages: one of them must refer to a
    # variable that is set afterwards.
    def vet(candidate: Candidate) -> Verdict | None:
        return safety.vet(candidate)

    suites = SuiteProvider(spec.task, spec.settings, sandbox, interpreter, ledger, budget, vet)
    safety: SafetyGate = SafetyGate(spec.settings.safety, suites, folder, ledger)
    return RunContext(
        spec=spec,
        folder=folder,
        ledger=ledger,
        budget=budget,
        sandbox=sandbox,
        recipe=recipe,
        interpreter=interpreter,
        extensions=extensions or RecipeExtensions(),
        calls=CallContext(
            settings=spec.settings,
            folder=folder,
            ledger=ledger,
            budget=budget,
            models=models,
            prompts=prompts or PromptBook(),
            replayed_run=spec.replays,
            replayed_events=spec.followed_events,
        ),
        suites=suites,
        candidates=CandidateStore(folder, ledger),
        safety=safety,
    )


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
