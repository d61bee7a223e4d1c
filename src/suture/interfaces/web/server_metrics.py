"""Prometheus metrics of this server; totals over all runs are in the database (GET /v1/metrics)."""

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
