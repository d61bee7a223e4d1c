"""Refuse requests before routing: for unknown hosts, from other sites' pages, and with bodies that are too long.

A stranger's web page can make a visitor's browser send requests to this machine. The browser reveals it: by
`Host` if the stranger's name was bound to our address (DNS rebinding), and by `Origin` or `Sec-Fetch-Site` if
the page makes a cross-site request (CSRF). Programs other than browsers may omit the last two.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, get_args
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from suture.core.safe_files import read_regular_file, write_file_atomically
from suture.errors import StorageError, UsageError, describe_fault
from suture.interfaces.web.problem_details import problem_response
from suture.interfaces.web.tuning import MAX_TOKEN_FILE_BYTES

LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "::1")
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
"""Methods that change nothing, so that a page of another site gains nothing by them."""
SECURITY_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
"""Default headers of every response: it is data, cannot be framed, and must not be cached."""


class RequestGuard:
    """Refuses requests that no legitimate caller sends.

    Args:
        hosts: Host names of the server, besides those of this machine.
        body_bytes: Maximum length of a body.
        archive_bytes: Maximum length of an uploaded archive.
    """

    def __init__(self, app: ASGIApp, *, hosts: Iterable[str], body_bytes: int, archive_bytes: int) -> None:
        self._app = app
        self._hosts = frozenset((*LOOPBACK_HOSTS, *(host.lower() for host in hosts)))
        self._body_bytes = body_bytes
        self._archive_bytes = archive_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            # `uvicorn_server` passes web sockets on as HTTP. Another server answers 403 to a close before accept;
            # returning without any message would be a fault of this server to it, and end as 500.
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = Headers(scope=scope)
        refusal = self._refusal(scope, headers)
        max_bytes = self._archive_bytes if scope["path"] == "/v1/archives" else self._body_bytes
        if refusal is None and not _is_within_limit(headers.get("content-length", "0"), max_bytes):
            refusal = _too_long_refusal(max_bytes)
        if refusal is not None:
            status, detail, remedy = refusal
            await problem_response(status, detail, remedy=remedy, exit_code=2)(scope, receive, send)
            return
        received_bytes = 0

        async def limited_receive() -> Message:
            nonlocal received_bytes
            message = await receive()
            received_bytes += len(message.get("body", b""))
            if received_bytes > max_bytes:
                raise HTTPException(413, _too_long_refusal(max_bytes)[1])
            return message

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                sent = {name.lower() for name, _ in message["headers"]}
                added = [(name, value) for name, value in SECURITY_HEADERS if name not in sent]
                message = {**message, "headers": [*message["headers"], *added]}
            await send(message)

        await self._app(scope, limited_receive, send_with_headers)

    def _refusal(self, scope: Scope, headers: Headers) -> tuple[int, str, str] | None:
        """Return (status, detail, remedy) of the refusal, or `None` if the request may pass."""
        hosts = headers.getlist("host")
        if len(hosts) != 1 or _get_host(f"//{hosts[0]}") not in self._hosts:
            host_list = ", ".join(hosts) or "none"
            return (
                421,
                f"this server is not known as {host_list!r:.200}",
                "add the name to the setting serve.hosts",
            )
        origins = headers.getlist("origin")
        if any(_get_host(origin) not in self._hosts for origin in origins):
            origin_list = ", ".join(origins)
            detail = f"a page of {origin_list!r:.200} may not send this request"
            return 403, detail, "use a page of this server"
        if _wants_web_socket(headers):
            detail = "this server has no web sockets"
            return 400, detail, "read the events of a run: GET /v1/runs/{run}/events"
        if scope["method"] in SAFE_METHODS:
            return None
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return 403, "a page of another site may not send this request", "use a page of this server"
        # HTML forms of any page can send these types without a CORS preflight.
        media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
        if media_type in ("application/x-www-form-urlencoded", "multipart/form-data", "text/plain"):
            return (
                415,
                f"a body of type {media_type!r} is not accepted",
                "send application/json, or an archive",
            )
        return None


def _wants_web_socket(headers: Headers) -> bool:
    """Return whether a request asks to become a web socket. Other upgrades, such as to HTTP/2, are ignored."""
    protocols = ",".join(headers.getlist("upgrade")).split(",")
    return any(protocol.strip().lower().partition("/")[0] == "websocket" for protocol in protocols)


def _get_host(address: str) -> str:
    """Return the host of an address; empty if it has none or contains user info."""
    try:
        parts = urlsplit(address)
        _ = parts.port  # raises ValueError for an invalid port
    except ValueError:
        return ""
    has_other_parts = "@" in parts.netloc or parts.path or parts.query or parts.fragment
    return "" if has_other_parts else (parts.hostname or "").lower()


def _is_within_limit(length: str, max_bytes: int) -> bool:
    """Return whether a `Content-Length` is a number up to a limit; the digits are counted before parsing."""
    return length.isascii() and length.isdigit() and len(length) < 20 and int(length) <= max_bytes


def _too_long_refusal(max_bytes: int) -> tuple[int, str, str]:
    detail = f"the body is longer than {max_bytes:,} bytes"
    return 413, detail, "send less, or increase serve.body_kb or serve.archive_mb"


Role = Literal["viewer", "runner", "reviewer", "admin"]
ROLES: tuple[Role, ...] = get_args(Role)
"""Each role includes the rights of those before it."""
TOKEN_NAME = re.compile(r"[A-Za-z0-9][\w.@-]{0,63}", re.ASCII)
"""The form of a caller's name, which token and caller share."""
TOKEN_PREFIX = "sut_"
"""Lets secret scanners recognize a leaked token."""


