"""Write a test: where every test passes and the user reports a fault, a test that shows it comes first.

A model writes it, it is run on the code as it is, and a person is shown how it fails. It decides nothing
before they have accepted it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import PurePosixPath
from typing import Any

from langgraph.runtime import Runtime
from langgraph.types import interrupt

from suture.agents.roles.testers import ReproducerBrief, reproducer_draft, test_from_reply
from suture.core.ledger import last_of
from suture.core.ledger.kinds import TestAccepted, TestsWritten
from suture.core.records import Candidate, CheckOutcome, content_hash, from_plain, to_plain
from suture.errors import MalformedReply, UsageError
from suture.judge import Suite, check_candidate
from suture.judge import protected_files as refused_files
from suture.loop.calls.helper_call import Consultation
from suture.loop.context import RunContext
from suture.loop.prompting.file_focus import named_files
from suture.loop.state import LoopState, tried_in
from suture.models import NO_MODEL
from suture.project.languages import is_pytest_command
from suture.project.workspace import is_protected, text_of

MOST_TRIES = 3
"""Tests that are asked for until one fails on the present code; a person's hint begins anew."""
WARM = 0.6
"""Temperature of the tries after the first, which is greedy."""
OF_ITS_OWN = (
    "ImportError",
    "ModuleNotFoundError",
    "NameError",
    "SyntaxError",
    "IndentationError",
    "fixture ",
)
"""Faults of a test itself: it would fail on mended code too."""


@dataclass(frozen=True, kw_only=True)
class WrittenTest:
    """A test that fails on the code as it is.

    Attributes:
        path: Its file, relative to the project root.
        blob: Blob of the candidate that is this file and nothing else.
        verdict: Blob of the verdict on the code as it is, by the test and those that were there.
        command: The test command that runs all of them.
        accepted: Whether a person said that it decides.
    """

    path: str
    blob: str
    verdict: str
    command: tuple[str, ...]
    accepted: bool = False


def wants_test(state: LoopState, context: RunContext) -> bool:
    """Whether the user reports a fault that no test shows, and a test for it can be written and run."""
    task, base = context.task, next(iter(tried_in(state)), None)
    reported = task.kind == "heal" and bool(task.statement.strip())
    can = is_pytest_command(task.test_command) and context.model.name != NO_MODEL
    passes = base is not None and base.origin == "user" and base.solved and not state["not_code"]
    return reported and can and passes and last_of(context.ledger.events, TestAccepted) is None


async def write_test(state: LoopState, runtime: Runtime[RunContext]) -> dict[str, Any]:
    """Have a test written that fails on the code as it is; without one the run ends, and says why."""
    context, begun = runtime.context, state.get("test_tries", 0)
    refused: list[str] = []
    for number in range(begun, begun + MOST_TRIES):
        try:
            test = await _written(number, number - begun, refused, state, context)
            return {"written_test": to_plain(test), "test_tries": number + 1}
        except MalformedReply as fault:
            refused.append(fault.message)
    why = f"every test passes, and none of {MOST_TRIES} tests written for the issue shows it: {refused[-1]}"
    return {"moves": [], "outcome": "not_healed", "reason": why}


async def accept_test(state: LoopState, runtime: Runtime[RunContext]) -> dict[str, Any]:
    """Ask a person whether the test may decide, and do as they say; asking again is free."""
    context = runtime.context
    test = from_plain(WrittenTest, state.get("written_test", {}))
    answer = interrupt(_question(test, state))
    choice = answer["choice"]
    if choice == "redirect":
        return {"written_test": {}, "hints": [*state["hints"], answer["hint"]]}
    if choice == "approve":
        source = context.candidate(test.blob).files[test.path]
        if last_of(context.ledger.events, TestAccepted) is None:
            context.ledger.append(TestAccepted(path=test.path, source=source, command=test.command))
        await context.let_go()  # what was begun for the code without the test
        # The issue says more than its one test, and a search cannot read it: it would find the least edit
        # that gives this one answer. So the model is asked at once.
        return {"written_test": to_plain(replace(test, accepted=True)), "searched": True}
    if choice == "abort":
        return {"moves": [], "outcome": "cancelled", "reason": "stopped by the person who was shown the test"}
    return {
        "moves": [],
        "outcome": "not_healed",
        "reason": "the test that was written for the issue was not accepted",
    }


