"""One pytest process in the sandbox that runs tests on candidates, on request."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack
from importlib import resources
from typing import Any

from suture.judge.runners.test_command import TestCommand
from suture.judge.trials.process_reports import (
    AnswerReport,
    AttemptReport,
    CollectionReport,
    TestReport,
    parse_reports,
)
from suture.judge.trials.trial_records import Proposal
from suture.judge.trials.tuning import MIN_SILENCE_S, SILENCE_S, WORKER_START_S
from suture.sandbox import Channel

PACKAGE = "suture_trials"
"""Name of `trials/inside` in the sandbox, where a package `suture` may be the project's own."""
PLUGIN = f"{PACKAGE}.trial_plugin"
LOST = b'{"lost"'
"""Start of the answer if the process that had collected the tests has died."""


class TrialWorker:
    """A process that collects the tests and runs them on candidates.

    Args:
        texts: Path -> text of the files that candidates may change.
        files: Files whose lines are recorded.
        lifetime_s: Maximum lifetime of the process in wall-clock seconds.
    """

    def __init__(
        self, command: TestCommand, texts: Mapping[str, str], files: Sequence[str], lifetime_s: float
    ) -> None:
        self._command = command
        self._job = {"texts": dict(texts), "files": list(files), "dated": command.backdated_files}
        self._lifetime_s = lifetime_s
        self._stack = AsyncExitStack()
        self._channel: Channel | None = None

    @property
    def alive(self) -> bool:
        """Whether the process answers, as far as is known."""
        return self._channel is not None

    async def start(self) -> None:
        """Start the process; this imports nothing of the project."""
        modules = resources.files("suture.judge.trials.inside").iterdir()
        files = {f"{PACKAGE}/{file.name}": file.read_bytes() for file in modules if file.name.endswith(".py")}
        channel = self._command.open_with_plugin(PLUGIN, files, wall_s=self._lifetime_s)
        self._channel = await self._stack.enter_async_context(channel)
        await self._send(self._job)

    async def close(self) -> None:
        """End the process, whatever it is doing."""
        self._channel = None
        await self._stack.aclose()

    async def configure(self, timeout_s: float) -> None:
        """Load pytest's configuration and the outer `conftest.py` files in a fork of the process.

        Later calls of functions need not do so again. They work, too, if this fails.
        """
        await self._send({"op": "configure"})
        await self._receive(timeout_s)

    async def collect(
        self, *, trace: bool, timeout_s: float, files: Sequence[str] = ()
    ) -> CollectionReport | None:
        """Collect the tests in a fork of the process; return `None` if it died or ran out of time.

        Args:
            trace: Whether to record the lines that run during the collection.
            files: The test files; empty for all.
        """
        await self._send({"op": "collect", "trace": trace, "test_files": list(files)})
        return next(parse_reports(await self._receive(timeout_s), CollectionReport), None)

    async def set_files(self, texts: Mapping[str, str], files: Sequence[str]) -> None:
        """Send the files that candidates may change and those to trace, if they were not known at the start."""
        await self._send({"op": "set_files", "texts": dict(texts), "files": list(files)})
        await self._receive(WORKER_START_S)

    async def set_limits(self, limits: Mapping[str, tuple[float, float]]) -> None:
        """Set the limits that `compute_cpu_limits` returns."""
        await self._send({"op": "limits", "limits": {test: list(pair) for test, pair in limits.items()}})
        await self._receive(WORKER_START_S)

    async def run_unchanged(
        self,
        tests: Sequence[str] | None,
        *,
        trace: bool,
        slow: Mapping[str, float],
        limit_cpu_s: float,
        timeout_s: float,
    ) -> AsyncIterator[TestReport]:
        """Run tests on the unchanged code, each once, as long as there is time.

        Args:
            tests: Ids of the tests; `None` for all in their order.
            slow: Failing test -> CPU seconds. It may never end, and it is traced without shortcuts.
            limit_cpu_s: CPU seconds of each other test.
        """
        # The factor is chosen by judgement; not measured.
        silence_s = max(MIN_SILENCE_S, 4 * max(slow.values(), default=0.0), min(timeout_s, limit_cpu_s))
        await self._send(
            {
                "op": "run_unchanged",
                "tests": tests,
                "trace": trace,
                "slow": dict(slow),
                "limit_cpu_s": limit_cpu_s,
                "timeout_s": timeout_s,
                "silence_s": silence_s,
            }
        )
        while (message := await self._receive(timeout_s + WORKER_START_S)) is not None:
            if message.startswith((b'{"done"', LOST)):
                return
            for report in parse_reports(message, TestReport):
                yield report

    async def attempt(
        self,
        proposal: Proposal | None,
        tests: Sequence[str] | None,
        *,
        number: int,
        reimports: bool,
        max_failures: tuple[int, int],
        extra_cpu_s: float,
        traces_lines: bool,
        silence_s: float,
        timeout_s: float,
        import_cpu_s: float,
    ) -> AttemptReport | None:
        """Run tests on a candidate; return `None` if a process died.

        Args:
            proposal: The candidate; `None` for the unchanged code.
            tests: Ids of the tests; `None` for all tests that have a limit, in their own order.
            number: Number of the request, unique in the process.
            reimports: Whether the project is imported again for the candidate.
            max_failures: Failures after which the candidate is dropped, as `choose_failure_limits` returns.
            extra_cpu_s: CPU seconds that each test may take in addition to its limit.
            silence_s: Wall-clock seconds without a message after which the trial is killed.
            import_cpu_s: CPU seconds of importing the project again.
        """
        message: dict[str, Any] = {
            **_describe_change(proposal),
            "op": "try",
            "number": number,
            "tests": list(tests) if tests is not None else None,
            "reimports": reimports,
            "max_failures": list(max_failures),
            "extra_cpu_s": extra_cpu_s,
            "trace": traces_lines,
            "silence_s": silence_s,
            "timeout_s": timeout_s,
            "import_cpu_s": import_cpu_s,
        }
        if reimports and tests is not None:
            message["test_files"] = list(dict.fromkeys(test.partition("::")[0] for test in tests))
        await self._send(message)
        return next(parse_reports(await self._receive(timeout_s + WORKER_START_S), AttemptReport), None)

    async def screen(
        self,
        proposals: Sequence[Proposal],
        tests: Sequence[str],
        *,
        number: int,
        max_failures: tuple[int, int],
        silence_s: float,
        timeout_s: float,
    ) -> list[AttemptReport]:
        """Run tests on several candidates in one process; return a report for each, or none if the process died.

        A report is `unsupported` if the candidate must be tried alone (see `trials/inside/screening.py`).

        Args:
            number: Number of the first candidate; the others have those that follow.
            max_failures: Failures after which a candidate is dropped, as `choose_failure_limits` returns.
            silence_s: Wall-clock seconds without a message after which a candidate is killed.
        """
        await self._send(
            {
                "op": "screen",
                "candidates": [_describe_change(proposal) for proposal in proposals],
                "number": number,
                "tests": list(tests),
                "max_failures": list(max_failures),
                "extra_cpu_s": 0.0,
                "trace": False,
                "silence_s": silence_s,
                "timeout_s": timeout_s,
            }
        )
        reports = list(parse_reports(await self._receive(timeout_s + WORKER_START_S), AttemptReport))
        return reports if len(reports) == len(proposals) else []

    async def call(
        self,
        proposal: Proposal,
        number: int,
        calls: Sequence[Sequence[str]],
        call_cpu_s: float,
        timeout_s: float,
    ) -> AnswerReport | None:
        """Call functions of a candidate; return `None` if the process died."""
        await self._send(
            {
                **_describe_change(proposal),
                "op": "call",
                "number": number,
                "reimports": True,
                "calls": [list(call) for call in calls],
                "call_cpu_s": call_cpu_s,
                "silence_s": SILENCE_S + 4 * call_cpu_s,  # the factor is chosen by judgement; not measured
                "timeout_s": timeout_s,
                "import_cpu_s": timeout_s,
            }
        )
        return next(parse_reports(await self._receive(timeout_s + WORKER_START_S), AnswerReport), None)

    async def _send(self, value: Mapping[str, Any]) -> None:
        if self._channel is not None:
            await self._channel.send(json.dumps(value).encode("ascii"))

    async def _receive(self, timeout_s: float) -> bytes | None:
        if self._channel is None:
            return None
        message = await self._channel.receive(timeout_s)
        if message is None:
            await self.close()
        return message


def _describe_change(proposal: Proposal | None) -> dict[str, Any]:
    if proposal is None:
        return {}
    edits = [[edit.start, edit.end, edit.text] for edit in proposal.edits]
    return {"path": proposal.path, "edits": edits}
