"""Start the server: check the configuration, then listen until stopped."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import logging
import math
import signal
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import uvicorn
from fastapi import FastAPI

from suture.core.settings import Settings
from suture.errors import PrerequisiteError, UsageError, describe_fault
from suture.interfaces.jobs.project_sources import require_sandbox
from suture.interfaces.web.request_guard import AccessTokens
from suture.interfaces.web.tuning import (
    BODY_TIMEOUT_S,
    EXHAUSTION_PERIOD_S,
    HEAD_TIMEOUT_S,
    LISTEN_BACKLOG,
    SHORT_HEAD_TIMEOUT_S,
    SHUTDOWN_TIMEOUT_S,
)
from suture.interfaces.web.web_app import make_app
from suture.interfaces.web.web_service import open_web_service

log = logging.getLogger("suture.interfaces.web")


def serve_web(settings: Settings, flags: Mapping[str, object], announce: Callable[[str], None]) -> None:
    """Serve until SIGTERM or Ctrl-C; running runs are recorded and resumed at the next start.

    Args:
        flags: The settings from its command line, for the processes of its jobs.
        announce: Called with the address when the server listens.

    Raises:
        UsageError: The address requires tokens and there are none, the settings disable the sandbox, or
            another server uses the same home.
        PrerequisiteError: The address cannot be used.
        StorageError: The home cannot be written.
    """
    require_sandbox(settings)
    host = settings.serve.host
    has_tokens = bool(AccessTokens(settings.paths.home).list_callers())
    if not is_loopback_address(host) and not has_tokens:
        raise UsageError(
            f"others can reach {host!r}, and there is no token to identify them",
            remedy="suture serve token add NAME --role runner, or leave out --host",
        )
    listening_socket = _listen(host, settings.serve.port)
    service, journal = open_web_service(settings, flags, needs_token=has_tokens)
    app = make_app(service, journal)
    # No access log, because it would store data that callers send.
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        # A request for a web socket then arrives as HTTP, and `RequestGuard` refuses it.
        ws="none",
        http="h11",  # whose connections `_QuietServer` can read
        timeout_graceful_shutdown=SHUTDOWN_TIMEOUT_S,
    )
    logging.getLogger("uvicorn.error").addFilter(_is_worth_logging)
    announce(url_of_socket(listening_socket))
    asyncio.run(_QuietServer(config, app).serve([listening_socket]))


def _is_worth_logging(record: logging.LogRecord) -> bool:
    """Drop uvicorn's warnings of a refused upgrade, which any caller could cause, and of what a stop has cancelled."""
    if record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError):
        return False
    message = record.getMessage()
    return not message.startswith(("Unsupported upgrade request", "No supported WebSocket library"))


class _QuietServer(uvicorn.Server):
    """Ends quietly on a signal, and closes the connections of clients that keep it waiting.

    uvicorn would raise the signal again after handling it, and wait for a request for ever.
    """

    def __init__(self, config: uvicorn.Config, app: FastAPI) -> None:
        super().__init__(config)
        self._app = app
        self._waits: dict[Any, tuple[object, float]] = {}
        """Connection -> what it waits for, and the monotonic time since when."""
        self._exhausted_s = -math.inf

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._handle_loop_error)
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._request_stop)
        yield

    def _request_stop(self) -> None:
        self._app.state.stopping = True  # event streams end by themselves then
        self.should_exit = True
        for connection in filter(_sends_body, self.server_state.connections):
            connection.transport.close()  # its request has not been executed

    async def on_tick(self, counter: int) -> bool:
        """Close slow connections once a second; uvicorn calls this ten times as often."""
        if counter % 10 == 0:
            self._close_slow_connections()
        return await super().on_tick(counter)

    def _close_slow_connections(self) -> None:
        now_s = time.monotonic()
        is_exhausted = now_s - self._exhausted_s < EXHAUSTION_PERIOD_S
        head_timeout_s = SHORT_HEAD_TIMEOUT_S if is_exhausted else HEAD_TIMEOUT_S
        waits: dict[Any, tuple[object, float]] = {}
        connections: list[Any] = list(self.server_state.connections)
        for connection in connections:
            sends_body = _sends_body(connection)
            if sends_body:
                timeout_s = BODY_TIMEOUT_S
            elif connection.cycle is None or connection.cycle.response_complete:
                timeout_s = head_timeout_s
            else:
                continue
            awaited = (connection.cycle, sends_body)  # another cycle: there was a request since the last tick
            previous, since_s = self._waits.get(connection, (None, now_s))
            waits[connection] = awaited, since_s if previous == awaited else now_s
            if now_s - waits[connection][1] > timeout_s:
                connection.transport.close()
        self._waits = waits

    def _handle_loop_error(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Report once in a while that no descriptor is left for a connection; asyncio does at every attempt."""
        fault = context.get("exception")
        if self.should_exit and isinstance(fault, ValueError):
            return  # asyncio tries to accept connections again, on the socket that is closed
        if not isinstance(fault, OSError) or fault.errno not in (errno.EMFILE, errno.ENFILE):
            loop.default_exception_handler(context)
            return
        if time.monotonic() - self._exhausted_s > EXHAUSTION_PERIOD_S:
            log.error(
                "too many files are open: new connections wait (raise the limit, such as with ulimit -n)"
            )
            self._exhausted_s = time.monotonic()


def _sends_body(connection: Any) -> bool:
    """Return whether a connection of uvicorn waits for the rest of a request."""
    cycle = connection.cycle
    return cycle is not None and not cycle.response_complete and cycle.more_body


def is_loopback_address(host: str) -> bool:
    """Return whether an address is reachable only from this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def url_of_socket(listening_socket: socket.socket) -> str:
    """Return the URL of a listening socket."""
    host, port = listening_socket.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _listen(host: str, port: int) -> socket.socket:
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
        family, kind, protocol, _, address = addresses[0]
        # With an explicit protocol, asyncio disables Nagle's algorithm; otherwise small responses wait 40 ms.
        with ExitStack() as stack:
            listening_socket = stack.enter_context(socket.socket(family, kind, protocol))
            listening_socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening_socket.bind(address)
            listening_socket.listen(LISTEN_BACKLOG)
            stack.pop_all()  # the socket stays open
        return listening_socket
    except (OSError, UnicodeError) as fault:
        raise PrerequisiteError(
            f"cannot listen on {host}:{port}: {describe_fault(fault)}",
            remedy="choose another port: --port N, or 0 for a free one",
        ) from fault
