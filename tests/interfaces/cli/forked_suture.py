"""The program `suture`, forked for each call from a process that has imported what it needs.

To import it takes longer than most commands do. What is forked has everything of its own: process, variables,
folder, streams and end. All that has happened in the process that it comes from are imports.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

__all__ = ["ForkedSuture", "forked_suture"]

READ_AT_START = ("PYTHON", "LC_", "LANG")
"""Beginnings of variables that an interpreter heeds while it starts, which is over when it is forked."""


class ForkedSuture:
    """Calls `suture`.

    Args:
        address: Where the process listens that is forked.
    """

    def __init__(self, address: str) -> None:
        self._address = address

    def __call__(
        self, arguments: tuple[str, ...], *, stdin: str, env: Mapping[str, str], cwd: Path, timeout_s: float
    ) -> subprocess.CompletedProcess[str]:
        """Run one command to its end, as `subprocess.run` does."""
        command = [sys.executable, "-m", "suture.interfaces.cli", *arguments]
        if any(name.startswith(READ_AT_START) for name in env):
            return subprocess.run(
                command,
                input=stdin,
                env=env,
                cwd=cwd,
                capture_output=True,
                text=True,
                timeout=timeout_s,
                check=False,
            )
        told = json.dumps({"arguments": arguments, "environ": dict(env), "folder": str(cwd)}).encode()
        (there_in, here_in), (here_out, there_out), (here_err, there_err) = (os.pipe() for _ in range(3))
        with socket.socket(socket.AF_UNIX) as line, ThreadPoolExecutor(3) as streams:
            line.connect(self._address)
            socket.send_fds(line, [len(told).to_bytes(4, "big")], [there_in, there_out, there_err])
            line.sendall(told)
            for end in (there_in, there_out, there_err):
                os.close(end)
            streams.submit(_write, here_in, stdin)
            said, errors = (streams.submit(_read, end) for end in (here_out, here_err))
            with line.makefile("r") as answers:
                pid = int(answers.readline())
                line.settimeout(timeout_s)
                try:
                    status = int(answers.readline())
                except TimeoutError:
                    os.kill(pid, signal.SIGKILL)
                    raise subprocess.TimeoutExpired(command, timeout_s) from None
            return subprocess.CompletedProcess(command, status, said.result(), errors.result())


def _write(end: int, text: str) -> None:
    with open(end, "w", encoding="utf-8", newline="") as pipe:
        try:
            pipe.write(text)
            pipe.flush()
        except BrokenPipeError:
            pass  # it has not read on


def _read(end: int) -> str:
    with open(end, encoding="utf-8") as pipe:
        return pipe.read()


@contextmanager
def forked_suture() -> Iterator[ForkedSuture]:
    """Start the process that is forked; it ends with its stdin."""
    with tempfile.TemporaryDirectory() as folder:
        address = f"{folder}/line"
        bare = {name: value for name, value in os.environ.items() if name == "PATH"}
        with subprocess.Popen(
            [sys.executable, __file__, address],
            env=bare,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=folder,
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            yield ForkedSuture(address)


def await_call(address: str) -> None:
    """Fork a process for each call, in which this function comes back."""
    import select
    import threading

    server = socket.socket(socket.AF_UNIX)
    server.bind(address)
    server.listen()
    assert threading.active_count() == 1, "a fork has only one of them"
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while True:
        if sys.stdin in select.select([server, sys.stdin], [], [])[0]:
            os._exit(0)
        line, _ = server.accept()
        if os.fork() == 0:
            server.close()
            break
        line.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    size, streams, *_ = socket.recv_fds(line, 4, 3)
    told = json.loads(line.recv(int.from_bytes(size, "big"), socket.MSG_WAITALL))
    pid = os.fork()
    if pid:
        for end in streams:
            os.close(end)
        line.sendall(f"{pid}\n".encode())
        _, status = os.waitpid(pid, 0)
        line.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
        os._exit(0)
    line.close()
    for number, end in enumerate(streams):
        os.dup2(end, number)
        os.close(end)
    os.chdir(told["folder"])
    os.environ.clear()
    os.environ.update(told["environ"])
    sys.argv[1:] = told["arguments"]


if __name__ == "__main__":
    del sys.path[0]  # as the program itself does
    os.environ["PYDANTIC_DISABLE_PLUGINS"] = "__all__"  # as above
    import gc

    import suture.api
    import suture.interfaces.cli
    import suture.interfaces.cli.repair.heal_command
    import suture.interfaces.cli.repair.review_command
    import suture.interfaces.cli.repair.run_command
    import suture.interfaces.cli.terminal.live_view
    import suture.loop.run

    __package__ = "suture.interfaces.cli"  # by which a refusal knows what was typed
    sys.argv[0] = suture.interfaces.cli.__file__.replace("__init__", "__main__")
    gc.collect()
    gc.freeze()  # else each end would look through all that was imported, and copy it
    await_call(sys.argv[1])
    suture.interfaces.cli.main()
