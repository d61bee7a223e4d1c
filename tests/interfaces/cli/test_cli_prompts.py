"""`suture prompts` lists, shows, compares and checks the prompts of the models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from suture.agents import packaged_prompt, packaged_prompt_names

if TYPE_CHECKING:
    from interfaces.cli.conftest import Cli

OWN_PROMPT = """
name: coder
version: 9
templates:
  guard:
    variables: []
    text: Think of empty inputs.
"""


@pytest.fixture
def own_prompt(tmp_path: Path) -> Path:
    """Write a project's own prompt for the coder."""
    path = tmp_path / ".suture" / "prompts" / "coder.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(OWN_PROMPT)
    return path


def test_prompts_list_prints_the_origin_of_each_prompt(cli: Cli, own_prompt: Path) -> None:
    result = cli("prompts", "list")
    assert result.exit_code == 0

    lines = {line.split()[0]: line for line in result.stdout.splitlines()}
    coder = lines["coder"]
    assert coder.split()[:3] == ["coder", "version", "9"]
    assert "coder.yaml" in coder
    assert lines["diagnose"].endswith("packaged")

    rows = json.loads(cli("prompts", "list", "--json").stdout)
    assert [row["name"] for row in rows] == list(lines) == list(packaged_prompt_names())
    assert all(len(row["hash"]) == 64 for row in rows)


def test_prompts_list_says_once_that_the_project_is_not_trusted(cli: Cli, own_prompt: Path) -> None:
    assert cli("prompts", "list").stderr.count("suture trust") == 1


def test_the_output_of_prompts_show_is_a_valid_project_prompt(cli: Cli, tmp_path: Path) -> None:
    result = cli("prompts", "show", "coder")
    assert "text: |\n      Write the Python module" in result.stdout

    path = tmp_path / ".suture" / "prompts" / "coder.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(result.stdout)
    assert cli("prompts", "check").stdout.endswith("coder.yaml: ok\n")

    hashes = [
        json.loads(cli("prompts", "show", "coder", *flags, "--json").stdout)["hash"]
        for flags in ([], ["--packaged"])
    ]
    assert hashes[0] == hashes[1]
    assert "are the same" in cli("prompts", "diff", "coder").stderr


def test_an_own_prompt_replaces_the_packaged_one(cli: Cli, own_prompt: Path) -> None:
    assert "Think of empty inputs." in cli("prompts", "show", "coder").stdout
    assert yaml.safe_load(cli("prompts", "show", "coder").stdout)["templates"].keys() >= {"write", "guard"}
    assert "Think of" not in cli("prompts", "show", "coder", "--packaged").stdout


def test_prompts_diff_compares_with_packaged_and_other_prompts(
    cli: Cli, own_prompt: Path, tmp_path: Path
) -> None:
    changes = cli("prompts", "diff", "coder").stdout
    assert changes.startswith("--- packaged\n")
    assert "+version: 9\n" in changes
    assert "+    text: Think of empty inputs." in changes

    (tmp_path / "old.yaml").write_text(OWN_PROMPT.replace("9", "8"))
    changes = cli("prompts", "diff", "coder", "old.yaml").stdout
    assert [line for line in changes.splitlines() if line[:2] in ("-v", "+v")] == [
        "-version: 8",
        "+version: 9",
    ]


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("coder.yaml", OWN_PROMPT.replace("Think", "Think of $task"), "template 'guard'"),
        ("coder.yaml", "a: [", "is not YAML"),
        ("codr.yaml", OWN_PROMPT, "no role uses it"),
    ],
)
def test_prompts_check_finds_an_unusable_prompt(
    cli: Cli, tmp_path: Path, file: str, text: str, message: str
) -> None:
    path = tmp_path / ".suture" / "prompts" / file
    path.parent.mkdir(parents=True)
    path.write_text(text)
    check = cli("prompts", "check")
    assert check.exit_code == 2
    assert message in check.stderr

    json_check = cli("prompts", "check", "--json")
    assert json_check.exit_code == 2
    assert json.loads(json_check.stdout)["ok"] is False


def test_prompts_check_passes_without_own_prompts(cli: Cli) -> None:
    check = cli("prompts", "check")
    assert (check.exit_code, check.stdout) == (0, "the project has no prompts of its own\n")


def test_an_unknown_role_is_a_usage_error(cli: Cli) -> None:
    result = cli("prompts", "show", "codr")
    assert result.exit_code == 2
    assert "did you mean 'coder'?" in result.stderr


def test_a_setting_names_another_folder_of_prompts(cli: Cli, own_prompt: Path, tmp_path: Path) -> None:
    own_prompt.parent.rename(tmp_path / "wording")
    packaged_version = packaged_prompt("coder").version
    assert json.loads(cli("prompts", "show", "coder", "--json").stdout)["version"] == packaged_version
    result = cli("prompts", "show", "coder", "--json", "--set", "paths.prompts=wording")
    assert json.loads(result.stdout)["version"] == 9
