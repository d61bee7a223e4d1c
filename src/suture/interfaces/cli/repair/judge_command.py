"""`suture judge`: a verdict on anybody's change."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from suture.core.safe_files import read_text_file
from suture.errors import UsageError
from suture.interfaces.cli.repair.judge_hook import (
    MAX_HOOK_INPUT_CHARS,
    MAX_REASONS,
    START_EVENT,
    answer_hook,
    find_session_start,
    read_hook_call,
    spare_agent,
)
from suture.interfaces.cli.repair.watch_command import print_superseded
from suture.interfaces.cli.terminal.command_options import (
    Assignments,
    Json,
    Protect,
    Python,
    Test,
    load_command_settings,
    require_at_most_one,
    require_extra,
)
from suture.interfaces.cli.terminal.error_reporting import handle_errors, report_error
from suture.interfaces.cli.terminal.terminal_output import (
    print_json,
    print_note,
    print_text_line,
    show_activity,
)
from suture.interfaces.narrative.exit_codes import JUDGEMENT_EXIT_CODES
from suture.interfaces.narrative.plain_text import disarm_commands

if TYPE_CHECKING:
    from suture.api.judging import JudgeOptions
    from suture.core.records.judgement import Judgement, JudgeStep
    from suture.core.settings import Settings
    from suture.sandbox import Sandbox

MAX_PATCH_BYTES = 64 * 2**20


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """The files that a judgement is written to besides the terminal."""

    sarif: Annotated[
        Path | None, Option("--sarif", metavar="FILE", help="Write the findings as SARIF, for code scanning.")
    ] = None
    junit: Annotated[
        Path | None, Option("--junit", metavar="FILE", help="Write tests and findings as JUnit XML.")
    ] = None
    attest: Annotated[
        Path | None,
        Option("--attest", metavar="FILE", help="Write an in-toto statement of the verdict, unsigned."),
    ] = None
    certificate: Annotated[
        Path | None,
        Option(
            "--certificate",
            metavar="FILE",
            help="Write the verdict with its evidence, which `suture verify` replays.",
        ),
    ] = None

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files that are to be written."""
        return tuple(filter(None, (self.sarif, self.junit, self.attest, self.certificate)))

    def refuse_links(self, checkout: Path) -> None:
        """Refuse files that a link in the checkout would redirect."""
        if not self.paths:  # the import takes a quarter of a second
            return
        from suture.interfaces.ci.report_files import refuse_linked_file

        for path in self.paths:
            refuse_linked_file(path, checkout)

    def write(self, judgement: Judgement, settings: Settings, checkout: Path) -> None:
        """Write the files that the options name, except for the certificate, which the judgement writes."""
        if not self.paths:
            return
        from suture.interfaces.ci.judgement_reports import render_judgement_junit, render_judgement_sarif
        from suture.interfaces.ci.report_files import write_report_file
        from suture.interfaces.ci.test_result_statement import render_statement

        if self.sarif is not None:
            write_report_file(self.sarif, render_judgement_sarif(judgement), checkout)
        if self.junit is not None:
            write_report_file(self.junit, render_judgement_junit(judgement), checkout)
        if self.attest is not None:
            write_report_file(self.attest, render_statement(judgement, settings, os.environ), checkout)


