"""Conversations on a pull request, as a table of what happens and how it ends."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from interfaces.ci.failing_pipelines import (
    FAILING_PIPELINES,
    github_variables,
    make_repository,
    make_shop_files,
)
from interfaces.ci.fake_code_host import TOKEN, CodeHost
from suture.core.settings import Settings
from suture.errors import CodeHostError
from suture.interfaces.ci import (
    OfferedHeal,
    Refusal,
    check_open_heals,
    deliver_change,
    open_github,
    open_host,
    prepare_delivery,
    read_comment_command,
    read_pipeline,
    respond_to_command,
)
from suture.interfaces.ci.pipeline_delivery import PipelineDelivery
from suture.interfaces.ci.pipeline_heal import HealRequest, load_heal_task
from suture.judge.certificates.certificate import (
    Certificate,
    render_certificate,
    seal_certificate,
    sha256_hex,
    strip_task,
)
from suture.project.workspace import unified_diff

TEST = "python -m pytest -q"
RUN = "17000000001"
"""The id of the workflow run that healed."""


def make_settings(token: str | None = TOKEN, **ci: object) -> Settings:
    """Return settings that deliver a comment."""
    return Settings.model_validate({"ci": {"delivery": "comment", **ci}, "keys": {"ci": token}})


@dataclass
class Conversation:
    """A pull request on the fake code host, its checkout, and the certificate of its heal.

    Attributes:
        replies: How each step ended: the reply to a command, the refusal of a delivery, or the class of an error.
        is_genuine: Whether `suture verify` confirms the certificate.
        meanwhile: What happens while the certificate is verified.
    """

    host: CodeHost
    folder: Path
    fork: bool = False
    is_genuine: bool = True
    meanwhile: Callable[[Conversation], None] = lambda talk: None
    replies: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        pipeline = replace(FAILING_PIPELINES[0], fork=self.fork)
        self.shas = make_repository(pipeline, self.checkout)
        self.variables: Mapping[str, str] = {
            **github_variables(pipeline, self.shas, self.folder / "runner", self.host.url),
            "GITHUB_RUN_ID": RUN,
        }
        event = json.loads((self.folder / "runner" / "event.json").read_text())
        head = event["pull_request"]["head"]
        self.host.add_pull(head["sha"], head["ref"], head["repo"]["full_name"], base=self.shas[0])
        self.host.patches["shop.py"] = "@@ -0,0 +1,5 @@\n+..."
        self.certificate.write_text(render_certificate(self.make_certificate()))

    @property
    def checkout(self) -> Path:
        """The checkout of the pull request's head."""
        return self.folder / "checkout"

    @property
    def certificate(self) -> Path:
        """The file of the certificate."""
        return self.folder / "certificate.json"

    @property
    def request(self) -> HealRequest:
        """The project and its test command."""
        return HealRequest(root=self.checkout, test=TEST)

    def make_certificate(self, claims: float = 0.9) -> Certificate:
        """Return a certificate of the right change."""
        task = load_heal_task(self.request, Settings())
        before = task.files
        after = {**before, "shop.py": make_shop_files("+")["shop.py"].encode()}
        tests = ("test_shop.py::test_nothing", "test_shop.py::test_two", "test_shop.py::test_three")
        return seal_certificate(
            Certificate(
                task=strip_task(task),
                project={path: sha256_hex(content) for path, content in before.items()},
                project_hash="0" * 64,
                diff=unified_diff(before, after),
                result={"shop.py": sha256_hex(after["shop.py"])},
                evidence="nonce",
                after=dict.fromkeys(tests, "passed"),
                fixed=tests[1:],
                confidence=claims,
            )
        )

    def prepare(self) -> PipelineDelivery:
        """Check the gates of the delivery, in the job of the pull request."""
        return prepare_delivery(
            self.certificate, self.request, read_pipeline(self.variables), make_settings()
        )

    def deliver(self) -> None:
        """Deliver the heal as a comment."""
        pipeline, settings, prepared = read_pipeline(self.variables), make_settings(), self.prepare()
        refusal = prepared.refusal
        if refusal is None:
            host = open_host(pipeline, settings)
            refusal = check_open_heals(prepared, host, settings)
        if refusal is None:
            deliver_change(prepared, host, settings)
        self.replies.append(refusal.reason if refusal else "delivered")

    def command(self, text: str, login: str, *, check_only: bool = False) -> str:
        """Comment on the pull request, run the workflow of the comment, and return its reply."""
        number = self.host.add_comment(text, login)
        event = {
            "action": "created",
            "issue": {"number": 7, "pull_request": {"url": "..."}},
            "comment": {"id": number, "body": text, "user": {"login": login}},
        }
        path = self.folder / f"event-{number}.json"
        path.write_text(json.dumps(event))
        changes = {
            "GITHUB_EVENT_NAME": "issue_comment",
            "GITHUB_EVENT_PATH": str(path),
            "GITHUB_ACTOR": login,
        }
        variables = {**self.variables, **changes}
        command = read_comment_command(variables)
        if command is None:
            return "no_command"
        pipeline, settings = read_pipeline(variables), make_settings()
        false = Refusal(reason="not_verified", detail="diff: another result")

        def verify() -> Refusal | None:
            self.meanwhile(self)
            return None if self.is_genuine else false

        heal = OfferedHeal(
            prepare=lambda pull: prepare_delivery(self.certificate, self.request, pull, settings),
            verify=verify,
        )
        try:
            github = open_github(pipeline, settings)
            return respond_to_command(command, pipeline, github, None if check_only else heal).code
        except CodeHostError as error:
            return type(error).__name__ if error.remedy else "no remedy"

    def own_comments(self) -> list[str]:
        """Return the comments that Suture's token wrote."""
        return [
            comment["body"] for comment in self.host.comments.values() if comment["user"]["type"] == "Bot"
        ]


