"""Asking the client: which folders are its own, and what its user says to a review.

Until its version of 2026-07-28 the protocol let a server ask while a call went on. Since then a call is
answered with what is to be asked, and comes again with the answers and the state that was sent along, which
the SDK seals. A run that waits is parked on disk, so both ways are the same to it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from mcp.server.elicitation import render_elicitation_schema
from mcp.server.mcpserver import Context
from mcp_types import (
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
    ListRootsRequest,
    ListRootsResult,
)
from pydantic import BaseModel, Field

from suture.api import Review
from suture.interfaces.mcp.server_context import folder_from_uri
from suture.interfaces.narrative.review_text import review_as_text

ANSWERED_IN_RESULTS = "2026-07-28"
"""From this version of the protocol on. Versions are dates, and compare as text."""


class StepAnswer(BaseModel):
    """An answer to a question about a step of a run."""

    choice: Literal["approve", "redirect", "reject", "abort"] = "approve"
    hint: str = Field(default="", description="For `redirect`: what the model is told.")


class DifferenceAnswer(BaseModel):
    """An answer to the question which of two repairs is right."""

    choice: Literal["first", "second", "neither", "unsure"] = "unsure"


@dataclass(frozen=True, kw_only=True)
class QuestionState:
    """What earlier rounds of a call have come to.

    Attributes:
        roots: The client's folders; `None` where it was not asked.
        run: The run that waits for an answer; empty where there is none yet.
        key: Of the question that was asked.
    """

    roots: tuple[str, ...] | None = None
    run: str = ""
    key: str = ""


def read_question_state(context: Context[Any, Any]) -> QuestionState:
    """What was asked in earlier rounds of this call, by the state that came back sealed."""
    state = context.request_state
    if state is None:
        return QuestionState()
    plain = json.loads(state)
    roots = plain.get("roots")
    return QuestionState(
        roots=tuple(roots) if roots is not None else None, run=plain.get("run", ""), key=plain.get("key", "")
    )


def ask_again(asked: QuestionState, **requests: Any) -> InputRequiredResult:
    """An answer that asks: the call comes again with what the client says."""
    state = {
        "roots": list(asked.roots) if asked.roots is not None else None,
        "run": asked.run,
        "key": asked.key,
    }
    return InputRequiredResult(input_requests=requests, request_state=json.dumps(state))


def uses_result_questions(context: Context[Any, Any]) -> bool:
    """Whether this client is asked by the answer to its call."""
    return (context.protocol_version or "") >= ANSWERED_IN_RESULTS


def has_roots(context: Context[Any, Any]) -> bool:
    """Whether the client says which folders are its own."""
    capabilities = context.client_capabilities
    return capabilities is not None and capabilities.roots is not None


def can_be_asked(context: Context[Any, Any]) -> bool:
    """Whether the client's user can fill in a form."""
    capabilities = context.client_capabilities
    elicitation = capabilities.elicitation if capabilities is not None else None
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)


async def request_roots(
    context: Context[Any, Any], asked: QuestionState
) -> tuple[str, ...] | InputRequiredResult:
    """The client's own folders, or the answer that asks for them."""
    if asked.roots is not None:
        return asked.roots
    if not uses_result_questions(context):
        session = context.request_context.session
        return _folders(await session.send_request(ListRootsRequest(), ListRootsResult))
    said = (context.input_responses or {}).get("roots")
    if isinstance(said, ListRootsResult):
        return _folders(said)
    return ask_again(asked, roots=ListRootsRequest())


def _folders(said: ListRootsResult) -> tuple[str, ...]:
    folders = (folder_from_uri(str(root.uri)) for root in said.roots)
    return tuple(str(folder) for folder in folders if folder is not None)


def answer_form(review: Review) -> type[BaseModel]:
    """The form for the answer to a question."""
    return DifferenceAnswer if review.difference is not None else StepAnswer


async def request_review_answer(
    context: Context[Any, Any], review: Review, asked: QuestionState
) -> BaseModel | InputRequiredResult | None:
    """What the user says to a question; `None` where they say nothing; or the answer that asks them."""
    form = answer_form(review)
    if not uses_result_questions(context):
        result: Any = await context.elicit(review_as_text(review), form)
        return result.data if result.action == "accept" else None
    said = (context.input_responses or {}).get("review")
    if asked.key == review.key and isinstance(said, ElicitResult):
        return form.model_validate(said.content or {}) if said.action == "accept" else None
    params = ElicitRequestFormParams(
        message=review_as_text(review), requested_schema=render_elicitation_schema(form)
    )
    now = QuestionState(roots=asked.roots, run=review.run_id, key=review.key)
    return ask_again(now, review=ElicitRequest(params=params))


def roots_as_paths(roots: tuple[str, ...]) -> tuple[Path, ...]:
    """Folders by name as paths."""
    return tuple(Path(root) for root in roots)
