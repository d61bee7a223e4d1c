"""What a program may use. A sandbox is only checked for the limits that it claims."""

from __future__ import annotations

from typing import Any

from sandbox.conformance.behaviour import (
    PROMPT_S,
    SandboxUnderTest,
    code_request,
    collect_behaviours,
    demand,
    describe,
    program_request,
)
from suture.sandbox.contract import ProgramLimits


def within(**limits: Any) -> ProgramLimits:
    """Return these limits, with a minute for the time limits that are not given."""
    return ProgramLimits(**{"wall_s": 60.0, "cpu_s": 60.0, **limits})


async def wall_time_is_limited(subject: SandboxUnderTest) -> None:
    """A program that runs longer than `wall_s` is a `timeout`; its output and files come back."""
    text = """
        import os, sys, time
        open("partial", "w").write("half")
        print("before", flush=True); print("complaint", file=sys.stderr, flush=True)
        if os.fork() == 0: os.setsid()
        time.sleep(600)
    """
    for create_request in (code_request, program_request):
        result = await subject.run(create_request(text, limits=within(wall_s=1), collect=("partial",)))
        demand((result.status, result.exit_code) == ("timeout", None), describe(result))
        demand(result.wall_s < PROMPT_S, f"it ran {result.wall_s} s")
        demand((result.stdout, result.stderr) == (b"before\n", b"complaint\n"), describe(result))
        demand(dict(result.files) == {"partial": b"half"}, describe(result))


async def busy_loops_are_ended(subject: SandboxUnderTest) -> None:
    """A busy loop that ignores every signal is ended too."""
    text = """
        import signal
        for number in (1, 2, 3, 10, 12, 14, 15): signal.signal(number, signal.SIG_IGN)
        while True: pass
    """
    demand((await subject.run(code_request(text, limits=within(wall_s=1)))).status == "timeout", "it was not")


async def stopped_programs_are_ended(subject: SandboxUnderTest) -> None:
    """A program that is stopped still has a time limit."""
    result = await subject.run(
        program_request("import os; os.kill(os.getpid(), 19)", limits=within(wall_s=1))
    )
    demand(result.status == "timeout", describe(result))


async def cpu_time_is_limited(subject: SandboxUnderTest) -> None:
    """A program that computes longer than `cpu_s` is a `timeout`."""
    result = await subject.run(code_request("while True: pass", limits=within(cpu_s=1)))
    demand(result.status == "timeout", describe(result))
    demand(result.wall_s < PROMPT_S, f"it ran {result.wall_s} s")


async def memory_is_limited(subject: SandboxUnderTest) -> None:
    """A process cannot allocate more than `memory_mb`; a Python program that dies of it is `memory`."""
    for create_request in (code_request, program_request):
        result = await subject.run(create_request("x = bytearray(900 << 20)", limits=within(memory_mb=256)))
        demand(result.status == "memory", describe(result))
        text = "try: x = bytearray(900 << 20)\nexcept MemoryError: print('went on')"
        result = await subject.run(create_request(text, limits=within(memory_mb=256)))
        demand((result.status, result.stdout) == ("ok", b"went on\n"), describe(result))


async def total_memory_is_limited(subject: SandboxUnderTest) -> None:
    """A program whose processes together hold more than `total_memory_mb` is ended, as `memory`."""
    text = """
        import os, time
        for _ in range(6):
            if os.fork() == 0:
                held = b"x" * (100 << 20)
                time.sleep(600)
        time.sleep(600)
    """
    result = await subject.run(code_request(text, limits=within(total_memory_mb=256, memory_mb=512)))
    demand(result.status == "memory", describe(result))


async def processes_are_limited(subject: SandboxUnderTest) -> None:
    """No more than `processes` can be started, and the next run has the full number again."""
    text = """
        import os, time
        made = 0
        try:
            while made < 200:
                if os.fork() == 0: time.sleep(600); os._exit(0)
                made += 1
        except OSError: pass
        print(10 <= made < 24)
    """
    for _ in range(2):
        result = await subject.run(code_request(text, limits=within(processes=24)))
        demand((result.status, result.stdout) == ("ok", b"True\n"), describe(result))


