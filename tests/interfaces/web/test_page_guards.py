"""The web page in a real browser: untrusted text, requests of other sites, roles, and accessibility."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]  # it has no types
from playwright.sync_api import Browser, Error, expect

from interfaces.web.real_browser import PATIENCE_MS, SCHEMES, WIDTHS, BrowserPage
from interfaces.web.real_server import Server, write_scripted_model
from interfaces.web.uploaded_projects import write_project

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(300)]
HOSTILE_MARKUP = "<img src=x onerror=\"window.pwned='{}'\"><script>window.pwned='{}'</script>"
REVERSED_TEXT = "\u202eevil"
HOSTILE_FILE_NAME = "<img src=x onerror=pwned()>.py"
"""A file name with markup; the task, a reply and the output of a test contain markup too."""
TASK = f"Write a function double(n). {HOSTILE_MARKUP.replace('{}', 'task')} {REVERSED_TEXT} For example: double(4) == 8"
REPLIES = (
    f"{HOSTILE_MARKUP.replace('{}', 'prose')}\n"
    f"```python\ndef double(n):\n    return '''{HOSTILE_MARKUP.replace('{}', 'reply')}'''\n```",
    "```python\ndef double(n):\n    return 2 * n\n```",
)
HOSTILE_PROJECT = {
    HOSTILE_FILE_NAME: "def total(prices):\n    return sum(prices) + 1\n",
    "test_cart.py": "import importlib.util as u\n\n"
    f"spec = u.spec_from_file_location('cart', {HOSTILE_FILE_NAME!r})\n"
    "cart = u.module_from_spec(spec)\nspec.loader.exec_module(cart)\n\n\n"
    "def test_total():\n"
    f"    print({HOSTILE_MARKUP.replace('{}', 'printed')!r})\n"
    f"    assert cart.total([1, 2]) == 3, {HOSTILE_MARKUP.replace('{}', 'assert')!r}\n",
}
PANELS = ("tests", "timeline", "candidates", "cost", "learning", "graph", "steps", "certificate")
REPORTED_IMPACTS = ("serious", "critical")
expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    """Start a server whose project and replies contain markup."""
    write_project(folder / "projects" / "cart", HOSTILE_PROJECT)
    options = ("--root", str(folder / "projects"), "--model", write_scripted_model(folder, *REPLIES))
    with Server(folder, *options, "--set", "serve.models=none") as started_server:
        yield started_server


@pytest.fixture(scope="module")
def task() -> str:
    return TASK


@pytest.fixture(scope="module")
def hostile_run(server: Server) -> str:
    """Start a run on a project whose file name and test output are markup; it waits before its search."""
    path = str(server.folder / "projects" / "cart")
    run = server.run(kind="heal", path=path, model="none", autonomy="review_all")
    assert server.wait_for_state(run, "waiting", "ended")["state"] == "waiting"
    return run


def test_untrusted_markup_is_shown_as_text(
    browser_page: BrowserPage, server: Server, written_run: str, hostile_run: str
) -> None:
    texts = []
    wrong_candidate = server.get(f"/v1/runs/{written_run}/candidates").json()[0]["candidate"]
    panels = [f"/runs/{run}/{panel}" for run in (written_run, hostile_run) for panel in PANELS]
    for path in (
        "/",
        *panels,
        f"/runs/{written_run}/candidates/{wrong_candidate}",
        f"/runs/{written_run}/tests/{wrong_candidate}",
    ):
        page = browser_page.visit(path)
        page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
        assert page.evaluate("window.pwned") is None
        assert page.locator("main img, main script, main iframe").count() == 0
        texts.append(page.locator("main").inner_text())
        texts += page.locator("textarea").evaluate_all("boxes => boxes.map(box => box.value)")

    text = "\n".join(texts)

    for source in ("task", "reply", "printed", "assert"):
        assert f"<script>window.pwned='{source}'</script>" in text, source
    assert HOSTILE_FILE_NAME in text
    assert "\\u{202e}evil" in text
    assert REVERSED_TEXT not in text


def test_scripts_cannot_insert_markup_or_reach_other_servers(browser: Browser, server: Server) -> None:
    new_page = BrowserPage(browser, server.url)
    page = new_page.visit("/")
    for attempt in ("document.body.innerHTML = '<b>x</b>'", "document.write('x')"):
        with pytest.raises(Error, match="Trusted"):
            page.evaluate(attempt)

    refused = page.evaluate("fetch('https://stranger.invalid/').then(() => 'sent', () => 'refused')")
    assert refused == "refused"

    new_page.close()  # this also asserts that no request left the page


def test_a_visitor_without_a_token_is_asked_for_it(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    server = Server(tmp_path_factory.mktemp("tokens"), "--model", "none")
    token = server.command("token", "add", "anna", "--role", "viewer").stdout.strip()

    with server:
        new_page = BrowserPage(browser, server.url)
        page = new_page.page
        page.goto(f"{server.url}/")
        expect(page.get_by_role("heading", name="Token required")).to_be_visible()
        page.get_by_label("Token").fill("sut_wrong")
        page.get_by_role("button", name="Continue").click()
        expect(page.get_by_role("alert")).to_contain_text("This token is unknown")
        page.get_by_label("Token").fill(token)
        page.keyboard.press("Enter")
        expect(page.get_by_text("anna (viewer)")).to_be_visible()
        expect(page.get_by_text("No runs yet.")).to_be_visible()
        expect(new_page.visit("/new").get_by_text("Starting runs requires the role runner.")).to_be_visible()
        assert token not in page.url
        assert page.evaluate("[document.cookie, localStorage.length]") == ["", 0]

        page.reload()
        expect(page.get_by_text("anna (viewer)")).to_be_visible()
        other_tab = page.context.new_page()  # another tab does not have the token
        other_tab.goto(f"{server.url}/")
        expect(other_tab.get_by_role("heading", name="Token required")).to_be_visible()
        new_page.close()

    assert token not in server.read_stderr()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_page_is_accessible_and_fits_its_width(
    browser: Browser, server: Server, written_run: str, hostile_run: str, scheme: str, width: int
) -> None:
    options = {"color_scheme": scheme, "viewport": {"width": width, "height": 900}}
    new_page = BrowserPage(browser, server.url, **options)
    violations = []
    runs = [(f"/runs/{written_run}/{panel}", panel) for panel in PANELS]
    waiting = [(f"/runs/{hostile_run}", "waiting")]
    other_pages = [
        ("/", "runs"),
        ("/new", "new"),
        ("/judge", "judge"),
        ("/totals", "totals"),
        (f"/compare/{written_run}/{hostile_run}", "compare"),
    ]
    for path, name in (*other_pages, *runs, *waiting, ("/runs/20260101-000000000-abcdef", "fault")):
        page = new_page.visit(path)
        new_page.save_screenshot(f"{name}-{scheme}-{width}")
        for violation in Axe().run(page).response["violations"]:
            if violation["impact"] in REPORTED_IMPACTS:
                violations.append((name, violation["id"], [node["html"] for node in violation["nodes"]]))
        page_width = page.evaluate("document.documentElement.scrollWidth")
        assert page_width <= width, (name, page_width)

    new_page.close()

    assert violations == []
