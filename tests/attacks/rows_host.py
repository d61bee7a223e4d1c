"""Rows 49-51: the host itself dies, two sandboxes at once, and no sandbox at all."""

from __future__ import annotations

import asyncio
import signal
import sys

from attacks.trials import Row, World, allowed, demand, request, shown, survivors
from suture.errors import SandboxUnavailable
from suture.sandbox import RunRequest

__all__ = ["ROWS"]

PATIENCE_S = 60.0
HELD = {"wall_s": 100}
"""One that holds must outlive that another sandbox is built and attacks."""
HOLD = """
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
REACH = """
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


async def host_is_killed(world: World) -> None:
    command = (sys.executable, "-m", "attacks.driver", world.backend, "--hold", world.marker)
    host = await asyncio.create_subprocess_exec(*command, stdin=asyncio.subprocess.DEVNULL)
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not [line for line in survivors(world.marker) if "sleep" in line and "driver" not in line]:
                demand(host.returncode is None, "the host ended by itself")
                await asyncio.sleep(0.05)
    finally:
        if host.returncode is None:
            host.send_signal(signal.SIGKILL)
        await host.wait()


async def two_at_once(world: World) -> None:
    other = world.another()
    try:
        for attacker in (world.sandbox, other):
            async with world.sandbox.open(request(world, HOLD, limits=HELD)) as channel:
                demand(await channel.receive(PATIENCE_S) == b"on", "the one that holds did not start")
                result = await attacker.run(request(world, REACH))
                demand(b"BREACH" not in result.stdout, shown(result))
                demand(result.status == "ok" and b"tried" in result.stdout, shown(result))
                await channel.send(b"")
                met = await channel.receive(PATIENCE_S)
                demand(met == b"[False, False, ['mine'], ['mine']]", f"the one that holds says {met!r}")
    finally:
        await other.close()


async def two_honest(world: World) -> None:
    other = world.another()
    try:
        code = "import socket\nwith socket.create_server(('127.0.0.1', 7709)): print('fine')"
        results = await asyncio.gather(
            *(
                sandbox_requirement.run(request(world, code))
                for sandbox_requirement in (world.sandbox, other) * 2
            )
        )
        demand(
            [result.stdout for result in results] == [b"fine\n"] * 4, [shown(result) for result in results]
        )
    finally:
        await other.close()


async def no_sandbox(world: World) -> None:
    path = world.ground.folder / "ran"
    broken = world.broken()
    try:
        for words in ({"python": f"open({str(path)!r}, 'w')"}, {"argv": ("/usr/bin/touch", str(path))}):
            try:
                result = await broken.run(RunRequest(**words))
            except SandboxUnavailable as fault:
                demand(fault.remedy, f"no remedy: {fault}")
                continue
            demand(False, f"it ran all the same: {shown(result)}")
        demand(not path.exists(), "it ran on the host")
    finally:
        await broken.close()


ROWS = (
    Row(
        number=49,
        attempt="outlive a host that is killed",
        attack=host_is_killed,
        twin=allowed("import subprocess; subprocess.run(['sleep', '0.01']); print('fine')"),
    ),
    Row(
        number=50,
        attempt="attack from one sandbox what runs behind another",
        attack=two_at_once,
        twin=two_honest,
    ),
    Row(
        number=51,
        attempt="run without a sandbox, where none can be built",
        attack=no_sandbox,
        twin=allowed("print('fine')"),
    ),
)
