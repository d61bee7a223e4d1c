"""`suture ci`: heal a failing pipeline within the gates, and deliver the verified change in a second job."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from suture.errors import UsageError
from suture.interfaces.cli.terminal.command_options import (
    Assignments,
    Json,
    Model,
    Python,
    Seconds,
    Test,
    load_command_settings,
    require_file,
    require_python,
    require_test_command,
)
from suture.interfaces.cli.terminal.error_reporting import handle_errors
from suture.interfaces.cli.terminal.terminal_output import print_json, print_note, print_text
from suture.interfaces.narrative.plain_text import disarm_commands, escape_line_breaks, escape_unprintable

if TYPE_CHECKING:
    from suture.core.settings import LoadedSettings, Settings
    from suture.interfaces.ci import HealRequest, Refusal

HELP = "Heal a failing CI pipeline within the gates of the settings `ci.*` (docs/ci.md), and deliver the fix."
ci_app = typer.Typer(name="ci", help=HELP, no_args_is_help=True)

Folder = Annotated[str, Argument(metavar="PATH", help="The project's folder in a git checkout.")]
Base = Annotated[
    str | None,
    Option(
        "--base", metavar="REF", help="The commit to compare with; default: from the CI service, or HEAD^."
    ),
]
DryRun = Annotated[bool, Option("--dry-run", help="Only print what would be done.")]


@ci_app.command()
@handle_errors
def heal(
    path: Folder = ".",
    test: Test = None,
    base: Base = None,
    out: Annotated[
        Path, Option("--out", metavar="FOLDER", help="The folder for the certificate, patch and reports.")
    ] = Path("suture-heal"),
    python: Python = None,
    model: Model = None,
    seconds: Seconds = None,
    dry_run: DryRun = False,
    assignments: Assignments = None,
    as_json: Json = False,
) -> None:
    """Reproduce a failure, heal it, check the gates, and write a folder for the job that delivers the change.

    The project's files do not change. A model is used only if --model, an environment variable or your
    settings file names one. The folder contains report.json, summary.md, suture.sarif and junit.xml, and with
    a change also fix.patch and certificate.json. Exit code 7: a gate refused the change.
    """
    settings = _settings(path, assignments, python=python, model=model, seconds=seconds)
    from suture.api import run_sync
    from suture.interfaces.ci import heal_in_pipeline, plan_heal, read_pipeline
    from suture.interfaces.ci.heal_report import (
        SUMMARY,
        heal_report_as_json,
        write_report_folder,
    )
    from suture.interfaces.ci.markdown_summary import render_job_summary
    from suture.interfaces.ci.report_files import refuse_links, write_step_outputs
    from suture.interfaces.ci.report_formats import render_junit, render_sarif

    request = _make_request(path, test, base)
    refuse_links(out, request.root)
    pipeline = read_pipeline(os.environ)
    if dry_run:
        refusal, plan = plan_heal(request, pipeline, settings)
        _print_plan(refusal, {**plan, "files in": str(out)}, as_json=as_json)
        return
    report = run_sync(heal_in_pipeline(request, pipeline, settings, print_note))
    summary = render_job_summary(report)
    texts = {SUMMARY: summary, "suture.sarif": render_sarif(report), "junit.xml": render_junit(report)}
    write_report_folder(report, texts, out, checkout=request.root)
    write_step_outputs({"outcome": report.outcome, "reason": report.reason}, summary, os.environ)
    if as_json:
        print_json(heal_report_as_json(report))
    else:
        _print_ci_line(report.name + (f" ({report.detail})" if report.detail else ""))
        _print_ci_line(f"{len(report.failing)} failing, {report.seconds:.0f} s; see {out}")
    if report.exit_code:
        raise typer.Exit(report.exit_code)


@ci_app.command()
@handle_errors
def deliver(
    folder: Annotated[
        str,
        Argument(metavar="FOLDER|RUN", help="The folder that `suture ci heal` wrote, or the id of a run."),
    ],
    project: Annotated[
        str, Option("--project", metavar="PATH", help="A fresh checkout of the project.")
    ] = ".",
    test: Test = None,
    base: Base = None,
    python: Python = None,
    dry_run: DryRun = False,
    assignments: Assignments = None,
    as_json: Json = False,
) -> None:
    """Verify a heal's certificate again, check the gates again, and deliver the change.

    Run this in a second job, which alone has the token (SUTURE_KEYS_CI). Only the certificate is read from
    the folder. The setting ci.delivery decides how to deliver: artifact, comment or pull_request. Outside of
    CI, `--set ci.delivery=pull_request` opens a draft pull request for a branch of a checkout from github.com.
    Exit code 7: a gate refused the change.
    """
    settings = _settings(project, assignments, python=python)
    from suture.interfaces.ci import (
        check_open_heals,
        deliver_change,
        open_host,
        prepare_delivery,
        read_pipeline,
        read_remote,
    )

    certificate = _find_certificate(folder, settings)
    pipeline = read_pipeline(os.environ)
    if pipeline.host == "none" and settings.ci.delivery != "artifact":
        pipeline = read_remote(Path(project), os.environ)
    if pipeline.is_fork and settings.keys.ci is None and not dry_run:
        print_note(
            "note: the code comes from a fork and there is no token, so this only prints what it would send"
        )
        dry_run = True
    prepared = prepare_delivery(certificate, _make_request(project, test, base), pipeline, settings)
    refusal, host = prepared.refusal, None
    if refusal is None:
        host = open_host(pipeline, settings, _request_printer(dry_run, as_json=as_json))
        refusal = check_open_heals(prepared, host, settings)
    refusal = refusal or _verification_refusal(certificate, Path(project), settings)
    if refusal is not None:
        _exit_refused(refusal, as_json=as_json)
    delivery = deliver_change(prepared, host, settings)
    if as_json:
        outcome = {"outcome": "delivered", "how": delivery.how, "address": delivery.address}
        print_json({**outcome, "dry_run": dry_run})
    else:
        verb = "would be delivered" if dry_run else "delivered"
        _print_ci_line(f"{verb} as {delivery.how} {delivery.address}".rstrip())
        if dry_run and delivery.change is not None:
            _print_ci_line(f"{delivery.change.title}, on top of {delivery.change.parent[:12]}")


@ci_app.command()
@handle_errors
def respond(
    folder: Annotated[
        str | None,
        Argument(
            metavar="FOLDER",
            help="The folder that `suture ci heal` wrote; without it, an apply is only checked.",
        ),
    ] = None,
    project: Annotated[
        str, Option("--project", metavar="PATH", help="A fresh checkout of the pull request's head.")
    ] = ".",
    test: Test = None,
    python: Python = None,
    dry_run: DryRun = False,
    assignments: Assignments = None,
    as_json: Json = False,
) -> None:
    """Carry out `/suture apply` or `/suture reject`, which somebody commented on a pull request of GitHub.

    The author must be allowed to write to the repository, and the branch must still end with the commit that
    was healed. To apply the change, its certificate is verified again. Run it first without FOLDER and before
    any checkout: it answers everything but an apply that is ready. Exit code 7: the command was refused.
    """
    settings = _settings(project, assignments, python=python)
    from suture.interfaces.ci import (
        REFUSED,
        OfferedHeal,
        open_github,
        prepare_delivery,
        read_comment_command,
        read_pipeline,
        render_reply,
        respond_to_command,
    )
    from suture.interfaces.ci.report_files import write_step_outputs

    command = read_comment_command(os.environ)
    if command is None:
        write_step_outputs({"reply": "no_command"}, "", os.environ)
        _print_ci_line("the comment is no command of Suture")
        return
    pipeline = read_pipeline(os.environ)
    github = open_github(pipeline, settings, _request_printer(dry_run, as_json=as_json))
    heal = None
    if folder is not None:
        certificate, request = _find_certificate(folder, settings), _make_request(project, test, None)
        heal = OfferedHeal(
            prepare=lambda pull: prepare_delivery(certificate, request, pull, settings),
            verify=lambda: _verification_refusal(certificate, Path(project), settings),
        )
    reply = respond_to_command(command, pipeline, github, heal)
    workflow_run = reply.posted.mark.workflow_run if reply.posted else ""
    outputs = {"reply": reply.code, "commit": reply.commit, "workflow-run": workflow_run}
    write_step_outputs(outputs, "", os.environ)
    if as_json:
        print_json({**outputs, "detail": reply.detail, "dry_run": dry_run})
    else:
        _print_ci_line(f"/suture {command.name}: {reply.code} ({render_reply(reply)})")
    if not command.is_fulfilled_by(reply):
        raise typer.Exit(REFUSED)


@ci_app.command()
@handle_errors
def issue(
    folder: Annotated[Path, Argument(metavar="FOLDER", help="The folder that `suture ci heal` wrote.")],
    dry_run: DryRun = False,
    assignments: Assignments = None,
    as_json: Json = False,
) -> None:
    """Open or update an issue on GitHub while the branch is red, and close it when the branch is green again.

    The issue names the failing tests and how their heal ended. Run this on a schedule, in a second job, which
    alone has the token (SUTURE_KEYS_CI).
    """
    settings = _settings(".", assignments, python=None)
    from suture.interfaces.ci import open_github, read_pipeline, read_report, update_branch_issue

    report = read_report(folder / "report.json")
    pipeline = read_pipeline(os.environ)
    github = open_github(pipeline, settings, _request_printer(dry_run, as_json=as_json))
    change, address = update_branch_issue(report, pipeline, github)
    if as_json:
        print_json({"issue": change, "address": address, "dry_run": dry_run})
    else:
        _print_ci_line(f"issue {change} {address}".rstrip() + (" (dry run)" if dry_run else ""))


def _find_certificate(folder: str, settings: Settings) -> Path:
    """Return the certificate in a folder, or that of a run, whose id begins with its date."""
    from suture.core.ledger import find_run
    from suture.interfaces.ci.heal_report import CERTIFICATE

    is_run = (folder == "last" or folder[:8].isdecimal()) and not Path(folder).exists()
    certificate = (find_run(settings.paths.home, folder).path if is_run else Path(folder)) / CERTIFICATE
    require_file(certificate, "the certificate")
    return certificate


def _verification_refusal(certificate: Path, project: Path, settings: Settings) -> Refusal | None:
    """Print each finding of `suture verify`; return a refusal if one of them is false."""
    from suture.api import run_sync
    from suture.api import verify as replay_certificate
    from suture.interfaces.ci import Refusal

    async def replay() -> Refusal | None:
        async for finding in replay_certificate(certificate, project=project, settings=settings):
            _print_ci_line(f"{'verified' if finding.ok else 'FALSE'} {finding.name}: {finding.detail}")
            if not finding.ok:
                return Refusal(reason="not_verified", detail=f"{finding.name}: {finding.detail}")
        return None

    return run_sync(replay())


def _settings(
    path: str,
    assignments: list[str] | None,
    *,
    python: Path | None,
    model: str | None = None,
    seconds: float | None = None,
) -> Settings:
    """Load the settings. If nothing names a model, none is used, unlike in `suture heal`."""
    if not Path(path).is_dir():
        raise UsageError(f"there is no folder at {path!r}", remedy="name the project's folder")
    require_python(python)

    def load(model: str | None) -> LoadedSettings:
        return load_command_settings(
            Path(path),
            assignments,
            sandbox__python=str(python) if python else None,
            model__name=model,
            budget__seconds=seconds,
        )

    loaded = load(model)
    for note in loaded.notes:
        print_note(f"note: {note}")
    return load("none").settings if loaded.origins["model.name"] == "default" else loaded.settings


def _make_request(path: str, test: str | None, base: str | None) -> HealRequest:
    from suture.interfaces.ci import HealRequest

    require_test_command(test)
    return HealRequest(root=Path(path).resolve(), test=test, base=base)


def _print_plan(refusal: Refusal | None, plan: dict[str, str], *, as_json: bool) -> None:
    if as_json:
        print_json({"refused": refusal.reason if refusal else "", "plan": plan})
        return
    for name, value in plan.items():
        _print_ci_line(f"{name}: {value}")
    if refusal is not None:
        _exit_refused(refusal, as_json=False)


def _exit_refused(refusal: Refusal, *, as_json: bool) -> None:
    from suture.interfaces.ci import REFUSAL_TEXTS, REFUSED

    if as_json:
        print_json({"outcome": "refused", "reason": refusal.reason, "detail": refusal.detail})
    else:
        _print_ci_line(f"refused: {refusal.reason} ({REFUSAL_TEXTS[refusal.reason]}; {refusal.detail})")
    raise typer.Exit(REFUSED)


def _print_ci_line(text: str) -> None:
    """Print one line that no CI service takes for a command."""
    print_text(_render_ci_line(text))


def _render_ci_line(text: str) -> str:
    return disarm_commands(escape_line_breaks(escape_unprintable(f"suture ci: {text}")))


def _request_printer(dry_run: bool, *, as_json: bool) -> Callable[[str], None] | None:
    """Return what prints each request that a dry run does not send; `None` if requests are sent."""
    if not dry_run:
        return None
    write = print_note if as_json else print_text
    return lambda request: write(_render_ci_line(f"would send {request}"))
