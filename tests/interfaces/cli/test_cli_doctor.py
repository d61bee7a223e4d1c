"""`suture doctor` and `suture models`: what is installed, what is missing, how to get it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from suture.interfaces.cli.setup.models_command import show_download
from suture.models.weights.model_catalogue import find_catalogue_entry
from suture.models.weights.weights_cache import write_stamp

Cli = Callable[..., Result]


def rows(result: Result) -> dict[str, dict[str, str | bool]]:
    return {row["name"]: row for row in json.loads(result.stdout)}


def test_a_model_that_is_not_here_is_missing_and_how_to_get_it_is_said(cli: Cli) -> None:
    result = cli("doctor")
    assert result.exit_code == 3
    assert any(line.startswith("MISSING  model") for line in result.stdout.splitlines())
    assert "to get model: " in result.stdout
    assert "suture models pull qwen2.5-coder-1.5b" in result.stdout


def test_without_a_name_it_shows_what_was_looked_for_and_that_a_key_chooses_nobody(cli: Cli) -> None:
    nobody = {"OLLAMA_BASE_URL": "http://127.0.0.1:9", "OPENAI_API_KEY": "k"}
    found = rows(cli("doctor", "--json", env=nobody))
    assert "embedded model" in str(found["model, choice 1"]["detail"])
    assert "ollama" in str(found["model, choice 2"]["detail"])
    assert "openai; used only when named" in str(found["keys"]["detail"])
    assert "local:qwen2.5-coder-1.5b" in str(found["model"]["detail"])
    named = rows(cli("doctor", "--json", "--model", "scripted:example", env=nobody))
    assert "model, choice 1" not in named
    assert "scripted:example (as set)" in str(named["model"]["detail"])


def test_what_is_there_is_ok(cli: Cli, home: Path) -> None:
    found = rows(cli("doctor", "--json", "--model", "scripted:example"))
    assert found["model"]["ok"] is True
    assert found["python"]["ok"] is True
    assert str(home) in str(found["home"]["detail"])


def test_a_broken_environment_of_the_project_is_missing(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / ".venv").mkdir()
    found = rows(cli("doctor", "--json", "--model", "scripted:example"))
    assert found["python"]["ok"] is False
    assert found["python"]["remedy"]


def test_a_home_that_cannot_be_made_is_missing(cli: Cli, tmp_path: Path) -> None:
    found = rows(cli("doctor", "--json", "--model", "scripted:example", env={"SUTURE_HOME": "/proc/suture"}))
    assert found["home"]["ok"] is False


def test_the_catalogue(cli: Cli) -> None:
    told = cli("models", "list")
    assert told.exit_code == 0
    assert "qwen2.5-coder-1.5b  1,117 MB  Apache-2.0  not downloaded" in told.stdout
    entries = json.loads(cli("models", "list", "--json").stdout)
    assert {entry["path"] for entry in entries} == {None}


def test_weights_that_are_here_are_found_and_deleted(cli: Cli, tmp_path: Path) -> None:
    weights = tmp_path / "cache" / "models" / "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"
    weights.parent.mkdir(parents=True)
    with weights.open("wb") as file:
        file.truncate(491_400_064)  # a hole: it takes no disk
    write_stamp(weights, find_catalogue_entry("qwen2.5-coder-0.5b").sha256)
    assert cli("models", "path", "local:qwen2.5-coder-0.5b").stdout == f"{weights}\n"
    assert cli("models", "pull", "qwen2.5-coder-0.5b").stdout == f"{weights}\n"
    removed = cli("models", "rm", "qwen2.5-coder-0.5b")
    assert (removed.exit_code, removed.stderr) == (0, "491 MB freed\n")
    assert not weights.exists()
    assert "was not downloaded" in cli("models", "rm", "qwen2.5-coder-0.5b").stderr
    assert cli("models", "path", "qwen2.5-coder-0.5b").exit_code == 3


def test_an_unknown_model_is_a_usage_error(cli: Cli) -> None:
    for command in ("pull", "path", "rm"):
        result = cli("models", command, "gpt")
        assert result.exit_code == 2
        assert "qwen2.5-coder-1.5b" in result.stderr


def test_without_a_terminal_a_download_is_told_in_tenths(capsys: pytest.CaptureFixture[str]) -> None:
    with show_download() as (progress, _):
        for done_bytes in range(0, 1_000_000_001, 10_000_000):
            progress(done_bytes, 1_000_000_000)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "0 MB of 1,000 MB"
    assert lines[-1] == "1,000 MB of 1,000 MB"
    assert len(lines) == 11
