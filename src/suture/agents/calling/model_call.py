"""One paid call of a role's model: reserved before, written down after, stepped down where that is wanted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from suture.agents.calling.budgeted_call import BudgetedCall, PriorDecision, prior_decision, refuse, reserve
from suture.agents.prompting.fitting import Beginning
from suture.core.ledger import Reservation
from suture.core.ledger.kinds import ModelCalled, ModelSteppedDown
from suture.errors import (
    BudgetExceeded,
    MalformedReply,
    ModelError,
    PrerequisiteError,
    ReplyLost,
    RequestRefused,
    UsageError,
)
from suture.loop.context import RunContext
from suture.models import (
    Message,
    Model,
    Price,
    Reply,
    Role,
    Sampling,
    Tool,
    count_upper_bound,
    may_begin,
    may_call_tools,
)
from suture.models.reply_recordings import call_hash

LEAST_REPLY_TOKENS = 64
"""A reply that may be no longer than this is not worth asking for."""
WRITERS: frozenset[Role] = frozenset({"coder", "escalate", "optimiser"})
"""Who writes the code itself."""
HELPERS_PART = 4
"""Others get one part in so many of what is left for replies: a small model may ramble to the very end.
Where that part is not worth asking for, they are not asked."""
NOTHING_WAS_PAID = (ModelError, PrerequisiteError, UsageError)
"""Refusals, where no reply was begun. The two model errors that may have cost something are caught before."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """What a role asks for.

    Attributes:
        role: Whose model is asked.
        messages: The prompt.
        prompt: The hash of the prompt's file, for the ledger.
        sampling: How to draw; its `max_tokens` is what the role's setting allows at most.
        again: Whether a reply that was cut is drawn anew: that is no further attempt, and may be longer.
        move: The kind of move that it belongs to; empty where it brings no candidate, and so is no attempt.
        helper: Who asks, where that is not the role itself, such as the spec tester with the tester's model.
        beginning: Of the reply, for models that go on from one.
        tools: What it may call, for models that call tools; the prompt says it for all others.
    """

    role: Role
    messages: Sequence[Message]
    prompt: str
    sampling: Sampling
    move: str = ""
    helper: str = ""
    again: bool = False
    beginning: Beginning | None = None
    tools: tuple[Tool, ...] = ()

    @property
    def asker(self) -> str:
        """Who asks, for the ledger."""
        return self.helper or self.role


async def ask(question: Question, context: RunContext) -> Reply:
    """Ask the role's model; where it fails and the user named others, those in turn.

    Raises:
        BudgetExceeded: The call could exceed the budget; nobody was asked.
        MalformedReply: The reply cannot be read; the attempt is spent.
        ModelError: The last of the chain failed too.
        PrerequisiteError: It cannot be asked at all.
    """
    chain = context.models.for_role(question.role).chain
    for model, substitute in pairwise(chain):
        try:
            return await _ask_begun(question, model, context)
        except MalformedReply:
            raise
        except (ModelError, PrerequisiteError) as fault:
            stepped_down = ModelSteppedDown(
                role=question.asker,
                from_=model.name,
                to=substitute.name,
                kind=type(fault).__name__,
                message=str(fault),
            )
            context.ledger.append(stepped_down)
    return await _ask_begun(question, chain[-1], context)


async def _ask_begun(question: Question, model: Model, context: RunContext) -> Reply:
    """Ask one model in its own way: with a beginning, or with tools. Without, where it refuses that."""
    put = _as_put(question, model, context)
    try:
        reply = await _ask(put, model, context)
    except RequestRefused:
        if put is question:
            raise
        return await _ask(question, model, context)
    text = put.messages[-1].content if len(put.messages) > len(question.messages) else ""
    return replace(reply, text=text + reply.text, begun=text)


async def _ask(question: Question, model: Model, context: RunContext) -> Reply:
    """Ask one model: its cost is reserved first, and what it really cost is written down after."""
    budget = context.budget
    bound = count_upper_bound(question.messages)
    price = context.models.price_of(model.name, bound)
    act = _act(question, model)
    before = prior_decision(act, context)
    kept = _kept_reply(question, model, before, context)
    most = before.most if kept or before.followed else None
    if most is None:
        if before.refused is None:
            _leave_the_coder_its_turn(question, act, context)
        most = _longest_reply(question, bound, price, context)
    reservation = reserve(
        act,
        context,
        before,
        tokens=bound + most,
        most=most,
        money=price.cost(bound, most) if price else 0.0,
        paid=kept,
    )
    sampling = replace(question.sampling, max_tokens=most)
    try:
        async with budget.time_limit():
            reply = await model.complete(question.messages, sampling)
    except MalformedReply as fault:
        budget.write_off(reservation, attempts=reservation.attempts, model_calls=0 if fault.replayed else 1)
        raise
    except ReplyLost as fault:
        budget.write_off(reservation, model_calls=0 if fault.replayed else 1)
        raise
    except NOTHING_WAS_PAID:
        budget.release(reservation)
        raise
    except BaseException:
        budget.write_off(reservation)  # stopped in flight, or what came cannot be kept: it may cost all of it
        raise
    _write_down(question, reply, price, reservation, context)
    return reply


def _as_put(question: Question, model: Model, context: RunContext) -> Question:
    """The question as this model is asked it: told of tools where it calls them, begun where it goes on."""
    if question.tools and may_call_tools(model.name, context.settings):
        return replace(question, sampling=replace(question.sampling, tools=question.tools), tools=())
    beginning = question.beginning
    if beginning is None or not may_begin(model.name, context.settings):
        return question
    # Anthropic refuses a beginning that ends in white space; code goes on in a line of its own without it.
    text = beginning.text.rstrip() if model.name.startswith("anthropic:") else beginning.text
    messages = (*question.messages, Message(role="assistant", content=text))
    return replace(
        question, messages=messages, sampling=replace(question.sampling, stop=beginning.stop), beginning=None
    )


def _act(question: Question, model: Model) -> BudgetedCall:
    """Named by all that is asked of whom, but for the length of the reply: that depends on the budget."""
    unlimited = replace(question.sampling, max_tokens=0)
    return BudgetedCall(
        name=call_hash(model.name, question.messages, unlimited),
        what=f"{question.move or question.asker} {question.sampling.index}",
        role=question.asker,
        move=question.move,
        attempt=bool(question.move) and not question.again,
    )


def _kept_reply(question: Question, model: Model, before: PriorDecision, context: RunContext) -> bool:
    """Whether a process of this run that was killed since has received the reply."""
    if before.most is None or before.followed:
        return False
    call = call_hash(model.name, question.messages, replace(question.sampling, max_tokens=before.most))
    return (context.folder.replies_path / f"{call}.json").is_file()


def affordable_reply(question: Question, context: RunContext) -> int:
    """The most tokens that a reply of the role's model could have now."""
    bound = count_upper_bound(question.messages)
    price = context.models.price_of(context.models.for_role(question.role).model.name, bound)
    return _longest_reply(question, bound, price, context)


