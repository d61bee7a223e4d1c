"""Ask the client which folders it allows, and ask its user to answer a review.

Before version 2026-07-28 of the protocol, a server could ask while a call was in progress. Since then, a call
returns its questions as a result, and the client calls again with the answers. The call's state travels
through the client, sealed by the SDK. A waiting run is parked on disk, so both ways work alike.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
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

RESULT_QUESTIONS_VERSION = "2026-07-28"
"""The first protocol version with questions in results. Versions are dates and compare as text."""


class StepAnswer(BaseModel):
    """The answer to a question about a step of a run."""

    choice: Literal["approve", "redirect", "reject", "abort"] = "approve"
    hint: str = Field(default="", description="For `redirect`: a hint for the model.")


class ResultsAnswer(BaseModel):
    """The answer to the question whether results of new code are right."""

    choice: Literal["approve", "reject", "abort"] = "approve"


class ExampleAnswer(BaseModel):
    """The answer to the question which call of new code has a known result."""

    example: str = Field(
        default="", description="A call with its result, such as `f(2) == 4`; empty to end the run."
    )


class DifferenceAnswer(BaseModel):
    """The answer to the question which of two repairs is right."""

    choice: Literal["first", "second", "neither", "unsure"] = "unsure"


@dataclass(frozen=True, kw_only=True)
class QuestionState:
    """What the server must remember between the rounds of one call, in which it asks the client.

    Attributes:
        roots: The client's folders; `None` if it was not asked.
        run: The run that waits for an answer; empty if there is none yet.
        key: The key of the question that was asked.
    """

    roots: tuple[str, ...] | None = None
    run: str = ""
    key: str = ""


def read_question_state(context: Context[Any, Any]) -> QuestionState:
    """Return the state of earlier rounds of this call, which the client returned sealed."""
    if context.request_state is None:
        return QuestionState()
    values = json.loads(context.request_state)
    roots = values["roots"]
    return QuestionState(
        roots=tuple(roots) if roots is not None else None, run=values["run"], key=values["key"]
    )


def ask_again(state: QuestionState, **requests: Any) -> InputRequiredResult:
    """Return a result that asks the client; it calls again with the answers."""
    return InputRequiredResult(input_requests=requests, request_state=json.dumps(asdict(state)))


def uses_result_questions(context: Context[Any, Any]) -> bool:
    """Return whether this client is asked through the result of its call."""
    return (context.protocol_version or "") >= RESULT_QUESTIONS_VERSION


def has_roots(context: Context[Any, Any]) -> bool:
    """Return whether the client can name its own folders."""
    capabilities = context.client_capabilities
    return capabilities is not None and capabilities.roots is not None


def can_be_asked(context: Context[Any, Any]) -> bool:
    """Return whether the client's user can fill in a form."""
    capabilities = context.client_capabilities
    elicitation = capabilities.elicitation if capabilities is not None else None
    # A client that names neither way of asking supports forms, by the protocol.
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)


async def request_roots(
    context: Context[Any, Any], state: QuestionState
) -> tuple[str, ...] | InputRequiredResult:
    """Return the client's own folders, or the result that asks for them."""
    if state.roots is not None:
        return state.roots
    if not uses_result_questions(context):
        session = context.request_context.session
        return _root_folders(await session.send_request(ListRootsRequest(), ListRootsResult))
    response = (context.input_responses or {}).get("roots")
    if isinstance(response, ListRootsResult):
        return _root_folders(response)
    return ask_again(state, roots=ListRootsRequest())


def _root_folders(response: ListRootsResult) -> tuple[str, ...]:
    folders = (folder_from_uri(str(root.uri)) for root in response.roots)
    return tuple(str(folder) for folder in folders if folder is not None)


async def request_review_answer(
    context: Context[Any, Any], review: Review, state: QuestionState
) -> BaseModel | InputRequiredResult | None:
    """Return the user's answer, `None` without one, or the result that asks for it."""
    form: type[BaseModel] = DifferenceAnswer if review.difference is not None else StepAnswer
    if review.stage == "examples":
        form = ResultsAnswer if review.examples else ExampleAnswer
    if not uses_result_questions(context):
        result: Any = await context.elicit(review_as_text(review), form)
        return result.data if result.action == "accept" else None
    response = (context.input_responses or {}).get("review")
    if state.key == review.key and isinstance(response, ElicitResult):
        return form.model_validate(response.content or {}) if response.action == "accept" else None
    params = ElicitRequestFormParams(
        message=review_as_text(review), requested_schema=render_elicitation_schema(form)
    )
    asked_state = QuestionState(roots=state.roots, run=review.run_id, key=review.key)
    return ask_again(asked_state, review=ElicitRequest(params=params))
