"""A proven change into the user's hands: the tree, a commit, a branch or a patch file, and back again."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from suture.core.ledger import Ledger, RunFolder, first_of
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
from suture.errors import StorageError, SutureError, UsageError
from suture.judge import Suite, check_candidate
from suture.project.workspace import (
    CommitPlan,
    Repository,
    apply_changes,
    land_branch,
    land_on_head,
    missing_folders,
    open_repository,
    overlay,
    plan_commit,
    unified_diff,
)

MOST_NAMED = 10


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """What is to be done with a healed result.

    Attributes:
        how: `keep` it in the run folder, `apply` it, `commit` it too, make a `branch`, write a `patch`, or
            write new files `into` a folder of their own.
        name: The branch, the patch's file, or the folder.
    """

    how: Literal["keep", "apply", "commit", "branch", "patch", "into"] = "keep"
    name: str = ""


@dataclass(frozen=True, kw_only=True)
class DeliverableRun:
    """What the delivery of a change needs of the run that has healed.

    Attributes:
        task: What was wanted; its files are those before the change.
        folder: The run's folder.
        ledger: Records what is done to the user's tree.
        prepare: Makes the suite of a task ready, where other files than the run's have to pass too.
        accepted: The test that a person accepted in the run, path -> content: it is handed over too.
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
    """The one thing that a user asked for.

    Raises:
        UsageError: It is more than one.
    """
    asked = [
        *([Delivery(how="apply")] if apply else []),
        *([Delivery(how="commit")] if commit else []),
        *([Delivery(how="branch", name=branch)] if branch is not None else []),
        *([Delivery(how="patch", name=str(patch))] if patch is not None else []),
        *([Delivery(how="into", name=str(Path(into).absolute()))] if into is not None else []),
    ]
    if len(asked) > 1:
        flags = " and ".join(f"--{handover.how}" for handover in asked)
        raise UsageError(f"{flags} exclude each other", remedy="give one of them")
    return asked[0] if asked else Delivery()


def require_deliverable(handover: Delivery, root: Path) -> None:
    """Refuse, before anything is spent, what could not be done in the end.

    Raises:
        UsageError: There is no repository, no commit, nobody to commit as, such a branch already, or such
            a file.
        PrerequisiteError: Git is not installed.
    """
    if handover.how == "patch":
        target = Path(handover.name)
        if target.exists():
            raise UsageError(
                f"{handover.name!r} exists already and would be overwritten", remedy="move it away"
            )
        if not target.absolute().parent.is_dir():
            raise UsageError(
                f"there is no folder for {handover.name!r}", remedy="make it first: mkdir -p FOLDER"
            )
    if handover.how == "into" and os.path.lexists(handover.name) and not Path(handover.name).is_dir():
        raise UsageError(f"{handover.name!r} is no folder", remedy="name one; it need not exist")
    if handover.how in ("commit", "branch"):
        repository = open_repository(root)
        repository.head()
        _require_identity(repository)
        if handover.how == "commit":
            repository.require_quiet()
        else:
            repository.require_new_branch(handover.name)


def require_no_overwrite(folder: Path, paths: Iterable[str], another: str = "suture run ... --into FOLDER") -> None:
    """Refuse to write new code over what is there.

    Args:
        folder: Where it would be written.
        paths: The files, relative to it.
        another: What to type to have them in another folder.

    Raises:
        UsageError: One of them is there already.
    """
    there = [path for path in paths if os.path.lexists(folder / path)]
    if there:
        they, it = ("exist", "them") if len(there) > 1 else ("exists", "it")
        raise UsageError(
            f"{', '.join(map(repr, there[:MOST_NAMED]))} {they} already in {str(folder)!r} and would be"
            " overwritten; nothing was written",
            remedy=f"move {it} away, mend {it} with `suture heal`, or have the code elsewhere: {another}",
        )


def _require_identity(repository: Repository) -> None:
    for who in ("GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"):
        try:
            repository.git("var", who)
        except StorageError as fault:
            raise UsageError(
                "git does not know who you are", remedy="set user.name and user.email with `git config`"
            ) from fault


