"""Who asks, and what their role may do: one dependency for each route."""

from __future__ import annotations

from typing import Any

from fastapi import Depends, Request

from suture.interfaces.jobs import Job
from suture.interfaces.web.access_tokens import LOCAL, Caller, Role
from suture.interfaces.web.problem_details import RequestRefused
from suture.interfaces.web.web_service import WebService


def get_service(request: Request) -> WebService:
    """What the server works with."""
    service: WebService = request.app.state.service
    return service


def get_caller(request: Request) -> Caller:
    """Who asks.

    Raises:
        Refused: A token is needed, and none of ours was shown.
    """
    service = get_service(request)
    if not service.needs_token:
        return LOCAL
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    caller = service.tokens.caller_of(token.strip()) if kind.lower() == "bearer" else None
    if caller is None:
        said = "this token is not known" if kind else "a token is needed"
        raise RequestRefused(
            401, said, remedy="send `Authorization: Bearer TOKEN`; make one: suture serve token add"
        )
    return caller


def require_role(role: Role) -> Any:
    """A dependency: who asks, where their role is at least this one."""

    async def check(request: Request) -> Caller:
        caller = get_caller(request)
        if not caller.may(role):
            raise RequestRefused(403, f"a {caller.role} may not do this", remedy=f"it takes the role {role}")
        return caller

    return Depends(check)


def require_owner(caller: Caller, job: Job | None) -> None:
    """Refuse to touch what another caller asked for; an admin may.

    Raises:
        Refused: It is somebody else's.
    """
    if job is not None and job.caller != caller.name and not caller.may("admin"):
        raise RequestRefused(403, f"{job.run} is not yours to stop", remedy="ask its caller, or an admin")
