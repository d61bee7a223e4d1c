"""Start the server: what may not be is refused first, then it listens until it is told to stop."""

from __future__ import annotations

import asyncio
import ipaddress
import signal
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager

import uvicorn
from fastapi import FastAPI

from suture.core.settings import Settings
from suture.errors import PrerequisiteError, UsageError
from suture.interfaces.jobs.job_execution import require_sandbox
from suture.interfaces.web.access_tokens import AccessTokens
from suture.interfaces.web.web_app import make_app
from suture.interfaces.web.web_service import open_web_service

MOST_UNANSWERED = 256
"""Connections that the kernel takes before the server does."""
STOPPING_S = 5
"""How long answers that are being sent may take when the server is stopped."""


def serve(settings: Settings, flags: Mapping[str, object], say: Callable[[str], None]) -> None:
    """Serve until SIGTERM or Ctrl-C; what runs then is written down and gone on with at the next start.

    Args:
        settings: The server's own.
        flags: Those of them that were said on the command line, for the processes of its jobs.
        say: Called with the address when it listens.

    Raises:
        UsageError: The address takes tokens and there are none, there would be no sandbox, or another server
            works with the same home.
        PrerequisiteError: Nobody can listen at the address.
        StorageError: The home cannot be written.
    """
    require_sandbox(settings)
    host = settings.serve.host
    has_tokens = bool(AccessTokens(settings.paths.home).callers())
    if not is_loopback(host) and not has_tokens:
        raise UsageError(
            f"at {host!r} others can reach it, and there is no token to know them by",
            remedy="suture serve token add NAME --role runner, or leave out --host",
        )
    listening = _listen(host, settings.serve.port)
    service, journal = open_web_service(settings, flags, needs_token=has_tokens)
    app = make_app(service, journal)
    # Without a log of requests: it would be one more place for what callers send.
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=STOPPING_S,
    )
    say(address_of(listening))
    asyncio.run(_Server(config, app).serve([listening]))


class _Server(uvicorn.Server):
    """Ends quietly on a signal: the library raises it once more at its end, though it has been obeyed."""

    def __init__(self, config: uvicorn.Config, app: FastAPI) -> None:
        super().__init__(config)
        self._app = app

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop)
        yield

    def _stop(self) -> None:
        self._app.state.stopping = True  # streams end by themselves, and need not be waited for
        self.should_exit = True


def is_loopback(host: str) -> bool:
    """Whether an address is this machine's own, and nobody else's to reach."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def address_of(listening: socket.socket) -> str:
    """The URL at which a socket is reached."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _listen(host: str, port: int) -> socket.socket:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
        family, kind, protocol, _, address = found[0]
        # With its protocol named, asyncio sends small answers at once; else each would wait 40 ms.
        with ExitStack() as opened:
            listening = opened.enter_context(socket.socket(family, kind, protocol))
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen(MOST_UNANSWERED)
            opened.pop_all()
        return listening
    except (OSError, UnicodeError) as fault:
        raise PrerequisiteError(
            f"nobody can listen at {host}:{port}: {fault}",
            remedy="name another: --port N, or 0 for a free one",
        ) from fault
