"""What a certificate holds of a task and of its verdicts."""

from __future__ import annotations

from suture.checks import Suite
from suture.proof.certificate import CertifiedTask
from suture.records import Verdict

CERTIFICATE = "certificate.json"
"""The certificate's name in the run folder."""


def certified_task(suite: Suite) -> CertifiedTask:
    """A suite's task as a certificate holds it."""
    task = suite.task
    return CertifiedTask(
        kind=task.kind,
        statement=task.statement,
        module=task.module,
        beside=task.beside,
        several=task.several,
        entry_point=task.entry_point,
        language=task.language,
        checks=task.checks,
        test_command=task.test_command,
        protected=task.protected,
        only=task.only,
        source_roots=suite.command.interpreter.source_roots if suite.command else (),
        project=task.project,
    )


def statuses(verdict: Verdict | None) -> dict[str, str]:
    """Id of each check -> its status; none where there is no verdict."""
    return {o.check_id: o.status for o in verdict.outcomes} if verdict else {}


def new_failures(before: Verdict | None, after: Verdict) -> tuple[str, ...]:
    """Checks that passed before and do not pass after; one that is gone has failed."""
    return tuple(sorted(before.passed - after.passed)) if before else ()
