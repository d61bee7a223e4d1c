"""What a program may use. A sandbox is asked only for the limits that it claims."""

from __future__ import annotations

from typing import Any

from suture.sandbox.conformance.behaviour import (
    PROMPT_S,
    SandboxUnderTest,
    as_program_request,
    behaviours_of,
    code,
    demand,
    shown,
)
from suture.sandbox.contract import ProgramLimits


def within(**limits: Any) -> ProgramLimits:
    """Limits as named, with a minute for the rest."""
    return ProgramLimits(**{"wall_s": 60.0, "cpu_s": 60.0, **limits})


async def time_is_limited(subject: SandboxUnderTest) -> None:
    """What runs longer than `wall_s` is a `timeout`; what it printed and wrote comes back."""
    text = """
        import os, sys, time
        open("partial", "w").write("half")
        print("before", flush=True); print("complaint", file=sys.stderr, flush=True)
        if os.fork() == 0: os.setsid()
        time.sleep(600)
    """
    for make in (code, as_program_request):
        result = await subject.run(make(text, limits=within(wall_s=1), collect=("partial",)))
        demand((result.status, result.exit_code) == ("timeout", None), shown(result))
        demand(result.wall_s < PROMPT_S, f"it ran {result.wall_s} s")
        demand((result.stdout, result.stderr) == (b"before\n", b"complaint\n"), shown(result))
        demand(dict(result.files) == {"partial": b"half"}, shown(result))


async def a_loop_is_ended(subject: SandboxUnderTest) -> None:
    """A loop that ignores every signal is ended too."""
    text = """
        import signal
        for number in (1, 2, 3, 10, 12, 14, 15): signal.signal(number, signal.SIG_IGN)
        while True: pass
    """
    demand((await subject.run(code(text, limits=within(wall_s=1)))).status == "timeout", "it was not")


async def a_program_that_stops_itself(subject: SandboxUnderTest) -> None:
    """A program that is stopped still has a time limit."""
    result = await subject.run(
        as_program_request("import os; os.kill(os.getpid(), 19)", limits=within(wall_s=1))
    )
    demand(result.status == "timeout", shown(result))


async def cpu_time_is_limited(subject: SandboxUnderTest) -> None:
    """What computes longer than `cpu_s` is a `timeout`."""
    result = await subject.run(code("while True: pass", limits=within(cpu_s=1)))
    demand(result.status == "timeout", shown(result))
    demand(result.wall_s < PROMPT_S, f"it ran {result.wall_s} s")


async def memory_is_limited(subject: SandboxUnderTest) -> None:
    """More than `memory_mb` is refused to a process; a Python program that dies of it is `memory`."""
    for make in (code, as_program_request):
        result = await subject.run(make("x = bytearray(900 << 20)", limits=within(memory_mb=256)))
        demand(result.status == "memory", shown(result))
        text = "try: x = bytearray(900 << 20)\nexcept MemoryError: print('went on')"
        result = await subject.run(make(text, limits=within(memory_mb=256)))
        demand((result.status, result.stdout) == ("ok", b"went on\n"), shown(result))


async def memory_in_all_is_limited(subject: SandboxUnderTest) -> None:
    """A program whose processes together hold more than `total_memory_mb` is ended, as `memory`."""
    text = """
        import os, time
        for _ in range(6):
            if os.fork() == 0:
                held = b"x" * (100 << 20)
                time.sleep(600)
        time.sleep(600)
    """
    result = await subject.run(code(text, limits=within(total_memory_mb=256, memory_mb=512)))
    demand(result.status == "memory", shown(result))


async def processes_are_limited(subject: SandboxUnderTest) -> None:
    """No more than `processes` can be made, and the next run has as many again."""
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
        result = await subject.run(code(text, limits=within(processes=24)))
        demand((result.status, result.stdout) == ("ok", b"True\n"), shown(result))


async def folders_are_limited(subject: SandboxUnderTest) -> None:
    """`BOX` and `TMPDIR` hold no more than `disk_mb` each."""
    text = """
        import errno, os
        for folder in ("/box", os.environ["TMPDIR"]):
            try:
                for number in range(40): open(f"{folder}/{number}", "wb").write(bytes(1 << 20))
            except OSError as fault: print(errno.errorcode[fault.errno], 4 <= number <= 8)
    """
    result = await subject.run(code(text, limits=within(disk_mb=8)))
    demand(result.stdout == b"ENOSPC True\nENOSPC True\n", shown(result))


async def numbers_of_files_are_limited(subject: SandboxUnderTest) -> None:
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
    result = await subject.run(code(text, limits=within(inodes=1000)))
    demand(result.status == "memory" or result.stdout == b"True\n", shown(result))


async def files_are_limited(subject: SandboxUnderTest) -> None:
    """No file grows beyond `file_mb`."""
    text = """
        try: open("x", "wb").write(bytes(9 << 20))
        except OSError as fault: print(fault.strerror)
    """
    result = await subject.run(code(text, limits=within(file_mb=8)))
    demand(result.stdout == b"File too large\n", shown(result))


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
    result = await subject.run(code(text, limits=within(open_files=32)))
    demand(result.stdout == b"True\n", shown(result))


async def output_is_cut(subject: SandboxUnderTest) -> None:
    """Of what is printed beyond `output_bytes`, head and tail are kept; the result says so."""
    text = "import sys; sys.stdout.write('HEAD' + 'x' * 40000 + 'TAIL')"
    result = await subject.run(code(text, limits=within(output_bytes=10_000)))
    demand((result.status, result.truncated) == ("ok", True), shown(result))
    demand(result.stdout.startswith(b"HEADx") and result.stdout.endswith(b"xTAIL"), shown(result))
    demand(len(result.stdout) < 11_000, f"{len(result.stdout)} bytes were kept")


async def a_flood_is_ended(subject: SandboxUnderTest) -> None:
    """What prints without end is ended, as `output_limit`."""
    for stream in (1, 2):
        text = f"import os\nwhile True: os.write({stream}, b'x' * 65536)"
        result = await subject.run(code(text, limits=within(output_bytes=100_000)))
        demand((result.status, result.truncated) == ("output_limit", True), shown(result))


BEHAVIOURS = behaviours_of(
    globals(),
    {
        "time_is_limited": "wall_s",
        "a_loop_is_ended": "wall_s",
        "a_program_that_stops_itself": "wall_s",
        "cpu_time_is_limited": "cpu_s",
        "memory_is_limited": "memory_mb",
        "memory_in_all_is_limited": "total_memory_mb",
        "processes_are_limited": "processes",
        "folders_are_limited": "disk_mb",
        "numbers_of_files_are_limited": "inodes",
        "files_are_limited": "file_mb",
        "descriptors_are_limited": "open_files",
        "output_is_cut": "output_bytes",
        "a_flood_is_ended": "output_bytes",
    },
)
