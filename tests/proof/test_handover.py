"""What becomes of a healed result in real repositories, and how it is taken back."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from proof.conftest import CODE, FIXED, NOISY, TESTS, Healed
from suture.api import undo
from suture.errors import UsageError
from suture.proof import choose_handover
from suture.settings import ProofSettings, Settings

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Nothing is measured here."""
    return settings.model_copy(update={"proof": ProofSettings(seconds=0)})


@pytest.fixture
def repository(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".gitconfig").write_text("[user]\n\tname = A\n\temail = a@example.org\n")
    git(project, "init", "-q")
    git(project, "add", ".")
    git(project, "commit", "-qm", "first")
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
        choose_handover(**asked)  # type: ignore[arg-type]  # built by name


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
    with pytest.raises(UsageError, match="nothing was taken back"):
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
