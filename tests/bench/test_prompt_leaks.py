"""Law 1 for the prompts of benchmark runs: hidden checks are found in them, and nothing else is."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

import pytest

from bench.bench_tasks import write_set
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

HIDDEN = "assert times_2(1234) == 2468"


@pytest.fixture
def problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Problem:
    monkeypatch.setenv("SUTURE_DATA", str(tmp_path / "data"))
    write_set(tmp_path / "data", 1)
    return load_problems("mbpp")[0]


async def asked(folder: Path, reply: str, *prompts: str) -> RunFolder:
    model = RecordedModel(ScriptedModel([reply], repeat_last=True), folder / "replies")
    for prompt in prompts:
        await model.complete([Message(role="user", content=prompt)], Sampling())
    return RunFolder(folder)


async def test_a_hidden_check_in_a_prompt_is_found(tmp_path: Path, problem: Problem) -> None:
    assert HIDDEN in problem.hidden
    run = await asked(tmp_path / "run", "x = 1", problem.statement, f"It fails:\n    {HIDDEN}\n")
    assert find_leaks(problem, run) == (HIDDEN,)


async def test_a_model_that_repeats_a_leak_does_not_hide_it(tmp_path: Path, problem: Problem) -> None:
    run = await asked(tmp_path / "run", f"It should be {HIDDEN}.", f"It fails:\n    {HIDDEN}\n")
    assert find_leaks(problem, run) == (HIDDEN,)


async def test_shown_checks_are_no_leaks(tmp_path: Path, problem: Problem) -> None:
    """The first assert is visible, and graded too."""
    assert problem.visible in problem.hidden
    run = await asked(tmp_path / "run", "x = 1", problem.statement, f"It fails: {problem.visible}")
    assert find_leaks(problem, run) == ()


async def test_a_check_that_the_model_wrote_is_no_leak(tmp_path: Path, problem: Problem) -> None:
    """A model may know the set by heart; its own code is shown to it again when it is to be repaired."""
    said = f"def times_2(x): ...\n{HIDDEN}"
    run = await asked(tmp_path / "run", said, problem.statement, f"Mend: {HIDDEN}")
    assert find_leaks(problem, run) == ()


def answering(body: str) -> ScriptedModel:
    code = f"def times_2(x):\n    {body}\n"
    return ScriptedModel([f"```python\n{code}```"], name="scripted:x", repeat_last=True)


async def measured(folder: BenchFolder, problem: Problem, regime: Regime) -> Sequence[BenchmarkRow]:
    wrong = answering("return 0")
    plan = BenchmarkPlan(
        ids={"mbpp": (problem.id,)},
        arms=("always_repair",),
        models=("scripted:x",),
        caps=(300,),
        regime=regime,
    )
    await run_benchmark(plan, folder, Settings(), opener=lambda settings, name: wrong)
    return folder.rows()


@pytest.mark.parametrize("regime", ["visible", "self", "oracle"])
async def test_the_prompts_of_a_benchmark(
    tmp_path: Path, problem: Problem, regime: Regime, sandbox: BubblewrapSandbox
) -> None:
    """The very scan that each row goes through sees the oracle regime for what it is."""
    folder = BenchFolder(tmp_path / "bench")
    (row,) = await measured(folder, problem, regime)
    assert (row.regime, row.fault, row.solved()) == (regime, "", False)
    assert row.calls > 0
    found = find_leaks(problem, RunFolder(folder.path / "runs" / row.run))
    assert bool(found) == (regime == "oracle")


async def test_a_row_of_a_run_that_leaked_has_no_number(
    tmp_path: Path, problem: Problem, sandbox: BubblewrapSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    leaky = Settings().model_copy(
        update={"paths": Settings().paths.model_copy(update={"prompts": tmp_path / "prompts"})}
    )
    ours = files("suture.agents") / "prompts" / "coder.yaml"
    (tmp_path / "prompts").mkdir()
    text = ours.read_text("utf-8").replace("Write the Python module", f"{HIDDEN} Write the Python module")
    (tmp_path / "prompts" / "coder.yaml").write_text(text, "utf-8")
    right = answering("return 2 * x")
    folder = BenchFolder(tmp_path / "bench")
    folder.path.mkdir()
    folder.write_controls([("mbpp", problem.id)])
    plan = BenchmarkPlan(ids={"mbpp": (problem.id,)}, arms=("greedy",), models=("scripted:x",), caps=(300,))
    await run_benchmark(plan, folder, leaky, opener=lambda settings, name: right)
    (row,) = folder.rows()
    assert row.fault.startswith("a prompt has a hidden check")
    assert row.solved() is None
