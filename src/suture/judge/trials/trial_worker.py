"""One pytest process behind the wall that is asked, over a line, to run tests on candidates."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
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
from suture.sandbox import Channel

PACKAGE = "suture_trials"
"""What `repair/inside` is called behind the wall, where there may be another package `suture`."""
PLUGIN = f"{PACKAGE}.trial_plugin"
LOST = b'{"lost"'
"""What is answered where the process that had collected the tests is gone."""
START_S = 30.0
"""Wall-clock seconds for a process to answer beyond what it was given."""


@dataclass(frozen=True, kw_only=True)
class TrialRequest:
    """A candidate, or the unchanged code, and the tests to run on it.

    Attributes:
        proposal: The candidate; `None` for the code as it is.
        number: Of this request; no two of a process have the same.
        tests: Their ids; `None` for all that have a limit, in their own order.
        anew: Whether the project is imported anew for it.
        fails: Failing tests after which it is left, where none has passed and where one has.
        patience: CPU seconds that each test may take beyond its limit.
        trace: Whether the lines that each test runs are noted.
        quiet_s: Wall-clock seconds without a word after which it is killed.
        seconds: Wall-clock seconds that it may take.
    """

    proposal: Proposal | None
    number: int
    tests: Sequence[str] | None
    anew: bool = False
    fails: tuple[int, int] = (1, 1)
    patience: float = 0.0
    trace: bool = False
    quiet_s: float = 8.0
    seconds: float = 60.0
    import_s: float = 30.0


class TrialWorker:
    """A conversation with one process.

    Args:
        command: A pytest command.
        texts: Path -> text of the files that candidates change.
        files: Files whose lines are noted.
        wall_s: Wall-clock seconds that it lives at most.
    """

    def __init__(
        self, command: TestCommand, texts: Mapping[str, str], files: Sequence[str], wall_s: float
    ) -> None:
        self._command = command
        self._job = {"texts": dict(texts), "files": list(files), "dated": command.backdated_files}
        self._wall_s = wall_s
        self._stack = AsyncExitStack()
        self._channel: Channel | None = None

    @property
    def alive(self) -> bool:
        """Whether it answers, as far as is known."""
        return self._channel is not None

    async def start(self) -> None:
        """Start it; nothing of the project is imported by that.

        Raises:
            SandboxError: The wall failed.
        """
        files = resources.files("suture.judge.trials.inside").iterdir()
        own = {f"{PACKAGE}/{one.name}": one.read_bytes() for one in files if one.name.endswith(".py")}
        opened = self._command.open_with_plugin(PLUGIN, own, wall_s=self._wall_s)
        self._channel = await self._stack.enter_async_context(opened)
        await self._send(self._job)

    async def close(self) -> None:
        """End it, whatever it does."""
        self._channel = None
        await self._stack.aclose()

    async def collect(self, *, trace: bool, seconds: float) -> CollectionReport | None:
        """Collect the tests, in a process of its own; `None` where that died, or did not get to its end.

        Args:
            trace: Whether the lines that run meanwhile are noted.
            seconds: Wall-clock seconds for it.
        """
        await self._send({"op": "collect", "trace": trace})
        return next(parse_reports(await self._receive(seconds), CollectionReport), None)

    async def set_files(self, texts: Mapping[str, str], files: Sequence[str]) -> None:
        """Say which files candidates change and which are looked at, where that was not known at the start.

        Args:
            texts: Path -> text of the files that candidates change.
            files: Files whose lines are noted.
        """
        await self._send({"op": "know", "texts": dict(texts), "files": list(files)})
        await self._receive(START_S)

    async def set_limits(self, limits: Mapping[str, tuple[float, float]]) -> None:
        """Say what each test may take: CPU seconds behind another of its file, and as the first of it."""
        await self._send({"op": "limits", "limits": {test: list(own) for test, own in limits.items()}})
        await self._receive(START_S)

    async def walk(
        self,
        tests: Sequence[str] | None,
        *,
        trace: bool,
        slow: Mapping[str, float],
        limit_s: float,
        seconds: float,
    ) -> AsyncIterator[TestReport]:
        """Run tests on the code as it is, each once, as long as there is time.

        Args:
            tests: Their ids; all in their order where it is `None`.
            trace: Whether their lines are noted.
            slow: Those that fail, and may never end -> CPU seconds for each; they are traced line for line.
            limit_s: CPU seconds for each other test.
            seconds: Wall-clock seconds for all.
        """
        quiet_s = max(8.0, 4 * max(slow.values(), default=0.0), min(seconds, limit_s))
        given = {"tests": tests, "trace": trace, "slow": dict(slow)}
        await self._send({**given, "op": "walk", "limit_s": limit_s, "seconds": seconds, "quiet_s": quiet_s})
        while (frame := await self._receive(seconds + START_S)) is not None:
            if frame.startswith((b'{"done"', LOST)):
                return
            for entry in parse_reports(frame, TestReport):
                yield entry

    async def attempt(self, request: TrialRequest) -> AttemptReport | None:
        """Run tests on a candidate; `None` where a process died of it."""
        asked: dict[str, Any] = {
            **_changed(request.proposal),
            **{"op": "try", "number": request.number, "anew": request.anew, "fails": list(request.fails)},
            **{"tests": list(request.tests) if request.tests is not None else None},
            **{"patience": request.patience, "quiet_s": request.quiet_s, "seconds": request.seconds},
            **{"import_s": request.import_s, "trace": request.trace},
        }
        if request.anew and request.tests is not None:
            asked["places"] = list(dict.fromkeys(test.partition("::")[0] for test in request.tests))
        await self._send(asked)
        return next(parse_reports(await self._receive(request.seconds + START_S), AttemptReport), None)

    async def call(
        self, proposal: Proposal, number: int, calls: Sequence[Sequence[str]], call_s: float, seconds: float
    ) -> AnswerReport | None:
        """What a candidate answers to calls; `None` where the process died of it."""
        await self._send(
            {
                **_changed(proposal),
                **{"op": "call", "anew": True, "number": number, "calls": [list(call) for call in calls]},
                **{"call_s": call_s, "quiet_s": 4 + 4 * call_s, "seconds": seconds, "import_s": seconds},
            }
        )
        return next(parse_reports(await self._receive(seconds + START_S), AnswerReport), None)

    async def _send(self, value: Mapping[str, Any]) -> None:
        if self._channel is not None:
            await self._channel.send(json.dumps(value).encode("ascii"))

    async def _receive(self, seconds: float) -> bytes | None:
        if self._channel is None:
            return None
        frame = await self._channel.receive(seconds)
        if frame is None:
            await self.close()
        return frame


def _changed(proposal: Proposal | None) -> dict[str, Any]:
    if proposal is None:
        return {}
    return {"path": proposal.path, "edits": [[e.start, e.end, e.text] for e in proposal.edits]}
