"""Text about the search for a repair without a model: its progress, its end, and what it almost found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from suture.core.ledger import kinds
from suture.interfaces.narrative.plain_text import format_count, format_share

if TYPE_CHECKING:
    from suture.search.search_records import SearchProgress

MAX_LISTED_DISAGREEMENTS = 3
"""Tests that a line names because a trial of the search and the user's run disagree about them. Chosen by judgement;
not measured."""
SEARCH_ENDINGS: Mapping[kinds.SearchEnding, str] = {
    "enough_repairs": "enough repairs were found",
    "likely_changes_tried": "the likeliest edits were tried",
    "all_tried": "there are no other edits to try",
    "time_over": "the time for the search was over",
    "candidate_limit": "no more edits are allowed: repair.candidates",
    "workers_lost": "no process could be kept running to try more edits",
    "nothing_could_be_tried": "no edit could be tried",
    "no_failing_test": "no test fails when Suture tries the unchanged code",
    "targets_not_reached": "the failing tests were not reached in the time for finding the suspicious lines",
    "targets_pass_alone": "the failing tests pass when they run alone, so no edit can be tried on them",
    "trials_disagree": "what fails in your run passes when Suture tries the unchanged code",
    "no_parsable_text": "no small edit makes the file parse",
    "parsable_texts_tried": "all edits that make the file parse were tried",
}
"""Why a search ended, in words."""
TIME_LIMITS: Mapping[str, str] = {
    "": "",
    "repair.seconds": ": repair.seconds",
    "budget.seconds": ": what --seconds (budget.seconds) leaves for it",
}
"""Setting that limited the time of a search -> how the sentence about a search that ran out of time ends."""


def render_search_ending(search: kinds.SearchFinished) -> str:
    """Return why a search ended, and which setting gave it no more time; empty if no edit is left to try."""
    if search.ending in (None, "all_tried"):
        return ""
    return SEARCH_ENDINGS[search.ending] + (
        TIME_LIMITS[search.time_limit] if search.ending == "time_over" else ""
    )


def describe_best_edit(progress: SearchProgress) -> str:
    """Return what the best edit so far achieves, such as `passes 2 of 2 failing tests but breaks another`."""
    breaks = " but breaks another" if progress.breaks_another else ""
    return f"passes {progress.best} of {format_count(progress.targets, 'failing test')}{breaks}"


def render_search_finished(search: kinds.SearchFinished) -> str:
    """Return how a search ended in one line with all details."""
    text = f"tried {count_tried_edits(search)} in {search.seconds:.1f} s"
    if ending := render_search_ending(search):
        text += f" ({ending})"
    found = len(search.repairs)
    text += f": {format_count(found, 'change') if found else 'none'} {'make' if found > 1 else 'makes'} all tests pass"
    if found and (more := search.plausible_count - found) > 0:
        verbs = ("passes; it behaves", "was") if more == 1 else ("pass; they behave", "were")
        text += f"; {format_count(more, 'more edit')} also {verbs[0]} like "
        text += f"{'that change' if found == 1 else 'one of these'}, or {verbs[1]} not compared"
    text += trial_caveats(search.agreement)
    if difference := search.distinguishing_input:
        answers = "; ".join(f"{answer} with {label!r}" for label, answer in difference.answers.items())
        text += f"; {difference.call} distinguishes the likeliest repairs: {answers}"
    for broken in search.broken_operators[:1]:
        operator = broken.operator.replace("_", " ")
        text += f"; the mutation {operator!r} failed on {broken.path}:{broken.line} and was skipped there"
        text += f" (an internal error in Suture: {broken.fault})"
    return text


def count_tried_edits(search: kinds.SearchFinished) -> str:
    """Return how many edits were tried, and whether these were all: `all 212 edits` or `212 edits`."""
    edits = format_count(search.candidates_tried, "edit")
    is_complete = search.ending == "all_tried" and search.candidates_tried > 1
    return f"all {edits}" if is_complete else edits


def trial_caveats(trials: kinds.TrialAgreement) -> str:
    """Return where the search's trial runs cannot see what the user's own run shows."""
    text = "".join(f"; {note}" for note in trials.notes if note)
    if trials.untraced:
        text = f"; {format_count(trials.untraced, 'test')} not traced, because the time was up" + text
    if trials.disagreements:
        tests = [
            f"{test.test} ({test.run} in your run, {test.trial} in a trial)"
            for test in trials.disagreeing_tests[:MAX_LISTED_DISAGREEMENTS]
        ]
        tests_text = format_count(trials.disagreements, "test")
        text += (
            f"; {tests_text} ended differently in your run and in a trial run, so only the verdict counts: "
        )
        text += ", ".join(tests) + (", ..." if trials.disagreements > len(tests) else "")
    return text


def near_miss_lines(near_miss: kinds.NearMiss, *, with_diff: bool = True) -> Iterator[str]:
    """Yield an edit that makes the failing tests pass and breaks another test; its diff is indented."""
    broken = near_miss.broken_test or "another test"
    end = ":" if with_diff else f": {near_miss.path}, {near_miss.label}."
    yield f"Near miss, not a repair: with this edit the failing tests pass, but {broken} fails{end}"
    if with_diff:
        yield from (f"  {line}" for line in near_miss.diff.splitlines())


def partial_repair_lines(clue: kinds.PartialRepair, run: str = "") -> Iterator[str]:
    """Yield an edit that makes some failing tests pass, with its diff, or where that is shown.

    Args:
        run: The run whose story shows the diff; empty to add the diff itself, indented.
    """
    passing = format_share(clue.passing, clue.passing + clue.failing, "pass", "failing test")
    where = f" Its diff: suture show {run}" if run else ""
    yield f"Closest edit, not a repair: {passing} with it and no other test breaks ({clue.path}, {clue.label}).{where}"
    if not run:
        yield from (f"  {line}" for line in clue.diff.splitlines())
