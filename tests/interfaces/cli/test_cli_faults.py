"""Every error ends with one line, a remedy and the documented exit code."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import get_args

import pytest
import typer
from typer.testing import CliRunner, Result

import suture
from suture import errors
from suture.core.records import Outcome
from suture.interfaces.cli.terminal.error_reporting import handle_errors, typer_click_module
from suture.interfaces.narrative.exit_codes import EXIT_CODES


def run_failing_command(error: BaseException, *arguments: str) -> Result:
    """Run a command that raises an error."""
    app = typer.Typer(rich_markup_mode=None)

    @app.command()
    @handle_errors
    def fail(debug: bool = False) -> None:
        raise error

    return CliRunner().invoke(app, list(arguments))


@pytest.mark.parametrize(
    ("error", "exit_code", "lines"),
    [
        (errors.UsageError("bad", remedy="do good"), 2, ["error: bad", "  try: do good"]),
        (errors.PrerequisiteError("no bwrap"), 3, ["error: no bwrap"]),
        (errors.SandboxUnavailable("no namespaces"), 3, ["error: no namespaces"]),
        (errors.ModelAuthError("refused"), 3, ["error: refused"]),
        (errors.ModelTimeout("late"), 6, ["error: late"]),
        (
            errors.BudgetExceeded("tokens", 5, 4),
            4,
            ["error: the limit of 4 tokens is reached, 5 are used", "  try: raise budget.tokens"],
        ),
        (errors.StorageError("disk full"), 6, ["error: disk full"]),
        (errors.Cancelled("stopped", remedy="see it"), 130, ["stopped", "  try: see it"]),
        (KeyboardInterrupt(), 130, ["cancelled"]),
        (errors.UsageError("two\nlines \x1b[2J"), 2, ["error: two lines \\x1b[2J"]),
        (ZeroDivisionError(), 6, ["error: ZeroDivisionError: no message"]),
    ],
)
def test_an_error_ends_with_one_line_a_remedy_and_its_exit_code(
    error: BaseException, exit_code: int, lines: list[str]
) -> None:
    result = run_failing_command(error)
    assert result.exit_code == exit_code
    assert result.stdout == ""
    assert result.stderr.splitlines()[: len(lines)] == lines
    assert "Traceback" not in result.stderr


def test_debug_adds_the_traceback() -> None:
    result = run_failing_command(ZeroDivisionError("by zero"), "--debug")
    assert "Traceback" in result.stderr
    assert result.stderr.rstrip().endswith("error: ZeroDivisionError: by zero")
    assert result.exit_code == 6


def test_every_outcome_has_an_exit_code() -> None:
    assert EXIT_CODES.keys() == set(get_args(Outcome))


def test_the_documentation_lists_the_same_exit_codes() -> None:
    page = (Path(__file__).parents[3] / "docs" / "errors.md").read_text()
    for outcome, exit_code in EXIT_CODES.items():
        assert f"| {exit_code} | `{outcome}` |" in page


def test_no_executed_code_imports_a_private_module_of_typer() -> None:
    """Typer has moved its copy of click once, so Suture finds that module through a public class."""
    for path in Path(suture.__file__).parent.rglob("*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        type_checking_nodes = {
            id(child) for node in tree.body if isinstance(node, ast.If) for child in ast.walk(node)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and id(node) not in type_checking_nodes:
                assert not (node.module or "").startswith("typer._"), f"{path}, line {node.lineno}"
    assert typer_click_module("exceptions").BadParameter is typer.BadParameter
