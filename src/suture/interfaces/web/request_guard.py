"""What is refused before any route is asked: strange hosts, pages of others, bodies that are too long.

A browser that visits a stranger's page may be made to talk to this machine. It says so: by `Host`, where a
name of the stranger's was bound to our address (DNS rebinding), and by `Origin` or `Sec-Fetch-Site`, where
their page asks across sites (CSRF). A program that is no browser may leave the last two out.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from suture.interfaces.web.problem_details import refusal_response

BUILT_IN_LANGUAGES = ("localhost", "127.0.0.1", "::1")
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")


class RequestGuard:
    """Refuses what no caller of ours sends.

    Args:
        app: What is asked when nothing is refused.
        hosts: Names, besides those of this machine, under which callers may reach it.
        body_bytes: The most of a body.
        archive_bytes: The same, where it is an archive.
    """

    def __init__(self, app: ASGIApp, *, hosts: Iterable[str], body_bytes: int, archive_bytes: int) -> None:
        self._app = app
        self._hosts = frozenset((*BUILT_IN_LANGUAGES, *(host.lower() for host in hosts)))
        self._body_bytes = body_bytes
        self._archive_bytes = archive_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return  # nothing here speaks over web sockets
        headers = Headers(scope=scope)
        refusal = self._refusal(scope, headers)
        most_bytes = self._archive_bytes if scope["path"] == "/v1/archives" else self._body_bytes
        if refusal is None and not _fits(headers.get("content-length", "0"), most_bytes):
            refusal = _too_long(most_bytes)
        if refusal is not None:
            await refusal_response(*refusal[:2], remedy=refusal[2])(scope, receive, send)
            return
        seen_bytes = 0

        async def counted() -> Message:
            nonlocal seen_bytes
            message = await receive()
            seen_bytes += len(message.get("body", b""))
            if seen_bytes > most_bytes:
                raise HTTPException(413, _too_long(most_bytes)[1])
            return message

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start":
                said = {name.lower() for name, _ in message["headers"]}
                added = [(name, value) for name, value in SAFETY if name not in said]
                message = {**message, "headers": [*message["headers"], *added]}
            await send(message)

        await self._app(scope, counted, watched)

    def _refusal(self, scope: Scope, headers: Headers) -> tuple[int, str, str] | None:
        hosts = headers.getlist("host")
        if len(hosts) != 1 or _host_of(f"//{hosts[0]}") not in self._hosts:
            said = ", ".join(hosts) or "none"
            return 421, f"this server is not called {said!r:.200}", "name it in the setting serve.hosts"
        origins = headers.getlist("origin")
        if any(_host_of(origin) not in self._hosts for origin in origins):
            said = ", ".join(origins)
            return 403, f"a page of {said!r:.200} may not ask this", "ask from a page of this server"
        if scope["method"] in SAFE_METHODS:
            return None
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return 403, "a page of another site may not ask this", "ask from a page of this server"
        # A form of any page may send these without its browser asking first.
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind in ("application/x-www-form-urlencoded", "multipart/form-data", "text/plain"):
            return 415, f"a body of {kind!r} is not taken", "send application/json, or an archive"
        return None


SAFETY = (
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
"""Of every answer that says nothing else: it is data, no page may frame it, nobody on the way keeps it."""


def _host_of(address: str) -> str:
    """The host in an address; one that can be none where it has none, or a user's name before it."""
    try:
        parts = urlsplit(address)
        _ = parts.port  # refused where it is no number
    except ValueError:
        return ""
    odd = "@" in parts.netloc or parts.path or parts.query or parts.fragment
    return "" if odd else (parts.hostname or "").lower()


def _fits(length: str, most_bytes: int) -> bool:
    return length.isascii() and length.isdigit() and len(length) < 20 and int(length) <= most_bytes


def _too_long(most_bytes: int) -> tuple[int, str, str]:
    detail = f"the body is longer than {most_bytes:,} bytes"
    return 413, detail, "send less, or have serve.body_kb or serve.archive_mb raised"
