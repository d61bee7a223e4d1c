"""Asking a role that helps the coder: within the budget, a bounded number of times, never in the run's way.

A helper that fails is degraded: the ledger says so, the result lists it, and the run goes on without what it
would have said. Nothing is made up in its place. One that was degraded twice is not asked again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from pydantic import BaseModel

from suture.agents import Draft, Prompt, fit
from suture.agents.calling.coder_call import fitted_reply, room_tokens
from suture.agents.calling.model_call import Question, ask
from suture.core.ledger import select_events
from suture.core.ledger.kinds import RoleDegraded
from suture.errors import BudgetExceeded, MalformedReply, ModelAuthError, ModelError
from suture.loop.context import RunContext
from suture.models import Message, Reply, Role, Sampling, count_tokens
from suture.models.structured_output import ask as ask_structured

SEATS: Mapping[str, Role] = {
    "planner": "planner",
    "spec_tester": "tester",
    "property_tester": "tester",
    "adversarial_tester": "tester",
    "critic": "critic",
    "reviewer": "reviewer",
    "debugger": "debugger",
    "diagnose": "debugger",
    "summariser": "summariser",
    "optimiser": "optimiser",
    "subtask_coder": "coder",
    "reproducer": "coder",
    "project_tester": "tester",
}
"""Whose model each helper speaks with; its name is that of its prompt file too."""
MOST_FAILURES = 2
"""After so many a helper is not asked again in its run."""
TRIES = 2
"""How often one question is put where the reply cannot be used."""

ReplyT = TypeVar("ReplyT", bound=BaseModel)
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Consultation:
    """One helper in one round.

    Attributes:
        helper: Who: one of `SEATS`, or an adviser of an installed package.
        context: The run.
        round: The round, or what else tells equal questions apart: with each number they are drawn anew.
        temperature: Of its replies; 0 is greedy.
        speaks_as: Whose model it speaks with, where that is not the one of `SEATS`.
    """

    helper: str
    context: RunContext
    round: int
    temperature: float = 0.0
    speaks_as: Role | None = None

    @property
    def role(self) -> Role:
        """Whose model it speaks with."""
        return self.speaks_as or SEATS[self.helper]

    @property
    def prompt(self) -> Prompt:
        """Its prompt file."""
        return self.context.prompts.load(self.helper)

    async def or_none(self, work: Callable[[Consultation], Awaitable[T]]) -> T | None:
        """What the work brings; `None` where the helper is degraded, now or before.

        Raises:
            ModelAuthError: The provider refused the key.
            SandboxError: A wall failed.
        """
        if is_given_up(self.helper, self.context):
            return None
        try:
            return await work(self)
        except (ModelAuthError, asyncio.CancelledError):
            raise
        except (ModelError, BudgetExceeded) as fault:
            degrade(self.helper, self.round, fault, self.context)
            return None

    async def read_or_none(
        self, draft_of: Callable[[Prompt], Draft], reader: Callable[[Reply], T]
    ) -> T | None:
        """What is read from a reply to its prompt; raises as `or_none`."""
        return await self.or_none(lambda asked: asked.read(draft_of(asked.prompt), reader))

    async def typed_or_none(self, draft_of: Callable[[Prompt], Draft], type_: type[ReplyT]) -> ReplyT | None:
        """A reply of a type to its prompt; raises as `or_none`."""
        return await self.or_none(lambda asked: asked.typed(draft_of(asked.prompt), type_))

    async def reply(self, draft: Draft) -> Reply:
        """A reply in words."""
        return (await fitted_reply(draft, self._question(0), self.context))[1]

    async def read(self, draft: Draft, reader: Callable[[Reply], T]) -> T:
        """What is read from a reply in words; asked for again, warmer, where it cannot be read.

        Raises:
            MalformedReply: No reply could be read.
        """
        for attempt in range(TRIES):
            _, reply = await fitted_reply(draft, self._question(attempt), self.context)
            try:
                return reader(reply)
            except MalformedReply:
                if attempt == TRIES - 1:
                    raise
        raise AssertionError("unreachable")

    async def typed(self, draft: Draft, type_: type[ReplyT]) -> ReplyT:
        """A reply of a type.

        Raises:
            MalformedReply: No reply could be used.
        """
        seat = self.context.models.for_role(self.role)
        room = room_tokens(seat, self.context.settings.model.context_tokens)
        fitted = await fit(draft, room, partial(count_tokens, seat.model))
        question = self._question(0)

        async def complete(messages: Sequence[Message], sampling: Sampling) -> Reply:
            return await ask(replace(question, messages=messages, sampling=sampling), self.context)

        answer = await ask_structured(complete, fitted.messages, type_, question.sampling, tries=TRIES)
        return answer.value

    def _question(self, attempt: int) -> Question:
        seat = self.context.models.for_role(self.role)
        sampling = Sampling(
            temperature=self.temperature if attempt == 0 else seat.temperature,
            max_tokens=seat.max_tokens,
            index=self.round * TRIES + attempt,
            logprobs=self.role == "tester" and all(model.name.startswith("local:") for model in seat.chain),
        )
        return Question(
            role=self.role,
            messages=(),
            prompt=self.prompt.hash,
            sampling=sampling,
            helper=self.helper,
        )


def degrade(helper: str, number: int, fault: Exception, context: RunContext) -> None:
    """Write down that somebody who helps has failed; the result names them.

    Args:
        helper: Who: a helper's name, or that of something that an installed package brings.
        number: The round.
        fault: What happened.
        context: The run.
    """
    degraded = RoleDegraded(
        role=helper,
        act=f"{helper} {number}",
        kind=type(fault).__name__,
        message=ascii(str(fault))[1:-1],
    )
    context.ledger.append(degraded)


def is_given_up(helper: str, context: RunContext) -> bool:
    """Whether somebody has failed too often to be asked again."""
    return degraded_helpers(context).count(helper) >= MOST_FAILURES


def degraded_helpers(context: RunContext) -> tuple[str, ...]:
    """Who failed in this run, in the order of their failures, once for each failure.

    A node that is done again after a kill asks again; what failed there before has not failed twice.
    """
    failures = select_events(context.ledger.events, RoleDegraded)
    once = {failure.act or event.seq: failure.role for event, failure in failures}
    return tuple(once.values())
