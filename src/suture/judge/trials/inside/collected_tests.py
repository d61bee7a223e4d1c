"""The process that has collected the tests, and runs them in forks on the code and on candidates."""

from __future__ import annotations

import gc
import json
import os
import resource
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from .child_processes import (
    OWN_FOLDER,
    ROOT,
    Forks,
    HostChannel,
    LeftoverFiles,
    ProjectFiles,
    limit_cpu,
    monotonic_s,
    remove_paths,
)
from .code_swap import CodeSwapper
from .line_tracer import Tracer
from .pytest_items import Items, Outcomes, describe_error, get_traceback

OUTCOME_LETTERS = {"passed": b"P", "failed": b"f", "skipped": b"s"}
"""Outcome of a test -> what is sent for it (see `process_reports.AttemptReport`)."""
NO_LIMIT_CPU_S = 3600.0
"""CPU seconds of a test without a limit."""
TIMEOUT_EXIT_CODE = 3
"""Exit code of a fork whose test reached its CPU limit; any code but 0 would do."""
Write = Callable[[bytes], None]


class TestLimits:
    """CPU limits of the tests.

    Attributes:
        by_test: Test id -> [seconds after a test of the same file, seconds after a test of another file], in
            CPU time. In the second case the test also sets up what the tests of its file share.
    """

    __test__ = False

    def __init__(self) -> None:
        self.by_test: dict[str, list[float]] = {}

    def get(self, test: str, previous: str, extra_cpu_s: float) -> float:
        """Return the CPU seconds of a test, given the test that ran before it."""
        same_file_s, other_file_s = self.by_test.get(test, (NO_LIMIT_CPU_S, NO_LIMIT_CPU_S))
        is_same_file = previous.partition("::")[0] == test.partition("::")[0]
        return (same_file_s if is_same_file else other_file_s) + extra_cpu_s


class ReportForwarder:
    """Forwards the report lines of a fork to the host, and counts them."""

    def __init__(self, answers: HostChannel) -> None:
        self._answers = answers
        self._incomplete_line = b""
        self.count = 0
        self.last_line = b""

    def forward(self, output: bytes) -> None:
        """Take some output of the fork; it may end in the middle of a line."""
        lines, newline, self._incomplete_line = (self._incomplete_line + output).rpartition(b"\n")
        if newline:
            self.count += lines.count(b"\n") + 1
            self.last_line = lines.rpartition(b"\n")[2]
            self._answers.write_raw(lines)


