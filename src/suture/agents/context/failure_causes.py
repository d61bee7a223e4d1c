"""Group failing tests by their cause, and separate those that no change of the code could make pass."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from suture.core.records import CheckOutcome, CodeFrame, Counterexample, Task, Verdict
from suture.judge.triage.environment_faults import find_environment_fault
from suture.project.languages import is_source
from suture.project.workspace import decode_text, is_test_file
from suture.sandbox import BOX

VARIABLE_PARTS = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|0x[0-9a-f]+|\d+(?:\.\d+)?""")
"""Parts of a message that differ between tests with one cause: quoted strings, addresses and numbers."""
MAX_SHAPE_CHARS = 200
RUN_ENDINGS = ("exit_code", "signal", "time_limit")
"""Codes of failures of a whole run."""
PRINTED_POSITION = re.compile(
    r"(?P<path>[\w./-]+\.\w+)(?:\", line |:)(?P<line>\d+)(?:, in (?P<function>\w+)$)?", re.MULTILINE
)
"""Matches `File "/box/cart.py", line 3, in total` of Python, and `cart.go:3` of other programs."""
MAX_PRINTED_FRAMES = 8


@dataclass(frozen=True, kw_only=True)
class FailureCause:
    """Failing tests with one cause.

    Attributes:
        outcomes: The outcomes of the tests; the first one stands for all of them, because its traceback is shortest.
    """

    outcomes: tuple[CheckOutcome, ...]

    @property
    def tests(self) -> tuple[str, ...]:
        """The ids of the tests."""
        return tuple(outcome.check_id for outcome in self.outcomes)

    @property
    def fact(self) -> Counterexample:
        """What the first test saw."""
        first = self.outcomes[0]
        return first.counterexample or Counterexample(check_id=first.check_id, exception=first.status)


@dataclass(frozen=True, kw_only=True)
class FailureGroups:
    """The failing tests of a verdict that decide.

    Attributes:
        causes: The causes in the code, those with the most tests first.
        environment: Why tests fail through no fault of the code -> their number.
        unseen: Number of failing tests of which nothing is known, such as those that never ran.
    """

    causes: tuple[FailureCause, ...]
    environment: Mapping[str, int]
    unseen: int = 0


def group_failures(verdict: Verdict, task: Task, threshold: float) -> FailureGroups:
    """Group the failing tests of a verdict by cause.

    Args:
        threshold: Trust below which a check does not decide. Such checks, and those of provenance `oracle`, are
            left out.
    """
    failing = [outcome for outcome in verdict.outcomes if is_deciding_failure(outcome, threshold)]
    code_texts = [
        decode_text(content)
        for path, content in task.files.items()
        if is_source(path, task.language) and not is_test_file(path)
    ]

    @cache
    def explain(exception: str) -> str:
        fault = find_environment_fault(exception, task.files, code_texts, task.excluded_files)
        return fault.explanation if fault is not None else ""

    groups: dict[tuple[object, ...], list[CheckOutcome]] = {}
    environment: dict[str, int] = {}
    unseen = 0
    for outcome in failing:
        fact = outcome.counterexample
        explanation = explain(fact.exception) if fact is not None and fact.exception else ""
        if explanation:
            environment[explanation] = environment.get(explanation, 0) + 1
        elif fact is None:
            unseen += 1
        else:
            groups.setdefault(_cause_key(fact), []).append(outcome)
    causes = [
        FailureCause(outcomes=tuple(sorted(outcomes, key=_count_frames))) for outcomes in groups.values()
    ]
    causes.sort(key=lambda cause: -len(cause.outcomes))
    return FailureGroups(causes=tuple(causes), environment=environment, unseen=unseen)


def _count_frames(outcome: CheckOutcome) -> int:
    """Return the length of a failure's traceback: the shortest one shows the cause with the least around it."""
    return len(outcome.counterexample.frames) if outcome.counterexample is not None else 0


def is_deciding_failure(outcome: CheckOutcome, threshold: float) -> bool:
    """Return whether a check failed that may be shown as a fact: it is trusted, and not one of the hidden tests."""
    is_failing = not outcome.passed and outcome.status != "skipped"
    return is_failing and outcome.trust >= threshold and outcome.provenance != "oracle"


def project_frames(fact: Counterexample) -> tuple[CodeFrame, ...]:
    """Return the frames in the project's own code, innermost first; without tests."""
    frames = [frame for frame in reversed(fact.frames) if not is_test_file(frame.file)]
    if not frames and fact.file and fact.line is not None and not is_test_file(fact.file):
        frames = [CodeFrame(file=fact.file, line=fact.line)]
    return tuple(frames)


def is_whole_run(outcome: CheckOutcome) -> bool:
    """Return whether an outcome is that of a whole command, for which only the output says what failed."""
    fact = outcome.counterexample
    return outcome.evidence == "exit_status" or (fact is not None and fact.code in RUN_ENDINGS)


def find_printed_frames(output: str, paths: Container[str]) -> tuple[CodeFrame, ...]:
    """Return the positions in files of the project that a command's output names, the last one first."""
    frames = [
        CodeFrame(file=path, line=int(match["line"]), function=match["function"] or "")
        for match in PRINTED_POSITION.finditer(output)
        if (path := match["path"].removeprefix(f"{BOX}/").removeprefix("./")) in paths
    ]
    return tuple(dict.fromkeys(reversed(frames)))[:MAX_PRINTED_FRAMES]


def _cause_key(fact: Counterexample) -> tuple[object, ...]:
    """Return what failures with one cause have in common: exception type, raising frame, shape of the message."""
    raising = next(iter(project_frames(fact)), None)
    if raising is not None:
        return fact.exception_type, raising.file, raising.line, _shape(fact.exception)
    # The test itself noticed it: the same statement may be run with many parameters.
    test = fact.check_id.partition("[")[0]
    place = (fact.frames[-1].file, fact.frames[-1].line) if fact.frames else (test, fact.line)
    return (fact.exception_type, *place, _shape(fact.exception), _shape(fact.call))


def _shape(text: str) -> str:
    return VARIABLE_PARTS.sub("?", text.partition("\n")[0][:MAX_SHAPE_CHARS])


def list_tests(tests: Sequence[str], max_listed: int) -> str:
    """Return test ids as a list in one line, with the number of those that are left out."""
    listed = ", ".join(f"`{test}`" for test in tests[:max_listed])
    return listed + (f" and {len(tests) - max_listed} more" if len(tests) > max_listed else "")


def count_deciding_checks(
    verdict: Verdict, baseline: Verdict | None, threshold: float
) -> tuple[int, int, int]:
    """Return `(passed, failed, regressed)`: the numbers of deciding checks with that result on a candidate.

    A check that passed on the baseline, the user's own code, regresses if it no longer passes.
    """
    deciding = [o for o in verdict.outcomes if o.trust >= threshold and o.status != "skipped"]
    passed = sum(outcome.passed for outcome in deciding)
    passed_before = baseline.passed if baseline else frozenset()
    # A check that is skipped now and passed before has regressed, so skipped checks are among these ids.
    deciding_ids = {outcome.check_id for outcome in verdict.outcomes if outcome.trust >= threshold}
    return passed, len(deciding) - passed, len((passed_before & deciding_ids) - verdict.passed)


def collect_deciding_facts(verdict: Verdict, threshold: float) -> tuple[Counterexample, ...]:
    """Return the counterexamples of deciding checks: nothing is repaired against an untrusted test."""
    outcomes = [o for o in verdict.outcomes if o.trust >= threshold and not o.passed]
    return tuple(o.counterexample for o in outcomes if o.counterexample is not None)
