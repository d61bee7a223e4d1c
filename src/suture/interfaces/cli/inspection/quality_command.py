"""`suture quality`: measure the code that a run accepted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from suture.interfaces.cli.terminal.command_options import Assignments, Json, load_command_settings
from suture.interfaces.cli.terminal.error_reporting import handle_errors
from suture.interfaces.cli.terminal.terminal_output import format_table, print_json, print_text

if TYPE_CHECKING:
    from suture.judge.quality import QualityResult

MAX_FINDINGS = 10


@handle_errors
def quality(
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="`last`, an id, or its unique start or end.")
    ] = "last",
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="NAME", help="Run only this evaluator; repeatable.")
    ] = None,
    as_json: Json = False,
    assignments: Assignments = None,
) -> None:
    """Measure the code that a run accepted: complexity, lint, docstrings, lines, coverage, security.

    The measurements are informational and decide nothing. Tools that are not installed are listed: pip
    install 'suture[quality]'.
    """
    from suture.api import run_sync
    from suture.api.quality import measure_run_quality
    from suture.judge.quality import flatten_quality

    settings = load_command_settings(Path(), assignments).settings
    found = run_sync(measure_run_quality(run, names=tuple(only or ()), settings=settings))
    if as_json:
        print_json(
            {
                "values": flatten_quality(found),
                "findings": {name: list(measured.findings) for name, measured in found.items()},
                "unmeasured": {
                    name: measured.unmeasured for name, measured in found.items() if measured.unmeasured
                },
            }
        )
        return
    print_text(format_table([row for name, measured in found.items() for row in _rows(name, measured)]))


def _rows(name: str, measured: QualityResult) -> list[tuple[str, str, str]]:
    rows = [(name, metric, f"{value:g}") for metric, value in measured.values.items()]
    rows += [(name, "", text) for text in measured.findings[:MAX_FINDINGS]]
    if len(measured.findings) > MAX_FINDINGS:
        rows.append((name, "", f"and {len(measured.findings) - MAX_FINDINGS} more (--json lists all)"))
    return rows or [(name, "not measured", measured.unmeasured)]
