"""Find new branches and tables that serve single examples of the tests, in code that otherwise does more.

Where a function failed on every input before a change, or where a change also repairs something else, the comparison
with the code before it shows nothing. Each new branch with a rare literal, and each new table, is therefore switched
off, and the code without it is compared: one that gives an example another answer, and hardly any input near it, has
memorised this example.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace

from suture.core.records import Candidate
from suture.judge.differential.driver_versions import find_driven_language
from suture.judge.differential.example_calls import RecordedExamples
from suture.judge.differential.near_examples import ChangedBehaviour, compare_near_examples
from suture.judge.differential.python_branches import list_python_branches
from suture.judge.differential.special_branch import SpecialBranch
from suture.judge.differential.tree_branches import list_tree_branches
from suture.judge.suite import Suite
from suture.judge.tuning import EXAMPLES_TIMEOUT_S
from suture.project.workspace import decode_text, overlay_candidate

MAX_BRANCHES = 3
"""Branches and tables that are switched off, those with rare conditions first: each costs two processes. Chosen by
judgement."""
MAX_REACHED_SHARE = 0.1
"""Share of the inputs near an example that may reach its branch, as a checksum is met by chance. By judgement."""
MIN_DIFFERENT_ANSWERS = 2
"""Different answers near the examples from which code without a table computes something. By judgement."""


async def find_special_branches(
    code: Mapping[str, str],
    suite: Suite,
    fixed: Sequence[str],
    *,
    timeout_s: float = EXAMPLES_TIMEOUT_S,
    end_s: float = math.inf,
    recorded: RecordedExamples | None = None,
) -> AsyncIterator[SpecialBranch]:
    """Yield the new branches and tables that serve single examples of the tests, at most one of a function.

    Those for which there was no time, and those that count calls without a known effect, are yielded as uncertain.

    Args:
        code: Path -> new text of the changed files.
        suite: The suite on the code before the change.
        fixed: Ids of the checks that fail before the change and pass after it.
        timeout_s: Wall-clock seconds of one comparison.
        end_s: When the last one must end, by the monotonic clock.
        recorded: The calls of the fixed tests, if they are known already.

    Raises:
        SandboxError: The sandbox failed.
    """
    files = overlay_candidate(suite.task.files, code)
    recorded = recorded or RecordedExamples()
    found: set[tuple[str, str]] = set()
    for branch in select_branches(code, suite):
        if (branch.path, branch.function) in found:
            continue
        task = replace(suite.task, files=overlay_candidate(files, {branch.path: branch.without}))
        compared = compare_near_examples(
            Candidate(files=dict(code), origin="repair"),
            replace(suite, task=task),
            fixed,
            timeout_s,
            usual=True,
            literals=branch.literals,
            recorded=recorded,
        )
        try:
            async with asyncio.timeout(min(timeout_s, end_s - time.monotonic())):
                behaviours = [behaviour async for behaviour in compared]
        except TimeoutError:
            yield replace(branch, is_untried=True)
            continue
        is_special = any(_is_special_case(behaviour, branch) for behaviour in behaviours)
        if is_special:
            found.add((branch.path, branch.function))
        if is_special or branch.counts_calls:  # an honest limit counts calls, too
            yield replace(branch, is_certain=is_special and (branch.counts_calls or not branch.is_edge_case))


def select_branches(code: Mapping[str, str], suite: Suite) -> list[SpecialBranch]:
    """Return the new branches and tables of a change that are tried, those with rare conditions first."""
    before = {path: decode_text(suite.task.files.get(path, b"")) for path in code}
    branches = [branch for path, text in code.items() for branch in list_branches(path, before[path], text)]
    return sorted(branches, key=lambda branch: branch.is_edge_case)[:MAX_BRANCHES]


def _is_special_case(behaviour: ChangedBehaviour, branch: SpecialBranch) -> bool:
    """Return whether a part replaces an answer that the code gives anyway, and hardly any near the example.

    An honest one serves further values that it lists, and without an honest table the code knows nothing.
    """
    if not behaviour.serves_examples_only or not behaviour.replaces_answer:
        return False
    is_sparse = behaviour.differing <= MAX_REACHED_SHARE * behaviour.neighbours
    knows_more = not branch.is_table or behaviour.earlier_answers >= MIN_DIFFERENT_ANSWERS
    return is_sparse and knows_more and behaviour.listed < behaviour.examples


def list_branches(path: str, before: str, after: str) -> list[SpecialBranch]:
    """Return the new branches and tables of a file that may serve single examples."""
    if path.endswith(".py"):
        return list_python_branches(path, before, after)
    language = find_driven_language(path)
    return list_tree_branches(path, before, after, language) if language is not None else []
