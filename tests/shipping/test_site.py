"""The documentation site is built strictly, and its pictures and code blocks are checked."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
import yaml

from interfaces.cli.golden import GOLDEN, stabilize

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
PICTURE_COLUMNS = 100


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site. A warning is an error: a page outside the menu, or a dead link or anchor."""
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(folder)]
    completed = subprocess.run(
        build,
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.returncode == 0, completed.stdout + completed.stderr
    return folder


def test_every_page_is_in_the_search_index(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text())
    locations = {entry["location"].partition("#")[0] for entry in index["docs"]}
    for page in PAGES:
        if page == ROOT / "README.md":
            continue  # the site has the index page instead
        location = page.relative_to(DOCS if page.is_relative_to(DOCS) else ROOT).with_suffix("").as_posix()
        assert {
            f"{location}/",
            f"{location.removesuffix('README')}",
            f"{location.removesuffix('index')}",
        } & locations, page


def test_no_page_loads_anything_from_another_server(site: Path) -> None:
    for page in site.rglob("*.html"):
        for tag in re.findall(r"<(?:script|link|img|iframe|source)\b[^>]*>", page.read_text("utf-8")):
            address = re.search(r"""(?:src|href)=["']?(?:https?:)?//([^"'\s>]*)""", tag)
            assert address is None or 'rel="canonical"' in tag, f"{page}: {tag}"


@pytest.mark.parametrize("path", sorted((DOCS / "screens").iterdir()), ids=lambda path: path.stem)
def test_a_picture_shows_what_commands_print_today(path: Path) -> None:
    texts = ["".join(node.itertext()) for node in ET.parse(path).iter("{http://www.w3.org/2000/svg}text")]
    golden = (GOLDEN / f"{path.stem}-{PICTURE_COLUMNS}.txt").read_text()
    assert stabilize("\n".join(texts)).split() == golden.split(), "run `python docs/screens.py`"
    assert "http" not in path.read_text().replace("http://www.w3.org/2000/svg", "")


def test_the_first_judgement_of_the_docs_is_what_the_command_prints_today() -> None:
    block = (DOCS / "judge.md").read_text().partition("```text\n")[2].partition("```")[0]
    assert stabilize(block) in (GOLDEN / f"heal-{PICTURE_COLUMNS}.txt").read_text()


def find_code_blocks(kind: str) -> list[Any]:
    """Return every code block of the given language in the pages."""
    found = []
    for page in PAGES:
        for number, (language, text) in enumerate(
            re.findall(r"^```(\w+)\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
        ):
            if language == kind:
                found.append(pytest.param(text, id=f"{page.stem}-{number}"))
    return found


@pytest.mark.parametrize("text", find_code_blocks("toml"))
def test_toml_blocks_are_valid(text: str) -> None:
    assert tomllib.loads(text)


@pytest.mark.parametrize("text", find_code_blocks("yaml"))
def test_yaml_blocks_are_valid(text: str) -> None:
    assert yaml.safe_load(text)


@pytest.mark.parametrize("text", find_code_blocks("json"))
def test_json_blocks_are_valid(text: str) -> None:
    assert json.loads(text)


@pytest.mark.parametrize("text", [*find_code_blocks("sh"), *find_code_blocks("bash")])
def test_shell_blocks_are_valid(text: str) -> None:
    subprocess.run(["bash", "-n"], input=text, text=True, check=True, capture_output=True)


def test_every_language_of_a_code_block_is_known() -> None:
    """`tests/interfaces/cli/test_cli_docs.py` runs the Python blocks and checks the options of the commands.

    Editor configuration (`lua`, `elisp`) has no test, because it needs an editor.
    """
    languages = {
        language for page in PAGES for language in re.findall(r"^```(\w+)\n", page.read_text(), re.MULTILINE)
    }
    assert languages <= {"python", "toml", "yaml", "json", "sh", "bash", "text", "lua", "elisp"}, languages


def test_the_readme_fits_on_one_screen() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 50
