"""Dependencies of the routes that identify the caller and check the caller's role."""

from __future__ import annotations

from typing import Any

from fastapi import Depends, Request

from suture.interfaces.jobs import Job
from suture.interfaces.web.access_tokens import LOCAL, Caller, Role
from suture.interfaces.web.problem_details import RequestRefused
from suture.interfaces.web.web_service import WebService


def get_service(request: Request) -> WebService:
    """Return the service of the application."""
    service: WebService = request.app.state.service
    return service


def get_caller(request: Request) -> Caller:
    """Return the caller of a request."""
    service = get_service(request)
    if not service.needs_token:
        return LOCAL
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    caller = service.tokens.find_caller(token.strip()) if scheme.lower() == "bearer" else None
    if caller is None:
        message = "this token is unknown" if scheme else "a token is required"
        raise RequestRefused(
            401, message, remedy="send `Authorization: Bearer TOKEN`; create one: suture serve token add"
        )
    return caller


def require_role(role: Role) -> Any:
    """Return a dependency that requires a role and provides the caller."""

    async def check(request: Request) -> Caller:
        caller = get_caller(request)
        if not caller.has_role(role):
            raise RequestRefused(
                403, f"the role {caller.role} does not allow this", remedy=f"it requires the role {role}"
            )
        return caller

    return Depends(check)


def require_owner(caller: Caller, job: Job) -> None:
    """Check that the caller may stop a job: its owner and admins may."""
    if job.caller != caller.name and not caller.has_role("admin"):
        raise RequestRefused(403, f"{job.run} belongs to another caller", remedy="ask its owner or an admin")
