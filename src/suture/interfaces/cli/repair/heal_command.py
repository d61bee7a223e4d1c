"""`suture heal`: repair existing code."""

from __future__ import annotations

import os
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from suture.core.safe_files import read_text_file
from suture.errors import UsageError
from suture.interfaces.cli.terminal.command_options import (
    Branch,
    Only,
    OutputOptions,
    Protect,
    Python,
    RunCommandOptions,
    Test,
    require_at_most_one,
    require_python,
    require_test_command,
)
from suture.interfaces.cli.terminal.error_reporting import handle_errors
from suture.interfaces.cli.terminal.terminal_output import stdin_is_terminal

if TYPE_CHECKING:
    from suture.api import Reviewer
    from suture.core.records import Result
    from suture.interfaces.cli.terminal.run_progress import RunProgress
    from suture.sandbox import Sandbox


MAX_ISSUE_BYTES = 16 * 2**20


@handle_errors
def heal(
    context: typer.Context,
    path: Annotated[str, Argument(metavar="PATH", help="The project's folder.")] = ".",
    test: Test = None,
    protect: Protect = None,
    only: Only = None,
    since: Annotated[
        str | None,
        Option(
            "--since", metavar="REF", help="Search first in changes since this commit; default: the last few."
        ),
    ] = None,
    hint: Annotated[
        str | None, Option("--hint", metavar="TEXT", help="What you suspect; for the model.")
    ] = None,
    issue: Annotated[
        Path | None,
        Option(
            "--issue",
            metavar="FILE",
            help="A bug report or log; `-` reads stdin. The certificate contains it.",
        ),
    ] = None,
    python: Python = None,
    apply: Annotated[
        bool, Option("--apply", help="Apply the fix to your files once it is verified.")
    ] = False,
    commit: Annotated[
        bool,
        Option("--commit", help="Apply the fix and commit it alone; your other changes stay uncommitted."),
    ] = False,
    branch: Branch = None,
    patch: Annotated[
        Path | None,
        Option("--patch", metavar="FILE", help="Write the diff to a file; your files do not change."),
    ] = None,
    ask: Annotated[
        bool, Option("--ask", help="Ask which one is right if two passing repairs differ.")
    ] = False,
    strict: Annotated[
        bool,
        Option(
            "--strict",
            help="Exit with 1 if the tests do not decide that the search's repair is right; loop.strict=true.",
        ),
    ] = False,
    no_model: Annotated[
        bool, Option("--no-model", help="Use the search only, no model; the setting model.name=none.")
    ] = False,
    proposer: Annotated[
        str | None,
        Option(
            "--proposer",
            metavar="CMD",
            help="A program to use instead of a model; it edits a copy, and its change is judged.",
        ),
    ] = None,
    proposer_outside: Annotated[
        bool,
        Option(
            "--proposer-outside",
            help="Run the proposer outside the sandbox, with your files, keys and network.",
        ),
    ] = False,
    *,
    options: RunCommandOptions,
    output: OutputOptions,
) -> None:
    """Repair a project until its test command passes; print the diff.

    The command runs in the sandbox, on a copy. Your files change only with --apply or --commit, and only if
    every test passes. Only a --proposer may change test files, and is judged by the old ones, too. If every
    test passes already and --issue describes a bug, Suture first writes a test that shows the bug and asks
    you whether to trust it.
    """
    if ask and not stdin_is_terminal():
        raise UsageError("--ask needs a terminal", remedy="leave it out: the difference is printed anyway")
    # Checked before slow imports. Path.exists would raise if a parent folder is not accessible.
    if not os.path.lexists(path):
        raise UsageError(f"{path!r} does not exist", remedy="name the project's folder")
    # The settings are those of the folder; a file stands for the folder that holds it.
    project = Path(path) if Path(path).is_dir() else Path(path).parent
    require_at_most_one({"--no-model": no_model, "--model": options.model, "--proposer": proposer})
    if proposer is not None and not proposer.strip():
        raise UsageError("the proposer's command is empty", remedy="name a program, or leave out --proposer")
    require_at_most_one({"--apply": apply, "--commit": commit, "--branch": branch, "--patch": patch})
    require_python(python)
    if patch is not None and os.path.lexists(patch):
        raise UsageError(
            f"{str(patch)!r} exists already and would be overwritten", remedy="move it, or name another file"
        )
    require_test_command(test)
    loaded = options.settings(
        project,
        model__name="none" if no_model else options.model,
        # A model that is set for the coder takes precedence over `model.name`, so it is turned off as well.
        models__coder="none" if no_model else None,
        loop__strict=strict or None,
        sandbox__python=str(python) if python else None,
        proposer__command="" if options.model or no_model else proposer,
        proposer__outside=proposer_outside or None,
    )
    uses_proposer = bool(loaded.settings.proposer.command)
    if proposer_outside and not uses_proposer:
        raise UsageError("--proposer-outside needs a proposer", remedy="add --proposer CMD")
    uses_model = "none" not in (loaded.settings.model.name, loaded.settings.models.coder)
    if (hint or issue) and not uses_model and not uses_proposer:
        flags = " and ".join(flag for flag, value in (("--hint", hint), ("--issue", issue)) if value)
        remedy = f"leave out {flags}, or --no-model" if no_model else "name a model: --model PROVIDER:MODEL"
        raise UsageError(f"{flags} needs a model, and none is used", remedy=remedy)
    bug_report = _bug_report(hint, issue)
    from suture.interfaces.cli.run_execution import run_and_report

    def start(
        *, on_event: RunProgress, on_review: Reviewer | None, sandbox: Sandbox
    ) -> Coroutine[Any, Any, Result]:
        from suture.api import heal as heal_project
        from suture.api.options import HealOptions

        heal_options = HealOptions(
            test=test,
            protect=protect or (),
            only=only or (),
            since=since,
            bug_report=bug_report,
            settings=loaded.settings,
            apply=apply,
            commit=commit,
            branch=branch,
            patch=patch,
            # Recorded replies to use in place of a model, and whether to ask it for those that are missing.
            replies=options.replies,
            or_live=options.or_live,
            ask=ask,
            # The program passes the time at which it started, so that its start-up counts towards the run.
            requested_at_s=context.obj if isinstance(context.obj, float) else None,
            on_review=on_review,
            on_event=on_event,
            sandbox=sandbox,
        )
        return heal_project(Path(path), heal_options)

    announces = _may_hold_code(Path(path))
    run_and_report(start, loaded, kind="heal", output=output, announces=announces, project=(project, test))


def _may_hold_code(path: Path) -> bool:
    """Return whether a folder or file may be code to heal. A run without any only reports its error."""
    from suture.project.languages import detect_file_languages

    if not path.is_dir():
        return bool(detect_file_languages((path.name,)))
    for _, folders, names in os.walk(path):
        folders[:] = [name for name in folders if not name.startswith(".")]
        if detect_file_languages(names):
            return True
    return False


def _bug_report(hint: str | None, issue: Path | None) -> str:
    """Return what the user says about the problem, for the model."""
    issue_text = "" if issue is None else _read_issue(issue)
    return "\n\n".join(filter(None, (issue_text.strip(), f"Hint: {hint.strip()}" if hint else "")))


def _read_issue(issue: Path) -> str:
    if str(issue) == "-":
        content = sys.stdin.buffer.read(MAX_ISSUE_BYTES + 1)
        if len(content) > MAX_ISSUE_BYTES:
            raise UsageError(
                f"the issue is longer than {MAX_ISSUE_BYTES // 2**20} MiB",
                remedy="keep only the part that describes the problem",
            )
        return content.decode("utf-8", "replace")
    return read_text_file(issue, MAX_ISSUE_BYTES, "the issue")
