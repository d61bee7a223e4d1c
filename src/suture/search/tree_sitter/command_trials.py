"""Trials by the user's whole command, where no driver can make them: each costs a run, so order is all."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any

from suture.core.ledger.kinds import SuspectLine
from suture.core.records import CheckOutcome, Counterexample
from suture.judge.failures import hit_time_limit
from suture.judge.trials.trial_records import Proposal
from suture.mutation.edits import apply_edits
from suture.search.failing_project import FailingProject
from suture.search.search_limits import SearchLimits
from suture.search.search_result import SearchResult

AT_ONCE = 2
RIVALS = 10
"""Changes that are tried after the first that passes."""
PATIENCE, LEAST_WALL_S = 4.0, 3.0
"""A trial may take so many times what the unchanged code took, and so many seconds at least."""
MUTE_SHARE = 0.05
"""Of the seconds, what a trial may take where the unchanged code never ends."""
NAMED, BESIDE, ELSEWHERE = 1.0, 0.6, 0.3
"""Suspicion of a function that failing tests name, of a file in which one lies, of others."""
NEAR_LINES = 3
WORD = re.compile(r"[A-Za-z_$][\w$]{2,}")


async def try_by_command(
    project: FailingProject, proposals: Sequence[Proposal], found: SearchResult, limits: SearchLimits
) -> None:
    """Try candidates in their order, two at once, until one passes and a short look found no rival.

    Args:
        project: It; its failing files run first where its runner can be asked for that.
        proposals: The candidates.
        found: What is known of the search; it is told what comes of them.
        limits: What the search may use.

    Raises:
        SandboxError: The wall failed.
    """
    began_s = time.monotonic() - found.generation_s
    run_some, outcomes = project.command.run_selected, project.outcomes
    waiting, last = iter(proposals), limits.max_candidates
    # An error is told of the whole command, beside its tests: where it ends well there is no such outcome.
    wanted = {outcome.check_id for outcome in outcomes if outcome.status not in ("skipped", "error")}
    failing = {o.check_id for o in outcomes if o.status not in ("passed", "skipped", "error")}
    wall_s = await _wall_of_one(project, failing, limits)
    if wall_s is None:
        found.ending = "our trial disagrees with your run: what failed there passes here"
        return

    def left_s() -> float:
        return found.deadline_s(limits) - (time.monotonic() - began_s)

    def is_over() -> bool:
        if found.tried_count >= limits.max_candidates:
            found.ending = f"{limits.max_candidates} candidates were tried"
        elif left_s() <= 0:
            found.ending = f"{found.deadline_s(limits):g} s are over"
        elif found.tried_count >= last or len(found.plausible) >= limits.max_repairs:
            found.ending = "the likeliest changes were tried"
        return bool(found.ending)

    async def take() -> None:
        nonlocal last
        while not is_over() and (proposal := next(waiting, None)) is not None:
            text = apply_edits(project.texts[proposal.path], proposal.edits)
            changed = {**project.files, proposal.path: text.encode("utf-8", "surrogatepass")}
            few = await run_some(changed, failing, wall_s=min(wall_s, max(0.5, left_s())))
            found.tried_count += 1
            if not all_passed(few, failing):
                continue
            whole = await run_some(changed, (), wall_s=min(wall_s, max(0.5, left_s())))
            if all_passed(whole, wanted):
                found.plausible.append(proposal)
                if found.first_repair_s is None:
                    found.first_repair_s, last = time.monotonic() - began_s, found.tried_count + RIVALS

    in_time = await _side_by_side(take, limits.max_seconds + limits.reserve_s + LEAST_WALL_S)
    over = f"{found.deadline_s(limits):g} s are over"
    found.ending = found.ending or ("everything was tried" if in_time else over)


async def _wall_of_one(project: FailingProject, failing: set[str], limits: SearchLimits) -> float | None:
    """Seconds that a trial may take; `None` where what failed passes when it runs here."""
    if any(map(hit_time_limit, project.outcomes)):
        return max(LEAST_WALL_S, MUTE_SHARE * limits.max_seconds)
    base_s = time.monotonic()
    again = await project.command.run_selected(project.files, failing)
    if again and all(outcome.passed for outcome in again):
        return None
    return max(LEAST_WALL_S, PATIENCE * (time.monotonic() - base_s))


def was_whole_command_stopped(outcome: CheckOutcome) -> bool:
    """Whether a command that is judged by its exit status had to be stopped: no test of it can be seen."""
    return outcome.evidence == "exit_status" and hit_time_limit(outcome)


async def _side_by_side(take: Callable[[], Coroutine[Any, Any, None]], seconds: float) -> bool:
    """Whether all ended in time; what one raises is raised as it is, not as one of a group."""
    try:
        async with asyncio.timeout(seconds), asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(take())
    except TimeoutError:
        return False
    except BaseExceptionGroup as faults:
        raise faults.exceptions[0] from None
    return True


def all_passed(answers: Iterable[CheckOutcome], wanted: set[str]) -> bool:
    """Whether every test that ran before ran and passed; a new one that fails is no pass either."""
    ended = {answer.check_id: answer for answer in answers}
    failed = any(not answer.passed and answer.status != "skipped" for answer in ended.values())
    tests = {name for name in wanted if "::" in name} or wanted  # a file that is read now has other names
    return not failed and all(name in ended and ended[name].passed for name in tests)


def score_named_lines(
    texts: Mapping[str, str], outcomes: Sequence[CheckOutcome]
) -> tuple[tuple[SuspectLine, ...], dict[str, dict[int, float]]]:
    """How suspicious lines are where none was seen running: what failing tests name, and where they broke."""
    facts = [o.counterexample for o in outcomes if o.counterexample is not None]
    scores = {path: _suspicion(path, text, facts) for path, text in texts.items()}
    ranked = sorted(
        ((path, line, score) for path, own in scores.items() for line, score in own.items()),
        key=lambda item: (-item[2], item[0], item[1]),
    )
    return tuple(SuspectLine(path=p, line=n, function="", score=s) for p, n, s in ranked), scores


def _suspicion(path: str, text: str, facts: Sequence[Counterexample]) -> dict[int, float]:
    """Line -> how suspicious it is."""
    said = " ".join(f"{fact.check_id} {fact.call} {fact.exception} {fact.actual}" for fact in facts)
    named = set(WORD.findall(said))
    lines = text.splitlines()
    places = [fact.line for fact in facts if fact.file == path and fact.line]
    places += [int(line) for line in re.findall(rf"{re.escape(path)}:(\d{{1,9}})\b", said)]
    usual = BESIDE if named & set(WORD.findall(text)) or places else ELSEWHERE
    near: dict[int, float] = {}
    for number in range(1, len(lines) + 2):
        close = any(abs(number - place) <= NEAR_LINES for place in places)
        words = set(WORD.findall(lines[number - 1])) if number <= len(lines) else set()
        near[number] = NAMED if close or words & named else usual
    return near
