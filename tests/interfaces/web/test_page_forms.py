"""The web page in a real browser: uploading an archive, filling in every field, lessons and reports."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import FilePayload, expect

from bench.made_rows import make_benchmark_rows, write_rows
from interfaces.web.real_browser import PATIENCE_MS, BrowserPage
from interfaces.web.real_server import CORRECT_REPLY, Server, write_scripted_model
from interfaces.web.uploaded_projects import BROKEN_PROJECT, zip_project
from project_runs import CHANGE, add_healed_run
from suture.core.ledger import Ledger, RunFolder, kinds, read_ledger
from suture.core.records import Candidate

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(300)]
WRONG_REPLY = "```python\ndef double(n):\n    return 4 * n\n```"
LESSONS = json.dumps(
    {"lessons": ["Double means <b>twice</b>, not four times.", "Look at the example first."]}
)
RECIPE = """
name = "learning"
summary = "One candidate, lessons, another one."
samples = 1
repair_opening = true
repair_width = 1
repair_rounds = 3

[helpers]
lessons = true
"""
expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    """Start a server whose recipe draws lessons."""
    recipe = folder / "learning.toml"
    recipe.write_text(RECIPE)
    options = (
        "--model",
        write_scripted_model(folder, WRONG_REPLY, LESSONS, CORRECT_REPLY),
        "--set",
        f"loop.recipe={recipe}",
    )
    with Server(folder, *options, "--set", "serve.git=https://git.example.com/team/") as started_server:
        yield started_server


def test_a_run_in_a_folder_that_is_not_served_says_how_to_apply_it(
    browser_page: BrowserPage, server: Server
) -> None:
    run = RunFolder(server.home / "runs" / add_healed_run(server.folder / "outside", server.home, CHANGE))
    candidate = Candidate(files=CHANGE, origin="sample")
    blob = run.save_record(candidate)
    proposal = kinds.CandidateProposed(candidate=candidate.hash, blob=blob, origin="sample")
    with Ledger(run.ledger_path) as ledger:
        end = read_ledger(run.ledger_path).events[-1].payload
        ledger.append_all([proposal, proposal, end])

    page = browser_page.visit(f"/runs/{run.id}/candidates")

    expect(page.locator(".acts + .hint")).to_contain_text(f"run in that folder: suture apply {run.id}")
    expect(page.get_by_role("button", name="Apply", exact=True)).to_have_count(0)
    expect(page.get_by_text("1 more reply brought no new code.")).to_be_visible()


def test_an_archive_can_be_uploaded_and_healed(browser_page: BrowserPage) -> None:
    page = browser_page.visit("/new")
    page.get_by_text("Repair a project").click()
    page.get_by_text("Options:").click()
    page.get_by_label("Recipe").select_option("adaptive")
    page.get_by_label("Model").select_option("none")
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_role("alert")).to_contain_text("Choose an archive first.")
    damaged_upload = FilePayload(name="cart.zip", mimeType="application/zip", buffer=b"PK\x03\x04 is no zip")
    page.get_by_label("Archive", exact=True).set_input_files(damaged_upload)
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_role("alert")).to_contain_text("The archive cannot be read")
    valid_upload = FilePayload(
        name="cart.zip", mimeType="application/zip", buffer=zip_project(BROKEN_PROJECT)
    )
    page.get_by_label("Archive", exact=True).set_input_files(valid_upload)
    page.get_by_role("button", name="Start").click()
    page.wait_for_url(re.compile("#/runs/"))
    expect(page.locator(".outcome")).to_contain_text("Healed")
    expect(page.locator("td.gone")).to_have_text("-    return sum(prices) + 1")
    browser_page.save_screenshot("archive-healed")


def test_every_field_of_the_heal_form_is_sent(browser_page: BrowserPage) -> None:
    page = browser_page.visit("/new")
    page.get_by_text("Repair a project").click()
    page.get_by_text("Options:").click()
    page.get_by_label("Project", exact=True).select_option("git")
    expect(page.get_by_text("It must start with https://git.example.com/team/.")).to_be_visible()
    for label, text in (
        ("Git URL", "https://git.example.com/other/shop"),
        ("Branch or tag", "v1"),
        ("Test command", "pytest"),
        ("What is wrong?", "prices are off by one"),
        ("Files that may change", "shop/*.py, cart.py"),
        ("Files that must not change", "*.lock"),
        ("Max money", "0.25"),
        ("Max attempts", "3"),
    ):
        page.get_by_label(label).fill(text)
    with page.expect_request("**/v1/runs") as request:
        page.get_by_role("button", name="Start").click()
    expect(page.get_by_role("alert")).to_contain_text("This git URL is not allowed")
    expected = {
        "kind": "heal",
        "git": "https://git.example.com/other/shop",
        "ref": "v1",
        "test": "pytest",
        "only": ["shop/*.py", "cart.py"],
        "protect": ["*.lock"],
        "bug_report": "prices are off by one",
        "money": 0.25,
        "attempts": 3,
    }
    assert request.value.post_data_json == expected

    page.get_by_label("Broken since").fill("HEAD~3")
    with page.expect_request("**/v1/runs") as request:
        page.get_by_role("button", name="Start").click()
    assert request.value.post_data_json == {**expected, "since": "HEAD~3"}

    # The message stands at the field, and names it as the form does.
    expect(page.get_by_role("alert")).to_contain_text("\u201cBroken since\u201d needs a history")
    expect(page.get_by_label("Broken since")).to_be_focused()
    expect(page.get_by_label("Broken since")).to_have_attribute("aria-invalid", "true")
    browser_page.save_screenshot("form")


def test_the_lessons_of_a_run_are_shown(browser_page: BrowserPage, written_run: str) -> None:
    page = browser_page.visit(f"/runs/{written_run}/learning")
    expect(page.get_by_text("Double means <b>twice</b>, not four times.")).to_be_visible()
    expect(page.get_by_text("Look at the example first.")).to_be_visible()
    browser_page.save_screenshot("lessons")


def test_the_report_of_a_benchmark_is_shown(browser_page: BrowserPage, server: Server) -> None:
    write_rows(server.home / "benchmarks" / "small", make_benchmark_rows(tasks=6))
    page = browser_page.visit("/benchmarks")
    page.get_by_role("link", name="small").click()
    expect(page.get_by_role("heading", name="Benchmark small")).to_be_visible()
    expect(page.get_by_role("table", name="Paired tests")).to_contain_text("adaptive")
    browser_page.save_screenshot("benchmark")
