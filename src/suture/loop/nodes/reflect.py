"""Reflect: let the roles contribute to the candidates of a round before the policy decides on the next."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from langgraph.runtime import Runtime

from suture.agents.roles.coder import RepairBrief
from suture.core.records import encode_record
from suture.judge import Suite
from suture.loop.briefing import add_failure_context, brief_for_repair
from suture.loop.context import RunContext, load_deciding_suite
from suture.loop.policy.attempts import Attempt, find_best
from suture.loop.policy.next_moves import decide, next_parent
from suture.loop.progress_summary import summarise_progress
from suture.loop.recipes.recipe_schema import RecipeHelpers
from suture.loop.roles.critique import criticise, diagnose, draw_lessons
from suture.loop.roles.extension_calls import collect_advice, try_fixers
from suture.loop.roles.generated_tests import (
    accepts_generated_tests,
    add_generated_checks,
    adopt_generated_tests,
    write_adversarial_tests,
)
from suture.loop.roles.polishing import simplify
from suture.loop.roles.project_tests import complete_project
from suture.loop.roles.rival_choice import rank_equal_candidates
from suture.loop.state import (
    LoopState,
    RoleContributions,
    judged_attempts,
    role_contributions,
    with_judged_attempts,
)
from suture.project.languages import LANGUAGES


async def reflect(state: LoopState, runtime: Runtime[RunContext]) -> dict[str, Any]:
    """Ask the roles that the recipe wants about the candidates of the round.

    Each role is asked about a candidate once. No role decides. But generated tests decide once they are
    trusted, and a critic may send passing code back a few times.
    """
    context = runtime.context
    helpers, has_tournament = context.recipe.helpers, context.recipe.tournament
    if context.task.project is not None:
        return await complete_project(state, context)
    has_read_examples = bool(role_contributions(state).generated)
    uses_roles = helpers != RecipeHelpers() or has_tournament or has_read_examples
    if not uses_roles or not LANGUAGES[context.task.language].parsed:
        return {}
    reflection = _Reflection(context=context, state=state, contributions=role_contributions(state))
    has_tests = helpers.writes_tests or bool(reflection.contributions.generated)
    if has_tests and accepts_generated_tests(context):
        await reflection.write_tests()
    if has_tournament:
        await reflection.rank_equals()
    await reflection.use_extensions()
    await reflection.criticise()
    await reflection.diagnose()
    await reflection.polish()
    if helpers.lessons:
        await reflection.draw_lessons()
    update: dict[str, Any] = {"contributions": encode_record(reflection.contributions)}
    if reflection.state["judged"] != state["judged"]:
        update["judged"] = reflection.state["judged"]
    if reflection.state["checks"] != state["checks"]:
        update["checks"] = reflection.state["checks"]
    return update


@dataclass
class _Reflection:
    """The work of the roles on one round, one after the other.

    Attributes:
        state: The state of the run. Its own contributions are those from before the round.
        contributions: The contributions of the roles so far.
    """

    context: RunContext
    state: LoopState
    contributions: RoleContributions

    async def write_tests(self) -> None:
        """Assess the generated tests; a candidate that fails none of them gets adversarial tests."""
        await self._adopt_tests()
        best = find_best(judged_attempts(self.state))
        attacks = sum(name.startswith("attack:") for name in self.contributions.done)
        recipe = self.context.recipe
        may_attack = recipe.helpers.adversarial_tests and attacks < recipe.attacks
        if may_attack and best is not None and not best.failed and self._begin("attack", best):
            self.contributions = await write_adversarial_tests(
                best, self.contributions, self.state, self.context
            )
            await self._adopt_tests()

    async def _adopt_tests(self) -> None:
        self.state, self.contributions = await adopt_generated_tests(
            self.state, self.contributions, self.context
        )

    async def rank_equals(self) -> None:
        """Rank the candidates that the deciding checks cannot distinguish."""
        self.state = await rank_equal_candidates(await self._load_suite(), self.state, self.context)

    async def use_extensions(self) -> None:
        """Let the extensions of packages repair the next candidate without a model, and comment on it."""
        extensions, attempt = self.context.extensions, self._next_failing()
        if not (extensions.fixers or extensions.advisers) or attempt is None:
            return
        if not self._begin("brought", attempt):  # what extensions contributed; checkpoints contain this name
            return
        suite, brief = await self._make_brief(attempt)
        self.state = await try_fixers(brief, attempt, suite, self.state, self.context)
        if self.continues:
            self._add_remarks(attempt, await collect_advice(brief, self.state, self.context))

    async def criticise(self) -> None:
        """Ask the critic about code that passes every deciding check, else about the next one to repair."""
        mode, attempt = self.context.recipe.helpers.critic, find_best(judged_attempts(self.state))
        if attempt is None or not attempt.solved:
            attempt = self._next_parent()
        if mode == "off" or attempt is None or (attempt.solved and attempt.origin == "user"):
            return
        if (mode == "gate" and not attempt.solved) or not self._begin("critic", attempt):
            return
        suite, brief = await self._make_brief(attempt)
        brief = await add_failure_context(brief, attempt, suite, "critic", self.context)
        critique, checks = await criticise(brief, attempt, suite, self.state, self.context)
        self.contributions = add_generated_checks(checks, self.contributions, self.context)
        if critique is None or critique.approved:
            return
        self._add_remarks(attempt, critique.issues)
        if attempt.solved:
            self._change_attempt(replace(attempt, sent_back=True))

    async def diagnose(self) -> None:
        """Ask the debugger why the next candidate to repair fails."""
        attempt = self._next_failing()
        if self.context.recipe.helpers.diagnose == "off" or attempt is None:
            return
        if not self._begin("debugger", attempt):
            return
        suite, brief = await self._make_brief(attempt)
        brief = await add_failure_context(brief, attempt, suite, "debugger", self.context)
        diagnosis = await diagnose(brief, attempt, suite, self.state, self.context)
        if diagnosis is not None:
            self._change_attempt(
                replace(attempt, confidence=diagnosis.confidence, advised_strategy=diagnosis.strategy)
            )
            self._add_remarks(attempt, (diagnosis.root_cause,))

    async def polish(self) -> None:
        """Simplify code that is about to be delivered, once."""
        helpers, best = self.context.recipe.helpers, find_best(judged_attempts(self.state))
        if not helpers.optimise or self.continues:
            return
        if best is None or not best.solved or best.origin == "user":
            return
        suite, brief = await self._make_brief(best)
        if self._begin("optimiser", best):
            self.state = await simplify(brief, best, suite, self.state, self.context)

    async def draw_lessons(self) -> None:
        """Draw lessons from the attempts so far, if the run continues."""
        if self.state["judged"] and self.continues:
            lessons = await draw_lessons(self.contributions, self.state, self.context)
            self.contributions = replace(self.contributions, lessons=lessons)

    @property
    def continues(self) -> bool:
        """Whether the policy would continue the run."""
        return decide(summarise_progress(self.state, self.context), self.context.recipe)[0].kind != "stop"

    def _next_parent(self) -> Attempt | None:
        return next_parent(summarise_progress(self.state, self.context), self.context.recipe)

    def _next_failing(self) -> Attempt | None:
        """Return the next candidate to repair, if it fails a check."""
        parent = self._next_parent()
        return parent if parent is not None and not parent.solved else None

    async def _load_suite(self) -> Suite:
        return await load_deciding_suite(self.contributions, self.context)

    async def _make_brief(self, attempt: Attempt) -> tuple[Suite, RepairBrief]:
        suite = await self._load_suite()
        return suite, brief_for_repair(attempt, self.state, self.context, suite)

    def _change_attempt(self, changed: Attempt) -> None:
        attempts = (
            changed if attempt.candidate == changed.candidate else attempt
            for attempt in judged_attempts(self.state)
        )
        self.state = with_judged_attempts(self.state, attempts)

    def _begin(self, work: str, attempt: Attempt) -> bool:
        """Note that some work is done for a candidate; return whether it was not done before."""
        name = f"{work}:{attempt.candidate}"
        if name in self.contributions.done:
            return False
        self.contributions = replace(self.contributions, done=(*self.contributions.done, name))
        return True

    def _add_remarks(self, attempt: Attempt, remarks: tuple[str, ...]) -> None:
        earlier = self.contributions.remarks.get(attempt.candidate, ())
        all_remarks = {**self.contributions.remarks, attempt.candidate: (*earlier, *remarks)}
        self.contributions = replace(self.contributions, remarks=all_remarks)
