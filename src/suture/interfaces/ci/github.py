"""GitHub's REST interface (version 2022-11-28): blobs to a commit, a branch, a draft, a review."""

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
    MOST_PAGES,
    PAGE,
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
MARKED = re.compile(re.escape(MARK).replace(r"\{commit\}", "([0-9a-f]{40,64})"))
UNPROCESSABLE = 422
"""The status of HTTP by which GitHub refuses what it understands and cannot do."""
STRANGE = "GitHub answers something else than its documents say"


class GitHub:
    """A repository at GitHub, and the branch that a pipeline is of."""

    def __init__(self, pipeline: Pipeline, token: SecretStr) -> None:
        self._pipeline = pipeline
        self._rest = RestClient(pipeline.api_url, HEADERS, ("Authorization", "Bearer "), token)
        self._repo = f"/repos/{pipeline.repository}"

    def heals(self) -> list[str]:
        """The commits whose heals have a branch, or a comment on the pull request."""
        stem = branch_stem(self._pipeline.branch)
        _, refs = self._rest.call("GET", f"{self._repo}/git/matching-refs/heads/{quote(stem)}")
        found = [ref.partition(stem)[2] for ref in _texts(refs, "ref")]
        if self._pipeline.pull is not None:
            pull = self._pipeline.pull
            for path in (f"/issues/{pull}/comments", f"/pulls/{pull}/reviews"):
                found += [commit[1] for body in self._bodies(path) if (commit := MARKED.match(body))]
        return found

    def _bodies(self, path: str) -> list[str]:
        found: list[str] = []
        for page in range(1, MOST_PAGES + 1):
            _, said = self._rest.call("GET", f"{self._repo}{path}?per_page={PAGE}&page={page}")
            found += _texts(said, "body")
            if not isinstance(said, list) or len(said) < PAGE:
                break
        return found

    def open_draft(self, handed: DeliveredChange) -> str:
        """A commit made of blobs, a branch that names it, a draft of a pull request into the own branch."""
        tree = self._made(
            "/git/trees",
            base_tree=handed.parent,
            tree=[
                {
                    "path": file.path,
                    "mode": "100755" if file.is_program else "100644",
                    "type": "blob",
                    "sha": self._made(
                        "/git/blobs",
                        content=base64.b64encode(file.content).decode("ascii"),
                        encoding="base64",
                    ),
                }
                for file in handed.files
            ],
        )
        commit = self._made("/git/commits", message=handed.message, tree=tree, parents=[handed.parent])
        name = branch_stem(self._pipeline.branch) + handed.parent
        self._make("/git/refs", ref=f"refs/heads/{name}", sha=commit)
        pull = self._make(
            "/pulls",
            title=handed.title,
            head=name,
            base=self._pipeline.branch,
            body=handed.text,
            draft=True,
        )
        return str(pull.get("html_url", ""))

    def comment(self, handed: DeliveredChange) -> str:
        """A review whose comments are suggestions; a plain comment where its diff has not these lines."""
        pull = require_pull(self._pipeline)
        if handed.suggestions:
            status, said = self._rest.call(
                "POST",
                f"{self._repo}/pulls/{pull}/reviews",
                {
                    "commit_id": handed.parent,
                    "event": "COMMENT",
                    "body": handed.text,
                    "comments": [_suggestion(edit) for edit in handed.suggestions],
                },
                ok=(UNPROCESSABLE,),
            )
            if status != UNPROCESSABLE:
                return str(_object(said).get("html_url", ""))
        return str(self._make(f"/issues/{pull}/comments", body=handed.text).get("html_url", ""))

    def _make(self, path: str, **body: object) -> Mapping[str, Any]:
        return _object(self._rest.call("POST", f"{self._repo}{path}", body)[1])

    def _made(self, path: str, **body: object) -> str:
        """The hash of an object that was made."""
        made = self._make(path, **body).get("sha")
        if not isinstance(made, str):
            raise CodeHostError(STRANGE)
        return made


def _suggestion(edit: LineEdit) -> dict[str, object]:
    several = {"start_line": edit.start, "start_side": "RIGHT"} if edit.end > edit.start else {}
    body = code_block("\n".join(edit.new), "suggestion")
    return {"path": edit.path, "line": edit.end, "side": "RIGHT", "body": body, **several}


def _object(said: Any) -> Mapping[str, Any]:
    if not isinstance(said, dict):
        raise CodeHostError(STRANGE)
    return said


def _texts(said: Any, key: str) -> list[str]:
    listed = said if isinstance(said, list) else []
    return [one[key] for one in listed if isinstance(one, dict) and isinstance(one.get(key), str)]
