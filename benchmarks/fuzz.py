"""Fuzz Suture with seeded attacks: wrong modules, project trees, settings files, replies of model servers.

    python benchmarks/fuzz.py [--target NAME] [--seconds 600] [--seed 1] [--case N] [--json]

Each target gets its share of the time. A case that got through is printed with its number, with which `--case`
repeats it; the exit code is then 1. `docs/results.md` says how many were tried.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass

from fuzzing.replies import ReplyTarget
from fuzzing.settings_files import SettingsTarget
from fuzzing.target import Target
from fuzzing.trees import TreeTarget
from fuzzing.verdicts import VerdictTarget

TARGETS: Mapping[str, Callable[[], Target]] = {
    "verdicts": VerdictTarget,
    "trees": TreeTarget,
    "settings": SettingsTarget,
    "replies": ReplyTarget,
}
MOST_SHOWN = 5
"""Number of broken cases of a target that are printed in full; one cause often breaks many."""


LONGEST_CASE_S = 60.0


class CaseTimeoutError(BaseException):
    """A case did not end. It is no `Exception`, so that no handler under test can catch it."""


@contextmanager
def limit_wall_time(seconds: float) -> Iterator[None]:
    """Interrupt what blocks the whole process after some seconds, such as a pipe that nobody writes to."""

    def ring(*_: object) -> None:
        raise CaseTimeoutError

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@dataclass(frozen=True, kw_only=True)
class Tally:
    """The result of one target.

    Attributes:
        target: The name of the target.
        seed: The seed of its first case.
        tried: Number of cases.
        broken: Number of the case -> what went wrong.
        seconds: Wall-clock seconds.
    """

    target: str
    seed: int
    tried: int
    broken: Mapping[int, str]
    seconds: float


async def fuzz(name: str, seed: int, seconds: float, case: int | None = None) -> Tally:
    """Try at least one case of a target, and more until the time is up; or a single one.

    Args:
        name: The target.
        seed: The seed of its first case.
        seconds: Wall-clock seconds; the case in progress is finished.
        case: The only case to try.
    """
    began_s, tried, broken = time.monotonic(), 0, {}
    target = TARGETS[name]()
    try:
        while tried == 0 or time.monotonic() - began_s < seconds:
            number = tried if case is None else case
            draw = random.Random(f"{seed}/{name}/{number}")
            try:
                with limit_wall_time(LONGEST_CASE_S):
                    found = await target.try_case(draw)
            except CaseTimeoutError:
                found = f"no end in {LONGEST_CASE_S} s"
            tried += 1
            if found:
                broken[number] = found
            if case is not None:
                break
    finally:
        await target.close()
    return Tally(
        target=name, seed=seed, tried=tried, broken=broken, seconds=round(time.monotonic() - began_s, 1)
    )


def print_tally(tally: Tally) -> None:
    """Print the result of a target."""
    print(f"{tally.target}: {len(tally.broken)} of {tally.tried} got through", end=" ")
    print(f"({tally.seconds} s, seed {tally.seed})")
    for number, found in list(tally.broken.items())[:MOST_SHOWN]:
        print(f"\n--case {number}: {found}\n".encode("utf-8", "backslashreplace").decode())


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--target", choices=TARGETS, action="append", help="only this one; may be repeated")
    parser.add_argument("--seconds", type=float, default=600, help="for all of them together")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case", type=int, help="only this case")
    parser.add_argument("--json", action="store_true", help="the tallies as JSON on stdout")
    given = parser.parse_args()
    names = given.target or list(TARGETS)
    share_s = given.seconds / len(names)
    tallies = [asyncio.run(fuzz(name, given.seed, share_s, given.case)) for name in names]
    if given.json:
        print(json.dumps([asdict(tally) for tally in tallies]))
    else:
        for tally in tallies:
            print_tally(tally)
    return int(any(tally.broken for tally in tallies))


if __name__ == "__main__":
    sys.exit(main())