@handle_errors
@spare_agent
def judge(
    path: Annotated[str, Argument(metavar="PATH", help="The project's folder.")] = ".",
    base: Annotated[
        str | None,
        Option(
            "--base",
            metavar="REF",
            help="The commit to compare with; default: where this branch left the default branch, or HEAD.",
        ),
    ] = None,
    patch: Annotated[
        Path | None,
        Option("--patch", metavar="FILE", help="Judge this diff over the files; `-` reads stdin."),
    ] = None,
    staged: Annotated[bool, Option("--staged", help="Judge what is staged, against HEAD.")] = False,
    test: Test = None,
    protect: Protect = None,
    python: Python = None,
    accept_tests: Annotated[
        bool, Option("--accept-tests", help="Accept what the change does to the tests, after reading it.")
    ] = False,
    quick: Annotated[
        bool, Option("--quick", help="Run only the tests that the change can affect; the verdict says so.")
    ] = False,
    explain: Annotated[bool, Option("--explain", help="Print everything that was found.")] = False,
    markdown: Annotated[bool, Option("--markdown", help="Print Markdown, for a comment.")] = False,
    *,
    reports: ReportOptions,
    watch: Annotated[
        bool, Option("--watch", help="Judge again after each change of a file, until Ctrl-C.")
    ] = False,
    hook: Annotated[
        bool,
        Option("--hook", help="Answer a coding agent's hook: read its JSON on stdin, print the answer."),
    ] = False,
    assignments: Assignments = None,
    as_json: Json = False,
) -> None:
    """Judge a change: run the tests without and with it, and find what games them. Your files are only read.

    It needs no model. In a job of GitHub Actions, the findings are also shown beside the changed lines, and the
    verdict becomes an output of the step. The exit code is 0 for an accepted change, 1 for a rejected one, and 6
    if the two states cannot be compared.
    """
    require_at_most_one({"--base": base is not None, "--patch": patch is not None, "--staged": staged})
    require_at_most_one({"--json": as_json, "--markdown": markdown, "--explain": explain, "--hook": hook})
    require_at_most_one({"--quick": quick, "--attest": reports.attest is not None})
    require_at_most_one({"--quick": quick, "--certificate": reports.certificate is not None})
    once_only = {
        "--json": as_json,
        "--markdown": markdown,
        "--hook": hook,
        "--staged": staged,
        "--patch": patch is not None,
        "--sarif, --junit, --attest and --certificate": bool(reports.paths),
    }
    for name, is_set in once_only.items():
        require_at_most_one({"--watch": watch, name: is_set})
    call = read_hook_call(sys.stdin.read(MAX_HOOK_INPUT_CHARS)) if hook else None
    if call is not None and call.folder is not None and path == ".":
        path = str(call.folder)
    reports.refuse_links(Path(path))
    with nullcontext() if hook or watch else live_steps() as show_step:
        from suture.core.interruption import run_sync

        settings = load_command_settings(
            Path(path),
            assignments,
            judge__accept_tests=accept_tests or None,
            sandbox__python=str(python) if python else None,
        ).settings
        since = find_session_start(call, Path(path), settings.paths.home) if call is not None else ""
        if call is not None and call.event == START_EVENT:
            print_json({})
            return
        diff = _read_patch(patch)

        def make_options(sandbox: Sandbox | None = None) -> JudgeOptions:
            from suture.api.judging import JudgeOptions

            return JudgeOptions(
                base=base,
                since=since,
                patch=diff,
                staged=staged,
                test=test,
                protect=protect or (),
                settings=settings,
                sandbox=sandbox,
                on_step=print_step if watch else show_step,
                certificate=reports.certificate,
                quick=quick,
                refuses_unmerged=not watch,  # a change may follow
            )

        judging = None if watch else judge_in_early_sandbox(Path(path), settings, test, make_options)
        judgement = None if judging is None else run_sync(judging)
    if judgement is None:
        with require_extra("watch"):
            import suture.interfaces.watch.project_watch  # noqa: F401  # fails before anything is started
        run_sync(watch_judgements(Path(path), make_options(), explain=explain))
        return
    from suture.core.records.finding_text import render_reasons
    from suture.interfaces.narrative.judgement_text import judgement_as_json, render_judgement

    reports.write(judgement, settings, Path(path))
    if reports.certificate is not None:
        print_note(f"Certificate: {reports.certificate}. Replay it: suture verify {reports.certificate}")
    if call is not None:
        reasons = render_reasons(judgement, MAX_REASONS)
        print_json(answer_hook(judgement, reasons, call, settings.paths.home))
        return
    if as_json:
        print_json(judgement_as_json(judgement))
    elif markdown:
        from suture.interfaces.ci.judgement_reports import render_markdown

        print_lines(render_markdown(judgement))
    else:
        print_lines(render_judgement(judgement, explain=explain))
    if os.environ.get("GITHUB_ACTIONS") == "true":
        report_to_github(judgement, os.environ)
    raise typer.Exit(JUDGEMENT_EXIT_CODES[judgement.outcome])


async def judge_in_early_sandbox(
    project: Path, settings: Settings, test: str | None, make_options: Callable[[Sandbox], JudgeOptions]
) -> Judgement:
    """Judge a project in a sandbox in which its pytest starts while the modules of a judgement are imported."""
    from suture.core.interruption import run_in_daemon_thread
    from suture.judge.runners.early_start import open_early_sandbox

    async with open_early_sandbox(settings, project, test) as sandbox:
        await run_in_daemon_thread(lambda: import_module("suture.api.judging"))
        from suture.api.judging import judge as judge_project

        return await judge_project(project, make_options(sandbox))


async def watch_judgements(project: Path, options: JudgeOptions, *, explain: bool) -> None:
    """Judge each state of a project's files, forever.

    Raises:
        UsageError: The first state cannot be judged, which no change of a file will mend.
    """
    from suture.api.judging import judge as judge_project
    from suture.interfaces.narrative.judgement_text import render_judgement
    from suture.interfaces.watch.project_watch import WatchedRunEnded, WatchedRunFailed, watch_project

    is_first = True
    async for event in watch_project(project, lambda: judge_project(project, options)):
        if isinstance(event, WatchedRunFailed):
            if is_first and isinstance(event.fault, UsageError):
                raise event.fault
            report_error(event.fault, debug=False)
        elif isinstance(event, WatchedRunEnded):
            print_lines(render_judgement(event.result, explain=explain))
            print_note("Waiting for changes.")
        else:
            print_superseded(event)
        is_first = False


def print_step(step: JudgeStep) -> None:
    """Print on stderr what the judgement is busy with."""
    from suture.interfaces.narrative.judgement_text import STEP_TEXTS

    print_note(STEP_TEXTS[step])


@contextmanager
def live_steps() -> Iterator[Callable[[JudgeStep], None]]:
    """Yield a function that shows a step; on a terminal in a line that moves and is erased in the end."""
    with show_activity("reading the change") as show:

        def show_step(step: JudgeStep) -> None:
            from suture.interfaces.narrative.judgement_text import STEP_TEXTS  # slow to import

            show(STEP_TEXTS[step])

        yield show_step


def print_lines(text: str) -> None:
    """Print lines on stdout; each is escaped, because names in it come from the project."""
    for line in text.splitlines():
        print_text_line(disarm_commands(line))


def report_to_github(judgement: Judgement, environ: Mapping[str, str]) -> None:
    """Print the annotations on stderr, and write the step's outputs and the job's summary."""
    from suture.interfaces.ci.judgement_reports import render_annotations, render_markdown
    from suture.interfaces.ci.report_files import write_step_outputs

    for line in render_annotations(judgement):
        print_note(line)
    summary = render_markdown(judgement)
    write_step_outputs({"verdict": judgement.outcome, "summary": summary}, f"## Suture\n\n{summary}", environ)


def _read_patch(patch: Path | None) -> str | None:
    if patch is None:
        return None
    if str(patch) == "-":
        return sys.stdin.read(MAX_PATCH_BYTES)
    return read_text_file(patch, MAX_PATCH_BYTES, "the patch")
