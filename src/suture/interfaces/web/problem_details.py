"""Errors as problem details (RFC 9457), with the messages and remedies of the command line."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from suture.errors import (
    BudgetExceeded,
    Cancelled,
    CodeHostError,
    ModelError,
    PrerequisiteError,
    StorageError,
    SutureError,
    UsageError,
)
from suture.interfaces.jobs import QueueFull, RunBusy
from suture.interfaces.web.tuning import MAX_VALIDATION_ERRORS

MEDIA_TYPE = "application/problem+json"
"""The media type of a problem, as RFC 9457 has it."""
STATUS_OF_ERROR: tuple[tuple[type[SutureError], int], ...] = (
    (QueueFull, 429),
    (RunBusy, 409),
    (UsageError, 400),
    (PrerequisiteError, 503),
    (CodeHostError, 502),
    (ModelError, 502),
    (StorageError, 500),
    (BudgetExceeded, 409),
    (Cancelled, 409),
)
"""(error class, HTTP status); the first class that fits counts, so subclasses come before their base classes."""


class ProblemDetails(BaseModel):
    """What went wrong, and what the caller can do about it (RFC 9457)."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "type": "urn:suture:problem:not-found",
                "title": "Not Found",
                "status": 404,
                "detail": "there is no run '20260101-000000000-abcdef'",
                "remedy": "see GET /v1/runs",
                "exit_code": 2,
            }
        }
    )
    type: str = Field(description="The kind of problem.")
    title: str = Field(description="The HTTP status as text.")
    status: int
    detail: str = Field(description="What went wrong, in one line.")
    remedy: str = Field(default="", description="What the caller can do about it.")
    advice: str = Field(default="", description="What a person at the web page can do about it there.")
    field: str = Field(default="", description="The field of the request that is wrong, if it is one.")
    fault: str = Field(default="", description="The class of the error (docs/errors.md).")
    exit_code: int | None = Field(default=None, description="The command line's exit code for this error.")


class RequestRefused(UsageError):
    """A request that is refused with a certain HTTP status.

    Args:
        status: The HTTP status.
        message: What went wrong.
        remedy: What a program that calls the service can do about it.
        advice: What a person at the web page can do about it there.
        field: The field of the request that is wrong, if it is one.
        fault: The class of the error that ended a job, if that is why the request is refused.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        remedy: str = "",
        advice: str = "",
        field: str = "",
        fault: str = "",
    ) -> None:
        super().__init__(message, remedy=remedy)
        self.status = status
        self.advice = advice
        self.field = field
        self.fault = fault


def make_problem(status: int, detail: str, **fields: Any) -> ProblemDetails:
    """Return a problem; the further fields are those of `ProblemDetails`."""
    title = HTTPStatus(status).phrase
    kind = f"urn:suture:problem:{title.lower().replace(' ', '-')}"
    return ProblemDetails(type=kind, title=title, status=status, detail=detail, **fields)


def problem_from_error(fault: SutureError) -> ProblemDetails:
    """Return the problem that an error is for the caller."""
    matching_statuses = (status for cls, status in STATUS_OF_ERROR if isinstance(fault, cls))
    status, page_fields, name = next(matching_statuses, 500), {}, type(fault).__name__
    if isinstance(fault, RequestRefused):
        status, name = fault.status, fault.fault or name
        page_fields = {"advice": fault.advice, "field": fault.field}
    return make_problem(
        status, fault.message, remedy=fault.remedy, fault=name, exit_code=fault.exit_code, **page_fields
    )


def problem_response(
    status: int, detail: str, *, headers: dict[str, str] | None = None, **fields: Any
) -> JSONResponse:
    """Return a problem as a response; the further fields are those of `ProblemDetails`."""
    return _respond(make_problem(status, detail, **fields), headers)


def _respond(problem: ProblemDetails, headers: dict[str, str] | None) -> JSONResponse:
    content = problem.model_dump(exclude_none=True)
    return JSONResponse(content, status_code=problem.status, media_type=MEDIA_TYPE, headers=headers)


def add_problems(app: FastAPI) -> None:
    """Install handlers that answer every error with a problem."""

    @app.exception_handler(SutureError)
    async def _handle_suture_error(_: Request, fault: SutureError) -> JSONResponse:
        headers = {}
        if isinstance(fault, QueueFull):
            headers["Retry-After"] = str(max(1, round(fault.retry_after_s)))
        if isinstance(fault, RequestRefused) and fault.status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        return _respond(problem_from_error(fault), headers)

    @app.exception_handler(RequestValidationError)
    async def _handle_validation_error(_: Request, fault: RequestValidationError) -> JSONResponse:
        # The input itself is left out: it can be long and contain secrets.
        messages = [
            f"{'.'.join(map(str, error['loc']))}: {error['msg']}"
            for error in fault.errors()[:MAX_VALIDATION_ERRORS]
        ]
        field = str(fault.errors()[0]["loc"][-1])
        return problem_response(
            422, "; ".join(messages), remedy="see /openapi.json", field=field, exit_code=2
        )

    @app.exception_handler(ClientDisconnect)
    async def _handle_cut_request(_: Request, __: Exception) -> JSONResponse:
        return problem_response(400, "the request was cut off")  # for the metrics: nobody receives it

    @app.exception_handler(Exception)
    async def _handle_unexpected_error(_: Request, fault: Exception) -> JSONResponse:
        detail = f"{type(fault).__name__}: this is a bug in Suture; see the server's log"
        return problem_response(500, detail, exit_code=6)

    @app.exception_handler(HTTPException)
    async def _handle_http_error(request: Request, fault: HTTPException) -> JSONResponse:
        detail, remedy = f"{request.method} {request.url.path}: {fault.detail}", ""
        if fault.status_code in (404, 405):
            detail = f"there is no route {request.method} {request.url.path:.200}"
            remedy = "see /openapi.json for all routes"
        headers = dict(fault.headers or {})
        return problem_response(fault.status_code, detail, remedy=remedy, headers=headers)


def problem_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the problems that a route can respond with, for the OpenAPI document."""
    return {
        status: {
            "description": HTTPStatus(status).phrase,
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
        # Every route can respond with these: for invalid input, the token, the role, and what `RequestGuard` refuses.
        for status in sorted({400, 401, 403, 413, 421, 422, *statuses})
    }
