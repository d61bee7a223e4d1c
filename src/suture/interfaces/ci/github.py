"""Deliver heals through GitHub's REST interface (version 2022-11-28)."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from pydantic import SecretStr

from suture.errors import CodeHostError, PrerequisiteError, UsageError
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
from suture.interfaces.ci.heal_comment import (
    COMMANDS_TEXT,
    HealMark,
    parse_mark,
    render_heal_comment,
    set_comment_status,
)
from suture.interfaces.ci.line_edits import LineEdit, hunk_ranges
from suture.interfaces.ci.markdown_summary import code_block

HEADERS = {
    "Accept": "application/vnd.github+json",
    "X-GitHub-Api-Version": "2022-11-28",
    "User-Agent": "suture",
}
HTTP_FORBIDDEN, HTTP_NOT_FOUND, HTTP_UNPROCESSABLE = 403, 404, 422
"""Statuses with which GitHub refuses what a token may not do, hides it, or cannot execute it."""
LOGIN = re.compile(r"[A-Za-z0-9_-]{1,100}(?:\[bot\])?")
"""The name of a user of GitHub, which can be put into a path."""
SUGGESTIONS_MARK = "<!-- suture-suggestions {commit} -->"
"""The hidden first line of a review with suggestions."""
CHECK_NAME = "suture"


@dataclass(frozen=True, kw_only=True)
class PostedHeal:
    """Suture's comment on a pull request, as it is now.

    Attributes:
        comment: The id of the comment.
        body: Its whole text.
    """

    comment: int
    mark: HealMark
    body: str


@dataclass(frozen=True, kw_only=True)
class DeliveredPull:
    """A pull request that delivers a change of a commit.

    Attributes:
        address: Where it can be viewed.
        certificate_matches: Whether its last commit was made for the same certificate.
    """

    address: str
    certificate_matches: bool


class GitHub:
    """The code host of a pipeline on GitHub.

    Args:
        token: The token; without one nothing is sent, which only a dry run can use.
        show: Shows the requests of a dry run.
    """

    def __init__(
        self, pipeline: Pipeline, token: SecretStr | None, show: RequestPrinter | None = None
    ) -> None:
        self._pipeline = pipeline
        headers = {**HEADERS, "Authorization": f"Bearer {token.get_secret_value()}"} if token else {}
        self.rest = RestClient("GitHub", pipeline.api_url, f"/repos/{pipeline.repository}", headers, show)

    def open_heals(self) -> OpenHeals:
        """Return the heals that have a branch, and the one that the comment on the pull request offers."""
        stem = branch_stem(self._pipeline.branch)
        _, refs = self.rest.call("GET", f"/git/matching-refs/heads/{quote(stem)}")
        branches = tuple(ref.partition(stem)[2] for ref in field_texts(refs, "ref"))
        posted = None if self._pipeline.pull is None else self.find_posted_heal(self._pipeline.pull)
        return OpenHeals(
            branches=branches,
            commented=(posted.mark.commit,) if posted and posted.mark.state == "open" else (),
            rejected=(posted.mark.commit,) if posted and posted.mark.state == "rejected" else (),
        )

    def open_draft(self, change: DeliveredChange) -> str:
        """Create a commit, a branch for it, and a draft pull request into the pipeline's branch.

        The branch is deleted if there can be no pull request, because a branch counts as a delivered change.
        """
        missing = (HTTP_NOT_FOUND, HTTP_UNPROCESSABLE)
        status, _ = self.rest.call("GET", f"/git/commits/{change.parent}", ok=missing)
        if status in missing:
            raise UsageError(f"GitHub has no commit {change.parent[:12]}", remedy="push the branch first")
        commit = self._create_commit(change, change.message)
        branch = self._heal_branch(change)
        self.rest.post("/git/refs", ref=f"refs/heads/{branch}", sha=commit)
        try:
            pull = self.rest.post(
                "/pulls",
                title=change.title,
                head=branch,
                base=self._pipeline.branch,
                body=change.text,
                draft=True,
            )
        except (CodeHostError, PrerequisiteError):
            with suppress(CodeHostError, PrerequisiteError):  # the first error says what to do
                self.delete_branch(change)
            raise
        return str(pull.get("html_url", ""))

    def find_pull(self, change: DeliveredChange) -> DeliveredPull | None:
        """Return the pull request of the branch for a change, an open one if there is one."""
        branch = self._heal_branch(change)
        head = quote(f"{self._pipeline.repository.partition('/')[0]}:{branch}", safe="")
        found = [
            pull
            for pull in self.rest.list_entries(f"/pulls?state=all&head={head}")
            if isinstance(pull.get("head"), dict) and pull["head"].get("ref") == branch
        ]
        if not found:
            return None
        pull = next((pull for pull in found if pull.get("state") == "open"), found[0])
        commit = self.rest.get(f"/git/commits/{quote(str(pull['head'].get('sha')), safe='')}")
        return DeliveredPull(
            address=str(pull.get("html_url", "")),
            certificate_matches=f"(certificate {change.seal[:12]})" in str(commit.get("message")),
        )

    def delete_branch(self, change: DeliveredChange) -> None:
        """Delete the branch for a change, if it exists."""
        path = f"/git/refs/heads/{quote(self._heal_branch(change))}"
        self.rest.call("DELETE", path, ok=(HTTP_NOT_FOUND, HTTP_UNPROCESSABLE))

    def _heal_branch(self, change: DeliveredChange) -> str:
        """Return the name of the branch that delivers a change; all changes of a commit have the same."""
        return branch_stem(self._pipeline.branch) + change.parent

    def comment(self, change: DeliveredChange) -> str:
        """Create or update Suture's comment on the pull request; then suggest the lines that are in its diff."""
        pull = require_pull(self._pipeline)
        mark = HealMark(
            commit=change.parent,
            seal=change.seal[:16],
            workflow_run=self._pipeline.workflow_run or "0",
        )
        body = render_heal_comment(mark, change.text + COMMANDS_TEXT)
        posted = self.find_posted_heal(pull)
        if posted is None:
            response = self.rest.post(f"/issues/{pull}/comments", body=body)
        else:
            response = self.rest.update(f"/issues/comments/{posted.comment}", body=body)
        self._suggest(change, pull)
        return str(response.get("html_url", ""))

    def find_posted_heal(self, pull: int) -> PostedHeal | None:
        """Return Suture's comment on a pull request, if it is there.

        Anybody can write a comment that begins like it. It counts only if a program wrote it, or somebody who may
        write to the repository: the owner of a personal token.
        """
        for entry in reversed(self.rest.list_entries(f"/issues/{pull}/comments")):
            body, number, author = entry.get("body"), entry.get("id"), entry.get("user")
            mark = parse_mark(body) if isinstance(body, str) else None
            if mark is None or not isinstance(body, str) or not isinstance(number, int):
                continue
            author = author if isinstance(author, dict) else {}
            if author.get("type") == "Bot" or self.may_write(str(author.get("login", ""))):
                return PostedHeal(comment=number, mark=mark, body=body)
        return None

    def may_write(self, login: str) -> bool:
        """Return whether a user may write to the repository; `maintain` counts as `write` there."""
        if not LOGIN.fullmatch(login):
            return False
        path = f"/collaborators/{quote(login, safe='')}/permission"
        status, response = self.rest.call("GET", path, ok=(HTTP_NOT_FOUND,))
        permission = response.get("permission") if status == 200 and isinstance(response, dict) else None
        return permission in ("admin", "write")

    def update_status(self, posted: PostedHeal, mark: HealMark, status: str) -> None:
        """Write into the comment what became of the heal; `status` is one line of Markdown."""
        self.rest.update(
            f"/issues/comments/{posted.comment}", body=set_comment_status(posted.body, mark, status)
        )

    def commit_to_branch(self, change: DeliveredChange, branch: str, requested_by: str) -> str:
        """Commit the change to a branch; return the commit, or "" if GitHub refuses to move the branch to it.

        GitHub moves a branch only to a descendant of its head, so that of two commits on one parent one is refused.
        """
        title, _, body = change.message.partition("\n\n")
        message = f"{title}\n\nRequested by {requested_by}.\n\n{body}"
        commit = self._create_commit(change, message)
        path = f"/git/refs/heads/{quote(branch)}"
        body_json = {"sha": commit, "force": False}
        status, _ = self.rest.call("PATCH", path, body_json, ok=(HTTP_UNPROCESSABLE,))
        return "" if status == HTTP_UNPROCESSABLE else commit

    def report_check(self, commit: str, change: DeliveredChange) -> None:
        """Create a check run on the commit that says what was verified, if the token may do that.

        Workflows do not run for commits that the token of a workflow makes, and without this check nothing would
        say that the tests ran on the same files. Only GitHub Apps may create check runs.
        """
        self.rest.call(
            "POST",
            "/check-runs",
            {
                "name": CHECK_NAME,
                "head_sha": commit,
                "status": "completed",
                "conclusion": "success",
                "output": {"title": "The tests pass; verified before the commit", "summary": change.text},
            },
            ok=(HTTP_FORBIDDEN, HTTP_NOT_FOUND, HTTP_UNPROCESSABLE),
        )

    def _suggest(self, change: DeliveredChange, pull: int) -> None:
        """Create one review with the edits whose lines are in the pull request's diff; others get an error."""
        if not change.suggestions:
            return
        mark = SUGGESTIONS_MARK.format(commit=change.parent)
        reviews = field_texts(self.rest.list_entries(f"/pulls/{pull}/reviews"), "body")
        suggestions = select_suggestions(change.suggestions, self.rest.list_entries(f"/pulls/{pull}/files"))
        if not suggestions or any(body.startswith(mark) for body in reviews):
            return
        rest_text = (
            ""
            if len(suggestions) == len(change.suggestions)
            else (
                f" These are {len(suggestions)} of {len(change.suggestions)} edits, and the tests pass only with all: "
                "the others are outside of this pull request's diff."
            )
        )
        self.rest.call(
            "POST",
            f"/pulls/{pull}/reviews",
            {
                "commit_id": change.parent,
                "event": "COMMENT",
                "body": f"{mark}\nThe change of Suture's comment as suggestions.{rest_text}",
                "comments": [_suggestion(edit) for edit in suggestions],
            },
            ok=(HTTP_UNPROCESSABLE,),  # the diff has changed since; the comment has the change
        )

    def _create_commit(self, change: DeliveredChange, message: str) -> str:
        """Create a commit with the change; return its hash."""
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
        return self._create_object("/git/commits", message=message, tree=tree, parents=[change.parent])

    def _create_object(self, path: str, **body: object) -> str:
        """Create a git object and return its hash."""
        sha = self.rest.post(path, **body).get("sha")
        if not isinstance(sha, str):
            raise CodeHostError("GitHub's response does not have the documented form")
        return sha


def select_suggestions(edits: Iterable[LineEdit], files: Iterable[Mapping[str, Any]]) -> list[LineEdit]:
    """Return the edits whose lines all lie in one hunk of a pull request's diff.

    Args:
        files: The files of the pull request as GitHub lists them; a large or binary file has no `patch`.
    """
    hunks = {file.get("filename"): hunk_ranges(str(file.get("patch") or "")) for file in files}
    return [
        edit
        for edit in edits
        if any(edit.start in hunk and edit.end in hunk for hunk in hunks.get(edit.path, ()))
    ]


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
