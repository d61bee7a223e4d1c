"""The page in a real browser: runs are started, watched, answered, inspected and forked."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from interfaces.web.real_browser import PATIENCE_MS, Opened
from interfaces.web.real_server import Server, scripted
from interfaces.web.uploaded_projects import BROKEN, laid

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(300)]
TASK = "Write a function double(n) that doubles a number. For example: double(4) == 8 and double(5) == 10"
REPLIES = (
    "```python\ndef double(n):\n    return 4 * n\n```",
    "```python\ndef double(n):\n    return n + 4\n```",
    "```python\ndef double(n):\n    return 2 * n\n```",
)
RUN = re.compile(r"#/runs/([0-9]{8}-[0-9]{9}-[0-9a-f]{6})")
expect.set_options(timeout=PATIENCE_MS)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    laid(folder / "projects" / "cart", BROKEN)
    options = ("--root", str(folder / "projects"), "--model", scripted(folder, *REPLIES))
    # A port of its own, so that the page finds the server again after a restart.
    with Server(folder, *options, "--port", str(free_port())) as running:
        yield running


@pytest.fixture(scope="module")
def task() -> str:
    return TASK


@pytest.fixture
def opened(browser: Browser, server: Server) -> Iterator[Opened]:
    one = Opened(browser, server.url)
    yield one
    one.close()


def started(page: Page) -> str:
    """The run whose page is shown."""
    page.wait_for_url(RUN)
    found = RUN.search(page.url)
    assert found is not None
    return found[1]


def start_writing(opened: Opened, **chosen: str) -> str:
    page = opened.go("/new")
    page.get_by_label("Kind of run").select_option("write")
    page.get_by_label("Task").fill(TASK)
    for label, value in chosen.items():
        page.get_by_label(label.replace("_", " ")).select_option(value)
    page.get_by_role("button", name="Start").click()
    return started(page)


def test_there_is_nothing_at_first(opened: Opened, server: Server) -> None:
    expect(opened.go("/").get_by_text("No runs yet.")).to_be_visible()
    expect(opened.go("/totals").get_by_text("No runs yet.")).to_be_visible()
    expect(opened.go("/benchmarks").get_by_text("No benchmark results yet.")).to_be_visible()
    page = opened.go("/runs/20260101-000000000-abcdef")
    expect(page.get_by_role("alert")).to_contain_text("there is no run")
    expect(opened.go("/nowhere").get_by_text("This page does not exist.")).to_be_visible()


def test_a_run_is_started_by_keyboard_and_watched_as_it_goes_on(opened: Opened) -> None:
    page = opened.go("/")
    page.keyboard.press("Tab")
    for _ in range(12):
        if page.evaluate("document.activeElement.textContent") == "New run":
            break
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="New run")).to_be_focused()
    page.get_by_label("Kind of run").focus()
    page.keyboard.press("w")  # Write new code
    page.get_by_label("Task").focus()
    page.keyboard.insert_text(TASK)
    page.get_by_role("button", name="Start").focus()
    page.keyboard.press("Enter")
    started(page)
    lines = page.locator(".timeline li")
    expect(lines.first).to_contain_text("run.started")
    expect(page.locator(".timeline li.run-finished")).to_contain_text("healed")
    expect(page.locator(".badge")).to_have_text("healed")
    expect(page.locator(".timeline li.candidate-checked").first).to_contain_text("0 of 2 pass")


def test_a_project_is_healed_from_its_folder(opened: Opened, server: Server) -> None:
    page = opened.go("/new")
    assert str(server.folder / "projects" / "cart") in [
        option.get_attribute("value") for option in page.locator("datalist option").all()
    ]
    page.get_by_label("Project folder").fill(str(server.folder / "projects" / "elsewhere"))
    page.get_by_label("Model").select_option("none")
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_role("alert")).to_contain_text("is not a folder below an allowed root")
    page.get_by_label("Project folder").fill(str(server.folder / "projects" / "cart"))
    page.get_by_role("button", name="Start").click()
    run = started(page)
    expect(page.locator(".badge")).to_have_text("healed")
    opened.go(f"/runs/{run}/code")
    expect(page.locator("td.gone")).to_have_text("-    return sum(prices) + 1")
    expect(page.locator("td.come")).to_have_text("+    return sum(prices)")


def test_a_question_is_answered_while_another_tab_watches(opened: Opened, server: Server) -> None:
    run = start_writing(opened, When_to_ask_you="review_all")
    page = opened.page
    watching = opened.page.context.new_page()
    watching.set_default_timeout(PATIENCE_MS)
    watching.goto(f"{server.url}/#/runs/{run}")
    expect(page.get_by_text("Waiting for your answer")).to_be_visible()
    page.get_by_role("link", name="Review").click()
    expect(
        page.locator("section").get_by_text("Allow Suture to ask the model for 1 fresh candidate?")
    ).to_be_visible()
    page.get_by_role("button", name="Approve").click()
    # The first candidate is wrong, so the run asks for new ones; the person edits the code instead.
    expect(
        page.locator("section").get_by_text("Allow Suture to ask the model for 4 fresh candidates?")
    ).to_be_visible()
    expect(page.locator(".fact").first).to_contain_text("double(4)")
    page.get_by_text("Edit the code").click()
    page.get_by_role("textbox", name="solution.py").fill("def double(n):\n    return n + n\n")
    page.get_by_role("button", name="Use my edits").click()
    expect(page.locator("section").get_by_text("Accept this fix?")).to_be_visible()
    expect(page.locator("td.come").last).to_contain_text("return n + n")
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_text("The run has ended without an open question.")).to_be_visible()
    expect(watching.locator(".timeline li.run-finished")).to_contain_text("healed")
    expect(watching.locator(".timeline li.review-answered").first).to_be_visible()
    assert [one["choice"] for one in answers_of(server, run)] == ["approve", "edit", "approve"]


def answers_of(server: Server, run: str) -> list[dict[str, Any]]:
    events = server.get(f"/v1/runs/{run}?events=true").json()["events"]
    return [event["data"] for event in events if event["kind"] == "review.answered"]


def until_asked_again(server: Server, run: str, answered: int) -> None:
    until_s = time.monotonic() + PATIENCE_MS / 1000
    while len(answers_of(server, run)) != answered or server.shown(run)["state"] != "waiting":
        assert time.monotonic() < until_s, server.shown(run)
        time.sleep(0.2)


def test_every_other_answer_reaches_the_run(opened: Opened, server: Server) -> None:
    run = server.run(kind="write", task=TASK, autonomy="review_all")
    server.until(run, "waiting")
    page = opened.go(f"/runs/{run}/graph")
    expect(page.locator("svg.graph .node.active")).to_contain_text("review")
    opened.go(f"/runs/{run}/review")
    page.get_by_text("Reject with a hint").click()
    page.get_by_role("button", name="Send hint").click()
    expect(page.get_by_role("alert")).to_contain_text("a redirect needs a hint")
    page.get_by_label("Hint").fill("add it to itself")
    page.get_by_role("button", name="Send hint").click()
    for answered, choice in ((1, "Reject"), (2, "Abort the run")):
        until_asked_again(server, run, answered)
        expect(page.get_by_text("Reject with a hint")).to_be_visible()
        page.get_by_role("button", name=choice).click()
    expect(page.get_by_text("The run has ended without an open question.")).to_be_visible()
    expect(page.locator(".badge")).to_have_text("cancelled")
    said = answers_of(server, run)
    assert [one["choice"] for one in said] == ["redirect", "reject", "abort"]
    assert [one["hint"] for one in said] == ["add it to itself", "", ""]


def test_code_tests_and_lineage_are_looked_at(opened: Opened, written: str) -> None:
    page = opened.go(f"/runs/{written}/candidates")
    expect(page.locator("svg .box")).to_have_count(3)
    expect(page.locator("svg .box.best")).to_contain_text("2 of 2 pass")
    page.locator("svg a").first.click()
    expect(page.locator("td.come").last).to_contain_text("return 4 * n")
    page.get_by_label("From").select_option(index=1)
    page.get_by_label("To", exact=True).select_option(index=3)
    expect(page.locator("td.gone")).to_have_text("-    return 4 * n")
    expect(page.locator("td.come")).to_have_text("+    return 2 * n")
    opened.go(f"/runs/{written}/tests")
    expect(page.locator(".status.passed")).to_have_count(2)
    page.get_by_label("Candidate").select_option(index=0)
    fact = page.locator(".fact").first
    expect(fact).to_contain_text("double(4)")
    expect(fact).to_contain_text("16")


def test_a_diff_shows_where_only_the_last_line_end_differs(opened: Opened) -> None:
    page = opened.go("/")
    diff = (
        "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n x = 1\n-y = 2\n"
        "\\ No newline at end of file\n+y = 2\n"
        "diff --git a/b.py b/b.py\n--- a/b.py\n+++ b/b.py\n@@ -1,2 +1,2 @@\n-x = 1\n+x = 2\n y = 2\n"
        "\\ No newline at end of file\n"
    )
    page.evaluate(
        """async (diff) => {
            const { diffView } = await import("./page/diff.js");
            const view = diffView(diff, "a", "b", new AbortController().signal);
            document.querySelector("main").replaceChildren(view);
        }""",
        diff,
    )
    expect(page.locator("td.gone")).to_have_text(["-y = 2 no newline at end of file", "-x = 1"])
    expect(page.locator("td.come")).to_have_text(["+y = 2", "+x = 2"])
    expect(page.locator(".diff .end")).to_have_count(3)


def test_graph_performance_and_certificate(opened: Opened, written: str) -> None:
    page = opened.go(f"/runs/{written}/graph")
    expect(page.locator("svg.graph .node.seen")).to_have_count(7)
    expect(page.locator("svg.graph .node.active")).to_have_count(0)
    opened.go(f"/runs/{written}/performance")
    expect(page.get_by_role("img", name=re.compile("Tokens by role: coder"))).to_be_visible()
    opened.go(f"/runs/{written}/certificate")
    page.get_by_role("button", name="Verify").click()
    expect(page.get_by_text("The certificate is valid.")).to_be_visible()


def test_a_run_is_forked_and_the_two_are_compared(opened: Opened, server: Server, written: str) -> None:
    page = opened.go(f"/runs/{written}/steps")
    page.get_by_label("Step", exact=True).select_option("1")
    expect(
        page.get_by_text("Best candidate at this step: sample 1, greedy, 0 of 2 checks pass.")
    ).to_be_visible()
    page.get_by_label("Hint").fill("twice")
    page.get_by_label("Recipe").select_option("best_of_k")
    page.get_by_role("button", name="Fork").click()
    page.wait_for_url(lambda url: written not in url)
    fork = started(page)
    expect(page.locator(".badge")).not_to_have_text("running")
    server.until(fork, "ended")
    page = opened.go("/")
    expect(page.get_by_text(f"fork of {written}, step 1")).to_be_visible()
    page.get_by_label(f"Select {written} for comparison").check()
    page.get_by_label(f"Select {fork} for comparison").check()
    page.get_by_role("button", name="Compare two runs").click()
    expect(page.get_by_role("heading", name="Two runs")).to_be_visible()
    expect(page.get_by_role("table", name="Side by side")).to_contain_text("best_of_k")
    expect(page.get_by_role("heading", name="First difference")).to_be_visible()


def test_runs_are_searched(opened: Opened, written: str) -> None:
    page = opened.go("/")
    page.get_by_label("Search").fill("doubles")
    page.get_by_label("Kind").select_option("write")
    page.get_by_role("button", name="Find").click()
    expect(page.get_by_role("link", name=written)).to_be_visible()
    page.get_by_label("Search").fill("nobody wrote this")
    page.keyboard.press("Enter")
    expect(page.get_by_text("No run matches.")).to_be_visible()


def test_a_search_that_answers_late_is_not_shown(opened: Opened, written: str) -> None:
    page = opened.go("/")
    late: list[Route] = []

    def held(route: Route) -> None:
        late.append(route)

    page.route(re.compile(r"/v1/runs\?.*search=doubles"), held)
    page.get_by_label("Search").fill("doubles")
    page.get_by_role("button", name="Find").click()
    page.get_by_label("Search").fill("nobody wrote this")
    page.keyboard.press("Enter")
    expect(page.get_by_text("No run matches.")).to_be_visible()
    with page.expect_response(re.compile("search=doubles")):
        late[0].continue_()
    page.wait_for_timeout(200)
    expect(page.get_by_text("No run matches.")).to_be_visible()
    expect(page.get_by_role("link", name=written)).to_be_hidden()


def test_a_step_that_answers_late_is_not_shown(opened: Opened, written: str) -> None:
    page = opened.go(f"/runs/{written}/steps")
    expect(page.get_by_role("heading", name="Fork from step 0")).to_be_visible()
    late: list[Route] = []

    def held(route: Route) -> None:
        late.append(route)

    page.route(re.compile(r"/steps/1$"), held)
    page.get_by_label("Step", exact=True).select_option("1")
    page.get_by_label("Step", exact=True).select_option("0")
    page.wait_for_timeout(200)
    with page.expect_response(re.compile(r"/steps/1$")):
        late[0].continue_()
    page.wait_for_timeout(200)
    expect(page.get_by_role("heading", name="Fork from step 0")).to_be_visible()
    expect(page.get_by_role("heading", name="Fork from step 1")).to_be_hidden()


def test_a_reload_and_a_new_server_lose_nothing(opened: Opened, server: Server) -> None:
    run = server.run(kind="write", task=TASK, autonomy="review_all")
    server.until(run, "waiting")
    page = opened.go(f"/runs/{run}")
    seen = page.locator(".timeline li")
    expect(seen.last).to_contain_text("run.paused")
    count = seen.count()
    page.reload()
    expect(seen).to_have_count(count)
    server.stop()
    expect(page.get_by_text("the server does not respond: retrying.")).to_be_visible()
    server.start()
    expect(page.get_by_text("retrying.")).to_be_hidden()
    expect(seen).to_have_count(count)
    page.get_by_role("link", name="Review").click()
    page.get_by_role("button", name="Abort the run").click()
    expect(page.locator(".badge")).to_have_text("cancelled")
    opened.go("/")
    expect(page.get_by_role("link", name=run)).to_be_visible()
