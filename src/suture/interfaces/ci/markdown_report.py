"""What a person reads of a heal: the summary of the job, and the text of a comment or a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from suture.interfaces.ci.heal_report import HealReport
from suture.interfaces.narrative.plain_text import escape_unprintable

MOST_LISTED = 10
MARK = "<!-- suture-heal {commit} -->"
"""By this a comment of ours is known again."""


def render_job_summary(report: HealReport) -> str:
    """The report as Markdown, for the page of the job."""
    return "\n".join([f"## Suture: {report.name}", "", *_facts(report), *_change(report)])


def _facts(report: HealReport) -> Iterator[str]:
    if report.detail:
        yield f"{code_span(report.detail)}\n"
    if report.commit:
        against = f", compared with {code_span(report.base[:12])}" if report.base else ""
        yield f"- commit {code_span(report.commit[:12])}{against}"
    if report.failing:
        yield f"- failing: {format_names(report.failing)}"
    if report.old_failures:
        yield f"- left out, as they fail at the base too: {format_names(report.old_failures)}"
    if report.run:
        yield f"- run {code_span(report.run)}, {report.seconds:.0f} s"
    if report.evidence and report.diff:
        yield f"- confidence {report.confidence:.2f}, evidence {report.evidence}"
    yield from (f"- warning: {code_span(sign)}" for sign in report.warnings)


def _change(report: HealReport) -> Iterator[str]:
    if report.diff:
        held_back = "" if report.outcome == "healed" else " (not handed over)"
        yield f"\nThe change{held_back}:\n"
        yield code_block(report.diff, "diff")


def format_names(names: Sequence[str]) -> str:
    """Some names of others, the first few."""
    more = len(names) - MOST_LISTED
    return ", ".join(map(code_span, names[:MOST_LISTED])) + (f" and {more:,} more" if more > 0 else "")


def render_comment(
    *,
    commit: str,
    diff: str,
    fixed: Sequence[str],
    command: Sequence[str],
    left_out: Sequence[str],
    confidence: float,
    evidence: str,
) -> str:
    """The text of a comment or a pull request.

    Args:
        commit: The commit that was healed.
        diff: The change.
        fixed: The tests that pass only with it.
        command: The test command.
        left_out: Tests that fail at the base too, and were not run.
        confidence: Of the certificate, measured again.
        evidence: The same.
    """
    beside = f"\n- left out, as they fail at the base too: {format_names(left_out)}" if left_out else ""
    return (
        f"{MARK.format(commit=commit)}\n"
        f"A change with which the tests of {code_span(commit[:12])} pass. Look at it: "
        "passing tests are not all.\n\n"
        f"- passing now: {format_names(fixed) or 'the command as a whole'}\n"
        f"- by {code_span(' '.join(command))}, before and after, repeated by `suture verify`{beside}\n"
        f"- confidence {confidence:.2f}, evidence {evidence}\n\n"
        f"{code_block(diff, 'diff')}"
    )


MOST_BLOCK_CHARS = 20_000
"""Of one block; a comment at GitHub holds 65,536."""
MOST_SPAN_CHARS = 200


def code_block(text: str, language: str = "") -> str:
    """Text as a fenced block that nothing in it can end.

    Args:
        text: Of anybody; it is cut after `MOST_BLOCK_CHARS`.
        language: Ours, such as `diff`.
    """
    shown = escape_unprintable(text)
    if len(shown) > MOST_BLOCK_CHARS:
        shown = f"{shown[:MOST_BLOCK_CHARS]}\n... {len(shown) - MOST_BLOCK_CHARS:,} characters more"
    fence = "`" * max(3, 1 + _longest(shown))
    return f"{fence}{language}\n{shown.rstrip()}\n{fence}\n"


def is_shown_whole(text: str) -> bool:
    """Whether a block shows a text to the letter, so that a service may put it into a file."""
    return bool(text) and text == escape_unprintable(text).rstrip() and len(text) <= MOST_BLOCK_CHARS


def code_span(text: str) -> str:
    """Text as code within a line; it names no person, links nowhere, and can stand in a table."""
    shown = " ".join(escape_unprintable(text).split())
    if len(shown) > MOST_SPAN_CHARS:
        shown = f"{shown[: MOST_SPAN_CHARS - 1]}…"
    # In a table a bar ends its cell, in code too; `\|` is the one escape that tables know there.
    ticks = "`" * (1 + _longest(shown))
    space = " " if shown.startswith("`") or shown.endswith("`") or not shown else ""
    return f"{ticks}{space}{shown.replace('|', chr(92) + '|')}{space}{ticks}"


def _longest(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)
