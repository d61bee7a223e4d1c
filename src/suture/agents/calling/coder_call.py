"""Ask the coder: cut the prompt to the model's context, and ask again where the reply was cut."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from suture.agents.calling.call_context import CallContext
from suture.agents.calling.model_call import ModelQuestion, affordable_reply_tokens, ask
from suture.agents.prompting.fitting import FittedPrompt, Prefill, PromptDraft, fit_prompt
from suture.agents.prompting.prefill import FENCE_END, open_comment
from suture.agents.prompting.prompt_files import Prompt
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
    prompt_token_upper_bound,
    supports_prefill,
)


async def ask_coder(
    brief: Brief, move: Move, coder: Role, calls: CallContext, *, use_prefill: bool
) -> tuple[Brief, Reply]:
    """Return the coder's reply to a brief, and the brief with the files that the prompt had room for.

    Args:
        brief: What the coder is told.
        move: The move that the reply is for.
        coder: The role that writes the code.
        calls: Where the call is paid and recorded.
        use_prefill: Whether the recipe asks only for the missing function body.

    Raises:
        ContextTooLong: The prompt does not fit even when every part that may shrink is at its smallest.
        BudgetExceeded: The call could exceed the budget.
        ModelError: The model failed.
    """
    prompt = calls.prompts.load("project_coder" if isinstance(brief, ProjectBrief) else "coder")
    role_model = calls.models.for_role(coder)
    draft = _draft_prompt(brief, prompt, move, role_model, calls, use_prefill=use_prefill)
    has_prefill = draft.prefill is not None and supports_prefill(role_model.model.name, calls.settings)
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
    if (commented := _with_comment_prefill(question, reply)) is not None:
        reply = await _ask_again(commented, reply, calls)
    if ends_inside_code(reply) or (is_truncated_reply(reply) and not repeats_itself(reply.text)):
        longer = replace(question.sampling, max_tokens=RETRY_LENGTH_FACTOR * role_model.max_tokens)
        question = _continue_prefill(replace(question, sampling=longer), reply)
        reply = await _ask_again(question, reply, calls)
    return limit_to_shown_files(brief, fitted), reply


def _with_comment_prefill(question: ModelQuestion, reply: Reply) -> ModelQuestion | None:
    """Return the question with a prefill that opens the body with a comment; `None` if the reply has a body.

    One time in three, small models take a docstring for a complete function and reply with nothing.
    """
    prefill = question.prefill
    if prefill is None or not reply.prefill or reply.text[len(reply.prefill) :].strip():
        return None
    commented = open_comment(prefill)
    return None if commented is None else replace(question, prefill=commented)


def _continue_prefill(question: ModelQuestion, reply: Reply) -> ModelQuestion:
    """Return the question for the rest of a prefilled reply; a reply without prefill starts from its
    beginning.
    """
    prefill = question.prefill
    if prefill is None or not reply.prefill:
        return question
    stop = FENCE_END if ends_inside_code(reply) else prefill.stop
    return replace(question, prefill=Prefill(text=reply.text, stop=stop))


def _draft_prompt(
    brief: Brief | TextBrief,
    prompt: Prompt,
    move: Move,
    role_model: RoleModel,
    calls: CallContext,
    *,
    use_prefill: bool,
) -> PromptDraft:
    if isinstance(brief, ProjectBrief):
        return draft_project_prompt(brief, prompt)
    if isinstance(brief, TextBrief):
        return draft_text_prompt(brief, prompt)
    # A repair asks for one function alone only of models that can continue from its header.
    can_prefill = supports_prefill(role_model.model.name, calls.settings)
    use_prefill = use_prefill and (can_prefill or isinstance(brief, WriteBrief))
    return draft_coder_prompt(brief, prompt, use_prefill=use_prefill, sample_index=move.index)


async def _ask_again(question: ModelQuestion, cut: Reply, calls: CallContext) -> Reply:
    """Return the reply to the same question with a higher limit; the cut reply if there is no other.

    A question is asked again only once, as part of the same attempt: a model that never ends its reply wastes
    its own attempt and not the run.
    """
    max_tokens = _retry_tokens(question, cut, calls)
    if max_tokens is None:
        return cut
    calls.ledger.append(ReplyTruncated(role=question.asker, call=cut.call_hash, retry_max_tokens=max_tokens))
    try:
        sampling = replace(question.sampling, max_tokens=max_tokens)
        return await ask(replace(question, sampling=sampling), calls)
    except ModelAuthError:
        raise
    except (BudgetExceeded, ModelError):
        return cut  # It may hold complete definitions.


def _retry_tokens(question: ModelQuestion, cut: Reply, calls: CallContext) -> int | None:
    """Return the limit of the second reply in tokens; `None` if there is no room for one.

    The limit is decided once: a replay uses the recorded decision.
    """
    for _, truncated in select_events((*calls.replayed_events, *calls.ledger.events), ReplyTruncated):
        if truncated.call == cut.call_hash:
            return truncated.retry_max_tokens
    if any(called.call == cut.call_hash for _, called in select_events(calls.replayed_events, ModelCalled)):
        return None
    max_tokens = question.sampling.max_tokens
    if calls.models.for_role(question.role).model.name.startswith(("local:", "ollama:")):
        continued = cut.completion_tokens if cut.prefill else 0
        max_tokens = min(max_tokens, calls.settings.model.context_tokens - cut.prompt_tokens - continued)
    sampling = replace(question.sampling, max_tokens=max_tokens)
    max_tokens = affordable_reply_tokens(replace(question, sampling=sampling), calls)
    return max_tokens if max_tokens >= MIN_RETRY_GAIN * cut.completion_tokens else None


async def ask_fitted(
    draft: PromptDraft, question: ModelQuestion, calls: CallContext
) -> tuple[FittedPrompt, Reply]:
    """Return the reply to a draft, and the prompt as far as there was room for it.

    The context size of an embedded model is known. Other models may call a prompt too long, and then get a
    shorter one.

    Args:
        draft: The prompt before it is cut to size.
        question: Who asks and how to sample; its messages are replaced by those of the draft.
        calls: Where the call is paid and recorded.

    Raises:
        ContextTooLong: The prompt does not fit even when every part that may shrink is at its smallest.
        BudgetExceeded: The call could exceed the budget.
        ModelError: The model failed.
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
    """Return the maximum length of a role's prompt in tokens; `None` if the context size is not known.

    Args:
        role_model: The models of the role.
        context_tokens: The context size of an embedded model, which prompt and reply share.
    """
    if not any(model.name.startswith("local:") for model in role_model.chain):
        return None
    return context_tokens - min(role_model.max_tokens, context_tokens // 2)
