"""GitHub's REST interface (version 2022-11-28): commit blobs, create a branch and a draft, review."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from pydantic import SecretStr

from suture.errors import CodeHostError
from suture.interfaces.ci.ci_pipeline import Pipeline
from suture.interfaces.ci.code_host import (
    MAX_PAGES,
    PAGE_SIZE,
    DeliveredChange,
    RestClient,
    branch_stem,
    require_pull,
)
from suture.interfaces.ci.line_edits import LineEdit
from suture.interfaces.ci.markdown_report import MARK, code_block

HEADERS = {
    "Accept": "application/vnd.github+json",
    "X-GitHub-Api-Version": "2022-11-28",
    "User-Agent": "suture",
}
MARK_PATTERN = re.compile(re.escape(MARK).replace(r"\{commit\}", "([0-9a-f]{40,64})"))
HTTP_UNPROCESSABLE = 422
"""The HTTP status with which GitHub refuses requests that it understands but cannot execute."""
UNEXPECTED_RESPONSE = "GitHub's response does not have the documented form"


class GitHub:
    """A repository on GitHub, and the branch of a pipeline."""

    def __init__(self, pipeline: Pipeline, token: SecretStr) -> None:
        self._pipeline = pipeline
        self._rest = RestClient(pipeline.api_url, HEADERS, ("Authorization", "Bearer "), token)
        self._repo = f"/repos/{pipeline.repository}"

    def heals(self) -> list[str]:
        """Return the commits whose heals have a branch, or a comment on the pull request."""
        stem = branch_stem(self._pipeline.branch)
        _, refs = self._rest.call("GET", f"{self._repo}/git/matching-refs/heads/{quote(stem)}")
        found = [ref.partition(stem)[2] for ref in _field_texts(refs, "ref")]
        if self._pipeline.pull is not None:
            pull = self._pipeline.pull
            for path in (f"/issues/{pull}/comments", f"/pulls/{pull}/reviews"):
                found += [
                    commit[1] for body in self._comment_bodies(path) if (commit := MARK_PATTERN.match(body))
                ]
        return found

    def _comment_bodies(self, path: str) -> list[str]:
        found: list[str] = []
        for page in range(1, MAX_PAGES + 1):
            _, response = self._rest.call("GET", f"{self._repo}{path}?per_page={PAGE_SIZE}&page={page}")
            found += _field_texts(response, "body")
            if not isinstance(response, list) or len(response) < PAGE_SIZE:
                break
        return found

    def open_draft(self, change: DeliveredChange) -> str:
        """Create a commit, a branch for it, and a draft pull request into the pipeline's branch."""
        tree = self._create_object(
            "/git/trees",
            base_tree=change.parent,
            tree=[
                {
                    "path": file.path,
                    "mode": "100755" if file.is_program else "100644",
                    "type": "blob",
                    "sha": self._create_object(
                        "/git/blobs",
                        content=base64.b64encode(file.content).decode("ascii"),
                        encoding="base64",
                    ),
                }
                for file in change.files
            ],
        )
        commit = self._create_object(
            "/git/commits", message=change.message, tree=tree, parents=[change.parent]
        )
        name = branch_stem(self._pipeline.branch) + change.parent
        self._post("/git/refs", ref=f"refs/heads/{name}", sha=commit)
        pull = self._post(
            "/pulls",
            title=change.title,
            head=name,
            base=self._pipeline.branch,
            body=change.text,
            draft=True,
        )
        return str(pull.get("html_url", ""))

    def comment(self, change: DeliveredChange) -> str:
        """Create a review with suggestions, or a plain comment.

        Suggestions only work on lines that are part of the pull request's diff.
        """
        pull = require_pull(self._pipeline)
        if change.suggestions:
            status, response = self._rest.call(
                "POST",
                f"{self._repo}/pulls/{pull}/reviews",
                {
                    "commit_id": change.parent,
                    "event": "COMMENT",
                    "body": change.text,
                    "comments": [_suggestion(edit) for edit in change.suggestions],
                },
                ok=(HTTP_UNPROCESSABLE,),
            )
            if status != HTTP_UNPROCESSABLE:
                return str(_require_object(response).get("html_url", ""))
        return str(self._post(f"/issues/{pull}/comments", body=change.text).get("html_url", ""))

    def _post(self, path: str, **body: object) -> Mapping[str, Any]:
        return _require_object(self._rest.call("POST", f"{self._repo}{path}", body)[1])

    def _create_object(self, path: str, **body: object) -> str:
        """Create a git object and return its hash."""
        made = self._post(path, **body).get("sha")
        if not isinstance(made, str):
            raise CodeHostError(UNEXPECTED_RESPONSE)
        return made


def _suggestion(edit: LineEdit) -> dict[str, object]:
    several = {"start_line": edit.start, "start_side": "RIGHT"} if edit.end > edit.start else {}
    body = code_block("\n".join(edit.new), "suggestion")
    return {"path": edit.path, "line": edit.end, "side": "RIGHT", "body": body, **several}


def _require_object(response: Any) -> Mapping[str, Any]:
    if not isinstance(response, dict):
        raise CodeHostError(UNEXPECTED_RESPONSE)
    return response


def _field_texts(response: Any, key: str) -> list[str]:
    listed = response if isinstance(response, list) else []
    return [one[key] for one in listed if isinstance(one, dict) and isinstance(one.get(key), str)]
