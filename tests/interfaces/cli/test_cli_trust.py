"""`suture trust`, and the commands that run in a project that is not trusted."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from interfaces.cli.conftest import Cli, Suture
from suture.interfaces.cli.setup import trust_command


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Create a project whose settings and `.env` need the user's trust."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "a.py").write_text("def f():\n    return 1\n")
    (folder / "test_a.py").write_text("from a import f\n\n\ndef test_f():\n    assert f() == 2\n")
    (folder / "suture.toml").write_text(
        '[model]\nbase_url = "http://u:pw@elsewhere.test"\n[budget]\ntokens = 7\n'
    )
    (folder / ".env").write_text("OPENAI_API_KEY=sk-theirs\n")
    return folder


def test_an_untrusted_project_cannot_be_healed_but_can_be_inspected(
    suture: Suture, project: Path, home: Path
) -> None:
    refusal = suture("heal", str(project), "--model", "scripted:example")
    assert refusal.returncode == 2
    assert "budget.tokens" in refusal.stderr
    assert f"suture trust {project}" in refusal.stderr
    assert not (home / "runs").exists()

    for command in (("history",), ("config", "show")):
        inspection = suture(*command, cwd=project)
        assert inspection.returncode == 0, inspection.stderr
    assert "has no say in" in inspection.stderr.replace("have no say in", "has no say in")


def test_trust_can_be_given_listed_and_revoked(suture: Suture, project: Path) -> None:
    refusal = suture("trust", str(project))
    assert (refusal.returncode, "cannot ask without a terminal" in refusal.stderr) == (2, True)
    assert "budget.tokens" in refusal.stdout
    assert "60000" in refusal.stdout
    assert "pw" not in refusal.stdout
    assert "sk-theirs" not in refusal.stdout
    assert suture("trust", "--list").stdout.strip() == "no project is trusted"

    answer = json.loads(suture("trust", str(project), "--yes", "--json").stdout)
    assert answer["trusted"]
    assert {setting["key"] for setting in answer["settings"]} == {
        "model.base_url",
        "budget.tokens",
        "keys.openai",
    }
    assert suture("trust", "--list").stdout.split() == [str(project), "trusted"]
    settings = json.loads(suture("config", "show", "--json", cwd=project).stdout)
    assert settings["budget.tokens"]["value"] == "7"

    (project / "suture.toml").write_text("[budget]\ntokens = 999999\n")
    assert "its files have changed" in suture("trust", "--list").stdout
    settings = json.loads(suture("config", "show", "--json", cwd=project).stdout)
    assert settings["budget.tokens"]["value"] == "60000"
    assert suture("trust", "--revoke", str(project)).returncode == 0
    assert suture("trust", "--list").stdout.strip() == "no project is trusted"


RECIPE = "summary = 'ours'\nmax_rounds = 1\n"
REPLIES = "- one\n"
NAMED_FILES = {
    "loop.recipe": ("[loop]\nrecipe = 'way.toml'\n", "way.toml", RECIPE),
    "a recipe with a comma": ("[loop]\nrecipe = 'a,way.toml'\n", "a,way.toml", RECIPE),
    "model.name": ("[model]\nname = 'scripted:sub/said.yaml'\n", "sub/said.yaml", REPLIES),
    "model.fallbacks": ("[model]\nfallbacks = ['ollama:x', 'scripted:said.yaml']\n", "said.yaml", REPLIES),
    "models.critic": ("[models]\ncritic = 'scripted:said.yaml'\n", "said.yaml", REPLIES),
    "weights": ("[model]\nname = 'huggingface:weights'\n", "weights/config.json", "{}"),
    "paths.prompts": ("[paths]\nprompts = 'own'\n", "own/coder.yaml", "system: x\n"),
    "LLM_MODEL": ("LLM_MODEL=scripted:said.yaml\nLLM_PROVIDER=openai\n", "said.yaml", REPLIES),
}


CHANGES = [(name, "changed") for name in NAMED_FILES] + [
    ("loop.recipe", other_change) for other_change in ("removed", "a link", "later")
]


def test_json_output_of_trust_shows_the_settings_on_stderr_before_it_asks(
    suture: Suture, project: Path
) -> None:
    refusal = suture("trust", str(project), "--json")
    assert (refusal.returncode, "cannot ask without a terminal" in refusal.stderr) == (2, True)
    assert "budget.tokens" in refusal.stderr
    assert "budget.tokens" not in refusal.stdout


@pytest.mark.parametrize("answer", ["y", "n"])
def test_the_question_of_trust_leaves_stdout_to_the_json(
    answer: str, cli: Cli, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trust_command, "stdin_is_terminal", lambda: True)
    result = cli("trust", str(project), "--json", stdin=f"{answer}\n")
    assert "Let Suture use these settings of" in result.stderr
    assert "budget.tokens" in result.stderr
    if answer == "y":
        assert json.loads(result.stdout)["trusted"]
    else:
        assert result.exit_code == 2


@pytest.mark.parametrize(("name", "change"), CHANGES)
def test_a_changed_file_that_settings_name_ends_trust(
    suture: Suture, tmp_path: Path, name: str, change: str
) -> None:
    settings, file, content = NAMED_FILES[name]
    project, other_folder = tmp_path / "named", tmp_path / "elsewhere"
    project.mkdir()
    (project / (".env" if "=o" in settings else "suture.toml")).write_text(settings)
    target = project / file
    target.parent.mkdir(exist_ok=True)
    if change != "later":
        target.write_text(content)
    other_folder.mkdir()
    answer = suture("trust", str(project), "--yes", cwd=other_folder)
    assert answer.returncode == 0, answer.stderr
    assert suture("trust", "--list").stdout.split()[1:] == ["trusted"]

    if change in ("removed", "a link"):
        target.unlink()
    if change == "a link":
        (tmp_path / "other").write_text(f"{content}# and more\n")
        target.symlink_to(tmp_path / "other")
    elif change != "removed":
        target.write_text(f"{content}# and more\n")
    assert "its files have changed" in suture("trust", "--list").stdout

    (project / "a.py").write_text("def f():\n    return 1\n")
    refusal = suture("heal", str(project), cwd=other_folder)
    assert (refusal.returncode, "needs your trust" in refusal.stderr) == (2, True)


def test_paths_in_project_settings_are_relative_to_the_project(
    suture: Suture, sandbox: None, tmp_path: Path, project: Path
) -> None:
    (project / ".env").unlink()
    (project / "suture.toml").write_text(
        "[loop]\nrecipe = 'way.toml'\n[model]\nname = 'scripted:said.yaml'\n"
    )
    (project / "way.toml").write_text("max_rounds = 1\n")
    (project / "said.yaml").write_text("- no code\n")
    (tmp_path / "way.toml").write_text("this is the current folder's\n")
    (tmp_path / "said.yaml").write_text("{}")
    assert suture("trust", str(project), "--yes", cwd=tmp_path).returncode == 0

    result = suture("heal", str(project), "--json", cwd=tmp_path)
    assert json.loads(result.stdout)["outcome"] == "not_healed", result.stderr


def test_files_too_large_to_hash_are_not_trusted(suture: Suture, project: Path) -> None:
    (project / "suture.toml").write_text("[model]\nname = 'huggingface:weights'\n")
    (project / "weights").mkdir()
    with (project / "weights" / "model.safetensors").open("wb") as file:
        file.truncate(2**33)
    refusal = suture("trust", str(project), "--yes")
    assert (refusal.returncode, "too large to be trusted" in refusal.stderr) == (2, True)


def test_trust_refuses_exclusive_options_and_reports_nothing_to_trust(suture: Suture, tmp_path: Path) -> None:
    assert suture("trust", "--list", "--revoke").returncode == 2
    (tmp_path / "calm").mkdir()
    (tmp_path / "calm" / "suture.toml").write_text("[loop]\nsamples = 2\n")
    assert "nothing to trust" in suture("trust", "calm").stdout
    assert suture("trust", "nowhere").returncode == 2


@pytest.mark.parametrize("name", ["typer", "tomllib", "pydantic", "difflib"])
def test_a_module_in_the_project_does_not_shadow_an_imported_module(
    environ: dict[str, str], project: Path, name: str
) -> None:
    (project / f"{name}.py").write_text(f"open({str(project / 'it ran')!r}, 'w')\nraise SystemExit(9)\n")
    result = subprocess.run(
        [sys.executable, "-m", "suture.interfaces.cli", "config", "show"],
        env=environ,
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )

    assert result.returncode == 0, result.stderr
    assert not (project / "it ran").exists()
