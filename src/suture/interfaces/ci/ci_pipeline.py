"""Read from the environment what the CI service says about a change."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from suture.core.safe_files import read_regular_file
from suture.errors import UsageError
from suture.interfaces.ci.tuning import MAX_BRANCH_CHARS, MAX_EVENT_BYTES

Host = Literal["github", "gitlab", "none"]
"""The service that runs a pipeline."""
GITHUB_API_URL = "https://api.github.com"
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
        is_privileged: Whether the event gives a job secrets and a token that may write even for code of a fork.
        workflow_run: The id of the workflow run on GitHub, whose artifacts other workflows can find by it.
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
    is_privileged: bool = False
    workflow_run: str = ""
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
    event = read_event(environ)
    event_name = environ.get("GITHUB_EVENT_NAME", "")
    pull = get_object(event, "pull_request")
    # With the event `workflow_run`, this workflow runs after another one and is about that one's commit.
    earlier_workflow = get_object(event, "workflow_run")
    repository = environ.get("GITHUB_REPOSITORY", "")
    if not REPOSITORY_NAME.fullmatch(repository):
        raise UsageError(f"GITHUB_REPOSITORY is {repository[:100]!r}, which is not a repository name")
    branch = environ.get("GITHUB_REF_NAME", "") if environ.get("GITHUB_REF_TYPE") == "branch" else ""
    commit, base, number = environ.get("GITHUB_SHA", ""), get_text(event.get("before")), None
    source = repository
    if earlier_workflow:
        branch = get_text(earlier_workflow.get("head_branch"))
        commit = get_text(earlier_workflow.get("head_sha"))
        source = get_text(get_object(earlier_workflow, "head_repository").get("full_name"))
        pulls = earlier_workflow.get("pull_requests")
        pull_of_workflow = (
            pulls[0] if isinstance(pulls, list) and pulls and isinstance(pulls[0], dict) else {}
        )
        number = parse_number(pull_of_workflow.get("number"))
        base = get_text(get_object(pull_of_workflow, "base").get("sha"))
    elif not pull and event_name.startswith("pull_request"):
        raise UsageError(
            "the event file of this pull request does not describe it", remedy="see GITHUB_EVENT_PATH"
        )
    workflow_run = environ.get("GITHUB_RUN_ID", "")[:19]
    actors = (
        environ.get("GITHUB_ACTOR", ""),
        _actor_name(get_object(pull, "user")),
        _actor_name(get_object(event, "sender")),
    )
    pipeline = Pipeline(
        host="github",
        api_url=environ.get("GITHUB_API_URL", GITHUB_API_URL).rstrip("/"),
        repository=repository,
        branch=_require_branch_name(branch),
        commit=_commit_or_empty(commit),
        base=_commit_or_empty(base),
        pull=number,
        is_fork=source.lower() != repository.lower(),
        is_privileged=event_name == "pull_request_target",
        workflow_run=workflow_run if workflow_run.isascii() and workflow_run.isdecimal() else "",
        actors=tuple(filter(None, actors)),
    )
    return select_pull(pipeline, pull) if pull else pipeline


def select_pull(pipeline: Pipeline, pull: Mapping[str, Any]) -> Pipeline:
    """Return the pipeline as one of a pull request.

    Args:
        pull: The pull request as GitHub describes it, both in events and in its REST interface.
    """
    head = get_object(pull, "head")
    source = get_text(get_object(head, "repo").get("full_name"))  # the repository is null if it was deleted
    return replace(
        pipeline,
        branch=_require_branch_name(get_text(head.get("ref"))),
        commit=_commit_or_empty(get_text(head.get("sha"))),
        base=_commit_or_empty(get_text(get_object(pull, "base").get("sha"))),
        pull=parse_number(pull.get("number")),
        is_fork=source.lower() != pipeline.repository.lower(),
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
        pull=parse_number(environ.get("CI_MERGE_REQUEST_IID")),
        is_fork=bool(source) and source != project,
        actors=(actor,) if actor else (),
    )


def read_event(environ: Mapping[str, str]) -> Mapping[str, Any]:
    """Return the event of GitHub that started this workflow.

    Raises:
        UsageError: The event file cannot be read.
    """
    path = environ.get("GITHUB_EVENT_PATH", "")
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


def get_object(parent: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return the JSON object at a key; an empty one if there is none."""
    child = parent.get(key)
    return child if isinstance(child, dict) else {}


def get_text(value: object) -> str:
    """Return a JSON value that is a string; an empty string for any other."""
    return value if isinstance(value, str) else ""


def _actor_name(person: Mapping[str, Any]) -> str:
    """Return the login; a bot whose login does not show it gets the suffix `[bot]`."""
    login = get_text(person.get("login"))
    return f"{login}[bot]" if person.get("type") == "Bot" and not login.endswith("[bot]") else login


def parse_number(value: object) -> int | None:
    """Return the number of a pull or merge request; `None` for a longer string of digits."""
    text = str(value)
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 12 else None


def _require_branch_name(branch: str) -> str:
    if len(branch) > MAX_BRANCH_CHARS or not branch.isprintable():
        raise UsageError("the branch name is too long or has unprintable characters")
    return branch


def _commit_or_empty(text: str) -> str:
    """Return a commit hash, or an empty string for all zeros (no commit) and for anything else."""
    return text if COMMIT_HASH.fullmatch(text) and text.strip("0") else ""
