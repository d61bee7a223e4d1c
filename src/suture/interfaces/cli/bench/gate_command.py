"""`suture bench gate`: test whether an arm still solves a fixed list of tasks often enough."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from suture.errors import UsageError
from suture.interfaces.cli.bench.bench_options import Benchmark, Parallel, Recordings, Replayed
from suture.interfaces.cli.terminal.command_options import Assignments, Json, load_command_settings
from suture.interfaces.cli.terminal.error_reporting import handle_errors
from suture.interfaces.cli.terminal.terminal_output import print_json, print_text

if TYPE_CHECKING:
    from suture.bench.gate.gate_decision import GateBaseline, GateResult, GateStanding
    from suture.bench.gate.sequential_test import SequentialDesign
    from suture.bench.running.bench_folder import BenchFolder
    from suture.core.settings import Settings

EXIT_CODES: dict[GateStanding, int] = {"passed": 0, "failed": 1, "undecided": 4, "broken": 6}
"""4: the budget of tasks is exhausted. 6: the infrastructure failed."""


@handle_errors
def gate_command(
    baseline: Annotated[
        Path, typer.Argument(metavar="BASELINE.json", help="Written by `suture bench baseline`.")
    ],
    run: Benchmark,
    least: Annotated[
        float | None,
        typer.Option(
            "--min", metavar="RATE", help="The rate that is good enough; default: the baseline's own."
        ),
    ] = None,
    margin: Annotated[
        float, typer.Option("--margin", metavar="RATE", help="How far below --min a rate is too low.")
    ] = 0.15,
    confidence: Annotated[
        float, typer.Option("--confidence", help="One minus the probability of either error.")
    ] = 0.95,
    model: Annotated[
        str | None,
        typer.Option("--model", metavar="PROVIDER:MODEL", help="A model other than the baseline's."),
    ] = None,
    measure: Annotated[
        bool, typer.Option("--measure", help="Run missing tasks, a few at a time, until the test is decided.")
    ] = False,
    recording: Recordings = None,
    replayed: Replayed = False,
    parallel: Parallel = 4,
    assignments: Assignments = None,
    as_json: Json = False,
) -> None:
    """Test a success rate on a fixed list of tasks, and stop as soon as it is decided.

    Exit code 0: passed, the rate is above --min minus --margin. 1: failed, the rate is below --min. 4:
    undecided, there are too few tasks. 6: more than one task in ten, and more than one, has no grade because
    the infrastructure failed. The probability of a wrong pass or fail is at most one minus --confidence.
    """
    from suture.bench.gate.gate_decision import decide_gate, read_baseline
    from suture.bench.gate.sequential_test import design_sequential_test
    from suture.bench.reports import read_rows
    from suture.interfaces.cli.bench.plan_options import bench_folder, settings_for

    if (replayed or recording) and not measure:
        raise UsageError(
            f"{'--replayed' if replayed else '--recording'} needs --measure, because nothing is run "
            f"without it",
            remedy="add --measure, or leave the option out",
        )
    settings = load_command_settings(Path(), assignments).settings
    folder = bench_folder(settings, run)
    fixed = read_baseline(baseline)
    judged = model or fixed.model
    if least is None and judged != fixed.model:
        raise UsageError(f"the recorded rate is for {fixed.model!r}, not for {judged!r}", remedy="add --min")
    design = design_sequential_test(
        fixed.rate if least is None else least, margin, confidence, len(fixed.tasks)
    )
    if measure:
        if not replayed:
            settings = settings_for((judged,), assignments, settings)
        found = measure_gate(
            fixed, design, folder, settings, judged, parallel, recording or [], replayed=replayed
        )
    else:
        found = decide_gate(fixed, read_rows([folder.path]), design, judged)
    print_result(fixed, design, found, judged, as_json=as_json)
    if code := EXIT_CODES[found.standing]:
        raise typer.Exit(code)


def measure_gate(
    fixed: GateBaseline,
    design: SequentialDesign,
    folder: BenchFolder,
    settings: Settings,
    model: str,
    parallel: int,
    recordings: list[Path],
    *,
    replayed: bool,
) -> GateResult:
    """Run the missing tasks until the test is decided, and return the result."""
    from suture.api import run_sync
    from suture.bench.gate.live_gate import measure_until_decided
    from suture.bench.running.benchmark_plan import describe_environment
    from suture.interfaces.cli.bench.bench_progress import BenchProgress

    with BenchProgress() as bar:
        return run_sync(
            measure_until_decided(
                fixed,
                design,
                folder,
                settings,
                model=model,
                parallel=parallel,
                recordings=recordings,
                replayed=replayed,
                made=describe_environment(sys.argv[1:]),
                on_progress=bar,
            )
        )


def print_result(
    fixed: GateBaseline, design: SequentialDesign, found: GateResult, model: str, *, as_json: bool
) -> None:
    """Print the result in one sentence, and then its error rates."""
    from suture.bench.gate.sequential_test import compute_chances
    from suture.core.records import encode_record

    good, poor = compute_chances(design, design.least), compute_chances(design, design.poor)
    if as_json:
        chances = {"at_least": encode_record(good), "at_poor": encode_record(poor)}
        print_json(
            {
                **encode_record(found),
                "standing": found.standing,
                "least": design.least,
                "poor": design.poor,
                "chances": chances,
            }
        )
        return
    print_text(gate_sentence(fixed, design, found, model))
    for rate, chance in ((design.least, good), (design.poor, poor)):
        print_text(
            f"  at a true rate of {rate:.1%} it passes {chance.passed:.1%}, fails {chance.failed:.1%} and is "
            f"undecided {chance.undecided:.1%} of the time, after {chance.tasks:.0f} tasks on average"
        )
    listed = {
        "skipped, the infrastructure failed": found.skipped,
        "solved when recorded, not now": found.lost,
        "solved now, not when recorded": found.won,
        "not run": found.next,
    }
    for what, names in listed.items():
        if names:
            print_text(f"  {what}: {', '.join(names)}")


def gate_sentence(fixed: GateBaseline, design: SequentialDesign, found: GateResult, model: str) -> str:
    """Return the result and what it means."""
    made, confidence_text = found.decision, f"with {1 - design.error:.0%} confidence"
    verdict_texts: dict[GateStanding, str] = {
        "passed": f"the rate is above {design.poor:.1%} {confidence_text}",
        "failed": f"the rate is below {design.least:.1%} {confidence_text}",
        "undecided": f"too few tasks to distinguish a rate of {design.least:.1%} from "
        f"{design.poor:.1%} {confidence_text}",
        "broken": f"{len(found.skipped)} more have no grade because the infrastructure failed, "
        "so there is no verdict",
    }
    counts = f"{made.solved} of {made.tasks} tasks solved, {design.tasks} at most"
    what = f"{fixed.arm} with {model} on {fixed.dataset}, regime {fixed.regime}"
    return f"{found.standing}: {what}: {counts}; {verdict_texts[found.standing]}"
