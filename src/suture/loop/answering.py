"""From a brief to the coder's reply: the prompt is cut to the room that the model has."""

from __future__ import annotations

from functools import partial

from suture.errors import ContextTooLong
from suture.loop.asking import Question, ask
from suture.loop.context import RunContext
from suture.models import Reply, RoleModel, count_tokens
from suture.records import Move
from suture.roles import Brief, as_shown, coder_draft, fit
from suture.roles.text_coder import TextBrief, text_draft

__all__ = ["answered", "room_tokens"]

SQUEEZES = 2
"""How often a prompt that a provider calls too long is shortened, by a third each time."""


async def answered(brief: Brief, move: Move, context: RunContext) -> tuple[Brief, Reply]:
    """The reply to a brief, and the brief as far as the prompt had room for it.

    The context of an embedded model is known. Another model's is not: it may call the prompt too long, and
    then gets a shorter one.

    Raises:
        ContextTooLong: The prompt does not fit even with every part that may shrink at its smallest.
        BudgetExceeded: The call could exceed the budget.
        ModelError: The model failed.
    """
    prompt = context.prompts.load("coder")
    draft = text_draft(brief, prompt) if isinstance(brief, TextBrief) else coder_draft(brief, prompt)
    seat = context.models.for_role("coder")
    count = partial(count_tokens, seat.model)
    room = room_tokens(seat, context.settings.model.context_tokens)
    squeezes = 0
    while True:
        fitted = await fit(draft, room, count)
        if fitted.cut:
            context.ledger.append("prompt.shrunk", {"role": "coder", "left_out": dict(fitted.cut)})
        question = Question(role="coder", move=move, messages=fitted.messages, prompt=prompt.hash)
        try:
            return as_shown(brief, fitted), await ask(question, context)
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
