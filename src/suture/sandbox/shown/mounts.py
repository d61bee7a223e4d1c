"""What of the host a program behind the wall may read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

from suture.errors import PrerequisiteError, UsageError
from suture.languages import Interpreter
from suture.sandbox.contract import BOX, Mount

__all__ = [
    "ETC",
    "HOST_ETC",
    "OWN_ETC",
    "SYSTEM_FOLDERS",
    "in_system",
    "interpreter_mounts",
    "plan_mounts",
    "planned_mounts",
]

SYSTEM_FOLDERS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store")
"""Programs and libraries of the machine; always shown."""
ETC = Path(__file__).parent / "etc"
"""What of `/etc` a program needs to know its own name and what `localhost` is."""
OWN_ETC = ("passwd", "group", "hosts", "nsswitch.conf")
HOST_ETC = ("ld.so.cache", "alternatives", "localtime", "ssl/certs", "ssl/openssl.cnf", "mime.types")
"""What of the host's own `/etc` is shown where it exists; public on every machine."""
RESERVED = (BOX, "/proc", "/dev", "/etc", "/sys")
ENVIRONMENT_PARTS = ("bin", "lib", "lib32", "lib64", "include", "pyvenv.cfg")
"""What an interpreter needs of a virtual environment. Never the whole: that can be a project."""
INSTALLATION_PARTS = ("lib*/python3.*", "lib*/libpython*", "include/python3.*")
"""What it needs of an installation, whose folders may hold much else: its prefix can be `~/.local`."""
CONDA_MARK = "conda-meta"
"""In an installation all of whose `lib` is its own; the standard library needs much of it."""
MOST_LINKS = 40
"""As many links as the kernel follows in one path."""


def interpreter_mounts(interpreter: Interpreter) -> tuple[Mount, ...]:
    """What an interpreter needs, each at its own absolute path, because its files name one another by path.

    What its toolchain needs comes on top.

    Raises:
        PrerequisiteError: A part of the environment leads out of it. A project that nobody has read may have
            planted such a link in its `.venv`, to be shown a folder of ours.
    """
    base = Path(interpreter.base_prefix)
    sources = list(_parts(base, [path for name in _installation_parts(base) for path in base.glob(name)]))
    prefix = Path(interpreter.prefix)
    own_parts = ENVIRONMENT_PARTS if interpreter.is_virtual else ("bin",)
    sources += _parts(prefix, [prefix / name for name in own_parts])
    sources += [path for folder in interpreter.site_packages if (path := Path(folder)).is_dir()]
    sources += _links(Path(interpreter.executable))
    mounts = [Mount(source=str(path), target=str(path)) for path in sources]
    shown = interpreter.toolchain.shown if interpreter.toolchain else {}
    return plan_mounts([*mounts, *(Mount(source=here, target=there) for here, there in shown.items())])


def _installation_parts(base: Path) -> tuple[str, ...]:
    return (*INSTALLATION_PARTS, "lib") if (base / CONDA_MARK).is_dir() else INSTALLATION_PARTS


def _parts(prefix: Path, parts: Iterable[Path]) -> Iterator[Path]:
    root = prefix.resolve()
    for part in parts:
        if not part.exists() or in_system(str(part)):
            continue
        real = part.resolve()
        if not real.is_relative_to(root) and not in_system(str(real)):
            raise PrerequisiteError(
                f"{str(part)!r} leads out of its environment, to {str(real)!r}",
                remedy="make the environment anew with `python3 -m venv`",
            )
        yield part


def _links(executable: Path) -> Iterator[Path]:
    if not os.access(executable, os.X_OK):
        raise PrerequisiteError(
            f"{str(executable)!r} is not a program", remedy="make its environment anew, or remove it"
        )
    path = executable
    for _ in range(MOST_LINKS):
        yield path
        if not path.is_symlink():
            return
        path = Path(os.path.normpath(path.parent / path.readlink()))


@lru_cache(maxsize=64)
def planned_mounts(mounts: tuple[Mount, ...]) -> tuple[Mount, ...]:
    """As `plan_mounts`, and found out once for the same ones."""
    return plan_mounts(mounts)


def plan_mounts(mounts: Iterable[Mount]) -> tuple[Mount, ...]:
    """Check mounts, and drop those that another one or the system folders already show.

    No mount point is ever made below another mount: bubblewrap before 0.12 follows a planted link there and
    makes folders on the host (CVE-2026-87766).

    Raises:
        UsageError: A mount is not absolute, not there, covers a folder of the wall's own, or lies below
            another one.
    """
    planned: list[Mount] = []
    for mount in sorted(dict.fromkeys(mounts), key=lambda mount: (mount.target.count("/"), mount.target)):
        _check(mount)
        if mount.source == mount.target and in_system(mount.target):
            continue
        above = next((other for other in planned if _is_below(mount.target, other.target)), None)
        if above is None:
            planned.append(mount)
        elif mount.source != above.source + mount.target[len(above.target) :]:
            raise UsageError(f"{mount.target!r} cannot be shown: it lies below {above.target!r}")
    return tuple(planned)


def _check(mount: Mount) -> None:
    for path in (mount.source, mount.target):
        if not path.startswith("/") or path == "/" or os.path.normpath(path) != path or "\0" in path:
            raise UsageError(f"a mount needs plain absolute paths, not {path!r}")
    if mount.target == "/tmp" or any(
        mount.target == folder or _is_below(mount.target, folder) or _is_below(folder, mount.target)
        for folder in RESERVED
    ):
        raise UsageError(f"{mount.target!r} belongs to the wall; nothing can be shown there")
    if not os.path.exists(mount.source):  # noqa: PTH110 - a Path would hide what was written
        raise UsageError(f"there is nothing at {mount.source!r} to be shown")
    if mount.source != mount.target and in_system(mount.target):
        raise UsageError(f"{mount.target!r} is a system folder; nothing else can be shown there")


def in_system(path: str) -> bool:
    """Whether a path lies in a folder that is always shown."""
    return any(path == folder or _is_below(path, folder) for folder in SYSTEM_FOLDERS)


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + "/")
