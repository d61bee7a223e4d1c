"""Have tests written, try them on candidates, and adopt those that earn enough trust."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

from suture.agents.calling.role_call import RoleCall
from suture.agents.prompting.fitting import PromptDraft
from suture.agents.prompting.prompt_files import Prompt
from suture.agents.replies.generated_checks import GeneratedChecks, checks_from_reply, mean_logprob
from suture.agents.roles.testers import (
    AdversarialBrief,
    ExamplesReply,
    SpecTestBrief,
    checks_from_examples,
    draft_adversarial_prompt,
    draft_example_prompt,
    draft_spec_test_prompt,
    properties_from_reply,
)
from suture.agents.tuning import PROPERTIES_PER_CALL
from suture.core.ledger import last_payload
from suture.core.ledger.kinds import AssessedTest, RemovedTest, TestsAssessed, TestsWritten
from suture.core.records import Candidate, Check, FailingGeneratedTest, Provenance, encode_record
from suture.judge import Suite
from suture.judge.trust.assessment import (
    MatrixLimits,
    TrustAssessment,
    assess_checks,
    get_given_checks,
    run_untrusted_checks,
)
from suture.judge.trust.check_filter import filter_checks, render_rejection
from suture.loop.briefing import find_role_profile, make_role_call
from suture.loop.context import RunContext, load_checks, load_deciding_suite
from suture.loop.evaluation.judging import judge, with_verdict
from suture.loop.policy.attempts import Attempt
from suture.loop.roles.extension_calls import collect_extension_checks
from suture.loop.services.suite_provider import add_checks
from suture.loop.state import LoopState, RoleContributions, judged_attempts, with_judged_attempts
from suture.models import Reply
from suture.project.languages import LANGUAGES

NO_LOGPROBS: Mapping[str, float] = MappingProxyType({})


def accepts_generated_tests(context: RunContext) -> bool:
    """Return whether tests can be written for the task: one Python function or class, called by checks."""
    task = context.task
    return task.kind == "write" and task.project is None and LANGUAGES[task.language].parsed


def load_generated_checks(contributions: RoleContributions, context: RunContext) -> tuple[Check, ...]:
    """Return the tests that were written so far."""
    return load_checks(contributions.generated, context.folder)


async def write_tests_from_task(
    contributions: RoleContributions, state: LoopState, context: RunContext
) -> RoleContributions:
    """Add the tests of installed packages, and of the spec and property testers, which see no code."""
    helpers, task = context.recipe.helpers, context.task
    if not accepts_generated_tests(context):
        return contributions
    checks = collect_extension_checks(context)
    if checks:
        contributions = replace(contributions, generated=_save(checks, context))
    spec = SpecTestBrief(statement=task.statement, entry_point=task.entry_point, examples=_examples(context))
    if helpers.spec_tests:
        call = make_role_call("spec_tester", state, context)
        contributions = await _write_examples(
            call, partial(draft_spec_test_prompt, spec), "spec", contributions, context
        )
    if helpers.property_tests:
        contributions = await _write_tests(
            make_role_call("property_tester", state, context),
            partial(draft_spec_test_prompt, replace(spec, count=PROPERTIES_PER_CALL)),
            lambda reply: properties_from_reply(reply, task.entry_point),
            contributions,
            context,
        )
    return contributions


async def write_adversarial_tests(
    attempt: Attempt, contributions: RoleContributions, state: LoopState, context: RunContext
) -> RoleContributions:
    """Add tests with which the adversarial tester tries to break a candidate."""
    entry_point = context.task.entry_point
    brief = AdversarialBrief(
        statement=context.task.statement,
        files=context.candidates.load(attempt.blob).files,
        entry_point=entry_point,
        examples=_examples(context),
    )
    call = make_role_call("adversarial_tester", state, context)
    return await _write_examples(
        call, partial(draft_adversarial_prompt, brief), "adversarial", contributions, context
    )


async def read_unread_examples(
    unread: Sequence[str], contributions: RoleContributions, state: LoopState, context: RunContext
) -> RoleContributions:
    """Add the calls that a capable model reads in parts of the statement which could not become checks.

    They are generated tests like any others: shown to the user, without trust until candidates agree on them.
    """
    task = context.task
    if not (unread and task.entry_point and context.has_model and accepts_generated_tests(context)):
        return contributions
    if not find_role_profile("coder", context).is_capable:
        return contributions
    call = make_role_call("example_reader", state, context)
    make_draft = partial(
        draft_example_prompt,
        statement=task.statement,
        unread=unread,
        functions=(task.entry_point,),
    )
    return await _write_stated_examples(call, make_draft, "spec", contributions, context)


async def adopt_generated_tests(
    state: LoopState, contributions: RoleContributions, context: RunContext
) -> tuple[LoopState, RoleContributions]:
    """Assess the generated tests on the candidates; adopt those with enough trust, and return the new state.

    If other tests decide now than before, every candidate is judged again.
    """
    written = load_generated_checks(contributions, context)
    judged = [
        (context.candidates.load(attempt.blob), context.candidates.load_verdict(attempt.verdict))
        for attempt in judged_attempts(state)
    ]
    if not written or not judged:
        return state, contributions
    deciding = load_checks(contributions.deciding, context.folder)
    async with context.budget.time_limit():
        suite = await load_deciding_suite(contributions, context)
        logprobs = _load_logprobs(contributions.generated, context)
        assessment = await assess_checks(written, judged, suite, logprobs=logprobs)
    context.ledger.append(_assessment_event(assessment))
    threshold = context.trust_threshold
    trusted = tuple(check for check in assessment.checks if check.trust >= threshold)
    # Adopted tests keep the trust that they were adopted with, so that all verdicts agree on it.
    if {check.source for check in trusted} == {check.source for check in deciding}:
        return state, contributions
    suite = add_checks(await context.suites.load(), trusted)
    attempts = [await judge_again(attempt, suite, context) for attempt in judged_attempts(state)]
    trusted_checks = sum(check.trust >= threshold for check in suite.task.checks)
    checks = trusted_checks + bool(suite.task.test_command)  # the test command counts as one check
    return (
        with_judged_attempts({**state, "checks": checks}, attempts),
        replace(contributions, deciding=_save(trusted, context)),
    )


async def find_failing_tests(
    candidate: Candidate, contributions: RoleContributions, context: RunContext
) -> tuple[FailingGeneratedTest, ...]:
    """Return the generated tests that decide nothing and fail on a candidate, the most trusted first.

    Tests that contradict a given check, or a more trusted generated one, are left out.
    """
    written = load_generated_checks(contributions, context)
    if not written:
        return ()
    deciding = {check.source for check in load_checks(contributions.deciding, context.folder)}
    assessment = last_payload(context.ledger.events, TestsAssessed)
    assessed = {test.test: test for test in assessment.tests} if assessment else {}
    removed = {test.test for test in assessment.removed} if assessment else set()
    trust = {source: test.trust for source, test in assessed.items()}
    suite = await load_deciding_suite(contributions, context)
    checks = filter_checks(written, get_given_checks(suite.task), suite.task.entry_point).checks
    untrusted = sorted(
        (check for check in checks if check.source not in deciding | removed),
        key=lambda check: -trust.get(check.source, 0.0),
    )
    left_s = context.budget.remaining_s()
    limits = MatrixLimits() if left_s is None else MatrixLimits(timeout_s=min(left_s, MatrixLimits.timeout_s))
    outcomes = {
        outcome.check_id: outcome
        for outcome in await run_untrusted_checks(untrusted, candidate, suite, limits)
    }

    def is_failing(check: Check) -> bool:
        outcome = outcomes.get(check.id)
        if outcome is not None:
            return outcome.status not in ("passed", "skipped")
        # There was no time to run it: its outcome is the one that it had when its trust was assessed.
        return check.source in assessed and candidate.hash in assessed[check.source].failed_on

    return tuple(
        FailingGeneratedTest(
            test=check.source,
            provenance=check.provenance,
            trust=trust.get(check.source, 0.0),
            fact=outcomes[check.id].counterexample if check.id in outcomes else None,
        )
        for check in untrusted
        if is_failing(check)
    )


async def judge_again(attempt: Attempt, suite: Suite, context: RunContext) -> Attempt:
    """Return an attempt with a new verdict, because other checks decide now."""
    verdict = await judge(context.candidates.load(attempt.blob), suite, context)
    return with_verdict(attempt, verdict, None, context)  # A task with generated tests has no baseline.


async def _write_examples(
    call: RoleCall,
    make_draft: Callable[..., PromptDraft],
    provenance: Provenance,
    contributions: RoleContributions,
    context: RunContext,
) -> RoleContributions:
    """Add a tester's asserts; a capable model whose provider enforces a schema states them as data."""
    profile = find_role_profile(call.role, context)
    if profile.is_capable and profile.structured_output:
        structured = partial(make_draft, is_structured=True)
        return await _write_stated_examples(call, structured, provenance, contributions, context)
    entry_point = context.task.entry_point
    return await _write_tests(
        call,
        make_draft,
        lambda reply: checks_from_reply(reply, provenance, entry_point),
        contributions,
        context,
    )


