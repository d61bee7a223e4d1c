"""Law 1 for the prompts of benchmark runs: the scan finds hidden checks and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

import pytest

from bench.bench_tasks import write_mbpp_tasks
from suture.bench.datasets import load_problems
from suture.bench.problem import Problem, Regime
from suture.bench.prompt_leaks import find_leaks
from suture.bench.rows import BenchmarkRow
from suture.bench.running.bench_folder import BenchFolder
from suture.bench.running.benchmark import run_benchmark
from suture.bench.running.benchmark_plan import BenchmarkPlan
from suture.core.ledger import RunFolder
from suture.core.settings import Settings
from suture.models import Message, RecordedModel, Sampling, ScriptedModel
from suture.sandbox import BubblewrapSandbox

HIDDEN_CHECK = "assert times_2(1234) == 2468"


@pytest.fixture
def problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Problem:
    """Write one task of MBPP, and return its problem."""
    monkeypatch.setenv("SUTURE_DATA", str(tmp_path / "data"))
    write_mbpp_tasks(tmp_path / "data", 1)
    return load_problems("mbpp")[0]


async def record_run(folder: Path, reply: str, *prompts: str) -> RunFolder:
    """Record a run in which a model answers every prompt with the same reply."""
    model = RecordedModel(ScriptedModel([reply], repeat_last=True), folder / "replies")
    for prompt in prompts:
        await model.complete([Message(role="user", content=prompt)], Sampling())
    return RunFolder(folder)


async def test_a_hidden_check_in_a_prompt_is_found(tmp_path: Path, problem: Problem) -> None:
    assert HIDDEN_CHECK in problem.hidden
    run = await record_run(tmp_path / "run", "x = 1", problem.statement, f"It fails:\n    {HIDDEN_CHECK}\n")
    assert find_leaks(problem, run) == (HIDDEN_CHECK,)


async def test_a_model_that_repeats_a_leak_does_not_hide_it(tmp_path: Path, problem: Problem) -> None:
    run = await record_run(
        tmp_path / "run", f"It should be {HIDDEN_CHECK}.", f"It fails:\n    {HIDDEN_CHECK}\n"
    )
    assert find_leaks(problem, run) == (HIDDEN_CHECK,)


async def test_visible_checks_are_no_leaks(tmp_path: Path, problem: Problem) -> None:
    """The first assert is both visible and part of the grading."""
    assert problem.visible in problem.hidden
    run = await record_run(tmp_path / "run", "x = 1", problem.statement, f"It fails: {problem.visible}")
    assert find_leaks(problem, run) == ()


async def test_a_check_that_the_model_wrote_is_no_leak(tmp_path: Path, problem: Problem) -> None:
    """A model may know the data set, and a repair prompt contains the model's own code."""
    model_reply = f"def times_2(x): ...\n{HIDDEN_CHECK}"
    run = await record_run(tmp_path / "run", model_reply, problem.statement, f"Mend: {HIDDEN_CHECK}")
    assert find_leaks(problem, run) == ()


def make_model(body: str) -> ScriptedModel:
    """Return a model that always writes this function body."""
    code = f"def times_2(x):\n    {body}\n"
    return ScriptedModel([f"```python\n{code}```"], name="scripted:x", repeat_last=True)


async def measure(folder: BenchFolder, problem: Problem, regime: Regime) -> Sequence[BenchmarkRow]:
    """Run a benchmark in which the model is always wrong."""
    wrong_model = make_model("return 0")
    plan = BenchmarkPlan(
        ids={"mbpp": (problem.id,)},
        arms=("always_repair",),
        models=("scripted:x",),
        caps=(300,),
        regime=regime,
    )
    await run_benchmark(plan, folder, Settings(), opener=lambda settings, name: wrong_model)
    return folder.rows()


@pytest.mark.parametrize("regime", ["visible", "self", "oracle"])
async def test_only_prompts_of_the_oracle_regime_leak(
    tmp_path: Path, problem: Problem, regime: Regime, sandbox: BubblewrapSandbox
) -> None:
    """The scan of each row reports a leak exactly in the regime that shows hidden checks."""
    folder = BenchFolder(tmp_path / "bench")
    (row,) = await measure(folder, problem, regime)
    assert (row.regime, row.fault, row.solved()) == (regime, "", False)
    assert row.calls > 0
    leaks = find_leaks(problem, RunFolder(folder.path / "runs" / row.run))
    assert bool(leaks) == (regime == "oracle")


async def test_a_row_of_a_run_with_a_leak_has_no_result(
    tmp_path: Path, problem: Problem, sandbox: BubblewrapSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    leaky_settings = Settings().model_copy(
        update={"paths": Settings().paths.model_copy(update={"prompts": tmp_path / "prompts"})}
    )
    packaged_prompt = files("suture.agents") / "prompts" / "coder.yaml"
    (tmp_path / "prompts").mkdir()
    text = packaged_prompt.read_text("utf-8").replace(
        "Write the Python module", f"{HIDDEN_CHECK} Write the Python module"
    )
    (tmp_path / "prompts" / "coder.yaml").write_text(text, "utf-8")
    right_model = make_model("return 2 * x")
    folder = BenchFolder(tmp_path / "bench")
    folder.path.mkdir()
    folder.write_controls([("mbpp", problem.id)])
    plan = BenchmarkPlan(ids={"mbpp": (problem.id,)}, arms=("greedy",), models=("scripted:x",), caps=(300,))
    await run_benchmark(plan, folder, leaky_settings, opener=lambda settings, name: right_model)

    (row,) = folder.rows()

    assert row.fault.startswith("a prompt has a hidden check")
    assert row.solved() is None