async def deliver(handover: Delivery, result: Result, root: Path, run: DeliverableRun) -> None:
    """Do with a healed result what the user asked for; a result that is not healed stays where it is.

    Raises:
        UsageError: The user changed the same files or lines, or what would be committed does not pass.
        StorageError: The tree or the repository could not be written; both are as they were.
    """
    if result.outcome != "healed" or result.candidate is None or handover.how == "keep":
        return
    before = run.task.given_files
    after = {**overlay(run.task.files, result.candidate.files), **run.accepted}
    if handover.how == "patch":
        run.ledger.append(PatchWritten(file=_write_patch(Path(handover.name), result.diff)))
    elif handover.how in ("apply", "into"):
        place = Path(handover.name) if handover.how == "into" else root
        project = run.task.project
        if handover.how == "into" and project is not None and not project.is_new:
            before = {}  # beside a feature goes what was there before it
        if run.task.kind == "write":
            new = after.keys() - before.keys()
            require_no_overwrite(place, sorted(new), f"suture apply {run.folder.id} --into FOLDER")
        _apply(before, after, place, run)
    else:
        repository = open_repository(root)
        plan = plan_commit(repository, before, after)
        await _require_green(plan, after, run)
        message = _message(result, run)
        started = CommitStarted(root=str(root), parent=plan.parent, branch=handover.name)
        if handover.how == "branch":
            run.ledger.append(started)
            try:
                commit = land_branch(plan, message, handover.name)
            except SutureError:
                run.ledger.append(TreeUndone(root=str(root), why="the commit failed"))
                raise
        else:
            repository.require_quiet()
            run.ledger.append(started)
            commit = _land(plan, message, before, after, root, run)
        run.ledger.append(CommitMade(**vars(started), commit=commit))


def _write_patch(target: Path, diff: str) -> str:
    try:
        with target.open("xb") as file:
            file.write(diff.encode("utf-8", "surrogateescape"))
    except OSError as fault:
        raise StorageError(f"{str(target)!r} cannot be written: {fault.strerror}") from fault
    return str(target.absolute())


def _apply(before: Mapping[str, bytes], after: Mapping[str, bytes], root: Path, run: DeliverableRun) -> None:
    """Write the change; how to take it back is on disk before the first file changes."""
    undo = run.folder.write_text("undo.diff", unified_diff(after, before))
    paths = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
    folders = missing_folders(root, (path for path in paths if path in after))
    started = ApplyStarted(
        root=str(root), files=tuple(paths), undo=str(undo), folders=tuple(map(str, folders))
    )
    run.ledger.append(started)
    try:
        apply_changes(root, before, after)
    except BaseException:
        run.ledger.append(TreeUndone(root=str(root), why="the change could not be written"))
        raise
    run.ledger.append(TreeApplied(**vars(started)))


def _land(
    plan: CommitPlan,
    message: str,
    before: Mapping[str, bytes],
    after: Mapping[str, bytes],
    root: Path,
    run: DeliverableRun,
) -> str:
    _apply(before, after, root, run)
    try:
        return land_on_head(plan, message)
    except SutureError:
        apply_changes(root, after, before)
        run.ledger.append(TreeUndone(root=str(root), why="the commit failed"))
        raise


async def _require_green(plan: CommitPlan, after: Mapping[str, bytes], run: DeliverableRun) -> None:
    """What is committed is not what was tested where the user has changes of their own: test that too."""
    committed = plan.repository.files_of(plan.tree)
    if committed == dict(after):
        return
    try:
        suite = await run.prepare(replace(run.task, files=committed))
        verdict = await check_candidate(Candidate(files={}, origin="user"), suite)
        failing = sorted(verdict.failed) if verdict.passed else ["none passes"]
    except UsageError as fault:
        failing = [fault.message]
    run.ledger.append(CommitChecked(tree=plan.tree, failing=tuple(failing[:MOST_NAMED])))
    if failing:
        raise UsageError(
            "nothing was committed: without your own uncommitted changes the tests do not pass"
            f" ({'; '.join(failing[:3])})",
            remedy="commit what they need first, or use --apply or --patch",
        )


def _message(result: Result, run: DeliverableRun) -> str:
    files = sorted(result.candidate.files) if result.candidate else []
    named = ", ".join(files[:2]) + (" and others" if len(files) > 2 else "")
    fixed = _fixed(run, result)
    more = [f"and {len(fixed) - MOST_NAMED} more"] if len(fixed) > MOST_NAMED else []
    lines = [f"- {' '.join(name.split())}" for name in fixed[:MOST_NAMED]] + more
    body = ["Passing now:", *lines, ""] if lines else []
    trailer = f"Healed-by: suture {version('suture')} (run {result.run_id})"
    return "\n".join([f"Heal {named}", "", *body, trailer, ""])


def _fixed(run: DeliverableRun, result: Result) -> list[str]:
    checked = first_of(run.ledger.events, CandidateChecked)
    before = run.folder.get_record(Verdict, checked.verdict).passed if checked else frozenset()
    return sorted(result.verdict.passed - before) if result.verdict else []
