"""Routes for whoever watches the server: is it alive, does it take work, what does it count."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST

from suture.web.looking_routes import Viewer
from suture.web.problems import declared
from suture.web.schemas import Health

router = APIRouter()


@router.get("/healthz", responses=declared())
async def alive() -> Health:
    """Whether the process answers."""
    return Health(ok=True)


@router.get("/readyz", responses={**declared(), 503: {"model": Health}})
async def ready(request: Request) -> Response:
    """Whether it takes work."""
    ok = bool(request.app.state.ready)
    health = Health(ok=ok, detail="" if ok else "it starts, or is being stopped")
    return JSONResponse(health.model_dump(), status_code=200 if ok else 503)


@router.get("/metrics", responses=declared(), response_class=PlainTextResponse)
async def prometheus(request: Request, _: Viewer) -> Response:
    """Counts for Prometheus."""
    return Response(request.app.state.metrics.text(), media_type=CONTENT_TYPE_LATEST)
