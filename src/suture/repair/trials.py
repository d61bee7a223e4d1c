"""Trials behind the wall: the tests traced once, then run on many candidates in forks of one process.

What they say orders and sorts out candidates; no verdict is made of it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, Literal

from suture.checks.programs import PRIVATE
from suture.checks.test_command import TestCommand
from suture.repair.edits import Edit
from suture.repair.reading import Answered, Collected, Screened, Seen, entries_of

__all__ = ["Call", "Proposal", "Spectrum", "TestRun", "Trial", "compare", "locate", "screen"]

PLUGIN = "suture_pytest"
PARTS = ("suture_pytest", "suture_swap", "suture_told", "suture_trial")
TRACE_S = 0.4
"""CPU seconds of one traced test: what never ends has shown its lines by then."""
LEAST_S = 0.08
"""CPU seconds of one test of a candidate, at least: pytest itself takes a few hundredths."""
CALL_S = 0.15
FOUND = "found"


@dataclass(frozen=True, kw_only=True)
class Call:
    """A call out of the tests: where the function that was called begins, and the arguments as source."""

    path: str
    function: str
    line: int
    arguments: str


@dataclass(frozen=True, kw_only=True)
class TestRun:
    """One test, seen once.

    Attributes:
        id: Its node id, as pytest here calls it.
        outcome: How it ended.
        seconds: CPU seconds, slowed down by tracing.
        lines: Path -> the lines that ran.
        frames: Where an exception, or the time-out, went through the project's code, the outermost first.
    """

    __test__ = False

    id: str
    outcome: Literal["passed", "failed", "skipped", "timeout"]
    seconds: float
    lines: Mapping[str, frozenset[int]]
    frames: tuple[tuple[str, int], ...] = ()

    @property
    def failed(self) -> bool:
        """Whether it failed or did not end."""
        return self.outcome in ("failed", "timeout")


@dataclass(frozen=True, kw_only=True)
class Spectrum:
    """What one traced run of all tests showed.

    Attributes:
        tests: The tests that were run.
        imported: Path -> lines that ran while the tests were collected.
        collect_s: CPU seconds until then.
        errors: Files that could not be collected.
        calls: Calls out of the tests.
        collected: Ids of all tests, in their order.
        known: Ids of tests that fail when all are run in their order; empty where that is not known.
    """

    tests: tuple[TestRun, ...] = ()
    imported: Mapping[str, frozenset[int]] = field(default_factory=dict)
    collect_s: float = 0.0
    errors: int = 0
    calls: tuple[Call, ...] = ()
    collected: tuple[str, ...] = ()
    known: frozenset[str] = frozenset()

    @property
    def failing(self) -> tuple[TestRun, ...]:
        """Tests that fail; of those that fail only when they are run alone, none."""
        failed = tuple(test for test in self.tests if test.failed)
        return tuple(test for test in failed if test.id in self.known) or failed


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """A candidate to be tried.

    Attributes:
        path: The file that it changes.
        edits: How.
        label: In a few words.
        score: How likely it is a repair.
        operators: The operators that made it.
        swap: Whether it can be put into a process that has imported the file.
    """

    path: str
    edits: tuple[Edit, ...]
    label: str
    score: float
    operators: tuple[str, ...]
    swap: bool = True


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What one candidate showed: failing tests that pass now, that still fail, and others that it broke.

    Attributes:
        plausible: Whether it came to the end of all tests and none failed.
        unsupported: Whether it could not be tried in this way.
        late: Whether it was killed because a test did not end.
    """

    passing: int
    failing: int
    broken: int
    plausible: bool
    unsupported: bool
    late: bool


async def locate(
    command: TestCommand, files: Sequence[str], failing: Collection[str], seconds: float
) -> Spectrum:
    """Run each test once, with eyes open.

    Args:
        command: A pytest command.
        files: The project's files to look at.
        failing: Ids of tests to run first.
        seconds: Wall-clock seconds, after which what was seen must do.

    Raises:
        SandboxError: The wall failed.
    """
    job = {"mode": "locate", "files": list(files), "failing": sorted(failing), "trace_s": TRACE_S}
    spectrum: dict[str, Any] = {}
    tests: list[TestRun] = []
    calls: list[Call] = []
    known = frozenset(files)
    told: Iterator[Seen | Collected] = entries_of(await _run(command, job, seconds), Seen, Collected)
    for entry in told:
        calls += [
            Call(path=call[0], function=call[1], line=call[2], arguments=call[3])
            for call in entry.calls
            if tuple(map(type, call)) == (str, str, int, str) and call[0] in known
        ]
        lines = {path: frozenset(numbers) for path, numbers in entry.lines.items() if path in known}
        if isinstance(entry, Collected):
            spectrum = {"imported": lines, "collect_s": entry.seconds, "errors": entry.errors}
            spectrum["collected"] = entry.collected
            continue
        frames = [frame for frame in entry.frames if tuple(map(type, frame)) == (str, int)]
        tests.append(
            TestRun(
                id=entry.test,
                outcome=entry.outcome,
                seconds=entry.seconds,
                lines=lines,
                frames=tuple((path, line) for path, line in frames if path in known),
            )
        )
    return Spectrum(tests=tuple(tests), calls=tuple(calls), known=frozenset(failing), **spectrum)


