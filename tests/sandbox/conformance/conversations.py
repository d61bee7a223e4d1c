"""Conversations with a running program, in frames."""

from __future__ import annotations

import asyncio

from sandbox.conformance.behaviour import (
    PROMPT_S,
    SandboxUnderTest,
    code_request,
    collect_behaviours,
    demand,
    describe,
    program_request,
)
from suture.errors import UsageError
from suture.sandbox.contract import ProgramLimits

ECHO = """
    import sys
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    while head := source.read(4):
        frame = source.read(int.from_bytes(head, "big"))
        print("saw", len(frame), file=sys.stderr, flush=True)
        sink.write(head + frame[::-1]); sink.flush()
    open("out", "w").write("done")
"""
"""A program that answers each frame with its bytes reversed."""
MAX_FRAME_BYTES = 64 << 20
"""The longest frame that the contract allows."""


async def frames_go_both_ways(subject: SandboxUnderTest) -> None:
    """Frames of any size arrive whole in both directions; the result has stderr and the collected files."""
    for create_request in (code_request, program_request):
        async with subject.sandbox.open(create_request(ECHO, collect=("out",))) as channel:
            for frame in (b"abc", b"", b"x" * 3_000_000):
                await channel.send(frame)
                demand(await channel.receive(60) == frame[::-1], f"a frame of {len(frame)} bytes")
            result = await channel.finish()
        demand((result.status, result.stderr) == ("ok", b"saw 3\nsaw 0\nsaw 3000000\n"), describe(result))
        demand(dict(result.files) == {"out": b"done"}, describe(result))


async def concurrent_conversations_do_not_mix(subject: SandboxUnderTest) -> None:
    """Concurrent conversations do not mix."""
    async with (
        subject.sandbox.open(code_request(ECHO)) as first,
        subject.sandbox.open(code_request(ECHO)) as second,
    ):
        for number in range(5):
            await first.send(b"first %d" % number)
            await second.send(b"second %d" % number)
            demand(await second.receive(60) == (b"second %d" % number)[::-1], "the second")
            demand(await first.receive(60) == (b"first %d" % number)[::-1], "the first")


async def late_frames_time_out(subject: SandboxUnderTest) -> None:
    """No frame in time is `None`, and the program is dead: a `timeout`."""
    async with subject.sandbox.open(program_request("import time; time.sleep(600)")) as channel:
        demand(await channel.receive(0.3) is None, "a frame")
        await channel.send(b"into the void")
        demand(await channel.receive(1) is None, "a frame")
        demand((await channel.finish()).status == "timeout", "the end")


async def wall_time_covers_the_conversation(subject: SandboxUnderTest) -> None:
    """`wall_s` covers the whole conversation."""
    limits = ProgramLimits(wall_s=0.5)
    async with subject.sandbox.open(
        program_request("import time; time.sleep(600)", limits=limits)
    ) as channel:
        demand(await channel.receive(60) is None, "a frame")
        demand((await channel.finish()).status == "timeout", "the end")


async def invalid_frames_end_the_program(subject: SandboxUnderTest) -> None:
    """An impossible length is `None`, and the program is dead."""
    text = "print('not a frame' * 100, flush=True); import time; time.sleep(600)"
    async with subject.sandbox.open(code_request(text)) as channel:
        demand(await channel.receive(30) is None, "a frame")
        demand((await channel.finish()).status == "failed", "the end")


async def truncated_frames_are_none(subject: SandboxUnderTest) -> None:
    """A truncated frame is `None`."""
    async with subject.sandbox.open(code_request("import os; os.write(1, b'\\0\\0\\0\\x09half')")) as channel:
        demand(await channel.receive(30) is None, "a frame")
        demand((await channel.finish()).status == "ok", "the end")


async def closed_stdout_ends_the_program(subject: SandboxUnderTest) -> None:
    """A program that closes its stdout and continues is ended."""
    text = "import os, time; os.write(1, b'\\0\\0'); os.close(1); time.sleep(600)"
    async with subject.sandbox.open(code_request(text)) as channel:
        demand(await channel.receive(1) is None, "a frame")
        result = await channel.finish()
        demand(result.status in ("timeout", "failed"), describe(result))


async def finish_reports_the_ending(subject: SandboxUnderTest) -> None:
    """After `None`, `finish` returns the exit code or the signal."""
    for text, status, number in (
        ("raise SystemExit(7)", "failed", 7),
        ("import os; os.kill(os.getpid(), 6)", "signalled", 6),
    ):
        async with subject.sandbox.open(program_request(text)) as channel:
            demand(await channel.receive(30) is None, "a frame")
            result = await channel.finish()
        demand((result.status, result.exit_code or result.signal) == (status, number), describe(result))


async def sending_to_an_ended_program_works(subject: SandboxUnderTest) -> None:
    """Sending to a program that has ended does not fail."""
    async with subject.sandbox.open(code_request("pass")) as channel:
        await asyncio.sleep(0.3)
        for _ in range(5):
            await channel.send(b"x" * 200_000)
        demand(await channel.receive(30) is None, "a frame")


async def oversized_frames_are_refused(subject: SandboxUnderTest) -> None:
    """Sending a frame of more than 64 MiB is a `UsageError`."""
    async with subject.sandbox.open(code_request("pass")) as channel:
        try:
            await channel.send(bytes(MAX_FRAME_BYTES + 1))
        except UsageError:
            return
    demand(False, "it was sent")


async def finish_ends_the_program(subject: SandboxUnderTest) -> None:
    """A program that ignores the end of its stdin is ended by `finish`."""
    async with subject.sandbox.open(program_request("import time; time.sleep(600)")) as channel:
        demand((await channel.finish()).status == "timeout", "the end")


async def finish_lets_the_program_end(subject: SandboxUnderTest) -> None:
    """`finish` lets a program end by itself when its stdin ends, and returns its last output."""
    text = "import sys; sys.stdin.read(); print('last words', file=sys.stderr); raise SystemExit(4)"
    async with subject.sandbox.open(code_request(text)) as channel:
        result = await channel.finish()
    demand((result.exit_code, result.stderr) == (4, b"last words\n"), describe(result))


async def unread_output_does_not_block(subject: SandboxUnderTest) -> None:
    """Leaving a conversation does not wait for a program that still prints."""
    async with (
        asyncio.timeout(PROMPT_S),
        subject.sandbox.open(code_request("import os\nwhile True: os.write(1, b'x' * 65536)")),
    ):
        await asyncio.sleep(0.2)
    demand((await subject.run(code_request("pass"))).status == "ok", "the next run")


BEHAVIOURS = collect_behaviours(globals())
