"""`suture bench`: measure recipes and models on problems with hidden tests.

This package parses arguments, shows progress and prints tables; `suture.bench` measures.
"""

import typer

from suture.interfaces.cli.bench.bench_run_command import run_command
from suture.interfaces.cli.bench.gate_command import gate_command
from suture.interfaces.cli.bench.report_commands import (
    baseline_command,
    compare_command,
    regrade_command,
    report_command,
    track_command,
)
from suture.interfaces.cli.bench.tasks_command import tasks_command

__all__ = ["bench_app"]

bench_app = typer.Typer(
    name="bench", help="Measure recipes and models on problems with hidden tests.", no_args_is_help=True
)


bench_app.command("run")(run_command)
bench_app.command("tasks")(tasks_command)
bench_app.command("regrade")(regrade_command)
bench_app.command("report")(report_command)
bench_app.command("compare")(compare_command)
bench_app.command("baseline")(baseline_command)
bench_app.command("gate")(gate_command)
bench_app.command("track")(track_command)
