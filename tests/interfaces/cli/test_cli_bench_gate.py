"""`suture bench baseline` and `suture bench gate`, on folders of rows."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bench.made_rows import arm_rows, row, write_rows
from interfaces.cli.conftest import Cli


@pytest.fixture
def baseline(cli: Cli, tmp_path: Path) -> str:
    """Twenty tasks of which eighteen are solved."""
    folder = write_rows(tmp_path / "recorded", arm_rows("adaptive", [True] * 18 + [False] * 2))
    shown = cli("bench", "baseline", str(folder), str(tmp_path / "b.json"))
    assert shown.exit_code == 0, shown.stderr
    assert "adaptive solved 18 of 20 tasks (90.0%)" in shown.stdout
    return str(tmp_path / "b.json")


@pytest.mark.parametrize(
    ("rights", "code", "said"),
    [
        ([True] * 20, 0, "passed: adaptive with local:tiny on set, regime visible: "),
        ([False] * 20, 1, "failed: adaptive with local:tiny on set, regime visible: "),
        ([True, True, False] * 6, 4, "undecided: adaptive with local:tiny on set, regime visible: "),
    ],
)
def test_the_exit_code_says_how_it_stands(
    cli: Cli, tmp_path: Path, baseline: str, rights: list[bool], code: int, said: str
) -> None:
    folder = write_rows(tmp_path / "run", arm_rows("adaptive", rights))
    shown = cli("bench", "gate", baseline, str(folder), "--min", "0.8", "--margin", "0.3")
    assert shown.exit_code == code, shown.output
    assert shown.stdout.startswith(said)
    assert "at a true rate of 80.0% it passes" in shown.stdout
    assert "at a true rate of 50.0% it passes" in shown.stdout
    plain = cli("bench", "gate", baseline, str(folder), "--min", "0.8", "--margin", "0.3", "--json")
    assert plain.exit_code == code
    found = json.loads(plain.stdout)
    assert found["decision"]["standing"] == said.partition(":")[0]
    assert found["chances"]["at_least"]["failed"] <= 0.05
    assert found["chances"]["at_poor"]["passed"] <= 0.05


@pytest.mark.parametrize(("broken", "code"), [(20, 6), (3, 6), (1, 0)])
def test_a_gate_whose_tasks_cannot_be_graded_is_broken(
    cli: Cli, tmp_path: Path, baseline: str, broken: int, code: int
) -> None:
    order = [task["problem"] for task in json.loads(Path(baseline).read_text())["tasks"]]
    rows = [
        replace(one, fault="its own reference does not pass here") if one.problem in order[:broken] else one
        for one in arm_rows("adaptive", [True] * 20)
    ]
    folder = str(write_rows(tmp_path / "run", rows))
    shown = cli("bench", "gate", baseline, folder, "--min", "0.8", "--margin", "0.3")
    assert shown.exit_code == code, shown.output
    plain = json.loads(cli("bench", "gate", baseline, folder, "--min", "0.8", "--json").stdout)
    if code:
        assert shown.stdout.startswith("broken: adaptive with local:tiny on set, regime visible: ")
        assert (
            f"{broken} more have no grade because the infrastructure failed, so there is no verdict"
            in shown.stdout
        )
        assert plain["standing"] == "broken"
    assert len(plain["skipped"]) == broken


def test_without_a_rate_it_is_the_recorded_one(cli: Cli, tmp_path: Path, baseline: str) -> None:
    folder = write_rows(tmp_path / "run", arm_rows("adaptive", [False] * 20))
    shown = cli("bench", "gate", baseline, str(folder))
    assert shown.exit_code == 1
    assert "the rate is below 90.0% with 95% confidence" in shown.stdout
    assert "solved when recorded, not now: Set/" in shown.stdout


def test_another_model_needs_a_rate(cli: Cli, tmp_path: Path, baseline: str) -> None:
    rows = arm_rows("adaptive", [True] * 20, model="ollama:larger")
    folder = str(write_rows(tmp_path / "run", rows))
    refused = cli("bench", "gate", baseline, folder, "--model", "ollama:larger")
    assert refused.exit_code == 2
    assert "--min" in refused.stderr
    passed = cli(
        "bench", "gate", baseline, folder, "--model", "ollama:larger", "--min", "0.8", "--margin", "0.3"
    )
    assert passed.exit_code == 0, passed.output


def test_what_was_not_run_is_named(cli: Cli, tmp_path: Path, baseline: str) -> None:
    folder = write_rows(tmp_path / "run", [row("adaptive", 0)])
    shown = cli("bench", "gate", baseline, str(folder))
    assert shown.exit_code == 4
    assert "not run: " in shown.stdout


@pytest.mark.parametrize("option", [["--min", "1.2"], ["--margin", "0.9"], ["--confidence", "0.4"]])
def test_a_test_that_cannot_be_is_a_usage_error(
    cli: Cli, tmp_path: Path, baseline: str, option: list[str]
) -> None:
    shown = cli("bench", "gate", baseline, str(tmp_path / "recorded"), *option)
    assert shown.exit_code == 2
    assert "try:" in shown.stderr


@pytest.mark.parametrize("option", [["--replayed"], ["--recording", "replies.jsonl.gz"]])
def test_options_about_replies_need_measure(
    cli: Cli, tmp_path: Path, baseline: str, option: list[str]
) -> None:
    shown = cli("bench", "gate", baseline, str(tmp_path / "recorded"), *option)
    assert shown.exit_code == 2
    assert f"{option[0]} needs --measure, because nothing is run without it" in shown.stderr
    assert "--measure" in shown.stderr
