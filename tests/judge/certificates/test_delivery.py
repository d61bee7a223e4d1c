"""What becomes of a healed result in real repositories, and how it is taken back."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from judge.certificates.conftest import CODE, FIXED, NOISY, TESTS, Healed
from suture.api import undo
from suture.api.delivery.deliver import choose_delivery
from suture.core.ledger import Event, find_run
from suture.core.settings import CertificationSettings, Settings
from suture.errors import UsageError

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Nothing is measured here."""
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


def code(root: Path) -> str:
    return (root / "shop" / "prices.py").read_text()


@pytest.mark.parametrize(
    "asked",
    [
        {"apply": True, "commit": True},
        {"commit": True, "branch": "b"},
        {"branch": "b", "patch": "f"},
        {"apply": True, "patch": Path("f")},
    ],
)
def test_only_one_thing_can_be_asked_for(asked: dict[str, object]) -> None:
    with pytest.raises(UsageError, match="exclude each other"):
        choose_delivery(**asked)  # type: ignore[arg-type]  # built by name


async def test_a_commit_beside_the_users_own_changes_and_its_revert(
    healed: Healed, repository: Path, settings: Settings
) -> None:
    (repository / "notes.txt").write_text("mine\n")
    (repository / "conftest.py").write_text("# mine\n")
    git(repository, "add", "conftest.py")
    status = git(repository, "status", "--porcelain")
    result = await healed(commit=True, text=FIXED)
    assert result.outcome == "healed", result.reason
    assert code(repository) == FIXED == git(repository, "show", "HEAD:shop/prices.py")
    assert git(repository, "status", "--porcelain") == status
    assert git(repository, "diff", "--name-only", "HEAD~1", "HEAD").split() == ["shop/prices.py"]
    message = git(repository, "log", "-1", "--format=%B")
    assert message.startswith("Heal shop/prices.py\n")
    assert "test_cheapest" in message
    trailer = git(repository, "log", "-1", "--format=%(trailers:key=Healed-by,valueonly)")
    assert result.run_id in trailer
    done = undo(settings=settings)
    assert (done.files, code(repository)) == (("shop/prices.py",), CODE)
    assert git(repository, "rev-parse", "HEAD").strip() == done.commit
    assert git(repository, "status", "--porcelain") == status
    with pytest.raises(UsageError, match="nothing to undo"):
        undo(settings=settings)


async def test_what_is_not_green_without_the_users_changes_is_not_committed(
    healed: Healed, repository: Path
) -> None:
    needed = TESTS.replace("[60, 40], 10) == 90", "[60, 40], 10) == 90.0").replace("== 1\n", "== ONE\n")
    (repository / "tests" / "test_prices.py").write_text("from shop.one import ONE\n" + needed)
    git(repository, "commit", "-qam", "tests that need what is not committed")
    (repository / "shop" / "one.py").write_text("ONE = 1\n")
    head = git(repository, "rev-parse", "HEAD")
    with pytest.raises(UsageError, match="without your own uncommitted changes"):
        await healed(commit=True, text=FIXED)
    assert (git(repository, "rev-parse", "HEAD"), code(repository)) == (head, CODE)


async def test_a_branch_and_its_deletion(healed: Healed, repository: Path, settings: Settings) -> None:
    await healed(branch="heal/it", text=FIXED)
    assert code(repository) == CODE
    assert git(repository, "show", "heal/it:shop/prices.py") == FIXED
    assert git(repository, "status", "--porcelain") == ""
    with pytest.raises(UsageError, match="already"):
        await healed(branch="heal/it")
    assert undo(settings=settings).branch == "heal/it"
    assert "heal/it" not in git(repository, "branch")


async def test_a_patch_file_that_git_takes(healed: Healed, repository: Path, tmp_path: Path) -> None:
    patch = tmp_path / "fix.patch"
    result = await healed(patch=patch, text=NOISY)
    assert code(repository) == CODE
    assert patch.read_text() == result.diff
    git(repository, "apply", str(patch))
    assert (
        code(repository)
        == NOISY
        == dict(result.candidate.files if result.candidate else {})["shop/prices.py"]
    )
    with pytest.raises(UsageError, match="exists already"):
        await healed(patch=patch)


async def test_undo_refuses_what_was_changed_since(healed: Healed, project: Path, settings: Settings) -> None:
    result = await healed(apply=True, text=FIXED)
    assert code(project) == FIXED
    (project / "shop" / "prices.py").write_text(FIXED + "\nMINE = 1\n")
    with pytest.raises(UsageError, match="nothing was undone"):
        undo(result.run_id, settings=settings)
    assert code(project) == FIXED + "\nMINE = 1\n"
    (project / "shop" / "prices.py").write_text(FIXED)
    assert undo(result.run_id, settings=settings).files == ("shop/prices.py",)
    assert code(project) == CODE


