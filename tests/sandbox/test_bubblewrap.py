"""What every wall must do: this list runs as whoever runs the suite, and once more as an ordinary user."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
import uuid
from pathlib import Path

import pytest

from sandbox.sandbox_programs import eventually_gone, python, survivors
from suture.errors import SandboxBroken, UsageError
from suture.sandbox import BOX, BubblewrapSandbox, Mount, ProgramLimits, RunRequest, own_interpreter


@pytest.mark.parametrize(("code", "status"), [(0, "ok"), (1, "failed"), (3, "failed"), (137, "failed")])
async def test_exit_codes_come_back(sandbox: BubblewrapSandbox, code: int, status: str) -> None:
    result = await sandbox.run(python(f"raise SystemExit({code})"))
    assert (result.status, result.exit_code, result.signal) == (status, code, None)


async def test_a_signal_is_told_from_an_exit_code(sandbox: BubblewrapSandbox) -> None:
    result = await sandbox.run(python("import os; os.kill(os.getpid(), 11)"))
    assert (result.status, result.exit_code, result.signal) == ("signalled", None, 11)


async def test_output_is_bytes(sandbox: BubblewrapSandbox) -> None:
    result = await sandbox.run(python(r"import os; os.write(1, b'a\0\xff\x1b['); os.write(2, b'\xfe')"))
    assert (result.stdout, result.stderr, result.truncated) == (b"a\0\xff\x1b[", b"\xfe", False)


async def test_stdin_arrives_and_ends(sandbox: BubblewrapSandbox) -> None:
    echo = "import sys; sys.stdout.write(sys.stdin.read().upper())"
    assert (await sandbox.run(python(echo, stdin=b"abc" * 100_000))).stdout == b"ABC" * 100_000
    assert (await sandbox.run(python(echo))).stdout == b""


async def test_stdin_that_nobody_reads_does_no_harm(sandbox: BubblewrapSandbox) -> None:
    assert (await sandbox.run(python("pass", stdin=b"x" * (4 << 20)))).status == "ok"


async def test_a_program_that_is_not_there(sandbox: BubblewrapSandbox) -> None:
    result = await sandbox.run(RunRequest(argv=("no-such-program", "x")))
    assert (result.status, result.exit_code) == ("failed", 127)
    assert b"cannot start 'no-such-program': No such file" in result.stderr
    assert (await sandbox.run(RunRequest(argv=("/etc/passwd",)))).exit_code == 126


async def test_files_go_in_and_chosen_ones_come_out(sandbox: BubblewrapSandbox) -> None:
    code = """
        import os
        print(os.getcwd(), open("a/b/c.txt").read(), open("ümläut \\n.txt").read())
        open("a/b/c.txt", "a").write("!")
        os.mkdir("new"); open("new/made.bin", "wb").write(bytes(range(256)))
    """
    files = {"a/b/c.txt": b"in", "ümläut \n.txt": b"u", "empty": b""}
    collect = ("a/b/c.txt", "new/made.bin", "empty", "missing", "a", "a/b/c.txt/d")
    result = await sandbox.run(python(code, files=files, collect=collect))
    assert result.stdout.decode().split() == [BOX, "in", "u"]
    assert result.files == {"a/b/c.txt": b"in!", "new/made.bin": bytes(range(256)), "empty": b""}


async def test_a_few_thousand_files(sandbox: BubblewrapSandbox) -> None:
    files = {f"d{n % 40}/f{n}.py": b"x = 1\n" for n in range(3000)}
    code = "import os; print(sum(len(names) for _, _, names in os.walk('.')))"
    assert (await sandbox.run(python(code, files=files))).stdout == b"3000\n"


async def test_collecting_follows_no_link_and_takes_only_files(sandbox: BubblewrapSandbox) -> None:
    code = """
        import os
        os.symlink("/etc/passwd", "link"); os.symlink("/etc", "folder"); os.mkfifo("fifo")
        os.mkdir("real"); os.symlink("real", "alias"); open("real/file", "w").write("x")
        open("huge", "wb").truncate(60 << 20)
    """
    collect = ("link", "folder/passwd", "fifo", "alias/file", "real/file", "huge", "real")
    result = await sandbox.run(python(code, collect=collect))
    assert result.status == "ok"
    assert result.files == {"real/file": b"x"}


async def test_nothing_is_kept_from_run_to_run(sandbox: BubblewrapSandbox) -> None:
    code = "import os; print(os.listdir('.'), os.listdir('/tmp'), os.listdir('/dev/shm'))"
    write = "[open(f + '/x', 'w') for f in ('/box', '/tmp', '/dev/shm')]"
    assert (await sandbox.run(python(write))).status == "ok"
    assert (await sandbox.run(python(code))).stdout == b"[] [] []\n"


async def test_the_environment_is_only_what_was_asked(
    sandbox: BubblewrapSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-7d1")
    code = """
        import glob, os
        print(sorted(os.environ))
        for name in glob.glob("/proc/[0-9]*/environ"):
            try: print(name, open(name, "rb").read())
            except OSError as fault: print(name, fault)
    """
    result = await sandbox.run(python(code, env={"MY": "1", "HOME": "/tmp"}))
    assert b"canary" not in result.stdout + result.stderr
    assert result.stdout.startswith(b"['HOME', 'LANG', 'MY', 'PATH', 'TMPDIR']")


async def test_no_descriptor_is_inherited(sandbox: BubblewrapSandbox) -> None:
    result = await sandbox.run(python("import os; print(sorted(map(int, os.listdir('/proc/self/fd'))))"))
    assert result.stdout == b"[0, 1, 2, 3]\n"  # 3 is the listing itself


async def test_no_network(sandbox: BubblewrapSandbox) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code = f"""
            import socket
            for address in (("127.0.0.1", {port}), ("192.0.2.1", 80)):
                try: socket.create_connection(address, 3); print("open")
                except OSError: print("closed")
            server = socket.create_server(("localhost", 0))
            socket.create_connection(server.getsockname()); print("own loopback")
        """
        assert (await sandbox.run(python(code))).stdout.split(b"\n") == [
            b"closed",
            b"closed",
            b"own loopback",
            b"",
        ]


async def test_nothing_outside_can_be_written(sandbox: BubblewrapSandbox, tmp_path: Path) -> None:
    interpreter = own_interpreter()
    folders = (
        "/",
        "/usr",
        "/usr/bin",
        "/dev",
        "/etc",
        "/proc/sys/kernel",
        interpreter.prefix + "/lib",
        "/root",
    )
    code = f"""
        import os
        for folder in {folders!r}:
            try: open(folder + "/planted", "w"); print("WROTE", folder)
            except OSError: pass
        for name in ("/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/etc/passwd"):
            try: os.open(name, os.O_WRONLY); print("OPENED", name)
            except OSError: pass
    """
    result = await sandbox.run(python(code))
    assert (result.status, result.stdout) == ("ok", b"")


async def test_host_files_are_not_there(sandbox: BubblewrapSandbox, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("canary")
    paths = (str(secret), "/etc/shadow", str(Path.home() / ".bashrc"), "/home", "/var", "/run", "/sys")
    code = f"import os; print([path for path in {paths!r} if os.path.exists(path)])"
    assert (await sandbox.run(python(code))).stdout == b"[]\n"


async def test_no_privilege_and_no_way_to_get_one(sandbox: BubblewrapSandbox) -> None:
    code = """
        import os
        status = dict(line.split(":\\t", 1) for line in open("/proc/self/status").read().splitlines())
        print(os.getuid(), os.getgid(), *(status[key].strip() for key in ("CapEff", "CapPrm", "NoNewPrivs")))
        mknod = lambda: os.mknod("/tmp/x", 0o60600, 0x800)
        for call in (lambda: os.setuid(0), lambda: os.chroot("/tmp"), mknod):
            try: call(); print("DONE")
            except OSError: pass
        print(open("/proc/self/uid_map").read().split()[1])
    """
    result = await sandbox.run(python(code))
    lines = result.stdout.decode().splitlines()
    assert lines[0] == f"65534 65534 {'0' * 16} {'0' * 16} 1"
    assert len(lines) == 2, result


async def test_own_namespaces_cannot_be_made(sandbox: BubblewrapSandbox) -> None:
    result = await sandbox.run(RunRequest(argv=("unshare", "--user", "true")))
    assert result.status == "failed"


@pytest.mark.parametrize("folder", ["/box", "/tmp", "/dev/shm"])
async def test_folders_have_a_size(sandbox: BubblewrapSandbox, folder: str) -> None:
    code = f"""
        import errno
        try:
            for n in range(40): open("{folder}/%d" % n, "wb").write(bytes(1 << 20))
        except OSError as fault: print(errno.errorcode[fault.errno])
    """
    result = await sandbox.run(python(code, limits=ProgramLimits(disk_mb=8, wall_s=30)))
    assert result.stdout == b"ENOSPC\n"


async def test_a_file_has_a_size(sandbox: BubblewrapSandbox) -> None:
    code = "open('x', 'wb').write(bytes(9 << 20))"
    result = await sandbox.run(python(code, limits=ProgramLimits(file_mb=8, wall_s=30)))
    assert result.status == "failed"
    assert b"File too large" in result.stderr


async def test_memory_has_a_limit(sandbox: BubblewrapSandbox) -> None:
    result = await sandbox.run(
        python("x = bytearray(900 << 20)", limits=ProgramLimits(memory_mb=256, wall_s=30))
    )
    assert result.status == "memory"


async def test_a_fork_bomb_stops_at_the_limit(sandbox: BubblewrapSandbox) -> None:
    code = """
        import os, time
        count = 0
        try:
            while True:
                if os.fork() == 0: time.sleep(60); os._exit(0)
                count += 1
        except OSError: print(count)
    """
    result = await sandbox.run(python(code, limits=ProgramLimits(processes=24, wall_s=30)))
    assert 15 <= int(result.stdout) < 24
    assert (await sandbox.run(python("print(1)"))).stdout == b"1\n"


async def test_a_timeout_kills_grandchildren_and_keeps_what_was_printed(sandbox: BubblewrapSandbox) -> None:
    marker = f"marker-{uuid.uuid4()}"
    code = f"""
        import os, subprocess, sys, time
        open("partial", "w").write("half")
        print("before", flush=True); print("complaint", file=sys.stderr, flush=True)
        subprocess.Popen(["/bin/sh", "-c", "trap '' TERM INT; sleep 600 # {marker}"], start_new_session=True)
        time.sleep(600)
    """
    limits = ProgramLimits(wall_s=1.5)
    result = await sandbox.run(python(code, limits=limits, collect=("partial",)))
    assert (result.status, result.exit_code) == ("timeout", None)
    assert (result.stdout, result.stderr) == (b"before\n", b"complaint\n")
    assert result.files == {"partial": b"half"}
    await eventually_gone(marker)


async def test_a_daemon_does_not_outlive_its_program(sandbox: BubblewrapSandbox) -> None:
    marker = f"marker-{uuid.uuid4()}"
    code = f"""
        import subprocess
        subprocess.Popen(["/bin/sh", "-c", "sleep 600 # {marker}"], start_new_session=True)
        print("parent ends")
    """
    result = await sandbox.run(python(code))
    assert (result.status, result.stdout) == ("ok", b"parent ends\n")
    await eventually_gone(marker)


async def test_cpu_time_has_a_limit(sandbox: BubblewrapSandbox) -> None:
    result = await sandbox.run(python("while True: pass", limits=ProgramLimits(cpu_s=1, wall_s=60)))
    assert result.status == "timeout"


async def test_killing_everything_in_reach_is_only_its_own_end(sandbox: BubblewrapSandbox) -> None:
    result = await sandbox.run(python("import os, time; os.kill(-1, 9); time.sleep(60)"))
    # Its supervisor may be in reach, or nobody at all.
    assert (result.status, result.exit_code) in (("signalled", None), ("failed", 1))
    assert (await sandbox.run(python("print(1)"))).stdout == b"1\n"


async def test_stopping_its_parent_does_not_hold_us(sandbox: BubblewrapSandbox) -> None:
    code = "import os, time; os.kill(os.getppid(), 19); print('stopped', flush=True); time.sleep(60)"
    result = await sandbox.run(python(code, limits=ProgramLimits(wall_s=1)))
    # Where its supervisor is in reach, one that stops it is ended for that.
    assert result.status in ("timeout", "signalled")
    assert result.stdout == b"stopped\n"


async def test_a_forged_account_does_not_hold_us(sandbox: BubblewrapSandbox) -> None:
    code = """
        import os, time
        for name in os.listdir("/proc/%d/fd" % os.getppid()):
            try: os.write(os.open("/proc/%d/fd/%s" % (os.getppid(), name), os.O_WRONLY), b"F" * 64)
            except OSError: pass
        time.sleep(600)
    """
    result = await sandbox.run(python(code, limits=ProgramLimits(wall_s=2), collect=("x",)))
    assert result.status in ("failed", "signalled", "timeout")  # root's pipes cannot even be opened
    assert result.files == {}


async def test_output_is_capped_with_head_and_tail_kept(sandbox: BubblewrapSandbox) -> None:
    code = "import sys; sys.stdout.write('HEAD' + 'x' * 40000 + 'TAIL')"
    result = await sandbox.run(python(code, limits=ProgramLimits(output_bytes=10_000, wall_s=30)))
    assert result.truncated
    assert result.status == "ok"
    assert result.stdout.startswith(b"HEADx")
    assert result.stdout.endswith(b"xTAIL")
    assert b"[... 30008 bytes left out ...]" in result.stdout


@pytest.mark.parametrize("stream", [1, 2])
async def test_a_flood_is_ended(sandbox: BubblewrapSandbox, stream: int) -> None:
    code = f"import os\nwhile True: os.write({stream}, b'x' * 65536)"
    result = await sandbox.run(python(code, limits=ProgramLimits(output_bytes=100_000, wall_s=60)))
    assert (result.status, result.truncated) == ("output_limit", True)


async def test_a_mount_is_shown_and_cannot_be_written(sandbox: BubblewrapSandbox, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "shown.txt").write_text("hello")
    mount = Mount(source=str(tmp_path), target="/opt/shown")
    code = """
        print(open("/opt/shown/shown.txt").read())
        try: open("/opt/shown/planted", "w")
        except OSError as fault: print(fault.strerror)
    """
    result = await sandbox.run(python(code, mounts=(mount,)))
    assert result.stdout == b"hello\nRead-only file system\n"


async def test_many_at_once_do_not_mix(sandbox: BubblewrapSandbox) -> None:
    code = "import os, sys; open('x', 'w').write(sys.stdin.read()); print(open('x').read(), os.listdir('.'))"
    requests = (python(code, stdin=str(n).encode()) for n in range(8))
    results = await asyncio.gather(*map(sandbox.run, requests))
    assert [result.stdout for result in results] == [b"%d ['x']\n" % n for n in range(8)]


async def test_cancelling_kills_the_tree(sandbox: BubblewrapSandbox) -> None:
    marker = f"marker-{uuid.uuid4()}"
    task = asyncio.create_task(sandbox.run(RunRequest(argv=("/bin/sh", "-c", f"sleep 600 # {marker}"))))
    while not survivors(marker):
        await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await eventually_gone(marker)


async def test_close_ends_what_runs_and_may_be_called_twice(sandbox: BubblewrapSandbox) -> None:
    marker = f"marker-{uuid.uuid4()}"
    task = asyncio.create_task(sandbox.run(RunRequest(argv=("/bin/sh", "-c", f"sleep 600 # {marker}"))))
    while not survivors(marker):
        await asyncio.sleep(0.02)
    await sandbox.close()
    await sandbox.close()
    assert (await task).status == "signalled"
    await eventually_gone(marker)


async def test_files_that_cannot_be_laid(sandbox: BubblewrapSandbox) -> None:
    files = {f"{'d' * 200}/" * 18 + "f": b"", "x": b""}
    with pytest.raises(UsageError):
        await sandbox.run(python("pass", files={**files, "x/y": b""}))


async def test_a_wall_that_cannot_be_built_leaves_nothing_behind(sandbox: BubblewrapSandbox) -> None:
    await sandbox.choose()
    before = set(os.listdir("/proc/self/fd"))  # noqa: PTH208
    request = python("pass", mounts=(Mount(source="/usr", target="/opt/" + "x" * 300),))
    for _ in range(3):
        with pytest.raises(SandboxBroken, match="name too long"):
            await sandbox.run(request)
    assert len(set(os.listdir("/proc/self/fd")) - before) <= 1  # noqa: PTH208
    assert (await sandbox.run(python("print(1)"))).stdout == b"1\n"


async def test_nothing_outlives_a_host_that_is_killed(sandbox: BubblewrapSandbox) -> None:
    marker = f"marker-{uuid.uuid4()}"
    code = (
        "import asyncio\nfrom suture.sandbox import *\n"
        f"request = RunRequest(argv=('/bin/sh', '-c', 'sleep 600 # {marker}'))\n"
        "asyncio.run(BubblewrapSandbox().run(request))"
    )
    environment = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    host = await asyncio.create_subprocess_exec(sys.executable, "-c", code, env=environment)
    while len(survivors(f"sleep 600 # {marker}\0")) < 1:
        await asyncio.sleep(0.05)
    host.send_signal(signal.SIGKILL)
    await host.wait()
    await eventually_gone(marker)


async def test_cancelling_while_the_wall_is_built_leaves_nothing(
    sandbox: BubblewrapSandbox, tmp_path: Path
) -> None:
    marker = f"marker-{uuid.uuid4()}"
    mount = Mount(source=str(tmp_path), target=f"/opt/{marker}")  # so it is among bubblewrap's own words
    for step in range(12):
        task = asyncio.create_task(sandbox.run(python("pass", mounts=(mount,))))
        await asyncio.sleep(0.002 + 0.006 * step)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError, UsageError, SandboxBroken):
            await task
    await sandbox.close()
    await eventually_gone(marker)
