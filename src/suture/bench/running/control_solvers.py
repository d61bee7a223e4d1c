"""Control solvers: one that is always right must score 1, and one that is always wrong 0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from suture.bench.grading.hidden_checks import Grade
from suture.bench.problem import MODULE, Problem
from suture.bench.running.benchmark_plan import BenchmarkProgress, ProgressListener
from suture.bench.running.evaluation import EvaluationJob, evaluate
from suture.core.settings import Settings
from suture.errors import PrerequisiteError
from suture.models import ScriptedModel
from suture.sandbox import Sandbox

CONTROL_TASKS = 5
"""Tasks of each data set that the controls run on. Chosen by judgement; not measured."""
CONTROL_CAP_TOKENS = 100_000
"""More tokens than any task takes, so that the cap never cuts a control."""


def sample_problems(problems: Sequence[Problem], count: int = CONTROL_TASKS) -> list[Problem]:
    """Return an evenly spaced sample of tasks, which does not depend on chance."""
    count = min(count, len(problems))
    return [problems[number * len(problems) // count] for number in range(count)]


async def require_controls(
    problems: Sequence[Problem],
    references: Mapping[str, Grade],
    settings: Settings,
    sandbox: Sandbox,
    judge: Sandbox,
    on_progress: ProgressListener = lambda progress: None,
) -> list[tuple[str, str]]:
    """Run both controls on some tasks of each data set, by the same path as every arm.

    Return (data set, task) of each task on which they ran.

    Args:
        references: Task hash -> grade of its reference. Tasks whose reference fails are skipped.
        on_progress: Called at the start and after each run.

    Raises:
        PrerequisiteError: A control does not score what it must, or no reference of a data set passes. No
            number would mean anything then.
    """
    sample = [
        problem
        for name in dict.fromkeys(problem.dataset for problem in problems)
        for problem in sample_problems(_with_passing_reference(name, problems, references))
    ]
    runs: list[tuple[Problem, str, Mapping[str, str]]] = []
    for problem in sample:
        runs.append((problem, "right", problem.solution))
        runs.append((problem, "wrong", {MODULE: _wrong_code(problem)}))
    on_progress(BenchmarkProgress(phase="controls", done=0, total=len(runs)))
    for number, (problem, name, files) in enumerate(runs, 1):
        job = EvaluationJob(
            problem=problem,
            arm="greedy",  # one reply and no repair, so that the reply alone decides the score
            model=f"scripted:always-{name}",
            seed=0,
            cap=CONTROL_CAP_TOKENS,
            regime="visible",
            reference=references[problem.content_hash],
        )
        model = ScriptedModel([_reply(files)], name=job.model, repeat_last=True)
        row = await evaluate(job, model=model, settings=settings, sandbox=sandbox, judge=judge)
        must_solve = name == "right"
        if row.solved() is not must_solve:
            raise PrerequisiteError(
                f"the control that is always {name} does not score {must_solve:d} on {problem.id}"
                f"{f': {row.fault}' if row.fault else ''}",
                remedy="nothing can be measured here; --validate-reference may show why",
            )
        on_progress(BenchmarkProgress(phase="controls", done=number, total=len(runs)))
    return [(problem.dataset, problem.id) for problem in sample]


def _with_passing_reference(
    name: str, problems: Sequence[Problem], references: Mapping[str, Grade]
) -> list[Problem]:
    members = [problem for problem in problems if problem.dataset == name]
    grades = [references[problem.content_hash] for problem in members]
    if not any(grade.right for grade in grades):
        raise PrerequisiteError(
            f"none of {len(members)} references of {name!r} passes here: {grades[0].reason or 'no reason'}",
            remedy="nothing can be measured here; --validate-reference may show why",
        )
    return [problem for problem, grade in zip(members, grades, strict=True) if grade.right]


def _wrong_code(problem: Problem) -> str:
    """Return code that defines the entry point and always raises; a capitalised name is a class."""
    name = problem.entry_point
    if name[:1].isupper():
        return f"class {name}:\n    def __init__(self, *args, **kwargs):\n        raise NotImplementedError\n"
    return f"def {name}(*args, **kwargs):\n    raise NotImplementedError\n"


def _reply(files: Mapping[str, str]) -> str:
    """Return files as a model writes them in a reply."""
    if len(files) == 1:
        return "".join(f"```python\n{text}\n```\n" for text in files.values())
    return "\n".join(f"### {path}\n```python\n{text}\n```\n" for path, text in files.items())
