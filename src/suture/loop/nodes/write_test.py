"""Write a test that shows a reported fault, for a project whose own tests all pass.

A model writes the test, it runs on the unchanged code, and a person sees how it fails. It decides nothing
before the person has accepted it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import PurePosixPath
from typing import Any

from langgraph.runtime import Runtime
from langgraph.types import interrupt

from suture.agents.calling.role_call import RoleCall
from suture.agents.context.file_selection import select_named_files
from suture.agents.roles.testers import draft_reproducer_prompt, test_from_reply
from suture.core.ledger import last_payload
from suture.core.ledger.kinds import ReviewAsked, TestAccepted, TestsWritten
from suture.core.records import Candidate, CheckOutcome, Reason, content_hash, decode_record, encode_record
from suture.errors import MalformedReply, UsageError
from suture.judge import Suite, check_candidate, find_protected_paths
from suture.loop.context import RunContext
from suture.loop.state import LoopState, ended_state, judged_attempts
from suture.loop.tuning import MAX_TEST_ATTEMPTS, TEST_RETRY_TEMPERATURE
from suture.project.languages import is_pytest_command
from suture.project.workspace import decode_text, is_protected

TEST_FAULTS = (
    "ImportError",
    "ModuleNotFoundError",
    "NameError",
    "SyntaxError",
    "IndentationError",
    "fixture ",  # pytest's "fixture 'name' not found" has no exception type.
)
"""Beginnings of exceptions that are faults of the test itself: it would fail on repaired code too."""


@dataclass(frozen=True, kw_only=True)
class IssueTest:
    """A test that fails on the unchanged code.

    Attributes:
        path: Its file, relative to the project root.
        blob: The blob of a candidate that is this file and nothing else.
        verdict: The blob of the verdict of the test on the unchanged code.
        command: The test command that runs it together with the other tests.
    """

    path: str
    blob: str
    verdict: str
    command: tuple[str, ...]


def needs_test(state: LoopState, context: RunContext) -> bool:
    """Return whether no test shows the reported fault, and one can be written and run."""
    task, baseline = context.task, next(iter(judged_attempts(state)), None)
    is_reported = task.kind == "heal" and bool(task.statement.strip())
    can_test = is_pytest_command(task.test_command) and context.has_model
    # `cause`: why no change of the code could make the tests pass, such as a missing package.
    passes = baseline is not None and baseline.origin == "user" and baseline.solved and not state["cause"]
    is_accepted = last_payload(context.ledger.events, TestAccepted) is not None
    return is_reported and can_test and passes and not is_accepted


async def write_test(state: LoopState, runtime: Runtime[RunContext]) -> dict[str, Any]:
    """Have a test written that fails on the unchanged code, or end the run."""
    context, attempts = runtime.context, state.get("test_attempts", 0)
    refusals: list[str] = []
    for number in range(attempts, attempts + MAX_TEST_ATTEMPTS):
        try:
            test = await _request_test(number, refusals, state, context)
            return {"issue_test": encode_record(test), "test_attempts": number + 1}
        except MalformedReply as fault:
            refusals.append(fault.message)
    reason = Reason(code="issue_not_reproduced", count=MAX_TEST_ATTEMPTS, detail=refusals[-1])
    return ended_state("not_healed", reason)


async def accept_test(state: LoopState, runtime: Runtime[RunContext]) -> dict[str, Any]:
    """Ask a person whether the test may decide, and return the update that their answer leads to."""
    context = runtime.context
    test = decode_record(IssueTest, state.get("issue_test", {}))
    # LangGraph runs this node again from its start when the answer is there: so far, nothing was changed.
    answer = interrupt(encode_record(_make_question(test, state)))
    choice = answer["choice"]
    if choice == "redirect":
        return {"issue_test": {}, "hints": [*state["hints"], answer["hint"]]}
    if choice == "approve":
        source = context.candidates.load(test.blob).files[test.path]
        if last_payload(context.ledger.events, TestAccepted) is None:
            context.ledger.append(TestAccepted(path=test.path, source=source, command=test.command))
        # The worker processes and the baseline run of a search were started in advance, for tests without this one.
        await context.prefetch.close()
        # A bug report says more than its one test, and a search cannot read it: it would find the smallest
        # edit that makes the test pass. So the model is asked at once.
        return {"searched": True}
    if choice == "abort":
        return ended_state("cancelled", Reason(code="stopped_by_reviewer"))
    return ended_state("not_healed", Reason(code="test_not_accepted"))


def _make_question(test: IssueTest, state: LoopState) -> ReviewAsked:
    # The key has the form of the keys of the other reviews (see `nodes.review`), where `moves` is not empty. A
    # waiting run finds its answer by the key, so its form must not change.
    key = {
        "stage": "test",
        "decision": state["decisions"],
        "round": state["round"],
        "moves": [],
        "test": test.blob,
    }
    return ReviewAsked(
        key=content_hash(key),
        stage="test",
        decision=state["decisions"],
        round=state["round"],
        blob=test.blob,
        verdict=test.verdict,
    )


async def _request_test(
    number: int, refusals: Sequence[str], state: LoopState, context: RunContext
) -> IssueTest:
    """Return a test that a model wrote and that fails on the unchanged code.

    Args:
        number: The number of the request in this run, from 0.
        refusals: Why the previous tests were refused; the model reads this.

    Raises:
        MalformedReply: The test does not show the fault, or cannot run.
    """
    suite = await context.suites.load()
    path = _choose_path(suite)
    test_files = [file for file in suite.test_files if file in suite.task.files]
    call = RoleCall(
        helper="reproducer",
        calls=context.calls,
        round=number,  # All requests belong to one round; their own numbers keep equal questions distinct.
        temperature=TEST_RETRY_TEMPERATURE if refusals else 0.0,
    )
    draft = draft_reproducer_prompt(
        call.prompt,
        statement=context.task.statement,
        path=path,
        files=_select_files(suite, context),
        examples=decode_text(suite.task.files[test_files[0]]) if test_files else "",
        refused=refusals,
        hints=state["hints"],
    )
    source = await call.ask_and_parse(draft, test_from_reply)
    context.ledger.append(TestsWritten(role="reproducer", tests=(source,), dropped={}))
    async with context.budget.time_limit():
        return await _try_test(path, source, suite, context)


async def _try_test(path: str, source: str, suite: Suite, context: RunContext) -> IssueTest:
    """Run the test with the project's command and, if that does not run it, again with its path added."""
    unchanged = Candidate(files={}, origin="user")
    before = await check_candidate(unchanged, suite)
    for command in (suite.task.test_command, (*suite.task.test_command, path)):
        files = {**suite.task.files, path: source.encode()}
        try:
            suite_with_test = await context.suites.prepare(
                replace(suite.task, files=files, test_command=command)
            )
        except UsageError:
            continue  # The command ran without the test, but with it no tests are collected.
        verdict = await check_candidate(unchanged, suite_with_test)
        outcomes = [outcome for outcome in verdict.outcomes if outcome.check_id.startswith(f"{path}::")]
        lost_check_ids = before.passed - verdict.passed
        if not outcomes or lost_check_ids:
            continue  # The command does not run the test, or runs only the test.
        _require_shows_fault(outcomes, path)
        second_verdict = await check_candidate(unchanged, suite_with_test)
        if second_verdict.failed != verdict.failed:
            raise MalformedReply("the test fails at one time and passes at another")
        test = Candidate(files={path: source}, origin="sample", label="a test for the issue")
        # The other tests pass, so no question is asked about them.
        test_verdict = replace(verdict, outcomes=tuple(outcomes))
        return IssueTest(
            path=path,
            blob=context.candidates.save(test),
            verdict=context.candidates.save(test_verdict),
            command=command,
        )
    raise MalformedReply("the test cannot be collected by the project's test command")


