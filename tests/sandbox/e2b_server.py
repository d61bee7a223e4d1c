"""A local server that speaks E2B's protocol; its machines are mount and PID namespaces of this one.

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

MACHINE = (
    *("--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib"),
    *("--symlink", "usr/lib64", "/lib64", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"),
    *("--unshare-pid", "--die-with-parent", "--cap-add", "ALL", "--clearenv"),
    *("--setenv", "PATH", "/usr/bin:/bin", "--"),
)


class E2bServer:
    """Answers what the SDK asks for; `created` and `deleted` tell what it was asked.

    `slow_s` is how long it takes to make a machine, in seconds, after it was asked.
    """

    def __init__(self) -> None:
        self.created: list[dict[str, Any]] = []
        self.deleted: list[str] = []
        self.slow_s = 0.0
        self.keys: set[str | None] = set()
        self._processes: dict[int, Process] = {}
        self._owners: dict[int, str] = {}
        self._running: set[asyncio.Task[Any]] = set()
        self._connections: set[asyncio.Task[Any]] = set()
        self._server: asyncio.Server | None = None

    async def start(self) -> str:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        if self._server is None:
            return
        for process in self._processes.values():
            kill(process)
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
            pass  # cancelled only by `stop`
        finally:
            writer.transport.abort()

    async def _converse(self, reader: StreamReader, writer: StreamWriter) -> None:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            method, path, _ = head[0].split(" ")
            pairs = (line.partition(":") for line in head[1:])
            fields = {name.lower(): value.strip() for name, _, value in pairs}
            body = await read_body(reader, fields)
            await self._answer(method, path.partition("?")[0], fields, body, writer)

    async def _answer(
        self, method: str, path: str, fields: dict[str, str], body: bytes, writer: StreamWriter
    ) -> None:
        if method == "POST" and path.endswith("/sandboxes"):
            self.keys.add(fields.get("x-api-key"))
            self.created.append(json.loads(body))
            made = f"machine{len(self.created)}"
            await asyncio.sleep(self.slow_s)
            facts = {"sandboxID": made, "templateID": "t", "clientID": "c", "envdVersion": "0.5.7"}
            return reply(writer, 201, {**facts, "envdAccessToken": "token", "domain": None})
        if method == "DELETE":
            machine = path.rpartition("/")[2]
            self.deleted.append(machine)
            for pid, process in self._processes.items():
                if self._owners[pid] == machine:
                    kill(process)
            return reply(writer, 204, None)
        if path == "/process.Process/Start":
            running = asyncio.create_task(
                self._run(json.loads(body[5:]), fields.get("e2b-sandbox-id", ""), writer)
            )
            self._running.add(running)
            running.add_done_callback(self._running.discard)
            return await asyncio.shield(running)
        if path == "/process.Process/SendInput":
            asked = json.loads(body)
            process = self._processes[int(asked["process"]["pid"])]
            assert process.stdin is not None
            with suppress(ConnectionError):
                process.stdin.write(base64.b64decode(asked["input"]["stdin"]))
                await process.stdin.drain()
            return reply(writer, 200, {})
        return reply(writer, 404, {"code": "not_found", "message": f"{method} {path}"})

    async def _run(self, asked: dict[str, Any], machine: str, writer: StreamWriter) -> None:
        words = (asked["process"]["cmd"], *asked["process"]["args"])
        process = await asyncio.create_subprocess_exec(
            find_bubblewraps()[0], *MACHINE, *words, stdin=PIPE, stdout=PIPE, stderr=PIPE
        )
        self._processes[process.pid], self._owners[process.pid] = process, machine
        if machine in self.deleted:
            kill(process)
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/connect+json\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        send(writer, 0, {"event": {"start": {"pid": process.pid}}})

        async def pump(stream: StreamReader, name: str) -> None:
            while piece := await stream.read(1 << 16):
                text = base64.b64encode(piece).decode()
                send(writer, 0, {"event": {"data": {name: text}}})

        assert process.stdout is not None
        assert process.stderr is not None
        await asyncio.gather(pump(process.stdout, "stdout"), pump(process.stderr, "stderr"))
        code = await process.wait()
        assert process.stdin is not None
        process.stdin.close()
        ended = {"exitCode": code, "exited": True, "status": f"exit status {code}"}
        send(writer, 0, {"event": {"end": ended}})
        send(writer, 2, {})
        writer.write(b"0\r\n\r\n")


async def read_body(reader: StreamReader, fields: dict[str, str]) -> bytes:
    if "content-length" in fields:
        return await reader.readexactly(int(fields["content-length"]))
    body = b""
    while fields.get("transfer-encoding") == "chunked":
        size = int(await reader.readline(), 16)
        body += (await reader.readexactly(size + 2))[:-2]
        if size == 0:
            break
    return body


def kill(process: Process) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.kill()


def send(writer: StreamWriter, flag: int, message: dict[str, Any]) -> None:
    content = json.dumps(message).encode()
    frame = bytes([flag]) + len(content).to_bytes(4, "big") + content
    if not writer.is_closing():
        writer.write(b"%x\r\n%b\r\n" % (len(frame), frame))


def reply(writer: StreamWriter, status: int, message: dict[str, Any] | None) -> None:
    content = b"" if message is None else json.dumps(message).encode()
    head = f"HTTP/1.1 {status} OK\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
    writer.write(head.encode() + content)


async def serve() -> None:
    print(await E2bServer().start(), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve())
