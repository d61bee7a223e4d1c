"""Judge a change that anybody made to a project, without a model."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from suture.api.delivery.transactions import recover_interrupted_changes
from suture.core.interruption import run_in_daemon_thread
from suture.core.records import Task
from suture.core.records.judgement import JudgeDepth, JudgedState, Judgement, JudgeStep
from suture.core.safe_files import write_file_atomically
from suture.core.settings import Settings, load_settings
from suture.core.settings.schema import ProjectSettings
from suture.core.temporary_folders import temporary_folder
from suture.errors import UsageError
from suture.judge.certificates.certificate import hash_tree, render_certificate, sha256_hex
from suture.loop.intake.heal_task import build_task_from_snapshot
from suture.loop.judgement import (
    JudgeTools,
    ProposedChange,
    certify_judgement,
    find_recorded_runs,
    judge_change,
    refuse_published_secrets,
)
from suture.project.languages import find_working_folder
from suture.project.languages.diagnostics import find_runtime_language
from suture.project.workspace import take_snapshot, take_snapshot_with_parents
from suture.project.workspace.project_states import (
    ProjectStates,
    read_git_states,
    read_patched_states,
    refuse_branch_as_folder,
)
from suture.sandbox import Sandbox, discover_programs, open_sandbox

PROJECT_SETTING_FILES = ("suture.toml", "pyproject.toml", ".env")
"""Files of a project that may contain Suture's settings."""


@dataclass(frozen=True, kw_only=True)
class JudgeOptions:
    """How a change is found and judged.

    Attributes:
        base: The commit to compare with; by default the point at which the current branch left the default branch.
        since: The tip of the default branch before the change: where HEAD left it is compared with, unless the default
            of `base` is older.
        patch: A unified diff over the files as they are; it is judged in place of what git knows.
        staged: Whether to judge what is staged, and not the working tree.
        test: The test command; by default the one of the settings, or that the project's files suggest.
        protect: Globs of further files that decide, besides tests and configuration.
        settings: By default from the environment and the settings files.
        sandbox: By default that of the settings.
        on_step: Called with each step when it begins.
        certificate: File for the judgement with its evidence, which `verify` replays; an existing one is replaced.
        quick: Whether to run only the tests that the change can affect, and to try no deliberate mistakes.
        reads_parents: Whether the change is also judged in those folders above the project that decide its tests, up
            to the root of its git repository.
        refuses_unmerged: Whether a local branch as `base` is an error if it is ahead of what is checked out and
            nothing is changed: its own changes are probably meant. It never is for a default branch.
    """

    base: str | None = None
    since: str = ""
    patch: str | None = None
    staged: bool = False
    test: str | None = None
    protect: Iterable[str] = ()
    settings: Settings | None = None
    sandbox: Sandbox | None = None
    on_step: Callable[[JudgeStep], None] | None = None
    certificate: Path | None = None
    quick: bool = False
    reads_parents: bool = True
    refuses_unmerged: bool = True

    def find_depth(self) -> JudgeDepth:
        """Return how much the judgement finds out.

        Raises:
            UsageError: A certificate of a quick judgement is asked for.
        """
        if self.quick and self.certificate is not None:
            raise UsageError(
                "a quick judgement gets no certificate", remedy="leave out --quick or --certificate"
            )
        if self.quick:
            return "quick"
        return "complete" if self.certificate is not None else "first_rejection"


