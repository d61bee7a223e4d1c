"""Delivering a result into real repositories, and undoing the delivery."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from judge.certificates.conftest import CODE, FIXED, NOISY, TESTS, RunHeal
from suture.api import undo
from suture.api.delivery.deliver import choose_delivery
from suture.core.ledger import Event, find_run
from suture.core.settings import CertificationSettings, Settings
from suture.errors import UsageError

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Return settings without certification, which these tests do not need."""
    return settings.model_copy(update={"certification": CertificationSettings(seconds=0)})


@pytest.fixture
def repository(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".gitconfig").write_text("[user]\n\tname = A\n\temail = a@example.org\n")
    git(project, "init", "-q")
    git(project, "add", ".")
    git(project, "commit", "-qm", "first")
    git(project, "config", "user.useConfigOnly", "true")
    monkeypatch.chdir(project)
    return project


def git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, text=True).stdout


def read_code(root: Path) -> str:
    return (root / "shop" / "prices.py").read_text()


@pytest.mark.parametrize(
    "request_options",
    [
        {"apply": True, "commit": True},
        {"commit": True, "branch": "b"},
        {"branch": "b", "patch": "f"},
        {"apply": True, "patch": Path("f")},
    ],
)
def test_the_ways_of_delivery_exclude_each_other(request_options: dict[str, object]) -> None:
    with pytest.raises(UsageError, match="exclude each other"):
        choose_delivery(**request_options)  # type: ignore[arg-type]


async def test_a_commit_and_its_undo_keep_the_users_changes(
    run_heal: RunHeal, repository: Path, settings: Settings
) -> None:
    (repository / "notes.txt").write_text("mine\n")
    (repository / "conftest.py").write_text("# mine\n")
    git(repository, "add", "conftest.py")
    status = git(repository, "status", "--porcelain")
    result = await run_heal(commit=True, text=FIXED)
    assert result.outcome == "healed", result.reason
    assert read_code(repository) == FIXED == git(repository, "show", "HEAD:shop/prices.py")
    assert git(repository, "status", "--porcelain") == status
    assert git(repository, "diff", "--name-only", "HEAD~1", "HEAD").split() == ["shop/prices.py"]

    message = git(repository, "log", "-1", "--format=%B")
    assert message.startswith("Heal shop/prices.py\n")
    assert "test_cheapest" in message

    trailer = git(repository, "log", "-1", "--format=%(trailers:key=Healed-by,valueonly)")
    assert result.run_id in trailer

    undone = undo(settings=settings)
    assert (undone.files, read_code(repository)) == (("shop/prices.py",), CODE)
    assert git(repository, "rev-parse", "HEAD").strip() == undone.commit
    assert git(repository, "status", "--porcelain") == status
    with pytest.raises(UsageError, match="nothing to undo"):
        undo(settings=settings)


async def test_a_fix_that_needs_uncommitted_changes_is_not_committed(
    run_heal: RunHeal, repository: Path
) -> None:
    tests = TESTS.replace("[60, 40], 10) == 90", "[60, 40], 10) == 90.0").replace("== 1\n", "== ONE\n")
    (repository / "tests" / "test_prices.py").write_text("from shop.one import ONE\n" + tests)
    git(repository, "commit", "-qam", "tests that need an uncommitted file")
    (repository / "shop" / "one.py").write_text("ONE = 1\n")

    head = git(repository, "rev-parse", "HEAD")

    with pytest.raises(UsageError, match="without your own uncommitted changes"):
        await run_heal(commit=True, text=FIXED)
    assert (git(repository, "rev-parse", "HEAD"), read_code(repository)) == (head, CODE)


async def test_undo_deletes_the_branch_of_a_fix(
    run_heal: RunHeal, repository: Path, settings: Settings
) -> None:
    await run_heal(branch="heal/it", text=FIXED)
    assert read_code(repository) == CODE
    assert git(repository, "show", "heal/it:shop/prices.py") == FIXED
    assert git(repository, "status", "--porcelain") == ""
    with pytest.raises(UsageError, match="already"):
        await run_heal(branch="heal/it")
    assert undo(settings=settings).branch == "heal/it"
    assert "heal/it" not in git(repository, "branch")


async def test_git_applies_the_patch_file(run_heal: RunHeal, repository: Path, tmp_path: Path) -> None:
    patch = tmp_path / "fix.patch"
    result = await run_heal(patch=patch, text=NOISY)
    assert read_code(repository) == CODE
    assert patch.read_text() == result.diff

    git(repository, "apply", str(patch))
    assert (
        read_code(repository)
        == NOISY
        == dict(result.candidate.files if result.candidate else {})["shop/prices.py"]
    )
    with pytest.raises(UsageError, match="exists already"):
        await run_heal(patch=patch)


