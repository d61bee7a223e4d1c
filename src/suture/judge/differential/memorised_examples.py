"""Find changes that serve only the tests' examples, as a whole or by a single new branch or table."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

from suture.core.records import Candidate, UnmeasuredReason
from suture.judge.differential.example_calls import RecordedExamples
from suture.judge.differential.near_examples import compare_near_examples
from suture.judge.differential.recorded_calls import get_function_name
from suture.judge.differential.special_branch import SpecialBranch
from suture.judge.differential.special_branches import find_special_branches
from suture.judge.signs import FileSign, TamperingCode, TamperingWarning
from suture.judge.suite import Suite
from suture.judge.trials.changed_code import ChangedCode
from suture.judge.tuning import EXAMPLES_TIMEOUT_S


@dataclass(frozen=True, kw_only=True)
class ExampleSearch:
    """What a search for memorised examples found.

    Attributes:
        signs: One sign for each function that serves only the examples of the tests, and for each part that does.
        possible: Signs of parts that may do so: some edge cases look alike, and some parts were not tried in time. Also
            signs of functions whose answers newly depend on earlier calls, as an honest counter's do.
        untried: Those of these that were not tried in time.
        unmeasured: Why some functions may not have been compared; `None` if the search ended.
    """

    signs: tuple[FileSign, ...] = ()
    possible: tuple[FileSign, ...] = ()
    untried: tuple[FileSign, ...] = ()
    unmeasured: UnmeasuredReason | None = None


async def find_memorised_examples(
    candidate: Candidate,
    suite: Suite,
    fixed: Sequence[str],
    *,
    timeout_s: float = EXAMPLES_TIMEOUT_S,
    total_s: float = math.inf,
    parts: bool = True,
    code: ChangedCode | None = None,
) -> ExampleSearch:
    """Search a change for functions, and for new branches and tables, that serve only the examples of the tests.

    Nothing is claimed for functions and methods that cannot be called with literal arguments, nor for those for which
    there is not enough time.

    Args:
        fixed: Ids of the checks that fail before the change and pass after it.
        timeout_s: Wall-clock seconds for the comparison of the whole change, and again for each part.
        total_s: Wall-clock seconds for all of it. What is found until then counts.
        parts: Whether single branches and tables are tried.
        code: The changed code, if it is open already.

    Raises:
        SandboxError: The sandbox failed.
    """
    if total_s <= 0:
        return ExampleSearch(unmeasured="no_time")
    end_s = time.monotonic() + total_s
    signs: list[FileSign] = []
    possible: list[FileSign] = []
    untried: list[FileSign] = []
    recorded = RecordedExamples(code=code)
    is_compared = False
    try:
        async with asyncio.timeout(min(timeout_s, total_s)):
            async for behaviour in compare_near_examples(
                candidate, suite, fixed, timeout_s, recorded=recorded
            ):
                path = behaviour.path or suite.task.module
                signs += ((path, sign) for sign in behaviour.list_signs())  # those before a timeout count
                if behaviour.depends_on_calls:
                    names = (get_function_name(behaviour.function),)
                    possible.append((path, TamperingWarning(code="counts_calls", names=names)))
        is_compared = True
    except TimeoutError:
        # Even the whole change could not be compared, unless the calls are known: they take most of the time.
        end_s = end_s if recorded.calls is not None else 0.0
    # A part of a change that serves only examples as a whole says nothing more.
    if parts and fixed and not any(sign.shows_memorising for _, sign in signs):
        branches = find_special_branches(
            candidate.files, suite, fixed, timeout_s=timeout_s, end_s=end_s, recorded=recorded
        )
        async for branch in branches:
            (signs if branch.is_certain else untried if branch.is_untried else possible).append(
                _make_sign(branch)
            )
    unmeasured: UnmeasuredReason | None = None if is_compared and not untried else "no_time"
    # If not even the whole change was compared, it is not asked whether a part of it serves more than examples.
    shown = untried if is_compared else [sign for sign in untried if sign[1].code == "counts_calls"]
    return ExampleSearch(
        signs=tuple(signs), possible=(*possible, *shown), untried=tuple(untried), unmeasured=unmeasured
    )


def _make_sign(branch: SpecialBranch) -> FileSign:
    code: TamperingCode = "counts_calls" if branch.counts_calls else "special_case"
    return branch.path, TamperingWarning(code=code, names=(branch.function,), line=branch.line)
