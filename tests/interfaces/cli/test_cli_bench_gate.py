"""`suture bench baseline` and `suture bench gate` on folders of rows."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bench.made_rows import make_arm_rows, make_row, write_rows
from interfaces.cli.conftest import Cli


@pytest.fixture
def baseline(cli: Cli, tmp_path: Path) -> str:
    """Record a baseline of twenty tasks of which eighteen are solved."""
    folder = write_rows(tmp_path / "recorded", make_arm_rows("adaptive", [True] * 18 + [False] * 2))
    result = cli("bench", "baseline", str(folder), str(tmp_path / "b.json"))
    assert result.exit_code == 0, result.stderr
    assert "adaptive solved 18 of 20 tasks (90.0%)" in result.stdout
    return str(tmp_path / "b.json")


@pytest.mark.parametrize(
    ("outcomes", "exit_code", "expected_start"),
    [
        ([True] * 20, 0, "passed: adaptive with local:tiny on set, regime visible: "),
        ([False] * 20, 1, "failed: adaptive with local:tiny on set, regime visible: "),
        ([True, True, False] * 6, 4, "undecided: adaptive with local:tiny on set, regime visible: "),
    ],
)
def test_the_exit_code_of_a_gate_follows_its_decision(
    cli: Cli, tmp_path: Path, baseline: str, outcomes: list[bool], exit_code: int, expected_start: str
) -> None:
    folder = write_rows(tmp_path / "run", make_arm_rows("adaptive", outcomes))
    result = cli("bench", "gate", baseline, str(folder), "--min", "0.8", "--margin", "0.3")
    assert result.exit_code == exit_code, result.output
    assert result.stdout.startswith(expected_start)
    assert "at a true rate of 80.0% it passes" in result.stdout
    assert "at a true rate of 50.0% it passes" in result.stdout

    json_result = cli("bench", "gate", baseline, str(folder), "--min", "0.8", "--margin", "0.3", "--json")
    assert json_result.exit_code == exit_code

    report = json.loads(json_result.stdout)
    assert report["decision"]["standing"] == expected_start.partition(":")[0]
    assert report["chances"]["at_least"]["failed"] <= 0.05
    assert report["chances"]["at_poor"]["passed"] <= 0.05


@pytest.mark.parametrize(("ungraded_count", "exit_code"), [(20, 6), (3, 6), (1, 0)])
def test_a_gate_with_too_many_ungraded_tasks_is_broken(
    cli: Cli, tmp_path: Path, baseline: str, ungraded_count: int, exit_code: int
) -> None:
    order = [task["problem"] for task in json.loads(Path(baseline).read_text())["tasks"]]
    rows = [
        replace(current_row, fault="its own reference does not pass here")
        if current_row.problem in order[:ungraded_count]
        else current_row
        for current_row in make_arm_rows("adaptive", [True] * 20)
    ]
    folder = str(write_rows(tmp_path / "run", rows))
    result = cli("bench", "gate", baseline, folder, "--min", "0.8", "--margin", "0.3")
    assert result.exit_code == exit_code, result.output

    json_result = json.loads(cli("bench", "gate", baseline, folder, "--min", "0.8", "--json").stdout)
    if exit_code:
        assert result.stdout.startswith("broken: adaptive with local:tiny on set, regime visible: ")
        assert (
            f"{ungraded_count} more have no grade because the infrastructure failed, so there is no verdict"
            in result.stdout
        )
        assert json_result["standing"] == "broken"
    assert len(json_result["skipped"]) == ungraded_count


def test_a_gate_uses_the_recorded_rate_by_default(cli: Cli, tmp_path: Path, baseline: str) -> None:
    folder = write_rows(tmp_path / "run", make_arm_rows("adaptive", [False] * 20))
    result = cli("bench", "gate", baseline, str(folder))
    assert result.exit_code == 1
    assert "the rate is below 90.0% with 95% confidence" in result.stdout
    assert "solved when recorded, not now: Set/" in result.stdout


def test_a_gate_for_another_model_needs_a_rate(cli: Cli, tmp_path: Path, baseline: str) -> None:
    rows = make_arm_rows("adaptive", [True] * 20, model="ollama:larger")
    folder = str(write_rows(tmp_path / "run", rows))
    refusal = cli("bench", "gate", baseline, folder, "--model", "ollama:larger")
    assert refusal.exit_code == 2
    assert "--min" in refusal.stderr

    accepted_result = cli(
        "bench", "gate", baseline, folder, "--model", "ollama:larger", "--min", "0.8", "--margin", "0.3"
    )
    assert accepted_result.exit_code == 0, accepted_result.output


def test_a_gate_names_tasks_that_were_not_run(cli: Cli, tmp_path: Path, baseline: str) -> None:
    folder = write_rows(tmp_path / "run", [make_row("adaptive", 0)])
    result = cli("bench", "gate", baseline, str(folder))
    assert result.exit_code == 4
    assert "not run: " in result.stdout


@pytest.mark.parametrize("option", [["--min", "1.2"], ["--margin", "0.9"], ["--confidence", "0.4"]])
def test_an_impossible_statistical_test_is_a_usage_error(
    cli: Cli, tmp_path: Path, baseline: str, option: list[str]
) -> None:
    result = cli("bench", "gate", baseline, str(tmp_path / "recorded"), *option)
    assert result.exit_code == 2
    assert "try:" in result.stderr


@pytest.mark.parametrize("option", [["--replayed"], ["--recording", "replies.jsonl.gz"]])
def test_options_for_replies_need_measure(cli: Cli, tmp_path: Path, baseline: str, option: list[str]) -> None:
    result = cli("bench", "gate", baseline, str(tmp_path / "recorded"), *option)
    assert result.exit_code == 2
    assert f"{option[0]} needs --measure, because nothing is run without it" in result.stderr
    assert "--measure" in result.stderr
