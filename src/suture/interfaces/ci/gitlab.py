"""Deliver heals through GitLab's REST interface (version 4)."""

from __future__ import annotations

import base64
from urllib.parse import quote

from pydantic import SecretStr

from suture.interfaces.ci.ci_pipeline import Pipeline
from suture.interfaces.ci.code_host import DeliveredChange, RestClient, branch_stem, require_pull
from suture.interfaces.ci.markdown_summary import marked_commits


class GitLab:
    """The code host of a pipeline on GitLab."""

    def __init__(self, pipeline: Pipeline, token: SecretStr) -> None:
        self._pipeline = pipeline
        headers = {"User-Agent": "suture", "PRIVATE-TOKEN": token.get_secret_value()}
        self._rest = RestClient("GitLab", pipeline.api_url, f"/projects/{pipeline.repository}", headers)

    def heals(self) -> list[str]:
        """Return the commits whose heals have a branch, or a note on the merge request."""
        stem = branch_stem(self._pipeline.branch)
        search = quote("^" + stem, safe="")
        branches = self._rest.list_field(f"/repository/branches?search={search}", "name")
        commits = [name.partition(stem)[2] for name in branches]
        if (pull := self._pipeline.pull) is not None:
            notes = self._rest.list_field(f"/merge_requests/{pull}/notes?sort=asc", "body")
            commits += marked_commits(notes)
        return commits

    def open_draft(self, change: DeliveredChange) -> str:
        """Create a commit on a new branch, and a draft merge request into the pipeline's branch."""
        branch = branch_stem(self._pipeline.branch) + change.parent
        self._rest.post(
            "/repository/commits",
            branch=branch,
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
            source_branch=branch,
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
        """Create something and return its address, or its id for things without a page, such as notes."""
        response = self._rest.post(path, **body)
        return str(response.get("web_url", response.get("id", "")))
