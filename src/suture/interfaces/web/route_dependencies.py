"""What routes depend on: the service, the run in the path, and a caller with a certain role."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Path, Request

from suture.core.ledger import RunFolder
from suture.interfaces.web.problem_details import RequestRefused
from suture.interfaces.web.request_guard import LOCAL, Caller, Role
from suture.interfaces.web.rest_schemas import RUN_ID_PATTERN
from suture.interfaces.web.run_views import has_ledger
from suture.interfaces.web.web_service import WebService, import_loop


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


VIEWER = require_role("viewer")
LOOP = Depends(import_loop)
Viewer = Annotated[Caller, VIEWER]
Runner = Annotated[Caller, require_role("runner")]
Reviewer = Annotated[Caller, require_role("reviewer")]
Admin = Annotated[Caller, require_role("admin")]
WebServiceDependency = Annotated[WebService, Depends(get_service)]
Run = Annotated[
    str, Path(pattern=RUN_ID_PATTERN, description="The run's id.", examples=["20260101-000000000-abcdef"])
]


def require_owner(service: WebService, caller: Caller, run: str) -> None:
    """Check that the caller may continue, stop or fork a run: its owner and admins may.

    A run that no request to a server started, as one of the command line, belongs to admins.
    """
    if not caller.has_role("admin") and service.pool.find_owner(run) != caller.name:
        raise RequestRefused(403, f"run {run} belongs to another caller", remedy="ask its owner or an admin")


def require_ledger(service: WebService, run: str) -> RunFolder:
    """Return the folder of a run that has started."""
    folder = service.find_run_folder_or_404(run)
    if not has_ledger(folder):
        job = service.pool.find_last_job(run)
        end = service.pool.end_of(job) if job is not None else None
        if end is not None:
            raise RequestRefused(
                404, f"run {run} ended before it began: {end.error}", remedy="start it again: POST /v1/runs"
            )
        raise RequestRefused(404, f"run {run} has not started yet", remedy="retry when it is running")
    return folder
