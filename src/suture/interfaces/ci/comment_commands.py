"""Carry out `/suture apply` and `/suture reject`, which a person comments on a pull request.

GitHub starts a workflow for each comment, also for those of strangers and on pull requests from forks, and gives it
a token that may write. So nothing is done before the author's permission and the pull request are checked, and no
code of the pull request is needed for that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal

from suture.errors import CodeHostError, PrerequisiteError
from suture.interfaces.ci.ci_checkout import HEAL_TRAILER
from suture.interfaces.ci.ci_pipeline import (
    Pipeline,
    get_object,
    get_text,
    parse_number,
    read_event,
    select_pull,
)
from suture.interfaces.ci.delivery_gates import REFUSAL_TEXTS, Refusal
from suture.interfaces.ci.github import (
    HTTP_FORBIDDEN,
    HTTP_NOT_FOUND,
    HTTP_UNPROCESSABLE,
    LOGIN,
    GitHub,
    PostedHeal,
)
from suture.interfaces.ci.heal_comment import HealMark
from suture.interfaces.ci.markdown_summary import code_span
from suture.interfaces.ci.pipeline_delivery import PipelineDelivery

CommandName = Literal["apply", "reject"]
COMMAND = re.compile(r"/suture (apply|reject)\s*(?:\n|$)")
"""A command: the whole first line of a comment."""
ReplyCode = Literal[
    "ready",
    "applied",
    "rejected",
    "no_permission",
    "closed",
    "fork",
    "no_heal",
    "already_applied",
    "applied_earlier",
    "already_rejected",
    "stale",
    "refused",
]
"""How a command ended. `ready`: the change may be applied, and its certificate must be verified for that."""
REPLY_TEXTS: Mapping[ReplyCode, str] = {
    "ready": "the change can be applied to {commit}",
    "applied": "applied as {commit}",
    "rejected": "rejected",
    "no_permission": "only people who may write to the repository can do this",
    "closed": "the pull request is not open",
    "fork": "the branch is in another repository, to which Suture never writes; apply the diff there",
    "no_heal": "no comment of Suture on this pull request offers a change",
    "already_applied": "the change has been applied already, as {commit}",
    "applied_earlier": "the change has been applied already; the branch has moved since, to {commit}",
    "already_rejected": "the change has been rejected; push a commit to get a new one",
    "stale": "the branch has moved since, to {commit}, so the change was verified on other code; it stays as it is",
    "refused": "not applied: {detail}",
}
"""What each reply means; `{commit}` and `{detail}` are quoted."""
HOST_ERRORS = (PrerequisiteError, CodeHostError)
"""Errors of a request. After the commit they are ignored: the change is applied, whatever GitHub refuses then."""
SUCCESSES: Mapping[CommandName, frozenset[ReplyCode]] = {
    "apply": frozenset(("ready", "applied", "already_applied", "applied_earlier")),
    "reject": frozenset(("rejected", "already_rejected")),
}
"""The replies that say that the change is now applied, or rejected, as requested."""


@dataclass(frozen=True, kw_only=True)
class CommentCommand:
    """A command in a new comment on a pull request.

    Attributes:
        pull: The number of the pull request.
        comment: The id of the comment.
        author: The login of its author.
    """

    name: CommandName
    pull: int
    comment: int
    author: str

    def is_fulfilled_by(self, reply: CommandReply) -> bool:
        """Return whether the change is now applied, or rejected, as requested."""
        return reply.code in SUCCESSES[self.name]


@dataclass(frozen=True, kw_only=True)
class CommandReply:
    """How a command ended.

    Attributes:
        commit: The commit that the code is about, if there is one.
        detail: Why the command was refused; it can contain untrusted text.
        posted: Suture's comment, if it was found.
        pipeline: The pull request, if it was read.
    """

    code: ReplyCode
    commit: str = ""
    detail: str = ""
    posted: PostedHeal | None = None
    pipeline: Pipeline | None = None


@dataclass(frozen=True, kw_only=True)
class OfferedHeal:
    """How to get and to verify the change that a comment offers, in a checkout of the pull request.

    Attributes:
        prepare: Reads the certificate and checks the gates for a pull request; runs nothing.
        verify: Verifies the certificate again; returns the refusal if it is false.
    """

    prepare: Callable[[Pipeline], PipelineDelivery]
    verify: Callable[[], Refusal | None]


def respond_to_command(
    command: CommentCommand, pipeline: Pipeline, github: GitHub, heal: OfferedHeal | None
) -> CommandReply:
    """Carry out a command, and say on the pull request how it ended.

    Args:
        pipeline: What GitHub says of the workflow, which runs for the default branch.
        heal: The change; `None` as long as nothing of the pull request may be checked out. An apply that is
            `ready` is carried out, and answered, only with it.

    Raises:
        UsageError: The checkout does not match.
        PrerequisiteError: The token lacks permission.
        CodeHostError: The service refuses.
    """
    reply = check_command(command, pipeline, github)
    if reply.code == "ready":
        if heal is None:
            return reply
        reply = _apply_heal(command, reply, heal, github)
    try:
        _send_reply(command, reply, github)
    except HOST_ERRORS:
        if reply.code != "applied":
            raise
    return reply


def read_comment_command(environ: Mapping[str, str]) -> CommentCommand | None:
    """Return the command of the comment that started this workflow; `None` for any other comment.

    Raises:
        UsageError: The event file cannot be read.
    """
    event = read_event(environ)
    issue, comment = get_object(event, "issue"), get_object(event, "comment")
    match = COMMAND.match(get_text(comment.get("body")).replace("\r\n", "\n"))
    pull, number = parse_number(issue.get("number")), comment.get("id")
    author = get_text(get_object(comment, "user").get("login"))
    # Others can edit a comment, so only a new one speaks for its author.
    is_new = event.get("action") == "created" and bool(get_object(issue, "pull_request"))
    if (
        match is None
        or not is_new
        or pull is None
        or not isinstance(number, int)
        or not LOGIN.fullmatch(author)
    ):
        return None
    name: CommandName = "apply" if match[1] == "apply" else "reject"
    return CommentCommand(name=name, pull=pull, comment=number, author=author)


def check_command(command: CommentCommand, pipeline: Pipeline, github: GitHub) -> CommandReply:
    """Check everything that needs no code of the pull request, and return the reply.

    It is `ready` if the change may be applied, and `rejected` if it may be rejected.
    """
    if not github.may_write(command.author):
        return CommandReply(code="no_permission")
    pull = github.rest.get(f"/pulls/{command.pull}")
    pipeline = select_pull(replace(pipeline, pull=command.pull), pull)
    if pull.get("state") != "open":
        return CommandReply(code="closed")
    if pipeline.is_fork:
        return CommandReply(code="fork")
    posted = github.find_posted_heal(command.pull)
    if posted is None:
        return CommandReply(code="no_heal")
    reply = CommandReply(code="ready", commit=posted.mark.commit, posted=posted, pipeline=pipeline)
    if posted.mark.state == "rejected":
        return replace(reply, code="already_rejected")
    # If an applied change has been taken back by a push of the healed commit, it can be applied again.
    if pipeline.commit != posted.mark.commit:
        if _is_heal_of(pipeline.commit, posted.mark, github):
            return replace(reply, code="already_applied", commit=pipeline.commit)
        if posted.mark.state == "applied":
            return replace(reply, code="applied_earlier", commit=pipeline.commit)
        if command.name == "apply":
            return replace(reply, code="stale", commit=pipeline.commit)
    return reply if command.name == "apply" else replace(reply, code="rejected")


def _apply_heal(
    command: CommentCommand, ready: CommandReply, heal: OfferedHeal, github: GitHub
) -> CommandReply:
    """Check the gates and the certificate of the offered change, and commit it to the branch."""
    pipeline, posted = ready.pipeline, ready.posted
    if pipeline is None or posted is None:
        raise ValueError("only a heal that is ready can be applied")
    prepared = heal.prepare(pipeline)
    refusal, change = prepared.refusal, prepared.change
    if change is not None and change.seal[:16] != posted.mark.seal:
        refusal = Refusal(reason="not_verified", detail="it is not the one that the comment offers")
    refusal = refusal or heal.verify()
    if refusal is not None or change is None:
        detail = f"{REFUSAL_TEXTS[refusal.reason]} ({refusal.detail})" if refusal else ""
        return replace(ready, code="refused", detail=detail)
    # The branch may have moved, or the heal may have been rejected, while the certificate was verified. GitHub
    # would take the commit on a branch that somebody has set back.
    reply = check_command(command, pipeline, github)
    if reply.code != "ready":
        return reply
    commit = github.commit_to_branch(change, pipeline.branch, command.author)
    if commit:
        with suppress(*HOST_ERRORS):
            github.report_check(commit, change)
        return replace(ready, code="applied", commit=commit)
    reply = check_command(command, pipeline, github)
    if reply.code != "ready":  # another command or a push was faster
        return reply
    return replace(reply, code="refused", detail="GitHub lets nobody move this branch so: is it protected?")


def _send_reply(command: CommentCommand, reply: CommandReply, github: GitHub) -> None:
    """Write the reply into Suture's comment, and react to the person's comment.

    A stranger only gets the reaction: no comment of strangers changes anything.
    """
    if reply.posted is not None:
        mark = reply.posted.mark
        if reply.code in ("applied", "already_applied"):
            mark = replace(mark, state="applied")
        elif reply.code == "rejected":
            mark = replace(mark, state="rejected")
        if mark != reply.posted.mark or reply.code in ("applied", "stale", "refused"):
            text = render_reply(reply)
            request = f"{code_span('/suture ' + command.name)} by {code_span(command.author)}"
            github.update_status(reply.posted, mark, f"{text[0].upper()}{text[1:]} ({request}).")
    content = "+1" if command.is_fulfilled_by(reply) else "-1"
    # A token may lack the permission, and the person may have deleted the comment or blocked the program.
    refusals = (HTTP_FORBIDDEN, HTTP_NOT_FOUND, HTTP_UNPROCESSABLE)
    github.rest.call(
        "POST", f"/issues/comments/{command.comment}/reactions", {"content": content}, ok=refusals
    )


def render_reply(reply: CommandReply) -> str:
    """Return a reply as Markdown, in one line."""
    return REPLY_TEXTS[reply.code].format(
        commit=code_span(reply.commit[:12]), detail=code_span(reply.detail, max_chars=500)
    )


def _is_heal_of(commit: str, mark: HealMark, github: GitHub) -> bool:
    """Return whether a commit is the heal of a mark, by its message and its parent."""
    made = github.rest.get(f"/git/commits/{commit}")
    message, parents = get_text(made.get("message")), made.get("parents")
    parent = parents[0] if isinstance(parents, list) and parents and isinstance(parents[0], dict) else {}
    return (
        bool(HEAL_TRAILER.search(message))
        and f"(certificate {mark.seal[:12]}" in message
        and parent.get("sha") == mark.commit
    )
