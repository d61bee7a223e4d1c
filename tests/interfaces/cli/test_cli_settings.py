"""`suture init` and `suture config set` write settings files."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from interfaces.cli.conftest import Cli

TEST_CODE = "def test_add():\n    from adding import add\n\n    assert add(1, 2) == 3\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Create a project with a wrong function and a test."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "adding.py").write_text("def add(a, b):\n    return a - b\n")
    (folder / "test_adding.py").write_text(TEST_CODE)
    return folder


def test_init_finds_the_test_command_and_overwrites_nothing(cli: Cli, project: Path) -> None:
    assert cli("init", str(project)).exit_code == 0
    text = (project / "suture.toml").read_text()
    assert "pytest" in tomllib.loads(text)["project"]["test"]
    second_init = cli("init", str(project))
    assert (second_init.exit_code, (project / "suture.toml").read_text()) == (2, text)
    assert "exists already" in second_init.stderr


def test_init_says_why_it_found_no_test_command(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert cli("init", "empty").exit_code == 0
    text = (tmp_path / "empty" / "suture.toml").read_text()
    assert tomllib.loads(text) == {"project": {}}
    assert "no code to heal" in text
    assert cli("init", "nowhere").exit_code == 2


def test_config_set_changes_one_value_and_keeps_the_rest(cli: Cli, project: Path) -> None:
    file = project / "suture.toml"
    file.write_text("# ours\n[budget]  # small\ntokens = 5\nattempts = 3  # enough\n")

    file.chmod(0o640)

    assert cli("config", "set", "budget.tokens", "70000", "--project", str(project)).exit_code == 0
    assert file.read_text() == "# ours\n[budget]  # small\ntokens = 70000\nattempts = 3  # enough\n"
    assert file.stat().st_mode & 0o777 == 0o640
    assert cli("config", "set", "project.test", "pytest -q", "--project", str(project)).exit_code == 0
    assert tomllib.loads(file.read_text())["project"] == {"test": "pytest -q"}
    assert sorted(path.name for path in project.iterdir()) == ["adding.py", "suture.toml", "test_adding.py"]


def test_config_set_without_a_project_follows_the_link_of_the_users_file(cli: Cli, tmp_path: Path) -> None:
    target = tmp_path / "dotfiles.toml"
    target.write_text("")
    link = tmp_path / ".config" / "suture" / "suture.toml"
    link.parent.mkdir(parents=True)

    link.symlink_to(target)

    assert cli("config", "set", "model.name", "ollama:small").exit_code == 0
    assert tomllib.loads(target.read_text()) == {"model": {"name": "ollama:small"}}
    assert link.is_symlink()
    assert "ollama:small" in cli("config", "show").stdout


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("budget.tokns", "5", "did you mean budget.tokens"),
        ("budget.tokens", "0", "at least 1"),
        ("budget.tokens", "many", "whole number"),
        ("sandbox.backend", "container", "have no say"),
        ("budget", "5", "no setting"),
    ],
)
def test_an_invalid_setting_changes_no_file(
    cli: Cli, project: Path, key: str, value: str, message: str
) -> None:
    refusal = cli("config", "set", key, value, "--project", str(project))
    assert refusal.exit_code == 2
    assert message in refusal.stderr
    assert not (project / "suture.toml").exists()


def test_a_symbolic_link_in_a_project_is_not_followed(cli: Cli, project: Path, tmp_path: Path) -> None:
    outside_file = tmp_path / "elsewhere.toml"
    outside_file.write_text("[tool]\n")
    (project / "suture.toml").symlink_to(outside_file)
    assert cli("config", "set", "budget.tokens", "5", "--project", str(project)).exit_code == 2
    assert cli("init", str(project)).exit_code == 2
    assert outside_file.read_text() == "[tool]\n"


def test_an_empty_test_command_is_refused(cli: Cli, project: Path) -> None:
    refusal = cli("heal", str(project), "--test", "")
    assert refusal.exit_code == 2
    assert "the test command is empty" in refusal.stderr
