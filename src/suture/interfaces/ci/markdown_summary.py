"""Markdown for CI services: the job summary and the text of comments.

Untrusted text is always quoted as code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from suture.interfaces.ci.heal_report import HealReport
from suture.interfaces.ci.tuning import MAX_BLOCK_CHARS, MAX_LISTED_NAMES, MAX_SPAN_CHARS
from suture.interfaces.narrative.plain_text import escape_unprintable, format_share
from suture.judge.certificates import Certificate


def render_job_summary(report: HealReport) -> str:
    """Return the report as Markdown for the job's page."""
    return "\n".join(_summary_lines(report))


def _summary_lines(report: HealReport) -> Iterator[str]:
    yield f"## Suture: {report.name}\n"
    if report.detail:
        yield f"{code_span(report.detail)}\n"
    if report.commit:
        against = f", compared with {code_span(report.base[:12])}" if report.base else ""
        yield f"- commit {code_span(report.commit[:12])}{against}"
    if report.failing:
        yield f"- failing: {format_names(report.failing)}"
    if report.old_failures:
        yield f"- left out because they also fail at the base: {format_names(report.old_failures)}"
    if report.run:
        yield f"- run {code_span(report.run)}, {report.seconds:.0f} s"
    if report.evidence and report.diff:
        yield f"- confidence {report.confidence:.2f}, evidence {report.evidence}"
    yield from (f"- warning: {code_span(warning)}" for warning in report.warnings)
    if report.diff:
        not_delivered = "" if report.outcome == "healed" else " (not delivered)"
        yield f"\nThe change{not_delivered}:\n"
        yield code_block(report.diff, "diff")


def format_names(names: Sequence[str]) -> str:
    """Return the first few of some untrusted names."""
    listed = ", ".join(map(code_span, names[:MAX_LISTED_NAMES]))
    unlisted_count = len(names) - MAX_LISTED_NAMES
    return f"{listed} and {unlisted_count:,} more" if unlisted_count > 0 else listed


def render_comment(
    certificate: Certificate, commit: str, command: Sequence[str], left_out: Sequence[str]
) -> str:
    """Return the text of a comment or a pull request: the verdict, its evidence, and the diff.

    Args:
        certificate: The certificate of the change.
        commit: The commit that the change was verified on.
        command: The test command, without the options that leave tests out.
        left_out: The failing tests that it leaves out.
    """
    left_out_text = (
        f"\n- left out because they also fail at the base: {format_names(left_out)}" if left_out else ""
    )
    return (
        f"**{_verdict_sentence(certificate)}** This is so with the change below on {code_span(commit[:12])}. "
        "Please review it: passing tests do not prove that a change is right.\n\n"
        f"- fixed: {format_names(certificate.fixed) or 'the test command as a whole'}\n"
        f"- tested with {code_span(' '.join(command))} before and after the change, and again by "
        f"`suture verify`{left_out_text}\n"
        f"- confidence {certificate.confidence:.2f}, evidence {certificate.evidence}\n\n"
        f"{code_block(certificate.diff, 'diff')}"
    )


def _verdict_sentence(certificate: Certificate) -> str:
    """Return a sentence such as "5 of 5 tests pass, 3 of them failed before; the tests notice ..."."""
    passing = sum(status == "passed" for status in certificate.after.values())
    total = len(certificate.after)
    noun = "check" if certificate.task.tools else "test"  # what linters report are checks too
    text = format_share(passing, total, "pass", noun)
    if certificate.fixed:
        before = "and it failed before" if total == 1 else f"{len(certificate.fixed)} of them failed before"
        text += f", {before}"
    if (mutation := certificate.mutation).mutants:
        mistakes = len(mutation.mutants) if mutation.selected is None else mutation.selected
        text += f"; the tests notice {mutation.killed} of {mistakes} deliberate mistakes here"
    return f"{text[0].upper()}{text[1:]}."


def code_block(text: str, language: str = "") -> str:
    """Return text, cut after `MAX_BLOCK_CHARS`, as a fenced block that nothing in the text can end."""
    text = escape_unprintable(text)
    if len(text) > MAX_BLOCK_CHARS:
        text = f"{text[:MAX_BLOCK_CHARS]}\n... {len(text) - MAX_BLOCK_CHARS:,} more characters"
    fence = "`" * max(3, 1 + _longest_backtick_run(text))
    return f"{fence}{language}\n{text.rstrip()}\n{fence}\n"


def is_shown_whole(text: str) -> bool:
    """Return whether a block shows the text exactly, so that a service can write it into a file."""
    return bool(text) and text == escape_unprintable(text).rstrip() and len(text) <= MAX_BLOCK_CHARS


def code_span(text: str, max_chars: int = MAX_SPAN_CHARS) -> str:
    """Return text as inline code, in which nothing mentions a person, links, or ends a table cell."""
    text = " ".join(escape_unprintable(text).split())
    if len(text) > max_chars:
        text = f"{text[: max_chars - 1]}…"
    ticks = "`" * (1 + _longest_backtick_run(text))
    space = " " if text.startswith("`") or text.endswith("`") or not text else ""
    # A bar ends a table cell even in code; `\|` is the only escape that works there.
    return ticks + space + text.replace("|", r"\|") + space + ticks


def _longest_backtick_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)
