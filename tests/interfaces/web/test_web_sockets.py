"""The server has no web sockets, and refuses a request for one like any other wrong request."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from interfaces.web.real_server import Server

HANDSHAKE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("sockets"), "--model", "none") as server:
        yield server


@pytest.mark.parametrize("path", ["/", "/v1/runs", "/healthz", "/nowhere"])
@pytest.mark.parametrize("changes", [{}, {"Sec-WebSocket-Key": "x"}, {"Upgrade": "h2c, WebSocket"}])
def test_a_request_for_a_web_socket_gets_a_problem_document(
    server: Server, path: str, changes: dict[str, str]
) -> None:
    response = server.get(path, headers={**HANDSHAKE, **changes})
    assert response.status_code == 400, response.text
    assert response.headers["content-type"] == "application/problem+json"
    assert response.json()["detail"] == "this server has no web sockets"


def test_a_request_for_a_web_socket_under_a_foreign_name_is_refused_for_that(server: Server) -> None:
    response = server.get("/v1/runs", headers={**HANDSHAKE, "Host": "evil.example"})
    assert response.status_code == 421


def test_an_upgrade_to_another_protocol_is_ignored(server: Server) -> None:
    headers = {
        "Connection": "Upgrade, HTTP2-Settings",
        "Upgrade": "h2c",
        "HTTP2-Settings": "AAMAAABkAAQAAP__",
    }
    assert server.get("/healthz", headers=headers).status_code == 200


def test_refused_upgrades_leave_no_trace_in_the_log(server: Server) -> None:
    server.get("/v1/runs", headers=HANDSHAKE)
    assert server.read_stderr() == ""
