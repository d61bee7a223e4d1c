"""Tests for a project that was written: they go with it where they pass, and decide nothing."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from suture.agents.roles.testers import (
    ProjectTestBrief,
    project_test_draft,
    tests_from_project_reply,
)
from suture.core.ledger.kinds import TestsWritten
from suture.core.records import Candidate, to_plain
from suture.judge import Suite
from suture.judge import protected_files as refused_files
from suture.loop.calls.helper_call import Consultation
from suture.loop.context import RunContext
from suture.loop.evaluation.judging import judge, judged_attempt
from suture.loop.policy.progress import Attempt, best_of
from suture.loop.proposing import Lineage, propose_candidate
from suture.loop.state import LoopState, aids_of, tried_in, with_tried
from suture.models import Role
from suture.project.workspace import overlay

DONE = "project tests"
WHO = "project_tester"
MOST_SAID = 300


async def completed_project(state: LoopState, context: RunContext) -> dict[str, Any]:
    """Once a project passes all that decides, lay beside it what goes with it: tests, and a lock.

    One that is there has its own tests; its manifest and its lock say what was added.

    Tests are written where the user gave none. A test that a model wrote for code of a model has earned no
    trust: nobody is sent back for failing it. A file that fails on the code is left out, and the ledger says
    so. The lock says which packages the code was started with.

    Raises:
        BudgetExceeded: The time is up.
        SandboxError: The wall failed.
    """
    aids, best = aids_of(state), best_of(tried_in(state))
    project = context.task.project
    if project is None or best is None or not best.solved or DONE in aids.read:
        return {}
    suite = await context.load_suite()
    more: dict[str, str] = {}
    if project.is_new and not context.task.test_command:
        more |= await _passing_tests(best, suite, context)
    more |= await _lock(best, suite, context)
    update: dict[str, Any] = {"aids": to_plain(replace(aids, read=(*aids.read, DONE)))}
    if more:
        completed = await _with_more(more, best, suite, context)
        update["tried"] = with_tried(state, (*tried_in(state), completed))["tried"]
    return update


async def _lock(best: Attempt, suite: Suite, context: RunContext) -> dict[str, str]:
    files = overlay(context.task.files, context.candidate(best.blob).files)
    packages, interpreter = suite.packages, suite.interpreter
    if packages is None or interpreter is None:
        return {}
    installed = await packages.for_files(files, interpreter)
    made = installed.files if installed is not None else {}
    return {path: text for path, text in made.items() if files.get(path) != text.encode()}


async def _written(best: Attempt, context: RunContext) -> tuple[str, str] | None:
    """The path and the text of the tests; `None` where the tester is degraded."""
    task = context.task
    brief = ProjectTestBrief(
        statement=task.statement,
        language=task.language,
        name=task.project.name if task.project else "",
        files=context.candidate(best.blob).files,
    )
    seat: Role = "tester" if "tester" in context.recipe.helpers.seats else "coder"
    asked = Consultation(helper=WHO, context=context, round=0, speaks_as=seat)
    text = await asked.read_or_none(partial(project_test_draft, brief), tests_from_project_reply)
    return None if text is None else (brief.path, text)


async def _passing_tests(best: Attempt, suite: Suite, context: RunContext) -> dict[str, str]:
    """The tests where they pass on the code, path -> text."""
    written = await _written(best, context)
    if written is None:
        return {}
    path, text = written
    before = context.candidate(best.blob)
    candidate = replace(before, files={**before.files, path: text}, origin="repair")
    why = "" if not refused_files({path: text}, suite) else f"{path} may not be written"
    if not why and context.vet(candidate) is not None:
        why = "the safety scan does not let them run"
    if not why and suite.smoke is not None:
        files = overlay(context.task.files, candidate.files)
        async with context.budget.time_limit():
            ready, files = await suite.with_packages(files)
            ran = await (ready.smoke or suite.smoke).run_tests(files)
        why = "" if ran.status == "ok" else f"they do not pass on the code: {_last_line(ran.stdout)}"
    context.ledger.append(
        TestsWritten(role=WHO, tests=() if why else (text,), dropped={why: 1} if why else {})
    )
    return {} if why else {path: text}


async def _with_more(more: dict[str, str], best: Attempt, suite: Suite, context: RunContext) -> Attempt:
    """The candidate with more files, judged anew."""
    before = context.candidate(best.blob)
    candidate = Candidate(
        files={**before.files, **more},
        origin="repair",
        parent=before.hash,
        label=f"{before.label}, with {' and '.join(sorted(more))}",
    )
    lineage = Lineage(round=best.round, start=best.start, depth=best.depth)
    proposal = propose_candidate(candidate, lineage, context)
    verdict = await judge(candidate, suite, context)
    judged = judged_attempt(proposal, verdict, None, context)
    return replace(judged, rank=(best.rank or 0) + 1)


def _last_line(printed: bytes) -> str:
    lines = printed.decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:MOST_SAID] if lines else "no output"
