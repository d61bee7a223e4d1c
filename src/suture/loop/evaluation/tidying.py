"""Tidy new code before it is handed over; the tidy version is judged like any other candidate."""

from __future__ import annotations

from dataclasses import replace

from suture.core.records import Candidate, Verdict
from suture.errors import BudgetExceeded
from suture.judge import Suite
from suture.loop.context import RunContext
from suture.loop.evaluation.judging import judge
from suture.project.languages import LANGUAGES
from suture.project.python_source.tidying import tidy_module


async def tidy_candidate(
    candidate: Candidate, verdict: Verdict, suite: Suite, context: RunContext
) -> tuple[Candidate, Verdict]:
    """Return code that a model wrote and that passes, as its readers expect it, with the verdict on that version.

    The code stays as it is if the tidy version passes less, or if there is no time to judge it.
    """
    task = context.task
    is_function = task.kind == "write" and task.project is None and LANGUAGES[task.language].parsed
    if not is_function or candidate.origin == "edit":
        return candidate, verdict
    files = {
        path: tidy_module(text) if path.endswith(".py") and text else text
        for path, text in candidate.files.items()
    }
    tidied = replace(candidate, files=files, parent=candidate.hash)
    if files == candidate.files:
        return candidate, verdict
    context.ledger.append(context.candidates.make_proposal(tidied))
    try:
        tidied_verdict = await judge(tidied, suite, context, confirm=False)
    except BudgetExceeded:
        return candidate, verdict
    is_equal = verdict.passed <= tidied_verdict.passed and tidied_verdict.failed <= verdict.failed
    return (tidied, tidied_verdict) if is_equal else (candidate, verdict)
