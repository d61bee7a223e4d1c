"""Opening a pull request with the change of a run, against a local server with GitHub's REST interface."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from interfaces.ci.conversations import Conversation
from interfaces.ci.failing_pipelines import ADA, commit, git, make_shop_files
from interfaces.ci.fake_code_host import TOKEN, CodeHost, run_code_host
from interfaces.web.real_browser import PATIENCE_MS, BrowserPage
from interfaces.web.real_server import Server
from interfaces.web.uploaded_projects import write_project
from suture.core.ledger import Ledger, RunFolder, new_run_id, read_ledger
from suture.core.ledger.kinds import RunFinished, RunStarted
from suture.core.records import Reason, Result
from suture.core.settings import Settings
from suture.core.settings.setting_changes import encode_settings
from suture.errors import CodeHostError, PrerequisiteError, UsageError
from suture.interfaces.ci.pipeline_heal import load_heal_task
from suture.interfaces.narrative.certificate_rendering import delivery_lines
from suture.interfaces.web.problem_details import RequestRefused
from suture.interfaces.web.pull_requests import describe_pull_request, prepare_pull_request
from suture.judge.certificates.certificate import render_certificate
from suture.loop.state import SCHEMA_VERSION


@dataclass(frozen=True, kw_only=True)
class HealedShop:
    """A checkout from GitHub whose code has a bug, and a run of this machine that has repaired it.

    Attributes:
        talk: The repository, its pull request on the local server, and the certificate of the repair.
        folder: The folder of the run.
    """

    talk: Conversation
    folder: RunFolder

    @property
    def home(self) -> Path:
        return self.folder.path.parent.parent

    def settings(self, token: str | None = TOKEN, **ci: object) -> Settings:
        """Return the settings of a server."""
        return Settings.model_validate({"paths": {"home": str(self.home)}, "keys": {"ci": token}, "ci": ci})

    def state(self, token: str | None = TOKEN) -> str | None:
        """Return whether a pull request can be opened."""
        described = describe_pull_request(self.folder, self.talk.checkout, self.settings(token))
        return described.state if described else None

    def open(self, **ci: object) -> None:
        """Open a pull request, as the route does after the verification."""
        prepared = prepare_pull_request(self.folder.id, self.settings(TOKEN, **ci))
        if prepared is not None:
            prepared.open()

    def addresses(self) -> list[str]:
        """Return the addresses of the pull requests that the run records."""
        events = read_ledger(self.folder.ledger_path).events
        return [event.data["address"] for event in events if event.kind == "pull_request.opened"]


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HealedShop]:
    """Record a run that has repaired the shop."""
    with run_code_host() as host:
        monkeypatch.setenv("GITHUB_API_URL", host.url)
        talk = Conversation(host=host, folder=tmp_path)
        git(talk.checkout, "remote", "add", "origin", "git@github.com:ada/shop.git")
        yield HealedShop(talk=talk, folder=record_repair(talk, tmp_path / "home"))


def record_repair(talk: Conversation, home: Path, claims: float = 0.9, **more_files: bytes) -> RunFolder:
    """Record a run that has repaired the shop, whose project has some more files; return its folder."""
    run = RunFolder(home / "runs" / new_run_id())
    run.path.mkdir(parents=True)
    task, certificate = load_heal_task(talk.request, Settings()), talk.make_certificate(claims)
    task = replace(task, files={**task.files, **more_files})
    run.write_text("certificate.json", render_certificate(certificate))
    result = Result(run_id=run.id, outcome="healed", reason=Reason(code="checks_pass"), diff=certificate.diff)
    settings = Settings.model_validate({"paths": {"home": str(home)}})
    with Ledger(run.ledger_path) as ledger:
        started = RunStarted(
            kind="heal",
            task=run.save_record(task),
            schema_version=SCHEMA_VERSION,
            settings=run.save_json(encode_settings(settings)),
            project=str(talk.checkout),
        )
        finished = RunFinished(outcome="healed", reason=result.reason, result=run.save_record(result))
        ledger.append_all([started, finished])
    return run


def test_a_draft_with_the_change_is_opened_on_the_commit_of_the_checkout(shop: HealedShop) -> None:
    host: CodeHost = shop.talk.host

    shop.open()

    pull = host.body("pulls")
    assert (pull["base"], pull["draft"], pull["title"]) == ("work", True, "Heal shop.py")
    assert "**3 of 3 tests pass, 2 of them failed before.**" in pull["body"]
    (made,) = (made for made in host.commits.values() if made["message"].startswith("Heal shop.py"))
    assert made["parents"] == [{"sha": shop.talk.shas[1]}]
    assert host.refs[f"refs/heads/{pull['head']}"] in host.commits


def test_the_run_records_its_pull_request(shop: HealedShop) -> None:
    assert shop.state() == "possible"

    shop.open()

    described = describe_pull_request(shop.folder, shop.talk.checkout, shop.settings())
    assert described is not None
    assert (described.state, described.address) == ("opened", f"{shop.talk.host.url}/pulls/1")
    assert list(delivery_lines(shop.folder)) == [f"Draft pull request: {described.address}"]


def test_a_change_that_is_applied_already_can_be_offered_as_a_pull_request(shop: HealedShop) -> None:
    (shop.talk.checkout / "shop.py").write_text(make_shop_files("+")["shop.py"])

    shop.open()

    assert shop.state() == "opened"


def test_nothing_is_sent_if_the_commit_is_not_what_the_run_has_tested(shop: HealedShop) -> None:
    (shop.talk.checkout / "test_shop.py").write_text("def test_nothing(): ...\n")
    commit(shop.talk.checkout, ADA, "Delete the tests")

    with pytest.raises(UsageError, match=r"'test_shop.py' in commit .* is not as the run has tested it"):
        shop.open()

    assert shop.talk.host.posts() == []


def test_a_file_that_git_ignores_need_not_be_in_the_commit(shop: HealedShop) -> None:
    (shop.talk.checkout / ".git" / "info" / "exclude").write_text("version\n")
    (shop.talk.checkout / "version").write_text("1")

    replace(shop, folder=record_repair(shop.talk, shop.home, version=b"1")).open()

    assert "pulls" in shop.talk.host.posts()


def test_the_change_of_another_run_on_the_same_commit_is_refused(shop: HealedShop) -> None:
    shop.open()
    other = replace(shop, folder=record_repair(shop.talk, shop.home, claims=0.8))

    with pytest.raises(RequestRefused, match=r"has been delivered already: http.*/pulls/1") as refused:
        other.open()

    assert (refused.value.status, other.addresses()) == (409, [])


def test_a_second_request_sends_nothing_and_keeps_the_address(shop: HealedShop) -> None:
    shop.open()
    calls = len(shop.talk.host.calls)

    shop.open()

    assert (len(shop.talk.host.calls), shop.addresses()) == (calls, [f"{shop.talk.host.url}/pulls/1"])


def test_two_requests_that_are_verified_at_the_same_time_open_one(shop: HealedShop) -> None:
    prepared = [prepare_pull_request(shop.folder.id, shop.settings()) for _ in range(2)]

    for one in prepared:
        assert one is not None
        one.open()

    assert (len(shop.talk.host.drafts), len(shop.addresses())) == (1, 1)


def test_a_refused_pull_request_leaves_no_branch_and_can_be_opened_later(shop: HealedShop) -> None:
    host = shop.talk.host
    before = dict(host.refs)
    for status, error in ((422, CodeHostError), (403, PrerequisiteError)):
        host.refused_paths["pulls"] = status
        with pytest.raises(error, match=f"/pulls was refused with status {status}"):
            shop.open()
        assert (host.refs, shop.state()) == (before, "possible")

    host.refused_paths.clear()
    shop.open()

    assert shop.state() == "opened"


def test_a_pull_request_without_a_record_is_found_by_its_branch(shop: HealedShop) -> None:
    recorded = shop.folder.ledger_path.read_bytes()
    shop.open()
    shop.folder.ledger_path.write_bytes(recorded)  # a crash came first

    assert prepare_pull_request(shop.folder.id, shop.settings()) is None

    assert (len(shop.talk.host.drafts), shop.addresses()) == (1, [f"{shop.talk.host.url}/pulls/1"])


def test_a_branch_without_a_pull_request_is_replaced(shop: HealedShop) -> None:
    host, recorded = shop.talk.host, shop.folder.ledger_path.read_bytes()
    shop.open()
    shop.folder.ledger_path.write_bytes(recorded)
    host.drafts.clear()  # a crash came between the branch and the pull request

    shop.open()

    (draft,) = host.drafts
    assert draft["head"]["sha"] == host.refs[f"refs/heads/{draft['head']['ref']}"]
    assert shop.state() == "opened"


def test_the_gates_of_pipelines_apply(shop: HealedShop) -> None:
    with pytest.raises(RequestRefused, match="touches a file in `ci"):
        shop.open(forbidden=["shop.py"])

    assert shop.talk.host.posts() == []


def test_without_a_token_or_a_remote_none_can_be_opened(shop: HealedShop) -> None:
    assert shop.state(token=None) == "no_token"
    with pytest.raises(PrerequisiteError, match="no token"):
        prepare_pull_request(shop.folder.id, shop.settings(token=None))

    git(shop.talk.checkout, "remote", "set-url", "origin", "https://git.example.com/ada/shop.git")

    assert shop.state() is None
    with pytest.raises(UsageError, match="no checkout of a branch"):
        shop.open()


@pytest.mark.heavy
@pytest.mark.timeout(300)
def test_a_pull_request_is_opened_on_the_page(browser: Browser, folder: Path) -> None:
    project = write_project(folder / "projects" / "shop", make_shop_files("-"))
    git(project, "init", "-q", "-b", "work")
    commit(project, ADA, "Begin")
    git(project, "remote", "add", "origin", "https://github.com/ada/shop")
    options = ("--model", "none", "--root", str(project.parent), "--set", "ci.confidence=0")
    with run_code_host() as host:
        environ = {"GITHUB_API_URL": host.url, "SUTURE_KEYS_CI": TOKEN}
        with Server(folder, *options, environ=environ) as server:
            run = server.run(kind="heal", path=str(project))
            assert server.wait_for_state(run, "ended")["pull_request"] == {"state": "possible", "address": ""}
            browser_page = BrowserPage(browser, server.url)
            page = browser_page.visit(f"/runs/{run}")
            opening = page.get_by_role("button", name="Open pull request")
            opening.click()
            expect(opening).to_be_disabled()
            link = page.get_by_role("link", name="View pull request")
            expect(link).to_have_attribute("href", f"{host.url}/pulls/1", timeout=PATIENCE_MS)
            browser_page.save_screenshot("pull-request")
            browser_page.close()
            again = server.post(f"/v1/runs/{run}/pull-request")
            opened = {"state": "opened", "address": f"{host.url}/pulls/1"}
            assert (again.status_code, again.json()["pull_request"]) == (200, opened)
