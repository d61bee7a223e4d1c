"""Ask the model of a role, or the fallback models that the user named for it.

Each call is reserved in the budget before it is sent. Afterwards the ledger records its reply and real cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from suture.agents.calling.budgeted_call import (
    BudgetedCall,
    CallContext,
    PriorDecision,
    find_prior_decision,
    refuse,
    reserve,
)
from suture.agents.prompting.fitting import Prefill
from suture.agents.tuning import (
    HELPER_SHARE_DIVISOR,
    MIN_REPLY_TOKENS,
    MIN_RETRY_GAIN,
    SMALL_REPLY_TOKENS,
    THINKING_RETRY_FACTOR,
)
from suture.core.ledger import Reservation, last_payload, select_events
from suture.core.ledger.kinds import (
    ModelCalled,
    ModelFellBack,
    ModelParameterRefused,
    MovesDecided,
    ReplyTruncated,
)
from suture.errors import (
    BudgetExceeded,
    MalformedReply,
    MissingAnswer,
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
)
from suture.models.chat_model import require_answer
from suture.models.token_counting import estimate_request_tokens, request_bytes
from suture.models.tuning import MAX_LEARNING_CALLS, MIN_LEARNING_BYTES

CODE_WRITERS: frozenset[Role] = frozenset({"coder", "escalate", "optimiser"})
"""Roles that write the code itself. All other roles help them, and get only a share of the reply tokens."""
UNPAID_FAULTS = (ModelError, PrerequisiteError, UsageError)
"""Faults that occur before a reply begins. The two model errors that may have cost something are handled before
these."""


@dataclass(frozen=True, kw_only=True)
class ModelQuestion:
    """A question to the model of a role.

    Attributes:
        prompt: The hash of the prompt file, for the ledger.
        sampling: How to sample. Its `max_tokens` is the limit of the answer by the role's setting.
        move: The kind of the move that the reply is for; empty if it does not produce a candidate. Only a
            question with a move is an attempt.
        helper: Who asks, if it is not the role itself: the spec tester, for example, uses the tester's model.
        is_retry: Whether this is a second question of the same attempt, whose reply may exceed the limit of
            the role's setting.
        reply_limit: Token limit of the whole reply, thinking included; `None` derives it from `sampling` and the
            model's profile.
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
    reply_limit: int | None = None
    prefill: Prefill | None = None
    tools: tuple[ToolDeclaration, ...] = ()

    @property
    def asker(self) -> str:
        """Return who asks, as the ledger names it."""
        return self.helper or self.role


async def ask(question: ModelQuestion, calls: CallContext) -> Reply:
    """Return the reply of a role's model. If it fails and the user named fallbacks, these are tried in turn.

    Raises:
        BudgetExceeded: The call could exceed the budget; no model was asked.
        MissingAnswer: The reply has no answer: a refusal, a content filter, or nothing but thinking.
        MalformedReply: The reply cannot be read; the attempt is spent.
        ModelError: The last model of the chain failed too.
        PrerequisiteError: No model can be asked at all.
    """
    chain = calls.models.for_role(question.role).chain
    for model, fallback in pairwise(chain):
        try:
            return await _ask_with_features(question, model, calls)
        except (ModelError, PrerequisiteError) as fault:
            if isinstance(fault, MalformedReply) and not isinstance(fault, MissingAnswer):
                raise
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
        adapted, prefill = question, ""
        reply = await _ask_model(adapted, model, calls)
    if reply.finish == "thinking":
        reply = await _ask_beyond_thinking(adapted, reply, model, calls)
    require_answer(reply, model.name)
    return replace(reply, text=prefill + reply.text, prefill=prefill)


async def _ask_beyond_thinking(
    question: ModelQuestion, previous: Reply, model: Model, calls: CallContext
) -> Reply:
    """Ask again with a much higher limit after a reply that was spent on thinking; else return that reply."""
    profile = find_profile(model.name, calls.settings)
    room_tokens = THINKING_RETRY_FACTOR * previous.completion_tokens
    if profile.max_reply_tokens is not None:
        room_tokens = min(room_tokens, profile.max_reply_tokens)
    question = replace(question, is_retry=True, reply_limit=room_tokens)
    max_tokens = retry_tokens(question, previous, model, calls)
    if max_tokens is None:
        return previous
    calls.ledger.append(
        ReplyTruncated(role=question.asker, call=previous.call_hash, retry_max_tokens=max_tokens)
    )
    try:
        return await _ask_model(replace(question, reply_limit=max_tokens), model, calls)
    except BudgetExceeded:
        return previous


def retry_tokens(question: ModelQuestion, previous: Reply, model: Model, calls: CallContext) -> int | None:
    """Return the limit of the second reply to a question in tokens; `None` if there is not enough room for it.

    In a replay it is the recorded limit.

    Args:
        question: The question with the limit that is wanted.
        previous: The reply that was cut.
        calls: The run's models, budget and ledger.
    """
    for _, truncated in select_events((*calls.replayed_events, *calls.ledger.events), ReplyTruncated):
        if truncated.call == previous.call_hash:
            return truncated.retry_max_tokens
    replayed_calls = select_events(calls.replayed_events, ModelCalled)
    if any(called.call == previous.call_hash for _, called in replayed_calls):
        return None
    max_tokens = _affordable_reply_tokens(question, model, calls)
    context_tokens = find_profile(model.name, calls.settings).context_tokens
    if context_tokens is not None:
        # Prompt and reply share the context, and a continued reply is a part of the next prompt.
        continued = previous.completion_tokens if previous.prefill else 0
        max_tokens = min(max_tokens, context_tokens - previous.prompt_tokens - continued)
    return max_tokens if max_tokens >= MIN_RETRY_GAIN * previous.completion_tokens else None


