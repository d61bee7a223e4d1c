"""The page in a real browser: uploading an archive, filling in every field, reading lessons and reports."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, FilePayload, expect

from bench.made_rows import benchmark_rows, write_rows
from interfaces.web.real_browser import PATIENCE_MS, Opened
from interfaces.web.real_server import RIGHT, Server, scripted
from interfaces.web.uploaded_projects import BROKEN, zipped

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(300)]
WRONG = "```python\ndef double(n):\n    return 4 * n\n```"
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
    recipe = folder / "learning.toml"
    recipe.write_text(RECIPE)
    options = ("--model", scripted(folder, WRONG, LESSONS, RIGHT), "--set", f"loop.recipe={recipe}")
    with Server(folder, *options, "--set", "serve.git=https://git.example.com/team/") as running:
        yield running


@pytest.fixture
def opened(browser: Browser, server: Server) -> Iterator[Opened]:
    one = Opened(browser, server.url)
    yield one
    one.close()


def test_an_archive_is_sent_and_healed(opened: Opened) -> None:
    page = opened.go("/new")
    page.get_by_label("Kind of run").select_option("heal")
    page.get_by_label("Recipe").select_option("adaptive")
    page.get_by_label("Model").select_option("none")
    bad = FilePayload(name="cart.zip", mimeType="application/zip", buffer=b"PK\x03\x04 is no zip")
    page.get_by_label("Or an archive").set_input_files(bad)
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_role("alert")).to_contain_text("the archive cannot be read")
    good = FilePayload(name="cart.zip", mimeType="application/zip", buffer=zipped(BROKEN))
    page.get_by_label("Or an archive").set_input_files(good)
    page.get_by_role("button", name="Start").click()
    page.wait_for_url(re.compile("#/runs/"))
    expect(page.locator(".badge")).to_have_text("healed")
    page.get_by_role("link", name="Code").click()
    expect(page.locator("td.gone")).to_have_text("-    return sum(prices) + 1")
    opened.shot("archive-healed")


def test_every_field_of_a_repair_arrives(opened: Opened) -> None:
    page = opened.go("/new")
    page.get_by_label("Kind of run").select_option("heal")
    expect(page.get_by_text("It must start with https://git.example.com/team/.")).to_be_visible()
    for label, text in (
        ("Or a git URL", "https://git.example.com/other/shop"),
        ("Branch or tag", "v1"),
        ("Test command", "pytest"),
        ("Files that may change", "shop/*.py, cart.py"),
        ("Files that must not change", "*.lock"),
        ("Max money", "0.25"),
        ("Max attempts", "3"),
    ):
        page.get_by_label(label).fill(text)
    with page.expect_request("**/v1/runs") as asked:
        page.get_by_role("button", name="Start").click()
    expect(page.get_by_role("alert")).to_contain_text("this git URL is not allowed")
    wanted = {
        **{"kind": "heal", "git": "https://git.example.com/other/shop", "ref": "v1", "test": "pytest"},
        **{
            "only": ["shop/*.py", "cart.py"],
            "protect": ["*.lock"],
            "bug_report": "",
            "money": 0.25,
            "attempts": 3,
        },
    }
    assert asked.value.post_data_json == wanted
    page.get_by_label("Broken since").fill("HEAD~3")
    with page.expect_request("**/v1/runs") as asked:
        page.get_by_role("button", name="Start").click()
    assert asked.value.post_data_json == {**wanted, "since": "HEAD~3"}
    expect(page.get_by_role("alert")).to_contain_text("needs a history")
    opened.shot("form")


def test_the_lessons_of_a_run_are_read(opened: Opened, written: str) -> None:
    page = opened.go(f"/runs/{written}/learning")
    expect(page.get_by_text("Double means <b>twice</b>, not four times.")).to_be_visible()
    expect(page.get_by_text("Look at the example first.")).to_be_visible()
    opened.shot("lessons")


def test_the_report_of_a_benchmark_is_read(opened: Opened, server: Server) -> None:
    write_rows(server.home / "benchmarks" / "small", benchmark_rows(tasks=6))
    page = opened.go("/benchmarks")
    page.get_by_role("link", name="small").click()
    expect(page.get_by_role("heading", name="Benchmark small")).to_be_visible()
    expect(page.get_by_role("table", name="Paired tests")).to_contain_text("adaptive")
    opened.shot("benchmark")
