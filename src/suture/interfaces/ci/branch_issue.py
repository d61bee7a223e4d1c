"""Keep an issue on GitHub that is open while a branch is red: it names the failing tests and how their heal ended."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from suture.core.codec import decode_record
from suture.core.records import content_hash
from suture.core.safe_files import read_regular_file
from suture.errors import UsageError
from suture.interfaces.ci.ci_pipeline import COMMIT_HASH, Pipeline, parse_number
from suture.interfaces.ci.code_host import branch_stem
from suture.interfaces.ci.github import GitHub
from suture.interfaces.ci.heal_report import HealReport
from suture.interfaces.ci.markdown_summary import code_span, render_job_summary
from suture.interfaces.ci.tuning import MAX_REPORT_BYTES, MAX_TITLE_CHARS
from suture.interfaces.narrative.plain_text import escape_unprintable, format_count

IssueChange = Literal["opened", "updated", "closed", "unchanged"]
"""What was done with the issue of a branch."""
BRANCH_MARK = "<!-- suture-branch {digest} -->"
"""The hidden first line of the issue of a branch."""
LABEL = "suture"
CODE = re.compile(r"[a-z_]{1,60}")
"""The form of an outcome and of a reason, which are not quoted in Markdown."""


def read_report(path: Path) -> HealReport:
    """Return the report that `suture ci heal` wrote in another job.

    Raises:
        UsageError: The file is no such report.
    """
    try:
        report_json = json.loads(read_regular_file(path, MAX_REPORT_BYTES) or b"")
        report = decode_record(HealReport, report_json)
    except (OSError, ValueError, TypeError, AttributeError, RecursionError) as fault:
        raise UsageError(
            f"{str(path)!r} is not a report of suture ci heal", remedy="name the folder that it wrote"
        ) from fault
    codes_are_valid = CODE.fullmatch(report.outcome) and CODE.fullmatch(report.reason or "none")
    if not codes_are_valid or not COMMIT_HASH.fullmatch(report.commit or "0" * 40):
        raise UsageError(f"{str(path)!r} has an outcome, a reason or a commit that is none")
    return report


def update_branch_issue(report: HealReport, pipeline: Pipeline, github: GitHub) -> tuple[IssueChange, str]:
    """Open, update or close the issue of the pipeline's branch; return what was done, and the issue's address.

    A heal that ended before the tests had run says nothing about the branch, and changes nothing.

    Raises:
        UsageError: The pipeline is one of a pull request, which has comments and needs no issue.
        PrerequisiteError: The token lacks permission.
        CodeHostError: The service refuses.
    """
    if pipeline.pull is not None or pipeline.is_fork or not pipeline.branch:
        raise UsageError("only a branch of the repository itself has an issue", remedy="run it on a schedule")
    is_green = report.outcome == "nothing_to_heal"
    if not is_green and not report.failing:
        return "unchanged", ""
    mark = BRANCH_MARK.format(digest=content_hash(pipeline.branch)[:16])
    issue = _find_issue(mark, github)
    number = parse_number(issue.get("number"))
    if is_green:
        if number is None:
            return "unchanged", ""
        text = f"The tests pass again, at {code_span(report.commit[:12])}."
        github.rest.post(f"/issues/{number}/comments", body=text)
        closed = github.rest.update(f"/issues/{number}", state="closed", state_reason="completed")
        return "closed", str(closed.get("html_url", ""))
    count = len(report.failing)
    failing_text = f"{format_count(count, 'test')} fail{'s' if count == 1 else ''}"
    title = f"{_plain_branch(pipeline.branch)} is red: {failing_text}"
    body = f"{mark}\n{_delivery_sentence(report, pipeline)}{render_job_summary(report)}"
    if number is None:
        opened = github.rest.post("/issues", title=title, body=body, labels=[LABEL])
        return "opened", str(opened.get("html_url", ""))
    updated = github.rest.update(f"/issues/{number}", title=title, body=body)
    return "updated", str(updated.get("html_url", ""))


def _find_issue(mark: str, github: GitHub) -> Mapping[str, Any]:
    """Return the open issue that begins with a mark; an empty object if there is none."""
    for issue in github.rest.list_entries(f"/issues?state=open&labels={LABEL}"):
        body = issue.get("body")
        if isinstance(body, str) and body.startswith(mark) and "pull_request" not in issue:
            return issue
    return {}


def _delivery_sentence(report: HealReport, pipeline: Pipeline) -> str:
    """Return where to find the fix, if the tests were healed."""
    if report.outcome != "healed":
        return ""
    branch = f"{branch_stem(pipeline.branch)}{report.commit}"
    return f"Suture has a verified fix, below. If it was delivered, its branch is {code_span(branch)}.\n\n"


def _plain_branch(branch: str) -> str:
    """Return a branch's name for a title, in which services see no mention of a person or of an issue."""
    return re.sub(r"[^\w./-]+", "_", escape_unprintable(branch))[:MAX_TITLE_CHARS]
