"""`suture quality`: measure the code that a run accepted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from suture.interfaces.cli.terminal.command_options import Assignments, Json, RunName, load_command_settings
from suture.interfaces.cli.terminal.error_reporting import handle_errors
from suture.interfaces.cli.terminal.terminal_output import format_table, print_answer

if TYPE_CHECKING:
    from suture.judge.quality import QualityResult

MAX_FINDINGS = 10
"""Findings of one evaluator that the table lists. Chosen by judgement; not measured."""


@handle_errors
def quality(
    run: RunName = "last",
    only: Annotated[
        list[str] | None, Option("--only", metavar="NAME", help="Run only this evaluator; repeatable.")
    ] = None,
    as_json: Json = False,
    assignments: Assignments = None,
) -> None:
    """Measure the code that a run accepted: complexity, lint, docstrings, lines, coverage, security.

    The measurements are informational and decide nothing. Tools that are not installed are listed; the extra
    `quality` has them.
    """
    from suture.api import run_sync
    from suture.api.quality import measure_run_quality
    from suture.judge.quality import flatten_quality

    settings = load_command_settings(Path(), assignments).settings
    results = run_sync(measure_run_quality(run, names=tuple(only or ()), settings=settings))
    report = {
        "values": flatten_quality(results),
        "findings": {name: list(result.findings) for name, result in results.items()},
        "unmeasured": {name: result.unmeasured for name, result in results.items() if result.unmeasured},
    }
    rows = [row for name, result in results.items() for row in _rows(name, result)]
    print_answer(report, format_table(rows), as_json=as_json)


def _rows(name: str, result: QualityResult) -> list[tuple[str, str, str]]:
    rows = [(name, metric, f"{value:g}") for metric, value in result.values.items()]
    rows += [(name, "", text) for text in result.findings[:MAX_FINDINGS]]
    if len(result.findings) > MAX_FINDINGS:
        rows.append((name, "", f"and {len(result.findings) - MAX_FINDINGS} more (--json lists all)"))
    return rows or [(name, "not measured", result.unmeasured)]