Step = Callable[[Conversation], None]


def deliver(talk: Conversation) -> None:
    """Heal the pull request and deliver the change."""
    talk.deliver()


def apply(talk: Conversation) -> None:
    """Ada, who may write, asks to apply the change."""
    talk.replies.append(talk.command("/suture apply", "ada"))


def reject(talk: Conversation) -> None:
    """Ada rejects the change."""
    talk.replies.append(talk.command("/suture reject\r\nNot like this.", "ada"))


def apply_by_stranger(talk: Conversation) -> None:
    """Somebody who may only read asks to apply the change."""
    talk.replies.append(talk.command("/suture apply", "eve"))


def apply_twice_at_once(talk: Conversation) -> None:
    """Two people ask at the same time; both workflows see the branch as it was."""
    talk.host.permissions["bob"] = "admin"
    barrier, replies = threading.Barrier(2), list[str]()
    genuine = talk.host.respond

    def wait_for_each_other(method: str, target: str, body: object) -> object:
        if method == "PATCH" and "/git/refs/" in target:
            barrier.wait(timeout=60)  # both have checked the branch and made a commit
        return genuine(method, target, body)

    talk.host.respond = wait_for_each_other  # type: ignore[method-assign,assignment] # it delays the service
    threads = [
        threading.Thread(target=lambda login=login: replies.append(talk.command("/suture apply", login)))
        for login in ("ada", "bob")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    talk.replies += sorted(replies, reverse=True)


def push(talk: Conversation) -> None:
    """Somebody pushes to the branch."""
    head = talk.host.pull["head"]
    talk.host.commits["b" * 40] = {"message": "Go on", "parents": [{"sha": head["sha"]}]}
    talk.host.refs[f"refs/heads/{head['ref']}"] = head["sha"] = "b" * 40


def set_back(talk: Conversation) -> None:
    """Somebody sets the branch back to the healed commit."""
    head = talk.host.pull["head"]
    talk.host.refs[f"refs/heads/{head['ref']}"] = head["sha"] = talk.shas[1]


def limit_briefly(talk: Conversation) -> None:
    """The service refuses the next two requests for a moment."""
    talk.host.refusals += [
        (429, {"Retry-After": "0"}),
        (403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1"}),
    ]


def limit_for_long(talk: Conversation) -> None:
    """The service asks to wait for an hour."""
    talk.host.refusals.append((403, {"Retry-After": "3600"}))


@dataclass(frozen=True, kw_only=True)
class ExpectedEnd:
    """A conversation and its expected end.

    Attributes:
        replies: How each step ends.
        comments: The number of Suture's comments.
        state: The state in the comment's hidden line; empty without a comment.
        commits: The commits that Suture made on the branch.
        reactions: The reactions to the commands.
        status: A part of the comment's second line.
    """

    name: str
    steps: tuple[Step, ...]
    replies: tuple[str, ...]
    comments: int = 1
    state: str = "open"
    commits: int = 0
    reactions: tuple[str, ...] = ()
    status: str = ""
    fork: bool = False


CONVERSATIONS = (
    ExpectedEnd(name="comment", steps=(deliver,), replies=("delivered",)),
    ExpectedEnd(
        name="apply",
        steps=(deliver, apply),
        replies=("delivered", "applied"),
        state="applied",
        commits=1,
        reactions=("+1",),
        status="> Applied as `",
    ),
    ExpectedEnd(
        name="reject",
        steps=(deliver, reject, apply, deliver),
        replies=("delivered", "rejected", "already_rejected", "rejected"),
        state="rejected",
        reactions=("+1", "-1"),
        status="> Rejected (`/suture reject` by `ada`).",
    ),
    ExpectedEnd(name="re-run", steps=(deliver, deliver), replies=("delivered", "delivered")),
    ExpectedEnd(
        name="fork",
        steps=(deliver, apply),
        replies=("fork_with_secrets", "fork"),
        comments=0,
        state="",
        reactions=("-1",),
        fork=True,
    ),
    ExpectedEnd(
        name="stale head",
        steps=(deliver, push, apply),
        replies=("delivered", "stale"),
        reactions=("-1",),
        status="> The branch has moved since, to `bbbbbbbbbbbb`",
    ),
    ExpectedEnd(
        name="race",
        steps=(deliver, apply_twice_at_once),
        replies=("delivered", "applied", "already_applied"),
        state="applied",
        commits=1,
        reactions=("+1", "+1"),
        status="as `",
    ),
    ExpectedEnd(
        name="no permission",
        steps=(deliver, apply_by_stranger),
        replies=("delivered", "no_permission"),
        reactions=("-1",),
    ),
    ExpectedEnd(
        name="already applied",
        steps=(deliver, apply, apply),
        replies=("delivered", "applied", "already_applied"),
        state="applied",
        commits=1,
        reactions=("+1", "+1"),
        status="> Applied as `",
    ),
    ExpectedEnd(
        name="reject after apply",
        steps=(deliver, apply, reject, push, apply),
        replies=("delivered", "applied", "already_applied", "applied_earlier"),
        state="applied",
        commits=1,
        reactions=("+1", "-1", "+1"),
        status="> Applied as `",
    ),
    ExpectedEnd(
        name="apply again after the branch was set back",
        steps=(deliver, apply, set_back, apply),
        replies=("delivered", "applied", "applied"),
        state="applied",
        commits=1,
        reactions=("+1", "+1"),
        status="> Applied as `",
    ),
    ExpectedEnd(
        name="reject twice",
        steps=(deliver, reject, reject),
        replies=("delivered", "rejected", "already_rejected"),
        state="rejected",
        reactions=("+1", "+1"),
        status="> Rejected",
    ),
    ExpectedEnd(
        name="rate limit",
        steps=(deliver, limit_for_long, apply, limit_briefly, apply),
        replies=("delivered", "CodeHostError", "applied"),
        state="applied",
        commits=1,
        reactions=("+1",),
        status="> Applied as `",
    ),
)
