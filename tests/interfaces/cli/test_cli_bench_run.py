"""What `suture bench run` rejects before anything is measured."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from interfaces.cli.conftest import Cli
from models.openai_stub import Answer, OpenAIStub
from suture.bench.running.bench_folder import BenchFolder
from suture.bench.running.benchmark_plan import BenchmarkPlan
from suture.bench.running.benchmark_progress import BenchmarkProgress
from suture.errors import ModelError, SutureError, UsageError
from suture.interfaces.cli.bench.bench_progress import PHASE_TEXTS, BenchProgress
from suture.interfaces.cli.bench.bench_run_command import add_resume_hint


def test_no_set_is_a_usage_error(cli: Cli) -> None:
    for arguments, message in (
        ([], "nothing to measure"),
        (["--validate-reference"], "nothing to validate"),
        (["--task", "HumanEval/0"], "tasks are named, but no data set"),
    ):
        shown = cli("bench", "run", "mine", "--arm", "greedy", *arguments)
        assert shown.exit_code == 2, arguments
        assert message in shown.stderr
        assert "--dataset" in shown.stderr


def test_an_empty_file_of_ids_does_not_mean_every_task(cli: Cli, tmp_path: Path) -> None:
    ids = tmp_path / "ids.txt"
    ids.write_text("# none yet\n\n", "utf-8")
    shown = cli("bench", "run", "mine", "--dataset", "suture", "--ids-file", str(ids), "--arm", "greedy")
    assert shown.exit_code == 2
    assert "names no task" in shown.stderr


@pytest.mark.heavy
@pytest.mark.usefixtures("sandbox")
def test_a_benchmark_without_a_number_is_no_success(cli: Cli) -> None:
    """Neither when it is measured, nor when it is graded again."""
    broken = Answer(status=400, body={"error": {"message": "no such thing"}})
    set_and_arm = ("--dataset", "suture", "--first", "2", "--arm", "greedy", "--model", "openai:stub")
    with OpenAIStub() as server:
        server.answer(broken)
        environ = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "k"}
        shown = cli("bench", "run", "mine", *set_and_arm, env=environ)
    assert shown.exit_code == 6, shown.output
    assert "no number: " in shown.stderr
    assert "none of the 2 rows has a number" in shown.stderr
    assert "--resume" in shown.stderr
    again = cli("bench", "regrade", "mine")
    assert again.exit_code == 6, again.output
    assert "0 of 2 rows changed" in again.stderr


def requests_at(cli: Cli, *models: str, **environ: str) -> tuple[int, str]:
    """How many calls came to the address that the user set, and what was said."""
    set_and_arm = ("--dataset", "suture", "--first", "1", "--arm", "greedy")
    named = [word for model in models for word in ("--model", model)]
    with OpenAIStub() as server:
        server.answer(Answer(status=400, body={"error": {"message": "no such thing"}}))
        address = {"SUTURE_MODEL_BASE_URL": server.base_url, "OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}
        # A proxy that nobody listens at: no call of this test leaves the machine.
        nowhere = {"HTTPS_PROXY": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9"}
        shown = cli("bench", "run", "mine", *set_and_arm, *named, env={**nowhere, **address, **environ})
        return len(server.requests), shown.output


@pytest.mark.usefixtures("sandbox")
@pytest.mark.parametrize("name", ["auto", "ollama:x", "openai:y", "local:qwen2.5-coder-0.5b"])
def test_the_configured_address_is_used_for_the_measured_model(cli: Cli, name: str) -> None:
    asked, output = requests_at(cli, "openai:stub", SUTURE_MODEL_NAME=name)
    assert asked > 0, output


def test_an_ambiguous_address_is_refused(cli: Cli) -> None:
    asked, output = requests_at(cli, "openai:stub", "anthropic:stub")
    assert asked == 0
    assert "it is ambiguous which model it is for" in output


@pytest.mark.parametrize(
    ("stopped", "started", "remedy"),
    [
        (KeyboardInterrupt(), True, "results so far are kept; continue: suture bench run 'my set' --resume"),
        (ModelError("gone"), True, "continue: suture bench run 'my set' --resume"),
        (KeyboardInterrupt(), False, ""),
        (UsageError("of another regime"), True, ""),
    ],
)
def test_an_interrupted_benchmark_names_the_command_that_continues_it(
    stopped: BaseException, started: bool, remedy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["suture", "bench", "run", "my set"])
    folder = BenchFolder(tmp_path / "mine")
    if started:
        folder.path.mkdir()
        folder.write_plan(BenchmarkPlan(ids={"suture": ("a",)}, arms=("greedy",), models=("m",), caps=(9,)))
    with pytest.raises(SutureError) as caught, add_resume_hint(folder):
        raise stopped
    assert remedy in caught.value.remedy
    assert bool(remedy) == bool(caught.value.remedy)


def test_progress_is_rendered_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    with BenchProgress() as bar:
        for phase in PHASE_TEXTS:
            bar(BenchmarkProgress(phase=phase, done=1, total=2))
    assert capsys.readouterr().err.splitlines() == [f"{text}: 1 of 2" for text in PHASE_TEXTS.values()]
