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
"""The exit code where a certificate does not hold."""


@handle_errors
def verify(
    certificate: Annotated[
        str, typer.Argument(help="Its file, or the run that made it: `last`, an id, the start or end of one.")
    ],
    project: Annotated[
        Path | None,
        typer.Option(
            "--project",
            metavar="PATH",
            help="The project, with the change or without; the run's own copy where it is not given.",
        ),
    ] = None,
    assignments: Assignments = None,
    as_json: Json = False,
) -> None:
    """Prove a certificate anew, in a clean sandbox and without a model.

    The tests are run before and after the change; hashes, coverage and mutants are measured again. What
    running cannot prove is listed as claimed. The exit code is 1 where anything is not as certified.
    """
    from suture.api import run_sync

    settings = load_command_settings(project or Path(), assignments).settings
    findings = run_sync(replay(certificate, project, settings, as_json=as_json))
    ok = all(finding.ok for finding in findings)
    said = read(certificate, settings) if ok else None
    if as_json:
        claims = claims_of(said) if said else {}
        judged_by = judged_by_of(said) if said else {}
        print_json(
            {"ok": ok, "findings": [asdict(f) for f in findings], "judged_by": judged_by, "claims": claims}
        )
    elif said is not None:
        for name, value in claims_of(said).items():
            print_text(escape_line_breaks(f"claimed   {name}: {value}"))
        for check in said.task.checks:
            for line in check.source.strip().split("\n"):
                print_text(escape_line_breaks(f"check     | {line}"))
        if said.task.source_roots:
            print_text(escape_line_breaks(f"imports   start at {', '.join(said.task.source_roots)}"))
        print_text(escape_line_breaks(f"accepted: {' '.join(said.task.test_command) or 'the checks above'}"))
    else:
        print_text("rejected")
    if not ok:
        raise typer.Exit(REJECTED)


async def replay(
    name: str, project: Path | None, settings: Settings, *, as_json: bool
) -> list[ReplayedClaim]:
    """Every finding, each told as it comes."""
    from suture.api import verify as replay_certificate

    findings: list[ReplayedClaim] = []
    async for finding in replay_certificate(name, project=project, settings=settings):
        findings.append(finding)
        line = f"{'proved' if finding.ok else 'FALSE':8}  {finding.name}: {finding.detail}"
        if as_json:
            print_note(line)
        else:
            print_text(escape_line_breaks(line))
    return findings


def read(name: str, settings: Settings) -> Certificate:
    """The certificate itself, once it was found to be one."""
    from suture.judge.certificates import find_certificate, load_certificate

    return load_certificate(find_certificate(name, settings.paths.home))


def judged_by_of(certificate: Certificate) -> dict[str, object]:
    """What the proof rests on: read it, for a certificate of a weaker check is a true certificate of less."""
    task = certificate.task
    return {
        "command": list(task.test_command),
        "checks": [check.source for check in task.checks],
        "source_roots": list(task.source_roots),
    }


def claims_of(certificate: Certificate) -> dict[str, object]:
    """What a certificate says and nobody can prove, in words for people."""
    said = certificate.claims
    return {
        "task": certificate.task.statement.strip().partition("\n")[0],
        "run": said.run,
        "model": said.model,
        "seed": said.seed,
        "prompts": ", ".join(said.prompts) or "none",
        "spent": f"{said.attempts} attempts, {said.tokens} tokens, {said.seconds:.0f} s",
        "made by": f"suture {said.suture}, recipe {said.recipe}, on Python {said.python}",
        "smallest": f"{said.minimal.edits} of {said.minimal.edits_found} edits"
        + ("" if said.minimal.is_minimal else ", perhaps not the fewest"),
        "lint": said.lint.absent or "; ".join(said.lint.findings) or "nothing new",
        "accepted tests": "; ".join(said.accepted_tests) or "none",
        "suspicious": "; ".join(said.warnings) or "nothing",
    }
