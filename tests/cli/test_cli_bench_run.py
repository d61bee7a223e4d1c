"""What `suture bench run` refuses before anything is measured."""

from __future__ import annotations

from pathlib import Path

from cli.conftest import Cli


def test_no_set_is_a_usage_error(cli: Cli) -> None:
    for arguments, told in (
        ([], "nothing to measure"),
        (["--validate-reference"], "nothing to validate"),
        (["--task", "HumanEval/0"], "no set that has them"),
    ):
        shown = cli("bench", "run", "mine", "--arm", "greedy", *arguments)
        assert shown.exit_code == 2, arguments
        assert told in shown.stderr
        assert "--dataset" in shown.stderr


def test_an_empty_file_of_ids_does_not_mean_every_task(cli: Cli, tmp_path: Path) -> None:
    ids = tmp_path / "ids.txt"
    ids.write_text("# none yet\n\n", "utf-8")
    shown = cli("bench", "run", "mine", "--dataset", "suture", "--ids-file", str(ids), "--arm", "greedy")
    assert shown.exit_code == 2
    assert "names no task" in shown.stderr
