"""`suture bench report` and `suture bench compare`, on folders of rows."""

from __future__ import annotations

import json
from pathlib import Path

from bench.made_rows import arm_rows, benchmark_rows, write_rows
from interfaces.cli.conftest import Cli


def test_a_report_is_printed_and_written(cli: Cli, tmp_path: Path) -> None:
    folder = write_rows(tmp_path / "run", benchmark_rows(8))
    shown = cli("bench", "report", str(folder))
    assert shown.exit_code == 0, shown.stderr
    assert shown.stdout.startswith("# Benchmark report")
    assert shown.stdout == (folder / "report" / "report.md").read_text()
    assert {path.name for path in (folder / "report").iterdir()} == {
        "report.md",
        "report.json",
        "report.html",
    }
    assert "report.html" in shown.stderr


def test_a_report_of_several_runs_goes_where_it_is_told(cli: Cli, home: Path, tmp_path: Path) -> None:
    rows = benchmark_rows(8)
    write_rows(home / "benchmarks" / "one", [one for one in rows if one.arm != "adaptive"])
    other = write_rows(tmp_path / "other", [one for one in rows if one.arm == "adaptive"])
    shown = cli("bench", "report", "one", str(other), "--out", str(tmp_path / "out"), "--json")
    assert shown.exit_code == 0, shown.stderr
    assert [arm["arm"] for arm in json.loads(shown.stdout)["sections"][0]["arms"]][:2] == [
        "greedy",
        "best_of_k",
    ]
    assert (tmp_path / "out" / "report.html").is_file()


def test_a_comparison_begins_with_a_sentence(cli: Cli, tmp_path: Path) -> None:
    before = write_rows(tmp_path / "before", arm_rows("adaptive", [False] * 10 + [True] * 20))
    after = write_rows(tmp_path / "after", arm_rows("adaptive", [True] * 30))
    shown = cli("bench", "compare", str(before), str(after))
    assert shown.exit_code == 0, shown.stderr
    lines = shown.stdout.splitlines()
    assert lines[0].startswith("set, regime visible")
    assert lines[1].strip().startswith("adaptive in after solves more tasks than adaptive in before")
    assert "NO EQUAL-BUDGET BASELINE" in shown.stdout
    plain = json.loads(cli("bench", "compare", str(before), str(after), "--json").stdout)
    assert plain[0]["comparisons"][0]["only_second"] == 10


def test_arms_of_one_run_are_compared(cli: Cli, tmp_path: Path) -> None:
    folder = str(write_rows(tmp_path / "run", benchmark_rows(8)))
    shown = cli("bench", "compare", folder, folder, "--arm", "best_of_k", "--arm", "adaptive")
    assert shown.exit_code == 0, shown.stderr
    assert "adaptive in B and best_of_k in A cannot be distinguished" in shown.stdout


def test_a_folder_that_is_none_is_a_usage_error(cli: Cli, tmp_path: Path) -> None:
    for arguments in (["report", "nowhere"], ["compare", str(tmp_path), "nowhere"]):
        shown = cli("bench", *arguments)
        assert shown.exit_code == 2
        assert "no rows" in shown.stderr
        assert "suture bench run" in shown.stderr