async def _write_stated_examples(
    call: RoleCall,
    make_draft: Callable[[Prompt], PromptDraft],
    provenance: Provenance,
    contributions: RoleContributions,
    context: RunContext,
) -> RoleContributions:
    async def ask_for_checks(call: RoleCall) -> GeneratedChecks:
        reply = await call.ask_typed(make_draft(call.prompt), ExamplesReply)
        if not reply.examples:
            return GeneratedChecks(checks=())
        return checks_from_examples(reply.examples, provenance, context.task.entry_point)

    written = await call.run_or_degrade(ask_for_checks)
    if written is None:
        return contributions
    sources = tuple(check.source for check in written.checks)
    context.ledger.append(TestsWritten(role=call.helper, tests=sources, dropped=written.dropped))
    return add_generated_checks(written.checks, contributions, context)


def add_generated_checks(
    checks: Sequence[Check], contributions: RoleContributions, context: RunContext
) -> RoleContributions:
    """Return the contributions with further generated tests; an existing test stays unchanged."""
    if not checks:
        return contributions
    earlier = load_generated_checks(contributions, context)
    by_source = {check.source: check for check in (*checks, *earlier)}
    logprobs = _load_logprobs(contributions.generated, context)
    return replace(contributions, generated=_save(tuple(by_source.values()), context, logprobs))