async def judge(project: str | Path = ".", options: JudgeOptions | None = None) -> Judgement:
    """Return the verdict on a change of a project.

    The tests run in the sandbox, on the code without and with the change. Your files are only read.

    Raises:
        UsageError: There is no way to test the project, no such commit, the named branch is not checked out, the patch
            does not apply, or the certificate would show a secret.
        PrerequisiteError: A sandbox is missing.
        SandboxError: The sandbox failed.
        StorageError: The certificate cannot be written.
    """
    options = options or JudgeOptions()
    settings = options.settings or load_settings(Path(project)).settings
    recover_interrupted_changes(settings.paths.home, Path(project))
    options = replace(options, protect=tuple(options.protect))
    subject = await run_in_daemon_thread(partial(_read_subject, Path(project), options, settings))
    task, states = subject.task, subject.states
    change = ProposedChange(states.before, states.after)
    depth = options.find_depth()
    if options.certificate is not None:
        refuse_published_secrets(change)
    sandbox = options.sandbox or open_sandbox(
        settings.sandbox, keys=settings.keys, cache=settings.paths.cache
    )
    try:
        tools = JudgeTools(
            sandbox=sandbox,
            settings=settings.sandbox,
            interpreter=discover_programs(
                subject.root,
                os.environ,
                find_runtime_language(task),
                settings.sandbox.python,
                folder=find_working_folder(task.test_command),
            ),
            on_step=options.on_step or (lambda step: None),
            recorded_runs=find_recorded_runs(settings),
        )
        judgement = await judge_change(change, task, tools, settings, base=states.base, depth=depth)
        judgement = replace(judgement, state=_identify_state(states, judgement.files))
        if options.certificate is None:
            return judgement
        certificate = certify_judgement(
            judgement,
            change,
            task,
            tools.interpreter,
            settings,
            given_command=subject.given_command,
            protect=tuple(options.protect),
            built_files=subject.built_files,
            folder=subject.folder,
        )
        content = render_certificate(certificate).encode()
        write_file_atomically(options.certificate, content, remedy="name another file for the certificate")
        return replace(judgement, certificate_sha256=sha256_hex(content))
    finally:
        if options.sandbox is None:
            await sandbox.close()


def _identify_state(states: ProjectStates, changed: Iterable[str]) -> JudgedState:
    """Return the digests of what was judged."""
    digests = {path: sha256_hex(content) for path, content in states.after.items()}
    return JudgedState(
        base_commit=states.base_commit,
        commit=states.commit,
        tree=hash_tree(digests),
        folder=states.folder,
        files={path: digests[path] for path in changed if path in digests},
    )


@dataclass(frozen=True, kw_only=True)
class _Subject:
    """What is judged.

    Attributes:
        task: Says how to test.
        states: The project before and after the change.
        root: The project's folder.
        built_files: Files that a build wrote.
        given_command: The test command of the user or the settings; empty if the project's files suggested one.
        folder: The folder below `root` in which it tests; empty for `root` itself.
    """

    task: Task
    states: ProjectStates
    root: Path
    built_files: tuple[str, ...]
    given_command: str
    folder: str


def _read_subject(project: Path, options: JudgeOptions, settings: Settings) -> _Subject:
    """Read the two states of a project, and how to test them."""
    refuse_branch_as_folder(str(project))
    read = take_snapshot_with_parents if options.reads_parents else take_snapshot
    snapshot = read(project, secrets=settings.sandbox.secrets)
    if options.patch is not None:
        states = read_patched_states(snapshot, options.patch)
    else:
        states = read_git_states(
            snapshot,
            options.base,
            since=options.since,
            staged=options.staged,
            refuses_unmerged=options.refuses_unmerged,
        )
    # The change must not choose how it is tested, so the state before it does.
    given = _find_project_settings(project, snapshot.folder, states, settings)
    test = given.test if options.test is None else options.test
    task = build_task_from_snapshot(
        replace(snapshot, files=states.before),
        test=test,
        protect=options.protect,
        python=settings.sandbox.python,
        protects_outside=False,
    )
    return _Subject(
        task=replace(task, earlier_versions=(), services=given.services),
        states=states,
        root=snapshot.root,
        built_files=snapshot.built_files,
        given_command=test or "",
        folder=snapshot.folder,
    )


def _find_project_settings(
    project: Path, folder: str, states: ProjectStates, settings: Settings
) -> ProjectSettings:
    """Return how the settings say to test, as the project's own files gave it before the change.

    A project may set that without the user's trust, so the change could replace it by tests that always pass.
    """
    now, given = load_settings(project, read_only=True).settings.project, settings.project
    with temporary_folder("suture-judge-") as copy:
        for name in PROJECT_SETTING_FILES:
            path = f"{folder}/{name}" if folder else name
            if path in states.before:
                (copy / name).write_bytes(states.before[path])
        before = load_settings(copy, read_only=True).settings.project
    # What differs from the files comes from a flag of the user's.
    return ProjectSettings(
        test=before.test if given.test == now.test else given.test,
        services=before.services if given.services == now.services else given.services,
    )
