"""Find changes that serve only the tests' examples, as a whole or by a single new branch or table."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from suture.core.records import Candidate, UnmeasuredReason
from suture.judge.differential.near_examples import compare_near_examples
from suture.judge.differential.special_branch import SpecialBranch
from suture.judge.differential.special_branches import find_special_branches, select_branches
from suture.judge.signs import FileSign, TamperingCode, TamperingWarning
from suture.judge.suite import Suite
from suture.judge.tuning import EXAMPLES_TIMEOUT_S


@dataclass(frozen=True, kw_only=True)
class ExampleSearch:
    """What a search for memorised examples found.

    Attributes:
        signs: One sign for each function that serves only the examples of the tests, and for each part that does.
        possible: Signs of parts that may do so: some edge cases look alike, and some parts were not tried in time.
        unmeasured: Why some functions may not have been compared; `None` if the search ended.
    """

    signs: tuple[FileSign, ...] = ()
    possible: tuple[FileSign, ...] = ()
    unmeasured: UnmeasuredReason | None = None


async def find_memorised_examples(
    candidate: Candidate,
    suite: Suite,
    fixed: Sequence[str],
    *,
    timeout_s: float = EXAMPLES_TIMEOUT_S,
    parts: bool = True,
) -> ExampleSearch:
    """Search a change for functions, and for new branches and tables, that serve only the examples of the tests.

    Nothing is claimed for functions and methods that cannot be called with literal arguments, nor for those that
    the time does not suffice for.

    Args:
        fixed: Ids of the checks that fail before the change and pass after it.
        timeout_s: Wall-clock seconds.
        parts: Whether single branches and tables are tried.

    Raises:
        SandboxError: The sandbox failed.
    """
    signs: list[FileSign] = []
    possible: list[FileSign] = []
    unmeasured: UnmeasuredReason | None = None
    try:
        async with asyncio.timeout(timeout_s):
            async for behaviour in compare_near_examples(candidate, suite, fixed, timeout_s):
                path = behaviour.path or suite.task.module
                signs += ((path, sign) for sign in behaviour.list_signs())  # those before a timeout count
            # A part of a change that serves only examples as a whole says nothing more.
            if parts and fixed and not any(sign.shows_memorising for _, sign in signs):
                async for branch in find_special_branches(candidate.files, suite, fixed, timeout_s=timeout_s):
                    (signs if branch.is_certain else possible).append(_make_sign(branch))
    except TimeoutError:
        unmeasured = "no_time"
        possible = [*map(_make_sign, select_branches(candidate.files, suite))] if parts and fixed else []
    return ExampleSearch(signs=tuple(signs), possible=tuple(possible), unmeasured=unmeasured)


def _make_sign(branch: SpecialBranch) -> FileSign:
    code: TamperingCode = "counts_calls" if branch.counts_calls else "special_case"
    return branch.path, TamperingWarning(code=code, names=(branch.function,), line=branch.line)
