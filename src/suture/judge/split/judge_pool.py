"""Judges that wait for the next verdict: to start one costs more than most verdicts do.

A judge hears each verdict in a process of its own, which is gone before the next (see `split_judge.main`). So
what waits here has run no test, and any verdict in the same sandbox may have it.
"""

from __future__ import annotations

import secrets
from functools import partial

from suture.core.settings import SandboxSettings
from suture.judge.sandbox_programs import make_program_request
from suture.judge.split.program_sessions import LIFETIME_S, ProgramSession
from suture.judge.split.wire import BadFrame, dump, load
from suture.sandbox import SupportsCloseCallbacks, Sandbox

MOST_IDLE = 4
"""Judges that wait for work in one sandbox; each holds a place behind a wall."""
OVER_S = 2.0
"""Seconds in which a judge must be done with the last verdict."""

_idle: dict[Sandbox, list[Judge]] = {}


class Judge(ProgramSession):
    """The program that holds the tests of one verdict at a time."""

    def __init__(self, sandbox: Sandbox, settings: SandboxSettings) -> None:
        super().__init__(sandbox, make_program_request("split.judge_program", {}, settings, LIFETIME_S))
        self._key = ""

    async def start(self) -> None:
        """Start it where it does not run, and begin a verdict where none has begun."""
        await super().start()
        if not self._key:
            self._key = secrets.token_hex(16)
            await self.send(dump({"key": self._key}))

    async def kill(self) -> None:
        """End it at once, whatever it is doing."""
        self._key = ""
        await super().kill()

    async def adjourn(self) -> None:
        """End the verdict; nothing is waited for."""
        await self.send(dump({}))

    async def is_free(self) -> bool:
        """Whether everything of the last verdict is gone, by a sign that only the judge itself can give."""
        answer = await self.receive(OVER_S)
        try:
            free = answer is not None and load(answer) == {"over": self._key}
        except BadFrame:
            free = False
        self._key = ""
        return free


async def take_judge(sandbox: Sandbox, settings: SandboxSettings) -> Judge:
    """A judge for one verdict: one that waits, or a new one that is not started yet."""
    fresh = Judge(sandbox, settings)
    waiting = _idle.get(sandbox, [])
    for judge in reversed(waiting):
        if judge.limits == fresh.limits:
            waiting.remove(judge)
            free = False
            try:
                free = await judge.is_free()
            finally:  # also where nobody waits any longer: it is in nobody's hands now
                if not free:
                    await judge.kill()
            if free:
                return judge
    return fresh


async def give_back(judge: Judge) -> None:
    """Keep a judge for the next verdict, as long as its sandbox is open."""
    sandbox = judge.sandbox
    if not judge.alive or not isinstance(sandbox, SupportsCloseCallbacks):
        await judge.stop()
        return
    if sandbox not in _idle:
        _idle[sandbox] = []
        sandbox.at_close(partial(_dismiss, sandbox))
    if len(_idle[sandbox]) >= MOST_IDLE:
        await judge.stop()
        return
    _idle[sandbox].append(judge)  # first, so that it is somebody's whatever becomes of the sending
    await judge.adjourn()


async def _dismiss(sandbox: Sandbox) -> None:
    for judge in _idle.pop(sandbox, []):
        await judge.kill()
