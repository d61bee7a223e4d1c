"""Deliver heals through GitHub's REST interface (version 2022-11-28)."""

from __future__ import annotations

import base64
from urllib.parse import quote

from pydantic import SecretStr

from suture.errors import CodeHostError
from suture.interfaces.ci.ci_pipeline import Pipeline
from suture.interfaces.ci.code_host import DeliveredChange, RestClient, branch_stem, field_texts, require_pull
from suture.interfaces.ci.line_edits import LineEdit
from suture.interfaces.ci.markdown_summary import code_block, marked_commits

HEADERS = {
    "Accept": "application/vnd.github+json",
    "X-GitHub-Api-Version": "2022-11-28",
    "User-Agent": "suture",
}
HTTP_UNPROCESSABLE = 422
"""The HTTP status with which GitHub refuses requests that it understands but cannot execute."""


class GitHub:
    """The code host of a pipeline on GitHub."""

    def __init__(self, pipeline: Pipeline, token: SecretStr) -> None:
        self._pipeline = pipeline
        headers = {**HEADERS, "Authorization": f"Bearer {token.get_secret_value()}"}
        self._rest = RestClient("GitHub", pipeline.api_url, f"/repos/{pipeline.repository}", headers)

    def heals(self) -> list[str]:
        """Return the commits whose heals have a branch, or a comment on the pull request."""
        stem = branch_stem(self._pipeline.branch)
        _, refs = self._rest.call("GET", f"/git/matching-refs/heads/{quote(stem)}")
        commits = [ref.partition(stem)[2] for ref in field_texts(refs, "ref")]
        if (pull := self._pipeline.pull) is not None:
            for path in (f"/issues/{pull}/comments", f"/pulls/{pull}/reviews"):
                commits += marked_commits(self._rest.list_field(path, "body"))
        return commits

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
        branch = branch_stem(self._pipeline.branch) + change.parent
        self._rest.post("/git/refs", ref=f"refs/heads/{branch}", sha=commit)
        pull = self._rest.post(
            "/pulls",
            title=change.title,
            head=branch,
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
                f"/pulls/{pull}/reviews",
                {
                    "commit_id": change.parent,
                    "event": "COMMENT",
                    "body": change.text,
                    "comments": [_suggestion(edit) for edit in change.suggestions],
                },
                ok=(HTTP_UNPROCESSABLE,),
            )
            if status != HTTP_UNPROCESSABLE:
                return str(self._rest.require_object(response).get("html_url", ""))
        return str(self._rest.post(f"/issues/{pull}/comments", body=change.text).get("html_url", ""))

    def _create_object(self, path: str, **body: object) -> str:
        """Create a git object and return its hash."""
        sha = self._rest.post(path, **body).get("sha")
        if not isinstance(sha, str):
            raise CodeHostError("GitHub's response does not have the documented form")
        return sha


def _suggestion(edit: LineEdit) -> dict[str, object]:
    suggestion: dict[str, object] = {
        "path": edit.path,
        "line": edit.end,
        "side": "RIGHT",
        "body": code_block("\n".join(edit.new), "suggestion"),
    }
    if edit.end > edit.start:
        suggestion |= {"start_line": edit.start, "start_side": "RIGHT"}
    return suggestion
