"""The web page in a real browser: what happens while the server is away, and what the page keeps in its address."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from interfaces.web.real_browser import PATIENCE_MS, BrowserPage
from interfaces.web.real_server import TASK, Server
from interfaces.web.uploaded_projects import BROKEN_PROJECT, write_project

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(300)]
AWAY = "Suture does not respond. This page tries again by itself."
expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    """Start a server without a model, with a project below its root that is in a git repository."""
    project = write_project(folder / "projects" / "examples" / "cart", BROKEN_PROJECT)
    author = ("-c", "user.name=Test", "-c", "user.email=test@example.org")
    for arguments in (("init", "-q"), ("add", "-A"), (*author, "commit", "-q", "-m", "The cart")):
        subprocess.run(["git", *arguments], cwd=project, check=True)
    (project / "cart.py").write_text(BROKEN_PROJECT["cart.py"].replace(" + 1", ""))
    with Server(folder, "--model", "none", "--root", str(folder / "projects")) as started_server:
        yield started_server


def drop_requests(page: Page, pattern: str) -> list[str]:
    """Let requests fail as they do without a server; return the list of their methods so far."""
    methods: list[str] = []

    def drop(route: Route) -> None:
        methods.append(route.request.method)
        route.abort()

    page.route(re.compile(pattern), drop)
    return methods


@pytest.mark.parametrize(("path", "heading"), [("/", "Runs"), ("/totals", "Totals"), ("/new", "New run")])
def test_a_page_is_read_again_until_the_server_is_back(
    browser_page: BrowserPage, path: str, heading: str
) -> None:
    page = browser_page.visit("/judge")
    methods = drop_requests(page, r"/v1/")
    page.evaluate(f"location.hash = '#{path}'")
    expect(page.get_by_text(AWAY)).to_be_visible()
    while len(methods) < 2:
        page.wait_for_timeout(100)
    page.unroute(re.compile(r"/v1/"))
    expect(page.get_by_text(AWAY)).to_be_hidden()
    expect(page.get_by_role("heading", name=heading)).to_be_visible()
    expect(page.locator("main .loading")).to_have_count(0)


def test_an_error_without_a_remedy_has_no_second_paragraph(browser_page: BrowserPage) -> None:
    page = browser_page.visit("/new")
    problem = {"detail": "the disk is full", "remedy": "", "fault": "StorageError"}
    page.route(re.compile(r"/v1/runs$"), lambda route: route.fulfill(status=500, json=problem))
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_role("alert").get_by_text("The disk is full.")).to_be_visible()
    expect(page.get_by_role("alert").locator("p")).to_have_count(0)


def test_a_finding_that_begins_with_a_name_keeps_its_first_letter(browser_page: BrowserPage) -> None:
    finding = {"severity": "remark", "path": "shop.py", "line": 1, "sentence": "requests, flask"}
    report = {
        "path": "/shop",
        "outcome": "accepted_with_remarks",
        "headline": "",
        "facts": {"Guard": "nothing has changed"},
        "judgement": {"verdict": "Accepted, with remarks", "findings": [finding]},
    }
    page = browser_page.visit("/new")
    page.route(re.compile(r"/v1/judgements/"), lambda route: route.fulfill(json=report))
    browser_page.visit("/judge/20260101-000000000-abcdef")
    expect(page.locator(".findings")).to_contain_text("requests, flask.")
    expect(page.locator(".findings")).to_contain_text("Remark")  # colour alone does not say it to everybody
    expect(page.locator(".facts")).to_contain_text("Nothing has changed.")


def test_an_action_is_not_repeated_and_can_be_tried_again(browser_page: BrowserPage) -> None:
    page = browser_page.visit("/new")
    methods = drop_requests(page, r"/v1/runs$")
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_role("alert").get_by_text("it is not known whether this was done")).to_be_visible()
    expect(page.get_by_text(AWAY)).to_be_hidden()
    expect(page.get_by_role("button", name="Start")).to_be_enabled()
    assert methods == ["POST"]


def test_code_cannot_be_written_without_a_model(browser_page: BrowserPage) -> None:
    page = browser_page.visit("/new")
    expect(page.get_by_label("Project", exact=True)).to_contain_text("examples/cart")
    page.get_by_text("Write new code").click()
    expect(page.get_by_text("New code is written by a model")).to_be_visible()
    expect(page.get_by_role("button", name="Start")).to_be_disabled()
    page.get_by_text("Repair a project").click()
    expect(page.get_by_role("button", name="Start")).to_be_enabled()


def test_a_refused_run_says_so_in_the_words_of_the_page(browser_page: BrowserPage, server: Server) -> None:
    run = server.run(kind="write", task=TASK)
    server.wait_for_state(run, "refused")
    page = browser_page.visit(f"/runs/{run}")
    expect(page.get_by_role("heading", name="Write a function double(n)")).to_be_visible()
    expect(page.locator(".outcome")).to_contain_text("The run did not start.")
    expect(page.locator(".head").get_by_role("link", name="New run")).to_be_visible()
    assert "--" not in page.locator("main").inner_text()


def test_a_judgement_shows_its_steps_and_keeps_an_address(browser_page: BrowserPage) -> None:
    page = browser_page.visit("/judge")
    page.get_by_text("Options").click()
    page.get_by_label("Test command").fill("python -m pytest -q -p no:cacheprovider")
    page.get_by_role("button", name="Judge").click()
    expect(page.locator(".steps")).to_contain_text("Running the tests without the change")
    verdict = page.locator(".verdict h2")
    expect(verdict).to_have_text(re.compile("^Accepted"))
    page.wait_for_url(re.compile("#/judge/[0-9]{8}-"))
    page.reload()
    expect(verdict).to_have_text(re.compile("^Accepted"))
    page.get_by_text("Judge another change").click()
    page.get_by_label("Compare with").fill("nowhere")
    page.get_by_role("button", name="Judge", exact=True).click()
    expect(page.get_by_role("alert").get_by_text("There is no commit 'nowhere'.")).to_be_visible()


def test_a_judgement_of_no_change_says_that_there_is_nothing_to_judge(browser_page: BrowserPage) -> None:
    page = browser_page.visit("/judge")
    page.get_by_text("Staged", exact=True).click()
    page.get_by_role("button", name="Judge", exact=True).click()
    expect(page.locator(".verdict h2")).to_have_text("Nothing to judge")
    expect(page.locator(".verdict")).to_contain_text("Nothing has changed.")
    expect(page.locator(".verdict")).not_to_contain_text("Accepted")


def test_a_search_begins_while_one_types_and_survives_a_look_at_a_run(
    browser_page: BrowserPage, server: Server
) -> None:
    run = server.run(kind="heal", path=str(server.folder / "projects" / "examples" / "cart"))
    server.wait_for_state(run, "ended")
    page = browser_page.visit("/")
    page.get_by_label("Search").fill("nobody wrote this")
    expect(page.get_by_text("No run matches.")).to_be_visible()
    page.get_by_label("Search").fill("cart")
    page.wait_for_url(re.compile("search=cart"))
    page.locator(".runs a").first.click()
    page.wait_for_url(re.compile("#/runs/"))
    page.go_back()
    expect(page.get_by_label("Search")).to_have_value("cart")
    expect(page.locator(".runs li")).not_to_have_count(0)


def test_a_run_is_listed_before_it_has_begun(browser_page: BrowserPage) -> None:
    run = {"run": "20260101-000000000-abcdef", "state": "queued", "title": "Heal the cart", "requested_s": 1}
    answers = [{"total": 0, "runs": [], "queued": [run]}, {"total": 0, "runs": [], "queued": []}]
    page = browser_page.visit("/new")
    page.route(
        re.compile(r"/v1/runs\?"),
        lambda route: route.fulfill(json=answers.pop(0) if answers[1:] else answers[0]),
    )
    page.evaluate("location.hash = '#/'")
    expect(page.locator(".runs li")).to_contain_text("Heal the cart")
    expect(page.locator(".runs .badge")).to_have_text("queued")
    expect(page.get_by_text("No runs yet.")).to_be_visible()  # the list is read again by itself


def test_a_list_in_which_nothing_changes_keeps_the_keyboard_focus(browser_page: BrowserPage) -> None:
    started = {"started_s": 1, "spend": {"tokens": 0, "seconds": 1}}
    runs = [
        {"run": f"20260101-000000000-{outcome}", "title": outcome, "outcome": outcome, **started}
        for outcome in ("running", "waiting")
    ]
    page = browser_page.visit("/new")
    page.route(
        re.compile(r"/v1/runs\?"), lambda route: route.fulfill(json={"total": 2, "runs": runs, "queued": []})
    )
    page.evaluate("location.hash = '#/'")
    expect(page.locator(".runs li").first).to_contain_text("waiting")
    link = page.get_by_role("link", name="running", exact=True)
    link.focus()
    for _ in range(2):  # the list is read again, and then possibly drawn again
        with page.expect_response(re.compile(r"/v1/runs\?")):
            pass
    page.wait_for_timeout(200)
    expect(link).to_be_focused()


def test_a_stop_by_the_user_is_no_fault(browser_page: BrowserPage, server: Server) -> None:
    run = server.run(kind="heal", path=str(server.folder / "projects" / "examples" / "cart"))
    page = browser_page.visit(f"/runs/{run}/timeline")
    expect(page.locator(".timeline li").first).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".outcome")).to_contain_text("You stopped it")
    expect(page.locator(".head .error")).to_have_count(0)
    expect(page.locator(".head .main")).to_have_count(1)
    expect(page.locator(".head .main")).to_have_text("Resume")
    assert all(row["title"] for row in server.get("/v1/runs").json()["runs"])


def test_a_page_that_was_left_does_not_say_that_the_server_is_away(browser_page: BrowserPage) -> None:
    page = browser_page.visit("/judge")
    methods = drop_requests(page, r"/v1/metrics")
    page.evaluate("location.hash = '#/totals'")
    while len(methods) < 3:  # the next wait takes 4 s
        page.wait_for_timeout(100)
    expect(page.get_by_text(AWAY)).to_be_visible()
    page.evaluate("location.hash = '#/new'")
    expect(page.get_by_role("heading", name="New run")).to_be_visible()
    expect(page.get_by_text(AWAY)).to_be_hidden(timeout=2_000)
