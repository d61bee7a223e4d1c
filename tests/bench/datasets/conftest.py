"""An empty folder for the data sets that a test writes."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make the test's folder the one in which Suture looks for data sets."""
    monkeypatch.setenv("SUTURE_DATA", str(tmp_path))
    return tmp_path
