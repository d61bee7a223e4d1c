"""Text about repairs between which the tests do not decide: their lines, and what they answer to the same calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from suture.core.ledger import RunFolder, kinds, last_payload, read_ledger, select_events
from suture.core.records import Result
from suture.interfaces.narrative.certificate_rendering import delivery_lines

MAX_RIVAL_CODE_LINES = 3
"""How many lines of each change, and of what all of them add, are shown. Chosen by judgement; not measured."""


def undetermined_sentence(undetermined: kinds.RepairUndetermined, passing: str) -> str:
    """Return the first sentence about a repair that passes, if the tests do not decide that it is right.

    Args:
        passing: What passes, such as `all 2 tests pass`.
    """
    if len(undetermined.changes) > 1:
        doubt = f"{passing} with each of {undetermined.count} changes, which may behave differently"
        return f"Healed, but your tests do not decide: {doubt}."
    noticed = (
        f"only {undetermined.noticed} of {undetermined.mistakes} deliberate mistakes in the changed lines"
    )
    return f"Healed, but your tests do not decide: {passing}, and they notice {noticed}."


def rival_lines(result: Result, folder: RunFolder, *, suggest_commands: bool = True) -> Iterator[str]:
    """Yield a result together with its rivals, which are other changes that pass the same tests; or who chose it."""
    events = read_ledger(folder.ledger_path).events
    undetermined, chosen = (
        last_payload(events, kinds.RepairUndetermined),
        last_payload(events, kinds.RepairChosen),
    )
    if undetermined is not None:
        can_apply = suggest_commands and not any(delivery_lines(folder))
        yield from (f"  {line}" for line in comparison_lines(undetermined, folder.id if can_apply else ""))
        was_asked = any(asked.stage == "distinguish" for _, asked in select_events(events, kinds.ReviewAsked))
        hint = ", or let --ask ask you" if suggest_commands and undetermined.calls and not was_asked else ""
        what = "tells them apart" if len(undetermined.changes) > 1 else "fails where the change is wrong"
        yield f"Add a test that {what}, or review the diff{hint}."
    elif result.ok and chosen is not None and (chosen.passed or is_chosen_by_person(result, chosen)):
        yield _choice_sentence(chosen)


def is_chosen_by_person(result: Result, chosen: kinds.RepairChosen) -> bool:
    """Return whether a result is the change that a person chose, or what minimising left of it."""
    candidate = result.candidate
    is_chosen = candidate is not None and chosen.candidate in (candidate.hash, candidate.parent)
    return chosen.by == "person" and is_chosen


def _choice_sentence(chosen: kinds.RepairChosen) -> str:
    if chosen.by == "person":
        return "Your tests do not decide which change is right; you chose this one."
    count, verb = len(chosen.labels), "chose" if chosen.choice else "wrote"
    subject = f"between {count} changes" if count > 1 else "whether a change is right"
    explanation = f": {chosen.explanation}" if chosen.explanation else "."
    return f"Your tests do not decide {subject}; the model {verb} this one{explanation}"


def comparison_lines(undetermined: kinds.RepairUndetermined, run: str = "") -> Iterator[str]:
    """Yield the changes one after the other, each with its answers; nothing if there is only one.

    A line of code that all of them add is shown once.

    Args:
        run: The run whose other changes a command can apply; empty to suggest no command.
    """
    changes = undetermined.changes
    if len(changes) < 2:
        return
    shared, own_by_change = split_added_lines(changes)
    calls = list(_distinguishing_calls(undetermined.calls))
    if shared:
        yield "All of them add:"
        yield from (f"     {line}" for line in shared)
    for number, (change, own) in enumerate(zip(changes, own_by_change, strict=True), 1):
        yield f"{number}. {find_place(change.diff)}{' (this diff)' if number == 1 else ''}"
        yield from (f"     {line}" for line in own)
        yield from (f"     {line}" for line in answer_lines(calls, number - 1))
        if run and number > 1:
            yield f"   Apply this one: suture apply {run} --rival {number}"
    if more := undetermined.count - len(changes):
        yield f"and {more} more"


def _distinguishing_calls(calls: Sequence[kinds.ComparedCall]) -> Iterator[kinds.ComparedCall]:
    """Yield the calls of which each one tells more of the changes apart than those before it."""
    answers: list[tuple[str, ...]] = []
    for call in calls:
        before, after = (len(set(zip(*rows, strict=True))) for rows in (answers, [*answers, call.answers]))
        if after > max(before, 1):
            answers.append(call.answers)
            yield call


def answer_lines(calls: Sequence[kinds.ComparedCall], position: int) -> Iterator[str]:
    """Yield what one of several changes answers to some calls, and what the user's code answers now."""
    for call in calls:
        if answer := call.answers[position]:
            now = "as now" if answer == call.before else f"now {call.before}"
            yield f"{call.call} -> {answer}{f' ({now})' if call.before else ''}"


def find_place(diff: str) -> str:
    """Return the file of a diff and the first line that it adds or removes, such as `shop.py, line 9`."""
    path, line_number = "", 0
    for line in diff.splitlines():
        if line_number:
            if line.startswith(("-", "+")):
                break
            line_number += 1
        elif line.startswith("--- "):
            path = line.removeprefix("--- ").removeprefix("a/")
        elif line.startswith("@@ -"):
            line_number = int(line.removeprefix("@@ -").partition(" ")[0].partition(",")[0])
    return f"{path}, line {line_number}" if line_number else path


def difference_lines(
    difference: kinds.DistinguishingInput,
    changes: Sequence[kinds.ComparedChange],
    names: tuple[str, str] = ("1", "2"),
) -> Iterator[str]:
    """Yield what two repairs answer, each with the code that only it adds, then the code that both add.

    Args:
        names: How the two repairs are called, as in the possible answers to the question which of them is right.
    """
    shared, own_by_change = split_added_lines(changes)
    for name, answer, own in zip_longest(names, difference.answer_pair, own_by_change, fillvalue=()):
        yield f"  {name}: {answer}"
        yield from (f"     {line}" for line in own)
    if shared:
        yield "  both add:"
        yield from (f"     {line}" for line in shared)


def split_added_lines(changes: Sequence[kinds.ComparedChange]) -> tuple[list[str], list[list[str]]]:
    """Return some lines of code that all changes add, and some that each of them adds, or its label if it has none."""
    texts = [_added_lines(change) for change in changes]
    shared = [line for line in texts[0] if all(line in lines for lines in texts)] if texts else []
    own_by_change = [
        [line for line in lines if line not in shared][:MAX_RIVAL_CODE_LINES] or [change.label]
        for change, lines in zip(changes, texts, strict=True)
    ]
    return shared[:MAX_RIVAL_CODE_LINES], own_by_change


def _added_lines(change: kinds.ComparedChange) -> list[str]:
    """Return the lines of code that a change adds, without their indentation."""
    lines = (line[1:].strip() for line in change.diff.splitlines() if line.startswith("+"))
    return [line for line in lines if line and not line.startswith("++ ")]
