"""Start the server: check the configuration, then listen until stopped."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import signal
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager

import uvicorn
from fastapi import FastAPI

from suture.core.settings import Settings
from suture.errors import PrerequisiteError, UsageError, describe_fault
from suture.interfaces.jobs.job_execution import require_sandbox
from suture.interfaces.web.access_tokens import AccessTokens
from suture.interfaces.web.tuning import LISTEN_BACKLOG, SHUTDOWN_TIMEOUT_S
from suture.interfaces.web.web_app import make_app
from suture.interfaces.web.web_service import open_web_service


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
        timeout_graceful_shutdown=SHUTDOWN_TIMEOUT_S,
    )
    logging.getLogger("uvicorn.error").addFilter(_drop_upgrade_advice)
    announce(url_of_socket(listening_socket))
    asyncio.run(_QuietServer(config, app).serve([listening_socket]))


def _drop_upgrade_advice(record: logging.LogRecord) -> bool:
    """Drop uvicorn's warnings of a refused upgrade: any caller could fill the log, and no package is missing."""
    message = record.getMessage()
    return not message.startswith(("Unsupported upgrade request", "No supported WebSocket library"))


class _QuietServer(uvicorn.Server):
    """Ends quietly on a signal; uvicorn would raise the signal again after handling it."""

    def __init__(self, config: uvicorn.Config, app: FastAPI) -> None:
        super().__init__(config)
        self._app = app

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._request_stop)
        yield

    def _request_stop(self) -> None:
        self._app.state.stopping = True  # event streams end by themselves then
        self.should_exit = True


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
