"""GitLab's REST interface (version 4): a commit on a new branch, a draft, a note."""

from __future__ import annotations

import base64
import re
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
from suture.interfaces.ci.markdown_report import MARK

MARK_PATTERN = re.compile(re.escape(MARK).replace(r"\{commit\}", "([0-9a-f]{40,64})"))


class GitLab:
    """A project on GitLab, and the branch of a pipeline."""

    def __init__(self, pipeline: Pipeline, token: SecretStr) -> None:
        self._pipeline = pipeline
        self._rest = RestClient(pipeline.api_url, {"User-Agent": "suture"}, ("PRIVATE-TOKEN", ""), token)
        self._project = f"/projects/{pipeline.repository}"

    def heals(self) -> list[str]:
        """Return the commits whose heals have a branch, or a note on the merge request."""
        stem = branch_stem(self._pipeline.branch)
        branches = self._list_field(f"/repository/branches?search={quote('^' + stem, safe='')}", "name")
        found = [name.partition(stem)[2] for name in branches]
        if self._pipeline.pull is not None:
            notes = self._list_field(f"/merge_requests/{self._pipeline.pull}/notes?sort=asc", "body")
            found += [commit[1] for body in notes if (commit := MARK_PATTERN.match(body))]
        return found

    def _list_field(self, path: str, key: str) -> list[str]:
        found: list[str] = []
        for page in range(1, MAX_PAGES + 1):
            _, response = self._rest.call("GET", f"{self._project}{path}&per_page={PAGE_SIZE}&page={page}")
            listed = response if isinstance(response, list) else []
            found += [one[key] for one in listed if isinstance(one, dict) and isinstance(one.get(key), str)]
            if len(listed) < PAGE_SIZE:
                break
        return found

    def open_draft(self, change: DeliveredChange) -> str:
        """Create a commit on a new branch, and a draft merge request into the pipeline's branch."""
        name = branch_stem(self._pipeline.branch) + change.parent
        self._post(
            "/repository/commits",
            branch=name,
            start_sha=change.parent,
            commit_message=change.message,
            actions=[
                {
                    "action": "create" if file.is_new else "update",
                    "file_path": file.path,
                    "content": base64.b64encode(file.content).decode("ascii"),
                    "encoding": "base64",
                }
                for file in change.files
            ],
        )
        return self._post(
            "/merge_requests",
            source_branch=name,
            target_branch=self._pipeline.branch,
            title=f"Draft: {change.title}",
            description=change.text,
        )

    def comment(self, change: DeliveredChange) -> str:
        """Create a note with the diff.

        GitLab's suggestions only work on lines of the merge request's own diff.
        """
        return self._post(f"/merge_requests/{require_pull(self._pipeline)}/notes", body=change.text)

    def _post(self, path: str, **body: object) -> str:
        response: Any = self._rest.call("POST", f"{self._project}{path}", body)[1]
        if not isinstance(response, dict):
            raise CodeHostError("GitLab's response does not have the documented form")
        return str(response.get("web_url", response.get("id", "")))
