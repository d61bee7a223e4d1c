"""Deliver heals through GitLab's REST interface (version 4)."""

from __future__ import annotations

import base64
from urllib.parse import quote

from pydantic import SecretStr

from suture.interfaces.ci.ci_pipeline import Pipeline
from suture.interfaces.ci.code_host import (
    DeliveredChange,
    OpenHeals,
    RequestPrinter,
    RestClient,
    branch_stem,
    field_texts,
    require_pull,
)
from suture.interfaces.ci.heal_comment import HealMark, parse_mark, render_heal_comment


class GitLab:
    """The code host of a pipeline on GitLab."""

    def __init__(
        self, pipeline: Pipeline, token: SecretStr | None, show: RequestPrinter | None = None
    ) -> None:
        self._pipeline = pipeline
        headers = {"User-Agent": "suture", "PRIVATE-TOKEN": token.get_secret_value()} if token else {}
        self._rest = RestClient("GitLab", pipeline.api_url, f"/projects/{pipeline.repository}", headers, show)
        self._account = RestClient("GitLab", pipeline.api_url, "", headers, show)

    def open_heals(self) -> OpenHeals:
        """Return the heals that have a branch, and those of notes on the merge request."""
        stem = branch_stem(self._pipeline.branch)
        search = quote("^" + stem, safe="")
        branches = field_texts(self._rest.list_entries(f"/repository/branches?search={search}"), "name")
        return OpenHeals(
            branches=tuple(name.partition(stem)[2] for name in branches),
            commented=tuple(mark.commit for _, mark in self._list_notes()),
        )

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
        """Create a note with the diff, or update Suture's earlier note.

        GitLab's suggestions only work on lines of the merge request's own diff.
        """
        notes_path = f"/merge_requests/{require_pull(self._pipeline)}/notes"
        body = render_heal_comment(HealMark(commit=change.parent, seal=change.seal[:16]), change.text)
        notes = self._list_notes()
        if not notes:
            return self._post(notes_path, body=body)
        number, _ = notes[-1]
        self._rest.update(f"{notes_path}/{number}", "PUT", body=body)
        return str(number)

    def _list_notes(self) -> list[tuple[int, HealMark]]:
        """Return the id and the mark of each of Suture's notes on the merge request, the newest last.

        Anybody can write a note that begins like it. It counts only if the token's own user wrote it.
        """
        if self._pipeline.pull is None:
            return []
        entries = self._rest.list_entries(f"/merge_requests/{self._pipeline.pull}/notes?sort=asc")
        notes = [
            (number, mark, author.get("id"))
            for entry in entries
            if isinstance(number := entry.get("id"), int)
            and (mark := parse_mark(str(entry.get("body", "")))) is not None
            and isinstance(author := entry.get("author"), dict)
        ]
        if not notes:
            return []
        user = self._account.get("/user").get("id")
        return [(number, mark) for number, mark, author in notes if author and author == user]

    def _post(self, path: str, **body: object) -> str:
        """Create something and return its address, or its id for things without a page, such as notes."""
        response = self._rest.post(path, **body)
        return str(response.get("web_url", response.get("id", "")))
