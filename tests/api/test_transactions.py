"""Applying and undoing a change is finished or taken back, wherever its process is killed or fails."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from faults import ERRORS, choose_error, count_steps, fault_at, raise_error, run_killed, start_fork
from project_runs import BEFORE, CHANGE, HealedProject, add_healed_run, write_healed_project
from suture.api import apply, undo
from suture.api.delivery import transactions
from suture.api.delivery.applied_change import _expected_content, find_applied_change
from suture.api.delivery.transactions import recover_interrupted_changes
from suture.core.ledger import Ledger, RunFolder, read_ledger
from suture.core.ledger.kinds import PatchWritten
from suture.errors import StorageError, SutureError, UsageError
from suture.project.workspace import CommitPlan, commit_on_head

AFTER = {**BEFORE, **{path: text.encode() for path, text in CHANGE.items()}}
needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


@pytest.fixture
def healed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HealedProject:
    healed = write_healed_project(tmp_path)
    monkeypatch.chdir(healed.root)
    return healed


@pytest.fixture
def committed(healed: HealedProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HealedProject:
    """The same project in a git repository."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".gitconfig").write_text("[user]\n\tname = A\n\temail = a@example.org\n")
    git(
        healed.root, "init", "-q", "-b", "main", "--template="
    )  # its example hooks would be copied at each step
    git(healed.root, "add", ".")
    git(healed.root, "commit", "-qm", "first")
    return healed


def git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, text=True).stdout


def apply_change(healed: HealedProject, **options: bool) -> RunFolder:
    return asyncio.run(apply(healed.run_id, settings=healed.settings, **options))  # type: ignore[arg-type]


def undo_change(healed: HealedProject) -> None:
    undo(healed.run_id, settings=healed.settings)


def commit_change(healed: HealedProject) -> RunFolder:
    return apply_change(healed, commit=True)


def is_applied(healed: HealedProject) -> bool:
    return bool(find_applied_change(read_ledger(healed.run.ledger_path).events).root)


def require_recovered(healed: HealedProject) -> None:
    """Check that the next command finds the whole change or nothing of it, as the ledger says."""
    deadline_s = time.monotonic() + 30
    while any(journal.stat().st_size for journal in (healed.home / "changes").glob("*")):
        assert time.monotonic() < deadline_s
        # It leaves a change alone as long as an orphaned git works on it.
        recover_interrupted_changes(healed.home, healed.root)
    assert healed.read_files() == (AFTER if is_applied(healed) else BEFORE)
    assert (healed.root / "shop" / "new").is_dir() == is_applied(healed)
    if (healed.root / ".git").exists():
        assert git(healed.root, "status", "--porcelain") == ""


Work = Callable[[HealedProject], object]
Break = Callable[[int, Callable[[], object]], object]


def break_everywhere(
    healed: HealedProject, template: Path, work: Work, break_at: Break, steps: slice
) -> None:
    """Break some work at some of its system calls, each time from the same state, and recover; then do it."""
    healed.save(template)
    total = count_steps(lambda: work(healed))
    assert total > 40
    for step in range(total)[steps]:
        healed.reset(template)
        break_at(step, lambda: work(healed))
        require_recovered(healed)
    healed.reset(template)
    work(healed)


def fail_at(step: int, work: Callable[[], object], seed: int = 0) -> None:
    with fault_at(step, raise_error(choose_error(step, seed))), contextlib.suppress(SutureError):
        work()


# The steps are those of which each does something else; `benchmarks/kills.py` kills at random moments.
@pytest.mark.parametrize("break_at", [run_killed, fail_at])
def test_an_interrupted_apply_or_undo_is_finished_or_taken_back(
    healed: HealedProject, tmp_path: Path, break_at: Break
) -> None:
    break_everywhere(healed, tmp_path / "before", apply_change, break_at, slice(15, None, 6))
    break_everywhere(healed, tmp_path / "after", undo_change, break_at, slice(5, None, 6))


@needs_git
@pytest.mark.parametrize("break_at", [run_killed, fail_at])
def test_an_interrupted_commit_or_its_undo_is_finished_or_taken_back(
    committed: HealedProject, tmp_path: Path, break_at: Break
) -> None:
    break_everywhere(committed, tmp_path / "before", commit_change, break_at, slice(-170, None, 34))
    break_everywhere(committed, tmp_path / "after", undo_change, break_at, slice(-100, None, 30))


@pytest.mark.heavy
@pytest.mark.parametrize("seed", range(len(ERRORS)))
def test_after_any_error_at_any_step_of_apply_and_undo_the_next_command_recovers(
    healed: HealedProject, tmp_path: Path, seed: int
) -> None:
    break_at = partial(fail_at, seed=seed)
    break_everywhere(healed, tmp_path / "before", apply_change, break_at, slice(None))
    break_everywhere(healed, tmp_path / "after", undo_change, break_at, slice(None))


