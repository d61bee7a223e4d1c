"""A REST interface of a service of code: one address, one token, JSON both ways."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import SecretStr

from suture.errors import CodeHostError, PrerequisiteError
from suture.interfaces.narrative.lines import one_line, printable

TIMEOUT_S = 30.0
MOST_ANSWER_BYTES = 8 * 2**20
MOST_SAID_CHARS = 300


class RestClient:
    """A client of one service. It asks its own address alone and follows no redirect: it carries the token.

    Args:
        url: Its address, without a slash at the end.
        headers: Beside the token's own.
        token: The header that carries the token, and how it is written before the token.
        key: The token.
    """

    def __init__(self, url: str, headers: Mapping[str, str], token: tuple[str, str], key: SecretStr) -> None:
        self._url = url
        name, before = token
        self._headers = {**headers, name: f"{before}{key.get_secret_value()}"}

    def call(
        self, method: str, path: str, body: Mapping[str, object] | None = None, *, ok: tuple[int, ...] = ()
    ) -> tuple[int, Any]:
        """One request; answers the status and what stood in the answer.

        Args:
            method: Such as `POST`.
            path: Below the address; its parts are quoted.
            body: What is sent.
            ok: Statuses beside 2xx that are no fault.

        Raises:
            PrerequisiteError: The token is refused, or may not do this.
            CodeHostError: The service says no, answers what is no JSON, or cannot be reached.
        """
        import httpx

        try:
            with httpx.Client(timeout=TIMEOUT_S, follow_redirects=False) as client:
                request = {"headers": self._headers, "json": body}
                with client.stream(method, f"{self._url}{path}", **request) as answer:  # type: ignore[arg-type]
                    content = b""
                    for piece in answer.iter_bytes():
                        content += piece
                        if len(content) > MOST_ANSWER_BYTES:
                            raise CodeHostError(f"{method} {path} answers more than it may")
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as fault:
            raise CodeHostError(
                f"{method} {path}: {type(fault).__name__}", remedy="run the job again"
            ) from fault
        if answer.status_code in ok or answer.is_success:
            return answer.status_code, _read(content, f"{method} {path}")
        raise _refused(f"{method} {path}", answer.status_code, content)


def _read(content: bytes, what: str) -> Any:
    try:
        return json.loads(content or b"null")
    except (ValueError, RecursionError) as fault:
        raise CodeHostError(f"{what} answers what is no JSON") from fault


def _refused(what: str, status: int, content: bytes) -> PrerequisiteError | CodeHostError:
    said = one_line(printable(content.decode("utf-8", "replace")))[:MOST_SAID_CHARS]
    if status in (401, 403, 404):
        return PrerequisiteError(
            f"{what} is refused with status {status}",
            remedy="give the job a token that may write contents and pull requests, as SUTURE_KEYS_CI",
        )
    return CodeHostError(f"{what} is refused with status {status}: {said}")