async def test_undo_refuses_files_that_were_changed_since(
    run_heal: RunHeal, project: Path, settings: Settings
) -> None:
    result = await run_heal(apply=True, text=FIXED)
    assert read_code(project) == FIXED

    (project / "shop" / "prices.py").write_text(FIXED + "\nMINE = 1\n")
    with pytest.raises(UsageError, match="nothing was undone"):
        undo(result.run_id, settings=settings)
    assert read_code(project) == FIXED + "\nMINE = 1\n"

    (project / "shop" / "prices.py").write_text(FIXED)
    assert undo(result.run_id, settings=settings).files == ("shop/prices.py",)
    assert read_code(project) == CODE


async def test_impossible_deliveries_are_refused_before_the_run(
    run_heal: RunHeal, project: Path, settings: Settings, tmp_path: Path
) -> None:
    for request_options in ({"commit": True}, {"branch": "b"}, {"patch": tmp_path / "no" / "where"}):
        with pytest.raises(UsageError):
            await run_heal(**request_options)
    assert not (settings.paths.home / "runs").exists()


@pytest.mark.parametrize("request_options", [{"commit": True}, {"branch": "b"}])
async def test_a_missing_git_identity_is_reported_before_the_run(
    request_options: dict[str, object],
    run_heal: RunHeal,
    repository: Path,
    settings: Settings,
    tmp_path: Path,
) -> None:
    (tmp_path / ".gitconfig").unlink()
    with pytest.raises(UsageError, match="who you are"):
        await run_heal(**request_options)
    assert not (settings.paths.home / "runs").exists()


async def test_a_failed_commit_or_revert_leaves_the_files_alone(
    run_heal: RunHeal, repository: Path, settings: Settings, tmp_path: Path
) -> None:
    identity = (tmp_path / ".gitconfig").read_text()

    def remove_identity(event: Event) -> None:
        if event.kind == "run.finished":
            (tmp_path / ".gitconfig").unlink()

    head = git(repository, "rev-parse", "HEAD")
    with pytest.raises(UsageError, match="who you are"):
        await run_heal(commit=True, text=FIXED, on_event=remove_identity)
    assert (read_code(repository), git(repository, "rev-parse", "HEAD")) == (CODE, head)
    assert git(repository, "status", "--porcelain") == ""
    with pytest.raises(UsageError, match="nothing to undo"):
        undo(settings=settings)

    (tmp_path / ".gitconfig").write_text(identity)
    await run_heal(commit=True, text=FIXED)
    (tmp_path / ".gitconfig").unlink()
    with pytest.raises(UsageError, match="who you are"):
        undo(settings=settings)
    assert read_code(repository) == FIXED
    assert git(repository, "status", "--porcelain") == ""


async def test_undo_without_a_run_id_leaves_other_projects_alone(
    run_heal: RunHeal, project: Path, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = await run_heal(apply=True, text=FIXED)
    (tmp_path / "other").mkdir()
    for other_folder in (tmp_path, tmp_path / "other"):
        monkeypatch.chdir(other_folder)
        with pytest.raises(UsageError, match=result.run_id) as error:
            undo(settings=settings)
        assert error.value.remedy == f"name it to undo it: suture undo {result.run_id}"
    assert read_code(project) == FIXED

    monkeypatch.chdir(project / "shop")
    assert undo(settings=settings).files == ("shop/prices.py",)
    assert read_code(project) == CODE


def cut_ledger_after(kind: str, run_id: str, settings: Settings) -> None:
    """Drop all events after the last one of a kind, as if the process had been killed."""
    ledger = find_run(settings.paths.home, run_id).ledger_path
    lines = ledger.read_text().splitlines(keepends=True)
    last_match = max(number for number, line in enumerate(lines) if f'"{kind}"' in line)
    assert last_match < len(lines) - 1
    ledger.write_text("".join(lines[: last_match + 1]))


@pytest.mark.parametrize("written", [True, False])
async def test_an_interrupted_change_can_be_undone(
    written: bool, run_heal: RunHeal, project: Path, settings: Settings
) -> None:
    result = await run_heal(apply=True, text=FIXED)
    cut_ledger_after("apply.started", result.run_id, settings)
    if not written:
        (project / "shop" / "prices.py").write_text(CODE)
    assert undo(result.run_id, settings=settings).files == ("shop/prices.py",)
    assert read_code(project) == CODE


@pytest.mark.parametrize("request_options", [{"commit": True}, {"branch": "heal/it"}])
async def test_an_unrecorded_commit_can_be_undone(
    request_options: dict[str, object], run_heal: RunHeal, repository: Path, settings: Settings
) -> None:
    result = await run_heal(text=FIXED, **request_options)
    last_kind = "tree.applied" if "commit" in request_options else "commit.started"
    cut_ledger_after(last_kind, result.run_id, settings)
    undone = undo(settings=settings)

    assert bool(undone.commit) == ("commit" in request_options)
    assert read_code(repository) == CODE
    assert git(repository, "show", "HEAD:shop/prices.py") == CODE
    assert "heal/it" not in git(repository, "branch")
    assert git(repository, "status", "--porcelain") == ""