async def _ask_model(question: ModelQuestion, model: Model, calls: CallContext) -> Reply:
    """Ask one model. Its maximum cost is reserved in advance, and its real cost is recorded afterwards."""
    budget = calls.budget
    estimate = _estimate_prompt_tokens(question, model, calls)
    price = calls.models.price_for(model.name, estimate)
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
        reply_tokens = _max_reply_tokens(question, estimate, price, model, calls)
    reservation = reserve(
        call,
        calls,
        prior,
        tokens=estimate + reply_tokens,
        reply_tokens=reply_tokens,
        money=price.max_cost(estimate, reply_tokens) if price else 0.0,
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


def _affordable_reply_tokens(question: ModelQuestion, model: Model, calls: CallContext) -> int:
    """Return the maximum length of a model's reply that the budget allows now, in tokens."""
    estimate = _estimate_prompt_tokens(question, model, calls)
    price = calls.models.price_for(model.name, estimate)
    return _max_reply_tokens(question, estimate, price, model, calls)


def _estimate_prompt_tokens(question: ModelQuestion, model: Model, calls: CallContext) -> int:
    """Estimate the tokens of a prompt, by what the provider counted in this run so far.

    The counts come from the ledger, so that a run that was resumed estimates as before.
    """
    ratios = [
        called.prompt_tokens / called.prompt_bytes
        for _, called in select_events(calls.ledger.events, ModelCalled)
        if called.model == model.name
        and called.token_count_source == "provider"
        and called.prompt_bytes >= MIN_LEARNING_BYTES
    ]
    tokens_per_byte = max(ratios[-MAX_LEARNING_CALLS:], default=None)
    return estimate_request_tokens(question.messages, question.sampling, tokens_per_byte)


def _keep_tokens_for_the_coder(question: ModelQuestion, call: BudgetedCall, calls: CallContext) -> None:
    """Refuse a helper's question if its share of the remaining reply tokens is too small."""
    remaining, limit = calls.budget.remaining_completion_tokens(), calls.budget.limits.completion_tokens
    if remaining is None or limit is None or question.role in CODE_WRITERS:
        return
    if remaining // HELPER_SHARE_DIVISOR < MIN_REPLY_TOKENS:
        refuse(call, BudgetExceeded("completion_tokens", limit - remaining, limit), calls)


def _max_reply_tokens(
    question: ModelQuestion, estimate: int, price: Price | None, model: Model, calls: CallContext
) -> int:
    """Return the reply length in tokens that the role's setting and the remaining budget allow.

    The budget does not lower it below `MIN_REPLY_TOKENS`; where that is too much, the reservation fails.

    Args:
        question: The question with its own limit.
        estimate: Estimated tokens of the prompt.
        price: The model's price, if it is known.
        calls: The run's models, budget and ledger.
    """
    limit = _wanted_reply_tokens(question, model, calls)
    tokens, money = calls.budget.remaining_tokens(), calls.budget.remaining_money()
    if tokens is not None:
        share = _token_share(question, tokens, calls) if limit > SMALL_REPLY_TOKENS else tokens
        limit = min(limit, share, max(tokens - estimate, MIN_REPLY_TOKENS))
    reply_tokens = calls.budget.remaining_completion_tokens()
    if reply_tokens is not None:
        share = reply_tokens if question.role in CODE_WRITERS else reply_tokens // HELPER_SHARE_DIVISOR
        limit = min(limit, max(share, MIN_REPLY_TOKENS))
    affordable = price.affordable_tokens(money, estimate) if price and money is not None else None
    return limit if affordable is None else min(limit, max(affordable, MIN_REPLY_TOKENS))


def _wanted_reply_tokens(question: ModelQuestion, model: Model, calls: CallContext) -> int:
    """Return the reply length in tokens without regard to the budget: the answer, and thinking before it."""
    if question.reply_limit is not None:
        return question.reply_limit
    limit = question.sampling.max_tokens
    if not question.is_retry:
        limit = min(limit, calls.models.for_role(question.role).max_tokens)
    return find_profile(model.name, calls.settings).reply_tokens(limit)


def _token_share(question: ModelQuestion, tokens: int, calls: CallContext) -> int:
    """Return the share of the remaining tokens that one long reply may reserve.

    The branches of a round ask at the same time. If the first one reserved everything that is left, the others would be
    refused, although no reply is likely to need that much.
    """
    if question.is_retry:
        return tokens
    decided = last_payload(calls.ledger.events, MovesDecided)
    branches = len(decided.moves) if decided is not None and question.move else HELPER_SHARE_DIVISOR
    return max(tokens // branches, SMALL_REPLY_TOKENS)


def _record_call(
    question: ModelQuestion, reply: Reply, price: Price | None, reservation: Reservation, calls: CallContext
) -> None:
    money = None
    if price is not None:
        money = price.cost(
            reply.prompt_tokens,
            reply.completion_tokens,
            cached_tokens=reply.cached_tokens,
            cache_write_tokens=reply.cache_write_tokens,
        )
    for parameter in reply.refused:
        calls.ledger.append(ModelParameterRefused(model=reply.model, parameter=parameter))
    calls.ledger.append(
        ModelCalled(
            role=question.asker,
            move=question.move,
            index=question.sampling.index,
            call=reply.call_hash,
            model=reply.model,
            prompt=question.prompt,
            prompt_tokens=reply.prompt_tokens,
            cached_tokens=reply.cached_tokens,
            prompt_bytes=request_bytes(question.messages, question.sampling),
            completion_tokens=reply.completion_tokens,
            thinking_tokens=reply.thinking_tokens,
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
