"""Ask the coder, and ask again if a small model's reply is empty or was cut.

`ask_fitted` shortens a prompt to the model's context; every role uses it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from suture.agents.calling.budgeted_call import CallContext
from suture.agents.calling.model_call import ModelQuestion, ask, retry_tokens
from suture.agents.prompting.fitting import FittedPrompt, Prefill, PromptDraft, fit_prompt
from suture.agents.prompting.prefill import FENCE_END, open_comment
from suture.agents.replies.coder_reply import ends_inside_code, is_truncated_reply, repeats_itself
from suture.agents.roles.coder import (
    Brief,
    TextBrief,
    WriteBrief,
    draft_coder_prompt,
    draft_text_prompt,
    limit_to_shown_files,
)
from suture.agents.roles.project_coder import ProjectBrief, draft_project_prompt
from suture.agents.tuning import FUNCTION_BODY_TOKENS, MAX_PROMPT_RETRIES, RETRY_LENGTH_FACTOR
from suture.core.ledger.kinds import PromptShrunk, ReplyTruncated
from suture.core.records import Move
from suture.core.settings import Settings
from suture.errors import BudgetExceeded, ContextTooLong, ModelAuthError, ModelError
from suture.models import (
    Message,
    Reply,
    Role,
    RoleModel,
    Sampling,
    count_tokens,
    find_profile,
    prompt_token_upper_bound,
)
from suture.models.chat_model import require_answer


async def ask_coder(
    brief: Brief, move: Move, coder: Role, calls: CallContext, *, use_prefill: bool
) -> tuple[Brief, Reply]:
    """Return `(brief, reply)`: the coder's reply, and the brief with the files that the prompt had room for."""
    prompt = calls.prompts.load("project_coder" if isinstance(brief, ProjectBrief) else "coder")
    role_model = calls.models.for_role(coder)
    profile = find_profile(role_model.model.name, calls.settings)
    if isinstance(brief, ProjectBrief):
        draft = draft_project_prompt(brief, prompt)
    elif isinstance(brief, TextBrief):
        draft = draft_text_prompt(brief, prompt)
    else:
        # A repair asks only models that can continue from a function's header for one function alone.
        use_prefill = use_prefill and (profile.prefill or isinstance(brief, WriteBrief))
        draft = draft_coder_prompt(brief, prompt, use_prefill=use_prefill, sample_index=move.index)
    has_prefill = draft.prefill is not None and profile.prefill
    max_tokens = min(role_model.max_tokens, FUNCTION_BODY_TOKENS) if has_prefill else role_model.max_tokens
    question = ModelQuestion(
        role=coder,
        messages=(),
        prompt=prompt.hash,
        sampling=Sampling(temperature=move.temperature, max_tokens=max_tokens, index=move.index),
        move=move.kind,
        prefill=draft.prefill,
    )
    fitted, reply = await ask_fitted(draft, question, calls)
    question = replace(question, messages=fitted.messages, is_retry=True)
    if reply.prefill and question.prefill is not None and not reply.text[len(reply.prefill) :].strip():
        # Small models may take a docstring for a complete function and reply with nothing. A comment opens
        # the body.
        commented = open_comment(question.prefill)
        if commented is not None:
            reply = await _ask_again(replace(question, prefill=commented), reply, calls)
    if ends_inside_code(reply) or (is_truncated_reply(reply) and not repeats_itself(reply.text)):
        longer = replace(question.sampling, max_tokens=RETRY_LENGTH_FACTOR * role_model.max_tokens)
        question = replace(question, sampling=longer)
        if (
            reply.prefill and question.prefill is not None
        ):  # Without prefill the reply starts from the beginning.
            stop = FENCE_END if ends_inside_code(reply) else question.prefill.stop
            question = replace(question, prefill=Prefill(text=reply.text, stop=stop))
        reply = await _ask_again(question, reply, calls)
    # Small models are told that their reply held no code, in prompts that were measured.
    require_answer(reply, role_model.model.name, may_be_empty=not profile.is_capable)
    return limit_to_shown_files(brief, fitted), reply


async def _ask_again(question: ModelQuestion, previous: Reply, calls: CallContext) -> Reply:
    """Return the reply to a question with a higher limit; the previous reply if there is no other.

    The second reply is part of the same attempt and is requested once: a model that never ends its reply wastes its own
    attempt and not the run.
    """
    model = calls.models.for_role(question.role).model
    max_tokens = retry_tokens(question, previous, model, calls)
    if max_tokens is None:
        return previous
    calls.ledger.append(
        ReplyTruncated(role=question.asker, call=previous.call_hash, retry_max_tokens=max_tokens)
    )
    try:
        return await ask(replace(question, reply_limit=max_tokens), calls)
    except ModelAuthError:
        raise
    except (BudgetExceeded, ModelError):
        return previous  # It may hold complete definitions.


async def ask_fitted(
    draft: PromptDraft, question: ModelQuestion, calls: CallContext
) -> tuple[FittedPrompt, Reply]:
    """Return `(prompt, reply)`: the reply to a draft, and the prompt with the pieces that fitted into it.

    The context size of an embedded model is known. Another model may reject a prompt as too long, and then gets a
    shorter one.

    Args:
        question: Who asks and how to sample; its messages are replaced by those of the draft.

    Raises:
        ContextTooLong: The prompt does not fit even when every part that may shrink is at its smallest.
    """
    role_model = calls.models.for_role(question.role)
    count = partial(count_tokens, role_model.model)
    room_tokens = prompt_room_tokens(role_model, calls.settings)
    if room_tokens is not None and draft.prefill is not None:
        room_tokens -= prompt_token_upper_bound([Message(role="assistant", content=draft.prefill.text)])
    retries = 0
    while True:
        fitted = await fit_prompt(draft, room_tokens, count)
        if fitted.removed_counts:
            calls.ledger.append(PromptShrunk(role=question.asker, omitted=fitted.removed_counts))
        try:
            return fitted, await ask(replace(question, messages=fitted.messages), calls)
        except ContextTooLong:
            if retries == MAX_PROMPT_RETRIES:
                raise
            retries += 1
            room_tokens = await count(fitted.messages) * 2 // 3


def prompt_room_tokens(role_model: RoleModel, settings: Settings) -> int | None:
    """Return the maximum length of a role's prompt in tokens; `None` if no model's context size is known.

    Prompt and reply share the context; the reply gets at most half of it.
    """
    profiles = [find_profile(model.name, settings) for model in role_model.chain]
    rooms = [
        profile.context_tokens - min(profile.reply_tokens(role_model.max_tokens), profile.context_tokens // 2)
        for profile in profiles
        if profile.context_tokens is not None
    ]
    return min(rooms, default=None)
