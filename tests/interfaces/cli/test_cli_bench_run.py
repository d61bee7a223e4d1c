"""`suture bench run` rejects wrong input before it measures, and fails without results."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from interfaces.cli.conftest import Cli
from models.openai_stub import Answer, OpenAIStub
from suture.bench.running.bench_folder import BenchFolder
from suture.bench.running.benchmark_plan import BenchmarkPlan, BenchmarkProgress
from suture.errors import ModelError, SutureError, UsageError
from suture.interfaces.cli.bench.bench_progress import PHASE_TEXTS, BenchProgress
from suture.interfaces.cli.bench.bench_run_command import add_resume_hint


def test_bench_run_without_a_data_set_is_a_usage_error(cli: Cli) -> None:
    for arguments, message in (
        ([], "nothing to measure"),
        (["--validate-reference"], "nothing to validate"),
        (["--task", "HumanEval/0"], "tasks are named, but no data set"),
    ):
        result = cli("bench", "run", "mine", "--arm", "greedy", *arguments)
        assert result.exit_code == 2, arguments
        assert message in result.stderr
        assert "--dataset" in result.stderr


def test_an_empty_file_of_ids_is_refused(cli: Cli, tmp_path: Path) -> None:
    ids = tmp_path / "ids.txt"
    ids.write_text("# none yet\n\n", "utf-8")
    result = cli("bench", "run", "mine", "--dataset", "suture", "--ids-file", str(ids), "--arm", "greedy")
    assert result.exit_code == 2
    assert "names no task" in result.stderr


@pytest.mark.heavy
@pytest.mark.usefixtures("sandbox")
def test_a_benchmark_without_any_result_fails(cli: Cli) -> None:
    """Both the measurement and a later regrading exit with an error."""
    refusal = Answer(status=400, body={"error": {"message": "no such thing"}})
    options = ("--dataset", "suture", "--first", "2", "--arm", "greedy", "--model", "openai:stub")
    with OpenAIStub() as server:
        server.answer(refusal)
        environ = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "k"}
        result = cli("bench", "run", "mine", *options, env=environ)
    assert result.exit_code == 6, result.output
    assert "no number: " in result.stderr
    assert "none of the 2 rows has a number" in result.stderr
    assert "--resume" in result.stderr

    regrade = cli("bench", "regrade", "mine")
    assert regrade.exit_code == 6, regrade.output
    assert "0 of 2 rows changed" in regrade.stderr


def count_requests(cli: Cli, *models: str, **environ: str) -> tuple[int, str]:
    """Return how many requests reached the configured address, and the output of the command."""
    options = ("--dataset", "suture", "--first", "1", "--arm", "greedy")
    model_options = [word for model in models for word in ("--model", model)]
    with OpenAIStub() as server:
        server.answer(Answer(status=400, body={"error": {"message": "no such thing"}}))
        address = {"SUTURE_MODEL_BASE_URL": server.base_url, "OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}
        # Nothing listens at this proxy, so that no request of the test leaves the machine.
        dead_proxy = {"HTTPS_PROXY": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9"}
        result = cli(
            "bench", "run", "mine", *options, *model_options, env={**dead_proxy, **address, **environ}
        )
        return len(server.requests), result.output


@pytest.mark.usefixtures("sandbox")
@pytest.mark.parametrize("name", ["auto", "ollama:x", "openai:y", "local:qwen2.5-coder-0.5b"])
def test_the_configured_address_is_used_for_the_measured_model(cli: Cli, name: str) -> None:
    request_count, output = count_requests(cli, "openai:stub", SUTURE_MODEL_NAME=name)
    assert request_count > 0, output


def test_an_ambiguous_address_is_refused(cli: Cli) -> None:
    request_count, output = count_requests(cli, "openai:stub", "anthropic:stub")
    assert request_count == 0
    assert "it is ambiguous which model it is for" in output


@pytest.mark.parametrize(
    ("error", "started", "remedy"),
    [
        (KeyboardInterrupt(), True, "results so far are kept; continue: suture bench run 'my set' --resume"),
        (ModelError("gone"), True, "continue: suture bench run 'my set' --resume"),
        (KeyboardInterrupt(), False, ""),
        (UsageError("of another regime"), True, ""),
    ],
)
def test_an_interrupted_benchmark_names_the_command_that_continues_it(
    error: BaseException, started: bool, remedy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["suture", "bench", "run", "my set"])
    folder = BenchFolder(tmp_path / "mine")

    if started:
        folder.path.mkdir()
        folder.write_plan(BenchmarkPlan(ids={"suture": ("a",)}, arms=("greedy",), models=("m",), caps=(9,)))

    with pytest.raises(SutureError) as raised, add_resume_hint(folder):
        raise error
    assert remedy in raised.value.remedy
    assert bool(remedy) == bool(raised.value.remedy)


def test_progress_is_rendered_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    with BenchProgress() as bar:
        for phase in PHASE_TEXTS:
            bar(BenchmarkProgress(phase=phase, done=1, total=2))
    assert capsys.readouterr().err.splitlines() == [f"{text}: 1 of 2" for text in PHASE_TEXTS.values()]
