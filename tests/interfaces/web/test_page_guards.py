"""The page in a real browser: untrusted text, requests of other sites, roles, and accessibility."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]  # it has no types
from playwright.sync_api import Browser, Error, expect

from interfaces.web.real_browser import PATIENCE_MS, SCHEMES, WIDTHS, Opened
from interfaces.web.real_server import Server, scripted
from interfaces.web.uploaded_projects import laid

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(300)]
EVIL = "<img src=x onerror=\"window.pwned='{}'\"><script>window.pwned='{}'</script>"
TURNED = "\u202eevil"
NAME = "<img src=x onerror=pwned()>.py"
"""A file's name; a task in words, a reply and what a test prints hold the like."""
TASK = f"Write a function double(n). {EVIL.replace('{}', 'task')} {TURNED} For example: double(4) == 8"
REPLIES = (
    f"{EVIL.replace('{}', 'prose')}\n"
    f"```python\ndef double(n):\n    return '''{EVIL.replace('{}', 'reply')}'''\n```",
    "```python\ndef double(n):\n    return 2 * n\n```",
)
PRINTING = {
    NAME: "def total(prices):\n    return sum(prices) + 1\n",
    "test_cart.py": "import importlib.util as u\n\n"
    f"spec = u.spec_from_file_location('cart', {NAME!r})\n"
    "cart = u.module_from_spec(spec)\nspec.loader.exec_module(cart)\n\n\n"
    "def test_total():\n"
    f"    print({EVIL.replace('{}', 'printed')!r})\n"
    f"    assert cart.total([1, 2]) == 3, {EVIL.replace('{}', 'assert')!r}\n",
}
PANELS = ("", "candidates", "code", "tests", "learning", "performance", "graph", "review", "proof", "steps")
WORST = ("serious", "critical")
expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    laid(folder / "projects" / "cart", PRINTING)
    options = ("--root", str(folder / "projects"), "--model", scripted(folder, *REPLIES))
    with Server(folder, *options, "--set", "serve.models=none") as running:
        yield running


@pytest.fixture(scope="module")
def task() -> str:
    return TASK


@pytest.fixture(scope="module")
def printing(server: Server) -> str:
    """Of a project whose file's name and whose tests' output are markup; it waits before its search."""
    path = str(server.folder / "projects" / "cart")
    run = server.run(kind="heal", path=path, model="none", autonomy="review_all")
    assert server.until(run, "waiting", "ended")["state"] == "waiting"
    return run


@pytest.fixture
def opened(browser: Browser, server: Server) -> Iterator[Opened]:
    one = Opened(browser, server.url)
    yield one
    one.close()


def test_markup_of_strangers_is_text(opened: Opened, server: Server, written: str, printing: str) -> None:
    shown = []
    wrong = server.get(f"/v1/runs/{written}/candidates").json()[0]["candidate"]
    panels = [f"/runs/{run}/{panel}" for run in (written, printing) for panel in PANELS]
    for path in ("/", *panels, f"/runs/{written}/code/{wrong}", f"/runs/{written}/tests/{wrong}"):
        page = opened.go(path)
        page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
        assert page.evaluate("window.pwned") is None
        assert page.locator("main img, main script, main iframe").count() == 0
        shown.append(page.locator("main").inner_text())
        shown += [box.input_value() for box in page.locator("textarea").all()]
    text = "\n".join(shown)
    for whence in ("task", "reply", "printed", "assert"):
        assert f"<script>window.pwned='{whence}'</script>" in text, whence
    assert NAME in text
    assert "\\u{202e}evil" in text
    assert TURNED not in text


def test_no_script_can_make_markup_or_reach_elsewhere(browser: Browser, server: Server) -> None:
    one = Opened(browser, server.url)
    page = one.go("/")
    for attempt in ("document.body.innerHTML = '<b>x</b>'", "document.write('x')"):
        with pytest.raises(Error, match="Trusted"):
            page.evaluate(attempt)
    refused = page.evaluate("fetch('https://stranger.invalid/').then(() => 'sent', () => 'refused')")
    assert refused == "refused"
    one.close()  # and nothing of it had even been asked for


def test_whoever_has_no_token_is_asked_for_it(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    server = Server(tmp_path_factory.mktemp("tokens"), "--model", "none")
    token = server.command("token", "add", "anna", "--role", "viewer").stdout.strip()
    with server:
        one = Opened(browser, server.url)
        page = one.page
        page.goto(f"{server.url}/")
        expect(page.get_by_role("heading", name="Token required")).to_be_visible()
        page.get_by_label("Token").fill("sut_wrong")
        page.get_by_role("button", name="Continue").click()
        expect(page.get_by_role("alert")).to_contain_text("this token is unknown")
        page.get_by_label("Token").fill(token)
        page.keyboard.press("Enter")
        expect(page.get_by_text("anna (viewer)")).to_be_visible()
        expect(page.get_by_text("No runs yet.")).to_be_visible()
        expect(one.go("/new").get_by_text("Starting runs requires the role runner.")).to_be_visible()
        assert token not in page.url
        assert page.evaluate("[document.cookie, localStorage.length]") == ["", 0]
        page.reload()
        expect(page.get_by_text("anna (viewer)")).to_be_visible()
        other = page.context.new_page()  # another tab knows nothing of it
        other.goto(f"{server.url}/")
        expect(other.get_by_role("heading", name="Token required")).to_be_visible()
        one.close()
    assert token not in server.words()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_everybody_can_read_it(
    browser: Browser, server: Server, written: str, printing: str, scheme: str, width: int
) -> None:
    options = {"color_scheme": scheme, "viewport": {"width": width, "height": 900}}
    one = Opened(browser, server.url, **options)
    found = []
    runs = [(f"/runs/{written}/{panel}", panel or "timeline") for panel in PANELS]
    waiting = [(f"/runs/{printing}/review", "waiting"), (f"/runs/{printing}/tests", "failing")]
    others = [
        ("/", "runs"),
        ("/new", "new"),
        ("/totals", "totals"),
        (f"/compare/{written}/{printing}", "compare"),
    ]
    for path, name in (*others, *runs, *waiting, ("/runs/20260101-000000000-abcdef", "fault")):
        page = one.go(path)
        one.shot(f"{name}-{scheme}-{width}")
        for fault in Axe().run(page).response["violations"]:
            if fault["impact"] in WORST:
                found.append((name, fault["id"], [node["html"] for node in fault["nodes"]]))
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, (name, wide)
    one.close()
    assert found == []
