"""Results that are applied after their run, by `suture apply`."""

from __future__ import annotations

from pathlib import Path

import pytest

from judge.certificates.conftest import CODE, FIXED, RunHeal
from judge.certificates.test_delivery import git, read_code, repository, settings
from suture.api import WriteOptions, apply, solve, undo
from suture.core.ledger import find_run, last_payload, read_ledger
from suture.core.ledger.kinds import CommitMade, TreeApplied
from suture.core.settings import Settings
from suture.errors import UsageError
from suture.testing import ScriptedModel

__all__ = ["repository", "settings"]


async def test_a_result_can_be_applied_again_only_after_an_undo(
    run_heal: RunHeal, repository: Path, settings: Settings
) -> None:
    result = await run_heal(text=FIXED)
    assert read_code(repository) == CODE

    folder = await apply(settings=settings)
    assert (folder.id, read_code(repository)) == (result.run_id, FIXED)
    assert last_payload(read_ledger(folder.ledger_path).events, TreeApplied) is not None
    with pytest.raises(UsageError, match="applied already"):
        await apply(settings=settings)

    undo(settings=settings)
    assert read_code(repository) == CODE

    await apply(result.run_id, settings=settings)
    assert read_code(repository) == FIXED


async def test_a_result_can_be_committed_later(
    run_heal: RunHeal, repository: Path, settings: Settings
) -> None:
    await run_heal(text=FIXED)
    (repository / "notes.txt").write_text("mine\n")

    folder = await apply(commit=True, settings=settings)
    commit_made = last_payload(read_ledger(folder.ledger_path).events, CommitMade)

    assert commit_made is not None
    assert git(repository, "rev-parse", "HEAD").strip() == commit_made.commit
    assert git(repository, "status", "--porcelain") == "?? notes.txt\n"


async def test_writing_a_patch_leaves_the_files_alone(
    run_heal: RunHeal, repository: Path, settings: Settings, tmp_path: Path
) -> None:
    result = await run_heal(text=FIXED)
    await apply(patch=tmp_path / "fix.patch", settings=settings)
    assert ((tmp_path / "fix.patch").read_text(), read_code(repository)) == (result.diff, CODE)


async def test_a_change_of_the_user_is_not_overwritten(
    run_heal: RunHeal, repository: Path, settings: Settings
) -> None:
    await run_heal(text=FIXED)
    (repository / "shop" / "prices.py").write_text(CODE + "\nMINE = 1\n")
    with pytest.raises(UsageError, match="was changed since the run started"):
        await apply(settings=settings)
    assert read_code(repository) == CODE + "\nMINE = 1\n"


async def test_apply_refuses_failed_runs_and_runs_of_other_folders(
    run_heal: RunHeal, repository: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="no run has healed this folder"):
        await apply(settings=settings)

    result = await run_heal(text=CODE)
    assert result.outcome != "healed"
    with pytest.raises(UsageError, match="there is nothing to apply"):
        await apply(result.run_id, settings=settings)

    await run_heal(text=FIXED)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="no run has healed this folder"):
        await apply(settings=settings)


async def test_code_written_for_a_folder_is_not_applied_to_its_subfolders(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    subfolder = tmp_path / "above" / "below"
    subfolder.mkdir(parents=True)
    monkeypatch.chdir(subfolder.parent)
    model = ScriptedModel(["```python\ndef double(n):\n    return 2 * n\n```"])
    await solve("Write double(n). double(4) == 8", WriteOptions(settings=settings, model=model))
    monkeypatch.chdir(subfolder)
    with pytest.raises(UsageError, match="no run has healed this folder"):
        await apply(settings=settings)

    monkeypatch.chdir(subfolder.parent)
    await apply(settings=settings)
    assert (subfolder.parent / "solution.py").exists()


async def test_a_run_outside_the_home_folder_is_not_applied(
    run_heal: RunHeal, repository: Path, settings: Settings, tmp_path: Path
) -> None:
    result = await run_heal(text=FIXED)
    run = find_run(settings.paths.home, result.run_id)
    foreign = tmp_path / "strange" / run.id
    foreign.parent.mkdir()
    run.path.rename(foreign)

    with pytest.raises(UsageError, match="not among your own runs"):
        await apply(foreign, settings=settings)
    assert read_code(repository) == CODE
