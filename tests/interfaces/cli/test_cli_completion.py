"""Shell completion answers requests as a shell sends them, and the help of a command starts with examples."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer.main

from interfaces.cli.conftest import Cli
from suture.interfaces.cli.app import app
from suture.interfaces.cli.terminal.command_help import EXAMPLES, USUAL_OPTIONS
from suture.interfaces.cli.terminal.value_completion import complete_model, complete_recipe, complete_run


def complete(environ: dict[str, str], line: str) -> str:
    """Return the completions of a command line."""
    words = line.split(" ")
    completion_environ = {
        "_SUTURE_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }
    command = [str(Path(sys.executable).with_name("suture"))]
    return subprocess.run(
        command, env={**environ, **completion_environ}, capture_output=True, text=True
    ).stdout


def test_completion_offers_commands_and_options(environ: dict[str, str]) -> None:
    assert "heal" in complete(environ, "suture he").split()
    assert complete(environ, "suture heal --no-m").split() == ["--no-model"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_is_valid(environ: dict[str, str], shell: str) -> None:
    command = [sys.executable, "-m", "suture.interfaces.cli", "completion", shell]
    result = subprocess.run(command, env=environ, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert f"complete_{shell}" in result.stdout
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=result.stdout, text=True, check=True)


def test_an_unknown_shell_is_an_error(environ: dict[str, str]) -> None:
    command = [sys.executable, "-m", "suture.interfaces.cli", "completion", "csh"]
    assert subprocess.run(command, env=environ, capture_output=True).returncode == 2


def test_completion_offers_runs_newest_first(environ: dict[str, str], home: Path) -> None:
    for name in ("20261101-120000000-aaaaaa", "20261102-120000000-bbbbbb"):
        (home / "runs" / name).mkdir(parents=True)
        (home / "runs" / name / "ledger.jsonl").touch()

    assert complete(environ, "suture show 2026").split() == [
        "20261102-120000000-bbbbbb",
        "20261101-120000000-aaaaaa",
    ]


def test_recipes_and_models_are_offered() -> None:
    assert complete_recipe("best") == ["best_of_k"]
    assert complete_model("loc") == ["local:qwen2.5-coder-1.5b", "local:qwen2.5-coder-0.5b"]
    assert not any(name.endswith(":") for name in complete_model(""))  # the shell would add a blank


def test_recipes_are_offered_without_importing_the_loop() -> None:
    from suture.loop import list_installed_recipes, list_recipes

    assert complete_recipe("") == [*list_recipes(), *list_installed_recipes()]
    code = (
        "import sys; from suture.interfaces.cli.terminal.value_completion import complete_recipe;"
        "complete_recipe(''); assert 'suture.loop' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["suture", "heal", "--model", "local", ":", "qwen2.5-coder-0"], ["qwen2.5-coder-0.5b"]),
        (["suture", "heal", "--model", "local", ":"], ["qwen2.5-coder-1.5b", "qwen2.5-coder-0.5b"]),
        (["suture", "heal", "--model", "non"], ["none"]),
    ],
)
def test_bash_completes_behind_a_colon(environ: dict[str, str], words: list[str], offered: list[str]) -> None:
    """Bash passes a word with a colon in parts, and replaces the last part only."""
    suture = str(Path(sys.executable).with_name("suture"))
    script = subprocess.run(
        [suture, "completion", "bash"], env=environ, capture_output=True, text=True
    ).stdout
    script += f"COMP_WORDS=({shlex.join(words)}) COMP_CWORD={len(words) - 1}\n"
    script += f"_suture_completion {suture}\n" + "printf '%s\\n' \"${COMPREPLY[@]}\"\n"
    completed = subprocess.run(["bash", "-c", script], env=environ, capture_output=True, text=True)

    assert completed.stdout.split() == offered
    assert completed.stderr == ""


def test_completion_in_a_deleted_folder_is_silent(environ: dict[str, str], tmp_path: Path) -> None:
    suture = shlex.quote(str(Path(sys.executable).with_name("suture")))
    environ |= {
        "_SUTURE_COMPLETE": "complete_bash",
        "COMP_WORDS": "suture show l",
        "COMP_CWORD": "2",
    }
    command = f"mkdir gone && cd gone && rmdir ../gone && {suture}"
    completed = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, env=environ, capture_output=True, text=True
    )

    assert (completed.stdout.strip(), completed.stderr) == ("", "")


def test_no_run_is_offered_if_the_settings_are_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUTURE_BUDGET_SECONDS", "soon")
    assert complete_run("l") == []


def test_each_command_has_two_examples_that_can_be_called() -> None:
    commands: Any = typer.main.get_command(app)
    single = {name for name, command in commands.commands.items() if not hasattr(command, "commands")}
    assert single == set(EXAMPLES)
    for name, examples in EXAMPLES.items():
        for example in examples:
            line = example.removeprefix('eval "$(').removesuffix(')"')
            program, called, *words = shlex.split(line)
            assert (program, called) == ("suture", name)
            commands.commands[name].make_context(name, words).close()


def test_usual_options_exist_and_come_first(cli: Cli) -> None:
    for name, usual in USUAL_OPTIONS.items():
        first, _, rest = cli(name, "--help").stdout.partition("More options:")
        assert rest
        assert all(f"\n  {option} " in first for option in usual)