def _leave_the_coder_its_turn(question: Question, act: BudgetedCall, context: RunContext) -> None:
    left, limit = context.budget.remaining_completion_tokens(), context.budget.limits.completion_tokens
    if left is None or limit is None or question.role in WRITERS:
        return
    if left // HELPERS_PART < LEAST_REPLY_TOKENS:
        refuse(act, BudgetExceeded("completion_tokens", limit - left, limit), context)


def _longest_reply(question: Question, bound: int, price: Price | None, context: RunContext) -> int:
    """The most tokens of the reply that the role's setting, and what is left of the budget, allow."""
    most = question.sampling.max_tokens
    if not question.again:
        most = min(most, context.models.for_role(question.role).max_tokens)
    tokens, money = context.budget.remaining_tokens(), context.budget.remaining_money()
    if tokens is not None:
        most = min(most, max(tokens - bound, LEAST_REPLY_TOKENS))
    replies = context.budget.remaining_completion_tokens()
    if replies is not None:
        share = replies if question.role in WRITERS else replies // HELPERS_PART
        most = min(most, max(share, LEAST_REPLY_TOKENS))
    affordable = price.affordable_tokens(money, bound) if price and money is not None else None
    return most if affordable is None else min(most, max(affordable, LEAST_REPLY_TOKENS))


def _write_down(
    question: Question, reply: Reply, price: Price | None, reservation: Reservation, context: RunContext
) -> None:
    money = price.cost(reply.prompt_tokens, reply.completion_tokens) if price else None
    called = ModelCalled(
        role=question.asker,
        move=question.move,
        index=question.sampling.index,
        call=reply.call_hash,
        model=reply.model,
        prompt=question.prompt,
        prompt_tokens=reply.prompt_tokens,
        completion_tokens=reply.completion_tokens,
        counted=reply.counted,
        money=money,
        finish=reply.finish,
        seconds=round(reply.seconds, 3),
        retries=reply.retries,
        replayed=reply.replayed,
        from_run=reply.from_run,
        begun=question.messages[-1].role == "assistant",
    )
    context.ledger.append(called)
    if reply.replayed and not reply.from_run:
        context.budget.settle(reservation)  # this run has paid for it before
        return
    context.budget.settle(
        reservation,
        prompt_tokens=reply.prompt_tokens,
        completion_tokens=reply.completion_tokens,
        model_calls=0 if reply.replayed else 1,
        money=money or 0.0,
        unpriced_calls=0 if reply.replayed or money is not None else 1,
    )
