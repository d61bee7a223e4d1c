"""Each command has a help page, ends without a crash, and does something that can be seen."""

from __future__ import annotations

import inspect
import typing
from dataclasses import dataclass

import pytest

from project_name import __main__ as program
from project_name import store

SAMPLES = {int: "1", float: "1.5"}


@dataclass
class CommandRun:
    """A run of one command with sample arguments."""

    command: str
    code: int
    output: str
    changed_data: bool


@pytest.fixture(autouse=True)
def prepare_folder(tmp_path, monkeypatch):
    def refuse_input(prompt=""):
        pytest.fail("A command calls input(). It must take an argument instead.")

    monkeypatch.chdir(tmp_path)
    # The environment may name the user's own data.
    monkeypatch.setattr(store, "PATH", tmp_path / "project_name.json")
    monkeypatch.setattr("builtins.input", refuse_input)


def make_words(name, function):
    """Return a command line with a sample for each argument."""
    annotations = typing.get_type_hints(function)
    parameters = inspect.signature(function).parameters.values()
    words = [
        SAMPLES.get(annotations.get(parameter.name), "sample")
        for parameter in parameters
        if parameter.default is parameter.empty and parameter.kind is not parameter.VAR_POSITIONAL
    ]
    return [name, *words]


def run_all_commands(capsys):
    """Run all commands in the order of their definition, on the same data."""
    runs = []
    for name, function in program.find_commands().items():
        words, before = make_words(name, function), store.load("nothing")
        command = f"`{' '.join(words)}`"
        try:
            code = program.main(words)
        except Exception as fault:
            pytest.fail(f"The command {command} crashes with {type(fault).__name__}: {fault}")
        except SystemExit:
            pytest.fail(f"The command {command} reads the command line. It must take arguments instead.")
        captured = capsys.readouterr()
        changed_data = store.load("nothing") != before
        runs.append(CommandRun(command, code, (captured.out + captured.err).strip(), changed_data))
    return runs


def test_there_is_a_command():
    if not program.find_commands():
        pytest.fail("commands.py has no public function.")


def test_each_command_has_a_help_page(capsys):
    for name in program.find_commands():
        with pytest.raises(SystemExit) as ending:
            program.main([name, "--help"])
        assert ending.value.code == 0


def test_each_command_does_something(capsys):
    for run in run_all_commands(capsys):
        if not run.output and not run.changed_data:
            pytest.fail(f"The command {run.command} prints and saves nothing.")


def test_some_command_succeeds(capsys):
    runs = run_all_commands(capsys)
    if runs and not any(run.code == 0 for run in runs):
        pytest.fail(f"Each command fails, {runs[0].command} with {runs[0].output!r}.")
