"""From a brief to a reply: the prompt is cut to the room that the model has."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from suture.agents import Brief, Draft, Fitted, WriteBrief, as_shown, coder_draft, fit
from suture.agents.calling.model_call import Question, affordable_reply, ask
from suture.agents.prompting.fitting import Beginning
from suture.agents.prompting.prefill import END, with_comment
from suture.agents.prompting.prompt_files import Prompt
from suture.agents.replies.coder_reply import breaks_off, goes_in_circles, stops_inside
from suture.agents.roles.project_coder import ProjectBrief, project_draft
from suture.agents.roles.text_coder import TextBrief, text_draft
from suture.core.ledger import select_events
from suture.core.ledger.kinds import ModelCalled, PromptShrunk, ReplyCut
from suture.core.records import Move
from suture.errors import BudgetExceeded, ContextTooLong, ModelAuthError, ModelError
from suture.loop.context import RunContext
from suture.models import (
    Message,
    Reply,
    Role,
    RoleModel,
    Sampling,
    count_tokens,
    count_upper_bound,
    may_begin,
)

SQUEEZES = 2
"""How often a prompt that a provider calls too long is shortened, by a third each time."""
LEAN_TOKENS = 512
"""Of a reply that is only the rest of a function: some eight times what most take. What is longer and not
going round in circles is gone on with."""
ROOMIER = 2
"""How much longer than the setting a reply may be that is drawn again because it was cut."""
WORTH_IT = 1.5
"""With less room than so many times what the cut reply had, drawing it again would hardly bring the rest."""


async def answered(brief: Brief, move: Move, coder: Role, context: RunContext) -> tuple[Brief, Reply]:
    """The coder's reply to a brief, and the brief as far as there was room; raises as `fitted_reply`."""
    prompt = context.prompts.load("project_coder" if isinstance(brief, ProjectBrief) else "coder")
    seat = context.models.for_role(coder)
    draft = _draft(brief, prompt, move, seat, context)
    is_begun = draft.beginning is not None and may_begin(seat.model.name, context.settings)
    most = min(seat.max_tokens, LEAN_TOKENS) if is_begun else seat.max_tokens
    sampling = Sampling(temperature=move.temperature, max_tokens=most, index=move.index)
    question = Question(
        role=coder,
        messages=(),
        prompt=prompt.hash,
        sampling=sampling,
        move=move.kind,
        beginning=draft.beginning,
    )
    fitted, reply = await fitted_reply(draft, question, context)
    question = replace(question, messages=fitted.messages, again=True)
    if (spoken := _with_a_word(question, reply)) is not None:
        reply = await _drawn_again(spoken, reply, context)
    if stops_inside(reply) or (breaks_off(reply) and not goes_in_circles(reply.text)):
        longer = replace(question.sampling, max_tokens=ROOMIER * seat.max_tokens)
        question = _gone_on_with(replace(question, sampling=longer), reply)
        reply = await _drawn_again(question, reply, context)
    return as_shown(brief, fitted), reply


def _with_a_word(question: Question, reply: Reply) -> Question | None:
    """The question whose reply opens the body with a comment; `None` where this one says anything.

    Small models take a docstring for the whole of a function, one time in three.
    """
    beginning = question.beginning
    if beginning is None or not reply.begun or reply.text[len(reply.begun) :].strip():
        return None
    opened = with_comment(beginning)
    return None if opened is None else replace(question, beginning=opened)


def _gone_on_with(question: Question, reply: Reply) -> Question:
    """The question for the rest of a begun reply alone; others are drawn from their first word."""
    beginning = question.beginning
    if beginning is None or not reply.begun:
        return question
    stop = END if stops_inside(reply) else beginning.stop
    return replace(question, beginning=Beginning(text=reply.text, stop=stop))


def _draft(
    brief: Brief | TextBrief, prompt: Prompt, move: Move, seat: RoleModel, context: RunContext
) -> Draft:
    """The prompt; one function alone is asked of models that go on from its header, others see further."""
    if isinstance(brief, ProjectBrief):
        return project_draft(brief, prompt)
    if isinstance(brief, TextBrief):
        return text_draft(brief, prompt)
    begins = may_begin(seat.model.name, context.settings)
    lean = context.recipe.lean and (begins or isinstance(brief, WriteBrief))
    return coder_draft(brief, prompt, lean=lean, turn=move.index)


async def _drawn_again(question: Question, cut: Reply, context: RunContext) -> Reply:
    """The reply to the same question with more room; the cut one where there is no such reply to be had.

    Once only, and of the same attempt: a model that never ends ends its own attempt, not the run.
    """
    room = _more_room(question, cut, context)
    if room is None:
        return cut
    context.ledger.append(ReplyCut(role=question.asker, call=cut.call_hash, again_with_tokens=room))
    try:
        return await ask(replace(question, sampling=replace(question.sampling, max_tokens=room)), context)
    except ModelAuthError:
        raise
    except (BudgetExceeded, ModelError):
        return cut  # there may be whole definitions in it


def _more_room(question: Question, cut: Reply, context: RunContext) -> int | None:
    """Tokens for the second draw; `None` where there is none. It is decided once, also for a replay."""
    for _, before in select_events((*context.spec.follows, *context.ledger.events), ReplyCut):
        if before.call == cut.call_hash:
            return before.again_with_tokens
    if any(called.call == cut.call_hash for _, called in select_events(context.spec.follows, ModelCalled)):
        return None
    room = question.sampling.max_tokens
    if context.models.for_role(question.role).model.name.startswith(("local:", "ollama:")):
        gone_on_with = cut.completion_tokens if cut.begun else 0
        room = min(room, context.settings.model.context_tokens - cut.prompt_tokens - gone_on_with)
    room = affordable_reply(replace(question, sampling=replace(question.sampling, max_tokens=room)), context)
    return room if room >= WORTH_IT * cut.completion_tokens else None


async def fitted_reply(draft: Draft, question: Question, context: RunContext) -> tuple[Fitted, Reply]:
    """The reply to a draft, and the prompt as far as there was room for it.

    The context of an embedded model is known. Another model's is not: it may call the prompt too long, and
    then gets a shorter one.

    Args:
        draft: The prompt before it is cut to size.
        question: Who asks, and how to draw; its messages are those of the draft.
        context: The run.

    Raises:
        ContextTooLong: The prompt does not fit even with every part that may shrink at its smallest.
        BudgetExceeded: The call could exceed the budget.
        ModelError: The model failed.
    """
    seat = context.models.for_role(question.role)
    count = partial(count_tokens, seat.model)
    room = room_tokens(seat, context.settings.model.context_tokens)
    if room is not None and draft.beginning is not None:
        room -= count_upper_bound([Message(role="assistant", content=draft.beginning.text)])
    squeezes = 0
    while True:
        fitted = await fit(draft, room, count)
        if fitted.cut:
            context.ledger.append(PromptShrunk(role=question.asker, left_out=fitted.cut))
        try:
            return fitted, await ask(replace(question, messages=fitted.messages), context)
        except ContextTooLong:
            if squeezes == SQUEEZES:
                raise
            squeezes += 1
            room = await count(fitted.messages) * 2 // 3


def room_tokens(seat: RoleModel, context_tokens: int) -> int | None:
    """The most tokens of a role's prompt; `None` where the context of its models is not known.

    Args:
        seat: The role's models.
        context_tokens: The context of an embedded one, which the prompt shares with the reply.
    """
    if not any(model.name.startswith("local:") for model in seat.chain):
        return None
    return context_tokens - min(seat.max_tokens, context_tokens // 2)
