"""Measure the service: its start, a request, an event, many listeners on one run, many runs at once.

    python benchmarks/serve.py [--listeners 200] [--requests 300] [--posted 50]

It starts `suture serve` with a scripted model in a temporary folder, and prints one JSON document. A lag is the
time from an event's own time in the ledger to its arrival at a listener, both by this machine's clock.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import httpx

TASK = "Write a function double(n) that doubles a number. For example: double(4) == 8"
REPLY = "```python\ndef double(n):\n    return 2 * n\n```"
STARTS = 5
PATIENCE_S = 300.0


def start(folder: Path, *options: str) -> tuple[subprocess.Popen[str], str, float]:
    """Start a server, and return it with its address and the seconds until it was ready."""
    script = folder / "script.json"
    script.write_text(json.dumps([REPLY]))
    environ = {**os.environ, "SUTURE_HOME": str(folder / "home")}
    begun_s = time.perf_counter()
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "suture.interfaces.cli",
            "serve",
            "--port",
            "0",
            "--model",
            f"scripted:{script}",
            *options,
        ],
        env=environ,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    url = process.stdout.readline().strip()
    while httpx.get(f"{url}/readyz").status_code != 200:
        time.sleep(0.01)
    return process, url, time.perf_counter() - begun_s


def stop(process: subprocess.Popen[str]) -> None:
    """Stop a server, and wait for its end."""
    process.terminate()
    process.communicate(timeout=PATIENCE_S)


def resident_mb(process: subprocess.Popen[str]) -> float:
    """Return the resident memory of a process in MB."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024


def timed_requests(url: str, path: str, count: int) -> dict[str, float]:
    """Return the milliseconds of successive requests over one connection."""
    took = []
    with httpx.Client(base_url=url) as client:
        for _ in range(count):
            begun_s = time.perf_counter()
            assert client.get(path).status_code == 200
            took.append((time.perf_counter() - begun_s) * 1000)
    return {"median_ms": round(median(took), 2), "p95_ms": round(quantiles(took, n=20)[-1], 2)}


async def listen(client: httpx.AsyncClient, run: str) -> tuple[list[int], list[float]]:
    """Return the numbers of all events that a listener gets, and the lag of each in milliseconds."""
    numbers, lags = [], []
    async with client.stream("GET", f"/v1/runs/{run}/events") as stream:
        async for line in stream.aiter_lines():
            if line.startswith("data: ") and (data := json.loads(line[6:])):
                numbers.append(data["seq"])
                lags.append((time.time() - data["time_s"]) * 1000)
    return numbers, lags


async def many_listeners(url: str, count: int) -> dict[str, Any]:
    """Measure one run with many listeners: lost events, and the lag of each event."""
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=url, timeout=PATIENCE_S, limits=limits) as client:
        asked = await client.post("/v1/runs", json={"kind": "write", "task": TASK})
        run = asked.json()["run"]
        heard = await asyncio.gather(*(listen(client, run) for _ in range(count)))
        whole = (await client.get(f"/v1/runs/{run}", params={"events": True})).json()
    wanted = [event["seq"] for event in whole["events"]]
    lags = [lag for _, each in heard for lag in each]
    return {
        "run": run,
        "listeners": count,
        "events": len(wanted),
        "outcome": whole["outcome"],
        "run_seconds": whole["spend"]["seconds"],
        "listeners_that_lost_one": sum(numbers != wanted for numbers, _ in heard),
        "lag_ms": {"median": round(median(lags), 1), "p95": round(quantiles(lags, n=20)[-1], 1)},
    }


def page_seconds(url: str) -> float:
    """Return the seconds until the page and all of its parts are loaded, as by a browser with an empty cache."""
    begun_s = time.perf_counter()
    with httpx.Client(base_url=url) as client:
        wanted, had = ["/"], set()
        while wanted:
            text = client.get(path := wanted.pop()).raise_for_status().text
            had.add(path)
            names = re.findall(r"[\"'](?:\./|/page/|page/)([\w-]+\.(?:js|css|svg))[\"']", text)
            wanted += [one for name in names if (one := f"/page/{name}") not in had and one not in wanted]
    return time.perf_counter() - begun_s


async def many_runs(url: str, count: int) -> dict[str, Any]:
    """Request many runs at once; a rejected request is repeated when the server has said."""
    refused: list[str] = []
    async with httpx.AsyncClient(base_url=url, timeout=PATIENCE_S) as client:

        async def ask() -> str:
            while True:
                answer = await client.post("/v1/runs", json={"kind": "write", "task": TASK})
                if answer.status_code == 202:
                    return str(answer.json()["run"])
                assert answer.status_code == 429, answer.text
                refused.append(answer.headers["Retry-After"])
                await asyncio.sleep(float(refused[-1]))

        begun_s = time.perf_counter()
        runs = await asyncio.gather(*(ask() for _ in range(count)))
        ends = [[line async for line in _data_of(client, run)][-1] for run in runs]
        took_s = time.perf_counter() - begun_s
        shown = [
            (await client.get(f"/v1/runs/{run}", params={"events": True})).json() for run in sorted(runs)
        ]
    starts = [one["events"][0]["time_s"] for one in shown]
    return {
        "asked_at_once": count,
        "refused_with_429": len(refused),
        "retry_after": sorted(set(refused)),
        "ended": len(ends),
        "outcomes": dict(Counter(one["outcome"] for one in shown)),
        # The place of a run is the rank of its start; runs that start together may swap places.
        "most_places_out_of_order": max(
            abs(place - at) for place, at in enumerate(sorted(range(count), key=starts.__getitem__))
        ),
        "seconds": round(took_s, 1),
    }


async def _data_of(client: httpx.AsyncClient, run: str) -> AsyncIterator[str]:
    async with client.stream("GET", f"/v1/runs/{run}/events") as stream:
        async for line in stream.aiter_lines():
            if line.startswith("data: "):
                yield line


def main() -> None:
    """Measure, and print the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--listeners", type=int, default=200)
    parser.add_argument("--requests", type=int, default=300)
    parser.add_argument("--posted", type=int, default=50)
    given = parser.parse_args()
    started, shown = [], []
    for _ in range(STARTS):
        with tempfile.TemporaryDirectory() as name:
            process, url, seconds = start(Path(name))
            started.append(seconds)
            shown.append(seconds + page_seconds(url))
            stop(process)
    with tempfile.TemporaryDirectory() as name:
        process, url, _ = start(Path(name))
        one = asyncio.run(many_listeners(url, 1))
        before_mb = resident_mb(process)
        many = [asyncio.run(many_listeners(url, given.listeners)) for _ in range(2)]
        told = {
            "start_s": {"median": round(median(started), 2), "most": round(max(started), 2), "of": STARTS},
            "start_with_page_s": {"median": round(median(shown), 2), "most": round(max(shown), 2)},
            "requests": {
                path: timed_requests(url, path.replace("RUN", one["run"]), given.requests)
                for path in ("/healthz", "/v1/runs/RUN", "/v1/runs")
            },
            "one_listener": one,
            "many_listeners": many,
            "resident_mb": {"before": round(before_mb, 1), "after": round(resident_mb(process), 1)},
        }
        stop(process)
    with tempfile.TemporaryDirectory() as name:
        process, url, _ = start(Path(name), "--set", "serve.max_concurrent_runs=4", "--set", "serve.queue=32")
        told["many_runs"] = asyncio.run(many_runs(url, given.posted))
        stop(process)
    print(json.dumps(told, indent=1))


if __name__ == "__main__":
    main()
