"""Run `suture` by forking a process that has already imported it.

Importing Suture takes longer than most commands do. Each forked command has its own process, variables,
folder, streams and exit status. The parent process has only imported modules.
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

STARTUP_VARIABLES = ("PYTHON", "LC_", "LANG")
"""Prefixes of variables that an interpreter reads only while it starts, which a fork does not repeat."""


class ForkedSuture:
    """Runs `suture` commands in forks of a running process.

    Args:
        address: The path of the Unix socket at which that process listens.
    """

    def __init__(self, address: str) -> None:
        self._address = address

    def __call__(
        self, arguments: tuple[str, ...], *, stdin: str, env: Mapping[str, str], cwd: Path, timeout_s: float
    ) -> subprocess.CompletedProcess[str]:
        """Run one command to its end, as `subprocess.run` does."""
        command = [sys.executable, "-m", "suture.interfaces.cli", *arguments]
        if any(name.startswith(STARTUP_VARIABLES) for name in env):
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
        request = json.dumps({"arguments": arguments, "environ": dict(env), "folder": str(cwd)}).encode()
        (child_stdin, parent_stdin), (parent_stdout, child_stdout), (parent_stderr, child_stderr) = (
            os.pipe() for _ in range(3)
        )
        with socket.socket(socket.AF_UNIX) as connection, ThreadPoolExecutor(3) as threads:
            connection.connect(self._address)
            socket.send_fds(
                connection, [len(request).to_bytes(4, "big")], [child_stdin, child_stdout, child_stderr]
            )
            connection.sendall(request)
            for descriptor in (child_stdin, child_stdout, child_stderr):
                os.close(descriptor)
            threads.submit(_write, parent_stdin, stdin)
            output, errors = (
                threads.submit(_read, descriptor) for descriptor in (parent_stdout, parent_stderr)
            )
            with connection.makefile("r") as responses:
                pid = int(responses.readline())
                connection.settimeout(timeout_s)
                try:
                    status = int(responses.readline())
                except TimeoutError:
                    os.kill(pid, signal.SIGKILL)
                    raise subprocess.TimeoutExpired(command, timeout_s) from None
            return subprocess.CompletedProcess(command, status, output.result(), errors.result())


def _write(descriptor: int, text: str) -> None:
    with open(descriptor, "w", encoding="utf-8", newline="") as pipe:
        try:
            pipe.write(text)
            pipe.flush()
        except BrokenPipeError:
            pass  # the command ended before it had read all of its input


def _read(descriptor: int) -> str:
    with open(descriptor, encoding="utf-8") as pipe:
        return pipe.read()


@contextmanager
def forked_suture() -> Iterator[ForkedSuture]:
    """Start the process that is forked for each command; it ends when its stdin closes."""
    with tempfile.TemporaryDirectory() as folder:
        address = f"{folder}/line"
        environ = {name: value for name, value in os.environ.items() if name == "PATH"}
        with subprocess.Popen(
            [sys.executable, __file__, address],
            env=environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=folder,
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            yield ForkedSuture(address)


def serve_calls(address: str) -> None:
    """Wait for calls and fork a process for each; the function returns only in those forks."""
    import select
    import threading

    server = socket.socket(socket.AF_UNIX)
    server.bind(address)
    server.listen()
    assert threading.active_count() == 1, "a fork keeps only one thread"
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while True:
        if sys.stdin in select.select([server, sys.stdin], [], [])[0]:
            os._exit(0)
        connection, _ = server.accept()
        if os.fork() == 0:
            server.close()
            break
        connection.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    size, descriptors, *_ = socket.recv_fds(connection, 4, 3)
    request = json.loads(connection.recv(int.from_bytes(size, "big"), socket.MSG_WAITALL))
    pid = os.fork()
    if pid:
        for descriptor in descriptors:
            os.close(descriptor)
        connection.sendall(f"{pid}\n".encode())
        _, status = os.waitpid(pid, 0)
        connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
        os._exit(0)
    connection.close()
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environ"])
    sys.argv[1:] = request["arguments"]


if __name__ == "__main__":
    # The program itself does the same two things when it starts.
    del sys.path[0]
    os.environ["PYDANTIC_DISABLE_PLUGINS"] = "__all__"
    import gc

    import suture.api
    import suture.interfaces.cli
    import suture.interfaces.cli.repair.heal_command
    import suture.interfaces.cli.repair.review_command
    import suture.interfaces.cli.repair.run_command
    import suture.interfaces.cli.terminal.live_view
    import suture.loop.run

    __package__ = "suture.interfaces.cli"  # error messages derive the typed command from it
    sys.argv[0] = suture.interfaces.cli.__file__.replace("__init__", "__main__")
    gc.collect()
    gc.freeze()  # otherwise the collector of each fork would touch and copy all imported objects
    serve_calls(sys.argv[1])
    suture.interfaces.cli.main()
