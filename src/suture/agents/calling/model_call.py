"""Ask the model of a role, or the fallback models that the user named for it.

Each call is reserved in the budget before it is sent. Afterwards the ledger records its reply and real cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from suture.agents.calling.budgeted_call import (
    BudgetedCall,
    PriorDecision,
    find_prior_decision,
    refuse,
    reserve,
)
from suture.agents.calling.call_context import CallContext
from suture.agents.prompting.fitting import Prefill
from suture.agents.tuning import HELPER_SHARE_DIVISOR, MIN_REPLY_TOKENS
from suture.core.ledger import Reservation
from suture.core.ledger.kinds import ModelCalled, ModelFellBack
from suture.errors import (
    BudgetExceeded,
    MalformedReply,
    ModelError,
    ModelRequestRejected,
    PrerequisiteError,
    ReplyLost,
    UsageError,
)
from suture.models import (
    Message,
    Model,
    Price,
    Reply,
    Role,
    Sampling,
    ToolDeclaration,
    call_hash,
    find_profile,
    prompt_token_upper_bound,
)

CODE_WRITERS: frozenset[Role] = frozenset({"coder", "escalate", "optimiser"})
"""Roles that write the code itself. All other roles help them, and get only a share of the reply tokens."""
UNPAID_FAULTS = (ModelError, PrerequisiteError, UsageError)
"""Faults before a reply began. The two model errors that may have cost something are handled before these."""


@dataclass(frozen=True, kw_only=True)
class ModelQuestion:
    """A question to the model of a role.

    Attributes:
        prompt: The hash of the prompt file, for the ledger.
        sampling: How to sample. Its `max_tokens` is the limit of the role's setting.
        move: The kind of the move that the reply is for; empty if it does not bring a candidate. Only a
            question with a move is an attempt.
        helper: Who asks, if it is not the role itself: the spec tester, for example, uses the tester's model.
        is_retry: Whether this is a second question of the same attempt, whose reply may exceed the limit of
            the role's setting.
        prefill: The beginning of the reply, for models that support prefill.
        tools: Tools that the model may call, if it supports tool calls. The prompt describes them for others.
    """

    role: Role
    messages: Sequence[Message]
    prompt: str
    sampling: Sampling
    move: str = ""
    helper: str = ""
    is_retry: bool = False
    prefill: Prefill | None = None
    tools: tuple[ToolDeclaration, ...] = ()

    @property
    def asker(self) -> str:
        """Return who asks, as the ledger names it."""
        return self.helper or self.role


async def ask(question: ModelQuestion, calls: CallContext) -> Reply:
    """Return the reply of a role's model. If it fails and the user named fallbacks, these are asked in turn.

    Raises:
        BudgetExceeded: The call could exceed the budget; no model was asked.
        MalformedReply: The reply cannot be read; the attempt is spent.
        ModelError: The last model of the chain failed too.
        PrerequisiteError: No model can be asked at all.
    """
    chain = calls.models.for_role(question.role).chain
    for model, fallback in pairwise(chain):
        try:
            return await _ask_with_features(question, model, calls)
        except MalformedReply:
            raise
        except (ModelError, PrerequisiteError) as fault:
            calls.ledger.append(
                ModelFellBack(
                    role=question.asker,
                    from_=model.name,
                    to=fallback.name,
                    error_type=type(fault).__name__,
                    message=str(fault),
                )
            )
    return await _ask_with_features(question, chain[-1], calls)


async def _ask_with_features(question: ModelQuestion, model: Model, calls: CallContext) -> Reply:
    """Ask one model with prefill or tools where it supports them, and without them if it refuses that."""
    adapted, prefill = question, ""
    profile = find_profile(model.name, calls.settings)
    if question.tools and profile.tools:
        adapted = replace(question, sampling=replace(question.sampling, tools=question.tools), tools=())
    elif question.prefill is not None and profile.prefill:
        prefill = question.prefill.text
        if model.name.startswith("anthropic:"):
            # Anthropic refuses a prefill that ends in white space. Code continues on a new line without it.
            prefill = prefill.rstrip()
        messages = (*question.messages, Message(role="assistant", content=prefill))
        sampling = replace(question.sampling, stop=question.prefill.stop)
        adapted = replace(question, messages=messages, sampling=sampling, prefill=None)
    try:
        reply = await _ask_model(adapted, model, calls)
    except ModelRequestRejected:
        if adapted is question:
            raise
        return await _ask_model(question, model, calls)
    return replace(reply, text=prefill + reply.text, prefill=prefill)


async def _ask_model(question: ModelQuestion, model: Model, calls: CallContext) -> Reply:
    """Ask one model. Its maximum cost is reserved before, and its real cost is recorded after."""
    budget = calls.budget
    bound = prompt_token_upper_bound(question.messages)
    price = calls.models.price_for(model.name, bound)
    unlimited = replace(question.sampling, max_tokens=0)
    call = BudgetedCall(
        # Without the reply length, which is decided only afterwards.
        key=call_hash(model.name, question.messages, unlimited),
        description=f"{question.move or question.asker} {question.sampling.index}",
        role=question.asker,
        move=question.move,
        is_attempt=bool(question.move) and not question.is_retry,
    )
    prior = find_prior_decision(call, calls)
    is_paid = _has_reply_of_killed_process(question, model, prior, calls)
    reply_tokens = prior.max_reply_tokens if is_paid or prior.is_replayed else None
    if reply_tokens is None:
        if prior.refusal is None:
            _keep_tokens_for_the_coder(question, call, calls)
        reply_tokens = _max_reply_tokens(question, bound, price, calls)
    reservation = reserve(
        call,
        calls,
        prior,
        tokens=bound + reply_tokens,
        reply_tokens=reply_tokens,
        money=price.cost(bound, reply_tokens) if price else 0.0,
        is_paid=is_paid,
    )
    sampling = replace(question.sampling, max_tokens=reply_tokens)
    try:
        async with budget.time_limit():
            reply = await model.complete(question.messages, sampling)
    except MalformedReply as fault:
        budget.write_off(
            reservation, attempts=reservation.cost.attempts, model_calls=0 if fault.is_replayed else 1
        )
        raise
    except ReplyLost as fault:
        budget.write_off(reservation, model_calls=0 if fault.is_replayed else 1)
        raise
    except UNPAID_FAULTS:
        budget.release(reservation)
        raise
    except BaseException:
        # Cancelled in flight, or the reply could not be stored: the call may have cost all of it.
        budget.write_off(reservation)
        raise
    _record_call(question, reply, price, reservation, calls)
    return reply


def _has_reply_of_killed_process(
    question: ModelQuestion, model: Model, prior: PriorDecision, calls: CallContext
) -> bool:
    """Return whether an earlier process of this run has received the reply already."""
    if prior.max_reply_tokens is None or prior.is_replayed:
        return False
    sampling = replace(question.sampling, max_tokens=prior.max_reply_tokens)
    call = call_hash(model.name, question.messages, sampling)
    return (calls.folder.replies_path / f"{call}.json").is_file()


def affordable_reply_tokens(question: ModelQuestion, calls: CallContext) -> int:
    """Return the maximum length of a reply of the role's model that the budget allows now, in tokens."""
    bound = prompt_token_upper_bound(question.messages)
    price = calls.models.price_for(calls.models.for_role(question.role).model.name, bound)
    return _max_reply_tokens(question, bound, price, calls)


