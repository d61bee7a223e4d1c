"""What Prometheus is told of this server; what runs add up to is in the database (GET /v1/metrics)."""

from __future__ import annotations

import time
from collections import Counter as Counts
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from suture.interfaces.jobs import JobRegistry


class RequestCounter:
    """Counts each request of an application when its answer begins."""

    def __init__(self, app: ASGIApp, metrics: ServerMetrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and count its answer."""
        begun_s = time.perf_counter()

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                route = getattr(scope.get("route"), "path", "none")
                seconds = time.perf_counter() - begun_s
                self._metrics.count(scope["method"], route, message["status"], seconds)
            await send(message)

        await self._app(scope, receive, counted)


class ServerMetrics(Collector):
    """Counts requests, and looks at the pool when it is asked."""

    def __init__(self, pool: JobRegistry) -> None:
        self._pool = pool
        self._registry = CollectorRegistry()
        labels = ("method", "route")
        self._requests = Counter(
            "suture_requests", "Requests answered.", (*labels, "status"), registry=self._registry
        )
        self._seconds = Histogram(
            "suture_request_seconds", "Seconds until an answer began.", labels, registry=self._registry
        )
        self._registry.register(self)

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count an answer.

        Args:
            method: Of the request.
            route: The route's pattern, and never the path: a caller must not make new series.
            status: Of the answer.
            seconds: Until the answer began.
        """
        known = method if method in ("GET", "HEAD", "POST") else "other"
        self._requests.labels(known, route, str(status)).inc()
        self._seconds.labels(known, route).observe(seconds)

    def collect(self) -> Iterator[Metric]:
        """What the pool holds now."""
        yield GaugeMetricFamily("suture_jobs_running", "Jobs being done.", value=self._pool.running)
        yield GaugeMetricFamily("suture_jobs_waiting", "Jobs in the queue.", value=len(self._pool.waiting))
        ended = CounterMetricFamily("suture_jobs_ended", "Jobs that ended.", labels=("kind", "exit_code"))
        counts = Counts((job.kind, str(end.exit_code)) for job, end in self._pool.ends())
        for names, count in sorted(counts.items()):
            ended.add_metric(names, count)
        yield ended

    def text(self) -> bytes:
        """All of it, in Prometheus's own format."""
        return generate_latest(self._registry)
