"""Find functions whose answers newly depend on how often, or in which order, they are called.

A change can count the calls of the tests and answer each as its test expects, wherever it keeps the count. So the calls
of one function are made several times in one process, in different orders. A cache answers alike each time.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from suture.judge.differential.example_calls import CodeVersion, ObservedAnswers
from suture.judge.differential.recorded_calls import PlannedCall

MAX_REPEATED_CALLS = 8
"""Examples of a function that are called again, backwards and forwards. Chosen by judgement; not measured."""


def plan_repeated_calls(examples: Sequence[PlannedCall]) -> list[PlannedCall]:
    """Return the examples of one function, and after them the first of them again in two orders."""
    first = list(examples[:MAX_REPEATED_CALLS])
    return [*examples, *reversed(first), *first]


async def depends_on_calls(
    plan: Sequence[PlannedCall],
    old: ObservedAnswers,
    new: ObservedAnswers,
    after: CodeVersion,
    repeated: Collection[PlannedCall],
) -> bool:
    """Return whether the changed code, unlike the old code, lets the answer to a call depend on earlier calls.

    Args:
        plan: The calls as `plan_repeated_calls` returns them.
        old: The answers of the code before the change.
        new: Those of the changed code.
        after: The changed code, which is asked a second time: random answers and times do not count calls.
        repeated: Calls that the tests make more than once, so that they see for themselves what changes.
    """
    varying = _find_varying(plan, new).difference(repeated)
    if not varying or _find_varying(plan, old):
        return False
    again = await after.call(plan)
    return _list_keys(plan, new, varying) == _list_keys(plan, again, varying)


def _find_varying(plan: Sequence[PlannedCall], observed: ObservedAnswers) -> set[PlannedCall]:
    """Return the calls with several answers. An exception does not count: using a file name again often fails."""
    keys: dict[PlannedCall, str] = {}
    varying = set()
    for call, answer in zip(plan, observed.answers, strict=False):
        if answer is not None and not answer.raises and keys.setdefault(call, answer.key) != answer.key:
            varying.add(call)
    return varying


def _list_keys(
    plan: Sequence[PlannedCall], observed: ObservedAnswers, calls: Collection[PlannedCall]
) -> list[str]:
    pairs = zip(plan, observed.answers, strict=False)
    return [answer.key for call, answer in pairs if answer is not None and call in calls]
