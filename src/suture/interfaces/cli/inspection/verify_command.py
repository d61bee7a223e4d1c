"""`suture verify`: replay the certificate of a result or of a judgement."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from suture.interfaces.cli.terminal.command_options import Assignments, Json, load_command_settings
from suture.interfaces.cli.terminal.error_reporting import handle_errors
from suture.interfaces.cli.terminal.terminal_output import print_json, print_note, print_text_line

if TYPE_CHECKING:
    from suture.core.records import Check
    from suture.core.settings import Settings
    from suture.judge.certificates import Certificate, JudgementCertificate, ReplayedClaim

REJECTED = 1
"""The exit code for an invalid certificate."""


@handle_errors
def verify(
    certificate: Annotated[
        str,
        Argument(
            help="The file of a certificate, its run (`last`, an id, or its unique start or end), or a judgement's id."
        ),
    ],
    project: Annotated[
        Path | None,
        Option(
            "--project",
            metavar="PATH",
            help="The project, with or without the change; default: the copy in the run or the certificate.",
        ),
    ] = None,
    assignments: Assignments = None,
    as_json: Json = False,
) -> None:
    """Verify a certificate again, in a clean sandbox and without a model.

    The tests run before and after the change; hashes, coverage and deliberate mistakes are measured again.
    A judgement is made again as a whole, and must come out as certified. Claims that cannot be verified by
    running are listed as claimed. The exit code is 1 if anything differs from the certificate.
    """
    from suture.api import run_sync
    from suture.judge.certificates import Certificate, find_certificate, load_any_certificate

    settings = load_command_settings(project or Path(), assignments).settings
    findings = run_sync(collect_findings(certificate, project, settings, as_json=as_json))
    ok = all(finding.ok for finding in findings)
    valid = load_any_certificate(find_certificate(certificate, settings.paths.home)) if ok else None
    if as_json:
        answer: dict[str, object] = {
            "ok": ok,
            "findings": [asdict(finding) for finding in findings],
            "judged_by": {},
            "claims": {},
        }
        if isinstance(valid, Certificate):
            deciding, others = split_checks(valid, settings.loop.trust_threshold)
            answer["judged_by"] = {  # what the certificate rests on: a weak check proves less
                "command": list(valid.task.full_command),
                "checks": [check.source for check in deciding],
                "not_deciding": [
                    {"source": check.source, "status": valid.after.get(check.id, "missing")}
                    for check in others
                ],
                "evidence": valid.evidence,
                "source_roots": list(valid.source_roots),
            }
            answer["claims"] = unverifiable_claims(valid)
        elif valid is not None:
            answer["judged_by"] = {
                "verdict": valid.judgement.outcome,
                "command": list(valid.judgement.command),
                "given_command": valid.given_command,
                "protect": list(valid.protect),
                "source_roots": list(valid.source_roots),
                "policy": valid.policy,
            }
            answer["claims"] = unverifiable_judgement_claims(valid)
        print_json(answer)
    elif isinstance(valid, Certificate):
        _print_accepted(valid, settings.loop.trust_threshold)
    elif valid is not None:
        _print_confirmed(valid)
    else:
        print_text_line("not confirmed")
    if not ok:
        raise typer.Exit(REJECTED)


def _print_accepted(certificate: Certificate, threshold: float) -> None:
    """Print what an accepted certificate claims, and what decided."""
    from suture.interfaces.narrative.wording import render_judge

    print_text_line(render_judge(certificate.evidence, has_diff=True))
    _print_claims(unverifiable_claims(certificate))
    deciding, others = split_checks(certificate, threshold)
    for check in others:
        status = certificate.after.get(check.id, "missing")
        print_text_line(f"ignored   a check that does not decide (trust {check.trust:.2f}): {status}")
        _print_source("ignored", check)
    for check in deciding:
        _print_source("check", check)
    if certificate.source_roots:
        print_text_line(f"imports   start at {', '.join(certificate.source_roots)}")
    command = " ".join(certificate.task.full_command)
    scope = ", for new code with the certified files alone" if command and is_new_code(certificate) else ""
    print_text_line(f"confirmed by {command or 'the checks above'}{scope}")


def _print_confirmed(certificate: JudgementCertificate) -> None:
    """Print what a confirmed judgement claims, and its verdict."""
    from suture.interfaces.narrative.judgement_text import render_headline
    from suture.interfaces.narrative.wording import render_judge

    if certificate.judgement.evidence is not None:
        print_text_line(render_judge(certificate.judgement.evidence, has_diff=True))
    _print_claims(unverifiable_judgement_claims(certificate))
    if certificate.source_roots:
        print_text_line(f"imports   start at {', '.join(certificate.source_roots)}")
    print_text_line(f"confirmed: {render_headline(certificate.judgement)}")


def _print_claims(claims: Mapping[str, str]) -> None:
    """Print the claims of a certificate that no replay can confirm; nothing for empty claims."""
    print_text_line("The certificate only claims what follows; running the tests again cannot confirm it:")
    for name, value in claims.items():
        if value:
            print_text_line(f"claimed   {name}: {value}")


def unverifiable_judgement_claims(certificate: JudgementCertificate) -> dict[str, str]:
    """Return what a judgement says and a replay does not confirm, as text for people."""
    judgement = certificate.judgement
    return {
        "compared with": judgement.base,
        "base commit": judgement.state.base_commit,
        "commit": judgement.state.commit,
        "made by": f"suture {certificate.suture}, in {judgement.seconds:.0f} s",
        "made at": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(certificate.made_at_s)),
    }


def _print_source(label: str, check: Check) -> None:
    for line in check.source.strip().split("\n"):
        print_text_line(f"{label:9} | {line}")


def split_checks(certificate: Certificate, threshold: float) -> tuple[list[Check], list[Check]]:
    """Return the checks that decide, and those whose trust is below the threshold, which do not."""
    checks = certificate.task.checks
    deciding = [check for check in checks if check.trust >= threshold]
    return deciding, [check for check in checks if check.trust < threshold]


def is_new_code(certificate: Certificate) -> bool:
    """Return whether a certificate is about new code, which was judged without any other file of a project."""
    project = certificate.task.project
    return certificate.task.kind == "write" and (project is None or project.is_new)


async def collect_findings(
    name: str, project: Path | None, settings: Settings, *, as_json: bool
) -> list[ReplayedClaim]:
    """Return every finding, after printing each as it comes."""
    from suture.api import verify as verify_certificate

    findings: list[ReplayedClaim] = []
    async for finding in verify_certificate(name, project=project, settings=settings):
        findings.append(finding)
        line = f"{'verified' if finding.ok else 'FALSE':8}  {finding.name}: {finding.detail}"
        if as_json:
            print_note(line)
        else:
            print_text_line(line)
    return findings


def unverifiable_claims(certificate: Certificate) -> dict[str, str]:
    """Return what a certificate says and nobody can verify by running, as text for people; empty for nothing."""
    from suture.core.records.unmeasured_text import render_unmeasured
    from suture.interfaces.narrative.plain_text import format_count
    from suture.loop.evaluation.change_warnings import LABEL_PREFIX

    claims = certificate.claims
    minimal, examples, lint = claims.minimal, claims.examples_unmeasured, claims.lint
    spent = [format_count(claims.attempts, "attempt"), format_count(claims.tokens, "token")]
    size = ""
    if minimal.edits_found and not minimal.is_minimal:
        size = "a smaller one may be enough"
    elif minimal.edits < minimal.edits_found:
        size = f"{minimal.edits} of {minimal.edits_found} edits; the others were not needed"
    return {
        "task": certificate.task.statement.strip().partition("\n")[0],
        "run": claims.run,
        "model": claims.model,
        "seed of the model": str(claims.seed) if claims.calls and claims.seed else "",
        "hashes of the prompts": ", ".join(claims.prompts),
        "spent": ", ".join([*(spent if claims.tokens else ()), f"{claims.seconds:.0f} s"]),
        "made by": f"suture {claims.suture}"
        + (f", recipe {claims.recipe}" if claims.recipe and claims.calls else "")
        + (f", on Python {claims.python}" if claims.python else ""),
        # The label of an edit of the search says what it changes, and whether a person chose it.
        "change": claims.label.removeprefix(LABEL_PREFIX) if claims.label.startswith(LABEL_PREFIX) else "",
        "size of the change": size,
        "linter": f"not run, {render_unmeasured(lint.unmeasured)}"
        if lint.unmeasured
        else "; ".join(lint.findings),
        "tests by a model that a person accepted": "; ".join(claims.accepted_tests),
        "warnings": "; ".join(claims.warnings),
        "search for memorised examples": f"not completed: {render_unmeasured(examples)}" if examples else "",
        "other repairs that pass the tests": "; ".join(claims.rival_labels),
    }
