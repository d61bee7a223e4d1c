"""Measure the commands that read a run's ledger, on ledgers of several lengths.

    python benchmarks/large_ledger.py [--events 1000 20000 200000] [--source FOLDER]

A run with a scripted model waits for an answer. The events of its rounds are then repeated in its ledger, and it is
shown, resumed and verified. The table has for each command and length the wall-clock seconds, the seconds of
processor time and the most memory in MB; `--source` measures another copy of `src`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TASK = "Write double(n).\n\n>>> double(2)\n4\n>>> double(5)\n10\n"
WRONG = "```python\ndef double(n):\n    return n * n\n```"
RIGHT = "```python\ndef double(n):\n    return n + n\n```"
LIMITS = ("--set", "budget.attempts=1000000", "--set", "budget.tokens=1000000000")
REPEATED = ("budget.reserved", "model.called", "budget.settled", "candidate.proposed", "candidate.checked")


@dataclass(frozen=True, kw_only=True)
class Usage:
    """What a command used: seconds by the clock, seconds of processor time, and megabytes at most."""

    wall_s: float
    processor_s: float
    peak_mb: float


def run_measured(source: Path, home: Path, *arguments: str, exit_codes: Sequence[int] = (0,)) -> Usage:
    """Run a command of Suture, and return what it used."""
    environment = {**os.environ, "SUTURE_HOME": str(home), "PYTHONPATH": str(source), "NO_COLOR": "1"}
    command = [sys.executable, "-m", "suture.interfaces.cli", *arguments]
    with tempfile.TemporaryFile() as errors:
        begun_s = time.perf_counter()
        process = subprocess.Popen(
            command,
            env=environment,
            cwd=home.parent,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )
        _, status, used = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - begun_s
        errors.seek(0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode in exit_codes, errors.read().decode()
    return Usage(wall_s=wall_s, processor_s=used.ru_utime + used.ru_stime, peak_mb=used.ru_maxrss / 1024)


def park_run(source: Path, home: Path) -> Path:
    """Start a run that waits for an answer after its first round, and return its ledger."""
    script = home.parent / "script.json"
    script.write_text(json.dumps([WRONG, *[RIGHT] * 8]))
    options = ("--model", f"scripted:{script}", "--autonomy", "review_all", "--set", "repair.enabled=false")
    run_measured(source, home, "run", TASK, *options, *LIMITS, exit_codes=(5,))
    (ledger,) = (home / "runs").glob("*/ledger.jsonl")
    run_measured(source, home, "resume", ledger.parent.name, "--answer", "approve", exit_codes=(5,))
    return ledger


def lengthen(ledger: Path, count: int) -> None:
    """Repeat the events of the run's rounds until its ledger has `count` events; its last event stays the last."""
    *events, last = [json.loads(line) for line in ledger.read_text().splitlines()]
    cycle = [event for event in events if event["kind"] in REPEATED]
    with ledger.open("w") as file:
        for event in (*events, *_repeat(cycle, len(events), count - len(events) - 1)):
            file.write(json.dumps(event, separators=(",", ":")) + "\n")
        file.write(json.dumps({**last, "seq": max(count - 1, len(events))}, separators=(",", ":")) + "\n")


def _repeat(cycle: Sequence[dict[str, Any]], first_seq: int, count: int) -> Iterator[dict[str, Any]]:
    """Yield copies of some events that cost nothing."""
    new_seq: dict[int, int] = {}
    for number in range(count):
        event = cycle[number % len(cycle)]
        seq = new_seq[event["seq"]] = first_seq + number
        data = dict(event["data"])
        if event["kind"].startswith("budget."):
            data |= dict.fromkeys(("attempts", "tokens", "completion_tokens", "prompt_tokens"), 0)
            data.pop("tokens" if event["kind"] == "budget.settled" else "prompt_tokens")
        if "reservation" in data:
            data["reservation"] = new_seq.get(data["reservation"], 0)
        yield {**event, "seq": seq, "data": data}


def measure(source: Path, count: int) -> Iterator[tuple[str, Usage]]:
    """Yield each command with what it used on a ledger of `count` events."""
    with tempfile.TemporaryDirectory() as name:
        home = Path(name) / "home"
        ledger = park_run(source, home)
        lengthen(ledger, count)
        run = ledger.parent.name
        yield "show", run_measured(source, home, "show", run)
        yield "show --json", run_measured(source, home, "show", run, "--json")
        yield "resume", run_measured(source, home, "resume", run, "--answer", "approve", exit_codes=(0, 5))
        yield "verify", run_measured(source, home, "verify", run, exit_codes=(0, 2))
        yield "history", run_measured(source, home, "history")


def main() -> None:
    """Measure every length, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--events", type=int, nargs="+", default=[1000, 20_000, 200_000])
    parser.add_argument("--source", type=Path, default=Path(__file__).parents[1] / "src")
    given = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; {given.source}\n")
    print("| events | command | wall, s | processor, s | peak, MB |\n|---:|---|---:|---:|---:|")
    for count in given.events:
        for command, used in measure(given.source.resolve(), count):
            print(
                f"| {count:,} | {command} | {used.wall_s:.1f} | {used.processor_s:.1f} | {used.peak_mb:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
