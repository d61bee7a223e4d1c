"""Before any number: a solver that is always right must score 1, and one that is always wrong 0."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from suture.bench.grading.hidden_checks import Grade
from suture.bench.problem import MODULE, Problem
from suture.bench.running.evaluating import EvaluationJob, evaluate
from suture.core.settings import Settings
from suture.errors import PrerequisiteError
from suture.models import ScriptedModel
from suture.sandbox import Sandbox

SAMPLE = 5
"""Tasks of each set on which the two are tried."""
CAP = 100_000
"""Tokens; beyond what any task takes, so that a control is never cut by it."""


def sample_of(problems: Sequence[Problem], count: int = SAMPLE) -> list[Problem]:
    """So many tasks, evenly spread."""
    count = min(count, len(problems))
    return [problems[number * len(problems) // count] for number in range(count)]


async def require_controls(
    problems: Sequence[Problem],
    references: Mapping[str, Grade],
    settings: Settings,
    sandbox: Sandbox,
    judge: Sandbox,
    on_tried: Callable[[int, int], None] = lambda done, total: None,
) -> list[tuple[str, str]]:
    """Try both on some tasks of each set, by the very path that every arm goes.

    Args:
        problems: The tasks of the benchmark.
        references: How their references are graded, by the hash of the task; where one fails the task is
            passed over, if another task of its set has one that passes.
        settings: All settings.
        sandbox: The wall for the runs.
        judge: The wall for the hidden checks.
        on_tried: Told how many of how many trials are over: at the start, and after each.

    Returns:
        Set and id of the tasks on which they were tried.

    Raises:
        PrerequisiteError: One of them does not score what it must, or there is a set on which they cannot be
            tried, as none of its references passes; so no number would mean anything.
    """
    tried = [
        problem
        for name in dict.fromkeys(problem.dataset for problem in problems)
        for problem in sample_of(_fit(name, problems, references))
    ]
    on_tried(0, 2 * len(tried))
    for number, problem in enumerate(tried):
        reference = references[problem.content_hash]
        for over, (name, files, wanted) in enumerate(
            (
                ("right", problem.solution, True),
                ("wrong", {MODULE: _wrong_code(problem)}, False),
            )
        ):
            job = EvaluationJob(
                problem=problem,
                arm="greedy",
                model=f"scripted:always-{name}",
                seed=0,
                cap=CAP,
                regime="visible",
                reference=reference,
            )
            model = ScriptedModel([_reply(files)], name=job.model, repeat_last=True)
            row = await evaluate(job, model=model, settings=settings, sandbox=sandbox, judge=judge)
            if row.solved() is not wanted:
                raise PrerequisiteError(
                    f"the solver that is always {name} does not score {wanted:d} on {problem.id}"
                    f"{f': {row.fault}' if row.fault else ''}",
                    remedy="nothing can be measured here; --validate-reference may show why",
                )
            on_tried(2 * number + over + 1, 2 * len(tried))
    return [(problem.dataset, problem.id) for problem in tried]


def _fit(name: str, problems: Sequence[Problem], references: Mapping[str, Grade]) -> list[Problem]:
    members = [problem for problem in problems if problem.dataset == name]
    grades = [references[problem.content_hash] for problem in members]
    if not any(grade.right for grade in grades):
        raise PrerequisiteError(
            f"not one of {len(members)} references of {name!r} passes here: {grades[0].why or 'no reason'}",
            remedy="nothing can be measured here; --validate-reference may show why",
        )
    return [problem for problem, grade in zip(members, grades, strict=True) if grade.right]


def _wrong_code(problem: Problem) -> str:
    name = problem.entry_point
    if name[:1].isupper():
        return f"class {name}:\n    def __init__(self, *args, **kwargs):\n        raise NotImplementedError\n"
    return f"def {name}(*args, **kwargs):\n    raise NotImplementedError\n"


def _reply(files: Mapping[str, str]) -> str:
    if len(files) == 1:
        return "".join(f"```python\n{text}\n```\n" for text in files.values())
    return "\n".join(f"### {path}\n```python\n{text}\n```\n" for path, text in files.items())
