"""`suture init` and `suture config set` write settings files for the user."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from interfaces.cli.conftest import Cli

TEST = "def test_add():\n    from adding import add\n\n    assert add(1, 2) == 3\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "adding.py").write_text("def add(a, b):\n    return a - b\n")
    (folder / "test_adding.py").write_text(TEST)
    return folder


def test_init_finds_the_test_command_and_overwrites_nothing(cli: Cli, project: Path) -> None:
    assert cli("init", str(project)).exit_code == 0
    text = (project / "suture.toml").read_text()
    assert "pytest" in tomllib.loads(text)["project"]["test"]
    again = cli("init", str(project))
    assert (again.exit_code, (project / "suture.toml").read_text()) == (2, text)
    assert "exists already" in again.stderr


def test_init_says_why_it_found_no_test_command(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert cli("init", "empty").exit_code == 0
    text = (tmp_path / "empty" / "suture.toml").read_text()
    assert tomllib.loads(text) == {"project": {}}
    assert "no Python code to heal" in text
    assert cli("init", "nowhere").exit_code == 2


def test_a_value_is_written_and_the_rest_of_the_file_stays(cli: Cli, project: Path) -> None:
    file = project / "suture.toml"
    file.write_text("# ours\n[budget]  # small\ntokens = 5\nattempts = 3  # enough\n")
    file.chmod(0o640)
    assert cli("config", "set", "budget.tokens", "70000", "--project", str(project)).exit_code == 0
    assert file.read_text() == "# ours\n[budget]  # small\ntokens = 70000\nattempts = 3  # enough\n"
    assert file.stat().st_mode & 0o777 == 0o640
    assert cli("config", "set", "project.test", "pytest -q", "--project", str(project)).exit_code == 0
    assert tomllib.loads(file.read_text())["project"] == {"test": "pytest -q"}
    assert sorted(path.name for path in project.iterdir()) == ["adding.py", "suture.toml", "test_adding.py"]


def test_without_a_project_it_is_the_users_own_file_through_a_link_too(cli: Cli, tmp_path: Path) -> None:
    kept = tmp_path / "dotfiles.toml"
    kept.write_text("")
    place = tmp_path / ".config" / "suture" / "suture.toml"
    place.parent.mkdir(parents=True)
    place.symlink_to(kept)
    assert cli("config", "set", "model.name", "ollama:small").exit_code == 0
    assert tomllib.loads(kept.read_text()) == {"model": {"name": "ollama:small"}}
    assert place.is_symlink()
    assert "ollama:small" in cli("config", "show").stdout


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("budget.tokns", "5", "did you mean budget.tokens"),
        ("budget.tokens", "0", "at least 1"),
        ("budget.tokens", "many", "whole number"),
        ("sandbox.backend", "container", "have no say"),
        ("budget", "5", "no setting"),
    ],
)
def test_what_cannot_be_set_changes_no_file(cli: Cli, project: Path, key: str, value: str, says: str) -> None:
    refused = cli("config", "set", key, value, "--project", str(project))
    assert refused.exit_code == 2
    assert says in refused.stderr
    assert not (project / "suture.toml").exists()


def test_a_link_in_a_project_leads_nowhere(cli: Cli, project: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.toml"
    elsewhere.write_text("[tool]\n")
    (project / "suture.toml").symlink_to(elsewhere)
    assert cli("config", "set", "budget.tokens", "5", "--project", str(project)).exit_code == 2
    assert cli("init", str(project)).exit_code == 2
    assert elsewhere.read_text() == "[tool]\n"


def test_an_empty_test_command_is_refused(cli: Cli, project: Path) -> None:
    refused = cli("heal", str(project), "--test", "")
    assert refused.exit_code == 2
    assert "the test command is empty" in refused.stderr
