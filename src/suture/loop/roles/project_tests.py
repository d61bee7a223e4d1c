"""Complete a written project: with tests that pass on it and decide nothing, and with a lock file."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from suture.agents.calling.role_call import RoleCall
from suture.agents.roles.testers import (
    draft_project_test_prompt,
    project_test_path,
    tests_from_project_reply,
)
from suture.core.ledger.kinds import TestsWritten
from suture.core.records import Candidate, encode_record
from suture.judge import Suite, find_protected_files
from suture.loop.context import RunContext
from suture.loop.evaluation.judging import judge_at_once
from suture.loop.intake.project_skeleton import README_PATH
from suture.loop.intake.project_task import add_install_section
from suture.loop.policy.attempts import Attempt, find_best
from suture.loop.services.candidate_store import Lineage
from suture.loop.state import LoopState, add_judged_attempt, judged_attempts, role_contributions
from suture.loop.tuning import MAX_TEST_OUTPUT_CHARS
from suture.models import Role
from suture.project.languages import LANGUAGES
from suture.project.workspace import decode_text, overlay_candidate

COMPLETED = "project tests"
"""What `RoleContributions.done` says of a completed project."""
TESTER = "project_tester"


async def complete_project(state: LoopState, context: RunContext) -> dict[str, Any]:
    """Add tests and a lock file to a project that passes every deciding check; return the state's update.

    Tests are written for a new project if the user gave none. They have earned no trust, because a model wrote
    them as it wrote the code. So the project is not repaired to pass them: a test file that fails is left out,
    and the ledger records that. The lock file lists the packages with which the code was started.
    """
    contributions, best = role_contributions(state), find_best(judged_attempts(state))
    project = context.task.project
    if project is None or best is None or not best.solved or COMPLETED in contributions.done:
        return {}
    suite = await context.suites.load()
    added: dict[str, str] = {}
    if project.is_new and not context.task.test_command:
        added |= await _write_passing_tests(project.name, best, suite, context)
    added |= await _make_lock_file(best, suite, context)
    done = replace(contributions, done=(*contributions.done, COMPLETED))
    update: dict[str, Any] = {"contributions": encode_record(done)}
    if added:
        completed = await _judge_with_files(added, best, suite, state, context)
        update["judged"] = add_judged_attempt(state, completed)["judged"]
    return update


async def _make_lock_file(best: Attempt, suite: Suite, context: RunContext) -> dict[str, str]:
    """Return the files that the installation of the packages writes, unless the project has them already.

    The README of a new project then says how to install them.
    """
    files = overlay_candidate(context.task.files, context.candidates.load(best.blob).files)
    if suite.packages is None or suite.interpreter is None:
        return {}
    installed = await suite.packages.install_for(files, suite.interpreter)
    if installed is None:
        return {}
    written = dict(installed.files)
    if context.task.project is not None and context.task.project.is_new and README_PATH in files:
        readme = decode_text(files[README_PATH])
        written[README_PATH] = add_install_section(readme, LANGUAGES[context.task.language].layout)
    return {path: text for path, text in written.items() if files.get(path) != text.encode()}


async def _write_passing_tests(
    project_name: str, best: Attempt, suite: Suite, context: RunContext
) -> dict[str, str]:
    """Return the written tests if they pass on the code, path -> text; none if the tester is degraded."""
    original = context.candidates.load(best.blob)
    make_draft = partial(
        draft_project_test_prompt, task=context.task, project_name=project_name, files=original.files
    )
    role: Role = "tester" if "tester" in context.recipe.helpers.model_roles else "coder"
    tester = RoleCall(helper=TESTER, calls=context.calls, round=0, model_role=role)
    text = await tester.parse_or_degrade(make_draft, tests_from_project_reply)
    if text is None:
        return {}
    path = project_test_path(context.task.language, project_name)
    candidate = replace(original, files={**original.files, path: text}, origin="repair")
    refusal = ""
    if find_protected_files({path: text}, suite):
        refusal = f"{path} may not be written"
    elif context.safety.vet(candidate) is not None:
        refusal = "the safety scan does not let them run"
    elif suite.smoke is not None:
        files = overlay_candidate(context.task.files, candidate.files)
        async with context.budget.time_limit():
            with_packages, files = await suite.install_packages(files)
            run = await (with_packages.smoke or suite.smoke).run_tests(files)
        if run.status != "ok":
            refusal = f"they do not pass on the code: {_last_line(run.stdout)}"
    context.ledger.append(
        TestsWritten(role=TESTER, tests=() if refusal else (text,), dropped={refusal: 1} if refusal else {})
    )
    return {} if refusal else {path: text}


async def _judge_with_files(
    added: dict[str, str], best: Attempt, suite: Suite, state: LoopState, context: RunContext
) -> Attempt:
    """Return the best candidate with further files, judged again."""
    original = context.candidates.load(best.blob)
    candidate = Candidate(
        files={**original.files, **added},
        origin="repair",
        parent=original.hash,
        label=f"{original.label}, after adding {' and '.join(sorted(added))}",
    )
    lineage = Lineage(round=best.round, start=best.start, depth=best.depth)
    judged = await judge_at_once(candidate, lineage, suite, state, context)
    return replace(judged, rank=(best.rank or 0) + 1)


def _last_line(output: bytes) -> str:
    lines = output.decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:MAX_TEST_OUTPUT_CHARS] if lines else "no output"
