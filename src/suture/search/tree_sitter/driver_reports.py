"""What a driver saw of the tests on the unchanged code."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from suture.core.ledger.kinds import DifferingTrial
from suture.judge.trials.trial_records import TestOutcome, TestRun, Trial

PLACE = re.compile(r"([^\s():]+):(\d{1,9})\b(?::\d+)?")
MOST_FAULT_CHARS = 400
MOST_MS = 1e6
MOST_STACK_CHARS = 4000
"""As a driver cuts it; a candidate's own line may hold any number."""
OUTCOMES: Mapping[str, TestOutcome] = {"passed": "passed", "failed": "failed", "skipped": "skipped"}


def runs_of(
    seen: Sequence[Mapping[str, Any]],
    texts: Mapping[str, str],
    fault: Callable[[str], str],
    is_known: Callable[[str], bool],
) -> Iterator[TestRun]:
    """The tests that failed, and of the others those that are known.

    Args:
        seen: What a driver told of each.
        texts: Path -> text of the files that may be changed.
        fault: What in the words of a failing test says what was wrong.
        is_known: Whether a test's name is one of the user's run, or of a file of which that told not all.
    """
    for one in seen:
        name, status = str(one.get("id", "")), OUTCOMES.get(str(one.get("status")))
        if not name or status is None or not (status == "failed" or is_known(name)):
            continue
        lines = found if isinstance(found := one.get("lines"), dict) else {}
        stack = str(one.get("stack", ""))[:MOST_STACK_CHARS]
        places = [(path, int(at)) for path, at in PLACE.findall(stack)]
        near = [(own, at) for path, at in places for own in texts if path.endswith(f"/{own}")]
        yield TestRun(
            id=name,
            outcome=status,
            seconds=0.0,
            lines={
                path: frozenset(at for at in listed(own) if isinstance(at, int))
                for path, own in lines.items()
                if path in texts
            },
            frames=tuple(reversed(near[:8])),
            fault=fault(stack)[:MOST_FAULT_CHARS],
        )


def owner_of(name: str) -> str:
    """The file of a test, by its name."""
    return name.partition("::")[0]


def stuck_files(tests: Collection[str], before: Mapping[str, str]) -> list[str]:
    """Files that failed before any test of theirs was reported.

    Args:
        tests: Those that the runner loads.
        before: Test, or file -> how it ended in the user's run.
    """
    begun = {owner_of(name) for name in before if "::" in name}
    return [
        p for p in sorted(tests) if before.get(p, "passed") not in ("passed", "skipped") and p not in begun
    ]


def longest_ms(seen: Sequence[Mapping[str, Any]]) -> float:
    """CPU time of the longest test that passes."""
    return max((float(one.get("cpu_ms", 0)) for one in seen if one.get("status") == "passed"), default=0.0)


def seconds_of(seen: Sequence[Mapping[str, Any]]) -> float:
    """How long the tests took."""
    took = (one.get("ms") for one in seen)
    return sum(ms for ms in took if isinstance(ms, (int, float)) and 0 <= ms < MOST_MS) / 1000


def differing_of(before: Mapping[str, str], ended: Mapping[str, str]) -> tuple[DifferingTrial, ...]:
    """The tests that end otherwise here than in the user's run.

    Args:
        before: Test -> its status there.
        ended: Test -> its status here.
    """
    fine = ("passed", "skipped")
    return tuple(
        DifferingTrial(test=name, run=status, trial=ended.get(name, "missing"))
        for name, status in before.items()
        if (status in fine) != (ended.get(name, "missing") in fine)
    )


def trial_of(line: Mapping[str, Any], guiding: Sequence[str]) -> Trial | None:
    """A candidate that made some failing test pass, and not all of them; `None` where it did not.

    Args:
        line: What a driver told of it.
        guiding: The failing tests.
    """
    passed = frozenset(name for name in listed(line.get("passed")) if name in guiding)
    if not passed or line.get("failed") not in guiding:
        return None
    return Trial(
        passing=len(passed),
        failing=len(guiding) - len(passed),
        broken=0,
        plausible=False,
        late=bool(line.get("late")),
        passed=passed,
    )


def covering_of(runs: Sequence[TestRun]) -> dict[str, list[str]]:
    """File of the project -> the test files that run something of it."""
    found: dict[str, set[str]] = {}
    for run in runs:
        for path, lines in run.lines.items():
            if lines:
                found.setdefault(path, set()).add(run.id.partition("::")[0])
    return {path: sorted(owners) for path, owners in found.items()}


def listed(value: object) -> list[Any]:
    """A list that a driver told; whatever else stands in its place is as none."""
    return value if isinstance(value, list) else []
