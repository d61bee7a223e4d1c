"""The application: its routes, its guard, its problems, and how it starts and stops."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from importlib.resources import files

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse, PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST

from suture.interfaces.jobs import JobJournal
from suture.interfaces.web import read_routes as detail_routes
from suture.interfaces.web import read_routes as looking_routes
from suture.interfaces.web import run_routes
from suture.interfaces.web import web_app as page_routes
from suture.interfaces.web.problem_details import Problem, RequestRefused, add_problems, problem_responses
from suture.interfaces.web.read_routes import Viewer
from suture.interfaces.web.request_guard import RequestGuard
from suture.interfaces.web.rest_schemas import Health
from suture.interfaces.web.server_metrics import RequestCounter, ServerMetrics
from suture.interfaces.web.web_service import WebService

ABOUT = (
    "Write or repair code in a sandbox until tests that can be trusted pass. Errors are RFC 9457 problems."
)
probes = APIRouter()
"""Routes for whoever watches the server: is it alive, does it take work, what does it count."""
ANY_ADDRESS = ("0.0.0.0", "::")
"""Nobody is called so; but a browser takes them for this machine."""


def make_app(service: WebService, journal: JobJournal) -> FastAPI:
    """The application of a server."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        service.pool.recover()
        sweeping = asyncio.create_task(service.sweep())
        app.state.ready, app.state.stopping = True, False
        try:
            yield
        finally:
            app.state.ready = False
            sweeping.cancel()
            await service.pool.close()
            journal.close()

    # No page of documentation: those of the library load scripts from elsewhere.
    app = FastAPI(
        title="Suture",
        version=version("suture"),
        description=ABOUT,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
    )
    app.state.service = service
    app.state.metrics = ServerMetrics(service.pool)
    app.state.ready = app.state.stopping = False
    add_problems(app)
    for router in (
        run_routes.router,
        looking_routes.router,
        detail_routes.router,
        probes,
        page_routes.router,
    ):
        app.include_router(router)

    app.add_middleware(RequestCounter, metrics=app.state.metrics)
    serve = service.settings.serve
    app.add_middleware(
        RequestGuard,
        hosts=serve.hosts if serve.host in ANY_ADDRESS else (*serve.hosts, serve.host),
        body_bytes=serve.body_kb * 2**10,
        archive_bytes=serve.archive_mb * 2**20,
    )
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]  # the library's way to extend it
    return app


def _openapi(app: FastAPI) -> dict[str, object]:
    if app.openapi_schema is None:
        plain = get_openapi(title=app.title, version=app.version, description=ABOUT, routes=app.routes)
        parts = plain.setdefault("components", {})
        parts.setdefault("schemas", {})["Problem"] = Problem.model_json_schema()
        parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        plain["security"] = [{}, {"token": []}]
        app.openapi_schema = plain
    return app.openapi_schema


@probes.get("/healthz", responses=problem_responses())
async def alive() -> Health:
    """Whether the process answers."""
    return Health(ok=True)


@probes.get("/readyz", responses={**problem_responses(), 503: {"model": Health}})
async def ready(request: Request) -> Response:
    """Whether it takes work."""
    ok = bool(request.app.state.ready)
    health = Health(ok=ok, detail="" if ok else "it starts, or is being stopped")
    return JSONResponse(health.model_dump(), status_code=200 if ok else 503)


@probes.get("/metrics", responses=problem_responses(), response_class=PlainTextResponse)
async def prometheus(request: Request, _: Viewer) -> Response:
    """Counts for Prometheus."""
    return Response(request.app.state.metrics.text(), media_type=CONTENT_TYPE_LATEST)


router = APIRouter(include_in_schema=False)
TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        # No text becomes markup or code, whatever a script of ours may do by mistake.
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
PAGE = files("suture.interfaces.web") / "page"
NAMES = frozenset(file.name for file in PAGE.iterdir() if file.name.rpartition(".")[2] in TYPES)


@router.get("/")
async def page() -> Response:
    """The page itself; anybody may have it, as it says nothing of any run."""
    return _file("index.html")


@router.get("/page/{name}")
async def part(name: str) -> Response:
    """A script or style of the page."""
    return _file(name)


def _file(name: str) -> Response:
    if name not in NAMES:
        raise RequestRefused(404, f"the page has no file {name!r:.80}", remedy="see /")
    kind = TYPES[name.rpartition(".")[2]]
    headers = {"Content-Security-Policy": POLICY, "Content-Type": kind}
    return Response((PAGE / name).read_bytes(), headers=headers)
