"""The documentation as a site: built strictly, from this machine alone, with pictures and blocks."""

from __future__ import annotations

import json
import os
import re
import runpy
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
SCREENS = runpy.run_path(str(DOCS / "screens.py"))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site; a warning is an error: a page outside the menu, a link or an anchor that leads nowhere."""
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(folder)]
    done = subprocess.run(
        build,
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_page_is_in_the_site_and_in_its_search(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text())
    found = {entry["location"].partition("#")[0] for entry in index["docs"]}
    for page in PAGES:
        if page == ROOT / "README.md":
            continue  # on the site the first page stands in its place
        place = page.relative_to(DOCS if page.is_relative_to(DOCS) else ROOT).with_suffix("").as_posix()
        assert {f"{place}/", f"{place.removesuffix('README')}", f"{place.removesuffix('index')}"} & found, (
            page
        )


def test_no_page_asks_another_server_for_anything(site: Path) -> None:
    for page in site.rglob("*.html"):
        for tag in re.findall(r"<(?:script|link|img|iframe|source)\b[^>]*>", page.read_text("utf-8")):
            address = re.search(r"""(?:src|href)=["']?(?:https?:)?//([^"'\s>]*)""", tag)
            assert address is None or 'rel="canonical"' in tag, f"{page}: {tag}"


@pytest.mark.parametrize(("name", "content"), sorted(SCREENS["pictures"]().items()))
def test_a_picture_is_what_a_command_shows(name: str, content: str) -> None:
    path = DOCS / "screens" / name
    assert path.read_text() == content, "run `python docs/screens.py`"
    texts = ["".join(node.itertext()) for node in ET.parse(path).iter("{http://www.w3.org/2000/svg}text")]
    golden = (ROOT / "tests" / "interfaces" / "cli" / "golden" / SCREENS["SCREENS"][path.stem]).read_text()
    assert texts == golden.splitlines()
    assert "http" not in content.replace("http://www.w3.org/2000/svg", "")


def blocks(kind: str) -> list[Any]:
    """Every block of a language in the pages."""
    found = []
    for page in PAGES:
        for number, (language, text) in enumerate(
            re.findall(r"^```(\w+)\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
        ):
            if language == kind:
                found.append(pytest.param(text, id=f"{page.stem}-{number}"))
    return found


@pytest.mark.parametrize("text", blocks("toml"))
def test_toml_in_the_pages_is_toml(text: str) -> None:
    assert tomllib.loads(text)


@pytest.mark.parametrize("text", blocks("yaml"))
def test_yaml_in_the_pages_is_yaml(text: str) -> None:
    assert yaml.safe_load(text)


@pytest.mark.parametrize("text", blocks("json"))
def test_json_in_the_pages_is_json(text: str) -> None:
    assert json.loads(text)


@pytest.mark.parametrize("text", [*blocks("sh"), *blocks("bash")])
def test_shell_in_the_pages_is_shell(text: str) -> None:
    subprocess.run(["bash", "-n"], input=text, text=True, check=True, capture_output=True)


def test_each_language_of_a_block_is_one_that_a_test_looks_at() -> None:
    """`tests/interfaces/cli/test_cli_docs.py` runs the Python and looks up the options of our commands.

    What an editor reads has no test: there is no editor here.
    """
    languages = {
        language for page in PAGES for language in re.findall(r"^```(\w+)\n", page.read_text(), re.MULTILINE)
    }
    assert languages <= {"python", "toml", "yaml", "json", "sh", "bash", "text", "lua", "elisp"}, languages


def test_the_readme_is_one_screen() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 50