async def screen(
    command: TestCommand,
    proposals: Sequence[Proposal],
    spectrum: Spectrum,
    texts: Mapping[str, str],
    seconds: float,
    *,
    least_s: float = LEAST_S,
) -> dict[int, Trial]:
    """Run the tests on candidates: those that fail first, and the others where all of those pass.

    Args:
        command: A pytest command.
        proposals: What to try, in this order.
        spectrum: What the tests do on the project as it is.
        texts: Path -> text of the files that candidates change.
        seconds: Wall-clock seconds for all of them.
        least_s: CPU seconds that each test may use at least.

    Returns:
        Position in `proposals` -> what was seen; some may be missing when the time was up.

    Raises:
        SandboxError: The wall failed.
    """
    ran = [test for test in spectrum.tests if test.outcome != "skipped"]
    limits = {t.id: least_s if t.outcome == "timeout" else least_s + t.seconds for t in ran}
    by_time = sorted(spectrum.failing, key=lambda test: test.seconds)
    job = {
        "mode": "screen",
        "files": list(texts),
        "texts": dict(texts),
        "failing": [test.id for test in by_time],
        "all": [test for test in spectrum.collected if test in limits],
        "limits": limits,
        "least_s": least_s,
        "collect_s": spectrum.collect_s,
        "mutants": [
            {"path": p.path, "edits": [[e.start, e.end, e.text] for e in p.edits], "swap": p.swap}
            for p in proposals
        ],
    }
    found: dict[int, Trial] = {}
    for entry in entries_of(await _run(command, job, seconds), Screened):
        if entry.mutant < len(proposals):
            found[entry.mutant] = Trial(
                passing=entry.passing,
                failing=entry.failing,
                broken=entry.broken,
                plausible=entry.plausible,
                unsupported=entry.unsupported,
                late=entry.late,
            )
    return found


async def compare(
    command: TestCommand,
    proposals: Sequence[Proposal],
    calls: Sequence[tuple[str, str, str]],
    texts: Mapping[str, str],
    seconds: float,
    *,
    call_s: float = CALL_S,
) -> dict[int, list[str]]:
    """What candidates answer to calls.

    Args:
        command: A pytest command.
        proposals: The candidates.
        calls: File, function at its top level, and arguments as the source of a tuple.
        texts: Path -> text of the files that candidates change.
        seconds: Wall-clock seconds for all of them.
        call_s: CPU seconds of one call.

    Returns:
        Position in `proposals` -> one text for each call, as far as they were made. It begins with `!` where
        an exception came, or no answer in time.

    Raises:
        SandboxError: The wall failed.
    """
    job = {
        **{
            "mode": "compare",
            "files": list(texts),
            "texts": dict(texts),
            "limits": {},
            "least_s": 0.0,
            "call_s": call_s,
        },
        "calls": [list(call) for call in calls],
        "mutants": [
            {"path": p.path, "edits": [[e.start, e.end, e.text] for e in p.edits]} for p in proposals
        ],
    }
    answered: dict[int, list[str]] = {}
    for entry in entries_of(await _run(command, job, seconds), Answered):
        texts_of_it = [_text(answer) for answer in entry.answers[: len(calls)]]
        if entry.mutant < len(proposals) and None not in texts_of_it:
            answered[entry.mutant] = [text for text in texts_of_it if text is not None]
    return answered


async def _run(command: TestCommand, job: dict[str, Any], seconds: float) -> bytes:
    folder = resources.files("suture.repair.inside")
    own = {f"{name}.py": folder.joinpath(f"{name}.py").read_bytes() for name in PARTS}
    own["job.json"] = json.dumps({**job, "seconds": seconds}).encode("ascii")
    result = await command.run_with(PLUGIN, own, wall_s=seconds + 10, collect=(FOUND,))
    return result.files.get(f"{PRIVATE}/{FOUND}", b"")


def _text(answer: str) -> str | None:
    try:
        text = json.loads(answer)
    except (ValueError, RecursionError):
        return None
    return text if isinstance(text, str) else None
