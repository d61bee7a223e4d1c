"""Ask a helper: a role other than the coder, whose failure must not stop the run.

A helper that fails is degraded: the ledger records it, the result lists it, and the run continues without its
contribution. A helper that failed `MAX_ROLE_FAILURES` times is suspended for the rest of the run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from pydantic import BaseModel

from suture.agents.calling.budgeted_call import CallContext
from suture.agents.calling.coder_call import ask_fitted, prompt_room_tokens
from suture.agents.calling.model_call import ModelQuestion, ask
from suture.agents.prompting.fitting import PromptDraft, fit_prompt
from suture.agents.prompting.prompt_files import Prompt
from suture.agents.tuning import MAX_ROLE_CALLS, MAX_ROLE_FAILURES
from suture.core.ledger import Event, Ledger, select_events
from suture.core.ledger.kinds import RoleDegraded
from suture.errors import BudgetExceeded, MalformedReply, ModelAuthError, ModelError
from suture.models import Message, Reply, Role, Sampling, count_tokens
from suture.models.structured_output import ask_structured

MODEL_ROLES: Mapping[str, Role] = {
    "planner": "planner",
    "spec_tester": "tester",
    "property_tester": "tester",
    "adversarial_tester": "tester",
    "example_reader": "coder",
    "critic": "critic",
    "debugger": "debugger",
    "diagnose": "debugger",
    "summariser": "summariser",
    "optimiser": "optimiser",
    "subtask_coder": "coder",
    "repair_chooser": "coder",
    "reproducer": "coder",
    "project_tester": "tester",
}
"""Name of the helper, which is also that of its prompt file -> the role whose model it uses."""

ReplyT = TypeVar("ReplyT", bound=BaseModel)
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class RoleCall:
    """The calls of one helper in one round.

    Attributes:
        helper: The helper: a key of `MODEL_ROLES`, or an adviser of an installed package.
        round: The round, or another number that distinguishes equal questions.
        temperature: Sampling temperature of the first try; 0 is greedy.
        model_role: The role whose model it uses, if not that of `MODEL_ROLES`.
    """

    helper: str
    calls: CallContext
    round: int
    temperature: float = 0.0
    model_role: Role | None = None

    @property
    def role(self) -> Role:
        """Return the role whose model the helper uses."""
        return self.model_role or MODEL_ROLES[self.helper]

    @property
    def prompt(self) -> Prompt:
        """Return the helper's prompt file."""
        return self.calls.prompts.load(self.helper)

    async def run_or_degrade(self, work: Callable[[RoleCall], Awaitable[T]]) -> T | None:
        """Return the result of `work`; `None` if the helper is suspended or fails now.

        Raises:
            ModelAuthError: The provider refused the key.
            SandboxError: The sandbox failed.
        """
        if is_suspended(self.helper, self.calls.ledger.events):
            return None
        try:
            return await work(self)
        except (ModelAuthError, asyncio.CancelledError):
            raise
        except (ModelError, BudgetExceeded) as fault:
            record_degradation(self.helper, self.round, fault, self.calls.ledger)
            return None

    async def parse_or_degrade(
        self, make_draft: Callable[[Prompt], PromptDraft], parse: Callable[[Reply], T]
    ) -> T | None:
        """Return the parsed reply to the helper's prompt, or `None`, as `run_or_degrade` does."""
        return await self.run_or_degrade(lambda call: call.ask_and_parse(make_draft(call.prompt), parse))

    async def ask_typed_or_degrade(
        self, make_draft: Callable[[Prompt], PromptDraft], type_: type[ReplyT]
    ) -> ReplyT | None:
        """Return a reply of type `type_` to the helper's prompt, or `None`, as `run_or_degrade` does."""
        return await self.run_or_degrade(lambda call: call.ask_typed(make_draft(call.prompt), type_))

    async def ask_text(self, draft: PromptDraft) -> Reply:
        """Return a reply in plain text."""
        return (await ask_fitted(draft, self._question(0), self.calls))[1]

    async def ask_and_parse(self, draft: PromptDraft, parse: Callable[[Reply], T]) -> T:
        """Return the parsed reply. One that cannot be parsed is asked for again, at the role's own temperature."""
        for attempt in range(MAX_ROLE_CALLS):
            _, reply = await ask_fitted(draft, self._question(attempt), self.calls)
            try:
                return parse(reply)
            except MalformedReply:
                if attempt == MAX_ROLE_CALLS - 1:
                    raise
        raise AssertionError("unreachable")

    async def ask_typed(self, draft: PromptDraft, type_: type[ReplyT]) -> ReplyT:
        """Return a reply of type `type_`."""
        role_model = self.calls.models.for_role(self.role)
        room_tokens = prompt_room_tokens(role_model, self.calls.settings)
        fitted = await fit_prompt(draft, room_tokens, partial(count_tokens, role_model.model))
        question = self._question(0)

        async def complete(messages: Sequence[Message], sampling: Sampling) -> Reply:
            return await ask(replace(question, messages=messages, sampling=sampling), self.calls)

        return await ask_structured(complete, fitted.messages, type_, question.sampling, tries=MAX_ROLE_CALLS)

    def _question(self, attempt: int) -> ModelQuestion:
        role_model = self.calls.models.for_role(self.role)
        sampling = Sampling(
            temperature=self.temperature if attempt == 0 else role_model.temperature,
            max_tokens=role_model.max_tokens,
            index=self.round * MAX_ROLE_CALLS + attempt,
            # They weigh the tests that a tester wrote. Only local models are asked for them, by judgement.
            logprobs=self.role == "tester"
            and all(model.name.startswith("local:") for model in role_model.chain),
        )
        return ModelQuestion(
            role=self.role, messages=(), prompt=self.prompt.hash, sampling=sampling, helper=self.helper
        )


def record_degradation(helper: str, round_: int, fault: Exception, ledger: Ledger) -> None:
    """Record that a helper, or an extension of an installed package, failed. The run's result names it."""
    ledger.append(
        RoleDegraded(
            role=helper,
            act=f"{helper} {round_}",
            error_type=type(fault).__name__,
            message=ascii(str(fault))[1:-1],  # without the quotes that `ascii` adds
        )
    )


def is_suspended(helper: str, events: Sequence[Event]) -> bool:
    """Return whether a helper has failed too often to be asked again."""
    return list_degraded_roles(events).count(helper) >= MAX_ROLE_FAILURES


def list_degraded_roles(events: Sequence[Event]) -> tuple[str, ...]:
    """Return the helpers that failed in this run, once for each failure, in the order of the failures.

    A node that runs again after a kill asks again. A failure that repeats there counts once.
    """
    failures = select_events(events, RoleDegraded)
    by_act = {failure.act or event.seq: failure.role for event, failure in failures}
    return tuple(by_act.values())