@needs_git
@pytest.mark.heavy
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(len(ERRORS)))
def test_after_an_error_at_any_step_of_a_commit_and_its_undo_the_next_command_recovers(
    committed: HealedProject, tmp_path: Path, seed: int
) -> None:
    break_at, steps = partial(fail_at, seed=seed), slice(seed, None, len(ERRORS))
    break_everywhere(committed, tmp_path / "before", commit_change, break_at, steps)
    break_everywhere(committed, tmp_path / "after", undo_change, break_at, steps)


def test_a_second_undo_says_that_the_change_was_undone(healed: HealedProject) -> None:
    apply_change(healed)
    undo(settings=healed.settings)

    with pytest.raises(
        UsageError, match=f"the change that run {healed.run_id} made in this folder was undone"
    ):
        undo(settings=healed.settings)


@pytest.mark.parametrize("by_id", [False, True])
def test_the_undo_of_a_killed_apply_takes_it_back(healed: HealedProject, by_id: bool) -> None:
    step = 40
    while healed.read_files().get("shop/new/more.py") is None:  # the first file that is written
        assert run_killed(step, lambda: apply_change(healed))
        step += 1

    assert (
        undo(healed.run_id if by_id else None, settings=healed.settings).reason
        == "the change was interrupted"
    )
    assert healed.read_files() == BEFORE
    with pytest.raises(UsageError, match="nothing to undo"):
        undo(settings=healed.settings)


def test_two_applies_at_once_keep_both_undo_records(healed: HealedProject) -> None:
    other_change = {"notes.txt": "theirs\n"}
    other = add_healed_run(healed.root, healed.home, other_change)
    same = add_healed_run(healed.root, healed.home, CHANGE)

    def apply_run(run: str) -> None:
        asyncio.run(apply(run, settings=healed.settings))

    runs = (healed.run_id, healed.run_id, other, same)
    children = [start_fork(partial(apply_run, run)) for run in runs]
    for child in children:
        os.waitpid(child, 0)

    assert healed.read_files() == {**AFTER, "notes.txt": b"theirs\n"}
    undo(other, settings=healed.settings)
    undo(settings=healed.settings)  # of the two with the same change, the one that has made it
    assert healed.read_files() == BEFORE
    with pytest.raises(UsageError, match="nothing to undo"):
        undo(settings=healed.settings)


def test_a_project_that_another_process_changes_is_left_alone(
    healed: HealedProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transactions, "LOCK_TIMEOUT_S", 0.1)
    other = RunFolder(healed.home / "runs" / add_healed_run(healed.root, healed.home, CHANGE))
    with (
        Ledger(other.ledger_path) as ledger,
        transactions.project_change(other, healed.root, "apply", ledger),
        pytest.raises(UsageError, match="another process is changing this project"),
    ):
        apply_change(healed)
    assert healed.read_files() == BEFORE
    apply_change(healed)


@needs_git
def test_undo_says_where_a_commit_is_that_is_not_checked_out(committed: HealedProject) -> None:
    first = git(committed.root, "rev-parse", "HEAD").strip()
    commit_change(committed)
    git(committed.root, "switch", "-qc", "other", first)

    with pytest.raises(UsageError, match="is on 'main'; nothing was undone") as caught:
        undo_change(committed)
    assert caught.value.remedy == "check that out first: git switch main"
    assert git(committed.root, "rev-parse", "HEAD").strip() == first

    git(committed.root, "switch", "-q", "main")
    undo_change(committed)
    assert committed.read_files() == BEFORE


