"""Assemble the FastAPI application of the server, and serve the web page's files and the probes."""

from __future__ import annotations

import asyncio
import time
from collections import Counter as Counts
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from importlib.resources import files

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse, PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from suture.interfaces.jobs import JobJournal, JobRegistry
from suture.interfaces.web import judgement_routes, read_routes, run_routes
from suture.interfaces.web.problem_details import (
    ProblemDetails,
    RequestRefused,
    add_problems,
    problem_responses,
)
from suture.interfaces.web.request_guard import RequestGuard
from suture.interfaces.web.rest_schemas import Health
from suture.interfaces.web.route_dependencies import VIEWER
from suture.interfaces.web.web_service import WebService

API_DESCRIPTION = (
    "Repair or write code in a sandbox until trusted tests pass. Errors are RFC 9457 problem details."
)
probes = APIRouter()
"""Routes for monitoring: is the process alive, does it accept work, what are its metrics."""
ANY_ADDRESS = ("0.0.0.0", "::")
"""Wildcard addresses, which are not host names; browsers connect to this machine for them."""
CONTENT_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
PAGE_CONTENT_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        # Prevents text from becoming markup or code, even through a mistake in our scripts.
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
PAGE_FOLDER = files("suture.interfaces.web") / "page"
PAGE_FILES = frozenset(
    file.name for file in PAGE_FOLDER.iterdir() if file.name.rpartition(".")[2] in CONTENT_TYPES
)


def make_app(service: WebService, journal: JobJournal) -> FastAPI:
    """Return the application of a server."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        service.pool.recover()
        cleanup_task = asyncio.create_task(service.clean_up_uploads())
        app.state.ready, app.state.stopping = True, False
        try:
            yield
        finally:
            app.state.ready = False
            cleanup_task.cancel()
            await service.pool.close()
            journal.close()

    # No documentation pages, because FastAPI's load scripts from other hosts.
    app = FastAPI(
        title="Suture",
        version=version("suture"),
        description=API_DESCRIPTION,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
    )
    app.state.service = service
    app.state.metrics = ServerMetrics(service.pool)
    app.state.ready = app.state.stopping = False
    add_problems(app)
    routers = (run_routes.router, judgement_routes.router, read_routes.router, read_routes.early_router)
    for router in (*routers, probes, page_router):
        app.include_router(router)

    app.add_middleware(RequestCounter, metrics=app.state.metrics)
    serve = service.settings.serve
    app.add_middleware(
        RequestGuard,
        hosts=serve.hosts if serve.host in ANY_ADDRESS else (*serve.hosts, serve.host),
        body_bytes=serve.body_kb * 2**10,
        archive_bytes=serve.archive_mb * 2**20,
    )
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]  # FastAPI's documented way to extend the schema
    return app


def _openapi(app: FastAPI) -> dict[str, object]:
    """Return the OpenAPI document with what FastAPI cannot know: the schema of problems, and the tokens."""
    if app.openapi_schema is None:
        schema = get_openapi(
            title=app.title, version=app.version, description=API_DESCRIPTION, routes=app.routes
        )
        components = schema.setdefault("components", {})
        components.setdefault("schemas", {})["Problem"] = ProblemDetails.model_json_schema()
        components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        schema["security"] = [{}, {"token": []}]
        app.openapi_schema = schema
    return app.openapi_schema


@probes.get("/healthz", responses=problem_responses())
async def alive() -> Health:
    """Return whether the process responds."""
    return Health(ok=True)


@probes.get("/readyz", responses={**problem_responses(), 503: {"model": Health}})
async def ready(request: Request) -> Response:
    """Return whether the server accepts work."""
    ok = bool(request.app.state.ready)
    health = Health(ok=ok, detail="" if ok else "the server is starting or stopping")
    return JSONResponse(health.model_dump(), status_code=200 if ok else 503)


@probes.get(
    "/metrics", responses=problem_responses(), response_class=PlainTextResponse, dependencies=[VIEWER]
)
async def prometheus(request: Request) -> Response:
    """Return metrics for Prometheus."""
    return Response(request.app.state.metrics.text(), media_type=CONTENT_TYPE_LATEST)


page_router = APIRouter(include_in_schema=False)


@page_router.get("/")
async def page() -> Response:
    """Return the page itself; it needs no token, because it contains no data of any run."""
    return _page_file("index.html")


@page_router.get("/page/{name}")
async def page_file(name: str) -> Response:
    """Return a script or style of the page."""
    return _page_file(name)


def _page_file(name: str) -> Response:
    if name not in PAGE_FILES:
        raise RequestRefused(404, f"the page has no file {name!r:.80}", remedy="open /")
    headers = {
        "Content-Security-Policy": PAGE_CONTENT_POLICY,
        "Content-Type": CONTENT_TYPES[name.rpartition(".")[2]],
    }
    return Response((PAGE_FOLDER / name).read_bytes(), headers=headers)


class RequestCounter:
    """Counts each request when its response starts."""

    def __init__(self, app: ASGIApp, metrics: ServerMetrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and count its response."""
        started_s = time.perf_counter()

        async def send_and_count(message: Message) -> None:
            if message["type"] == "http.response.start":
                route = getattr(scope.get("route"), "path", "none")
                seconds = time.perf_counter() - started_s
                self._metrics.count(scope["method"], route, message["status"], seconds)
            await send(message)

        await self._app(scope, receive, send_and_count)


class ServerMetrics(Collector):
    """Counts requests, and reads the pool's state when metrics are collected."""

    def __init__(self, pool: JobRegistry) -> None:
        self._pool = pool
        self._registry = CollectorRegistry()
        labels = ("method", "route")
        self._requests = Counter(
            "suture_requests", "Answered requests.", (*labels, "status"), registry=self._registry
        )
        self._seconds = Histogram(
            "suture_request_seconds", "Seconds until the response started.", labels, registry=self._registry
        )
        self._registry.register(self)

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a response that started after some seconds.

        `route` is the route's pattern, not the path, because callers must not be able to create new series.
        """
        # A caller can invent methods too.
        method_label = method if method in ("GET", "HEAD", "POST") else "other"
        self._requests.labels(method_label, route, str(status)).inc()
        self._seconds.labels(method_label, route).observe(seconds)

    def collect(self) -> Iterator[Metric]:
        """Yield the pool's current state."""
        yield GaugeMetricFamily("suture_jobs_running", "Running jobs.", value=self._pool.running)
        yield GaugeMetricFamily("suture_jobs_waiting", "Queued jobs.", value=len(self._pool.waiting))
        ended_jobs = CounterMetricFamily("suture_jobs_ended", "Ended jobs.", labels=("kind", "exit_code"))
        counts = Counts((job.kind, str(end.exit_code)) for job, end in self._pool.ends())
        for labels, count in sorted(counts.items()):
            ended_jobs.add_metric(labels, count)
        yield ended_jobs

    def text(self) -> bytes:
        """Return all metrics in Prometheus's text format."""
        return generate_latest(self._registry)
