"""Comments, commands and issues against a fake code host that keeps their state."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from interfaces.ci.conversations import (
    CONVERSATIONS,
    RUN,
    Conversation,
    ExpectedEnd,
    apply,
    make_settings,
    push,
    reject,
)
from interfaces.ci.failing_pipelines import git
from interfaces.ci.fake_code_host import TOKEN, CodeHost, run_code_host
from suture.errors import CodeHostError, PrerequisiteError, UsageError
from suture.interfaces.ci import (
    GitHub,
    HealReport,
    Pipeline,
    check_open_heals,
    deliver_change,
    open_github,
    open_host,
    prepare_delivery,
    read_comment_command,
    read_pipeline,
    read_remote,
    read_report,
    update_branch_issue,
)
from suture.interfaces.ci.github import select_suggestions
from suture.interfaces.ci.gitlab import GitLab
from suture.interfaces.ci.heal_comment import HealMark, parse_mark, render_heal_comment, set_comment_status
from suture.interfaces.ci.heal_report import write_report_folder
from suture.interfaces.ci.line_edits import LineEdit
from suture.interfaces.ci.markdown_summary import render_comment
from suture.interfaces.cli.app import app
from suture.judge.certificates.certificate import render_certificate

Begin = Callable[..., Conversation]


@pytest.fixture
def host() -> Iterator[CodeHost]:
    """Run a fake code host."""
    with run_code_host() as code_host:
        yield code_host


@pytest.fixture
def begin(host: CodeHost, tmp_path: Path) -> Begin:
    """Return a function that opens a pull request with a failing test."""
    return lambda **options: Conversation(host=host, folder=tmp_path, **options)


@pytest.mark.parametrize("expected", CONVERSATIONS, ids=lambda item: item.name)
def test_a_conversation_ends_as_the_table_says(expected: ExpectedEnd, begin: Begin) -> None:
    talk = begin(fork=expected.fork)

    for step in expected.steps:
        step(talk)

    comments, head = talk.own_comments(), talk.host.pull["head"]["sha"]
    marks = [parse_mark(comment) for comment in comments]
    assert tuple(talk.replies) == expected.replies
    assert [mark.state if mark else None for mark in marks] == [expected.state] * expected.comments
    assert all(expected.status in comment.split("\n")[1] for comment in comments)
    assert tuple(reaction for _, reaction in talk.host.reactions) == expected.reactions
    made = [message for message in _messages_up_to(talk, head) if "Healed-by: suture" in message]
    assert len(made) == expected.commits
    assert TOKEN not in json.dumps(talk.host.calls)


def _messages_up_to(talk: Conversation, commit: str) -> list[str]:
    """Return the messages of the commits after the healed one, the newest first."""
    messages = []
    while commit in talk.host.commits:
        messages.append(talk.host.commits[commit]["message"])
        commit = talk.host.commits[commit]["parents"][0]["sha"]
    return messages


def test_the_comment_shows_verdict_evidence_and_diff(begin: Begin) -> None:
    talk = begin()

    talk.deliver()

    (comment,) = talk.own_comments()
    assert comment.startswith(f"<!-- suture-heal {talk.shas[1]} open ")
    assert "**3 of 3 tests pass, 2 of them failed before.**" in comment
    assert "confidence 0.90, evidence nonce" in comment
    assert "```diff\n" in comment
    assert "+        goods += price\n" in comment
    assert "`/suture apply`" in comment
    mark = parse_mark(comment)
    assert mark is not None
    assert mark.workflow_run == RUN


def test_the_comment_on_a_red_linter_counts_checks(begin: Begin) -> None:
    certificate = begin().make_certificate()
    linted = replace(certificate, task=replace(certificate.task, tools=(("ruff", "check", "."),)))

    text = render_comment(linted, "c" * 40, linted.task.full_command, ())

    assert text.startswith("**3 of 3 checks pass, 2 of them failed before.**")


def test_lines_of_the_pull_request_get_suggestions_once(begin: Begin) -> None:
    talk = begin()

    talk.deliver()
    talk.deliver()

    (suggestion,) = talk.host.body("pulls/7/reviews")["comments"]
    assert suggestion["body"] == "```suggestion\n        goods += price\n```\n"
    assert (suggestion["path"], suggestion["line"]) == ("shop.py", 4)
    assert len(talk.host.reviews) == 1


def test_lines_outside_of_the_pull_request_get_no_suggestions(begin: Begin) -> None:
    talk = begin()
    talk.host.patches["shop.py"] = "@@ -1,2 +1,3 @@\n"

    talk.deliver()

    assert talk.host.reviews == []
    assert len(talk.own_comments()) == 1


def test_an_edit_is_suggested_if_one_hunk_holds_it() -> None:
    edits = [
        LineEdit(path="a.py", start=start, end=end, old=("x",), new=("y",))
        for start, end in ((3, 3), (3, 9), (9, 10), (12, 12))
    ]
    files = [
        {"filename": "a.py", "patch": "@@ -1,3 +2,3 @@ def f():\n a\n@@ -8 +9,2 @@\n"},
        {"filename": "b.bin"},
    ]

    selected = select_suggestions(edits, files)

    assert [(edit.start, edit.end) for edit in selected] == [(3, 3), (9, 10)]


def test_an_applied_change_is_a_commit_on_the_healed_one(begin: Begin) -> None:
    talk = begin()
    talk.deliver()

    apply(talk)

    commit = talk.host.pull["head"]["sha"]
    made = talk.host.commits[commit]
    assert made["parents"] == [{"sha": talk.shas[1]}]
    assert "Requested by ada." in made["message"]
    assert talk.host.body("check-runs")["head_sha"] == commit
    assert talk.host.body("check-runs")["conclusion"] == "success"


def test_a_token_without_checks_still_applies(begin: Begin) -> None:
    talk = begin()
    talk.host.token_may_check = False
    talk.deliver()

    apply(talk)

    assert talk.replies == ["delivered", "applied"]
    assert talk.host.checks == []


def test_an_apply_without_a_checkout_changes_nothing(begin: Begin) -> None:
    talk = begin()
    talk.deliver()
    before = len(talk.host.posts())

    assert talk.command("/suture apply", "ada", check_only=True) == "ready"

    assert len(talk.host.posts()) == before


def test_a_false_certificate_is_not_applied(begin: Begin) -> None:
    talk = begin(is_genuine=False)
    talk.deliver()

    apply(talk)

    assert talk.replies == ["delivered", "refused"]
    assert talk.host.pull["head"]["sha"] == talk.shas[1]
    assert "`suture verify` rejects the certificate" in talk.own_comments()[0].split("\n")[1]


def test_another_certificate_than_the_offered_one_is_not_applied(begin: Begin) -> None:
    talk = begin()
    talk.deliver()
    talk.certificate.write_text(render_certificate(talk.make_certificate(claims=0.95)))

    apply(talk)

    assert talk.replies == ["delivered", "refused"]
    assert talk.host.pull["head"]["sha"] == talk.shas[1]


def test_a_protected_branch_refuses_the_commit(begin: Begin) -> None:
    talk = begin()
    talk.deliver()
    talk.host.refs.clear()

    apply(talk)

    assert talk.replies == ["delivered", "refused"]
    assert "is it protected" in talk.own_comments()[0]


@pytest.mark.parametrize(("meanwhile", "code"), [(push, "stale"), (reject, "already_rejected")])
def test_what_happens_while_the_certificate_is_verified_counts(
    meanwhile: Callable[[Conversation], None], code: str, begin: Begin
) -> None:
    talk = begin(meanwhile=meanwhile)
    talk.deliver()

    apply(talk)

    assert talk.replies[-1] == code
    assert "git/commits" not in talk.host.posts()


@pytest.mark.parametrize("status", [403, 404, 422])
@pytest.mark.parametrize("refused", ["check-runs", "reactions", "comments/1"])
def test_what_is_refused_after_the_commit_does_not_fail_the_command(
    refused: str, status: int, begin: Begin
) -> None:
    talk = begin()
    talk.deliver()
    genuine, refusals = talk.host.respond, list[str]()

    def refuse(method: str, target: str, body: object) -> object:
        if method != "GET" and target.endswith(refused):
            refusals.append(target)
            return status, {}, {"message": "no"}
        return genuine(method, target, body)

    talk.host.respond = refuse  # type: ignore[method-assign,assignment] # it refuses one kind of request

    apply(talk)

    assert talk.replies == ["delivered", "applied"]
    assert len(refusals) == 1


def test_a_note_of_somebody_else_is_neither_counted_nor_updated(begin: Begin) -> None:
    talk = begin()
    change = talk.prepare().change
    assert change is not None
    mark = HealMark(commit="f" * 40, seal="0" * 16)
    talk.host.add_comment(render_heal_comment(mark, "A good change."), "eve")
    pipeline = Pipeline(host="gitlab", api_url=talk.host.url, repository="42", branch="work", pull=7)
    gitlab = GitLab(pipeline, make_settings().keys.ci)

    assert gitlab.open_heals().commented == ()
    assert gitlab.comment(change) == gitlab.comment(change) == "2"
    assert gitlab.open_heals().commented == (change.parent,)
    assert "A good change." in talk.host.comments[1]["body"]


def test_a_comment_of_a_stranger_offers_nothing(begin: Begin) -> None:
    talk = begin()
    mark = HealMark(commit=talk.shas[1], seal=talk.make_certificate().seal[:16], workflow_run="666")
    talk.host.add_comment(render_heal_comment(mark, "A good change."), "eve")

    apply(talk)

    assert talk.replies == ["no_heal"]
    assert talk.host.pull["head"]["sha"] == talk.shas[1]


def test_the_owner_of_a_personal_token_offers_a_heal(begin: Begin) -> None:
    talk = begin()
    mark = HealMark(commit=talk.shas[1], seal=talk.make_certificate().seal[:16])
    talk.host.add_comment(render_heal_comment(mark, "A good change."), "ada")

    apply(talk)

    assert talk.replies == ["applied"]


@pytest.mark.parametrize(
    ("text", "action", "is_command"),
    [
        ("/suture apply", "created", True),
        ("/suture apply \r\nThank you.", "created", True),
        ("/suture reject\n", "created", True),
        ("/suture apply now", "created", False),
        ("> /suture apply", "created", False),
        ("Please\n/suture apply", "created", False),
        ("/suture apply", "edited", False),
    ],
)
def test_a_command_is_the_first_line_of_a_new_comment(
    text: str, action: str, is_command: bool, tmp_path: Path
) -> None:
    event = {
        "action": action,
        "issue": {"number": 7, "pull_request": {}, "title": ""},
        "comment": {"id": 1, "body": text, "user": {"login": "ada"}},
    }
    event["issue"]["pull_request"] = {"url": "..."}  # type: ignore[index] # it is an object
    path = tmp_path / "event.json"
    path.write_text(json.dumps(event))

    assert (read_comment_command({"GITHUB_EVENT_PATH": str(path)}) is not None) == is_command


def test_a_comment_on_an_issue_is_no_command(tmp_path: Path) -> None:
    path = tmp_path / "event.json"
    comment = {"id": 1, "body": "/suture apply", "user": {"login": "ada"}}
    path.write_text(json.dumps({"action": "created", "issue": {"number": 7}, "comment": comment}))

    assert read_comment_command({"GITHUB_EVENT_PATH": str(path)}) is None


def test_a_status_replaces_the_earlier_one() -> None:
    mark = HealMark(commit="a" * 40, seal="0" * 16)
    comment = render_heal_comment(mark, "**All pass.**\n\n> quoted")

    once = set_comment_status(comment.replace("\n", "\r\n"), replace(mark, state="rejected"), "Rejected.")
    twice = set_comment_status(once, replace(mark, state="applied"), "Applied.")

    assert twice.split("\n")[1:] == ["> Applied.", "", "**All pass.**", "", "> quoted"]
    assert parse_mark(twice) == replace(mark, state="applied")


def test_a_dry_run_shows_each_request_and_sends_none(begin: Begin) -> None:
    talk, shown = begin(fork=True), list[str]()
    settings = make_settings(token=None)
    pipeline = read_pipeline(talk.variables)
    prepared = prepare_delivery(talk.certificate, talk.request, pipeline, settings)
    code_host = open_host(pipeline, settings, shown.append)

    assert check_open_heals(prepared, code_host, settings) is None
    deliver_change(prepared, code_host, settings)

    assert talk.host.calls == []
    assert any(re.match(r"POST /repos/ada/shop/issues/7/comments \{.*suture-heal", text) for text in shown)
    with pytest.raises(PrerequisiteError, match="no token"):
        open_host(pipeline, settings)


def test_a_dry_run_with_a_token_reads_only(begin: Begin) -> None:
    talk, shown = begin(), list[str]()
    settings = make_settings(delivery="pull_request")
    code_host = open_host(read_pipeline(talk.variables), settings, shown.append)

    deliver_change(talk.prepare(), code_host, settings)

    assert talk.host.posts() == []
    assert [text.split()[1].removeprefix("/repos/ada/shop") for text in shown] == [
        "/git/blobs",
        "/git/trees",
        "/git/commits",
        "/git/refs",
        "/pulls",
    ]


def test_a_fork_that_pull_request_target_builds_is_refused(begin: Begin) -> None:
    talk = begin(fork=True)
    pipeline = replace(read_pipeline(talk.variables), is_privileged=True)

    prepared = prepare_delivery(talk.certificate, talk.request, pipeline, make_settings(token=None))

    assert prepared.refusal is not None
    assert prepared.refusal.reason == "fork_with_secrets"
    variables = {**talk.variables, "GITHUB_EVENT_NAME": "pull_request_target"}
    assert read_pipeline(variables).is_privileged


def test_errors_of_the_service_are_retried_where_that_is_safe(host: CodeHost) -> None:
    github = GitHub(Pipeline(host="github", api_url=host.url, repository="ada/shop"), make_settings().keys.ci)
    host.refusals += [(429, {"Retry-After": "0"})] * 3

    with pytest.raises(CodeHostError, match="3 times") as error:
        github.may_write("ada")
    assert "run the job again" in error.value.remedy

    host.refusals.append((502, {}))
    with pytest.raises(CodeHostError, match="502"):
        github.rest.post("/issues", title="It may have been created")
    assert host.posts() == ["issues"]


def test_a_checkout_from_github_has_a_pull_request_without_ci(begin: Begin) -> None:
    talk = begin()
    git(talk.checkout, "remote", "add", "origin", "git@github.com:ada/shop.git")

    pipeline = read_remote(talk.checkout, {"GITHUB_API_URL": talk.host.url})
    settings = make_settings(delivery="pull_request")
    prepared = prepare_delivery(talk.certificate, talk.request, pipeline, settings)
    delivery = deliver_change(prepared, open_host(pipeline, settings), settings)

    assert delivery.address == f"{talk.host.url}/pulls/1"
    assert talk.host.body("pulls")["base"] == "work"


@pytest.mark.parametrize("url", ["https://evil.example/ada/shop", "https://github.com.evil.example/a/b", ""])
def test_a_token_goes_to_no_address_that_a_checkout_names(url: str, begin: Begin) -> None:
    talk = begin()
    if url:
        git(talk.checkout, "remote", "add", "origin", url)

    with pytest.raises(UsageError, match=r"github\.com"):
        read_remote(talk.checkout, {})


RED = HealReport(
    outcome="not_healed",
    commit="c" * 40,
    branch="main",
    failing=("test_shop.py::test_two", "`@everyone`"),
    evidence="nonce",
)
GREEN = HealReport(outcome="nothing_to_heal", commit="d" * 40, branch="main")
REFUSED = HealReport(outcome="refused", reason="bot_commit", commit="e" * 40, branch="main")


def test_an_issue_follows_the_colour_of_the_default_branch(host: CodeHost) -> None:
    pipeline = Pipeline(host="github", api_url=host.url, repository="ada/shop", branch="main")
    github = open_github(pipeline, make_settings())

    changes = [
        update_branch_issue(report, pipeline, github)[0] for report in (GREEN, RED, RED, REFUSED, GREEN)
    ]

    assert changes == ["unchanged", "opened", "updated", "unchanged", "closed"]
    (issue,) = host.issues.values()
    assert (issue["title"], issue["state"]) == ("main is red: 2 tests fail", "closed")
    assert "`test_shop.py::test_two`" in issue["body"]
    assert "`` `@everyone` ``" in issue["body"]
    assert "pass again, at `dddddddddddd`" in next(iter(host.comments.values()))["body"]


def test_an_issue_is_read_from_the_report_of_another_job(tmp_path: Path) -> None:
    write_report_folder(RED, {}, tmp_path / "heal", checkout=tmp_path)

    report = read_report(tmp_path / "heal" / "report.json")

    assert report == RED


def test_the_command_shows_an_issue_in_a_dry_run_and_then_opens_it(
    host: CodeHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_report_folder(RED, {}, tmp_path / "heal", checkout=tmp_path)
    (tmp_path / "event.json").write_text('{"schedule": "17 5 * * *"}')
    monkeypatch.chdir(tmp_path)
    variables = {
        "GITHUB_ACTIONS": "true",
        "GITHUB_EVENT_PATH": str(tmp_path / "event.json"),
        "GITHUB_EVENT_NAME": "schedule",
        "GITHUB_REPOSITORY": "ada/shop",
        "GITHUB_REF_TYPE": "branch",
        "GITHUB_REF_NAME": "main",
        "GITHUB_API_URL": host.url,
        "SUTURE_KEYS_CI": TOKEN,
        "HOME": str(tmp_path),
    }

    shown = CliRunner().invoke(app, ["ci", "issue", "heal", "--dry-run"], env=variables)
    assert shown.exit_code == 0, shown.output
    assert 'would send POST /repos/ada/shop/issues {"title": "main is red: 2 tests fail"' in shown.output
    assert host.posts() == []

    opened = CliRunner().invoke(app, ["ci", "issue", "heal", "--json"], env=variables)
    assert json.loads(opened.stdout)["issue"] == "opened"
    assert host.posts() == ["issues"]


@pytest.mark.parametrize(
    "damage",
    ["", "[]", '{"outcome": 1}', '{"outcome": "[x](y)"}', '{"outcome": "healed", "commit": "@all"}'],
)
def test_a_damaged_report_opens_no_issue(damage: str, tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text(damage)
    with pytest.raises(UsageError):
        read_report(tmp_path / "report.json")


def test_a_pull_request_has_no_issue(host: CodeHost) -> None:
    pipeline = Pipeline(host="github", api_url=host.url, repository="ada/shop", branch="x", pull=7)
    with pytest.raises(UsageError, match="only a branch"):
        update_branch_issue(RED, pipeline, open_github(pipeline, make_settings()))
