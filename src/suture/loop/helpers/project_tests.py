"""Tests for a project that was written: they go with it where they pass, and decide nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from suture.checks import Suite, refused_files
from suture.ledger.kinds import TestsWritten
from suture.loop.calls.helper_call import Consultation
from suture.loop.context import RunContext
from suture.loop.evaluation.judging import judge, judged_attempt
from suture.loop.helper_state import aids_of
from suture.loop.policy.progress import Attempt, best_of
from suture.loop.proposing import Lineage, propose_candidate
from suture.loop.state import LoopState, tried_in, with_tried
from suture.models import Role
from suture.records import Candidate, to_plain
from suture.roles.testers.project_tester import (
    ProjectTestBrief,
    project_test_draft,
    tests_from_project_reply,
)
from suture.workspace import overlay

DONE = "project tests"
WHO = "project_tester"
MOST_SAID = 300


async def tested_project(state: LoopState, context: RunContext) -> dict[str, Any]:
    """Have tests written, once, for a new project that passes all that decides and has none of the user's.

    A test that a model wrote for code of a model has earned no trust: nobody is sent back for failing it. A
    file that fails on the code is left out, and the ledger says so.

    Raises:
        BudgetExceeded: The time is up.
        SandboxError: The wall failed.
    """
    aids, best = aids_of(state), best_of(tried_in(state))
    project = context.task.project
    ready = project is not None and project.is_new and not context.task.test_command
    if not ready or best is None or not best.solved or DONE in aids.read:
        return {}
    written = await _written(best, context)
    update: dict[str, Any] = {"aids": to_plain(replace(aids, read=(*aids.read, DONE)))}
    if written is None:
        return update
    suite = await context.load_suite()
    tested = await _with_tests(written, best, suite, context)
    if tested is not None:
        update["tried"] = with_tried(state, (*tried_in(state), tested))["tried"]
    return update


async def _written(best: Attempt, context: RunContext) -> tuple[str, str] | None:
    """The path and the text of the tests; `None` where the tester is degraded."""
    task = context.task
    brief = ProjectTestBrief(
        statement=task.statement,
        language=task.language,
        name=task.project.name if task.project else "",
        files=context.candidate(best.blob).files,
    )

    async def ask(asked: Consultation) -> str:
        return await asked.read(project_test_draft(brief, asked.prompt), tests_from_project_reply)

    seat: Role = "tester" if "tester" in context.recipe.helpers.seats else "coder"
    asked = Consultation(helper=WHO, context=context, round=0, speaks_as=seat)
    text = await asked.or_none(ask)
    return None if text is None else (brief.path, text)


async def _with_tests(
    written: tuple[str, str], best: Attempt, suite: Suite, context: RunContext
) -> Attempt | None:
    """The candidate with its tests, judged anew; `None` where they fail on it."""
    path, text = written
    before = context.candidate(best.blob)
    candidate = Candidate(
        files={**before.files, path: text},
        origin="repair",
        parent=before.hash,
        label=f"{before.label}, with tests",
    )
    why = "" if not refused_files({path: text}, suite) else f"{path} may not be written"
    if not why and context.vet(candidate) is not None:
        why = "the safety scan does not let them run"
    if not why and suite.smoke is not None:
        async with context.budget.time_limit():
            ran = await suite.smoke.run_tests(overlay(context.task.files, candidate.files))
        why = "" if ran.status == "ok" else f"they do not pass on the code: {_last_line(ran.stdout)}"
    context.ledger.append(
        TestsWritten(role=WHO, tests=() if why else (text,), dropped={why: 1} if why else {})
    )
    if why:
        return None
    lineage = Lineage(round=best.round, start=best.start, depth=best.depth)
    proposal = propose_candidate(candidate, lineage, context)
    verdict = await judge(candidate, suite, context)
    judged = judged_attempt(proposal, verdict, None, context)
    return replace(judged, rank=(best.rank or 0) + 1)


def _last_line(printed: bytes) -> str:
    lines = printed.decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:MOST_SAID] if lines else "no output"
