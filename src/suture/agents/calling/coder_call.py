"""Ask the coder, and ask once more where a small model's reply is empty or was cut.

`ask_fitted` shortens a prompt to the model's context; every role uses it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from suture.agents.calling.call_context import CallContext
from suture.agents.calling.model_call import ModelQuestion, affordable_reply_tokens, ask
from suture.agents.prompting.fitting import FittedPrompt, Prefill, PromptDraft, fit_prompt
from suture.agents.prompting.prefill import FENCE_END, open_comment
from suture.agents.replies.coder_reply import ends_inside_code, is_truncated_reply, repeats_itself
from suture.agents.roles.coder import Brief, WriteBrief, draft_coder_prompt, limit_to_shown_files
from suture.agents.roles.project_coder import ProjectBrief, draft_project_prompt
from suture.agents.roles.text_coder import TextBrief, draft_text_prompt
from suture.agents.tuning import FUNCTION_BODY_TOKENS, MAX_PROMPT_RETRIES, MIN_RETRY_GAIN, RETRY_LENGTH_FACTOR
from suture.core.ledger import select_events
from suture.core.ledger.kinds import ModelCalled, PromptShrunk, ReplyTruncated
from suture.core.records import Move
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


async def ask_coder(
    brief: Brief, move: Move, coder: Role, calls: CallContext, *, use_prefill: bool
) -> tuple[Brief, Reply]:
    """Return `(brief, reply)`: the coder's reply, and the brief with the files that the prompt had room for."""
    prompt = calls.prompts.load("project_coder" if isinstance(brief, ProjectBrief) else "coder")
    role_model = calls.models.for_role(coder)
    can_prefill = find_profile(role_model.model.name, calls.settings).prefill
    if isinstance(brief, ProjectBrief):
        draft = draft_project_prompt(brief, prompt)
    elif isinstance(brief, TextBrief):
        draft = draft_text_prompt(brief, prompt)
    else:
        # A repair asks for one function alone only of models that can continue from its header.
        use_prefill = use_prefill and (can_prefill or isinstance(brief, WriteBrief))
        draft = draft_coder_prompt(brief, prompt, use_prefill=use_prefill, sample_index=move.index)
    has_prefill = draft.prefill is not None and can_prefill
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
        if reply.prefill and question.prefill is not None:  # Without prefill the reply starts anew.
            stop = FENCE_END if ends_inside_code(reply) else question.prefill.stop
            question = replace(question, prefill=Prefill(text=reply.text, stop=stop))
        reply = await _ask_again(question, reply, calls)
    return limit_to_shown_files(brief, fitted), reply


async def _ask_again(question: ModelQuestion, previous: Reply, calls: CallContext) -> Reply:
    """Return the reply to a question with a higher limit; the previous reply if there is no other.

    Such a reply is part of the same attempt and is asked for once: a model that never ends its reply wastes its
    own attempt and not the run.
    """
    max_tokens = _retry_tokens(question, previous, calls)
    if max_tokens is None:
        return previous
    calls.ledger.append(
        ReplyTruncated(role=question.asker, call=previous.call_hash, retry_max_tokens=max_tokens)
    )
    try:
        sampling = replace(question.sampling, max_tokens=max_tokens)
        return await ask(replace(question, sampling=sampling), calls)
    except ModelAuthError:
        raise
    except (BudgetExceeded, ModelError):
        return previous  # It may hold complete definitions.


def _retry_tokens(question: ModelQuestion, previous: Reply, calls: CallContext) -> int | None:
    """Return the limit of the second reply in tokens, in a replay the recorded one; `None` if there is no room."""
    for _, truncated in select_events((*calls.replayed_events, *calls.ledger.events), ReplyTruncated):
        if truncated.call == previous.call_hash:
            return truncated.retry_max_tokens
    replayed_calls = select_events(calls.replayed_events, ModelCalled)
    if any(called.call == previous.call_hash for _, called in replayed_calls):
        return None
    max_tokens = question.sampling.max_tokens
    if calls.models.for_role(question.role).model.name.startswith(("local:", "ollama:")):
        # Prompt and reply share the context, and a continued reply is a part of the next prompt.
        continued = previous.completion_tokens if previous.prefill else 0
        room_tokens = calls.settings.model.context_tokens - previous.prompt_tokens - continued
        max_tokens = min(max_tokens, room_tokens)
    sampling = replace(question.sampling, max_tokens=max_tokens)
    max_tokens = affordable_reply_tokens(replace(question, sampling=sampling), calls)
    return max_tokens if max_tokens >= MIN_RETRY_GAIN * previous.completion_tokens else None


async def ask_fitted(
    draft: PromptDraft, question: ModelQuestion, calls: CallContext
) -> tuple[FittedPrompt, Reply]:
    """Return `(prompt, reply)`: the reply to a draft, and the prompt with the pieces that fitted into it.

    The context size of an embedded model is known. Another model may call a prompt too long, and then gets a
    shorter one.

    Args:
        question: Who asks and how to sample; its messages are replaced by those of the draft.

    Raises:
        ContextTooLong: The prompt does not fit even when every part that may shrink is at its smallest.
    """
    role_model = calls.models.for_role(question.role)
    count = partial(count_tokens, role_model.model)
    room_tokens = prompt_room_tokens(role_model, calls.settings.model.context_tokens)
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


def prompt_room_tokens(role_model: RoleModel, context_tokens: int) -> int | None:
    """Return the maximum length of a role's prompt in tokens; `None` if the context size is not known."""
    if not any(model.name.startswith("local:") for model in role_model.chain):
        return None
    # Prompt and reply share the context of an embedded model; the reply gets at most half of it.
    return context_tokens - min(role_model.max_tokens, context_tokens // 2)
