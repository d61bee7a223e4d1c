"""A judge serves many verdicts, and no verdict affects the next."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from suture.core.settings import SandboxSettings
from suture.judge import grade_program
from suture.judge.split.program_sessions import JudgeSession, acquire_judge, release_judge
from suture.judge.split.wire import dump, load
from suture.sandbox import Sandbox, SupportsCloseCallbacks

CODE = "def f(x):\n    return x\n"


FUNCTION = {"kind": "function", "modules": ["solution"], "name": "f"}


async def run_program(judge: JudgeSession, source: str) -> bool:
    """Return whether a program passes. It calls `f` once, because a program without a call is no test."""
    program = {"source": f"{source}\nf()\n", "names": {"f": FUNCTION}, "expects": []}
    answer = await judge.exchange(dump(program), 20)
    if answer is not None and "ask" in load(answer):
        answer = await judge.exchange(dump({"value": None, "nodes": []}), 20)
    return answer is not None and load(answer).get("outcome", {}).get("passed") is True


async def test_changes_of_the_interpreter_do_not_reach_the_next_verdict(
    sandbox: Sandbox, sandbox_settings: SandboxSettings
) -> None:
    judge = await acquire_judge(sandbox, sandbox_settings)
    await judge.start()
    assert await run_program(judge, "import math\nmath.pi = 3\nlist.suture = 1 if False else None") is False
    assert await run_program(judge, "import math\nassert math.pi == 3")

    await release_judge(judge)
    next_judge = await acquire_judge(sandbox, sandbox_settings)
    assert next_judge is judge

    await next_judge.start()
    assert await run_program(next_judge, "import math\nassert 3.1 < math.pi < 3.2")

    await release_judge(next_judge)
    assert (await grade_program(CODE, "assert f(1) == 1", sandbox, sandbox_settings)).passed


LINGER = """
import os, time
if os.fork() == 0:
    {act}
    time.sleep(600)
time.sleep(0.2)
"""


@pytest.mark.parametrize(
    "source",
    [
        "open('left', 'w').close()",
        "open('/tmp/left', 'w').close()",
        LINGER.format(act="pass"),
        # A forged message in the judge's format says that the child has ended.
        LINGER.format(act='os.write(4, b\'\\0\\0\\0\\x0c{"over": ""}\')'),
        "import os\nos._exit(0)",
        "import os, signal\nos.kill(os.getppid(), signal.SIGSTOP)",
        "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)",
    ],
    ids=["file", "file in tmp", "process", "forged sign", "early end", "stopped judge", "killed judge"],
)
async def test_a_judge_with_leftovers_is_not_reused(
    source: str, sandbox: Sandbox, sandbox_settings: SandboxSettings
) -> None:
    judge = await acquire_judge(sandbox, sandbox_settings)
    await judge.start()
    await run_program(judge, source)
    await release_judge(judge)

    next_judge = await acquire_judge(sandbox, sandbox_settings)

    assert next_judge is not judge
    assert (await grade_program(CODE, "assert f(1) == 1", sandbox, sandbox_settings)).passed


async def test_tests_cannot_learn_the_key(sandbox: Sandbox, sandbox_settings: SandboxSettings) -> None:
    judge = await acquire_judge(sandbox, sandbox_settings)
    await judge.start()
    for path in ("/proc/%d/mem", "/proc/%d/maps", "/proc/%d/fd/3", "/proc/%d/environ"):
        program = (
            f"import os\ntry:\n    open({path!r} % os.getppid(), 'rb').read(1)\nexcept OSError:\n    pass\n"
        )
        assert await run_program(judge, "import os\n" + program + "else:\n    assert False"), path
    await release_judge(judge)


async def test_closing_the_sandbox_ends_its_idle_judges(
    sandbox: Sandbox, sandbox_settings: SandboxSettings
) -> None:
    assert isinstance(sandbox, SupportsCloseCallbacks)
    assert (await grade_program(CODE, "assert f(1) == 1", sandbox, sandbox_settings)).passed

    judge = await acquire_judge(sandbox, sandbox_settings)
    await judge.start()
    await release_judge(judge)
    await sandbox.close()
    assert not judge.alive
    assert (await grade_program(CODE, "assert f(1) == 1", sandbox, sandbox_settings)).passed


async def test_a_judge_is_ended_after_a_cancellation(
    sandbox: Sandbox, sandbox_settings: SandboxSettings
) -> None:
    judge = await acquire_judge(sandbox, sandbox_settings)
    await judge.start()
    await judge.send(dump({"source": "import time\ntime.sleep(600)", "names": {}, "expects": []}))
    await release_judge(judge)
    waiting = asyncio.create_task(acquire_judge(sandbox, sandbox_settings))
    await asyncio.sleep(0.1)
    waiting.cancel()

    with suppress(asyncio.CancelledError):
        await waiting

    assert waiting.cancelled()
    assert not judge.alive