def _question(test: WrittenTest, state: LoopState) -> dict[str, Any]:
    """As JSON values of a `ReviewAsked`."""
    asked = {"stage": "test", "decision": state["decisions"], "round": state["round"], "moves": []}
    return {
        "key": content_hash({**asked, "test": test.blob}),
        **asked,
        "candidate": "",
        "blob": test.blob,
        "verdict": test.verdict,
        "diagnosis": None,
        "difference": None,
    }


async def _written(
    number: int, tries: int, refused: Sequence[str], state: LoopState, context: RunContext
) -> WrittenTest:
    """One test, tried on the code as it is.

    Raises:
        MalformedReply: It shows nothing, or cannot be run; why is what the model is told next.
    """
    suite = await context.load_suite()
    path = _free_path(suite)
    brief = ReproducerBrief(
        statement=context.task.statement,
        path=path,
        files=_shown(suite, context),
        examples=_example(suite),
        refused=refused,
        hints=state["hints"],
    )
    asked = Consultation(
        helper="reproducer",
        context=context,
        round=number,
        temperature=WARM if tries else 0.0,
    )
    source = await asked.read(reproducer_draft(brief, asked.prompt), test_from_reply)
    context.ledger.append(TestsWritten(role="reproducer", tests=(source,), dropped={}))
    async with context.budget.time_limit():
        return await _tried(path, source, suite, context)


async def _tried(path: str, source: str, suite: Suite, context: RunContext) -> WrittenTest:
    before = await check_candidate(Candidate(files={}, origin="user"), suite)
    for command in (suite.task.test_command, (*suite.task.test_command, path)):
        files = {**suite.task.files, path: source.encode()}
        try:
            with_it = await context.prepare(replace(suite.task, files=files, test_command=command))
        except UsageError:
            continue
        verdict = await check_candidate(Candidate(files={}, origin="user"), with_it)
        new = [outcome for outcome in verdict.outcomes if outcome.check_id.startswith(f"{path}::")]
        if not new or before.passed - verdict.passed:
            continue  # the command does not run it, or runs it alone
        _require_telling(new, path)
        again = await check_candidate(Candidate(files={}, origin="user"), with_it)
        if again.failed != verdict.failed:
            raise MalformedReply("the test fails at one time and passes at another")
        blob = context.keep(Candidate(files={path: source}, origin="sample", label="a test for the issue"))
        # Without the tests that were there before: they pass, and nobody is asked about them.
        shown = context.keep(replace(verdict, outcomes=tuple(new)))
        return WrittenTest(path=path, blob=blob, verdict=shown, command=command)
    raise MalformedReply("the test cannot be collected by the project's test command")


def _require_telling(new: Sequence[CheckOutcome], path: str) -> None:
    failing = [outcome for outcome in new if outcome.status not in ("passed", "skipped")]
    if not failing:
        raise MalformedReply("the test passes on the present code, so it does not show the fault")
    for outcome in failing:
        fact = outcome.counterexample
        said = fact.exception if fact else ""
        of_its_own = said.startswith(OF_ITS_OWN) and (fact is None or fact.file in ("", path))
        if outcome.status == "error" or of_its_own:
            raise MalformedReply(f"the test itself is wrong: {said or 'it cannot be set up'}")


def _free_path(suite: Suite) -> str:
    """A new file beside the project's tests, by a name that they have."""
    folder = PurePosixPath(next(iter(suite.test_files), "test_x.py")).parent
    names = (str(folder / f"test_issue{f'_{n}' if n > 1 else ''}.py") for n in count(1))
    return next(name for name in names if name not in suite.task.files)


def _shown(suite: Suite, context: RunContext) -> dict[str, str]:
    """The code that the issue names, and what else there is room for."""
    files = suite.task.files
    closed = {
        *refused_files(dict.fromkeys(files, ""), suite),
        *(path for path in files if is_protected(path)),
    }
    return named_files(files, context.task.statement, closed, context.task.language)


def _example(suite: Suite) -> str:
    paths = [path for path in suite.test_files if path in suite.task.files]
    return text_of(suite.task.files[paths[0]]) if paths else ""
