"""What a pipeline's service says of its change: whose it is, where it began, where it goes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from suture.core.safe_files import read_plain
from suture.errors import UsageError

Host = Literal["github", "gitlab", "none"]
MOST_EVENT_BYTES = 16 * 2**20
COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
SLUG = re.compile(r"[\w.-]{1,100}(?:/[\w.-]{1,100}){1,20}", re.ASCII)
"""A repository's name; GitLab's groups make it longer than two parts."""
MOST_NAME_CHARS = 255


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    """What is known of a change before its code is looked at.

    Attributes:
        host: Which service runs the pipeline; `none` where it is a shell.
        api_url: The address of the service's REST interface.
        repository: `owner/name` at GitHub, the project's number at GitLab.
        branch: The branch that the change is on; empty where there is none.
        commit: The commit that is to be checked out; empty where nobody says.
        base: The commit or branch that the change started from, as far as the service says.
        pull: The number of the pull or merge request, where there is one.
        is_fork: Whether the code comes from another repository.
        actors: Who the service says is behind it.
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
    """The pipeline that this process is a step of.

    Args:
        environ: The environment, in which GitHub and GitLab say what they run.

    Raises:
        UsageError: What they say cannot be read, or makes no sense.
    """
    if environ.get("GITHUB_ACTIONS") == "true":
        return _of_github(environ)
    if environ.get("GITLAB_CI") == "true":
        return _of_gitlab(environ)
    return Pipeline()


def _of_github(environ: Mapping[str, str]) -> Pipeline:
    event = _event(environ.get("GITHUB_EVENT_PATH", ""))
    pull = _table(event, "pull_request")
    later = _table(event, "workflow_run")
    repository = _slug(environ.get("GITHUB_REPOSITORY", ""), "GITHUB_REPOSITORY")
    branch = environ.get("GITHUB_REF_NAME", "") if environ.get("GITHUB_REF_TYPE") == "branch" else ""
    commit, base, number = environ.get("GITHUB_SHA", ""), _text(event.get("before")), None
    source = repository
    if pull:
        head = _table(pull, "head")
        branch, commit = _text(head.get("ref")), _text(head.get("sha"))
        base, number = _text(_table(pull, "base").get("sha")), _number(pull.get("number"))
        source = _text(_table(head, "repo").get("full_name"))  # null where the fork is gone
    elif later:
        branch, commit, base = _text(later.get("head_branch")), _text(later.get("head_sha")), ""
        source = _text(_table(later, "head_repository").get("full_name"))
        listed = later.get("pull_requests")
        first = listed[0] if isinstance(listed, list) and listed and isinstance(listed[0], dict) else {}
        number, base = _number(first.get("number")), _text(_table(first, "base").get("sha"))
    elif environ.get("GITHUB_EVENT_NAME", "").startswith("pull_request"):
        raise UsageError("the event of this pull request says nothing of it", remedy="see GITHUB_EVENT_PATH")
    people = [_table(pull, "user"), _table(event, "sender")]
    return Pipeline(
        host="github",
        api_url=environ.get("GITHUB_API_URL", "https://api.github.com").rstrip("/"),
        repository=repository,
        branch=_name(branch),
        commit=_commit(commit),
        base=_commit(base),
        pull=number,
        is_fork=source.lower() != repository.lower(),
        actors=tuple(filter(None, (environ.get("GITHUB_ACTOR", ""), *(_login(one) for one in people)))),
    )


def _of_gitlab(environ: Mapping[str, str]) -> Pipeline:
    project = environ.get("CI_PROJECT_ID", "")
    if not project.isascii() or not project.isdecimal():
        raise UsageError(f"CI_PROJECT_ID is {project!r}, which is no number")
    source = environ.get("CI_MERGE_REQUEST_SOURCE_PROJECT_ID", "")
    branch = environ.get("CI_MERGE_REQUEST_SOURCE_BRANCH_NAME") or environ.get("CI_COMMIT_BRANCH", "")
    base = environ.get("CI_MERGE_REQUEST_DIFF_BASE_SHA") or environ.get("CI_COMMIT_BEFORE_SHA", "")
    return Pipeline(
        host="gitlab",
        api_url=environ.get("CI_API_V4_URL", "https://gitlab.com/api/v4").rstrip("/"),
        repository=project,
        branch=_name(branch),
        commit=_commit(environ.get("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA") or environ.get("CI_COMMIT_SHA", "")),
        base=_commit(base),
        pull=_number(environ.get("CI_MERGE_REQUEST_IID")),
        is_fork=bool(source) and source != project,
        actors=tuple(filter(None, (environ.get("GITLAB_USER_LOGIN", ""),))),
    )


def _event(path: str) -> Mapping[str, Any]:
    try:
        content = read_plain(Path(path), MOST_EVENT_BYTES, follow=True) if path else None
        event = json.loads(content or b"")
    except (OSError, ValueError, RecursionError) as fault:
        raise UsageError(
            f"the event at {path!r} cannot be read", remedy="GITHUB_EVENT_PATH names GitHub's own file"
        ) from fault
    if not isinstance(event, dict):
        raise UsageError(f"the event at {path!r} is no JSON object")
    return event


def _table(value: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = value.get(key)
    return found if isinstance(found, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _login(person: Mapping[str, Any]) -> str:
    """A name; of a program that is not called like one, with the ending that programs have there."""
    login = _text(person.get("login"))
    is_program = person.get("type") == "Bot" and not login.endswith("[bot]")
    return f"{login}[bot]" if is_program else login


def _number(value: object) -> int | None:
    text = str(value)
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 12 else None


def _name(branch: str) -> str:
    if len(branch) > MOST_NAME_CHARS or not branch.isprintable():
        raise UsageError("the branch has a name that no branch can have")
    return branch


def _commit(text: str) -> str:
    """A commit's hash; empty for the zeros that stand for none, and for what is none."""
    return text if COMMIT.fullmatch(text) and text.strip("0") else ""


def _slug(text: str, variable: str) -> str:
    if not SLUG.fullmatch(text):
        raise UsageError(f"{variable} is {text[:100]!r}, which is no repository's name")
    return text