class CollectedTests:
    """Runs the collected tests in forks of this process."""

    def __init__(
        self,
        items: Items,
        outcomes: Outcomes,
        files: ProjectFiles,
        limits: TestLimits,
        tracer: Tracer,
        forks: Forks,
    ) -> None:
        self._items, self._outcomes, self._files, self._forks = items, outcomes, files, forks
        self._limits, self._tracer = limits, tracer
        self._leftovers = LeftoverFiles()
        self._known_results: dict[Any, dict[str, Any]] = {}
        self._find_functions(files.texts)

    def serve(self, requests: HostChannel, answers: HostChannel) -> None:
        """Answer requests until the connection ends."""
        while True:
            command = requests.read()
            if command is None:
                return
            if command["op"] == "run_unchanged":
                self._run_unchanged(command, answers)
            elif command["op"] == "limits":
                self._limits.by_test = command["limits"]
                answers.write({})
            elif command["op"] == "set_files":
                self._files, self._tracer = ProjectFiles(command["texts"]), Tracer(command["files"])
                self._find_functions(command["texts"])
                answers.write({})
            else:
                answers.write(self._try(command))
            requests.write({})  # the parent process forwards the next request after this

    def _find_functions(self, texts: dict[str, str]) -> None:
        """Find the functions of files that candidates change, and exempt existing objects from collection."""
        gc.unfreeze()  # frozen objects would not be found
        self._swapper = CodeSwapper(texts)
        gc.collect()
        gc.freeze()

    def _run_unchanged(self, command: dict[str, Any], answers: HostChannel) -> None:
        """Run each test once on the unchanged code; after one that ends its process, use a new fork."""
        end_s = monotonic_s() + command["timeout_s"]
        tests = command["tests"]
        waiting = self._items.in_order if tests is None else self._items.select(tests)
        while waiting and monotonic_s() < end_s:
            reports = ReportForwarder(answers)
            run = partial(self._run_tests_unchanged, waiting, command)
            _, finished = self._forks.run(run, command["silence_s"], end_s=end_s, on_output=reports.forward)
            count = reports.count
            if finished and count >= len(waiting):
                break
            reported_timeout = reports.last_line and json.loads(reports.last_line)["outcome"] == "timeout"
            was_killed = not finished and not reported_timeout and count < len(waiting)
            if was_killed and monotonic_s() < end_s:
                killed_test = waiting[count][0]
                report = {"test": killed_test, "outcome": "timeout", "seconds": 0.0, "wall_s": 0.0}
                answers.write({**report, "frames": [], "lines": {}, "calls": []})
                count += 1
            waiting = waiting[count:]
        answers.write({"done": True})

    def _run_tests_unchanged(self, waiting: list[Any], command: dict[str, Any], write: Write) -> None:
        slow = command["slow"]
        frames: list[tuple[str, int]] = []
        errors: list[dict[str, Any]] = []
        left_behind: list[str] = []
        tracer, traces = self._tracer, command["trace"]

        def report(test: str, outcome: str) -> None:
            line = {
                "test": test,
                "outcome": outcome,
                "seconds": _cpu_s() - cpu_before_s,
                "wall_s": monotonic_s() - began_s,
                "frames": frames,
            }
            line.update(errors[0] if errors else {})
            line.update(tracer.take())
            write(json.dumps(line).encode("ascii") + b"\n")

        def on_error(fault: BaseException) -> None:
            tracer.stop()
            frames.extend(tracer.get_error_frames(fault))
            errors.append(describe_failure(fault))

        def report_timeout(signal: int, frame: Any) -> None:
            tracer.stop()
            frames[:0] = tracer.get_stack(frame)
            report(test, "timeout")
            remove_paths([*left_behind, *self._leftovers.find_new(before)])
            os._exit(TIMEOUT_EXIT_CODE)

        self._outcomes.on_error = on_error
        for number, (test, item) in enumerate(waiting):
            following = waiting[number + 1][1] if number + 1 < len(waiting) else None
            del frames[:], errors[:]
            before = self._leftovers.list_files()
            cpu_before_s, began_s = _cpu_s(), monotonic_s()
            limit_cpu(slow.get(test, command["limit_cpu_s"]), report_timeout)
            if traces:
                tracer.start(takes_shortcuts=test not in slow)
            outcome = self._outcomes.run(item, following)
            tracer.stop()
            report(test, outcome)
            if outcome == "failed":
                # Later tests find what it left, as in the user's run, but candidates must not.
                left_behind += self._leftovers.find_new(before)
        remove_paths(left_behind)

    def _try(self, command: dict[str, Any]) -> dict[str, Any]:
        """Run tests on a candidate; equal code runs only once."""
        pairs: list[Any] = []
        key: Any = None
        changed = ""
        path = command.get("path")
        if path is not None:
            changed = self._files.apply_edits(command)
            try:
                key, pairs = self._swapper.plan(path, changed, command["edits"])
            except (SyntaxError, ValueError, RecursionError):
                return {"outcomes": "", "finished": True, "unsupported": True}
            if key is None:  # equal code fails like the unchanged code
                return {"outcomes": "f", "finished": True, "unsupported": False}
            key = (key, json.dumps(command["tests"]), command["extra_cpu_s"], command["trace"])
            if key in self._known_results:
                return self._known_results[key]
        result = self._run_candidate(command, path, changed, pairs)
        if key is not None:
            self._known_results[key] = result
        return result

    def _run_candidate(
        self, command: dict[str, Any], path: Any, changed: str, pairs: list[Any]
    ) -> dict[str, Any]:
        tests, items = command["tests"], self._items
        chosen = items.select_in_order(self._limits.by_test) if tests is None else items.select(tests)

        def act(write: Write) -> None:
            for function, code in pairs:
                function.__code__ = code
            tracer = self._tracer if command["trace"] else None
            run_tests(chosen, self._outcomes, self._limits, command, write, tracer)

        before = self._leftovers.list_files()
        if path is not None:
            self._files.write(path, changed, command["number"])
        output, finished = self._forks.run(
            act, command["silence_s"], end_s=monotonic_s() + command["timeout_s"]
        )
        remove_paths(self._leftovers.find_new(before))
        if path is not None:
            self._files.restore(path)
        return {**parse_outcomes(output), "finished": finished, "unsupported": False}


def describe_failure(fault: BaseException) -> dict[str, Any]:
    """Return how far a test got: its exception, and the traceback in the project."""
    return {"error": describe_error(fault), "traceback": get_traceback(fault, ROOT + os.sep, OWN_FOLDER)}


def parse_outcomes(output: bytes) -> dict[str, Any]:
    """Return what `run_tests` wrote: the letters, and how far the failing tests got."""
    lines = output.decode("ascii", "replace").split("\n")
    letters = "".join(line for line in lines if line[:1] != "{")
    failures = []
    for line in lines:
        with suppress(ValueError):  # the line of a killed fork may be cut
            failures += [json.loads(line)] if line[:1] == "{" else []
    return {"failures": failures, "outcomes": letters}


def run_tests(
    chosen: list[Any],
    outcomes: Outcomes,
    limits: TestLimits,
    command: dict[str, Any],
    write: Write,
    tracer: Tracer | None = None,
) -> None:
    """Run tests on a candidate, and write one letter for each; stop after the command's number of failures.

    Once a test has passed, more failures are allowed: the number of tests that pass shows whether the
    candidate is a partial fix. With a tracer, the lines of each test are written too.
    """
    failed, previous = 0, ""
    max_failures, max_failures_after_pass = command["max_failures"]
    failures: list[dict[str, Any]] = []

    def on_error(fault: BaseException) -> None:
        if tracer is not None:
            tracer.stop()
        if not failures:
            failures.append(describe_failure(fault))

    outcomes.on_error = on_error
    for number, (test, item) in enumerate(chosen):
        limit_cpu(limits.get(test, previous, command["extra_cpu_s"]))
        following = chosen[number + 1][1] if number + 1 < len(chosen) else None
        if tracer is not None:
            tracer.start(takes_shortcuts=True)
        outcome = outcomes.run(item, following)
        details: dict[str, Any] = {}
        if tracer is not None:
            tracer.stop()
            details = {"error": "", "traceback": [], "lines": tracer.take()["lines"]}
        write(OUTCOME_LETTERS[outcome])
        previous = test
        failed += outcome == "failed"
        if outcome == "passed":
            max_failures = max_failures_after_pass
        if outcome == "failed" and failures:
            details.update(failures[0])
        if details:
            write(b"\n" + json.dumps({"test": test, **details}).encode("ascii") + b"\n")
        failures.clear()
        if failed >= max_failures:
            return


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
