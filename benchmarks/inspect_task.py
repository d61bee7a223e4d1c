"""Suture as a solver of inspect_ai, whose viewer shows each call of the model, each event of the run and the verdict.

pip install inspect-ai
inspect eval benchmarks/inspect_task.py --model PROVIDER/MODEL -T dataset=suture -T first=5 -T recipe=reflexion
inspect view
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import transcript
from inspect_ai.model import (
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    GenerateConfig,
    get_model,
)
from inspect_ai.scorer import CORRECT, INCORRECT, Score, Scorer, Target, accuracy, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver

from suture.api import WriteOptions, solve
from suture.bench import Problem, build_task, grade_code, load_problems
from suture.core.records import encode_record
from suture.core.settings import load_settings
from suture.models import Message, Reply, Sampling
from suture.sandbox import open_sandbox

MESSAGES = {"system": ChatMessageSystem, "user": ChatMessageUser, "assistant": ChatMessageAssistant}


class InspectModel:
    """The model of the evaluation, as Suture calls it. Recipes that use tools need more than this."""

    def __init__(self) -> None:
        self.name = str(get_model()).replace("/", ":", 1)

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Reply:
        """Return the reply, which inspect_ai logs."""
        config = GenerateConfig(
            temperature=sampling.temperature,
            max_tokens=sampling.max_tokens,
            stop_seqs=list(sampling.stop) or None,
        )
        output = await get_model().generate(
            [MESSAGES[message.role](content=message.content) for message in messages], config=config
        )
        usage = output.usage
        return Reply(
            text=output.completion,
            finish="length" if output.stop_reason == "max_tokens" else "stop",
            prompt_tokens=usage.input_tokens if usage else 0,
            completion_tokens=usage.output_tokens if usage else 0,
            model=self.name,
        )

    async def close(self) -> None:
        """Do nothing: inspect_ai closes its models."""


@task  # type: ignore[untyped-decorator]  # if inspect_ai is not installed
def suture_task(dataset: str = "suture", first: int | None = None, recipe: str = "reflexion") -> Task:
    """Return the tasks of one of Suture's data sets, with Suture as the solver and its verdict as the score."""
    samples = [
        Sample(id=problem.id, input=problem.statement, metadata={"dataset": dataset})
        for problem in load_problems(dataset, first=first)
    ]
    return Task(dataset=MemoryDataset(samples), solver=suture_solver(recipe), scorer=suture_verdict())


@solver  # type: ignore[untyped-decorator]  # if inspect_ai is not installed
def suture_solver(recipe: str) -> Solver:
    """Return a solver that runs Suture on a task; each event of the run becomes an event of the transcript."""

    async def run(state: TaskState, generate: Generate) -> TaskState:
        options = WriteOptions(
            settings=load_settings(Path(), {"loop.recipe": recipe}).settings,
            model=InspectModel(),
            on_event=lambda event: transcript().info(encode_record(event), source="suture"),
        )
        result = await solve(build_task(_find_problem(state)), options)
        files = dict(result.candidate.files) if result.candidate is not None else {}
        state.output.completion = "\n".join(f"# {path}\n{text}" for path, text in files.items())
        state.metadata |= {"files": files, "run": result.run_id, "outcome": result.outcome}
        return state

    return run


@scorer(metrics=[accuracy(), stderr()])  # type: ignore[untyped-decorator]
def suture_verdict() -> Scorer:
    """Return a scorer that runs the hidden tests in a sandbox of their own, after the run has ended."""

    async def score(state: TaskState, target: Target) -> Score:
        settings = load_settings(Path()).settings
        sandbox = open_sandbox(settings.sandbox, keys=settings.keys, cache=settings.paths.cache)
        try:
            grade = await grade_code(_find_problem(state), state.metadata["files"], sandbox, settings.sandbox)
        finally:
            await sandbox.close()
        explanation = f"{grade.status}, by a verdict of the kind {grade.evidence!r}. {grade.reason}"
        value = CORRECT if grade.right else INCORRECT
        return Score(value=value, answer=state.output.completion, explanation=explanation)

    return score


def _find_problem(state: TaskState) -> Problem:
    return load_problems(state.metadata["dataset"], ids=[str(state.sample_id)])[0]