async def disk_space_is_limited(subject: SandboxUnderTest) -> None:
    """`BOX` and `TMPDIR` hold no more than `disk_mb` each."""
    text = """
        import errno, os
        for folder in ("/box", os.environ["TMPDIR"]):
            try:
                for number in range(40): open(f"{folder}/{number}", "wb").write(bytes(1 << 20))
            except OSError as fault: print(errno.errorcode[fault.errno], 4 <= number <= 8)
    """
    result = await subject.run(code_request(text, limits=within(disk_mb=8)))
    demand(result.stdout == b"ENOSPC True\nENOSPC True\n", describe(result))


async def inodes_are_limited(subject: SandboxUnderTest) -> None:
    """No folder holds more than `inodes` files."""
    text = """
        import os
        made = 0
        try:
            while made < 5000:
                os.close(os.open(f"f{made}", os.O_WRONLY | os.O_CREAT)); made += 1
        except OSError: pass
        print(made <= 1000)
    """
    result = await subject.run(code_request(text, limits=within(inodes=1000)))
    demand(result.status == "memory" or result.stdout == b"True\n", describe(result))


async def file_size_is_limited(subject: SandboxUnderTest) -> None:
    """No file grows beyond `file_mb`."""
    text = """
        try: open("x", "wb").write(bytes(9 << 20))
        except OSError as fault: print(fault.strerror)
    """
    result = await subject.run(code_request(text, limits=within(file_mb=8)))
    demand(result.stdout == b"File too large\n", describe(result))


async def descriptors_are_limited(subject: SandboxUnderTest) -> None:
    """A process has no more than `open_files` descriptors."""
    text = """
        import os
        made = 0
        try:
            while made < 500: os.dup(0); made += 1
        except OSError: pass
        print(20 <= made < 32)
    """
    result = await subject.run(code_request(text, limits=within(open_files=32)))
    demand(result.stdout == b"True\n", describe(result))


async def output_is_truncated(subject: SandboxUnderTest) -> None:
    """Of output beyond `output_bytes`, head and tail are kept, and the result says so."""
    text = "import sys; sys.stdout.write('HEAD' + 'x' * 40000 + 'TAIL')"
    result = await subject.run(code_request(text, limits=within(output_bytes=10_000)))
    demand((result.status, result.truncated) == ("ok", True), describe(result))
    demand(result.stdout.startswith(b"HEADx") and result.stdout.endswith(b"xTAIL"), describe(result))
    demand(len(result.stdout) < 11_000, f"{len(result.stdout)} bytes were kept")


async def output_floods_are_ended(subject: SandboxUnderTest) -> None:
    """A program that prints without end is ended, as `output_limit`."""
    for stream in (1, 2):
        text = f"import os\nwhile True: os.write({stream}, b'x' * 65536)"
        result = await subject.run(code_request(text, limits=within(output_bytes=10_000)))
        demand((result.status, result.truncated) == ("output_limit", True), describe(result))


BEHAVIOURS = collect_behaviours(
    globals(),
    {
        "wall_time_is_limited": "wall_s",
        "busy_loops_are_ended": "wall_s",
        "stopped_programs_are_ended": "wall_s",
        "cpu_time_is_limited": "cpu_s",
        "memory_is_limited": "memory_mb",
        "total_memory_is_limited": "total_memory_mb",
        "processes_are_limited": "processes",
        "disk_space_is_limited": "disk_mb",
        "inodes_are_limited": "inodes",
        "file_size_is_limited": "file_mb",
        "descriptors_are_limited": "open_files",
        "output_is_truncated": "output_bytes",
        "output_floods_are_ended": "output_bytes",
    },
)
