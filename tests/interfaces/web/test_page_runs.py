"""The web page in a real browser: starting, watching, answering, inspecting and forking runs."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from interfaces.web.real_browser import PATIENCE_MS, BrowserPage
from interfaces.web.real_server import Server, write_scripted_model
from interfaces.web.uploaded_projects import BROKEN_PROJECT, write_project

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(300)]
TASK = "Write a function double(n) that doubles a number. For example: double(4) == 8 and double(5) == 10"
REPLIES = (
    "```python\ndef double(n):\n    return 4 * n\n```",
    "```python\ndef double(n):\n    return n + 4\n```",
    "```python\ndef double(n):\n    return 2 * n\n```",
)
SKIPPING_PATCH = """\
diff --git a/test_cart.py b/test_cart.py
--- a/test_cart.py
+++ b/test_cart.py
@@ -3,2 +3,4 @@
+import pytest
+@pytest.mark.skip
 def test_total():
     assert total([1, 2]) == 3
"""
"""A patch that games the tests: it skips the one that fails."""
RUN_URL = re.compile(r"#/runs/([0-9]{8}-[0-9]{9}-[0-9a-f]{6})")
expect.set_options(timeout=PATIENCE_MS)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    """Start a server with a broken project and a model that is right in its third reply."""
    write_project(folder / "projects" / "cart", BROKEN_PROJECT)
    options = ("--root", str(folder / "projects"), "--model", write_scripted_model(folder, *REPLIES))
    # A fixed port lets the page find the server again after a restart.
    with Server(folder, *options, "--port", str(free_port())) as started_server:
        yield started_server


@pytest.fixture(scope="module")
def task() -> str:
    return TASK


def wait_for_run_page(page: Page) -> str:
    """Wait until the page shows a run, and return the id of the run."""
    page.wait_for_url(RUN_URL)
    match = RUN_URL.search(page.url)
    assert match is not None
    return match[1]


def start_write_run(browser_page: BrowserPage, **choices: str) -> str:
    """Fill in the form for new code, start the run, and return its id."""
    page = browser_page.visit("/new")
    page.get_by_text("Write new code").click()
    page.get_by_label("Task").fill(TASK)
    page.get_by_text("Options:").click()
    for label, value in choices.items():
        page.get_by_label(label.replace("_", " ")).select_option(value)
    page.get_by_role("button", name="Start").click()
    return wait_for_run_page(page)


def test_an_empty_server_says_so_on_every_page(browser_page: BrowserPage, server: Server) -> None:
    expect(browser_page.visit("/").get_by_text("No runs yet.")).to_be_visible()
    expect(browser_page.visit("/totals").get_by_text("No runs yet.")).to_be_visible()
    expect(browser_page.visit("/benchmarks").get_by_text("No benchmark results yet.")).to_be_visible()
    page = browser_page.visit("/runs/20260101-000000000-abcdef")
    expect(page.get_by_role("alert")).to_contain_text("There is no run")
    expect(browser_page.visit("/nowhere").get_by_text("This page does not exist.")).to_be_visible()


def test_a_run_can_be_started_by_keyboard_and_watched(browser_page: BrowserPage) -> None:
    page = browser_page.visit("/")
    page.keyboard.press("Tab")
    for _ in range(12):
        if page.evaluate("document.activeElement.textContent") == "New run":
            break
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="New run")).to_be_focused()
    page.get_by_label("Repair a project").focus()
    page.keyboard.press("ArrowRight")  # Write new code
    page.get_by_label("Task").focus()
    page.keyboard.insert_text(TASK)
    page.get_by_role("button", name="Start").focus()
    page.keyboard.press("Enter")
    wait_for_run_page(page)
    lines = page.locator(".timeline li")
    expect(lines.first).to_contain_text("write with model scripted:")
    expect(page.locator(".timeline li.run-finished")).to_contain_text("done: every trusted check passes")
    expect(page.locator(".outcome")).to_contain_text("Done: all 2 checks pass.")
    expect(page.locator(".timeline li.candidate-checked").first).to_contain_text("0 of 2 pass")


def test_a_project_folder_can_be_healed(browser_page: BrowserPage, server: Server) -> None:
    page = browser_page.visit("/new")
    page.get_by_text("Options:").click()
    page.get_by_label("Model").select_option("none")
    project = page.get_by_label("Project", exact=True)
    project.select_option("other")
    page.get_by_label("Project folder").fill(str(server.folder / "projects" / "elsewhere"))
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_role("alert")).to_contain_text("There is no folder")
    project.select_option(str(server.folder / "projects" / "cart"))
    page.get_by_role("button", name="Start").click()
    wait_for_run_page(page)
    expect(page.locator(".outcome")).to_contain_text("Healed, but your tests do not decide")
    cards = page.get_by_role("list", name="Changes that pass all tests").get_by_role("listitem")
    expect(cards.first).to_contain_text("shown above as the result")
    expect(cards.first.get_by_role("button", name="Apply this one")).to_be_visible()
    expect(page.locator(".evidence")).to_have_text("The only test passes, and it failed before.")
    expect(page.locator("td.gone")).to_have_text("-    return sum(prices) + 1")
    expect(page.locator("td.come")).to_have_text("+    return sum(prices)")

    code = server.folder / "projects" / "cart" / "cart.py"
    page.get_by_role("button", name="Apply", exact=True).click()
    expect(page.get_by_text("Applied to your project.")).to_be_visible()
    assert code.read_text() == "def total(prices):\n    return sum(prices)\n"
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("button", name="Apply", exact=True)).to_be_visible()
    assert code.read_text() == BROKEN_PROJECT["cart.py"]
    with page.expect_download() as download:
        page.get_by_role("button", name="Download").click()
    assert "-    return sum(prices) + 1\n+    return sum(prices)\n" in download.value.path().read_text()

    expect(page.get_by_role("heading", name="Which change is right?")).to_be_visible()
    page.get_by_role("button", name="Apply this one").nth(1).click()
    expect(page.locator(".remarks")).to_contain_text("you chose this one.")
    expect(page.get_by_role("button", name="Undo")).to_be_visible()
    assert code.read_text() not in (BROKEN_PROJECT["cart.py"], "def total(prices):\n    return sum(prices)\n")
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("Undone: your files are as they were before.")).to_be_visible()
    assert code.read_text() == BROKEN_PROJECT["cart.py"]

    page.get_by_role("link", name="Judge this change").click()
    expect(page.locator(".verdict h2")).to_contain_text("Accepted")
    page.get_by_text("Judge another change").click()
    expect(page.get_by_label("Patch", exact=True)).to_have_value(re.compile("cart.py"))
    badges = browser_page.visit("/").locator(".badge.doubted")
    expect(badges.filter(has_text="healed, undecided")).to_be_visible()
    expect(badges.filter(has_text="done, low confidence").first).to_be_visible()


def test_a_patch_is_judged_on_the_page(browser_page: BrowserPage, server: Server) -> None:
    page = browser_page.visit("/judge")
    page.get_by_label("Project", exact=True).select_option(str(server.folder / "projects" / "cart"))
    page.get_by_text("A patch").click()
    page.get_by_label("Patch", exact=True).fill(SKIPPING_PATCH)
    page.get_by_role("button", name="Judge").click()
    expect(page.locator(".verdict h2")).to_contain_text("Rejected")
    expect(page.get_by_label("Patch", exact=True)).to_be_hidden()
    expect(page.get_by_text("Judge another change")).to_be_visible()
    expect(page.locator(".facts")).to_contain_text("tests that fail without the change and pass with it")
    expect(page.locator(".findings")).to_contain_text("test_cart.py")
    expect(page.locator(".findings")).to_contain_text("Rejects")
    browser_page.save_screenshot("verdict")

    page = browser_page.visit("/")
    page.get_by_label("Kind").select_option("judged")
    expect(page.get_by_role("heading", name="Judged changes")).to_be_visible()
    expect(page.locator(".judgements li").first).to_contain_text("rejected")
    expect(page.locator(".judgements li").first).not_to_contain_text("Rejected: ")
    expect(page.locator(".judgements a").first).to_contain_text("cart: ")
    browser_page.save_screenshot("judgements")
    page.locator(".judgements a").first.click()
    expect(page.locator(".verdict h2")).to_contain_text("Rejected")


def test_a_question_is_answered_while_another_tab_shows_the_run(
    browser_page: BrowserPage, server: Server
) -> None:
    run = start_write_run(browser_page, When_to_ask_you="review_all")
    page = browser_page.page
    second_tab = browser_page.page.context.new_page()
    second_tab.set_default_timeout(PATIENCE_MS)
    second_tab.goto(f"{server.url}/#/runs/{run}")
    expect(page.get_by_text("Suture waits for your answer.")).to_be_visible()
    expect(
        page.locator(".asked").get_by_text("Allow Suture to ask the model for 1 fresh candidate?")
    ).to_be_visible()
    expect(page.locator(".effects")).to_contain_text("The model writes code, which costs tokens")
    page.get_by_role("button", name="Approve").click()
    # The first candidate is wrong, so the run asks for new ones; the person edits the code instead.
    expect(
        page.locator(".asked").get_by_text("Allow Suture to ask the model for 4 fresh candidates?")
    ).to_be_visible()
    expect(page.locator(".asked .fact").first).to_contain_text("double(4)")
    page.get_by_text("Edit the code").click()
    page.get_by_role("textbox", name="solution.py").fill("def double(n):\n    return n + n\n")
    page.get_by_role("button", name="Use my edits").click()
    expect(page.get_by_role("heading", name="Accept this fix?")).to_be_visible()
    expect(page.locator(".asked .file")).to_contain_text("return n + n")
    page.get_by_role("button", name="Approve").click()
    expect(page.locator(".outcome")).to_contain_text("Done: all 2 checks pass.")
    second_tab.get_by_role("link", name="Timeline").click()
    expect(second_tab.locator(".timeline li.run-finished")).to_contain_text(
        "done: every trusted check passes"
    )

    expect(second_tab.locator(".timeline li.review-answered").first).to_be_visible()

    assert [answer["choice"] for answer in list_answers(server, run)] == ["approve", "edit", "approve"]


def list_answers(server: Server, run: str) -> list[dict[str, Any]]:
    """Return the answers to all questions of a run."""
    events = server.get(f"/v1/runs/{run}?events=true").json()["events"]
    return [event["data"] for event in events if event["kind"] == "review.answered"]


def wait_for_next_question(server: Server, run: str, answer_count: int) -> None:
    """Wait until a run has had this many answers and waits for another one."""
    deadline_s = time.monotonic() + PATIENCE_MS / 1000
    while len(list_answers(server, run)) != answer_count or server.get_run(run)["state"] != "waiting":
        assert time.monotonic() < deadline_s, server.get_run(run)
        time.sleep(0.2)


def test_hint_reject_and_abort_reach_the_run(browser_page: BrowserPage, server: Server) -> None:
    run = server.run(kind="write", task=TASK, autonomy="review_all")
    server.wait_for_state(run, "waiting")
    page = browser_page.visit(f"/runs/{run}/graph")
    expect(page.locator("svg.graph .node.active")).to_contain_text("ask you")
    page.get_by_text("Reject with a hint").click()
    page.get_by_role("button", name="Send hint").click()
    expect(page.get_by_role("alert")).to_contain_text("A redirect needs a hint")
    page.get_by_label("Hint").fill("add it to itself")
    page.get_by_role("button", name="Send hint").click()
    for answer_count, choice in ((1, "Reject"), (2, "Stop the run")):
        wait_for_next_question(server, run, answer_count)
        expect(page.get_by_text("Reject with a hint")).to_be_visible()
        page.get_by_role("button", name=choice).click()
    expect(page.locator(".outcome")).to_contain_text("You stopped it")

    answers = list_answers(server, run)

    assert [answer["choice"] for answer in answers] == ["redirect", "reject", "abort"]
    assert [answer["hint"] for answer in answers] == ["add it to itself", "", ""]


def test_results_of_new_code_are_chosen_one_by_one(browser_page: BrowserPage, server: Server) -> None:
    run = server.run(kind="write", task="Write a function double(n) that doubles a number.", ask=True)
    server.wait_for_state(run, "waiting")
    waiting = browser_page.visit("/").locator(".runs li").first
    waiting.get_by_role("link", name="Answer").click()
    page = browser_page.page
    use = page.get_by_role("button", name="Use the chosen results")
    expect(use).to_be_disabled()
    expect(page.get_by_role("button", name="Stop the run")).to_be_visible()
    expect(page.get_by_role("textbox", name="Results")).to_be_hidden()
    calls = page.get_by_role("group").filter(has_text="double(")
    calls.first.get_by_role("radio").first.check()
    expect(use).to_be_enabled()
    calls.first.get_by_role("textbox").fill("80")
    calls.first.get_by_role("textbox").fill("")
    expect(use).to_be_disabled()
    calls.first.get_by_role("radio").first.check()
    browser_page.save_screenshot("results")
    use.click()

    assert server.wait_for_state(run, "ended")["outcome"] == "healed"
    assert [answer["choice"] for answer in list_answers(server, run)] == ["edit"]


def test_code_tests_and_lineage_are_shown(browser_page: BrowserPage, written_run: str) -> None:
    page = browser_page.visit(f"/runs/{written_run}/candidates")
    expect(page.locator("svg .box")).to_have_count(3)
    expect(page.locator("svg .box.best")).to_contain_text("2 of 2 pass")
    page.locator("svg a").first.click()
    expect(page.locator("section section.file")).to_contain_text("return 4 * n")
    page.get_by_label("Compare", exact=True).select_option(index=1)
    page.get_by_label("With", exact=True).select_option(index=3)
    expect(page.locator("td.gone")).to_have_text("-    return 4 * n")
    expect(page.locator("td.come")).to_have_text("+    return 2 * n")
    browser_page.visit(f"/runs/{written_run}/tests")
    expect(page.locator(".status.passed")).to_have_count(2)
    page.get_by_label("Candidate").select_option(index=0)
    counterexample = page.locator(".fact").first
    expect(counterexample).to_contain_text("double(4)")
    expect(counterexample).to_contain_text("16")


def test_all_tabs_are_there_at_first(browser_page: BrowserPage, written_run: str) -> None:
    page = browser_page.visit(f"/runs/{written_run}")
    names = page.get_by_label("Details of this run").get_by_role("link").all_inner_texts()
    assert names == ["Checks", "Timeline", "Candidates", "Cost", "Steps", "Graph", "Certificate"]
    # A low confidence changes the sign of the outcome, too.
    sign, headline, confidence = page.locator(".warn").all_inner_texts()
    assert (sign, headline.startswith("Done")) == ("\u2248", True)
    assert confidence.startswith("Confidence: low (0.")
    expect(page.get_by_role("link", name="Runs", exact=True)).to_have_attribute("aria-current", "true")


@pytest.mark.parametrize(
    ("confidence", "killed", "reason"),
    [
        (0.95, 12, "your tests notice 12 of 12 deliberate mistakes in it"),
        (0.88, 12, ""),  # that all are noticed does not explain why the confidence is not high
        (0.55, 2, "your tests notice only 2 of 12 deliberate mistakes in it"),
    ],
)
def test_a_confidence_is_explained_only_by_what_leads_to_it(
    browser_page: BrowserPage, confidence: float, killed: int, reason: str
) -> None:
    page = browser_page.visit("/")
    found = page.evaluate(
        """async ([confidence, killed]) => {
            const { confidenceReason } = await import("./page/run.js");
            const data = { mutants: 12, selected: 12, killed };
            const shown = { kind: "heal", doubt: "", confidence, unmeasured: {} };
            return confidenceReason(shown, [{ kind: "certificate.written", data }]);
        }""",
        [confidence, killed],
    )
    assert found == reason


def test_the_files_that_a_run_wrote_come_first(browser_page: BrowserPage) -> None:
    page = browser_page.visit("/")
    diff = "".join(
        f"diff --git a/{name} b/{name}\nnew file mode 100644\n--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+x = 1\n"
        for name in ("app.py", "books.py", "store.py")
    )
    page.evaluate(
        """async (diff) => {
            const { diffView } = await import("./page/diff.js");
            const view = diffView(diff, "a", "b", new AbortController().signal, ["store.py"]);
            document.querySelector("main").replaceChildren(view);
        }""",
        diff,
    )
    expect(page.locator(".file h3 > span:first-child")).to_have_text(["store.py", "app.py", "books.py"])
    expect(page.get_by_text("app.py", exact=True)).to_be_hidden()
    page.get_by_text("2 more files, which Suture added for the project").click()
    expect(page.get_by_text("app.py", exact=True)).to_be_visible()


def test_a_diff_shows_a_missing_newline_at_the_end_and_the_path_of_an_empty_file(
    browser_page: BrowserPage,
) -> None:
    page = browser_page.visit("/")
    diff = (
        "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n x = 1\n-y = 2\n"
        "\\ No newline at end of file\n+y = 2\n"
        "diff --git a/b.py b/b.py\n--- a/b.py\n+++ b/b.py\n@@ -1,2 +1,2 @@\n-x = 1\n+x = 2\n y = 2\n"
        "\\ No newline at end of file\n"
        "diff --git a/books/__init__.py b/books/__init__.py\nnew file mode 100644\nindex 0000000..e69de29\n"
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
    expect(page.locator(".file h3 > span:first-child")).to_have_text(["a.py", "b.py", "books/__init__.py"])


def test_graph_performance_and_certificate_are_shown(browser_page: BrowserPage, written_run: str) -> None:
    page = browser_page.visit(f"/runs/{written_run}/graph")
    expect(page.locator("svg.graph .node.seen")).to_have_count(7)
    expect(page.locator("svg.graph .node.active")).to_have_count(0)
    expect(page.locator("svg.graph .edge.taken")).not_to_have_count(0)
    browser_page.visit(f"/runs/{written_run}/cost")
    expect(page.get_by_role("table", name="Who used it")).to_contain_text("coder")
    browser_page.visit(f"/runs/{written_run}/certificate")
    expect(page.get_by_role("table", name="What was verified")).to_contain_text("low (0.")
    page.get_by_role("button", name="Verify").click()
    expect(page.get_by_text("The certificate is valid.")).to_be_visible()


def test_a_fork_can_be_compared_with_its_origin(
    browser_page: BrowserPage, server: Server, written_run: str
) -> None:
    page = browser_page.visit(f"/runs/{written_run}/steps")
    page.get_by_label("Step", exact=True).select_option("1")
    expect(page.get_by_text("Best candidate at this step: candidate 1, 0 of 2 checks pass.")).to_be_visible()
    page.get_by_label("Hint").fill("twice")
    page.get_by_label("Recipe").select_option("best_of_k")
    page.get_by_role("button", name="Fork").click()
    page.wait_for_url(lambda url: written_run not in url)
    fork = wait_for_run_page(page)
    server.wait_for_state(fork, "ended")
    page = browser_page.visit("/")
    expect(page.get_by_text(f"fork of {written_run}, step 1")).to_be_visible()
    page.get_by_label(re.compile(f"Select .*{written_run}, for comparison")).check()
    page.get_by_label(re.compile(f"Select .*{fork}, for comparison")).check()
    page.get_by_role("button", name="Compare two runs").click()
    expect(page.get_by_role("heading", name="Two runs compared")).to_be_visible()
    expect(page.get_by_role("table", name="Side by side")).to_contain_text("best_of_k")
    expect(page.get_by_role("heading", name="First difference")).to_be_visible()


def test_runs_can_be_searched(browser_page: BrowserPage, written_run: str) -> None:
    page = browser_page.visit("/")
    page.get_by_label("Search").fill("doubles")
    page.get_by_label("Kind").select_option("write")
    expect(page.get_by_text(written_run, exact=True)).to_be_visible()
    page.get_by_label("Search").fill("nobody wrote this")
    page.keyboard.press("Enter")
    expect(page.get_by_text("No run matches.")).to_be_visible()


def test_a_late_search_result_is_not_shown(browser_page: BrowserPage, written_run: str) -> None:
    page = browser_page.visit("/")
    held_requests: list[Route] = []

    def hold(route: Route) -> None:
        held_requests.append(route)

    page.route(re.compile(r"/v1/runs\?.*search=doubles"), hold)
    page.get_by_label("Search").fill("doubles")
    page.keyboard.press("Enter")
    page.get_by_label("Search").fill("nobody wrote this")
    page.keyboard.press("Enter")
    expect(page.get_by_text("No run matches.")).to_be_visible()
    with page.expect_response(re.compile("search=doubles")):
        held_requests[0].continue_()
    page.wait_for_timeout(200)
    expect(page.get_by_text("No run matches.")).to_be_visible()
    expect(page.get_by_text(written_run, exact=True)).to_be_hidden()


def test_a_late_step_is_not_shown(browser_page: BrowserPage, written_run: str) -> None:
    page = browser_page.visit(f"/runs/{written_run}/steps")
    # At first, the newest step is shown.
    expect(page.get_by_role("heading", name="Fork from step 2")).to_be_visible()
    held_requests: list[Route] = []

    def hold(route: Route) -> None:
        held_requests.append(route)

    page.route(re.compile(r"/steps/1$"), hold)
    page.get_by_label("Step", exact=True).select_option("1")
    page.get_by_label("Step", exact=True).select_option("0")
    page.wait_for_timeout(200)
    with page.expect_response(re.compile(r"/steps/1$")):
        held_requests[0].continue_()
    page.wait_for_timeout(200)
    expect(page.get_by_role("heading", name="Fork from step 0")).to_be_visible()
    expect(page.get_by_role("heading", name="Fork from step 1")).to_be_hidden()


def test_a_reload_and_a_restarted_server_lose_no_events(browser_page: BrowserPage, server: Server) -> None:
    run = server.run(kind="write", task=TASK, autonomy="review_all")
    server.wait_for_state(run, "waiting")
    page = browser_page.visit(f"/runs/{run}/timeline")
    timeline = page.locator(".timeline li")
    expect(timeline.last).to_contain_text("waiting: ")
    count = timeline.count()
    page.reload()
    expect(timeline).to_have_count(count)
    server.stop()
    expect(page.get_by_text("This page tries again by itself.")).to_be_visible()
    server.start()
    expect(page.locator("#connection")).to_be_hidden()
    expect(timeline).to_have_count(count)
    page.get_by_role("button", name="Stop the run").click()
    expect(page.locator(".outcome")).to_contain_text("You stopped it")
    browser_page.visit("/")
    expect(page.get_by_text(run, exact=True)).to_be_visible()