def _require_shows_fault(outcomes: Sequence[CheckOutcome], path: str) -> None:
    """Refuse a test that passes, or that fails through its own fault."""
    failing = [outcome for outcome in outcomes if outcome.status not in ("passed", "skipped")]
    if not failing:
        raise MalformedReply("the test passes on the present code, so it does not show the fault")
    for outcome in failing:
        fact = outcome.counterexample
        exception = fact.exception if fact else ""
        is_own_fault = exception.startswith(TEST_FAULTS) and (fact is None or fact.file in ("", path))
        if outcome.status == "error" or is_own_fault:
            raise MalformedReply(f"the test itself is wrong: {exception or 'it cannot be set up'}")


def _choose_path(suite: Suite) -> str:
    """Return a new path next to the project's tests, with a name that the test runner collects."""
    folder = PurePosixPath(next(iter(suite.test_files), "test_x.py")).parent
    names = (str(folder / f"test_issue{f'_{n}' if n > 1 else ''}.py") for n in count(1))
    return next(name for name in names if name not in suite.task.files)


def _select_files(suite: Suite, context: RunContext) -> dict[str, str]:
    """Return the code that the bug report mentions, and as much other code as there is room for."""
    files = suite.task.files
    # Both the files that could change the verdict (found by their paths, so no contents are needed) and those with
    # the common names of tests and configuration, whatever the task allows.
    protected = {
        *find_protected_paths(files, suite),
        *(path for path in files if is_protected(path)),
    }
    return select_named_files(files, context.task.statement, protected, context.task.language)
