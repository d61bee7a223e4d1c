"""Projects that callers upload."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

BROKEN = {
    "cart.py": "def total(prices):\n    return sum(prices) + 1\n",
    "test_cart.py": "from cart import total\n\ndef test_total():\n    assert total([1, 2]) == 3\n",
}
HANGING = {
    "a.py": "def one():\n    return 2\n",
    "test_a.py": "import time\nfrom a import one\n\ndef test_one():\n    time.sleep(3600)\n",
}
"""Its tests do not end by themselves."""


def zipped(files: Mapping[str, str]) -> bytes:
    """A project as a zip."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return content.getvalue()


def tarred(files: Mapping[str, str], mode: str = "w:gz") -> bytes:
    """A project as a tar."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode=mode) as archive:  # type: ignore[call-overload]  # any mode
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
    return content.getvalue()


def laid(folder: Path, files: Mapping[str, str]) -> Path:
    """A project as a folder."""
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder
