"""Tests that helpers write: asked for, tried on candidates, and adopted with the trust that they earn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType

from suture.agents import Draft, Prompt
from suture.agents.replies.generated_checks import WrittenChecks, checks_from_reply, mean_logprob
from suture.agents.roles.testers import (
    ASKED_FOR,
    AdversarialBrief,
    SpecTestBrief,
    adversarial_draft,
    properties_from_reply,
    spec_test_draft,
)
from suture.core.ledger.kinds import AssessedTest, RemovedTest, TestsAssessed, TestsWritten
from suture.core.records import Check, to_plain
from suture.judge.trust.assessment import Assessment, assess_checks
from suture.loop.calls.helper_call import Consultation
from suture.loop.context import RunContext
from suture.loop.evaluation.deciding import checks_in, deciding_suite, with_generated
from suture.loop.evaluation.judging import judged_again
from suture.loop.helpers.plugin_calls import brought_checks
from suture.loop.policy.progress import Attempt
from suture.loop.state import Aids, LoopState, tried_in, with_tried
from suture.models import Reply
from suture.project.languages import LANGUAGES

NOTHING: Mapping[str, float] = MappingProxyType({})


def may_be_tested(context: RunContext) -> bool:
    """Whether tests can be written for the task: one function or class, judged by checks of functions."""
    task = context.task
    return task.kind == "write" and task.project is None and LANGUAGES[task.language].parsed


def generated_checks(aids: Aids, context: RunContext) -> tuple[Check, ...]:
    """The tests that were written up to now."""
    return checks_in(aids.generated, context)


async def tests_from_the_task(aids: Aids, context: RunContext) -> Aids:
    """What the spec tester and the property tester write, who never see code, and what packages bring."""
    helpers, task = context.recipe.helpers, context.task
    if not may_be_tested(context):
        return aids
    brought = brought_checks(context)
    if brought:
        aids = replace(aids, generated=_keep(brought, context))
    spec = SpecTestBrief(statement=task.statement, entry_point=task.entry_point, examples=_examples(context))
    if helpers.spec_tests:
        aids = await _written(
            Consultation(helper="spec_tester", context=context, round=0),
            partial(spec_test_draft, spec),
            lambda reply: checks_from_reply(reply, "spec", task.entry_point),
            aids,
        )
    if helpers.property_tests:
        aids = await _written(
            Consultation(helper="property_tester", context=context, round=0),
            partial(spec_test_draft, replace(spec, count=ASKED_FOR)),
            lambda reply: properties_from_reply(reply, task.entry_point),
            aids,
        )
    return aids


async def attack(entry: Attempt, aids: Aids, number: int, context: RunContext) -> Aids:
    """What the adversarial tester writes against a candidate."""
    brief = AdversarialBrief(
        statement=context.task.statement,
        files=context.candidate(entry.blob).files,
        entry_point=context.task.entry_point,
        examples=_examples(context),
    )
    return await _written(
        Consultation(helper="adversarial_tester", context=context, round=number),
        partial(adversarial_draft, brief),
        lambda reply: checks_from_reply(reply, "adversarial", context.task.entry_point),
        aids,
    )


async def adopt_generated(state: LoopState, aids: Aids, context: RunContext) -> tuple[LoopState, Aids]:
    """Give the generated tests the trust that the candidates lend them; those that gain or lose their say are
    applied to every candidate. What decides from then on is in the `Aids` that come back.

    Raises:
        BudgetExceeded: The time is up.
        SandboxError: The wall failed.
    """
    written = generated_checks(aids, context)
    judged = [(context.candidate(e.blob), context.verdict(e.verdict)) for e in tried_in(state)]
    if not written or not judged:
        return state, aids
    async with context.budget.time_limit():
        suite = await deciding_suite(aids, context)
        found = await assess_checks(written, judged, suite, logprobs=_sureness(aids.generated, context))
    context.ledger.append(_told(found))
    threshold = context.settings.loop.trust_threshold
    trusted = tuple(check for check in found.checks if check.trust >= threshold)
    # Adopted ones keep the trust that they came with: every verdict is to tell the same.
    if {check.source for check in trusted} == {check.source for check in checks_in(aids.deciding, context)}:
        return state, aids
    suite = with_generated(await context.load_suite(), trusted)
    again = [await judged_again(entry, suite, context) for entry in tried_in(state)]
    count = sum(check.trust >= threshold for check in suite.task.checks) + bool(suite.task.test_command)
    return (
        with_tried({**state, "checks": count}, again),
        replace(aids, deciding=_keep(trusted, context)),
    )


async def _written(
    consultation: Consultation,
    draft_of: Callable[[Prompt], Draft],
    reader: Callable[[Reply], WrittenChecks],
    aids: Aids,
) -> Aids:
    context = consultation.context
    answer = await consultation.read_or_none(draft_of, lambda reply: (reader(reply), reply))
    if answer is None:
        return aids
    written, reply = answer
    sources = tuple(check.source for check in written.checks)
    context.ledger.append(TestsWritten(role=consultation.helper, tests=sources, dropped=written.dropped))
    known = {check.source: check for check in (*generated_checks(aids, context), *written.checks)}
    logprobs = {check.source: mean_logprob(check.source, reply) for check in written.checks}
    sure = _sureness(aids.generated, context) | {
        s: value for s, value in logprobs.items() if value is not None
    }
    return replace(aids, generated=_keep(tuple(known.values()), context, sure))


def _keep(checks: tuple[Check, ...], context: RunContext, sure: Mapping[str, float] = NOTHING) -> str:
    plain = [to_plain(check) for check in checks]
    return context.folder.put_json({"checks": plain, **({"logprobs": dict(sure)} if sure else {})})


def _sureness(blob: str, context: RunContext) -> dict[str, float]:
    """How sure the model was of each test, by its source; empty where it did not tell."""
    return dict(context.folder.get_json(blob).get("logprobs", {})) if blob else {}


def _examples(context: RunContext) -> str:
    """The tests that are there already."""
    return "\n".join(check.source for check in context.task.checks if check.provenance in ("user", "visible"))


def _told(found: Assessment) -> TestsAssessed:
    return TestsAssessed(
        heard=found.heard,
        behaviours=found.behaviours,
        tests=tuple(
            AssessedTest(test=one.check.source, trust=one.check.trust, reasons=tuple(one.reasons))
            for one in found.kept
        ),
        removed=tuple(RemovedTest(test=one.check.source, reason=one.reason) for one in found.removed),
    )
