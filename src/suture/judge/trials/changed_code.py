"""The code after a change, in processes that have collected its tests: what the tests do there, and with mutants of it.

Such a process runs a quick test in a tenth of the time of a run of the command. Code under test may forge what it
reports, so nothing here is part of a verdict. It gains nothing by that: in a run of the command, too, a change could
fail wherever its own source differs, and so have its mutants noticed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager

from suture.judge.runners.test_command import TestCommand
from suture.judge.suite import Suite
from suture.judge.trials.baseline import record_report
from suture.judge.trials.process_reports import AttemptReport, CollectionReport, TestReport, unpack_lines
from suture.judge.trials.trial_records import Proposal
from suture.judge.trials.trial_worker import TrialWorker
from suture.judge.trials.tuning import MAX_CODE_PROCESSES, MAX_WHOLE_SUITE_TESTS, MIN_SHARED_PROCESS_S
from suture.judge.tuning import EXAMPLES_TIMEOUT_S, MAX_EXAMPLE_TESTS, PROGRAM_LIFETIME_S
from suture.project.workspace import overlay_candidate


class ChangedCode:
    """The code after a change. The first question to it starts a process, which collects the tests.

    Args:
        command: The test command on the changed code.
        texts: Path -> text of the changed Python files.
        test_files: The files whose tests are collected; empty for all.
    """

    def __init__(
        self, command: TestCommand, texts: Mapping[str, str], test_files: Sequence[str] = ()
    ) -> None:
        self.texts = texts
        self._command, self._test_files = command, test_files
        self._collecting: asyncio.Task[CollectionReport | None] | None = None
        self._tracing: asyncio.Task[dict[str, TestReport]] | None = None
        self._workers: list[TrialWorker] = []
        self._idle: asyncio.Queue[TrialWorker] = asyncio.Queue()
        self._number = 0

    async def collect(self) -> CollectionReport | None:
        """Return the report of the collection, with the lines that ran; `None` if there is no process."""
        if self._collecting is None:
            self._collecting = asyncio.create_task(self._start_worker(trace=True))
        return await asyncio.shield(self._collecting)

    async def find_import_lines(self, path: str) -> frozenset[int]:
        """Return the lines of a changed file that ran while the tests were collected."""
        collection = await self.collect()
        return unpack_lines(collection.lines.get(path, "")) if collection is not None else frozenset()

    async def select(self, tests: Collection[str]) -> list[str]:
        """Return those of some tests that were collected, in the order of the run."""
        collection = await self.collect()
        collected = collection.collected if collection is not None else ()
        return [test for test in dict.fromkeys(collected) if test in tests]

    async def trace(self, tests: Collection[str]) -> Mapping[str, TestReport]:
        """Run the first `MAX_EXAMPLE_TESTS` of some tests with tracing; a second call returns the same reports."""
        if self._tracing is None:
            self._tracing = asyncio.create_task(self._trace(tests))
        return await asyncio.shield(self._tracing)

    async def _trace(self, tests: Collection[str]) -> dict[str, TestReport]:
        chosen = (await self.select(frozenset(tests)))[:MAX_EXAMPLE_TESTS]
        return await self.run(chosen, EXAMPLES_TIMEOUT_S, trace=True)

    async def run(
        self, tests: Sequence[str], timeout_s: float, *, trace: bool = False
    ) -> dict[str, TestReport]:
        """Run some tests, and return test -> report; without those for which there was no time.

        Args:
            timeout_s: Wall-clock seconds.
            trace: Whether to record lines and calls of the changed files.
        """
        if not tests or await self.collect() is None:
            return {}
        async with self.use_worker() as worker:
            reports = worker.run_unchanged(
                tests, trace=trace, slow={}, limit_cpu_s=timeout_s, timeout_s=timeout_s
            )
            found: dict[str, TestReport] = {}
            async for report in reports:
                record_report(found, report)
            return found

    async def attempt(
        self,
        proposal: Proposal | None,
        tests: Sequence[str],
        limits: Mapping[str, tuple[float, float]],
        *,
        timeout_s: float,
        expected_s: float,
    ) -> AttemptReport | None:
        """Run tests on a mutant until one of them fails; `None` if the process died.

        Args:
            proposal: The mutant; `None` for the code itself.
            limits: The limits of the tests, as for `TrialWorker.set_limits`.
            timeout_s: Wall-clock seconds.
            expected_s: Wall-clock seconds that the tests take on the code itself.
        """
        async with self.use_worker(expected_s) as worker:
            await worker.set_limits({test: limits[test] for test in tests})
            return await worker.attempt(
                proposal,
                tests,
                number=self.next_number(),
                reimports=False,
                max_failures=(1, 1),
                extra_cpu_s=0.0,
                traces_lines=False,
                silence_s=timeout_s,
                timeout_s=timeout_s,
                import_cpu_s=0.0,
            )

    def next_number(self) -> int:
        """Return a new number of a request."""
        self._number += 1
        return self._number

    @asynccontextmanager
    async def use_worker(self, expected_s: float = 0.0) -> AsyncIterator[TrialWorker]:
        """Borrow a process that has collected the tests. It is ended if the borrower does not await its answer.

        Args:
            expected_s: Wall-clock seconds for which it is needed. If they are many, several processes work side by
                side.
        """
        is_long = expected_s > MIN_SHARED_PROCESS_S
        if self._idle.empty() and is_long and len(self._workers) < MAX_CODE_PROCESSES:
            await self._start_worker(trace=False)
        worker = await self._idle.get()
        try:
            yield worker
        except BaseException:  # also if it is cancelled: the next borrower would get the answer
            await worker.close()
            raise
        finally:
            self._idle.put_nowait(worker)

    async def _start_worker(self, *, trace: bool) -> CollectionReport | None:
        worker = TrialWorker(self._command, self.texts, list(self.texts), PROGRAM_LIFETIME_S)
        self._workers.append(worker)
        await worker.start()
        timeout_s = self._command.settings.test_timeout_s
        collection = await worker.collect(trace=trace, timeout_s=timeout_s, files=self._test_files)
        self._idle.put_nowait(worker)
        return collection

    async def close(self) -> None:
        """End the processes, whatever they do."""
        tasks = [task for task in (self._tracing, self._collecting) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*(worker.close() for worker in self._workers))


@asynccontextmanager
async def open_changed_code(
    suite: Suite, files: Mapping[str, str], fixed: Collection[str], passed: Collection[str]
) -> AsyncIterator[ChangedCode | None]:
    """Yield the code after a change; `None` if no process can serve it.

    Tests that use services need a run of their own, because each process would keep what a mutant wrote to a service.

    Args:
        files: The change, path -> text over the project's own files.
        fixed: Ids of the tests that the change fixes.
        passed: Ids of the tests that pass with it. Of a large suite, only the files of the fixed tests are collected.
    """
    tests = {*fixed, *(passed if len(passed) <= MAX_WHOLE_SUITE_TESTS else ())}
    command, texts = suite.command, {path: text for path, text in files.items() if path.endswith(".py")}
    is_unicode = all(text.isascii() or _is_encodable(text) for text in texts.values())
    if (
        not tests
        or command is None
        or not command.is_pytest
        or command.has_services
        or not texts
        or not is_unicode
    ):
        yield None
        return
    test_files = {test.partition("::")[0] for test in tests}
    chosen = () if test_files.issuperset(command.test_files) else sorted(test_files & {*command.test_files})
    code = ChangedCode(command.copy_on_files(overlay_candidate(suite.task.files, files)), texts, chosen)
    try:
        yield code
    finally:
        await code.close()


def _is_encodable(text: str) -> bool:
    """Return whether a file's content was valid UTF-8 (see `decode_text`)."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
