"""`suture bench report` and `suture bench compare` on folders of rows."""

from __future__ import annotations

import json
from pathlib import Path

from bench.made_rows import make_arm_rows, make_benchmark_rows, write_rows
from interfaces.cli.conftest import Cli


def test_bench_report_prints_and_writes_the_report(cli: Cli, tmp_path: Path) -> None:
    folder = write_rows(tmp_path / "run", make_benchmark_rows(8))
    result = cli("bench", "report", str(folder))

    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("# Benchmark report")
    assert result.stdout == (folder / "report" / "report.md").read_text()
    assert {path.name for path in (folder / "report").iterdir()} == {"report.md", "report.json"}
    assert "report.json" in result.stderr


def test_bench_report_writes_several_runs_into_the_named_folder(cli: Cli, home: Path, tmp_path: Path) -> None:
    rows = make_benchmark_rows(8)
    write_rows(home / "benchmarks" / "one", [row for row in rows if row.arm != "adaptive"])
    other_folder = write_rows(tmp_path / "other", [row for row in rows if row.arm == "adaptive"])

    result = cli("bench", "report", "one", str(other_folder), "--out", str(tmp_path / "out"), "--json")

    assert result.exit_code == 0, result.stderr
    assert [arm["arm"] for arm in json.loads(result.stdout)["sections"][0]["arms"]][:2] == [
        "greedy",
        "best_of_k",
    ]
    assert (tmp_path / "out" / "report.md").is_file()


def test_bench_compare_begins_with_a_sentence(cli: Cli, tmp_path: Path) -> None:
    before = write_rows(tmp_path / "before", make_arm_rows("adaptive", [False] * 10 + [True] * 20))
    after = write_rows(tmp_path / "after", make_arm_rows("adaptive", [True] * 30))
    result = cli("bench", "compare", str(before), str(after))
    assert result.exit_code == 0, result.stderr

    lines = result.stdout.splitlines()
    assert lines[0].startswith("set, regime visible")
    assert lines[1].strip().startswith("adaptive in after solves more tasks than adaptive in before")
    assert "NO EQUAL-BUDGET BASELINE" in result.stdout

    comparison = json.loads(cli("bench", "compare", str(before), str(after), "--json").stdout)
    assert comparison[0]["comparisons"][0]["only_second"] == 10


def test_bench_compare_compares_arms_of_one_run(cli: Cli, tmp_path: Path) -> None:
    folder = str(write_rows(tmp_path / "run", make_benchmark_rows(8)))
    result = cli("bench", "compare", folder, folder, "--arm", "best_of_k", "--arm", "adaptive")
    assert result.exit_code == 0, result.stderr
    assert "adaptive in B and best_of_k in A cannot be distinguished" in result.stdout


def test_a_folder_without_rows_is_a_usage_error(cli: Cli, tmp_path: Path) -> None:
    for arguments in (["report", "nowhere"], ["compare", str(tmp_path), "nowhere"]):
        result = cli("bench", *arguments)
        assert result.exit_code == 2
        assert "no rows" in result.stderr
        assert "suture bench run" in result.stderr
