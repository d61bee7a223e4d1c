"""What remains of a run, concurrent runs, closing, and what a sandbox says about itself."""

from __future__ import annotations

import asyncio
import os

from sandbox.conformance.behaviour import (
    GENEROUS_LIMITS,
    PROMPT_S,
    SandboxUnderTest,
    code_request,
    collect_behaviours,
    demand,
    describe,
    program_request,
    shared_folder,
)
from suture.sandbox.contract import ISOLATION_LEVELS, LIMIT_NAMES, RunRequest

TURNS = 4
"""How often a sandbox is opened and closed: a leak occurs each time, loading something only the first time.
"""
LEAVE_STATE = """
    import builtins, os, socket, sys, time
    builtins.left = True; sys.modules["left_behind"] = sys
    os.environ["LEFT"] = "x"; os.umask(0); os.chdir("/")
    for folder in ("/box", "/tmp", "/dev/shm"): open(folder + "/left", "w").write("x")
    if os.fork() == 0:
        os.setsid()
        hidden = socket.socket(socket.AF_UNIX); hidden.bind("\\0left-behind"); hidden.listen()
        tcp = socket.create_server(("127.0.0.1", 7011))
        open("/tmp/listening", "w")
        time.sleep(600)
    while not os.path.exists("/tmp/listening"): time.sleep(0.01)
"""
"""A program that leaves whatever it can: names, variables, files, a process, sockets."""


async def no_state_remains(subject: SandboxUnderTest) -> None:
    """A run starts clean: no file, module, variable or setting of an earlier one remains."""
    inspect = """
        import os, sys
        kept = [hasattr(__builtins__, "left"), "left_behind" in sys.modules, "LEFT" in os.environ]
        print(kept, os.umask(0o22), os.getcwd(), [os.listdir(f) for f in ("/box", "/tmp", "/dev/shm")])
    """
    for create_request in (code_request, program_request):
        demand((await subject.run(create_request(LEAVE_STATE))).status == "ok", "the run that leaves things")
        result = await subject.run(create_request(inspect))
        demand(result.stdout == b"[False, False, False] 18 /box [[], [], []]\n", describe(result))


async def no_process_remains(subject: SandboxUnderTest) -> None:
    """Everything that a program started ends with it, whatever session it is in."""
    inspect = """
        import socket
        with socket.socket(socket.AF_UNIX) as client:
            try: client.connect("\\0left-behind"); print("it lives")
            except OSError: pass
        try: socket.create_connection(("127.0.0.1", 7011), 1); print("it lives")
        except OSError: pass
        with socket.create_server(("127.0.0.1", 7011)): print("free")
    """
    for create_request in (code_request, program_request):
        demand(
            (await subject.run(create_request(LEAVE_STATE))).status == "ok", "the run that leaves somebody"
        )
        result = await subject.run(create_request(inspect))
        demand(result.stdout == b"free\n", describe(result))


async def children_do_not_delay_the_end(subject: SandboxUnderTest) -> None:
    """A program ends when it exits, even if a child keeps its output open."""
    result = await subject.run(
        RunRequest(argv=("/bin/sh", "-c", "sleep 600 & echo ended"), limits=GENEROUS_LIMITS)
    )
    demand((result.status, result.stdout) == ("ok", b"ended\n"), describe(result))


