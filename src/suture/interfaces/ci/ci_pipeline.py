"""Read from the environment what the CI service says about a change."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from suture.core.safe_files import read_regular_file
from suture.errors import UsageError
from suture.interfaces.ci.tuning import MAX_BRANCH_CHARS, MAX_EVENT_BYTES

Host = Literal["github", "gitlab", "none"]
"""The service that runs a pipeline."""
COMMIT_HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
"""A whole hash, by SHA-1 or by SHA-256."""
REPOSITORY_NAME = re.compile(r"[\w.-]{1,100}(?:/[\w.-]{1,100}){1,20}", re.ASCII)
"""A repository's name; GitLab's groups give it more than two parts. The lengths are chosen by judgement."""


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    """What is known about a change before its code is read.

    Attributes:
        host: The service that runs the pipeline; `none` in a plain shell.
        api_url: The address of the service's REST interface.
        repository: `owner/name` on GitHub, the project's number on GitLab.
        branch: The branch of the change; empty if there is none.
        commit: The commit that must be checked out; empty if unknown.
        base: The commit or branch that the change started from, if the service says.
        pull: The number of the pull or merge request, if there is one.
        is_fork: Whether the code comes from another repository.
        actors: The users whom the service names as responsible.
    """

    host: Host = "none"
    api_url: str = ""
    repository: str = ""
    branch: str = ""
    commit: str = ""
    base: str = ""
    pull: int | None = None
    is_fork: bool = False
    actors: tuple[str, ...] = ()


def read_pipeline(environ: Mapping[str, str]) -> Pipeline:
    """Return the pipeline that this process is a step of, as the variables of GitHub or GitLab describe it.

    Raises:
        UsageError: The description cannot be read or is invalid.
    """
    if environ.get("GITHUB_ACTIONS") == "true":
        return _read_github(environ)
    if environ.get("GITLAB_CI") == "true":
        return _read_gitlab(environ)
    return Pipeline()


def _read_github(environ: Mapping[str, str]) -> Pipeline:
    event = _read_event(environ.get("GITHUB_EVENT_PATH", ""))
    pull = _get_object(event, "pull_request")
    # With the event `workflow_run`, this workflow runs after another one and is about that one's commit.
    earlier_workflow = _get_object(event, "workflow_run")
    repository = environ.get("GITHUB_REPOSITORY", "")
    if not REPOSITORY_NAME.fullmatch(repository):
        raise UsageError(f"GITHUB_REPOSITORY is {repository[:100]!r}, which is not a repository name")
    branch = environ.get("GITHUB_REF_NAME", "") if environ.get("GITHUB_REF_TYPE") == "branch" else ""
    commit, base, number = environ.get("GITHUB_SHA", ""), _get_text(event.get("before")), None
    source = repository
    if pull:
        head = _get_object(pull, "head")
        branch, commit = _get_text(head.get("ref")), _get_text(head.get("sha"))
        base, number = _get_text(_get_object(pull, "base").get("sha")), _parse_number(pull.get("number"))
        source = _get_text(_get_object(head, "repo").get("full_name"))  # null if the fork was deleted
    elif earlier_workflow:
        branch = _get_text(earlier_workflow.get("head_branch"))
        commit = _get_text(earlier_workflow.get("head_sha"))
        source = _get_text(_get_object(earlier_workflow, "head_repository").get("full_name"))
        pulls = earlier_workflow.get("pull_requests")
        pull_of_workflow = (
            pulls[0] if isinstance(pulls, list) and pulls and isinstance(pulls[0], dict) else {}
        )
        number = _parse_number(pull_of_workflow.get("number"))
        base = _get_text(_get_object(pull_of_workflow, "base").get("sha"))
    elif environ.get("GITHUB_EVENT_NAME", "").startswith("pull_request"):
        raise UsageError(
            "the event file of this pull request does not describe it", remedy="see GITHUB_EVENT_PATH"
        )
    actors = (
        environ.get("GITHUB_ACTOR", ""),
        _actor_name(_get_object(pull, "user")),
        _actor_name(_get_object(event, "sender")),
    )
    return Pipeline(
        host="github",
        api_url=environ.get("GITHUB_API_URL", "https://api.github.com").rstrip("/"),
        repository=repository,
        branch=_require_branch_name(branch),
        commit=_commit_or_empty(commit),
        base=_commit_or_empty(base),
        pull=number,
        is_fork=source.lower() != repository.lower(),
        actors=tuple(filter(None, actors)),
    )


def _read_gitlab(environ: Mapping[str, str]) -> Pipeline:
    project = environ.get("CI_PROJECT_ID", "")
    if not project.isascii() or not project.isdecimal():
        raise UsageError(f"CI_PROJECT_ID is {project!r}, which is not a number")
    source = environ.get("CI_MERGE_REQUEST_SOURCE_PROJECT_ID", "")
    branch = environ.get("CI_MERGE_REQUEST_SOURCE_BRANCH_NAME") or environ.get("CI_COMMIT_BRANCH", "")
    commit = environ.get("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA") or environ.get("CI_COMMIT_SHA", "")
    base = environ.get("CI_MERGE_REQUEST_DIFF_BASE_SHA") or environ.get("CI_COMMIT_BEFORE_SHA", "")
    actor = environ.get("GITLAB_USER_LOGIN", "")
    return Pipeline(
        host="gitlab",
        api_url=environ.get("CI_API_V4_URL", "https://gitlab.com/api/v4").rstrip("/"),
        repository=project,
        branch=_require_branch_name(branch),
        commit=_commit_or_empty(commit),
        base=_commit_or_empty(base),
        pull=_parse_number(environ.get("CI_MERGE_REQUEST_IID")),
        is_fork=bool(source) and source != project,
        actors=(actor,) if actor else (),
    )


def _read_event(path: str) -> Mapping[str, Any]:
    try:
        content = read_regular_file(Path(path), MAX_EVENT_BYTES, follow=True) if path else None
        event = json.loads(content or b"")
    except (OSError, ValueError, RecursionError) as fault:
        raise UsageError(
            f"the event at {path!r} cannot be read",
            remedy="set GITHUB_EVENT_PATH to the event file of GitHub",
        ) from fault
    if not isinstance(event, dict):
        raise UsageError(f"the event at {path!r} is not a JSON object")
    return event


def _get_object(parent: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    child = parent.get(key)
    return child if isinstance(child, dict) else {}


def _get_text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _actor_name(person: Mapping[str, Any]) -> str:
    """Return the login; a bot whose login does not show it gets the suffix `[bot]`."""
    login = _get_text(person.get("login"))
    return f"{login}[bot]" if person.get("type") == "Bot" and not login.endswith("[bot]") else login


def _parse_number(value: object) -> int | None:
    """Return the number of a pull or merge request; a longer text of digits is none."""
    text = str(value)
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 12 else None


def _require_branch_name(branch: str) -> str:
    if len(branch) > MAX_BRANCH_CHARS or not branch.isprintable():
        raise UsageError("the branch name is too long or has unprintable characters")
    return branch


def _commit_or_empty(text: str) -> str:
    """Return a commit hash, or an empty string for all zeros (no commit) and for anything else."""
    return text if COMMIT_HASH.fullmatch(text) and text.strip("0") else ""
