"""`suture verify`: replay a certificate."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from suture.interfaces.cli.terminal.command_options import Assignments, Json, load_command_settings
from suture.interfaces.cli.terminal.error_reporting import handle_errors
from suture.interfaces.cli.terminal.terminal_output import print_json, print_note, print_text
from suture.interfaces.narrative.plain_text import escape_line_breaks

if TYPE_CHECKING:
    from suture.core.settings import Settings
    from suture.judge.certificates import Certificate, ReplayedClaim

REJECTED = 1
"""The exit code for a certificate that does not hold."""


@handle_errors
def verify(
    certificate: Annotated[
        str,
        typer.Argument(help="The certificate's file, or its run: `last`, an id, or its unique start or end."),
    ],
    project: Annotated[
        Path | None,
        typer.Option(
            "--project",
            metavar="PATH",
            help="The project, with or without the change; default: the run's own copy.",
        ),
    ] = None,
    assignments: Assignments = None,
    as_json: Json = False,
) -> None:
    """Verify a certificate again, in a clean sandbox and without a model.

    The tests run before and after the change; hashes, coverage and mutants are measured again. Claims that
    cannot be
    verified by running are listed as claimed. The exit code is 1 if anything differs from the certificate.
    """
    from suture.api import run_sync

    settings = load_command_settings(project or Path(), assignments).settings
    findings = run_sync(replay_certificate(certificate, project, settings, as_json=as_json))
    ok = all(finding.ok for finding in findings)
    certificate_record = load_certificate(certificate, settings) if ok else None
    if as_json:
        claims = unverifiable_claims(certificate_record) if certificate_record else {}
        judged_by = judging_inputs(certificate_record) if certificate_record else {}
        print_json(
            {"ok": ok, "findings": [asdict(f) for f in findings], "judged_by": judged_by, "claims": claims}
        )
    elif certificate_record is not None:
        for name, value in unverifiable_claims(certificate_record).items():
            print_text(escape_line_breaks(f"claimed   {name}: {value}"))
        for check in certificate_record.task.checks:
            for line in check.source.strip().split("\n"):
                print_text(escape_line_breaks(f"check     | {line}"))
        if certificate_record.task.source_roots:
            print_text(
                escape_line_breaks(f"imports   start at {', '.join(certificate_record.task.source_roots)}")
            )
        print_text(
            escape_line_breaks(
                f"accepted: {' '.join(certificate_record.task.test_command) or 'the checks above'}"
            )
        )
    else:
        print_text("rejected")
    if not ok:
        raise typer.Exit(REJECTED)


async def replay_certificate(
    name: str, project: Path | None, settings: Settings, *, as_json: bool
) -> list[ReplayedClaim]:
    """Return every finding, after printing each as it comes."""
    from suture.api import verify as replay_certificate

    findings: list[ReplayedClaim] = []
    async for finding in replay_certificate(name, project=project, settings=settings):
        findings.append(finding)
        line = f"{'verified' if finding.ok else 'FALSE':8}  {finding.name}: {finding.detail}"
        if as_json:
            print_note(line)
        else:
            print_text(escape_line_breaks(line))
    return findings


def load_certificate(name: str, settings: Settings) -> Certificate:
    """Return the certificate, after its replay has shown that it is one."""
    from suture.judge.certificates import find_certificate, load_certificate

    return load_certificate(find_certificate(name, settings.paths.home))


def judging_inputs(certificate: Certificate) -> dict[str, object]:
    """Return the command and checks that the certificate rests on: a weak check proves less."""
    task = certificate.task
    return {
        "command": list(task.test_command),
        "checks": [check.source for check in task.checks],
        "source_roots": list(task.source_roots),
    }


def unverifiable_claims(certificate: Certificate) -> dict[str, object]:
    """Return what a certificate says and nobody can verify by running, as text for people."""
    certificate_record = certificate.claims
    return {
        "task": certificate.task.statement.strip().partition("\n")[0],
        "run": certificate_record.run,
        "model": certificate_record.model,
        "seed": certificate_record.seed,
        "prompts": ", ".join(certificate_record.prompts) or "none",
        "spent": f"{certificate_record.attempts} attempts, {certificate_record.tokens} tokens, "
        f"{certificate_record.seconds:.0f} s",
        "made by": f"suture {certificate_record.suture}, recipe {certificate_record.recipe}, on Python "
        f"{certificate_record.python}",
        "smallest": f"{certificate_record.minimal.edits} of {certificate_record.minimal.edits_found} edits"
        + ("" if certificate_record.minimal.is_minimal else ", perhaps not the fewest"),
        "lint": certificate_record.lint.absent
        or "; ".join(certificate_record.lint.findings)
        or "nothing new",
        "accepted tests": "; ".join(certificate_record.accepted_tests) or "none",
        "suspicious": "; ".join(certificate_record.warnings) or "nothing",
    }
