"""A healed result that is handed over later, by `suture apply`."""

from __future__ import annotations

from pathlib import Path

import pytest

from judge.certificates.conftest import CODE, FIXED, Healed
from judge.certificates.test_delivery import code, git, repository, settings
from suture.api import WriteOptions, apply, solve, undo
from suture.core.ledger import find_run, last_payload, read_ledger
from suture.core.ledger.kinds import CommitMade, TreeApplied
from suture.core.settings import Settings
from suture.errors import UsageError
from suture.testing import ScriptedModel

__all__ = ["repository", "settings"]


async def test_it_is_applied_once_and_again_when_it_was_taken_back(
    healed: Healed, repository: Path, settings: Settings
) -> None:
    result = await healed(text=FIXED)
    assert code(repository) == CODE
    folder = await apply(settings=settings)
    assert (folder.id, code(repository)) == (result.run_id, FIXED)
    assert last_payload(read_ledger(folder.ledger_path).events, TreeApplied) is not None
    with pytest.raises(UsageError, match="applied already"):
        await apply(settings=settings)
    undo(settings=settings)
    assert code(repository) == CODE
    await apply(result.run_id, settings=settings)
    assert code(repository) == FIXED


async def test_a_commit_is_tested_with_what_is_committed(
    healed: Healed, repository: Path, settings: Settings
) -> None:
    await healed(text=FIXED)
    (repository / "notes.txt").write_text("mine\n")
    folder = await apply(commit=True, settings=settings)
    made = last_payload(read_ledger(folder.ledger_path).events, CommitMade)
    assert made is not None
    assert git(repository, "rev-parse", "HEAD").strip() == made.commit
    assert git(repository, "status", "--porcelain") == "?? notes.txt\n"


async def test_a_patch_leaves_the_files_alone(
    healed: Healed, repository: Path, settings: Settings, tmp_path: Path
) -> None:
    result = await healed(text=FIXED)
    await apply(patch=tmp_path / "fix.patch", settings=settings)
    assert ((tmp_path / "fix.patch").read_text(), code(repository)) == (result.diff, CODE)


async def test_nothing_is_written_over_the_users_own_change(
    healed: Healed, repository: Path, settings: Settings
) -> None:
    await healed(text=FIXED)
    (repository / "shop" / "prices.py").write_text(CODE + "\nMINE = 1\n")
    with pytest.raises(UsageError, match="was changed since the run started"):
        await apply(settings=settings)
    assert code(repository) == CODE + "\nMINE = 1\n"


async def test_what_is_not_healed_or_of_another_folder_is_refused(
    healed: Healed, repository: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="no run has healed this folder"):
        await apply(settings=settings)
    result = await healed(text=CODE)
    assert result.outcome != "healed"
    with pytest.raises(UsageError, match="there is nothing to apply"):
        await apply(result.run_id, settings=settings)
    await healed(text=FIXED)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="no run has healed this folder"):
        await apply(settings=settings)


async def test_code_written_in_a_folder_is_none_of_the_folders_below(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    below = tmp_path / "above" / "below"
    below.mkdir(parents=True)
    monkeypatch.chdir(below.parent)
    right = ScriptedModel(["```python\ndef double(n):\n    return 2 * n\n```"])
    await solve("Write double(n). double(4) == 8", WriteOptions(settings=settings, model=right))
    monkeypatch.chdir(below)
    with pytest.raises(UsageError, match="no run has healed this folder"):
        await apply(settings=settings)
    monkeypatch.chdir(below.parent)
    await apply(settings=settings)
    assert (below.parent / "solution.py").exists()


async def test_a_run_of_somebody_else_is_not_applied(
    healed: Healed, repository: Path, settings: Settings, tmp_path: Path
) -> None:
    result = await healed(text=FIXED)
    run = find_run(settings.paths.home, result.run_id)
    strange = tmp_path / "strange" / run.id
    strange.parent.mkdir()
    run.path.rename(strange)
    with pytest.raises(UsageError, match="not among your own runs"):
        await apply(strange, settings=settings)
    assert code(repository) == CODE
