"""The interface of a code host such as GitHub, and the REST client that its implementations share."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic import SecretStr

from suture.core.records import content_hash
from suture.errors import CodeHostError, PrerequisiteError, UsageError
from suture.interfaces.ci.ci_pipeline import Pipeline
from suture.interfaces.ci.line_edits import LineEdit
from suture.interfaces.narrative.plain_text import escape_line_breaks, escape_unprintable

MAX_PAGES = 5
PAGE_SIZE = 100
"""Entries per page, the maximum that both services return."""
REQUEST_TIMEOUT_S = 30.0
MAX_RESPONSE_BYTES = 8 * 2**20
MAX_ERROR_CHARS = 300


@dataclass(frozen=True, kw_only=True)
class ChangedFile:
    """A file as it will be committed."""

    path: str
    content: bytes
    is_program: bool
    is_new: bool


@dataclass(frozen=True, kw_only=True)
class DeliveredChange:
    """A verified change with the texts for its delivery.

    Attributes:
        parent: The commit that it changes.
        title: The title, one line.
        message: The commit message.
        text: Markdown, for people.
        files: The changed files, with paths relative to the repository.
        suggestions: The change as line replacements; empty if it cannot be expressed that way.
    """

    parent: str
    title: str
    message: str
    text: str
    files: tuple[ChangedFile, ...]
    suggestions: tuple[LineEdit, ...]


class CodeHost(Protocol):
    """A repository on GitHub or GitLab, accessed through its REST interface."""

    def heals(self) -> list[str]:
        """Return the commits of the branch whose heals are delivered and still open."""
        ...

    def open_draft(self, change: DeliveredChange) -> str:
        """Create a branch with the change and a draft pull request; return its address."""
        ...

    def comment(self, change: DeliveredChange) -> str:
        """Comment on the pull request; return the comment's address."""
        ...


def branch_stem(branch: str) -> str:
    """Return the prefix of the names of all heal branches for a branch: some of its words and its hash."""
    words = re.sub(r"[^A-Za-z0-9]+", "-", branch)[:40].strip("-")
    return f"suture/heal-{words}-{content_hash(branch)[:8]}-"


def require_pull(pipeline: Pipeline) -> int:
    """Return the number of the pull request.

    Raises:
        UsageError: The pipeline has no pull request.
    """
    if pipeline.pull is None:
        raise UsageError(
            "this pipeline has no pull request to comment on",
            remedy="set ci.delivery=pull_request",
        )
    return pipeline.pull


class RestClient:
    """A client of one service. It sends the token, so it calls only its own address and follows no redirect.

    Args:
        url: The service's address, without a trailing slash.
        headers: Headers beside the token's own.
        token: The name of the token's header, and the prefix before the token.
        key: The token.
    """

    def __init__(self, url: str, headers: Mapping[str, str], token: tuple[str, str], key: SecretStr) -> None:
        self._url = url
        name, before = token
        self._headers = {**headers, name: f"{before}{key.get_secret_value()}"}

    def call(
        self, method: str, path: str, body: Mapping[str, object] | None = None, *, ok: tuple[int, ...] = ()
    ) -> tuple[int, Any]:
        """Send a request; return the status and the parsed JSON.

        Args:
            method: Such as `POST`.
            path: The path below the address, with its parts quoted.
            body: The JSON body.
            ok: Statuses beside 2xx that are not errors.

        Raises:
            PrerequisiteError: The token is rejected or lacks permission.
            CodeHostError: The service refuses, does not answer with JSON, or is unreachable.
        """
        import httpx

        try:
            with httpx.Client(timeout=REQUEST_TIMEOUT_S, follow_redirects=False) as client:
                request = {"headers": self._headers, "json": body}
                with client.stream(method, f"{self._url}{path}", **request) as answer:  # type: ignore[arg-type]
                    content = b""
                    for piece in answer.iter_bytes():
                        content += piece
                        if len(content) > MAX_RESPONSE_BYTES:
                            raise CodeHostError(f"{method} {path} returned a response that is too large")
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as fault:
            raise CodeHostError(
                f"{method} {path}: {type(fault).__name__}", remedy="run the job again"
            ) from fault
        if answer.status_code in ok or answer.is_success:
            return answer.status_code, _parse_json(content, f"{method} {path}")
        raise _response_error(f"{method} {path}", answer.status_code, content)


def _parse_json(content: bytes, what: str) -> Any:
    try:
        return json.loads(content or b"null")
    except (ValueError, RecursionError) as fault:
        raise CodeHostError(f"{what} did not return JSON") from fault


def _response_error(what: str, status: int, content: bytes) -> PrerequisiteError | CodeHostError:
    excerpt = escape_line_breaks(escape_unprintable(content.decode("utf-8", "replace")))[:MAX_ERROR_CHARS]
    if status in (401, 403, 404):
        return PrerequisiteError(
            f"{what} was refused with status {status}",
            remedy="set SUTURE_KEYS_CI to a token with write access to contents and pull requests",
        )
    return CodeHostError(f"{what} was refused with status {status}: {excerpt}")
