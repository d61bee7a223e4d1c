"""`suture prompts`: list, show, compare and check the prompts of the models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from suture.agents import packaged_prompt, packaged_prompt_names

if TYPE_CHECKING:
    from interfaces.cli.conftest import Cli

OWN = """
name: coder
version: 9
templates:
  guard:
    variables: []
    text: Think of empty inputs.
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A project's own prompt for the coder."""
    path = tmp_path / ".suture" / "prompts" / "coder.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(OWN)
    return path


def test_the_list_says_where_each_prompt_comes_from(cli: Cli, own: Path) -> None:
    listed = cli("prompts", "list")
    assert listed.exit_code == 0
    lines = {line.split()[0]: line for line in listed.stdout.splitlines()}
    coder = lines["coder"]
    assert coder.split()[:3] == ["coder", "version", "9"]
    assert "coder.yaml" in coder
    assert lines["diagnose"].endswith("packaged")
    rows = json.loads(cli("prompts", "list", "--json").stdout)
    assert [row["name"] for row in rows] == list(lines) == list(packaged_prompt_names())
    assert all(len(row["hash"]) == 64 for row in rows)


def test_the_list_mentions_once_that_the_project_is_not_trusted(cli: Cli, own: Path) -> None:
    assert cli("prompts", "list").stderr.count("suture trust") == 1


def test_a_shown_prompt_can_be_put_into_a_project_unchanged(cli: Cli, tmp_path: Path) -> None:
    shown = cli("prompts", "show", "coder")
    assert "text: |\n      Write the Python module" in shown.stdout
    path = tmp_path / ".suture" / "prompts" / "coder.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(shown.stdout)
    assert cli("prompts", "check").stdout.endswith("coder.yaml: ok\n")
    hashes = [
        json.loads(cli("prompts", "show", "coder", *flags, "--json").stdout)["hash"]
        for flags in ([], ["--packaged"])
    ]
    assert hashes[0] == hashes[1]
    assert "are the same" in cli("prompts", "diff", "coder").stderr


def test_an_own_prompt_is_shown_and_the_packaged_one_on_request(cli: Cli, own: Path) -> None:
    assert "Think of empty inputs." in cli("prompts", "show", "coder").stdout
    assert yaml.safe_load(cli("prompts", "show", "coder").stdout)["templates"].keys() >= {"write", "guard"}
    assert "Think of" not in cli("prompts", "show", "coder", "--packaged").stdout


def test_the_difference_to_packaged_and_other_prompts(cli: Cli, own: Path, tmp_path: Path) -> None:
    changes = cli("prompts", "diff", "coder").stdout
    assert changes.startswith("--- packaged\n")
    assert "+version: 9\n" in changes
    assert "+    text: Think of empty inputs." in changes
    (tmp_path / "old.yaml").write_text(OWN.replace("9", "8"))
    changes = cli("prompts", "diff", "coder", "old.yaml").stdout
    assert [line for line in changes.splitlines() if line[:2] in ("-v", "+v")] == [
        "-version: 8",
        "+version: 9",
    ]


@pytest.mark.parametrize(
    ("file", "text", "says"),
    [
        ("coder.yaml", OWN.replace("Think", "Think of $task"), "template 'guard'"),
        ("coder.yaml", "a: [", "is not YAML"),
        ("codr.yaml", OWN, "no role uses it"),
    ],
)
def test_a_prompt_that_cannot_be_used_is_found(
    cli: Cli, tmp_path: Path, file: str, text: str, says: str
) -> None:
    path = tmp_path / ".suture" / "prompts" / file
    path.parent.mkdir(parents=True)
    path.write_text(text)
    checked = cli("prompts", "check")
    assert checked.exit_code == 2
    assert says in checked.stderr
    answered = cli("prompts", "check", "--json")
    assert answered.exit_code == 2
    assert json.loads(answered.stdout)["ok"] is False


def test_check_passes_without_own_prompts(cli: Cli) -> None:
    checked = cli("prompts", "check")
    assert (checked.exit_code, checked.stdout) == (0, "the project has no prompts of its own\n")


def test_a_role_that_is_none_is_a_usage_error(cli: Cli) -> None:
    shown = cli("prompts", "show", "codr")
    assert shown.exit_code == 2
    assert "did you mean 'coder'?" in shown.stderr


def test_another_folder_of_prompts_can_be_named(cli: Cli, own: Path, tmp_path: Path) -> None:
    own.parent.rename(tmp_path / "wording")
    ours = packaged_prompt("coder").version
    assert json.loads(cli("prompts", "show", "coder", "--json").stdout)["version"] == ours
    shown = cli("prompts", "show", "coder", "--json", "--set", "paths.prompts=wording")
    assert json.loads(shown.stdout)["version"] == 9
