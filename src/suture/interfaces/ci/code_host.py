"""The interface of a code host such as GitHub, and the REST client that its two implementations share."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from suture.core.records import content_hash
from suture.errors import CodeHostError, PrerequisiteError, UsageError
from suture.interfaces.ci.ci_pipeline import Pipeline
from suture.interfaces.ci.line_edits import LineEdit
from suture.interfaces.ci.tuning import (
    MAX_ATTEMPTS,
    MAX_ERROR_CHARS,
    MAX_PAGES,
    MAX_RESPONSE_BYTES,
    MAX_WAIT_S,
    PAGE_SIZE,
    RATE_LIMIT_WAIT_S,
    REQUEST_TIMEOUT_S,
    RETRY_WAIT_S,
)
from suture.interfaces.narrative.plain_text import escape_line_breaks, escape_unprintable

RequestPrinter = Callable[[str], None]
"""Shows a request that a dry run does not send; the string may contain untrusted text."""
DRY_RUN_RESPONSE: Mapping[str, object] = {"sha": "<new sha>", "html_url": "", "web_url": ""}
"""What a dry run takes for the response to a request that it does not send; later requests show it."""


@dataclass(frozen=True, kw_only=True)
class ChangedFile:
    """A file as it will be committed."""

    path: str
    content: bytes
    is_program: bool
    is_new: bool


@dataclass(frozen=True, kw_only=True)
class DeliveredChange:
    """A verified change with the strings for its delivery.

    Attributes:
        parent: The commit that it changes.
        seal: The seal of its certificate.
        text: Markdown, for people.
        files: The changed files, with paths relative to the repository.
        suggestions: The change as line replacements; empty if it cannot be expressed that way.
    """

    parent: str
    seal: str
    title: str
    message: str
    text: str
    files: tuple[ChangedFile, ...]
    suggestions: tuple[LineEdit, ...]


@dataclass(frozen=True, kw_only=True)
class OpenHeals:
    """The heals of a branch that are delivered and neither merged nor applied.

    Attributes:
        branches: The commits whose heals have a branch of their own.
        commented: The commit whose heal Suture's comment on the pull request offers; at most one.
        rejected: That commit, if a person rejected the heal.
    """

    branches: tuple[str, ...] = ()
    commented: tuple[str, ...] = ()
    rejected: tuple[str, ...] = ()


class CodeHost(Protocol):
    """A repository on GitHub or GitLab, accessed through its REST interface."""

    def open_heals(self) -> OpenHeals:
        """Return the heals of the pipeline's branch that are delivered and still open."""
        ...

    def open_draft(self, change: DeliveredChange) -> str:
        """Create a branch with the change and a draft pull request; return its address."""
        ...

    def comment(self, change: DeliveredChange) -> str:
        """Comment on the pull request, or update Suture's earlier comment; return the comment's address."""
        ...


def branch_stem(branch: str) -> str:
    """Return the prefix of the names of all heal branches for a branch: some of its words and its hash.

    The words are for people, and the hash distinguishes branches with the same words.
    """
    words = re.sub(r"[^A-Za-z0-9]+", "-", branch)[:40].strip("-")
    return f"suture/heal-{words}-{content_hash(branch)[:8]}-"


def require_pull(pipeline: Pipeline) -> int:
    """Return the number of the pull request."""
    if pipeline.pull is None:
        raise UsageError(
            "this pipeline has no pull request to comment on", remedy="set ci.delivery=pull_request"
        )
    return pipeline.pull