async def concurrent_runs_do_not_mix(subject: SandboxUnderTest) -> None:
    """Concurrent runs do not mix."""
    text = """
        import os, sys
        open("x", "w").write(sys.stdin.read())
        print(open("x").read(), os.listdir("."))
    """
    requests = [
        create_request(text, stdin=str(number).encode())
        for number in range(4)
        for create_request in (code_request, program_request)
    ]
    results = await asyncio.gather(*(subject.run(request) for request in requests))
    expected = [b"%d ['x']\n" % (number // 2) for number in range(8)]
    demand([result.stdout for result in results] == expected, [describe(result) for result in results])


async def concurrent_runs_are_separate(subject: SandboxUnderTest) -> None:
    """Concurrent runs share no port, abstract socket, folder or process."""
    hold = """
        import os, socket, sys
        hidden = socket.socket(socket.AF_UNIX); hidden.bind("\\0meeting")
        tcp = socket.create_server(("127.0.0.1", 7012)); open("/dev/shm/mine", "w")
        os.write(1, b"\\0\\0\\0\\2on"); sys.stdin.read()
    """
    async with (
        subject.sandbox.open(code_request(hold)) as first,
        subject.sandbox.open(code_request(hold)) as second,
    ):
        demand([await first.receive(60), await second.receive(60)] == [b"on", b"on"], "one could not start")
        result = await subject.run(
            code_request("""
                import os, signal
                for name in os.listdir("/proc"):
                    if name.isdigit() and int(name) not in (1, os.getpid(), os.getppid()):
                        try: os.kill(int(name), 9); print("killed", name)
                        except OSError: pass
                print(os.listdir("/dev/shm"))
            """)
        )
        demand(result.stdout == b"[]\n", describe(result))
        for channel in (first, second):
            demand((await channel.finish()).status == "ok", "one that was held has fallen")


async def cancelling_ends_a_run(subject: SandboxUnderTest) -> None:
    """A cancelled run ends immediately, and the sandbox continues."""
    running = asyncio.create_task(subject.run(program_request("import time; time.sleep(600)")))
    await asyncio.sleep(0.5)
    running.cancel()
    await asyncio.wait([running], timeout=PROMPT_S)
    demand(running.cancelled(), "it was not cancelled, or not at once")
    demand((await subject.run(code_request("print(1)"))).stdout == b"1\n", "the next run")


async def cancelling_a_start_is_harmless(subject: SandboxUnderTest) -> None:
    """A run may be cancelled at any moment while it starts."""
    for step in range(6):
        running = asyncio.create_task(subject.run(code_request("pass")))
        await asyncio.sleep(0.004 * step)
        running.cancel()
        await asyncio.wait([running])
    demand((await subject.run(code_request("print(1)"))).stdout == b"1\n", "the next run")


async def killing_everything_is_survived(subject: SandboxUnderTest) -> None:
    """A program that kills all it can reach ends itself, and the sandbox continues."""
    result = await subject.run(
        program_request("import os, time; os.kill(-1, 9); os.kill(1, 9); print('alive')")
    )
    demand(result.status in ("ok", "failed", "signalled"), describe(result))
    demand((await subject.run(code_request("print(1)"))).stdout == b"1\n", "the next run")


async def closing_ends_what_runs(subject: SandboxUnderTest) -> None:
    """Closing a sandbox ends what runs in it, as `signalled`; it may be closed twice."""
    another = subject.create_another()
    wait = "import os, time; os.write(1, b'\\0\\0\\0\\2on'); time.sleep(600)"
    async with another.open(program_request(wait)) as channel:
        demand(await channel.receive(60) == b"on", "it did not start")
        await another.close()
        await another.close()
        result = await channel.finish()
    demand(result.status == "signalled", describe(result))


async def closing_leaves_nothing_open(subject: SandboxUnderTest) -> None:
    """A closed sandbox leaves no file descriptor and no task on the host."""
    folder = "/proc/self/fd"
    if not os.path.isdir(folder):  # noqa: PTH112 - no disk is waited for
        return
    new_files, new_tasks = 0, set[asyncio.Task[object]]()
    for turn in range(TURNS):
        files, tasks = len(os.listdir(folder)), asyncio.all_tasks()  # noqa: PTH208 (names alone are counted)
        another = subject.create_another()
        demand((await another.run(code_request("pass"))).status == "ok", "a run")
        await another.close()
        await asyncio.sleep(0.05)
        # The other sandbox may have finished something in the background just now; that happens only once.
        new_tasks = {task for task in asyncio.all_tasks() - tasks if not task.done()}
        new_files = len(os.listdir(folder)) - files  # noqa: PTH208 (names alone are counted)
        if turn and new_files <= 0 and not new_tasks:
            return
    demand(not new_tasks, f"tasks, each time: {new_tasks}")
    demand(False, f"{new_files} descriptors are left open, each time")


async def unused_sandbox_can_be_closed(subject: SandboxUnderTest) -> None:
    """A sandbox that was never used can be closed."""
    another = subject.create_another()
    await another.close()
    await another.close()


async def capabilities_are_consistent(subject: SandboxUnderTest) -> None:
    """The capabilities of a sandbox are consistent, and the same each time."""
    claim = await subject.sandbox.capabilities()
    demand(claim == await subject.sandbox.capabilities(), "it changes its mind")
    demand(claim.level in ISOLATION_LEVELS, claim.level)
    demand("python" in claim.languages, claim.languages)
    limits = set(LIMIT_NAMES)
    demand(claim.limits <= limits, claim.limits - limits)
    demand({*claim.limits, *claim.missing_limits} == limits, "limits and missing limits are not all limits")
    limits_memory = "total_memory_mb" in claim.limits
    demand((claim.memory_enforcement != "none") == limits_memory, f"total memory: {claim}")
    demand({"wall_s", "output_bytes"} <= claim.limits, "no sandbox can do without these limits")
    demand(subject.sandbox.name.strip() == subject.sandbox.name != "", "its name")


async def host_folders_are_not_written(subject: SandboxUnderTest) -> None:
    """A program cannot write to folders of the host, even if all users may."""
    with shared_folder() as folder:
        await subject.run(code_request(f"try: open({str(folder / 'planted')!r}, 'w')\nexcept OSError: pass"))
        demand([path.name for path in folder.iterdir()] == ["text"], "it wrote a file on the host")


async def host_folders_are_not_read(subject: SandboxUnderTest) -> None:
    """A program cannot read folders of the host, even if all users may."""
    with shared_folder() as folder:
        path = str(folder / "text")
        result = await subject.run(
            code_request(f"try: print(open({path!r}).read())\nexcept OSError: print('refused')")
        )
    demand(result.stdout == b"refused\n", describe(result))


async def network_is_unreachable(subject: SandboxUnderTest) -> None:
    """A program reaches nothing but its own loopback."""
    text = """
        import socket
        for address in (("192.0.2.1", 80), ("10.0.0.1", 80), ("169.254.169.254", 80)):
            try: socket.create_connection(address, 1); print("reached", address)
            except OSError: pass
        with socket.create_server(("127.0.0.1", 0)) as server:
            socket.create_connection(server.getsockname()); print("own loopback")
    """
    result = await subject.run(code_request(text))
    demand(result.stdout == b"own loopback\n", describe(result))


BEHAVIOURS = collect_behaviours(globals())
