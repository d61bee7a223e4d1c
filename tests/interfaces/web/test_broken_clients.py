"""Clients that break off, or send nothing, neither fill the server's log nor keep others out."""

from __future__ import annotations

import resource
import socket
import time
from pathlib import Path
from unittest.mock import Mock
from urllib.parse import urlsplit

import pytest
import uvicorn
from fastapi import FastAPI

from interfaces.web.real_server import PATIENCE_S, Server
from suture.interfaces.web import uvicorn_server
from suture.interfaces.web.uvicorn_server import _QuietServer

HEADERS = b" HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n"
UPLOAD, REQUEST = (b"POST /v1/" + name + HEADERS + b"{" for name in (b"archives", b"runs"))


def connect(server: Server, sent: bytes = b"") -> socket.socket:
    address = urlsplit(server.url)
    connection = socket.create_connection((str(address.hostname), address.port or 0), timeout=PATIENCE_S)
    connection.sendall(sent)
    return connection


def test_a_client_that_sends_requests_keeps_its_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    app = FastAPI()
    server = _QuietServer(uvicorn.Config(app), app)
    polling, _, uploading = connections = [Mock(cycle=None) for _ in range(3)]
    server.server_state.connections = set(connections)
    uploading.cycle = Mock(response_complete=False, more_body=True)

    for second in range(41):
        polling.cycle = Mock(response_complete=True)
        uploading.cycle.response_complete = second == 40
        monkeypatch.setattr(uvicorn_server, "time", Mock(monotonic=lambda now_s=1000.0 + second: now_s))
        server._close_slow_connections()
    closed = [connection.transport.close.called for connection in connections]
    assert closed == [False, True, False]


@pytest.mark.heavy
def test_clients_that_break_off_or_send_nothing_do_not_disturb(tmp_path: Path) -> None:
    with Server(tmp_path, "--model", "none") as server:
        for sent in (UPLOAD, REQUEST):
            connect(server, sent).close()
        assert server.get("/v1/runs").status_code == 200  # imports what it needs
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (60, 60))
        silent = [connect(server) for _ in range(80)]
        assert silent[0].recv(1) == b""  # it was closed, because others wait
        assert server.get("/healthz").json()["ok"]
        for connection in silent:
            connection.close()

        upload = connect(server, UPLOAD)
        assert server.get("/healthz").json()["ok"]
        started_s = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - started_s < PATIENCE_S
        upload.close()
    lines = server.read_stderr().splitlines()
    assert [line.partition(":")[0] for line in lines] == ["too many files are open"]
