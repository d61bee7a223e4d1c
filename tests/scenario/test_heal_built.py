"""A package whose build has written one of its modules, which git ignores, is healed as it lies there."""

from __future__ import annotations

from pathlib import Path

import pytest

from bare_pytest import BARE_PYTEST
from suture.api import HealOptions, heal
from suture.core.settings import load_settings

pytestmark = pytest.mark.timeout(300)  # a search: slow where the machine is busy with other work

FILES = {
    ".gitignore": "_version.py\n",
    "pkg/__init__.py": "from pkg._version import version\nfrom pkg.sums import total\n",
    "pkg/sums.py": (
        "def total(values):\n    result = 0\n"
        "    for value in values:\n        result -= value\n    return result\n"
    ),
    "tests/test_sums.py": (
        "from pkg import total, version\n\n\n"
        "def test_total():\n    assert total([1, 2]) == 3\n\n\n"
        "def test_version():\n    assert version == '1.2'\n"
    ),
}


def lay(root: Path) -> Path:
    for path, text in FILES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


@pytest.mark.heavy
async def test_it_is_healed_with_what_its_build_has_written(tmp_path: Path) -> None:
    project = lay(tmp_path / "project")
    (project / "pkg" / "_version.py").write_text("version = '1.2'\n")
    settings = load_settings(project, {"paths.home": str(tmp_path / "state"), "model.name": "none"}).settings
    result = await heal(project, HealOptions(test=BARE_PYTEST, settings=settings))
    assert result.outcome == "healed"
    assert result.candidate is not None
    assert list(result.candidate.files) == ["pkg/sums.py"]


async def test_what_no_build_has_written_is_told_and_nothing_is_tried(tmp_path: Path) -> None:
    project = lay(tmp_path / "project")
    settings = load_settings(project, {"paths.home": str(tmp_path / "state"), "model.name": "none"}).settings
    result = await heal(project, HealOptions(test=BARE_PYTEST, settings=settings))
    assert result.outcome == "not_a_code_fault"
    assert "'pkg._version' is written when the project is built, as .gitignore says" in result.reason.detail
