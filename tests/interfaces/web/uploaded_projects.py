"""Projects that callers upload."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

BROKEN_PROJECT = {
    "cart.py": "def total(prices):\n    return sum(prices) + 1\n",
    "test_cart.py": "from cart import total\n\ndef test_total():\n    assert total([1, 2]) == 3\n",
}
HANGING_PROJECT = {
    "a.py": "def one():\n    return 2\n",
    "test_a.py": "import time\nfrom a import one\n\ndef test_one():\n    time.sleep(3600)\n",
}
"""A project whose test does not end by itself."""


def zip_project(files: Mapping[str, str]) -> bytes:
    """Pack a project as a zip archive."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return content.getvalue()


def tar_project(files: Mapping[str, str], mode: str = "w:gz") -> bytes:
    """Pack a project as a tar archive."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode=mode) as archive:  # type: ignore[call-overload]  # any mode
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
    return content.getvalue()


def write_project(folder: Path, files: Mapping[str, str]) -> Path:
    """Write a project into a new folder, and return the folder."""
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder
