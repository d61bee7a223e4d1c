"""A local server that speaks E2B's protocol; its machines are namespaces of this machine.

`python -m sandbox.e2b_server` prints its address and serves until it is killed.
"""

from __future__ import annotations

import asyncio
import base64
import json
from asyncio import StreamReader, StreamWriter
from asyncio.subprocess import PIPE, Process
from contextlib import suppress
from typing import Any

from suture.sandbox.bubblewrap.launcher import find_bubblewraps

__all__ = ["E2bServer"]

MACHINE_OPTIONS = (
    "--ro-bind",
    "/usr",
    "/usr",
    "--symlink",
    "usr/bin",
    "/bin",
    "--symlink",
    "usr/lib",
    "/lib",
    "--symlink",
    "usr/lib64",
    "/lib64",
    "--dev",
    "/dev",
    "--proc",
    "/proc",
    "--tmpfs",
    "/tmp",
    "--unshare-pid",
    "--die-with-parent",
    "--cap-add",
    "ALL",
    "--clearenv",
    "--setenv",
    "PATH",
    "/usr/bin:/bin",
    "--",
)
"""The options of bubblewrap that make a machine."""


class E2bServer:
    """Answers the requests of the SDK.

    Attributes:
        created: The requests for a new machine.
        deleted: The machines whose deletion was requested.
        start_delay_s: How long the creation of a machine takes, in seconds.
        api_keys: The keys that clients have sent.
    """

    def __init__(self) -> None:
        self.created: list[dict[str, Any]] = []
        self.deleted: list[str] = []
        self.start_delay_s = 0.0
        self.api_keys: set[str | None] = set()
        self._processes: dict[int, Process] = {}
        self._owners: dict[int, str] = {}
        self._running: set[asyncio.Task[Any]] = set()
        self._connections: set[asyncio.Task[Any]] = set()
        self._server: asyncio.Server | None = None

    async def start(self) -> str:
        """Listen on a free port and return the server's address."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        if self._server is None:
            return
        for process in self._processes.values():
            kill_process(process)
        if self._running:
            await asyncio.wait(self._running, timeout=5)
        self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            await self._converse(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # only `stop` cancels it
        finally:
            writer.transport.abort()

    async def _converse(self, reader: StreamReader, writer: StreamWriter) -> None:
        while True:
            lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            method, path, _ = lines[0].split(" ")
            header_pairs = (line.partition(":") for line in lines[1:])
            headers = {name.lower(): value.strip() for name, _, value in header_pairs}
            body = await read_body(reader, headers)
            await self._answer(method, path.partition("?")[0], headers, body, writer)

    async def _answer(
        self, method: str, path: str, headers: dict[str, str], body: bytes, writer: StreamWriter
    ) -> None:
        if method == "POST" and path.endswith("/sandboxes"):
            self.api_keys.add(headers.get("x-api-key"))
            self.created.append(json.loads(body))
            machine_id = f"machine{len(self.created)}"
            await asyncio.sleep(self.start_delay_s)
            machine_info = {
                "sandboxID": machine_id,
                "templateID": "t",
                "clientID": "c",
                "envdVersion": "0.5.7",
            }
            return send_response(writer, 201, {**machine_info, "envdAccessToken": "token", "domain": None})
        if method == "DELETE":
            machine = path.rpartition("/")[2]
            self.deleted.append(machine)
            for pid, process in self._processes.items():
                if self._owners[pid] == machine:
                    kill_process(process)
            return send_response(writer, 204, None)
        if path == "/process.Process/Start":
            task = asyncio.create_task(
                self._run(json.loads(body[5:]), headers.get("e2b-sandbox-id", ""), writer)
            )
            self._running.add(task)
            task.add_done_callback(self._running.discard)
            return await asyncio.shield(task)
        if path == "/process.Process/SendInput":
            message = json.loads(body)
            process = self._processes[int(message["process"]["pid"])]
            assert process.stdin is not None
            with suppress(ConnectionError):
                process.stdin.write(base64.b64decode(message["input"]["stdin"]))
                await process.stdin.drain()
            return send_response(writer, 200, {})
        return send_response(writer, 404, {"code": "not_found", "message": f"{method} {path}"})

    async def _run(self, message: dict[str, Any], machine: str, writer: StreamWriter) -> None:
        command = (message["process"]["cmd"], *message["process"]["args"])
        process = await asyncio.create_subprocess_exec(
            find_bubblewraps()[0], *MACHINE_OPTIONS, *command, stdin=PIPE, stdout=PIPE, stderr=PIPE
        )
        self._processes[process.pid], self._owners[process.pid] = process, machine
        if machine in self.deleted:
            kill_process(process)
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/connect+json\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        send_message(writer, 0, {"event": {"start": {"pid": process.pid}}})

        async def forward(stream: StreamReader, name: str) -> None:
            while chunk := await stream.read(1 << 16):
                text = base64.b64encode(chunk).decode()
                send_message(writer, 0, {"event": {"data": {name: text}}})

        assert process.stdout is not None
        assert process.stderr is not None
        await asyncio.gather(forward(process.stdout, "stdout"), forward(process.stderr, "stderr"))
        code = await process.wait()
        assert process.stdin is not None
        process.stdin.close()
        end = {"exitCode": code, "exited": True, "status": f"exit status {code}"}
        send_message(writer, 0, {"event": {"end": end}})
        send_message(writer, 2, {})
        writer.write(b"0\r\n\r\n")


async def read_body(reader: StreamReader, headers: dict[str, str]) -> bytes:
    """Read the body of a request, which may be chunked."""
    if "content-length" in headers:
        return await reader.readexactly(int(headers["content-length"]))
    body = b""
    while headers.get("transfer-encoding") == "chunked":
        size = int(await reader.readline(), 16)
        body += (await reader.readexactly(size + 2))[:-2]
        if size == 0:
            break
    return body


def kill_process(process: Process) -> None:
    """Kill a process that may have ended."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.kill()


def send_message(writer: StreamWriter, flag: int, message: dict[str, Any]) -> None:
    """Write a message of the Connect protocol as a chunk."""
    content = json.dumps(message).encode()
    frame = bytes([flag]) + len(content).to_bytes(4, "big") + content
    if not writer.is_closing():
        writer.write(b"%x\r\n%b\r\n" % (len(frame), frame))


def send_response(writer: StreamWriter, status: int, message: dict[str, Any] | None) -> None:
    """Write a JSON response."""
    content = b"" if message is None else json.dumps(message).encode()
    head = f"HTTP/1.1 {status} OK\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
    writer.write(head.encode() + content)


async def serve() -> None:
    """Serve until this process is killed."""
    print(await E2bServer().start(), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve())