class RestClient:
    """A client of one repository's part of a REST interface.

    It sends a token with every request, so it calls only its own address and follows no redirect.

    Args:
        service: The name of the service, for messages.
        url: The address of the interface, without a trailing slash.
        repository_path: The path of the repository below the address; all other paths are below it.
        headers: The headers of every request; empty without a token, and then nothing at all is sent.
        show: For a dry run: requests that change something are shown and not sent.
    """

    def __init__(
        self,
        service: str,
        url: str,
        repository_path: str,
        headers: Mapping[str, str],
        show: RequestPrinter | None = None,
    ) -> None:
        self._service = service
        self._url = url
        self._repository_path = repository_path
        self._headers = headers
        self._show = show

    def list_entries(self, path: str) -> list[Mapping[str, Any]]:
        """Return the objects of a list, page by page."""
        entries: list[Mapping[str, Any]] = []
        separator = "&" if "?" in path else "?"
        for page in range(1, MAX_PAGES + 1):
            _, response = self.call("GET", f"{path}{separator}per_page={PAGE_SIZE}&page={page}")
            if not isinstance(response, list):
                break
            entries += [entry for entry in response if isinstance(entry, dict)]
            if len(response) < PAGE_SIZE:
                break
        return entries

    def get(self, path: str) -> Mapping[str, Any]:
        """Return the JSON object at a path."""
        return self._require_object(self.call("GET", path)[1])

    def post(self, path: str, **body: object) -> Mapping[str, Any]:
        """Send a POST request; return the JSON object of the response."""
        return self._require_object(self.call("POST", path, body)[1])

    def update(self, path: str, method: str = "PATCH", **body: object) -> Mapping[str, Any]:
        """Send a request that changes something existing; return the JSON object of the response."""
        return self._require_object(self.call(method, path, body)[1])

    def _require_object(self, response: Any) -> Mapping[str, Any]:
        if not isinstance(response, dict):
            raise CodeHostError(f"{self._service}'s response does not have the documented form")
        return response

    def call(
        self, method: str, path: str, body: Mapping[str, object] | None = None, *, ok: tuple[int, ...] = ()
    ) -> tuple[int, Any]:
        """Send a request, again after a rate limit or an error of the service; return the status and the JSON.

        Args:
            ok: Statuses other than 2xx that are not errors.

        Raises:
            PrerequisiteError: The token lacks a permission.
            CodeHostError: The service refuses, cannot be reached, or asks to wait for too long.
        """
        path = f"{self._repository_path}{path}"
        if self._show is not None and (method != "GET" or not self._headers):
            self._show(f"{method} {path}" + (f" {json.dumps(body)}" if body is not None else ""))
            return 200, None if method == "GET" else DRY_RUN_RESPONSE
        for attempt in range(1, MAX_ATTEMPTS + 1):
            status, headers, content = self._send(method, path, body)
            if status in ok or 200 <= status < 300:
                break
            wait_s = _retry_wait_s(method, status, headers)
            if wait_s is None:
                raise _response_error(f"{method} {path}", status, content)
            if wait_s > MAX_WAIT_S or attempt == MAX_ATTEMPTS:
                raise CodeHostError(
                    f"{method} {path} was refused with status {status}, {attempt} times",
                    remedy=f"run the job again in {max(1, round(wait_s / 60))} minutes: {self._service} limits "
                    "the rate of requests, or is disturbed",
                )
            time.sleep(wait_s)
        try:
            return status, json.loads(content or b"null")
        except (ValueError, RecursionError) as fault:
            raise CodeHostError(f"{method} {path} did not return JSON") from fault

    def _send(
        self, method: str, path: str, body: Mapping[str, object] | None
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Send a request once; return the status, the headers and the content of the response."""
        import httpx

        try:
            with httpx.Client(timeout=REQUEST_TIMEOUT_S, follow_redirects=False) as client:
                request = {"headers": self._headers, "json": body}
                with client.stream(method, f"{self._url}{path}", **request) as response:  # type: ignore[arg-type]
                    content = b""
                    for chunk in response.iter_bytes():
                        content += chunk
                        if len(content) > MAX_RESPONSE_BYTES:
                            raise CodeHostError(f"{method} {path} returned a response that is too large")
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as fault:
            raise CodeHostError(
                f"{method} {path}: {type(fault).__name__}", remedy="run the job again"
            ) from fault
        return response.status_code, response.headers, content


def _retry_wait_s(method: str, status: int, headers: Mapping[str, str]) -> float | None:
    """Return the seconds after which a refused request may be sent again; `None` if that would not help.

    Both services refuse with 403 or 429 before they do anything. After an error of the service itself, a POST
    may have created something, so that only other requests are sent again.
    """
    if status in (403, 429):
        if (retry_after := headers.get("retry-after", "")).isdecimal():
            return float(retry_after)
        reset = headers.get("x-ratelimit-reset", "")
        if headers.get("x-ratelimit-remaining") == "0" and reset.isdecimal():
            return max(0.0, float(reset) - time.time())
        return RATE_LIMIT_WAIT_S if status == 429 else None
    return RETRY_WAIT_S if status >= 500 and method != "POST" else None


def field_texts(response: Any, key: str) -> list[str]:
    """Return a string field of each object in a response that should be a list."""
    entries = response if isinstance(response, list) else []
    return [entry[key] for entry in entries if isinstance(entry, dict) and isinstance(entry.get(key), str)]


def _response_error(request: str, status: int, content: bytes) -> PrerequisiteError | CodeHostError:
    excerpt = escape_line_breaks(escape_unprintable(content.decode("utf-8", "replace")))[:MAX_ERROR_CHARS]
    if status in (401, 403, 404):  # 404: both services hide what a token may not see
        return PrerequisiteError(
            f"{request} was refused with status {status}",
            remedy="set SUTURE_KEYS_CI to a token with write access to contents, pull requests and issues",
        )
    return CodeHostError(f"{request} was refused with status {status}: {excerpt}")
