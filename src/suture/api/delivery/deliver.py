"""Deliver a certified change: write it into the tree, commit it, or write it to a branch or a patch file."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from suture.api.delivery.transactions import project_change
from suture.core.ledger import Ledger, RunFolder, first_payload
from suture.core.ledger.kinds import (
    ApplyStarted,
    CandidateChecked,
    CommitChecked,
    CommitMade,
    CommitStarted,
    PatchWritten,
    TreeApplied,
    TreeUndone,
)
from suture.core.records import Candidate, Result, Task, Verdict
from suture.errors import StorageError, UsageError
from suture.judge import Suite, check_candidate
from suture.project.workspace import (
    CommitPlan,
    Repository,
    TreeNotReverted,
    apply_changes,
    commit_on_branch,
    commit_on_head,
    missing_folders,
    open_repository,
    overlay_candidate,
    plan_commit,
    require_unchanged,
    unified_diff,
)

MAX_LISTED_NAMES = 10
"""Tests or files that a message lists."""

DeliveryMethod = Literal["keep", "apply", "commit", "branch", "patch", "into"]
"""`keep` the change in the run folder, `apply` it to the tree, `commit` it too, make a `branch`, write a
`patch`, or write new files `into` another folder."""


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """What to do with a repair; the target is a branch, a patch file or a folder, if the method needs one."""

    how: DeliveryMethod = "keep"
    target: str = ""


@dataclass(frozen=True, kw_only=True)
class DeliverableRun:
    """The run whose change is delivered.

    Attributes:
        task: The task; its files are those before the change.
        ledger: Records what is done to the user's tree.
        prepare: Prepares the suite of a task, if files other than the run's have to pass too.
        accepted: The test that a person accepted in the run, which is delivered too: path -> content.
    """

    task: Task
    folder: RunFolder
    ledger: Ledger
    prepare: Callable[[Task], Awaitable[Suite]]
    accepted: Mapping[str, bytes] = field(default_factory=dict)


def choose_delivery(
    *,
    apply: bool = False,
    commit: bool = False,
    branch: str | None = None,
    patch: str | Path | None = None,
    into: str | Path | None = None,
) -> Delivery:
    """Return the one delivery that a user asked for; more than one is a `UsageError`."""
    targets: dict[DeliveryMethod, str | None] = {
        "apply": "" if apply else None,
        "commit": "" if commit else None,
        "branch": branch,
        "patch": str(patch) if patch is not None else None,
        "into": str(Path(into).absolute()) if into is not None else None,
    }
    requested = [Delivery(how=how, target=target) for how, target in targets.items() if target is not None]
    if len(requested) > 1:
        flags = " and ".join(f"--{delivery.how}" for delivery in requested)
        raise UsageError(f"{flags} exclude each other", remedy="give one of them")
    return requested[0] if requested else Delivery()


def require_deliverable(delivery: Delivery, root: Path) -> None:
    """Refuse, before anything is spent, a delivery that could not be made in the end.

    Raises:
        UsageError: There is no repository, no commit or no git identity, or the branch or file exists already.
        PrerequisiteError: Git is not installed.
    """
    target = delivery.target
    if delivery.how == "patch":
        if Path(target).exists():
            raise UsageError(f"{target!r} exists already and would be overwritten", remedy="move it away")
        if not Path(target).absolute().parent.is_dir():
            raise UsageError(f"there is no folder for {target!r}", remedy="make it first: mkdir -p FOLDER")
    if delivery.how == "into":
        _require_folder_for_new_code(Path(target))
    if delivery.how in ("commit", "branch"):
        repository = open_repository(root)
        repository.head()
        _require_identity(repository)
        if delivery.how == "commit":
            repository.require_quiet()
        else:
            repository.require_new_branch(target)


def _require_folder_for_new_code(folder: Path) -> None:
    if os.path.lexists(folder) and not folder.is_dir():
        raise UsageError(f"{str(folder)!r} is not a folder", remedy="name one; it need not exist")
    if folder.resolve() == Path(folder.anchor):
        raise UsageError(f"{str(folder)!r} is the root of the file system", remedy="name a folder of yours")
    existing = next(parent for parent in (folder, *folder.parents) if os.path.lexists(parent))
    if not os.access(existing, os.W_OK):
        raise UsageError(f"{str(existing)!r} cannot be written", remedy="name a folder of yours")


def require_no_overwrite(
    folder: Path, paths: Iterable[str], command: str = "suture run ... --into FOLDER"
) -> None:
    """Refuse to write new code over existing files.

    Args:
        folder: The folder that would be written to.
        paths: The files, relative to the folder.
        command: The command that writes them to another folder, for the message.

    Raises:
        UsageError: One of the files exists.
    """
    existing = [path for path in paths if os.path.lexists(folder / path)]
    if existing:
        verb, pronoun = ("exist", "them") if len(existing) > 1 else ("exists", "it")
        names = ", ".join(map(repr, existing[:MAX_LISTED_NAMES]))
        raise UsageError(
            f"{names} {verb} already in {str(folder)!r} and would be overwritten; nothing was written",
            remedy=f"move {pronoun} away, repair {pronoun} with `suture heal`, "
            f"or write the code to another folder: {command}",
        )


def _require_identity(repository: Repository) -> None:
    for variable in ("GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"):
        try:
            repository.git("var", variable)
        except StorageError as fault:
            raise UsageError(
                "git does not know who you are", remedy="set user.name and user.email with `git config`"
            ) from fault


async def deliver(delivery: Delivery, result: Result, root: Path, run: DeliverableRun) -> None:
    """Deliver a run's repair to the project in `root`. A result that is not healed stays in the run folder.

    Raises:
        UsageError: The user changed the same files or lines, or what would be committed does not pass.
        StorageError: The tree or the repository could not be written; both are as they were.
    """
    if result.outcome != "healed" or result.candidate is None or delivery.how == "keep":
        return
    before = run.task.given_files
    after = {**overlay_candidate(run.task.files, result.candidate.files), **run.accepted}
    if result.judgement is not None:  # A judged change may remove files, which no other candidate can.
        removed = {*result.judgement.files} - result.candidate.files.keys()
        after = {path: content for path, content in after.items() if path not in removed}
    if delivery.how == "patch":
        run.ledger.append(PatchWritten(file=_write_patch(Path(delivery.target), result.diff)))
    elif delivery.how in ("apply", "into"):
        _write_files(delivery, before, after, root, run)
    else:
        await _commit(delivery, result, before, after, root, run)


def _write_files(
    delivery: Delivery,
    before: Mapping[str, bytes],
    after: Mapping[str, bytes],
    root: Path,
    run: DeliverableRun,
) -> None:
    is_other_folder = delivery.how == "into"
    folder = Path(delivery.target) if is_other_folder else root
    project = run.task.project
    if is_other_folder and project is not None and not project.is_new:
        before = {}  # With a feature of an existing project, the whole project goes into the other folder.
    if run.task.kind == "write":
        new_paths = sorted(after.keys() - before.keys())
        require_no_overwrite(folder, new_paths, f"suture apply {run.folder.id} --into FOLDER")
    with project_change(run.folder, folder, "apply", run.ledger) as finish:
        finish(_write_change(before, after, folder, run))


async def _commit(
    delivery: Delivery,
    result: Result,
    before: Mapping[str, bytes],
    after: Mapping[str, bytes],
    root: Path,
    run: DeliverableRun,
) -> None:
    repository = open_repository(root)
    plan = plan_commit(repository, before, after)
    await _require_tests_pass(plan, after, run)
    message = _commit_message(result, run)
    started = CommitStarted(root=str(root), parent=plan.parent, branch=delivery.target)
    with project_change(run.folder, root, "apply", run.ledger) as finish:
        if delivery.how == "branch":
            run.ledger.append(started)
            commit = commit_on_branch(plan, message, delivery.target)
        else:
            repository.require_quiet()
            run.ledger.append(started)
            finish(_write_change(before, after, root, run))
            commit = commit_on_head(plan, message)
        finish(CommitMade(root=started.root, parent=started.parent, branch=started.branch, commit=commit))


def _write_patch(target: Path, diff: str) -> str:
    """Write a new file, and return its absolute path."""
    try:
        with target.open("xb") as file:
            file.write(diff.encode("utf-8", "surrogateescape"))
    except OSError as fault:
        raise StorageError(f"{str(target)!r} cannot be written: {fault.strerror}") from fault
    return str(target.absolute())


def _write_change(
    before: Mapping[str, bytes], after: Mapping[str, bytes], root: Path, run: DeliverableRun
) -> TreeApplied:
    """Write the change, and return its event. The patch that undoes it is on disk before the first file."""
    paths = require_unchanged(root, before, after)
    undo = run.folder.write_text("undo.diff", unified_diff(after, before))
    folders = missing_folders(root, (path for path in paths if path in after))
    started = ApplyStarted(root=str(root), files=paths, undo=str(undo), folders=tuple(map(str, folders)))
    run.ledger.append(started)
    try:
        apply_changes(root, before, after, label=run.folder.id)
    except TreeNotReverted as fault:
        raise TreeNotReverted(fault.message, remedy=f"suture undo {run.folder.id}") from fault
    except BaseException:
        run.ledger.append(TreeUndone(root=str(root), reason="the change could not be written"))
        raise
    return TreeApplied(**vars(started))


async def _require_tests_pass(plan: CommitPlan, after: Mapping[str, bytes], run: DeliverableRun) -> None:
    """Raise a `UsageError` if a test fails without the user's own uncommitted changes."""
    committed = plan.repository.read_tree(plan.tree)
    if committed == dict(after):
        return
    try:
        suite = await run.prepare(replace(run.task, files=committed))
        verdict = await check_candidate(Candidate(files={}, origin="user"), suite)
        failing = sorted(verdict.failed) if verdict.passed else ["none passes"]
    except UsageError as fault:
        failing = [fault.message]
    run.ledger.append(CommitChecked(tree=plan.tree, failing=tuple(failing[:MAX_LISTED_NAMES])))
    if failing:
        raise UsageError(
            "nothing was committed: without your own uncommitted changes the tests do not pass"
            f" ({'; '.join(failing[:3])})",
            remedy="commit what they need first, or use --apply or --patch",
        )


def _commit_message(result: Result, run: DeliverableRun) -> str:
    files = sorted(result.candidate.files) if result.candidate else []
    names = ", ".join(files[:2]) + (" and others" if len(files) > 2 else "")
    baseline = first_payload(
        run.ledger.events, CandidateChecked
    )  # The first check is that of the user's code.
    passed_before = run.folder.load_record(Verdict, baseline.verdict).passed if baseline else frozenset()
    if result.judgement is not None:
        fixed = [*result.judgement.tests.fixed, *result.judgement.tests.proving]
    else:
        fixed = sorted(result.verdict.passed - passed_before) if result.verdict else []
    lines = [f"- {' '.join(name.split())}" for name in fixed[:MAX_LISTED_NAMES]]
    if len(fixed) > MAX_LISTED_NAMES:
        lines.append(f"and {len(fixed) - MAX_LISTED_NAMES} more")
    body = ["Passing now:", *lines, ""] if lines else []
    trailer = f"Healed-by: suture {version('suture')} (run {result.run_id})"
    return "\n".join([f"Heal {names}", "", *body, trailer, ""])
