"""Render a judgement as an in-toto Statement with the predicate `test-result`, unsigned.

The form is that of https://github.com/in-toto/attestation: `spec/v1/statement.md` and
`spec/predicates/test-result.md`. Tools of sigstore sign it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from typing import Any, Literal

from suture.core.records.judgement import Judgement
from suture.core.settings import Settings

__test__ = False  # keeps pytest from collecting this module
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "https://in-toto.io/attestation/test-result/v0.1"
TestResult = Literal["PASSED", "WARNED", "FAILED"]


def render_statement(judgement: Judgement, settings: Settings, environ: Mapping[str, str]) -> str:
    """Return the statement as JSON.

    Args:
        settings: Their group `judge` decided which findings reject a change.
        environ: The variables of the CI service, whose job the statement links.
    """
    tests = judgement.tests
    unsure = {*tests.flaky}
    predicate: dict[str, Any] = {
        "result": _judge_result(judgement),
        "configuration": list(_list_configuration(judgement, settings)),
        "passedTests": [name for name in tests.passed if name not in unsure],
        "warnedTests": sorted(unsure),
        "failedTests": sorted({*tests.newly_failing, *tests.still_failing} - unsure),
    }
    if url := _find_job_url(environ):
        predicate["url"] = url
    statement = {
        "_type": STATEMENT_TYPE,
        "subject": list(_list_subjects(judgement)),
        "predicateType": PREDICATE_TYPE,
        "predicate": predicate,
    }
    return json.dumps(statement, indent=1) + "\n"


def _judge_result(judgement: Judgement) -> TestResult:
    """Return the result. `PASSED` promises that tests ran and none fails, so it is not for every accepted change."""
    tests = judgement.tests
    if not judgement.ok:
        return "FAILED"
    is_clean = judgement.outcome == "accepted" and judgement.evidence is not None
    return "PASSED" if is_clean and not tests.still_failing and not tests.flaky else "WARNED"


def _list_subjects(judgement: Judgement) -> Iterator[dict[str, Any]]:
    """Yield what was judged: the commit if one holds these files, all files together, and each changed file."""
    state = judgement.state
    if state.commit:
        yield {"name": "commit", "digest": {"gitCommit": state.commit}}
    yield {"name": state.folder or ".", "digest": {"dirHash": state.tree}}
    for path, digest in sorted(state.files.items()):
        yield {"name": state.folder + path, "digest": {"sha256": digest}}


def _list_configuration(judgement: Judgement, settings: Settings) -> Iterator[dict[str, Any]]:
    """Yield how it was judged: the program, command and policy, the certificate, and the commit of the base."""
    values = {
        "suture": version("suture"),
        "command": judgement.command,
        "policy": settings.judge.model_dump(mode="json"),
    }
    codes = {finding.code for finding in judgement.findings if finding.severity != "note"}
    yield {
        "name": "suture judge",
        "mediaType": "application/json",
        "content": base64.b64encode(json.dumps(values).encode()).decode("ascii"),
        "annotations": {"verdict": judgement.outcome, "reason": judgement.reason, "findings": sorted(codes)},
    }
    if judgement.certificate_sha256:
        yield {"name": "certificate", "digest": {"sha256": judgement.certificate_sha256}}
    if judgement.state.base_commit:
        yield {"name": "base", "digest": {"gitCommit": judgement.state.base_commit}}


def _find_job_url(environ: Mapping[str, str]) -> str:
    """Return the address of the CI job; empty outside of one."""
    server, repository, run = (
        environ.get(name, "") for name in ("GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "GITHUB_RUN_ID")
    )
    if server and repository and run:
        return f"{server}/{repository}/actions/runs/{run}"
    return environ.get("CI_JOB_URL", "")