async def test_what_cannot_be_done_is_refused_before_anything_is_spent(
    healed: Healed, project: Path, settings: Settings, tmp_path: Path
) -> None:
    for asked in ({"commit": True}, {"branch": "b"}, {"patch": tmp_path / "no" / "where"}):
        with pytest.raises(UsageError):
            await healed(**asked)
    assert not (settings.paths.home / "runs").exists()


@pytest.mark.parametrize("asked", [{"commit": True}, {"branch": "b"}])
async def test_nobody_to_commit_as_is_noticed_before_anything_is_spent(
    asked: dict[str, object], healed: Healed, repository: Path, settings: Settings, tmp_path: Path
) -> None:
    (tmp_path / ".gitconfig").unlink()
    with pytest.raises(UsageError, match="who you are"):
        await healed(**asked)
    assert not (settings.paths.home / "runs").exists()


async def test_a_commit_that_fails_leaves_the_files_alone_and_so_does_its_revert(
    healed: Healed, repository: Path, settings: Settings, tmp_path: Path
) -> None:
    identity = (tmp_path / ".gitconfig").read_text()

    def forget(event: Event) -> None:
        if event.kind == "run.finished":
            (tmp_path / ".gitconfig").unlink()

    head = git(repository, "rev-parse", "HEAD")
    with pytest.raises(UsageError, match="who you are"):
        await healed(commit=True, text=FIXED, on_event=forget)
    assert (code(repository), git(repository, "rev-parse", "HEAD")) == (CODE, head)
    assert git(repository, "status", "--porcelain") == ""
    with pytest.raises(UsageError, match="nothing to undo"):
        undo(settings=settings)

    (tmp_path / ".gitconfig").write_text(identity)
    await healed(commit=True, text=FIXED)
    (tmp_path / ".gitconfig").unlink()
    with pytest.raises(UsageError, match="who you are"):
        undo(settings=settings)
    assert code(repository) == FIXED
    assert git(repository, "status", "--porcelain") == ""


async def test_undo_without_a_name_leaves_other_projects_alone(
    healed: Healed, project: Path, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = await healed(apply=True, text=FIXED)
    (tmp_path / "other").mkdir()
    for elsewhere in (tmp_path, tmp_path / "other"):
        monkeypatch.chdir(elsewhere)
        with pytest.raises(UsageError, match=result.run_id) as refused:
            undo(settings=settings)
        assert refused.value.remedy == f"name it to undo it: suture undo {result.run_id}"
    assert code(project) == FIXED
    monkeypatch.chdir(project / "shop")
    assert undo(settings=settings).files == ("shop/prices.py",)
    assert code(project) == CODE


def forget_what_came_after(kind: str, run_id: str, settings: Settings) -> None:
    """Cut a ledger off behind an event, as a process that is killed does."""
    ledger = find_run(settings.paths.home, run_id).ledger_path
    lines = ledger.read_text().splitlines(keepends=True)
    last = max(number for number, line in enumerate(lines) if f'"{kind}"' in line)
    assert last < len(lines) - 1
    ledger.write_text("".join(lines[: last + 1]))


@pytest.mark.parametrize("written", [True, False])
async def test_a_change_that_was_killed_half_way_can_be_taken_back(
    written: bool, healed: Healed, project: Path, settings: Settings
) -> None:
    result = await healed(apply=True, text=FIXED)
    forget_what_came_after("apply.started", result.run_id, settings)
    if not written:
        (project / "shop" / "prices.py").write_text(CODE)
    assert undo(result.run_id, settings=settings).files == ("shop/prices.py",)
    assert code(project) == CODE


@pytest.mark.parametrize("asked", [{"commit": True}, {"branch": "heal/it"}])
async def test_a_commit_that_nobody_wrote_down_can_be_taken_back(
    asked: dict[str, object], healed: Healed, repository: Path, settings: Settings
) -> None:
    result = await healed(text=FIXED, **asked)
    after = "tree.applied" if "commit" in asked else "commit.started"
    forget_what_came_after(after, result.run_id, settings)
    done = undo(settings=settings)
    assert bool(done.commit) == ("commit" in asked)
    assert code(repository) == CODE
    assert git(repository, "show", "HEAD:shop/prices.py") == CODE
    assert "heal/it" not in git(repository, "branch")
    assert git(repository, "status", "--porcelain") == ""