@needs_git
def test_undo_says_how_to_check_out_a_remote_branch(committed: HealedProject) -> None:
    commit_change(committed)
    git(committed.root, "update-ref", "refs/remotes/origin/main", "HEAD")
    git(committed.root, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    git(committed.root, "switch", "-qc", "other", "HEAD~1")
    git(committed.root, "branch", "-qD", "main")

    with pytest.raises(UsageError, match="is on 'origin/main'; nothing was undone") as caught:
        undo_change(committed)
    assert caught.value.remedy == "check that out first: git switch --detach origin/main"


@needs_git
def test_a_fault_after_the_commit_was_made_fails_nothing(
    committed: HealedProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_after_commit(plan: CommitPlan, message: str) -> str:
        commit_on_head(plan, message)
        raise StorageError("the index cannot be written")

    monkeypatch.setattr("suture.api.delivery.deliver.commit_on_head", fail_after_commit)
    commit_change(committed)
    require_recovered(committed)
    assert is_applied(committed)


def test_files_that_cannot_be_reverted_are_kept_until_undo_restores_them(
    healed: HealedProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace_file = Path.replace
    replaced: list[Path] = []

    def replace(self: Path, target: Path) -> Path:
        if self.name.startswith(".suture-"):
            replaced.append(target)
        if len(replaced) > 2:
            raise OSError(5, "Input/output error")
        return replace_file(self, target)

    monkeypatch.setattr(Path, "replace", replace)
    with pytest.raises(StorageError, match="could not be reverted") as caught:
        apply_change(healed)
    monkeypatch.setattr(Path, "replace", replace_file)
    kept = {path: content for path, content in healed.read_files().items() if ".suture-kept-" in path}
    assert set(kept.values()) == {BEFORE["shop/prices.py"], BEFORE["shop/old.py"]}
    assert all(repr(Path(path).name) in caught.value.message for path in kept)
    assert caught.value.remedy == f"suture undo {healed.run_id}"

    undo_change(healed)
    assert healed.read_files() == {**BEFORE, **kept}


def leave_interrupted_undo(healed: HealedProject) -> Path:
    """Leave what a process has left that was killed before its undo changed anything; return the journal."""
    (journal,) = (healed.home / "changes").iterdir()
    journal.write_text(json.dumps({"run": healed.run_id, "act": "undo"}))
    return journal


@needs_git
def test_an_interrupted_undo_is_not_forgotten_while_it_cannot_be_finished(committed: HealedProject) -> None:
    commit_change(committed)
    journal = leave_interrupted_undo(committed)
    merge = committed.root / ".git" / "MERGE_HEAD"
    merge.write_text(git(committed.root, "rev-parse", "HEAD"))
    recover_interrupted_changes(committed.home, committed.root)
    assert journal.stat().st_size
    merge.unlink()
    with Ledger(committed.run.ledger_path):
        recover_interrupted_changes(committed.home, committed.root)
    assert journal.stat().st_size
    recover_interrupted_changes(committed.home, committed.root)
    require_recovered(committed)
    assert not is_applied(committed)


def test_a_command_recovers_only_its_own_project_and_says_so(
    healed: HealedProject, caplog: pytest.LogCaptureFixture
) -> None:
    apply_change(healed)
    leave_interrupted_undo(healed)
    assert not recover_interrupted_changes(healed.home, healed.root.parent)
    assert healed.read_files() == AFTER
    assert not caplog.text

    (undone,) = recover_interrupted_changes(healed.home, healed.root / "shop")
    assert undone.root == str(healed.root)
    assert healed.read_files() == BEFORE
    assert f"the undo of run {healed.run_id} was interrupted, and is finished now" in caplog.text


def test_a_journal_that_cannot_be_read_is_a_storage_error(
    healed: HealedProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    apply_change(healed)
    read_bytes = os.pread

    def pread(descriptor: int, count: int, offset: int) -> bytes:
        if count == transactions.MAX_JOURNAL_BYTES:
            raise OSError(5, "Input/output error")
        return read_bytes(descriptor, count, offset)

    monkeypatch.setattr(os, "pread", pread)
    with pytest.raises(StorageError, match="Input/output error"):
        undo_change(healed)
    assert healed.read_files() == AFTER


def test_a_new_file_that_cannot_be_looked_at_is_expected_to_be_as_written() -> None:
    assert _expected_content(Path("x" * 300), None, b"new") == b"new"  # the name is too long


@needs_git
@pytest.mark.parametrize("command", ["reset --hard HEAD~1", "revert --no-edit HEAD"])
def test_undo_of_a_commit_that_is_gone_commits_nothing(committed: HealedProject, command: str) -> None:
    commit_change(committed)
    git(committed.root, *command.split())
    head = git(committed.root, "rev-parse", "HEAD")

    with pytest.raises(UsageError, match="neither your files nor what is checked out contain it"):
        undo_change(committed)
    assert git(committed.root, "rev-parse", "HEAD") == head
    apply_change(committed)  # it does not count as applied any more
    assert committed.read_files() == AFTER


@needs_git
def test_after_a_soft_reset_only_the_files_are_restored(committed: HealedProject) -> None:
    first = git(committed.root, "rev-parse", "HEAD")
    commit_change(committed)
    git(committed.root, "reset", "-q", "--mixed", "HEAD~1")
    undo_change(committed)
    assert (committed.read_files(), git(committed.root, "rev-parse", "HEAD")) == (BEFORE, first)


@pytest.mark.parametrize(
    "break_at", [run_killed, *(partial(fail_at, seed=seed) for seed in range(len(ERRORS)))]
)
def test_after_a_fault_while_it_is_recorded_a_run_can_be_read_and_written(
    healed: HealedProject, tmp_path: Path, break_at: Break
) -> None:
    def record(_: HealedProject) -> None:
        with Ledger(healed.run.ledger_path) as ledger:
            digest = healed.run.save_blob(b"a reply")
            ledger.append_all([PatchWritten(file=digest), PatchWritten(file="second")])

    template = healed.save(tmp_path / "before")
    for step in range(count_steps(lambda: record(healed))):
        healed.reset(template)
        break_at(step, lambda: record(healed))
        written = [event.payload for event in read_ledger(healed.run.ledger_path).events][2:]
        assert len(written) in (0, 2)
        assert not written or healed.run.load_blob(str(vars(written[0])["file"])) == b"a reply"
        record(healed)
        assert len(read_ledger(healed.run.ledger_path).events) == len(written) + 4
