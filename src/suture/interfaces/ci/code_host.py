"""The interface of a code host such as GitHub, and the REST client that its two implementations share."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from suture.core.records import content_hash
from suture.errors import CodeHostError, PrerequisiteError, UsageError
from suture.interfaces.ci.ci_pipeline import Pipeline
from suture.interfaces.ci.line_edits import LineEdit
from suture.interfaces.ci.tuning import (
    MAX_ERROR_CHARS,
    MAX_PAGES,
    MAX_RESPONSE_BYTES,
    PAGE_SIZE,
    REQUEST_TIMEOUT_S,
)
from suture.interfaces.narrative.plain_text import escape_line_breaks, escape_unprintable


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
        headers: The headers of every request, including the token's.
    """

    def __init__(self, service: str, url: str, repository_path: str, headers: Mapping[str, str]) -> None:
        self._service = service
        self._url = url
        self._repository_path = repository_path
        self._headers = headers

    def list_field(self, path: str, key: str) -> list[str]:
        """Return a text field of each entry of a list, page by page; entries without it are skipped."""
        texts: list[str] = []
        separator = "&" if "?" in path else "?"
        for page in range(1, MAX_PAGES + 1):
            _, response = self.call("GET", f"{path}{separator}per_page={PAGE_SIZE}&page={page}")
            texts += field_texts(response, key)
            if not isinstance(response, list) or len(response) < PAGE_SIZE:
                break
        return texts

    def post(self, path: str, **body: object) -> Mapping[str, Any]:
        """Send a POST request; return the JSON object of the response."""
        return self.require_object(self.call("POST", path, body)[1])

    def require_object(self, response: Any) -> Mapping[str, Any]:
        """Return a response that must be a JSON object."""
        if not isinstance(response, dict):
            raise CodeHostError(f"{self._service}'s response does not have the documented form")
        return response

    def call(
        self, method: str, path: str, body: Mapping[str, object] | None = None, *, ok: tuple[int, ...] = ()
    ) -> tuple[int, Any]:
        """Send a request; return the status and the parsed JSON.

        Args:
            ok: Statuses beside 2xx that are not errors.
        """
        import httpx

        path = f"{self._repository_path}{path}"
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
        if response.status_code not in ok and not response.is_success:
            raise _response_error(f"{method} {path}", response.status_code, content)
        try:
            return response.status_code, json.loads(content or b"null")
        except (ValueError, RecursionError) as fault:
            raise CodeHostError(f"{method} {path} did not return JSON") from fault


def field_texts(response: Any, key: str) -> list[str]:
    """Return a text field of each object in a response that should be a list."""
    entries = response if isinstance(response, list) else []
    return [entry[key] for entry in entries if isinstance(entry, dict) and isinstance(entry.get(key), str)]


def _response_error(request: str, status: int, content: bytes) -> PrerequisiteError | CodeHostError:
    excerpt = escape_line_breaks(escape_unprintable(content.decode("utf-8", "replace")))[:MAX_ERROR_CHARS]
    if status in (401, 403, 404):  # 404: both services hide what a token may not see
        return PrerequisiteError(
            f"{request} was refused with status {status}",
            remedy="set SUTURE_KEYS_CI to a token with write access to contents and pull requests",
        )
    return CodeHostError(f"{request} was refused with status {status}: {excerpt}")