async def _write_tests(
    call: RoleCall,
    make_draft: Callable[[Prompt], PromptDraft],
    parse: Callable[[Reply], GeneratedChecks],
    contributions: RoleContributions,
    context: RunContext,
) -> RoleContributions:
    answer = await call.parse_or_degrade(make_draft, lambda reply: (parse(reply), reply))
    if answer is None:
        return contributions
    written, reply = answer
    sources = tuple(check.source for check in written.checks)
    context.ledger.append(TestsWritten(role=call.helper, tests=sources, dropped=written.dropped))
    earlier = load_generated_checks(contributions, context)
    by_source = {check.source: check for check in (*earlier, *written.checks)}
    logprobs = _load_logprobs(contributions.generated, context)
    for check in written.checks:
        logprob = mean_logprob(check.source, reply)
        if logprob is not None:
            logprobs[check.source] = logprob
    return replace(contributions, generated=_save(tuple(by_source.values()), context, logprobs))


def _save(checks: Sequence[Check], context: RunContext, logprobs: Mapping[str, float] = NO_LOGPROBS) -> str:
    encoded = [encode_record(check) for check in checks]
    blob: dict[str, Any] = {"checks": encoded}
    if logprobs:
        blob["logprobs"] = dict(logprobs)
    return context.folder.save_json(blob)


def _load_logprobs(blob: str, context: RunContext) -> dict[str, float]:
    """Return the mean log probability of each generated test, by its source, where the model reported it."""
    return dict(context.folder.load_json(blob).get("logprobs", {})) if blob else {}


def _examples(context: RunContext) -> str:
    """Return the sources of the tests that the user gave."""
    return "\n".join(check.source for check in context.task.checks if check.provenance in ("user", "visible"))


def _assessment_event(assessment: TrustAssessment) -> TestsAssessed:
    return TestsAssessed(
        candidates=assessment.candidates,
        behaviours=assessment.behaviours,
        tests=tuple(
            AssessedTest(
                test=entry.check.source,
                trust=entry.check.trust,
                reasons=tuple(entry.reasons),
                failed_on=entry.failed_on,
            )
            for entry in assessment.kept
        ),
        removed=tuple(
            RemovedTest(test=entry.check.source, reason=render_rejection(entry))
            for entry in assessment.removed
        ),
    )
