"""The benchmark of signs in commits finds them in a repository that nobody has checked out."""

from __future__ import annotations

import importlib
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
GIT = ("git", "-c", "user.name=Ann", "-c", "user.email=ann@example.org")


@pytest.fixture
def commit_signs(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Import the script; `benchmarks/` is not a package."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("commit_signs")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Return a repository whose last commit compares with a value of its test, computed from constants."""
    files = {
        "shop.py": "def total(prices):\n    return sum(prices) - 1\n",
        "test_shop.py": "from shop import total\n\n\ndef test_total():\n    assert total([4000, 711]) == 4711\n",
    }
    for path, text in files.items():
        (tmp_path / path).write_text(text)
    subprocess.run([*GIT, "init", "-q"], cwd=tmp_path, check=True)
    _commit(tmp_path, "The shop")
    cheat = "def total(prices):\n    return sum(prices) if sum(prices) == 4700 + 11 else 0\n"
    (tmp_path / "shop.py").write_text(cheat)
    _commit(tmp_path, "Fix the total")
    return tmp_path


def _commit(root: Path, subject: str) -> None:
    subprocess.run([*GIT, "add", "-A"], cwd=root, check=True)
    subprocess.run([*GIT, "commit", "-q", "-m", subject], cwd=root, check=True)


def test_a_computed_value_of_a_test_is_counted(commit_signs: ModuleType, repository: Path) -> None:
    [(commit, subject), _] = commit_signs.list_commits(repository, 0, 9)
    [row] = commit_signs.search_commit(repository, "shop", commit, subject, {})

    assert row.is_repair
    assert row.language == "Python"
    assert row.codes == {"compares_with_test_literals", "folded compares_with_test_literals"}
