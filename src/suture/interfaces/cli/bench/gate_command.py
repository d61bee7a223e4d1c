"""`suture bench gate`: test whether an arm still solves a fixed list of tasks often enough."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from suture.errors import UsageError
from suture.interfaces.cli.bench.plan_options import Benchmark, Parallel, Recordings, Replayed
from suture.interfaces.cli.terminal.command_options import Assignments, Json, load_command_settings
from suture.interfaces.cli.terminal.error_reporting import handle_errors
from suture.interfaces.cli.terminal.terminal_output import print_json, print_text

if TYPE_CHECKING:
    from suture.bench.gate.gate_decision import GateBaseline, GateResult, GateStanding
    from suture.bench.gate.sequential_test import SequentialDesign

EXIT_CODES: dict[GateStanding, int] = {"passed": 0, "failed": 1, "undecided": 4, "broken": 6}
"""4: the budget of tasks is exhausted. 6: the infrastructure failed."""


@handle_errors
def gate_command(
    baseline: Annotated[Path, Argument(metavar="BASELINE.json", help="Written by `suture bench baseline`.")],
    run: Benchmark,
    least: Annotated[
        float | None,
        Option("--min", metavar="RATE", help="The rate that is good enough; default: the baseline's own."),
    ] = None,
    margin: Annotated[
        float, Option("--margin", metavar="RATE", help="How far below --min a rate is too low.")
    ] = 0.15,
    confidence: Annotated[
        float, Option("--confidence", help="One minus the probability of either error.")
    ] = 0.95,
    model: Annotated[
        str | None, Option("--model", metavar="PROVIDER:MODEL", help="A model other than the baseline's.")
    ] = None,
    measure: Annotated[
        bool, Option("--measure", help="Run missing tasks, a few at a time, until the test is decided.")
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
        flag = "--replayed" if replayed else "--recording"
        raise UsageError(
            f"{flag} needs --measure, because nothing is run without it",
            remedy="add --measure, or leave the option out",
        )
    settings = load_command_settings(Path(), assignments).settings
    folder = bench_folder(settings, run)
    recorded = read_baseline(baseline)
    measured_model = model or recorded.model
    if least is None and measured_model != recorded.model:
        raise UsageError(
            f"the recorded rate is for {recorded.model!r}, not for {measured_model!r}", remedy="add --min"
        )
    min_rate = recorded.rate if least is None else least
    design = design_sequential_test(min_rate, margin, confidence, len(recorded.tasks))
    if measure:
        from suture.api import run_sync
        from suture.bench.gate.gate_decision import measure_until_decided
        from suture.bench.running.benchmark_plan import describe_environment
        from suture.interfaces.cli.bench.bench_progress import BenchProgress

        if not replayed:
            settings = settings_for((measured_model,), assignments, settings)
        with BenchProgress() as progress:
            measurement = measure_until_decided(
                recorded,
                design,
                folder,
                settings,
                model=measured_model,
                parallel=parallel,
                recordings=recording or [],
                replayed=replayed,
                environment=describe_environment(sys.argv[1:], settings),
                on_progress=progress,
            )
            result = run_sync(measurement)
    else:
        result = decide_gate(recorded, read_rows([folder.path]), design, measured_model)
    print_result(recorded, design, result, measured_model, as_json=as_json)
    if code := EXIT_CODES[result.standing]:
        raise typer.Exit(code)


def print_result(
    baseline: GateBaseline, design: SequentialDesign, result: GateResult, model: str, *, as_json: bool
) -> None:
    """Print the result in one sentence, and then its error rates."""
    from suture.bench.gate.sequential_test import compute_chances
    from suture.core.records import encode_record

    good, poor = compute_chances(design, design.good_rate), compute_chances(design, design.poor_rate)
    if as_json:
        chances = {"at_least": encode_record(good), "at_poor": encode_record(poor)}
        rates = {"standing": result.standing, "least": design.good_rate, "poor": design.poor_rate}
        print_json({**encode_record(result), **rates, "chances": chances})
        return
    print_text(gate_sentence(baseline, design, result, model))
    for rate, chance in ((design.good_rate, good), (design.poor_rate, poor)):
        print_text(
            f"  at a true rate of {rate:.1%} it passes {chance.passed:.1%}, fails {chance.failed:.1%} and is "
            f"undecided {chance.undecided:.1%} of the time, after {chance.tasks:.0f} tasks on average"
        )
    task_lists = {
        "skipped, the infrastructure failed": result.skipped,
        "solved when recorded, not now": result.lost,
        "solved now, not when recorded": result.won,
        "not run": result.next,
    }
    for label, names in task_lists.items():
        if names:
            print_text(f"  {label}: {', '.join(names)}")


def gate_sentence(baseline: GateBaseline, design: SequentialDesign, result: GateResult, model: str) -> str:
    """Return the result and what it means."""
    confidence = f"with {1 - design.error:.0%} confidence"
    verdict_texts: dict[GateStanding, str] = {
        "passed": f"the rate is above {design.poor_rate:.1%} {confidence}",
        "failed": f"the rate is below {design.good_rate:.1%} {confidence}",
        "undecided": f"too few tasks to distinguish a rate of {design.good_rate:.1%} from "
        f"{design.poor_rate:.1%} {confidence}",
        "broken": f"{len(result.skipped)} more have no grade because the infrastructure failed, "
        "so there is no verdict",
    }
    decision = result.decision
    counts = f"{decision.solved} of {decision.tasks} tasks solved, {design.tasks} at most"
    measurement = f"{baseline.arm} with {model} on {baseline.dataset}, regime {baseline.regime}"
    return f"{result.standing}: {measurement}: {counts}; {verdict_texts[result.standing]}"
