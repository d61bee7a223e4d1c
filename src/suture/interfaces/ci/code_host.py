"""What is asked of a service of code, whichever it is."""

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

MOST_PAGES = 5
PAGE = 100
"""Entries of a page: the most that either service answers at once."""


@dataclass(frozen=True, kw_only=True)
class ChangedFile:
    """A file as it is to be committed."""

    path: str
    content: bytes
    is_program: bool
    is_new: bool


@dataclass(frozen=True, kw_only=True)
class DeliveredChange:
    """What is handed over.

    Attributes:
        parent: The commit that it is a change of.
        title: One line.
        message: Of the commit.
        text: Markdown, for people.
        files: The files that it changes, by their paths in the repository.
        suggestions: The same as replacements of lines, where all of it can be told so.
    """

    parent: str
    title: str
    message: str
    text: str
    files: tuple[ChangedFile, ...]
    suggestions: tuple[LineEdit, ...]


class CodeHost(Protocol):
    """Where a repository lives: GitHub or GitLab, behind its REST interface."""

    def heals(self) -> list[str]:
        """The commits of the branch whose heals are handed over and still there."""
        ...

    def open_draft(self, handed: DeliveredChange) -> str:
        """Make a branch with the change, and a draft of a pull request; answers its address."""
        ...

    def comment(self, handed: DeliveredChange) -> str:
        """Comment on the pull request; answers the comment's address."""
        ...


def branch_stem(branch: str) -> str:
    """How the names of all branches with heals of one branch begin: a few words of it, and its hash."""
    words = re.sub(r"[^A-Za-z0-9]+", "-", branch)[:40].strip("-")
    return f"suture/heal-{words}-{content_hash(branch)[:8]}-"


def require_pull(pipeline: Pipeline) -> int:
    """The number of the pull request.

    Raises:
        UsageError: The pipeline is of none.
    """
    if pipeline.pull is None:
        raise UsageError(
            "this pipeline is of no pull request, so there is nothing to comment on",
            remedy="set ci.hand_over=pull_request",
        )
    return pipeline.pull


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
    said = escape_line_breaks(escape_unprintable(content.decode("utf-8", "replace")))[:MOST_SAID_CHARS]
    if status in (401, 403, 404):
        return PrerequisiteError(
            f"{what} is refused with status {status}",
            remedy="give the job a token that may write contents and pull requests, as SUTURE_KEYS_CI",
        )
    return CodeHostError(f"{what} is refused with status {status}: {said}")
