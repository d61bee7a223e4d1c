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
from .code_swap import CodeSwapper, swap_code
from .line_tracer import Tracer
from .pytest_items import Items, Outcomes, describe_error, get_traceback
from .screening import (
    CHECK_BEGINS,
    CHECK_INTERVAL,
    CHECK_PASSED,
    END_OF_CANDIDATE,
    ProcessState,
    ScreenedOutput,
    get_failure_key,
)

OUTCOME_LETTERS = {"passed": b"P", "failed": b"f", "skipped": b"s"}
"""Outcome of a test -> what is sent for it (see `process_reports.AttemptReport`)."""
NO_LIMIT_CPU_S = 3600.0
"""CPU seconds of a test without a limit."""
TIMEOUT_EXIT_CODE = 3
"""Exit code of a fork whose test reached its CPU limit; any code but 0 would do."""
EXTRA_TRACING_CPU_S = 1.5
"""CPU seconds that a test may take in addition to its limit while it is traced."""
UNSUPPORTED: dict[str, Any] = {"outcomes": "", "finished": True, "unsupported": True}
"""The result of a candidate that cannot be put into the running process, or that a screening does not settle."""
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


class CodeChange:
    """A candidate that can be put into this process.

    Attributes:
        text: The changed text of its file.
        number: The number that gives this text a time stamp of its own (see `ProjectFiles.write`).
        pairs: (function, its new code).
        key: Equal for candidates with equal results.
    """

    def __init__(self, path: str, text: str, number: int, pairs: list[Any], key: Any) -> None:
        self.path, self.text, self.number, self.pairs, self.key = path, text, number, pairs, key


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
        self._repeated_failures: dict[str, str] = {}
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
            elif command["op"] == "screen":
                lines = (json.dumps(result).encode("ascii") for result in self._screen(command))
                answers.write_raw(b"\n".join(lines))
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
            cpu_s, wall_s = _cpu_s() - cpu_before_s, monotonic_s() - began_s
            waited = _count_waits() > waits_before
            line = {
                "test": test,
                "outcome": outcome,
                "seconds": cpu_s,
                "wall_s": wall_s,
                "waited_s": max(0.0, wall_s - cpu_s) if waited else 0.0,
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
            cpu_before_s, began_s, waits_before = _cpu_s(), monotonic_s(), _count_waits()
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
        if command.get("path") is None:
            return self._run_candidate(command, None)
        planned = self._plan(command, command, command["number"])
        if not isinstance(planned, CodeChange):
            return planned
        result = self._known_results[planned.key] = self._run_candidate(command, planned)
        return result

    def _plan(
        self, command: dict[str, Any], edited: dict[str, Any], number: int
    ) -> CodeChange | dict[str, Any]:
        """Return how to put a candidate into this process, or its result if that is known without a run.

        Args:
            edited: The candidate's path and edits.
        """
        path, text = edited["path"], self._files.apply_edits(edited)
        try:
            key, pairs = self._swapper.plan(path, text, edited["edits"])
        except (SyntaxError, ValueError, RecursionError):
            return UNSUPPORTED
        if key is None:  # equal code fails like the unchanged code
            return {"outcomes": "f", "finished": True, "unsupported": False}
        key = (key, json.dumps(command["tests"]), command["extra_cpu_s"], command["trace"])
        return self._known_results.get(key) or CodeChange(path, text, number, pairs, key)

    def _run_candidate(self, command: dict[str, Any], change: CodeChange | None) -> dict[str, Any]:
        tests, items = command["tests"], self._items
        chosen = items.select_in_order(self._limits.by_test) if tests is None else items.select(tests)

        def act(write: Write) -> None:
            if change is not None:
                swap_code(change.pairs)
            tracer = self._tracer if command["trace"] else None
            run_tests(chosen, self._outcomes, self._limits, command, write, tracer)

        before = self._leftovers.list_files()
        if change is not None:
            self._files.write(change.path, change.text, change.number)
        output, finished = self._forks.run(
            act, command["silence_s"], end_s=monotonic_s() + command["timeout_s"]
        )
        remove_paths(self._leftovers.find_new(before))
        if change is not None:
            self._files.restore(change.path)
        return {**parse_outcomes(output), "finished": finished, "unsupported": False}

    def _screen(self, command: dict[str, Any]) -> list[dict[str, Any]]:
        """Return a result for each of several candidates; `UNSUPPORTED` if it must be tried alone."""
        planned = [
            self._plan(command, edited, command["number"] + number)
            for number, edited in enumerate(command["candidates"])
        ]
        results = [UNSUPPORTED if isinstance(plan, CodeChange) else plan for plan in planned]
        changes = {number: plan for number, plan in enumerate(planned) if isinstance(plan, CodeChange)}
        if len(changes) < 2:
            return results
        end_s = monotonic_s() + command["timeout_s"]
        if not self._find_repeated_failure(command, end_s):
            return results
        for change in changes.values():
            self._files.remember_time(change.path)
        forwards = self._run_in_turn(changes, command, end_s)
        ended = {number: result for number, result in forwards.items() if not result["outcomes"]}
        again = {number: changes[number] for number in reversed(forwards) if number not in ended}
        backwards = self._run_in_turn(again, command, end_s)
        for number, result in {**backwards, **ended}.items():
            # Only a trial in a fork of its own shows that a test passes.
            is_settled = get_failure_key(result) == get_failure_key(forwards[number])
            if is_settled and "P" not in result["outcomes"]:
                results[number] = self._known_results[changes[number].key] = result
        return results

    def _run_in_turn(
        self, changes: dict[int, CodeChange], command: dict[str, Any], end_s: float
    ) -> dict[int, dict[str, Any]]:
        """Return the results of candidates that share forks; without those that may have met what another one left.

        The outcomes of a candidate that ends the process are empty if no test failed before.
        """
        results: dict[int, dict[str, Any]] = {}
        waiting, before = list(changes), self._leftovers.list_files()
        while waiting and monotonic_s() < end_s:
            act = partial(self._run_changes, [changes[number] for number in waiting], command)
            output, finished = self._forks.run(act, command["silence_s"], end_s=end_s)
            remove_paths(self._leftovers.find_new(before))
            for path in {changes[number].path for number in waiting}:
                self._files.restore(path)
            screened = ScreenedOutput(output)
            for position, number in enumerate(waiting[: screened.confirmed_count]):
                outcomes = parse_outcomes(screened.parts[position])
                results[number] = {**outcomes, "finished": True, "unsupported": False}
            ended = screened.ended_count
            if screened.ended_in_check or ended == len(waiting):
                waiting = waiting[ended:]  # a candidate that is not confirmed has changed the process
                continue
            if ended == 0 and monotonic_s() < end_s:  # nothing but this candidate can have ended the process
                outcomes = parse_outcomes(screened.parts[ended])
                results[waiting[ended]] = {**outcomes, "finished": finished, "unsupported": False}
            waiting = waiting[ended + 1 :]
        return results

    def _run_changes(self, changes: list[CodeChange], command: dict[str, Any], write: Write) -> None:
        """Run tests on several candidates in this process; end early if one of them changes it."""
        chosen, state = self._items.select(command["tests"]), ProcessState(self._leftovers)
        run = partial(run_tests, chosen, self._outcomes, self._limits, command)
        for number, change in enumerate(changes, 1):
            self._files.write(change.path, change.text, change.number)
            replaced = swap_code(change.pairs)
            run(write)
            swap_code(replaced)
            self._files.restore(change.path)
            has_changed = state.has_changed()
            write(END_OF_CANDIDATE)
            if has_changed or number % CHECK_INTERVAL == 0 or number == len(changes):
                write(CHECK_BEGINS)
                if has_changed:
                    return
                output: list[bytes] = []
                run(output.append)
                failure = get_failure_key(parse_outcomes(b"".join(output)))
                if failure != self._find_repeated_failure(command) or state.has_changed():
                    return
                write(CHECK_PASSED)

    def _find_repeated_failure(self, command: dict[str, Any], end_s: float | None = None) -> str:
        """Return how the tests fail on the unchanged code; empty if a second run in one process differs."""
        tests = json.dumps([command["tests"], command["max_failures"]])
        if tests not in self._repeated_failures:
            traced, before = {**command, "extra_cpu_s": EXTRA_TRACING_CPU_S}, self._leftovers.list_files()
            act = partial(self._run_twice, traced)
            output, finished = self._forks.run(act, command["silence_s"], end_s=end_s)
            remove_paths(self._leftovers.find_new(before))
            runs = [parse_outcomes(part) for part in output.split(END_OF_CANDIDATE)[:-1]]
            is_repeated = finished and len(runs) == 2 and get_failure_key(runs[0]) == get_failure_key(runs[1])
            for failure in runs[0]["failures"] if runs else ():
                failure.pop("lines", None)
            all_fail = is_repeated and set(runs[0]["outcomes"]) == {"f"}
            self._repeated_failures[tests] = get_failure_key(runs[0]) if all_fail else ""
        return self._repeated_failures[tests]

    def _run_twice(self, command: dict[str, Any], write: Write) -> None:
        """Run tests twice on the unchanged code, with tracing; end early if they leave something in the process."""
        chosen, state = self._items.select(command["tests"]), ProcessState(self._leftovers)
        for _ in range(2):
            run_tests(chosen, self._outcomes, self._limits, command, write, self._tracer)
            if state.has_changed():
                return
            write(END_OF_CANDIDATE)


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
        limit_cpu(0)  # other candidates may follow in this process
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


def _count_waits() -> float:
    """Return how often this process gave up its processor to wait; without such a count, more after each call."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw or monotonic_s()


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