def _keep_tokens_for_the_coder(question: ModelQuestion, call: BudgetedCall, calls: CallContext) -> None:
    """Refuse a question of a helper where its share of the remaining reply tokens is too small."""
    remaining, limit = calls.budget.remaining_completion_tokens(), calls.budget.limits.completion_tokens
    if remaining is None or limit is None or question.role in CODE_WRITERS:
        return
    if remaining // HELPER_SHARE_DIVISOR < MIN_REPLY_TOKENS:
        refuse(call, BudgetExceeded("completion_tokens", limit - remaining, limit), calls)


def _max_reply_tokens(question: ModelQuestion, bound: int, price: Price | None, calls: CallContext) -> int:
    """Return the reply length in tokens that the role's setting and the remaining budget allow.

    The budget does not lower it below `MIN_REPLY_TOKENS`; where that is too much, the reservation fails.
    """
    limit = question.sampling.max_tokens
    if not question.is_retry:
        limit = min(limit, calls.models.for_role(question.role).max_tokens)
    tokens, money = calls.budget.remaining_tokens(), calls.budget.remaining_money()
    if tokens is not None:
        limit = min(limit, max(tokens - bound, MIN_REPLY_TOKENS))
    reply_tokens = calls.budget.remaining_completion_tokens()
    if reply_tokens is not None:
        share = reply_tokens if question.role in CODE_WRITERS else reply_tokens // HELPER_SHARE_DIVISOR
        limit = min(limit, max(share, MIN_REPLY_TOKENS))
    affordable = price.affordable_tokens(money, bound) if price and money is not None else None
    return limit if affordable is None else min(limit, max(affordable, MIN_REPLY_TOKENS))


def _record_call(
    question: ModelQuestion, reply: Reply, price: Price | None, reservation: Reservation, calls: CallContext
) -> None:
    money = price.cost(reply.prompt_tokens, reply.completion_tokens) if price else None
    calls.ledger.append(
        ModelCalled(
            role=question.asker,
            move=question.move,
            index=question.sampling.index,
            call=reply.call_hash,
            model=reply.model,
            prompt=question.prompt,
            prompt_tokens=reply.prompt_tokens,
            completion_tokens=reply.completion_tokens,
            token_count_source=reply.counted_by,
            money=money,
            finish_reason=reply.finish,
            seconds=round(reply.seconds, 3),
            retries=reply.retries,
            replayed=reply.replayed,
            from_run=reply.from_run,
            prefilled=question.messages[-1].role == "assistant",
        )
    )
    is_from_this_run = reply.replayed and not reply.from_run
    if is_from_this_run:
        calls.budget.settle(reservation)  # This run paid for the reply in an earlier process.
        return
    calls.budget.settle(
        reservation,
        prompt_tokens=reply.prompt_tokens,
        completion_tokens=reply.completion_tokens,
        model_calls=0 if reply.replayed else 1,
        money=money or 0.0,
        unpriced_calls=0 if reply.replayed or money is not None else 1,
    )