@dataclass(frozen=True, kw_only=True)
class Caller:
    """The caller of a request.

    Attributes:
        name: The name of the token; `local` if no token is required.
        role: The caller's role.
    """

    name: str
    role: Role

    def has_role(self, needed: Role) -> bool:
        """Return whether the caller has at least this role."""
        return ROLES.index(self.role) >= ROLES.index(needed)


LOCAL = Caller(name="local", role="admin")
"""The caller if no token is required: the user of this machine."""


@dataclass(frozen=True, kw_only=True)
class _StoredToken:
    name: str
    role: Role
    sha256: str


class AccessTokens:
    """The tokens of one home, in a file that only its owner can read.

    Args:
        home: The state folder, as the setting `paths.home`.
    """

    def __init__(self, home: Path) -> None:
        self._path = home / "serve-tokens.json"

    def add(self, name: str, role: str) -> str:
        """Create a token and return it; only its hash is stored."""
        if not TOKEN_NAME.fullmatch(name):
            raise UsageError(
                f"{name!r} is not a valid token name", remedy="use at most 64 letters, digits and . _ @ -"
            )
        if role not in ROLES:
            raise UsageError(f"there is no role {role!r}", remedy=f"one of: {', '.join(ROLES)}")
        stored_tokens = self._read()
        if any(stored.name == name for stored in stored_tokens) or name == LOCAL.name:
            raise UsageError(
                f"there is already a token named {name!r}",
                remedy=f"remove it: suture serve token remove {name}",
            )
        # A slow hash is not needed: 256 random bits cannot be guessed.
        token = TOKEN_PREFIX + secrets.token_urlsafe(32)
        self._write([*stored_tokens, _StoredToken(name=name, role=_parse_role(role), sha256=_hash(token))])
        return token

    def remove(self, name: str) -> None:
        """Revoke a token."""
        stored_tokens = self._read()
        remaining_tokens = [stored for stored in stored_tokens if stored.name != name]
        if len(remaining_tokens) == len(stored_tokens):
            raise UsageError(f"there is no token named {name!r}", remedy="see `suture serve token list`")
        self._write(remaining_tokens)

    def list_callers(self) -> list[Caller]:
        """Return the callers that have a token."""
        return [Caller(name=stored.name, role=stored.role) for stored in self._read()]

    def find_caller(self, token: str) -> Caller | None:
        """Return the caller with this token, or `None`, in a time that does not depend on the token."""
        caller = None
        token_hash = _hash(token)
        for stored in self._read():  # without an early exit, which would reveal the token's position
            if hmac.compare_digest(stored.sha256, token_hash):
                caller = Caller(name=stored.name, role=stored.role)
        return caller

    def _read(self) -> list[_StoredToken]:
        try:
            content = read_regular_file(self._path, MAX_TOKEN_FILE_BYTES)
            entries = json.loads(content) if content is not None else []
            return [
                _StoredToken(name=entry["name"], role=_parse_role(entry["role"]), sha256=entry["sha256"])
                for entry in entries
            ]
        except (OSError, ValueError, KeyError, TypeError) as fault:
            raise StorageError(
                f"the file of tokens {str(self._path)!r} cannot be read: {describe_fault(fault)}",
                remedy="remove the file and create new tokens",
            ) from fault

    def _write(self, tokens: list[_StoredToken]) -> None:
        write_file_atomically(self._path, json.dumps(list(map(asdict, tokens)), indent=1).encode())


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def _parse_role(name: str) -> Role:
    for role in ROLES:
        if role == name:
            return role
    raise ValueError(f"no role {name!r}")
