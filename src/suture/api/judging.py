"""Judge a change that anybody made to a project, without a model."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from suture.api.interruption import run_in_daemon_thread
from suture.core.records import Task
from suture.core.records.judgement import JudgedState, Judgement, JudgeStep
from suture.core.settings import Settings, load_settings
from suture.loop.intake.heal_task import build_task_from_snapshot
from suture.loop.judgement import JudgeTools, ProposedChange, judge_change
from suture.project.workspace import take_snapshot
from suture.project.workspace.project_states import ProjectStates, read_git_states, read_patched_states
from suture.sandbox import Sandbox, discover_programs, open_sandbox

PROJECT_SETTING_FILES = ("suture.toml", "pyproject.toml", ".env")
"""Files of a project in which Suture's settings may stand."""


@dataclass(frozen=True, kw_only=True)
class JudgeOptions:
    """How a change is found and judged.

    Attributes:
        base: The commit to compare with; by default the point at which the current branch left the default branch.
        patch: A unified diff over the files as they are; it is judged in place of what git knows.
        staged: Whether to judge what is staged, and not the working tree.
        test: The test command; by default the one of the settings, or that the project's files suggest.
        protect: Globs of further files that decide, besides tests and configuration.
        settings: By default from the environment and the settings files.
        sandbox: By default that of the settings.
        on_step: Called with each step when it begins.
    """

    base: str | None = None
    patch: str | None = None
    staged: bool = False
    test: str | None = None
    protect: Iterable[str] = ()
    settings: Settings | None = None
    sandbox: Sandbox | None = None
    on_step: Callable[[JudgeStep], None] | None = None


async def judge(project: str | Path = ".", options: JudgeOptions | None = None) -> Judgement:
    """Return the verdict on a change of a project.

    The tests run in the sandbox, on the code without and with the change. Your files are only read.

    Raises:
        UsageError: There is no way to test the project, no such commit, or the patch does not apply.
        PrerequisiteError: A sandbox is missing.
        SandboxError: The sandbox failed.
    """
    options = options or JudgeOptions()
    settings = options.settings or load_settings(Path(project)).settings
    task, states, root = await run_in_daemon_thread(partial(_read_states, Path(project), options, settings))
    sandbox = options.sandbox or open_sandbox(
        settings.sandbox, keys=settings.keys, cache=settings.paths.cache
    )
    try:
        tools = JudgeTools(
            sandbox=sandbox,
            settings=settings.sandbox,
            interpreter=discover_programs(root, os.environ, task.language, settings.sandbox.python),
            on_step=options.on_step or (lambda step: None),
        )
        change = ProposedChange(states.before, states.after)
        judgement = await judge_change(change, task, tools, settings, base=states.base)
        return replace(judgement, state=_identify_state(states, judgement.files))
    finally:
        if options.sandbox is None:
            await sandbox.close()


def _identify_state(states: ProjectStates, changed: Iterable[str]) -> JudgedState:
    """Return the digests of what was judged."""
    digests = {path: hashlib.sha256(content).hexdigest() for path, content in states.after.items()}
    return JudgedState(
        base_commit=states.base_commit,
        commit=states.commit,
        tree=hash_tree(digests),
        folder=states.folder,
        files={path: digests[path] for path in changed if path in digests},
    )


def hash_tree(digests: Mapping[str, str]) -> str:
    """Return the digest of a folder: the SHA-256 of the sorted output of `sha256sum` for its files.

    in-toto calls it `dirHash`, and Go's module proxy `h1`.

    Args:
        digests: Path -> SHA-256 of its content, in hexadecimal digits.
    """
    lines = sorted((os.fsencode(path), digest.encode()) for path, digest in digests.items())
    return hashlib.sha256(b"".join(b"%s  %s\n" % (digest, path) for path, digest in lines)).hexdigest()


def _read_states(
    project: Path, options: JudgeOptions, settings: Settings
) -> tuple[Task, ProjectStates, Path]:
    """Return how to test, the two states, and the project's folder."""
    snapshot = take_snapshot(project, secrets=settings.sandbox.secrets)
    if options.patch is not None:
        states = read_patched_states(snapshot, options.patch)
    else:
        states = read_git_states(snapshot, options.base, staged=options.staged)
    # The change must not choose how it is tested, so the state before it does.
    task = build_task_from_snapshot(
        replace(snapshot, files=states.before),
        test=_find_test_command(project, states, settings) if options.test is None else options.test,
        protect=options.protect,
        python=settings.sandbox.python,
    )
    return replace(task, earlier_versions=()), states, snapshot.root


def _find_test_command(project: Path, states: ProjectStates, settings: Settings) -> str | None:
    """Return the test command of the settings, as the project's own files gave it before the change.

    A project may set it without the user's trust, so the change could replace it by one that always passes.
    """
    if settings.project.test != load_settings(project, read_only=True).settings.project.test:
        return settings.project.test  # from a flag of the user's
    with tempfile.TemporaryDirectory(prefix="suture-judge-") as folder:
        for name in PROJECT_SETTING_FILES:
            if name in states.before:
                (Path(folder) / name).write_bytes(states.before[name])
        return load_settings(Path(folder), read_only=True).settings.project.test
