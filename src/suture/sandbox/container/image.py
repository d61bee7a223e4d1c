"""An image of nothing but folders: a container can show the host's own programs without a registry."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from suture.sandbox.contract import BOX, Mount
from suture.sandbox.mounts.bind_mounts import ETC, HOST_ETC
from suture.sandbox.mounts.places import SYSTEM_FOLDERS

REPOSITORY = "localhost/suture-nothing"
FOLDERS = dict.fromkeys(("dev", "etc", "etc/ssl", "opt", "proc", "sys", "var"), 0o755)
# An engine may give what it mounts there the mode of the folder below.
FOLDERS |= {"run": 0o555, "var/tmp": 0o555, "tmp": 0o1777, BOX.strip("/"): 0o1777}


def image_name(content: bytes) -> str:
    """The name of an image with this content, which never changes its meaning."""
    return f"{REPOSITORY}:{hashlib.sha256(content).hexdigest()[:16]}"


def pack_image(system_folders: Sequence[str] = SYSTEM_FOLDERS) -> bytes:
    """The image's one layer, as a tar file; the same bytes on each call.

    Args:
        system_folders: Folders of the host; its links are links in the image.
    """
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, mode in FOLDERS.items():
            tar.addfile(_folder(name, mode))
        for name in system_folders:
            path = Path(name)
            if path.is_symlink():
                link = tarfile.TarInfo(name.strip("/"))
                link.type, link.linkname = tarfile.SYMTYPE, str(path.readlink())
                tar.addfile(link)
        for path in sorted(ETC.iterdir()):
            file = tarfile.TarInfo(f"etc/{path.name}")
            content = path.read_bytes()
            file.size, file.mode = len(content), 0o644
            tar.addfile(file, io.BytesIO(content))
    return packed.getvalue()


def _folder(name: str, mode: int) -> tarfile.TarInfo:
    folder = tarfile.TarInfo(name)
    folder.type, folder.mode = tarfile.DIRTYPE, mode
    return folder


def system_mounts() -> Iterator[Mount]:
    """The host's programs and libraries, and what of its `/etc` they need."""
    for name in (*SYSTEM_FOLDERS, *(f"/etc/{name}" for name in HOST_ETC)):
        path = Path(name)
        if path.exists() and not (name in SYSTEM_FOLDERS and path.is_symlink()):
            yield Mount(source=str(path.resolve()), target=name)
