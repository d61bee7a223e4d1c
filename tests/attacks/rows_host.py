"""Rows 49-51: a killed host, two sandboxes at once, and no sandbox at all."""

from __future__ import annotations

import asyncio
import signal
import sys

from attacks.trials import (
    AttackContext,
    Row,
    attack_request,
    check,
    describe_result,
    expect_output,
    find_survivors,
)
from suture.errors import SandboxUnavailable
from suture.sandbox import RunRequest

__all__ = ["ROWS"]

START_TIMEOUT_S = 60.0
HOLD_LIMITS = {"wall_s": 100}
"""The program must run until another sandbox has started and attacked it."""
HOLD_PROGRAM = """
    import socket, sys, time
    listener = socket.create_server(("127.0.0.1", 7708))
    hidden = socket.socket(socket.AF_UNIX); hidden.bind("\\0mine"); hidden.listen()
    listener.setblocking(False); hidden.setblocking(False)
    open("/dev/shm/mine", "w").write("x"); open("/tmp/mine", "w").write("x")
    os.write(1, bytes([0, 0, 0, 2]) + b"on")
    sys.stdin.buffer.read(1)
    def accepted(server):
        try: return bool(server.accept())
        except BlockingIOError: return False
    met = [accepted(listener), accepted(hidden), os.listdir("/dev/shm"), os.listdir("/tmp")]
    text = str(met).encode()
    os.write(1, len(text).to_bytes(4, "big") + text)
"""
ATTACK_PROGRAM = """
    import signal, socket
    attempt("port", lambda: socket.create_connection(("127.0.0.1", 7708), 1).close())
    with socket.socket(socket.AF_UNIX) as client: attempt("abstract", client.connect, "\\0mine")
    for folder in ("/dev/shm", "/tmp"):
        attempt(folder, os.unlink, folder + "/mine")
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) not in (os.getpid(), os.getppid(), 1):
            attempt("another's process", os.kill, int(name), 9)
    for pid in range(2, 200):
        if pid not in (os.getpid(), os.getppid()):
            attempt(f"kill {pid}", os.kill, pid, 9)
    print("tried", tried)
"""


async def kill_host(context: AttackContext) -> None:
    """Kill a host while a program of its sandbox runs."""
    command = (sys.executable, "-m", "attacks.driver", context.backend, "--hold", context.marker)
    host = await asyncio.create_subprocess_exec(*command, stdin=asyncio.subprocess.DEVNULL)
    try:
        async with asyncio.timeout(START_TIMEOUT_S):
            while not [
                line for line in find_survivors(context.marker) if "sleep" in line and "driver" not in line
            ]:
                check(host.returncode is None, "the host ended by itself")
                await asyncio.sleep(0.05)
    finally:
        if host.returncode is None:
            host.send_signal(signal.SIGKILL)
        await host.wait()


async def attack_another_sandbox(context: AttackContext) -> None:
    """Attack a program from the same sandbox object and from another one."""
    other = context.open_another()
    try:
        for attacker in (context.sandbox, other):
            async with context.sandbox.open(
                attack_request(context, HOLD_PROGRAM, limits=HOLD_LIMITS)
            ) as channel:
                check(await channel.receive(START_TIMEOUT_S) == b"on", "the attacked program did not start")
                result = await attacker.run(attack_request(context, ATTACK_PROGRAM))
                check(b"BREACH" not in result.stdout, describe_result(result))
                check(result.status == "ok" and b"tried" in result.stdout, describe_result(result))
                await channel.send(b"")
                observations = await channel.receive(START_TIMEOUT_S)
                check(
                    observations == b"[False, False, ['mine'], ['mine']]",
                    f"the attacked program reports {observations!r}",
                )
    finally:
        await other.close()


async def run_in_two_sandboxes(context: AttackContext) -> None:
    """Run programs in two sandboxes that use the same port."""
    other = context.open_another()
    try:
        code = "import socket\nwith socket.create_server(('127.0.0.1', 7709)): print('fine')"
        results = await asyncio.gather(
            *(sandbox.run(attack_request(context, code)) for sandbox in (context.sandbox, other) * 2)
        )
        check(
            [result.stdout for result in results] == [b"fine\n"] * 4,
            [describe_result(result) for result in results],
        )
    finally:
        await other.close()


async def run_without_sandbox(context: AttackContext) -> None:
    """Run programs in a broken sandbox, which must refuse them."""
    path = context.bait.folder / "ran"
    broken = context.open_broken()
    try:
        for fields in ({"python": f"open({str(path)!r}, 'w')"}, {"argv": ("/usr/bin/touch", str(path))}):
            try:
                result = await broken.run(RunRequest(**fields))
            except SandboxUnavailable as fault:
                check(fault.remedy, f"no remedy: {fault}")
                continue
            check(False, f"it ran without a sandbox: {describe_result(result)}")
        check(not path.exists(), "it ran on the host")
    finally:
        await broken.close()


ROWS = (
    Row(
        number=49,
        attempt="outlive a host that is killed",
        attack=kill_host,
        twin=expect_output("import subprocess; subprocess.run(['sleep', '0.01']); print('fine')"),
    ),
    Row(
        number=50,
        attempt="attack from one sandbox what runs behind another",
        attack=attack_another_sandbox,
        twin=run_in_two_sandboxes,
    ),
    Row(
        number=51,
        attempt="run without a sandbox, where none can be built",
        attack=run_without_sandbox,
        twin=expect_output("print('fine')"),
    ),
)
