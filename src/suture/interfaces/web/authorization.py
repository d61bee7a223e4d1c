"""Who asks, and what their role may do: one dependency for each route."""

from __future__ import annotations

from typing import Any

from fastapi import Depends, Request

from suture.interfaces.jobs import Job
from suture.interfaces.web.access_tokens import LOCAL, Caller, Role
from suture.interfaces.web.problem_details import Refused
from suture.interfaces.web.web_service import Service


def service_of(request: Request) -> Service:
    """What the server works with."""
    service: Service = request.app.state.service
    return service


def caller_of(request: Request) -> Caller:
    """Who asks.

    Raises:
        Refused: A token is needed, and none of ours was shown.
    """
    service = service_of(request)
    if not service.needs_token:
        return LOCAL
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    caller = service.tokens.caller_of(token.strip()) if kind.lower() == "bearer" else None
    if caller is None:
        said = "this token is not known" if kind else "a token is needed"
        raise Refused(
            401, said, remedy="send `Authorization: Bearer TOKEN`; make one: suture serve token add"
        )
    return caller


def needs(role: Role) -> Any:
    """A dependency: who asks, where their role is at least this one."""

    async def check(request: Request) -> Caller:
        caller = caller_of(request)
        if not caller.may(role):
            raise Refused(403, f"a {caller.role} may not do this", remedy=f"it takes the role {role}")
        return caller

    return Depends(check)


def require_own(caller: Caller, job: Job | None) -> None:
    """Refuse to touch what another caller asked for; an admin may.

    Raises:
        Refused: It is somebody else's.
    """
    if job is not None and job.caller != caller.name and not caller.may("admin"):
        raise Refused(403, f"{job.run} is not yours to stop", remedy="ask its caller, or an admin")
