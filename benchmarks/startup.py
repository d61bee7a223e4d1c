"""Measure how long a command takes until its first output, relative to a bare interpreter.

`python benchmarks/startup.py --rounds 15` starts each command and a bare interpreter in turn, so that a loaded
machine slows both. It prints the median of each, the median ratio, and the seconds that this ratio means for a
bare interpreter of 20 ms.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

BARE = (sys.executable, "-c", "pass")
SUTURE = (sys.executable, "-m", "suture.interfaces.cli")
IDLE_BARE_S = 0.02
"""Seconds that a bare interpreter takes on an idle machine."""


def until_the_end(command: Sequence[str], folder: Path) -> float:
    """Return the seconds until a command has ended."""
    started = time.perf_counter()
    subprocess.run(
        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    return time.perf_counter() - started


def until_the_first_line(command: Sequence[str], folder: Path) -> float:
    """Return the seconds until a command has printed its first line on stderr; it is stopped then."""
    started = time.perf_counter()
    with subprocess.Popen(
        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as running:
        assert running.stderr is not None
        line = running.stderr.readline()
        seconds = time.perf_counter() - started
        running.terminate()
    assert line.startswith((b"Model ", b"No model")), line
    return seconds


CASES = {
    "--version": (until_the_end, ["--version"]),
    "--help": (until_the_end, ["--help"]),
    "heal --help": (until_the_end, ["heal", "--help"]),
    "usage: unknown command": (until_the_end, ["haal"]),
    "usage: unknown flag": (until_the_end, ["heal", "--aply"]),
    "usage: no such folder": (until_the_end, ["heal", "nowhere"]),
    "usage: unknown setting": (until_the_end, ["heal", ".", "--set", "loop.sample=1"]),
    "usage: unknown run": (until_the_end, ["show", "nowhere"]),
    "heal, first line": (until_the_first_line, ["heal", ".", "--test", "python -m pytest -q", "--no-model"]),
    "run, first line": (until_the_first_line, ["run", "f(x)", "--model", "scripted:example"]),
}


def main() -> None:
    """Measure every case and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    load = os.getloadavg()[0]
    print(f"{rounds} rounds, load {load:.1f} on {os.cpu_count()} cores\n")
    print("| command | median, s | bare interpreter, s | ratio | at 20 ms, s |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["SUTURE_HOME"] = str(folder / "home")
        (folder / "a.py").write_text("def f(x):\n    return x\n")
        (folder / "test_a.py").write_text("from a import f\n\n\ndef test_f():\n    assert f(2) == 3\n")
        for title, (measure, arguments) in CASES.items():
            measure([*SUTURE, *arguments], folder)  # the first start reads the files from the disk
            pairs = [
                (measure([*SUTURE, *arguments], folder), until_the_end(BARE, folder)) for _ in range(rounds)
            ]
            seconds, bare = (statistics.median(side) for side in zip(*pairs, strict=True))
            ratio = statistics.median(one / other for one, other in pairs)
            print(f"| {title} | {seconds:.2f} | {bare:.3f} | {ratio:.1f} | {ratio * IDLE_BARE_S:.2f} |")


if __name__ == "__main__":
    main()
