"""`suture doctor` and `suture models` report what is installed, what is missing and how to get it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from typer.testing import Result

from interfaces.cli.conftest import Cli
from interfaces.cli.real_terminal import Terminal
from suture.interfaces.cli.setup.doctor_command import print_prerequisites
from suture.interfaces.cli.setup.models_command import show_download
from suture.models.weights.weights_cache import find_catalogue_entry, write_stamp
from suture.sandbox import Requirement
from suture.sandbox.bubblewrap.diagnosis import explain_unavailable


def read_rows(result: Result) -> dict[str, dict[str, str | bool]]:
    """Return the rows of `suture doctor --json` by name."""
    return {row["name"]: row for row in json.loads(result.stdout)}


def test_doctor_reports_a_missing_model_and_how_to_get_it(cli: Cli) -> None:
    result = cli("doctor")
    assert result.exit_code == 3
    assert any(line.startswith("MISSING  model") for line in result.stdout.splitlines())
    assert "To get model: " in result.stdout
    assert "suture models pull qwen2.5-coder-1.5b" in result.stdout


@pytest.mark.usefixtures("sandbox")
def test_doctor_ends_with_ready_or_with_what_to_do_first(cli: Cli) -> None:
    assert cli("doctor").stdout.splitlines()[-2:] == [
        "First: fetch it once with `suture models pull qwen2.5-coder-1.5b`",
        "Without a model, `suture heal --no-model` works.",
    ]
    assert cli("doctor", "--model", "scripted:example").stdout.splitlines()[-1] == "Ready."


def test_something_optional_that_is_missing_is_called_optional(capsys: pytest.CaptureFixture[str]) -> None:
    engine = Requirement(name="container", ok=False, detail="none", remedy="start Docker", needed=False)
    print_prerequisites([engine], as_json=False)
    assert capsys.readouterr().out.splitlines()[1:] == ["To get container (optional): start Docker", "Ready."]


def test_a_pipe_gets_each_line_when_it_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    printed_before: list[str] = []

    def examine() -> Iterator[Requirement]:
        for name in ("first", "second"):
            printed_before.append(capsys.readouterr().out)
            yield Requirement(name=name, ok=True, detail="there")

    print_prerequisites(examine(), as_json=False)
    assert [line.split() for line in printed_before] == [[], ["ok", "first", "there"]]


@pytest.mark.parametrize(("command", "activity"), [("apply", "applying"), ("undo", "reverting")])
def test_a_slow_command_says_what_it_does_through_a_pipe(cli: Cli, command: str, activity: str) -> None:
    assert cli(command).stderr.splitlines()[0] == f"{activity} the change"


def test_no_remedy_of_doctor_names_doctor() -> None:
    fault = explain_unavailable({"/usr/bin/bwrap": "an unknown message"}, Path("/nonexistent"))
    assert "doctor" not in fault.remedy


@pytest.mark.parametrize(
    ("command", "activity"),
    [
        ("doctor", "examining"),
        ("self-check", "examining"),
        ("apply --set no.such=1", "applying"),
        ("undo --set no.such=1", "reverting"),
        ("judge --set no.such=1", "reading the change"),
    ],
)
def test_a_slow_command_says_at_once_what_it_does(
    command: str, activity: str, environ: dict[str, str], tmp_path: Path
) -> None:
    terminal = Terminal(command.split(), environ, tmp_path)  # settings are read only afterwards
    terminal.wait_for(activity)
    terminal.end()


@pytest.mark.usefixtures("sandbox")
def test_self_check_reports_that_its_example_cannot_be_written(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(prefix: str) -> NoReturn:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("suture.core.temporary_folders.temporary_folder", refuse)
    result = cli("self-check")
    assert result.exit_code == 3
    assert "No space left on device" in result.stdout
    assert result.stderr.splitlines()[0] == "examining this machine"
    assert result.stderr.splitlines()[1].startswith("healing a small program")
    assert not any(line.split()[1] == "model" for line in result.stdout.splitlines())


def test_doctor_without_a_model_name_lists_choices_and_unused_keys(cli: Cli) -> None:
    no_model_environ = {"OLLAMA_BASE_URL": "http://127.0.0.1:9", "OPENAI_API_KEY": "k"}
    rows = read_rows(cli("doctor", "--json", env=no_model_environ))
    assert "embedded model" in str(rows["model, choice 1"]["detail"])
    assert "ollama" in str(rows["model, choice 2"]["detail"])
    assert (rows["model, choice 2"]["ok"], rows["model, choice 2"]["needed"]) == (False, False)
    assert "openai; used only when named" in str(rows["keys"]["detail"])
    assert "local:qwen2.5-coder-1.5b" in str(rows["model"]["detail"])

    named_rows = read_rows(cli("doctor", "--json", "--model", "scripted:example", env=no_model_environ))
    assert "model, choice 1" not in named_rows
    assert "scripted:example (as set)" in str(named_rows["model"]["detail"])


def test_doctor_reports_available_parts_as_ok(cli: Cli, home: Path) -> None:
    rows = read_rows(cli("doctor", "--json", "--model", "scripted:example"))
    assert rows["model"]["ok"] is True
    assert rows["python"]["ok"] is True
    assert str(home) in str(rows["home"]["detail"])


def test_doctor_reports_a_broken_project_environment(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / ".venv").mkdir()
    rows = read_rows(cli("doctor", "--json", "--model", "scripted:example"))
    assert rows["python"]["ok"] is False
    assert rows["python"]["remedy"]


def test_doctor_reports_a_home_that_cannot_be_created(cli: Cli, tmp_path: Path) -> None:
    rows = read_rows(
        cli("doctor", "--json", "--model", "scripted:example", env={"SUTURE_HOME": "/proc/suture"})
    )
    assert rows["home"]["ok"] is False


def test_models_list_prints_the_catalogue(cli: Cli) -> None:
    catalogue = cli("models", "list")
    assert catalogue.exit_code == 0
    assert "qwen2.5-coder-1.5b  1,117 MB  Apache-2.0  not downloaded" in catalogue.stdout
    entries = json.loads(cli("models", "list", "--json").stdout)
    assert {entry["path"] for entry in entries} == {None}


def test_downloaded_weights_are_found_and_deleted(cli: Cli, tmp_path: Path) -> None:
    weights = tmp_path / "cache" / "models" / "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"
    weights.parent.mkdir(parents=True)
    with weights.open("wb") as file:
        file.truncate(491_400_064)  # a sparse file occupies no disk space
    write_stamp(weights, find_catalogue_entry("qwen2.5-coder-0.5b").sha256)
    assert cli("models", "path", "local:qwen2.5-coder-0.5b").stdout == f"{weights}\n"
    assert cli("models", "pull", "qwen2.5-coder-0.5b").stdout == f"{weights}\n"

    removed = cli("models", "rm", "qwen2.5-coder-0.5b")
    assert (removed.exit_code, removed.stderr) == (0, "491 MB freed\n")
    assert not weights.exists()
    assert "was not downloaded" in cli("models", "rm", "qwen2.5-coder-0.5b").stderr
    assert cli("models", "path", "qwen2.5-coder-0.5b").exit_code == 3


def test_an_unknown_model_name_is_a_usage_error(cli: Cli) -> None:
    for command in ("pull", "path", "rm"):
        result = cli("models", command, "gpt")
        assert result.exit_code == 2
        assert "qwen2.5-coder-1.5b" in result.stderr


def test_without_a_terminal_a_download_is_reported_in_tenths(capsys: pytest.CaptureFixture[str]) -> None:
    with show_download() as (progress, _):
        for done_bytes in range(0, 1_000_000_001, 10_000_000):
            progress(done_bytes, 1_000_000_000)
    lines = capsys.readouterr().err.splitlines()

    assert lines[0] == "0 MB of 1,000 MB"
    assert lines[-1] == "1,000 MB of 1,000 MB"
    assert len(lines) == 11
